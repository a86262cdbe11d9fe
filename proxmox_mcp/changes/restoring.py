"""A backup about to be restored: what is in it, where it can go, and what it would overwrite."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from proxmox_mcp.changes import guest_config, guest_snapshots, storage_fit
from proxmox_mcp.changes.backup_archive import Archive
from proxmox_mcp.changes.disk_size import GIB
from proxmox_mcp.changes.guest_config import Volume
from proxmox_mcp.changes.guest_snapshots import Snapshot
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.changes.subject import Subject, subject
from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.inventory import GuestKind, flag
from proxmox_mcp.privileges import Need
from proxmox_mcp.storages import volumes

_OFF = ("0", "no", "off", "false")


@dataclass(frozen=True, slots=True)
class Content:
    """What the archive's own configuration says; `config` is empty when it could not be read."""

    kind: GuestKind
    config: Mapping[str, str]
    as_tar: bool = False  # of a VM: the old form, before whose restore all is destroyed

    @property
    def known(self) -> bool:
        return bool(self.config)

    @property
    def disks(self) -> list[Volume]:
        return [volume for volume in guest_config.disks(self.config, self.kind) if not volume.key.startswith("unused")]

    def overwrites(self, volume: Volume) -> bool:
        """Whether a volume of the guest that is overwritten goes: for certain it stays only where a VM's backup is without it."""
        if self.kind == "lxc" or not self.known or self.as_tar:
            return True
        there = (disk for disk in guest_config.volumes(self.config, self.kind) if disk.key == volume.key)
        # a cloud-init drive is made anew in its place
        return any(disk.is_cloud_init or not (disk.is_drive or disk.options.get("backup") in _OFF) for disk in there)

    @property
    def unprivileged(self) -> bool:
        return flag(self.config.get("unprivileged"))

    @property
    def name(self) -> str:
        return self.config.get("name") or self.config.get("hostname") or ""


@dataclass(frozen=True, slots=True)
class Overwritten:
    """The guest that has the wanted id, and all that goes with it."""

    guest: Subject
    snapshots: tuple[Snapshot, ...]

    def losses(self, found: Content) -> str:
        """What goes with the guest. Of a VM the disks that are not in the backup stay, as unused ones; a container loses all."""
        kept = [volume for volume in self.guest.disks if not found.overwrites(volume)]
        lost = ", ".join(str(volume) for volume in self.guest.disks if volume not in kept) or "none"
        snapshots = ", ".join(snapshot.name for snapshot in self.snapshots) or "none"
        stays = f"; not in the backup, so kept as unused disks: {', '.join(map(str, kept))}" if kept else ""
        return f"its disks ({lost}), its snapshots ({snapshots}) and its configuration are destroyed{stays}"

    @property
    def fingerprint(self) -> str:
        return f"{self.guest.digest}/{self.guest.state.get('status')}/{guest_snapshots.fingerprint(self.snapshots)}"


async def content(checks: Checks, archive: Archive, node: str, wanted: GuestKind | None) -> Content:
    """Reads the configuration inside the archive (GET /nodes/{node}/vzdump/extractconfig). A missing archive is an obstacle."""
    if wanted is not None and archive.kind is not None and wanted != archive.kind:
        raise InvalidArgument("vm_type", f"{archive.volid} is a backup of type {archive.kind}, not {wanted}")
    text = await checks.attempt(
        checks.inventory.api.get("nodes", node, "vzdump", "extractconfig", params={"volume": archive.volid}),
        f"the configuration inside {archive.volid}",
    )
    if text is None:
        await _is_there(checks, archive, node)
    config = guest_config.archived(text) if isinstance(text, str) else {}
    kind = archive.kind or wanted or ("lxc" if "rootfs" in config else "qemu" if config else None)
    if kind is None:
        raise InvalidArgument("vm_type", f"the name of {archive.volid} does not say whether it is of a VM (qemu) or a container (lxc)")
    return Content(kind, config, re.search(r"\.(tar(\.|$)|tgz$)", archive.volid) is not None)


async def _is_there(checks: Checks, archive: Archive, node: str) -> None:
    """An archive that cannot be read may be missing: certain only where the token would see it."""
    found = await checks.attempt(volumes.find(checks.inventory, "backup", storage=archive.storage, node=node), "the list of backups")
    if found is None or any(row.get("volid") == archive.volid for row in found.rows()):
        return
    unseen = (await checks.inventory.permissions()).explains_no_backups(archive.storage, vmid=archive.vmid)
    checks.refuse(f"there is no {archive.volid} on {node}; proxmox_list_backups shows what there is", when=not unseen)
    checks.doubt(f"whether {archive.volid} exists: {unseen}", when=bool(unseen))


async def overwritten(checks: Checks, vmid: int, node: str | None, *, force: bool) -> Overwritten | None:
    """The guest that stands in the place of the restored one; what speaks against overwriting it is an obstacle."""
    if await checks.inventory.is_free(vmid):
        return None
    guest = await subject(checks.inventory, vmid, node=node)
    known = tuple(await guest_snapshots.listed(checks.inventory.api, guest.path()))
    free = await checks.inventory.next_free_id()
    checks.refuse(
        f"{guest.name} exists on {guest.node}: restoring over it destroys it and needs force=true (and i_understand_data_loss=true); "
        f"the next free id is {free}",
        when=not force,
    )
    stop = f"proxmox_vm_power vmid={vmid} action=shutdown"
    checks.refuse(f"{guest.name} is running: stop it first ({stop})", when=guest.state.get("status") != "stopped")
    checks.refuse(f"{guest.name} is protected (protection=1)", when=guest.protected)
    await checks.unlocked(guest)
    return Overwritten(guest, known)


async def targets(checks: Checks, found: Content, node: str, storage: str | None) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Where the disks go: (the storage to send, all storages that are written to, notes). A container always needs one storage."""
    wanted = storage_fit.CONTENT[found.kind]
    homes = {volume.storage: 0 for volume in found.disks if volume.storage}
    sizes = {volume.key: volume.size or 0 for volume in found.disks}
    if storage is None and found.kind == "lxc":
        root = next((volume.storage for volume in found.disks if volume.key == "rootfs"), None)
        if root is None:
            raise InvalidArgument("storage", "a container's backup needs a storage to go to, and where it came from is not known")
        storage = root
    if storage is not None:
        _, notes = await storage_fit.suits(checks, storage, node, wanted, gib=sum(sizes.values()) / GIB or None)
        return storage, (storage,), notes
    checks.doubt("where its disks came from: each returns to its own storage", when=not homes)
    remarks: list[str] = []
    for home in homes:
        size = sum(sizes[volume.key] for volume in found.disks if volume.storage == home)
        remarks += (await storage_fit.suits(checks, str(home), node, wanted, gib=size / GIB or None))[1]
    return None, tuple(map(str, homes)), tuple(remarks)


async def privileges(checks: Checks, archive: Archive, vmid: int, written: tuple[str, ...], found: Content, *, overwrite: bool) -> None:
    """What the token needs to read the archive, to write the disks and to make or overwrite the guest."""
    guest, place = f"/vms/{vmid}", f"/storage/{archive.storage}"
    held = await checks.inventory.permissions()
    # whoever may allocate the storage, or restores a backup over the very guest it is of, may read it anyway
    if held.has(place, "Datastore.Allocate") is False and archive.vmid != vmid:
        # a backup of nobody is read by whoever may allocate the storage, and by nobody else
        space = Need(place, ("Datastore.Allocate" if archive.vmid is None else "Datastore.AllocateSpace",))
        await checks.privileges(space)
        if archive.vmid is not None:
            await checks.privileges(Need(f"/vms/{archive.vmid}", ("VM.Backup",)))
    await checks.privileges(Need(guest, ("VM.Backup" if overwrite else "VM.Allocate",)))
    await checks.privileges(*(Need(f"/storage/{name}", ("Datastore.AllocateSpace",)) for name in written))
    if found.kind == "lxc" and found.known and not found.unprivileged:
        await checks.privileges_since((9, 0), Need("/", ("Sys.Modify",)))
    for card in guest_config.cards(found.config):
        path = f"/sdn/zones/localnetwork/{card.bridge}"
        checks.doubt(f"SDN.Use on {path}: the token lacks it, and a newer Proxmox asks for it", when=held.has(path, "SDN.Use") is False)
    for mount in guest_config.bind_mounts(found.config, found.kind):
        checks.refuse(f"{mount} in the backup is a directory or device of the host, which only root@pam may restore, not a token")
