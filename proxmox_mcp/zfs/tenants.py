"""Guests and storages on datasets, as the cluster knows them: disks by the storage configuration, directories and devices by their path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxmox_mcp import limits
from proxmox_mcp.app import Call
from proxmox_mcp.changes import guest_config
from proxmox_mcp.changes.guest_config import Volume
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.inventory import Guest, Inventory, StorageRef, called, gather
from proxmox_mcp.zfs import names

PATIENCE = 25.0  # seconds for all configurations together


@dataclass(frozen=True, slots=True)
class Tenants:
    """`running` counts every guest that is not known to be stopped. `doubts`: what could not be asked."""

    running: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()
    vmids: tuple[int, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """ "CT 205 (mail): rootfs (...); storage tank"; "" when nobody is known."""
        return "; ".join((*self.running, *self.stopped, *(f"storage {name}" for name in self.storages)))


@dataclass
class _Seen:
    running: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    vmids: list[int] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


async def of(call: Call, node: str, mountpoints: Mapping[str, str | None]) -> Tenants:
    """Who is on these datasets of a node (dataset -> where it is mounted, if it is), by the API; what it does not tell is a doubt."""
    whose = {vmid for vmid in map(names.guest_of, mountpoints) if vmid is not None}
    try:
        inventory = call.inventory
        refs = [ref for ref in await inventory.storages() if ref.nodes is None or node in ref.nodes]
        everyone = await inventory.guests()
    except ProxmoxMcpError as error:
        doubt = f"which guests and storages use it: the API could not be asked ({error.what})"
        return Tenants(vmids=tuple(sorted(whose)), doubts=(doubt,))
    seen = _Seen(doubts=[*inventory.notes, *await _unseen(inventory)])
    if limits.limits_reads(call.settings):
        seen.doubts.append(f"whether guests other than {limits.words(call.settings)} use it: this server does not look at them")
    storages = [ref for ref in refs if _stands_on(ref, mountpoints)]
    here = [guest for guest in everyone if guest.node == node]
    for guest, config in (await gather({guest: _config(inventory, guest) for guest in here}, total=PATIENCE)).items():
        if isinstance(config, ProxmoxMcpError) or not isinstance(config, Mapping):
            seen.doubts.append(f"whether guest {guest.vmid} has disks there: its configuration could not be read")
            continue
        mine = [str(volume) for volume in guest_config.volumes(config, guest.kind) if _on(volume, refs, storages, mountpoints)]
        if mine:
            (seen.stopped if guest.status == "stopped" else seen.running).append(f"{_name(guest)}: {', '.join(mine)}")
            seen.vmids.append(guest.vmid)
    return Tenants(
        tuple(seen.running),
        tuple(seen.stopped),
        tuple(ref.name for ref in storages),
        tuple(sorted({*seen.vmids, *whose})),
        tuple(seen.doubts),
    )


async def _unseen(inventory: Inventory) -> list[str]:
    """What a narrow token may not be shown."""
    rights = await inventory.permissions()
    narrow = [privilege for path, privilege in (("/vms", "VM.Audit"), ("/storage", "Datastore.Audit")) if not rights.has(path, privilege)]
    return [f"whether guests or storages use it that this token does not see (it lacks {' and '.join(narrow)})"] if narrow else []


def dataset_of(volume: Volume, refs: Sequence[StorageRef]) -> str | None:
    """The dataset of a guest's disk on a zfspool storage: pool/name; of a linked clone the part behind the base."""
    ref = next((ref for ref in refs if ref.name == volume.storage and ref.type == "zfspool"), None)
    return f"{ref.row.get('pool')}/{volume.source.partition(':')[2].rpartition('/')[2]}" if ref is not None else None


def _config(inventory: Inventory, guest: Guest) -> Callable[[], Awaitable[Any]]:
    return lambda: inventory.api.get("nodes", guest.node, guest.kind, guest.vmid, "config")


def _on(volume: Volume, refs: Sequence[StorageRef], storages: Sequence[StorageRef], mountpoints: Mapping[str, str | None]) -> bool:
    if volume.is_path:
        device = volume.source.removeprefix("/dev/zvol/")
        return device in mountpoints or _below(volume.source, mountpoints)
    place = dataset_of(volume, refs)
    return place in mountpoints if place is not None else any(ref.name == volume.storage for ref in storages)


def _stands_on(ref: StorageRef, mountpoints: Mapping[str, str | None]) -> bool:
    if ref.type == "zfspool":
        return str(ref.row.get("pool") or "") in mountpoints
    return ref.type == "dir" and _below(str(ref.row.get("path") or ""), mountpoints)


def _below(path: str, mountpoints: Mapping[str, str | None]) -> bool:
    return any(place is not None and place != "/" and names.within(path.rstrip("/"), place) for place in mountpoints.values())


def _name(guest: Guest) -> str:
    return f"{'VM' if guest.kind == 'qemu' else 'CT'} {guest.vmid}" + called(guest.name)
