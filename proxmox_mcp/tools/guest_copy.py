"""Copies of guests, and disks moved between storages: proxmox_clone_vm, proxmox_move_disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Changing, Flag, GuestName, Kind, NodeName, StorageId, Vmid, Waiting, matching, plain_text
from proxmox_mcp.changes import cloning, conclusions, guest_config, guest_snapshots, storage_fit
from proxmox_mcp.changes.disk_size import GIB
from proxmox_mcp.changes.guest_config import Volume
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.changes.subject import Subject, reread, subject
from proxmox_mcp.inventory import StorageRef, read_object
from proxmox_mcp.plan import Answer, ApiCall, Plan, Risk, StepResult
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool


class CloneVm(Changing, Waiting):
    vmid: Vmid
    newid: Annotated[Vmid, Field(description="default: next free id")] | None = None
    node: NodeName | None = None
    vm_type: Kind | None = None
    name: GuestName | None = None
    target_storage: StorageId | None = None
    target_node: NodeName | None = None
    full: Annotated[Flag, Field(description="default: linked for a template, else full")] | None = None
    snapname: Annotated[str, AfterValidator(guest_snapshots.check_name)] | None = None
    description: Annotated[str, AfterValidator(plain_text(200))] | None = None

    @model_validator(mode="after")
    def _linked_stays(self) -> Self:
        if self.full is False and self.target_storage is not None:
            raise ValueError("a linked clone (full=false) stays on its template's storage: leave out target_storage or full")
        if self.newid == self.vmid:
            raise ValueError("newid is the id of the source")
        return self


@tool(
    "proxmox_clone_vm",
    "Clone a VM, container or template to a new id.",
    title="Clone a guest",
    group="create",
    model=CloneVm,
    risk=Risk.CHANGE,
    destructive=False,
    limit="guest",
)
async def clone_vm(args: CloneVm, call: Call) -> Plan:
    """POST /nodes/{node}/{qemu|lxc}/{vmid}/clone; whether it is full or linked is always sent, never left to a default."""
    checks = Checks(call.inventory)
    guest = await subject(call.inventory, args.vmid, node=args.node, kind=args.vm_type)
    await checks.unlocked(guest)
    newid = await checks.new_id(args.newid, "newid")
    target = await checks.node(args.target_node) if args.target_node is not None else guest.node
    wanted = await cloning.source(checks, guest, args.snapname)
    full = cloning.is_full(guest, args.full, args.target_storage)
    notes = list(await cloning.possible(checks, wanted, full=full, target=target, storage=args.target_storage))
    await cloning.privileges(checks, wanted, newid, target, args.target_storage)
    if guest.template and full and args.full is None:
        notes.append("full, because target_storage is given: a linked clone stays on its template's storage")
    if not full:
        notes.append(f"linked: it needs {guest.name} for as long as it lives")
    params: dict[str, Any] = {
        "newid": newid,
        "name" if guest.is_vm else "hostname": args.name,
        "full": int(full),
        "storage": args.target_storage,
        "snapname": args.snapname,
        "description": args.description,
        "target": target if target != guest.node else None,
    }
    at = f" at snapshot {args.snapname}" if args.snapname else ""
    to = f" on storage {args.target_storage}" if args.target_storage else ""
    called = f" ({args.name})" if args.name else ""
    how = "full" if full else "linked"
    summary = f"clone {guest.name} on {guest.node}{at} to {'VM' if guest.is_vm else 'CT'} {newid}{called} on {target}{to}, as a {how} clone"

    async def conclude(results: Sequence[StepResult]) -> Answer:
        config = await read_object(call.api, "nodes", target, guest.guest.kind, newid, "config")
        disks = [str(volume) for volume in guest_config.disks(config, guest.guest.kind)]
        facts = {"vmid": newid, "name": config.get("name") or config.get("hostname"), "clone": how, "disks": disks}
        return conclusions.done(summary, results, facts)

    return Plan(
        summary,
        (ApiCall("POST", guest.path("clone"), params),),
        Risk.CHANGE,
        (f"guest {newid}", f"node {target}", *guest.targets, *((f"storage {args.target_storage}",) if args.target_storage else ())),
        fingerprint=f"{wanted.fingerprint}/{guest.state.get('status')}",
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=tuple(notes),
        conclude=conclude,
    )


_DISK_KEY = r"(?:ide[0-3]|sata[0-5]|scsi(?:[12]?[0-9]|30)|virtio(?:[0-9]|1[0-5])|efidisk0|tpmstate0|rootfs|mp[0-9]{1,3}|unused[0-9]{1,3})"


class MoveDisk(Changing, Waiting):
    vmid: Vmid
    disk: Annotated[
        str,
        AfterValidator(matching(_DISK_KEY, "a disk is scsi0, virtio1, efidisk0 ... of a VM, rootfs or mp0 ... of a container", longest=32)),
        Field(description="scsi0, mp0 ..."),
    ]
    target_storage: StorageId
    node: NodeName | None = None
    vm_type: Kind | None = None
    format: Literal["raw", "qcow2", "vmdk"] | None = None
    delete_source: Annotated[Flag, Field(description="false: keep it as unusedN")] = True


@tool(
    "proxmox_move_disk",
    "Move a disk of a VM (also while it runs) or of a stopped container to another storage.",
    title="Move a disk",
    group="guests",
    model=MoveDisk,
    risk=Risk.CHANGE,
    destructive=True,
    limit="guest",
)
async def move_disk(args: MoveDisk, call: Call) -> Plan:
    """POST .../qemu/{vmid}/move_disk {disk} or .../lxc/{vmid}/move_volume {volume}, with storage, delete, digest."""
    checks = Checks(call.inventory)
    guest = await subject(call.inventory, args.vmid, node=args.node, kind=args.vm_type)
    volume = next((volume for volume in guest_config.volumes(guest.config, guest.guest.kind) if volume.key == args.disk), None)
    await checks.unlocked(guest)
    await checks.privileges(
        Need(f"/vms/{guest.vmid}", ("VM.Config.Disk",)), Need(f"/storage/{args.target_storage}", ("Datastore.AllocateSpace",))
    )
    content = storage_fit.CONTENT[guest.guest.kind]
    gib = volume.size / GIB if volume is not None and volume.size else None
    ref, notes = await storage_fit.suits(checks, args.target_storage, guest.node, content, gib=gib)
    if volume is None:
        there = ", ".join(map(str, guest.disks)) or "none"
        checks.refuse(f"{guest.name} has no disk {args.disk}; it has: {there}")
    else:
        await _may_move(args, checks, guest, volume, ref)
        notes += _format_notes(args, guest, volume, ref)
    params: dict[str, Any] = {
        "disk" if guest.is_vm else "volume": args.disk,
        "storage": args.target_storage,
        "format": args.format,
        "delete": 1 if args.delete_source else None,
        "digest": guest.digest or None,
    }
    came = volume.source if volume is not None else "?"
    left = "the old copy is deleted" if args.delete_source else "the old copy stays as unusedN"
    summary = f"move {args.disk} ({came}) of {guest.name} on {guest.node} to storage {args.target_storage}; {left}"

    async def conclude(results: Sequence[StepResult]) -> Answer:
        now = await reread(call.api, guest)
        found = {volume.key: volume for volume in guest_config.volumes(now.config, guest.guest.kind)}
        kept = [str(other) for key, other in found.items() if key.startswith("unused") and other.source == came]
        at = found[args.disk].source if args.disk in found else None
        told = {args.disk: at}
        if at not in (came, None):
            told["old copy"] = ", ".join(kept) or ("deleted" if args.delete_source else None)
        odd = ("the old copy could not be deleted and was kept",) if kept and args.delete_source else ()
        return conclusions.done(summary, results, told, notes=odd)

    from_storage = volume.storage if volume is not None else None
    return Plan(
        summary,
        (ApiCall("POST", guest.path("move_disk" if guest.is_vm else "move_volume"), params),),
        Risk.CHANGE,
        (*guest.targets, f"storage {args.target_storage}", *((f"storage {from_storage}",) if from_storage else ())),
        asks=args.delete_source,
        undo=f"proxmox_move_disk vmid={guest.vmid} disk={args.disk} target_storage={from_storage}" if from_storage else "",
        fingerprint=f"{guest.digest}/{guest.state.get('status')}",
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=notes,
        conclude=conclude,
        after_failure=conclude,
    )


async def _may_move(args: MoveDisk, checks: Checks, guest: Subject, volume: Volume, ref: StorageRef | None) -> None:
    checks.refuse(f"{volume} is a CD-ROM drive, and those are not moved", when=volume.is_drive and not volume.is_cloud_init)
    checks.refuse(f"{volume} is a directory or device of the host, and those are not moved", when=volume.is_path)
    same = volume.storage == args.target_storage and (not guest.is_vm or args.format in (None, volume.format))
    checks.refuse(f"{volume} is on storage {args.target_storage} already", when=same)
    stop = f"proxmox_vm_power vmid={guest.vmid} action=shutdown"
    if guest.running and not guest.is_vm:
        checks.refuse(f"{guest.name} is running: a container's volume is moved while it is stopped ({stop})")
    if guest.running and args.disk == "tpmstate0":
        checks.refuse(f"{guest.name} is running: its TPM state is moved while it is stopped ({stop})")
    if not guest.is_vm and args.disk.startswith("unused"):
        checks.refuse(f"{volume} is not in use: of a container only what is in use is moved")
    checks.refuse("format is for the disks of VMs", when=args.format is not None and not guest.is_vm)
    if guest.is_vm and ref is not None and args.format is not None and args.format not in storage_fit.formats(ref):
        checks.refuse(f"storage {ref.name} of type {ref.type} has no {args.format}, only {', '.join(storage_fit.formats(ref))}")
    if args.delete_source and (names := await _snapshots_with(checks, guest, volume)):
        checks.refuse(
            f"{volume} is part of {', '.join(names)}: it cannot be moved and deleted while snapshots need it; "
            "delete_source=false keeps the old copy, or delete the snapshots first"
        )


async def _snapshots_with(checks: Checks, guest: Subject, volume: Volume) -> list[str]:
    """The snapshots that hold this very volume."""
    names = []
    for snapshot in await guest_snapshots.listed(checks.inventory.api, guest.path()):
        read = read_object(checks.inventory.api, *guest.path("config"), params={"snapshot": snapshot.name})
        config = await checks.attempt(read, f"the disks in snapshot {snapshot.name}")
        if config is not None and any(saved.source == volume.source for saved in guest_config.volumes(config, guest.guest.kind)):
            names.append(f"snapshot {snapshot.name}")
    return names


def _format_notes(args: MoveDisk, guest: Subject, volume: Volume, ref: StorageRef | None) -> tuple[str, ...]:
    if (
        not guest.is_vm
        or volume.is_drive
        or ref is None
        or args.format is not None
        or volume.format != "raw"
        or storage_fit.formats(ref)[0] != "qcow2"
    ):
        return ()
    return (f"it arrives as raw on {ref.name}, where only qcow2 takes snapshots: format=qcow2 converts it",)
