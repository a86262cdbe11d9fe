"""Snapshots made, rolled back and deleted: proxmox_snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Destroying, Flag, Kind, NodeName, Vmid, Waiting, plain_text
from proxmox_mcp.changes import conclusions, guest_config, guest_snapshots, storage_fit
from proxmox_mcp.changes.guest_snapshots import Snapshot
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.changes.subject import Subject, reread, subject
from proxmox_mcp.inventory import StorageRef, flag, read_object
from proxmox_mcp.plan import Answer, ApiCall, Conclude, Plan, Risk, StepResult
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool


class SnapshotManage(Destroying, Waiting):
    action: Literal["create", "rollback", "delete"]
    vmid: Vmid
    snapname: Annotated[str, AfterValidator(guest_snapshots.check_name)]
    node: NodeName | None = None
    vm_type: Kind | None = None
    description: Annotated[str, AfterValidator(plain_text(200))] | None = None
    vmstate: Annotated[Flag, Field(description="with RAM")] = False
    force: Annotated[Flag, Field(description="delete even if disks fail")] = False

    used_by: ClassVar = {"description": ("create",), "vmstate": ("create",), "force": ("delete",)}

    @model_validator(mode="after")
    def _no_reserved_name(self) -> Self:
        if self.action == "create" and self.vm_type is not None and (why := guest_snapshots.reserved(self.snapname, self.vm_type)):
            raise ValueError(why)
        return self


@tool(
    "proxmox_snapshot",
    "Create, roll back to or delete a snapshot of a VM or container.",
    title="Snapshots: create, roll back, delete",
    group="snapshots",
    model=SnapshotManage,
    risk=Risk.DATA_LOSS,
    destructive=True,
    limit="guest",
)
async def snapshot(args: SnapshotManage, call: Call) -> Answer | Plan:
    """POST .../snapshot, POST .../snapshot/{name}/rollback, DELETE .../snapshot/{name}.

    Proxmox checks nearly nothing of it before its task runs; so all of it is checked here.
    """
    checks = Checks(call.inventory)
    guest = await subject(call.inventory, args.vmid, node=args.node, kind=args.vm_type)
    known = await guest_snapshots.listed(call.api, guest.path())
    await checks.unlocked(guest)
    if args.action == "create":
        return await _create(args, call, checks, guest, known)
    wanted = next((snapshot for snapshot in known if snapshot.name == args.snapname), None)
    if wanted is None:
        names = ", ".join(snapshot.name for snapshot in known) or "none"
        checks.refuse(f"{guest.name} has no snapshot {args.snapname}; it has: {names}")
        wanted = Snapshot(args.snapname, None, None, False, "")
    if args.action == "rollback":
        return await _rollback(call, checks, guest, known, wanted)
    return await _delete(args, call, checks, guest, known, wanted)


async def _create(args: SnapshotManage, call: Call, checks: Checks, guest: Subject, known: Sequence[Snapshot]) -> Plan:
    kind = guest.guest.kind
    await checks.privileges(Need(f"/vms/{guest.vmid}", ("VM.Snapshot",)))
    if why := guest_snapshots.reserved(args.snapname, kind):
        checks.refuse(why)
    taken = next((snapshot for snapshot in known if snapshot.name == args.snapname), None)
    checks.refuse(f"{guest.name} has a snapshot {args.snapname} already", when=taken is not None)
    checks.refuse(f"{guest.name} is a template, and templates take no snapshots", when=guest.template)
    notes = []
    if args.vmstate:
        checks.refuse("vmstate is for VMs: a container has no RAM image", when=not guest.is_vm)
        passed = [key for key in guest.config if key.startswith("hostpci")]
        checks.refuse(f"the RAM cannot be saved with a passed-through PCI device ({', '.join(passed)})", when=bool(passed))
        if guest.is_vm and not guest.running:
            notes.append("the VM is stopped: there is no RAM to save")
    elif guest.is_vm and guest.running:
        agent = guest_config.properties(str(guest.config.get("agent", "")), "enabled").get("enabled") in ("1", "on", "yes", "true")
        quiet = "its file systems are frozen for a moment by the guest agent, when that answers" if agent else "as after a power cut"
        notes.append(f"the disks alone, without RAM: {quiet}")
    await _can_take_one(checks, guest)
    ram = " with its RAM" if args.vmstate and guest.is_vm and guest.running else ""
    summary = f"take snapshot {args.snapname} of {guest.name} on {guest.node}{ram}"
    params: dict[str, Any] = {
        "snapname": args.snapname,
        "description": args.description,
        "vmstate": 1 if args.vmstate and guest.is_vm else None,
    }
    return Plan(
        summary,
        (ApiCall("POST", guest.path("snapshot"), params),),
        Risk.CHANGE,
        guest.targets,
        undo=f"proxmox_snapshot action=delete vmid={guest.vmid} snapname={args.snapname}",
        fingerprint=guest_snapshots.fingerprint(known),
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=tuple(notes),
        conclude=_now_has(call, guest, summary),
        after_failure=_now_has(call, guest, summary),
    )


async def _can_take_one(checks: Checks, guest: Subject) -> None:
    """Whether all of the guest's volumes take snapshots, and if not, which do not and why."""
    feature = await checks.attempt(
        read_object(checks.inventory.api, *guest.path("feature"), params={"feature": "snapshot"}), "whether it can be snapshotted"
    )
    if feature is None or flag(feature.get("hasFeature")):
        return
    kind = guest.guest.kind
    storages = await _storages(checks)
    reasons = [f"{volume} is a directory or device of the host" for volume in guest_config.bind_mounts(guest.config, kind)]
    able: list[bool | None] = []
    for volume in guest.disks:
        ref = storages.get(volume.storage or "")
        if not volume.key.startswith("unused"):
            able.append(None if ref is None else storage_fit.takes_snapshots(ref, volume, kind))
            if ref is not None and able[-1] is False:
                reasons.append(f"{volume} is {volume.format} on storage {ref.name} of type {ref.type}, which takes no snapshots of it")
    instead = f"a backup can be made instead: proxmox_create_backup vmid={guest.vmid}"
    if not reasons and all(able):
        checks.doubt(f"why Proxmox says that {guest.name} cannot be snapshotted: nothing in its configuration speaks against it; {instead}")
        return
    checks.refuse(f"{guest.name} cannot be snapshotted: {'; '.join(reasons) or 'Proxmox does not say why'}; {instead}")


async def _storages(checks: Checks) -> dict[str, StorageRef]:
    return {ref.name: ref for ref in await checks.inventory.storages()}


async def _rollback(call: Call, checks: Checks, guest: Subject, known: Sequence[Snapshot], wanted: Snapshot) -> Plan:
    await checks.privileges(Need(f"/vms/{guest.vmid}", ("VM.Snapshot", "VM.Snapshot.Rollback")))
    checks.refuse(f"snapshot {wanted.name} is unfinished or failed (state {wanted.state})", when=bool(wanted.state))
    newer = guest_snapshots.newer_than(wanted, known) if wanted in known else []
    hints = await _past_newer(call, checks, guest, wanted, newer) if newer else ()
    since = f" of {text.when(wanted.taken)}" if wanted.taken is not None else ""
    after = "and it goes on from the saved RAM" if wanted.with_ram else "and it is stopped" if guest.running else ""
    summary = (
        f"roll {guest.name} on {guest.node} back to snapshot {wanted.name}{since}: "
        f"everything it has written since then is lost{', ' if after else ''}{after}"
    )
    return Plan(
        summary,
        (ApiCall("POST", guest.path("snapshot", wanted.name, "rollback")),),
        Risk.CHANGE,
        guest.targets,
        asks=True,
        fingerprint=f"{guest_snapshots.fingerprint(known)}/{guest.state.get('status')}",
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        otherwise=hints,
        conclude=_now_has(call, guest, summary),
        after_failure=_now_has(call, guest, summary),
    )


async def _past_newer(call: Call, checks: Checks, guest: Subject, wanted: Snapshot, newer: Sequence[Snapshot]) -> tuple[str, ...]:
    """Where a storage rolls back to its newest snapshot alone, the newer ones are an obstacle; nothing is ever deleted unasked."""
    deletes = "; ".join(f"proxmox_snapshot action=delete vmid={guest.vmid} snapname={snapshot.name}" for snapshot in reversed(newer))
    names = ", ".join(snapshot.name for snapshot in newer)
    read = read_object(call.api, *guest.path("config"), params={"snapshot": wanted.name})
    config = await checks.attempt(read, f"the disks in snapshot {wanted.name}")
    saved = guest_config.disks(guest.config if config is None else config, guest.guest.kind)
    saved = [volume for volume in saved if volume.key != "vmstate"]  # the RAM is read back, not rolled back
    storages = await _storages(checks)
    strict = [volume for volume in saved if volume.storage in storages and storage_fit.only_to_newest(storages[volume.storage])]
    if strict:
        on = ", ".join(f"{volume.key} on {volume.storage}" for volume in strict)
        checks.refuse(
            f"newer snapshots stand in the way ({names}): {on} can be rolled back to the newest one alone. "
            f"Deleting them loses them; each is a call of its own: {deletes}"
        )
        return ()
    unseen = sorted({volume.storage for volume in saved if volume.storage and volume.storage not in storages})
    checks.doubt(f"whether storage {', '.join(unseen)} can roll back past the newer snapshots {names}: not visible", when=bool(unseen))
    return (f"newer than it: {names}; a storage that cannot roll back past them needs them deleted first, a call each: {deletes}",)


async def _delete(args: SnapshotManage, call: Call, checks: Checks, guest: Subject, known: Sequence[Snapshot], wanted: Snapshot) -> Plan:
    await checks.privileges(Need(f"/vms/{guest.vmid}", ("VM.Snapshot",)))
    taken = f" of {text.when(wanted.taken)}" if wanted.taken is not None else ""
    summary = f"delete snapshot {wanted.name}{taken} of {guest.name} on {guest.node}: that state cannot be returned to any more"
    notes = ("force: its entry is dropped even where a disk's snapshot cannot be removed, which then stays behind unseen",)
    return Plan(
        summary,
        (ApiCall("DELETE", guest.path("snapshot", wanted.name), {"force": 1 if args.force else None}),),
        Risk.DATA_LOSS,
        guest.targets,
        fingerprint=guest_snapshots.fingerprint(known),
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=notes if args.force else (),
        conclude=_now_has(call, guest, summary),
        after_failure=_now_has(call, guest, summary),
    )


def _now_has(call: Call, guest: Subject, summary: str) -> Conclude:
    async def conclude(results: Sequence[StepResult]) -> Answer:
        left = await guest_snapshots.listed(call.api, guest.path())
        now = (await reread(call.api, guest)).state
        names = ", ".join(f"{snapshot.name}{' (unfinished)' if snapshot.state else ''}" for snapshot in left) or "none"
        return conclusions.done(summary, results, {"snapshots": names, "status": now.get("status")})

    return conclude
