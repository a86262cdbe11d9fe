"""Backups made and restored: proxmox_create_backup, proxmox_restore_backup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Changing, Destroying, Flag, Kind, NodeName, StorageId, Vmid, VolumeId, Waiting, plain_text
from proxmox_mcp.changes import backup_archive, conclusions, guest_config, restoring, storage_fit
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.changes.subject import Subject, subject
from proxmox_mcp.inventory import Inventory, StorageRef, called, number, read_object, read_rows
from proxmox_mcp.plan import Answer, ApiCall, Column, Plan, Risk, StepResult
from proxmox_mcp.plan import Kind as ValueKind
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool
from proxmox_mcp.storages import volumes
from proxmox_mcp.tasks import Upid

_VARIABLE = re.compile(r"\{\{(.*?)\}\}")
_VARIABLES = ("cluster", "guestname", "node", "vmid")


def _notes_template(value: str) -> str:
    """Text for `notes-template`: a newline travels as backslash n; only the variables that Proxmox knows."""
    unknown = [name for name in _VARIABLE.findall(value) if name not in _VARIABLES]
    if unknown:
        raise ValueError(f"{{{{{unknown[0]}}}}} is no variable; there are {', '.join(f'{{{{{name}}}}}' for name in _VARIABLES)}")
    return value.replace("\\", "\\\\").replace("\n", "\\n")


class CreateBackup(Changing, Waiting):
    vmid: Vmid
    node: NodeName | None = None
    storage: StorageId = "local"
    mode: Literal["snapshot", "suspend", "stop"] = "snapshot"
    compress: Literal["none", "lzo", "gzip", "zstd"] = "zstd"
    notes: Annotated[str, AfterValidator(plain_text(500)), AfterValidator(_notes_template)] | None = None
    protected: Flag = False
    prune: Annotated[Flag, Field(description="old backups, by the storage's retention")] = False


@tool(
    "proxmox_create_backup",
    "Back up a VM or container with vzdump; older backups are kept unless prune is set.",
    title="Make a backup",
    group="backups",
    model=CreateBackup,
    risk=Risk.CHANGE,
    destructive=False,
    limit="guest",
)
async def create_backup(args: CreateBackup, call: Call) -> Plan:
    """POST /nodes/{node}/vzdump on the guest's own node: on any other one Proxmox answers "OK" and does nothing.

    `remove=0` goes with it unless pruning is wished for: without it the storage's retention deletes older backups.
    """
    checks = Checks(call.inventory)
    guest = await subject(call.inventory, args.vmid, node=args.node)
    place = f"/storage/{args.storage}"
    await checks.unlocked(guest)
    await checks.privileges(Need(f"/vms/{guest.vmid}", ("VM.Backup",)), Need(place, ("Datastore.AllocateSpace",)))
    ref, _ = await storage_fit.suits(checks, args.storage, guest.node, "backup")
    on_server = ref is not None and ref.type == "pbs"
    params: dict[str, Any] = {
        "vmid": str(guest.vmid),
        "storage": args.storage,
        "mode": args.mode,
        "compress": None if on_server else "0" if args.compress == "none" else args.compress,
        "remove": int(args.prune),
        "notes-template": args.notes,
        "protected": 1 if args.protected else None,
    }
    pause = {"suspend": "; it is suspended meanwhile", "stop": "; it is shut down meanwhile"}[args.mode] if _pauses(args, guest) else ""
    pruned = f"; then older backups are deleted by the retention of {args.storage}" if args.prune else ""
    summary = f"back up {guest.name} on {guest.node} to storage {args.storage} (mode {args.mode}){pause}{pruned}"

    async def conclude(results: Sequence[StepResult]) -> Answer:
        made, notes = await _made(call, args.storage, guest, results)
        kinds = (Column("size", ValueKind.BYTES), Column("made", ValueKind.TIME))
        return conclusions.done(summary, results, made, columns=kinds, notes=notes)

    return Plan(
        summary,
        (ApiCall("POST", ("nodes", guest.node, "vzdump"), params),),
        Risk.CHANGE,
        (*guest.targets, f"storage {args.storage}"),
        asks=args.prune,
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=tuple(await _backup_notes(args, checks, guest, ref)),
        conclude=conclude,
    )


def _pauses(args: CreateBackup, guest: Subject) -> bool:
    return args.mode != "snapshot" and guest.running


async def _backup_notes(args: CreateBackup, checks: Checks, guest: Subject, ref: StorageRef | None) -> list[str]:
    notes = []
    if ref is not None and ref.type == "pbs":
        notes.append("a backup server compresses by itself: compress is not sent")
    if args.prune:
        rule = ref.row.get("prune-backups") if ref is not None else None
        words = ",".join(f"{key}={value}" for key, value in rule.items()) if isinstance(rule, dict) else rule
        notes.append(f"retention of {args.storage}: {words or 'none, nothing is deleted'}")
    left_out = [str(volume) for volume in guest_config.volumes(guest.config, guest.guest.kind) if not _is_backed_up(guest, volume)]
    if left_out:
        notes.append(f"not in the backup: {', '.join(left_out)}")
    path, params = ("nodes", guest.node, "tasks"), {"source": "active", "typefilter": "vzdump"}
    running = await checks.attempt(read_rows(checks.inventory.api, *path, params=params), f"whether {guest.node} makes another backup now")
    if running:
        notes.append(f"{guest.node} is making another backup: this one waits for it, three hours at most")
    return notes


def _is_backed_up(guest: Subject, volume: guest_config.Volume) -> bool:
    wish = volume.options.get("backup", "").lower()
    if guest.is_vm:
        return volume.is_drive or volume.key.startswith("unused") or wish not in ("0", "no", "off", "false")
    if volume.is_path:
        return False
    return not volume.key.startswith("mp") or wish in ("1", "yes", "on", "true")


async def _made(call: Call, storage: str, guest: Subject, results: Sequence[StepResult]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The new archive as the storage lists it: the newest of this guest that is not older than the task."""
    inventory = Inventory(call.api)
    found = await volumes.find(inventory, "backup", storage=storage, node=guest.node, vmid=guest.vmid)
    started = Upid.parse(results[0].upid).started
    fresh = [row for row in found.rows() if (number(row.get("ctime")) or 0) >= started - 1]
    if not fresh:
        unseen = (await inventory.permissions()).explains_no_backups(storage, vmid=guest.vmid)
        return {}, (f"the new archive is not in the list of {storage}" + (f": {unseen}" if unseen else ""),)
    row = max(fresh, key=lambda row: number(row.get("ctime")) or 0)
    return {"archive": str(row["volid"]), "size": volumes.size(row), "made": row.get("ctime")}, ()


class RestoreBackup(Destroying, Waiting):
    vmid: Vmid
    archive: Annotated[VolumeId, Field(description="volume id, from proxmox_list_backups")]
    node: NodeName | None = None
    vm_type: Kind | None = None
    storage: Annotated[StorageId, Field(description="default: where the disks came from")] | None = None
    force: Annotated[Flag, Field(description="overwrite the guest that has this vmid")] = False
    unique: Annotated[Flag, Field(description="new MAC addresses")] = False
    start_after_restore: Flag = False


@tool(
    "proxmox_restore_backup",
    "Restore a backup as a new VM or container, or over an existing one (force).",
    title="Restore a backup",
    group="backups",
    model=RestoreBackup,
    risk=Risk.DATA_LOSS,
    destructive=True,
    limit="guest",
)
async def restore_backup(args: RestoreBackup, call: Call) -> Plan:
    """POST /nodes/{node}/qemu {archive} for a VM's backup, POST /nodes/{node}/lxc {ostemplate, restore=1} for a container's.

    `force` is sent only where a guest is overwritten; a container's `unprivileged` is the one in the archive, said explicitly.
    """
    checks = Checks(call.inventory)
    archive = backup_archive.parse(args.archive)
    over = await restoring.overwritten(checks, args.vmid, args.node, force=args.force)
    _, node = await call.inventory.storage_on(archive.storage, over.guest.node if over else args.node, change=True)
    found = await restoring.content(checks, archive, node, args.vm_type)
    if over is not None and over.guest.guest.kind != found.kind:
        checks.refuse(f"the backup is of a {'VM' if found.kind == 'qemu' else 'container'}, and {over.guest.name} is not: take another id")
    storage, written, notes = await restoring.targets(checks, found, node, args.storage)
    await restoring.privileges(checks, archive, args.vmid, written, found, overwrite=over is not None)
    if args.start_after_restore:
        await checks.privileges_since((9, 2), Need(f"/vms/{args.vmid}", ("VM.PowerMgmt",)))
    kind = "VM" if found.kind == "qemu" else "CT"
    params: dict[str, Any] = {
        "vmid": args.vmid,
        **({"archive": args.archive} if found.kind == "qemu" else {"ostemplate": args.archive, "restore": 1}),
        "storage": storage,
        "force": 1 if args.force and over is not None else None,
        "unique": 1 if args.unique else None,
        "unprivileged": int(found.unprivileged) if found.kind == "lxc" and found.known else None,
        "start": 1 if args.start_after_restore else None,
    }
    what = f"over {over.guest.name} on {node}: {over.losses(found)}" if over else f"as new {kind} {args.vmid} on {node}"
    summary = f"restore {args.archive}{called(found.name)} {what}" + (", then start it" if args.start_after_restore else "")
    path = ("nodes", node, found.kind, args.vmid)

    async def conclude(results: Sequence[StepResult]) -> Answer:
        config = await read_object(call.api, *path, "config")
        state = await read_object(call.api, *path, "status", "current")
        disks = [str(volume) for volume in guest_config.disks(config, found.kind)]
        facts = {"name": config.get("name") or config.get("hostname"), "status": state.get("status"), "disks": disks}
        return conclusions.done(summary, results, facts)

    return Plan(
        summary,
        (ApiCall("POST", ("nodes", node, found.kind), params),),
        Risk.DATA_LOSS if over else Risk.CHANGE,
        (f"guest {args.vmid}", f"node {node}", *(f"storage {name}" for name in written)),
        fingerprint=over.fingerprint if over else "",
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=(*notes, *await _restore_notes(args, checks, archive, over)),
        conclude=conclude,
        after_failure=conclude if over else None,
    )


async def _restore_notes(
    args: RestoreBackup, checks: Checks, archive: backup_archive.Archive, over: restoring.Overwritten | None
) -> list[str]:
    notes = []
    if over is None and args.force:
        notes.append(f"no guest has id {args.vmid}: there is nothing to overwrite, force is not sent")
    others = [guest.vmid for guest in await checks.inventory.guests() if guest.vmid != args.vmid]
    if archive.vmid in others and not args.unique:
        notes.append(f"guest {archive.vmid} still exists: both would have the same MAC addresses; unique=true gives new ones")
    return notes
