"""Why a snapshot stays though its name matches: a hold, a clone, a running backup, a snapshot that Proxmox itself keeps for a guest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proxmox_mcp.app import Call
from proxmox_mcp.changes import guest_snapshots
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.inventory import Guest, Inventory, gather
from proxmox_mcp.zfs import backups, names, snapshots
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Staying:
    """Reasons by the snapshot's name; `doubts`: what could not be asked."""

    reasons: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


async def of(zfs: Zfs, found: Sequence[Snapshot], glob: str) -> Staying:
    """The reasons of these snapshots. Replication's own go only when the glob asks for them by name."""
    scratch = [snapshot for snapshot in found if snapshot.part == backups.SCRATCH]
    running = await backups.under_way(zfs.call, zfs.node, (vmid for s in scratch if (vmid := names.guest_of(s.name)) is not None))
    tags = await snapshots.held_by(zfs, found)
    kept, doubts = await _kept_by_proxmox(zfs.call, zfs.node, found)
    reasons: dict[str, str] = {}
    for snapshot in found:
        why = snapshots.cannot_go(snapshot) or kept.get(snapshot.name, "")
        if snapshot.name in tags:
            why = f"it is held by {tags[snapshot.name]}"
        if not why and snapshot.part == backups.SCRATCH:
            why = running.must_stay(names.guest_of(snapshot.name))
        if not why and snapshot.part.startswith(snapshots.REPLICATION) and not glob.startswith(snapshots.REPLICATION):
            why = "storage replication stands on it"
        if why:
            reasons[snapshot.name] = why
    return Staying(reasons, tuple(doubts))


async def _kept_by_proxmox(call: Call, node: str, found: Sequence[Snapshot]) -> tuple[dict[str, str], list[str]]:
    """Snapshots that a guest's own list names (GET .../snapshot): destroyed here, that list would lie."""
    mine = {s.name: vmid for s in found if (vmid := names.guest_of(s.name)) is not None and _could_be_a_guests(s.part)}
    if not mine:
        return {}, []
    try:
        inventory = call.inventory
        pools = {str(ref.row.get("pool")) for ref in await inventory.storages() if ref.type == "zfspool"}
        guests = {guest.vmid: guest for guest in await inventory.guests()}
    except ProxmoxMcpError as error:
        return {}, [f"whether some belong to snapshots that Proxmox keeps for guests: the API could not be asked ({error.what})"]
    mine = {name: vmid for name, vmid in mine.items() if names.dataset_of(name).rpartition("/")[0] in pools}
    wanted = sorted(set(mine.values()))
    lists = await gather({vmid: _listed(inventory, guests[vmid]) for vmid in wanted if vmid in guests})
    doubts = [
        f"which of guest {vmid}'s snapshots Proxmox keeps itself: {'not visible to this token' if vmid not in guests else 'not readable'}"
        for vmid in wanted
        if vmid not in guests or isinstance(lists.get(vmid), ProxmoxMcpError)
    ]
    kept: dict[str, str] = {}
    for name, vmid in mine.items():
        known, part = lists.get(vmid), name.partition("@")[2]
        if isinstance(known, list) and any(snapshot.name == part for snapshot in known):
            kept[name] = f"Proxmox keeps it as a snapshot of guest {vmid}: proxmox_snapshot action=delete removes all of it"
    return kept, doubts


def _could_be_a_guests(part: str) -> bool:
    try:
        guest_snapshots.check_name(part)
    except ValueError:
        return False
    return part != backups.SCRATCH


def _listed(inventory: Inventory, guest: Guest) -> Callable[[], Awaitable[list[guest_snapshots.Snapshot]]]:
    return lambda: guest_snapshots.listed(inventory.api, ("nodes", guest.node, guest.kind, guest.vmid))
