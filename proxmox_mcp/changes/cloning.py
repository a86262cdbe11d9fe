"""A guest about to be copied: linked or full, from which state, to which node, and what of it stands against that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxmox_mcp.changes import guest_config, guest_snapshots, storage_fit
from proxmox_mcp.changes.disk_size import GIB
from proxmox_mcp.changes.guest_config import Volume
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.changes.subject import Subject
from proxmox_mcp.inventory import flag, read_object
from proxmox_mcp.privileges import Need


@dataclass(frozen=True, slots=True)
class Source:
    """What is copied: the guest as it is, or as it was at a snapshot."""

    guest: Subject
    snapname: str | None
    config: dict[str, Any]
    fingerprint: str

    @property
    def disks(self) -> list[Volume]:
        """What is copied: no unused disks, and not the RAM that a snapshot has saved."""
        return [volume for volume in guest_config.disks(self.config, self.guest.guest.kind) if _is_copied(volume)]

    @property
    def drives(self) -> list[Volume]:
        """CD-ROM and cloud-init drives."""
        return [volume for volume in guest_config.volumes(self.config, self.guest.guest.kind) if volume.is_drive]


def _is_copied(volume: Volume) -> bool:
    return volume.key != "vmstate" and not volume.key.startswith("unused")


async def source(checks: Checks, guest: Subject, snapname: str | None) -> Source:
    """The state to copy; a snapshot that is not there is an obstacle."""
    if snapname is None:
        return Source(guest, None, dict(guest.config), guest.digest)
    known = await guest_snapshots.listed(checks.inventory.api, guest.path())
    found = next((snapshot for snapshot in known if snapshot.name == snapname), None)
    prints = f"{guest.digest}/{guest_snapshots.fingerprint(known)}"
    if found is None:
        checks.refuse(f"{guest.name} has no snapshot {snapname}; it has: {', '.join(other.name for other in known) or 'none'}")
        return Source(guest, snapname, dict(guest.config), prints)
    checks.refuse(f"snapshot {snapname} is unfinished or failed (state {found.state})", when=bool(found.state))
    read = read_object(checks.inventory.api, *guest.path("config"), params={"snapshot": snapname})
    config = await checks.attempt(read, f"the disks in snapshot {snapname}")
    return Source(guest, snapname, dict(guest.config) if config is None else config, prints)


def is_full(guest: Subject, wish: bool | None, storage: str | None) -> bool:
    """Without a wish: linked for a template that stays on its storage, full for everything else."""
    return wish if wish is not None else not guest.template or storage is not None


async def possible(checks: Checks, wanted: Source, *, full: bool, target: str, storage: str | None) -> tuple[str, ...]:
    """Everything that speaks against this copy becomes an obstacle. Notes."""
    guest = wanted.guest
    if not full and not guest.template and wanted.snapname is None:
        checks.refuse(f"a linked clone needs a template or a snapshot, and {guest.name} is no template: leave out full, or name snapname")
    await _feature(checks, wanted, full=full)
    running_container = not guest.is_vm and guest.running and full and wanted.snapname is None
    checks.refuse(f"{guest.name} is running: a container is copied while stopped, or from a snapshot (snapname)", when=running_container)
    running_tpm = full and guest.is_vm and guest.running and wanted.snapname is None and "tpmstate0" in wanted.config
    checks.refuse(f"{guest.name} is running: its TPM state is copied while it is stopped, or from a snapshot (snapname)", when=running_tpm)
    for mount in guest_config.bind_mounts(wanted.config, guest.guest.kind):
        checks.refuse(f"{mount} is a directory or device of the host: a container with one cannot be cloned", when=not guest.is_vm)
    if target != guest.node:
        await _reachable(checks, wanted, target, storage)
    if not full or storage is None:
        return ()
    total = sum(volume.size or 0 for volume in wanted.disks)
    return (await storage_fit.suits(checks, storage, target, storage_fit.CONTENT[guest.guest.kind], gib=total / GIB or None))[1]


async def _feature(checks: Checks, wanted: Source, *, full: bool) -> None:
    guest = wanted.guest
    params = {"feature": "copy" if full else "clone", "snapname": wanted.snapname}
    if not full and not guest.template and wanted.snapname is None:
        return
    read = read_object(checks.inventory.api, *guest.path("feature"), params=params)
    answer = await checks.attempt(read, "whether its disks can be cloned")
    if answer is None or flag(answer.get("hasFeature")):
        return
    disks = ", ".join(map(str, wanted.disks)) or "none"
    of = f"snapshot {wanted.snapname} of {guest.name}" if wanted.snapname else guest.name
    how, instead = ("full", "; its present state may be" if wanted.snapname else "") if full else ("linked", "; full=true copies them")
    words = f"the storage of its disks does not do a {how} clone of {of} ({disks}){instead}"
    known = {ref.name: ref for ref in await checks.inventory.storages()}
    able = [
        storage_fit.takes_clones(known[volume.storage], volume, full=full, snapshot=wanted.snapname is not None)
        for volume in wanted.disks
        if volume.storage in known
    ]
    if len(able) == len(wanted.disks) and all(able):
        checks.doubt(f"why Proxmox says that {words}: nothing in its configuration speaks against it")
    else:
        checks.refuse(words)


async def _reachable(checks: Checks, wanted: Source, target: str, storage: str | None) -> None:
    """Another node gets a copy through shared storage alone, and the ISO image or cloud-init drive of a VM is no exception."""
    known = {ref.name: ref for ref in await checks.inventory.storages()}
    for volume in (*wanted.disks, *(drive for drive in wanted.drives if drive.storage is not None)):
        ref = known.get(volume.storage or "")
        if ref is None:
            checks.doubt(f"whether {target} has storage {volume.storage} of {volume.key}: it is not visible")
        elif not ref.shared or not storage_fit.serves(ref, target):
            checks.refuse(f"{volume} is on storage {ref.name}, which {target} does not share: clone it on {wanted.guest.node}")
    ref = known.get(storage or "")
    checks.refuse(f"storage {storage} is not shared with {target}", when=ref is not None and not ref.shared)


async def privileges(checks: Checks, wanted: Source, newid: int, target: str, storage: str | None) -> None:
    """What the token needs for this copy."""
    written = {storage} if storage is not None else {volume.storage for volume in wanted.disks if volume.storage}
    await checks.privileges(
        Need(f"/vms/{wanted.guest.vmid}", ("VM.Clone",)),
        Need(f"/vms/{newid}", ("VM.Allocate",)),
        *(Need(f"/storage/{name}", ("Datastore.AllocateSpace",)) for name in sorted(written)),
    )
    if any(drive.source == "cdrom" for drive in wanted.drives):
        await checks.privileges(Need("/", ("Sys.Console",)))
    for card in guest_config.cards(wanted.config):
        await checks.bridge(target, card.bridge, tag=card.tag)
