"""Storages: what the nodes see of them, how the cluster has them configured, what lies on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Count, Fields, Listing, NodeName, Reading, StorageId, matching, plain_text
from proxmox_mcp.inventory import flag, number, per_node, read_object, read_rows, share, storage_state, word
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool
from proxmox_mcp.storages import volumes


class ListStorage(Listing):
    node: NodeName | None = None


PATIENCE = 15.0  # seconds for a node's list; what takes longer hangs on a storage
_BEST_FIRST = ("active", "last known", "inactive", "disabled", "unknown")

_STORAGES = (
    Column("storage"),
    Column("node"),
    Column("type"),
    Column("state"),
    Column("used_fraction", Kind.PERCENT, head="used%"),
    Column("avail", Kind.BYTES),
    Column("total", Kind.BYTES),
    Column("content"),
    Column("used", Kind.BYTES, default=False),
    Column("shared", Kind.FLAG, default=False),
)


@tool("proxmox_list_storage", "Storages with fill level, of a node or all.", title="List storages", group="storage", model=ListStorage)
async def list_storage(args: ListStorage, call: Call) -> Answer:
    """GET /nodes/{node}/storage of one or all online nodes; a shared storage is one row. Sizes in bytes, used_fraction 0..1.

    3 storages
    storage node type state used% avail total content
    local pve1 dir active 40 55.9G 93.1G iso,backup
    nas shared nfs active 71 1.1T 3.6T backup
    usb pve1 dir inactive - - - backup
    """
    inventory = call.inventory
    places = [(await inventory.node(args.node, live=True)).name] if args.node is not None else await inventory.live_nodes()
    found = await per_node(places, lambda node: read_rows(call.api, "nodes", node, "storage"), each=PATIENCE)
    good = inventory.keep(found)
    rows = [_storage_row(entry, node) for node, seen in good.items() for entry in seen if word(entry.get("storage"))]
    notes: list[str] = []
    if len(good) < len(places):
        silent = {node for node in places if node not in good}
        statistics = await read_rows(call.api, "cluster", "resources", params={"type": "storage"})
        rows += [_last_known(entry) for entry in statistics if word(entry.get("node")) in silent and word(entry.get("storage"))]
        notes.append(f"{', '.join(sorted(silent))}: one storage that hangs holds up the list; last known are figures that Proxmox kept")
    unnamed = sum(word(entry.get("storage")) is None for seen in good.values() for entry in seen)
    notes += [f"{text.counted(unnamed, 'entries')} without a name could not be read"] if unnamed else []
    rows, differing = _once(rows)
    notes = [*inventory.notes, *notes, *differing]
    if not rows and not inventory.gaps:
        why = (await inventory.permissions()).explains_empty("storages", "/storage", "Datastore.Audit", "Datastore.AllocateSpace")
        notes += [why] if why else []
    filters = {"node": places[0] if args.node is not None else None}
    return Answer("storages", rows=rows, columns=_STORAGES, order=("storage", "node"), filters=filters, notes=tuple(notes))


def _once(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Shared storages as one row each, and a line for each that the nodes see differently."""
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    differing = []
    for row in sorted(rows, key=lambda row: _BEST_FIRST.index(row["state"])):
        first = kept.setdefault((row["storage"], row["node"]), row)
        if first["state"] != row["state"] and row["state"] in ("inactive", "disabled"):
            differing.append(f"{row['storage']} is {first['state']} on {first['at']}, but {row['state']} on {row['at']}")
    return list(kept.values()), differing


def _storage_row(entry: Mapping[str, Any], node: str) -> dict[str, Any]:
    shared = flag(entry.get("shared"))
    row = {**entry, "shared": shared, "node": "shared" if shared else node, "at": node, "state": storage_state(entry)}
    if row["state"] != "active" or not number(row.get("total")):
        # Proxmox fills in zeros for what it could not look at, and for types that do not tell (iscsi, esxi)
        row |= dict.fromkeys(("total", "used", "avail", "used_fraction"))
    elif row.get("used_fraction") is None:
        row["used_fraction"] = share(entry.get("used"), entry.get("total"))
    return row


def _last_known(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A storage entry of the cluster's statistics, for a node that did not answer."""
    known = entry.get("status") == "available"
    row = {"type": entry.get("plugintype"), "enabled": 1, "active": 1, "total": entry.get("maxdisk"), "used": entry.get("disk")}
    taken = _storage_row({**entry, **row}, str(entry.get("node")))
    return taken | ({"state": "last known"} if known else {"state": "unknown"} | dict.fromkeys(("total", "used", "avail", "used_fraction")))


class ListClusterStorage(Listing):
    pass


_CONFIGURED = (
    Column("storage"),
    Column("type"),
    Column("content"),
    Column("nodes"),
    Column("enabled", Kind.FLAG),
    Column("shared", Kind.FLAG),
    Column("target"),
    Column("prune-backups", default=False),
    *(Column(name, default=False) for name in ("path", "pool", "vgname", "thinpool", "server", "export", "share")),
    *(Column(name, default=False) for name in ("datastore", "namespace", "digest")),
)
# what a storage stands on, by the option that says it
_TARGETS = ("pool", "thinpool", "vgname", "export", "share", "datastore", "portal", "monhost", "path")


@tool(
    "proxmox_list_cluster_storage",
    "Storage configuration of the cluster.",
    title="Storage configuration",
    group="storage",
    model=ListClusterStorage,
)
async def list_cluster_storage(args: ListClusterStorage, call: Call) -> Answer:
    """GET /storage: as configured, whatever the state. `nodes` unset: every node; `target` is what the storage stands on.

    2 storages
    storage type content nodes enabled shared target
    local dir backup,iso all yes no /var/lib/vz
    nas nfs backup all yes yes 10.0.0.9:/tank/pve
    """
    rows = [
        {
            **ref.row,
            "content": ",".join(sorted(ref.content)) or None,
            "nodes": ",".join(sorted(ref.nodes)) if ref.nodes is not None else "all",
            "enabled": ref.enabled,
            "shared": ref.shared,
            "target": _target(ref.row),
            "prune-backups": volumes.retention(ref.row.get("prune-backups")),
        }
        for ref in await call.inventory.storages()
    ]
    notes = call.inventory.notes
    if not rows and not call.inventory.gaps:
        why = (await call.inventory.permissions()).explains_empty("storages", "/storage", "Datastore.Audit", "Datastore.AllocateSpace")
        notes += (why,) if why else ()
    return Answer("storages", rows=rows, columns=_CONFIGURED, order=("storage",), notes=notes)


def _target(row: Mapping[str, Any]) -> str | None:
    place = next((f"{row[name]}" for name in _TARGETS if row.get(name)), None)
    if row.get("thinpool") and row.get("vgname"):
        place = f"{row['vgname']}/{row['thinpool']}"
    return ":".join(str(part) for part in (row.get("server"), place) if part) or None


ContentTypes = Annotated[str, AfterValidator(matching(r"[a-z]+(?:[,; ][a-z]+)*", "content types, separated by commas", longest=128))]


class StorageUsage(Reading):
    node: NodeName | None = None
    storage: StorageId
    content_filter: Annotated[ContentTypes, Field(description="images,backup ...")] | None = None
    top_n: Count = 10
    fields: Fields | None = None
    cursor: Annotated[str, AfterValidator(plain_text(2048))] | None = None

    @property
    def limit(self) -> int:
        """The rows of a page."""
        return self.top_n


@tool(
    "proxmox_storage_usage_detail",
    "What fills a storage: totals and largest volumes.",
    title="Storage usage",
    group="storage",
    model=StorageUsage,
)
async def storage_usage_detail(args: StorageUsage, call: Call) -> Answer:
    """GET /nodes/{node}/storage/{storage}/content and .../status. Bytes; `used` where the storage knows it, `approx`: only near.

    42 volumes, largest first; storage=nas
    state: active
    used_fraction: 71%
    ...
    by_content:
    content volumes size
    backup 30 1.2T
    images 12 340G
    volid content vmid size
    nas:backup/vzdump-qemu-101-2026_03_01-02_00_00.vma.zst backup 101 120G
    """
    wanted = frozenset(args.content_filter.replace(";", ",").replace(" ", ",").split(",")) if args.content_filter else None
    ref, node = await call.inventory.storage_on(args.storage, args.node)
    if ref.shared and args.node is None:
        node, found = await call.inventory.from_shared(ref, lambda name: read_rows(call.api, "nodes", name, "storage", ref.name, "content"))
    else:
        found = await read_rows(call.api, "nodes", node, "storage", ref.name, "content")
    status = await read_object(call.api, "nodes", node, "storage", ref.name, "status")
    rows = [_volume_row(row) for row in found if wanted is None or row.get("content") in wanted]
    notes = [*call.inventory.notes, *await _remarks(call, ref.name, ref.content & (wanted or ref.content), rows)]
    record: dict[str, Any] = {"state": storage_state(status)}
    if record["state"] == "active":
        known = status if number(status.get("total")) else {}  # all 0 where the type does not tell: iscsi, esxi
        record |= {name: known.get(name) for name in ("total", "used", "avail")}
        record["used_fraction"] = share(known.get("used"), known.get("total"))
        notes += _unexplained(known.get("used"), rows) if wanted is None else ()
    record["by_content"] = _totals(rows)
    columns = (
        *(Column("volid"), Column("content"), Column("vmid", Kind.NUMBER), Column("size", Kind.BYTES)),
        Column("used", Kind.BYTES, default=any(row.get("used") is not None for row in rows)),
        Column("approx", Kind.FLAG, default=any(row["approx"] for row in rows)),
        *(Column("format", default=False), Column("ctime", Kind.TIME, default=False), Column("parent", default=False)),
    )
    filters = {"storage": ref.name, "node": None if ref.shared else node, "content": args.content_filter}
    return Answer(
        "volumes, largest first",
        rows=rows,
        columns=columns,
        order=("-size", "volid"),
        filters=filters,
        record=record,
        kinds={"used_fraction": Kind.PERCENT, **dict.fromkeys(("total", "used", "avail", "size"), Kind.BYTES)},
        notes=tuple(notes),
    )


def _volume_row(row: Mapping[str, Any]) -> dict[str, Any]:
    size = volumes.size(row)
    approximate = size is not None and number(row.get("size")) is None
    return {**row, "size": size, "vmid": number(row.get("vmid")), "approx": True if approximate else None}


def _totals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    kinds = sorted({str(row.get("content") or "unknown") for row in rows})
    totals = []
    for kind in kinds:
        sizes = [row["size"] for row in rows if str(row.get("content") or "unknown") == kind]
        known = [size for size in sizes if size is not None]
        totals.append({"content": kind, "volumes": len(sizes), "size": sum(known) if known else None})
    return sorted(totals, key=lambda total: -(total["size"] or 0))


_LITTLE = 2**30  # bytes


def _unexplained(used: Any, rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """How much is used by what is no listed volume, where that is more than a little and every size is known."""
    total = number(used)
    if total is None or any(row["size"] is None for row in rows):
        return ()
    rest = total - sum(row["size"] for row in rows)
    if rest < max(_LITTLE, total / 10):
        return ()
    return (
        f"{text.size(rest)} of the {text.size(total)} used are in no volume listed here: other files or snapshots on the same disks, "
        "or volumes that this token may not see",
    )


async def _remarks(call: Call, storage: str, kinds: frozenset[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    unknown = sum(row["size"] is None for row in rows)
    near = sum(bool(row["approx"]) for row in rows)
    if unknown:
        notes.append(f"the size of {text.counted(unknown, 'volumes')} is not known: totals are at least what they say")
    if near:
        notes.append(f"the size of {text.counted(near, 'volumes')} is approximate (approx)")
    permissions = await call.inventory.permissions()
    hidden = [permissions.explains_no_backups(storage) if "backup" in kinds else ""]
    hidden += [permissions.explains_no_disks(storage) if kinds & {"images", "rootdir"} else ""]
    notes += filter(None, hidden)
    disks = [row for row in rows if row.get("content") in ("images", "rootdir") and row["vmid"] is not None]
    if disks and permissions.has("/vms", "VM.Audit"):
        guests = {guest.vmid for guest in await call.inventory.guests()}
        lost = [str(row.get("volid")) for row in disks if row["vmid"] not in guests]
        if lost and guests:
            more = f" and {len(lost) - 10} more" if len(lost) > 10 else ""
            notes.append(f"of ids that no guest has (orphaned?): {text.counted(len(lost), 'disks')}: {', '.join(lost[:10])}{more}")
    return notes
