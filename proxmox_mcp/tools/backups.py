"""Backups, ISO images and the like on all storages, and the jobs that make backups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Count, Listing, NodeName, StorageId, Vmid
from proxmox_mcp.errors import ApiError, RequestTimeout
from proxmox_mcp.inventory import flag, number, part, read_rows
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool
from proxmox_mcp.storages import volumes


class ListBackups(Listing):
    node: NodeName | None = None
    storage: StorageId | None = None
    vmid: Vmid | None = None
    limit: Count = 50


# of a backup's volume id: vzdump-qemu-101-..., backup/ct/205/...
_KIND = re.compile(r"vzdump-(qemu|lxc|openvz)-|backup/(vm|ct)/")
_KINDS = {"vm": "qemu", "ct": "lxc", "openvz": "lxc"}


@tool("proxmox_list_backups", "Backups on every storage, newest first.", title="List backups", group="backups", model=ListBackups)
async def list_backups(args: ListBackups, call: Call) -> Answer:
    """GET /nodes/{node}/storage/{storage}/content?content=backup of every storage for backups. Bytes; times from the API, UTC.

    2 backups; vmid=101
    vmid type created size volid protected verified
    101 qemu 2026-03-01 01:00Z - pbs:backup/vm/101/2026-03-01T01:00:00Z yes ok
    101 qemu 2026-02-28 03:00Z 3.0G local:backup/vzdump-qemu-101-2026_02_28-03_00_00.vma.zst - -
    """
    listing = await volumes.find(call.inventory, "backup", storage=args.storage, node=args.node, vmid=args.vmid)
    rows = [_backup_row(row) for row in listing.rows()]
    notes = [*call.inventory.notes, *_not_read(listing), *await _unseen(call, listing, args, bool(rows))]
    columns = (
        *(Column("vmid", Kind.NUMBER), Column("type"), Column("ctime", Kind.TIME, head="created")),
        *(Column("size", Kind.BYTES), Column("volid")),
        Column("node", default=args.node is None and any(row["node"] != "shared" for row in rows)),
        Column("protected", Kind.FLAG, default=any(row["protected"] for row in rows)),
        Column("verified", default=any(row["verified"] for row in rows)),
        *(Column("encrypted", default=False), Column("notes", default=False), Column("format", default=False)),
        Column("storage", default=False),
    )
    filters = {"vmid": args.vmid, "storage": args.storage, "node": args.node}
    order = ("-ctime", "volid", "node")
    return Answer("backups", rows=rows, columns=columns, order=order, filters=filters, notes=tuple(notes))


def _backup_row(row: Mapping[str, Any]) -> dict[str, Any]:
    told = _KIND.search(str(row.get("volid")))
    kind = row.get("subtype") or (_KINDS.get(told[1] or told[2], told[1]) if told else None)
    return {
        **row,
        "type": kind,
        "vmid": number(row.get("vmid")),
        "ctime": number(row.get("ctime")),
        "size": volumes.size(row),
        "protected": flag(row["protected"]) if "protected" in row else None,
        "verified": part(row.get("verification")).get("state"),
    }


def _not_read(listing: volumes.Listing) -> list[str]:
    return [f"not read, because disabled: {', '.join(listing.disabled)}"] if listing.disabled else []


async def _unseen(call: Call, listing: volumes.Listing, args: ListBackups, some: bool) -> list[str]:
    """Backups that are not there are told apart from those that this token must not see."""
    permissions = await call.inventory.permissions()
    read = sorted({place.storage for place in listing.volumes})
    if not read and not listing.failed and args.storage is None:
        why = permissions.explains_empty("storages", "/storage", "Datastore.Audit", "Datastore.AllocateSpace")
        return [why or "no storage is set up for backups"]
    why = permissions.explains_no_backups(*read, vmid=args.vmid) if read else ""
    if some and permissions.entries is None:
        return []
    if why:
        return [f"there may be more: {why}" if some else f"0 visible, which does not mean that there are none: {why}"]
    return [f"read: {', '.join(read)}"] if read and not some else []


class ListIsos(Listing):
    node: NodeName | None = None
    storage: StorageId | None = None
    content: Literal["iso", "vztmpl", "import"] = "iso"


_NAMES = {"iso": "ISO images", "vztmpl": "container templates", "import": "images to import"}


@tool(
    "proxmox_list_isos", "ISO images (or container templates) on every storage.", title="List ISO images", group="storage", model=ListIsos
)
async def list_isos(args: ListIsos, call: Call) -> Answer:
    """GET /nodes/{node}/storage/{storage}/content?content= of every storage with that content. Sizes in bytes.

    2 ISO images
    volid size node
    local:iso/debian-13.iso 668M pve1
    nas:iso/debian-13.iso 668M shared
    """
    listing = await volumes.find(call.inventory, args.content, storage=args.storage, node=args.node)
    rows = [{**row, "size": volumes.size(row)} for row in listing.rows()]
    notes = [*call.inventory.notes, *_not_read(listing)]
    if not rows:
        read = sorted({place.storage for place in listing.volumes})
        why = (await call.inventory.permissions()).explains_empty("storages", "/storage", "Datastore.Audit", "Datastore.AllocateSpace")
        notes.append(why or (f"read: {', '.join(read)}" if read else f"no storage that could be read is set up for {args.content}"))
    columns = (
        *(Column("volid"), Column("size", Kind.BYTES), Column("node")),
        *(Column("ctime", Kind.TIME, default=False), Column("format", default=False), Column("storage", default=False)),
    )
    filters = {"storage": args.storage, "node": args.node}
    return Answer(_NAMES[args.content], rows=rows, columns=columns, order=("volid", "node"), filters=filters, notes=tuple(notes))


class ListBackupJobs(Listing):
    pass


_JOBS = (
    *(Column("id"), Column("guests"), Column("schedule"), Column("next-run", Kind.TIME), Column("enabled", Kind.FLAG)),
    *(Column("storage"), Column("mode"), Column("retention"), Column("node", default=False)),
    *(Column("compress", default=False), Column("comment", default=False), Column("notes-template", default=False)),
    *(Column("vmid", default=False), Column("pool", default=False), Column("exclude", default=False)),
)


@tool("proxmox_list_backup_jobs", "Scheduled backup jobs.", title="Backup jobs", group="backups", model=ListBackupJobs)
async def list_backup_jobs(args: ListBackupJobs, call: Call) -> Answer:
    """GET /cluster/backup, and /cluster/backup-info/not-backed-up for the guests that no job covers. A missing `enabled` means yes.

    3 backup jobs
    id guests schedule next-run enabled storage mode retention
    backup-a1 "all except 900, 901" 21:00 2026-03-01 21:00Z yes nas snapshot keep-daily=7
    """
    rows = [_job_row(row) for row in await read_rows(call.api, "cluster", "backup")]
    notes = [*call.inventory.notes]
    try:
        uncovered = await read_rows(call.api, "cluster", "backup-info", "not-backed-up")
        if uncovered:
            notes.append(f"in no job: {', '.join(_label(guest) for guest in uncovered[:20])}{' ...' if len(uncovered) > 20 else ''}")
    except (ApiError, RequestTimeout) as error:
        notes.append(f"which guests are in no job is not known: {error.what}")
    return Answer("backup jobs", rows=rows, columns=_JOBS, order=("id",), notes=tuple(notes))


def _label(guest: Mapping[str, Any]) -> str:
    return " ".join(str(part) for part in (guest.get("vmid"), guest.get("name")) if part)


def _job_row(row: Mapping[str, Any]) -> dict[str, Any]:
    enabled = "enabled" not in row or flag(row["enabled"])
    kept = volumes.retention(row.get("prune-backups"))
    return {**row, "enabled": enabled, "guests": _selection(row, enabled), "retention": kept or "storage default"}


def _selection(row: Mapping[str, Any], enabled: bool) -> str:
    if flag(row.get("all")):
        left_out = _ids(row.get("exclude"))
        chosen = f"all except {left_out}" if left_out else "all"
    elif row.get("pool"):
        chosen = f"pool {row['pool']}"
    else:
        chosen = _ids(row.get("vmid")) or "none"
    if row.get("node"):
        chosen += f" on {row['node']}"
    return chosen if enabled else f"{chosen} (disabled)"


def _ids(value: object) -> str:
    return ", ".join(word for word in re.split(r"[,; ]+", str(value or "")) if word)
