"""Who lives on a storage, a ZFS pool or a volume group: the guests with volumes there, and what else would go with it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxmox_mcp.changes import guest_config
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.inventory import Guest, Inventory, StorageRef, called, gather, number, read_rows

PATIENCE = 25.0  # seconds for all guests' configurations together
MOST = 20  # guests that are named one by one


@dataclass(frozen=True, slots=True)
class Tenants:
    """`volumes` by guest id; `others` counts what belongs to no guest's disks: backups, iso, vztmpl ..."""

    storages: tuple[str, ...]
    volumes: Mapping[int, frozenset[str]] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)
    guests: Mapping[int, Guest] = field(default_factory=dict, compare=False)

    @property
    def running(self) -> list[str]:
        return [self._name(vmid) for vmid in sorted(self.volumes) if vmid in self.guests and self.guests[vmid].status != "stopped"]

    @property
    def words(self) -> str:
        """ "VM 101 (web): tank:vm-101-disk-0; 12 backup"; "" when nobody lives there."""
        named = [f"{self._name(vmid)}: {', '.join(sorted(self.volumes[vmid]))}" for vmid in sorted(self.volumes)]
        more = [f"and {len(named) - MOST} more guests"] if len(named) > MOST else []
        return "; ".join([*named[:MOST], *more, *(f"{count} {content}" for content, count in sorted(self.others.items()))])

    @property
    def fingerprint(self) -> str:
        """Another one when a volume came or went."""
        names = sorted(volid for volumes in self.volumes.values() for volid in volumes)
        return hashlib.sha256("\n".join([*names, *map(str, sorted(self.others.items()))]).encode()).hexdigest()[:16]

    def _name(self, vmid: int) -> str:
        guest = self.guests.get(vmid)
        if guest is None:
            return f"guest {vmid} (not visible or gone)"
        return f"{'VM' if guest.kind == 'qemu' else 'CT'} {vmid}" + called(guest.name)


def on_pool(refs: Iterable[StorageRef], pool: str, node: str) -> list[StorageRef]:
    """The storages that stand on a ZFS pool of this node: its own, and directories in its file systems."""
    return [
        ref
        for ref in refs
        if _on(ref, node)
        and (
            (ref.type == "zfspool" and _within(str(ref.row.get("pool") or ""), pool))
            or (ref.type == "dir" and _within(str(ref.row.get("path") or "").rstrip("/"), f"/{pool}"))
        )
    ]


def on_volume_group(refs: Iterable[StorageRef], group: str, node: str, *, thinpool: str | None = None) -> list[StorageRef]:
    """The storages in a volume group of this node, or in one thin pool of it."""
    found = [ref for ref in refs if ref.type in ("lvm", "lvmthin") and ref.row.get("vgname") == group and _on(ref, node)]
    return found if thinpool is None else [ref for ref in found if ref.row.get("thinpool") == thinpool]


def _on(ref: StorageRef, node: str) -> bool:
    return ref.nodes is None or node in ref.nodes


def _within(place: str, top: str) -> bool:
    return place == top or place.startswith(f"{top}/")


async def tenants(checks: Checks, refs: Sequence[StorageRef], node: str | None = None) -> Tenants:
    """Who lives on these storages of a node, or wherever they are: by what they hold; where that may not show all, by the guests' word."""
    inventory = checks.inventory
    rights = await inventory.permissions()
    everyone = {guest.vmid: guest for guest in await inventory.guests()}
    volumes: dict[int, set[str]] = {}
    others: Counter[str] = Counter()
    blind: list[StorageRef] = []
    for ref in refs:
        places = [node] if node is not None else await _places(inventory, ref)
        rows: list[Mapping[str, Any]] = []
        whole = bool(places) and rights.has(f"/storage/{ref.name}", "Datastore.Allocate") is True
        for place in places:
            read = read_rows(inventory.api, "nodes", place, "storage", ref.name, "content")
            found = await checks.attempt(read, f"what storage {ref.name} holds on {place}")
            rows += found or ()
            whole = whole and found is not None
        for row in rows:
            vmid = number(row.get("vmid"))
            if row.get("content") in ("images", "rootdir") and vmid is not None:
                volumes.setdefault(int(vmid), set()).add(str(row.get("volid")))
            else:
                others[str(row.get("content") or "other")] += 1
        if not whole:
            blind.append(ref)
    if blind:
        for vmid, names in (await _by_configuration(checks, blind, everyone.values(), node)).items():
            volumes.setdefault(vmid, set()).update(names)
        checks.doubt(f"whether storage {', '.join(ref.name for ref in blind)} holds more than this token sees")
    if inventory.api.limited_to:
        checks.doubt(f"whether guests other than {inventory.api.limited_to} have disks there: this server does not look at them")
    return Tenants(tuple(ref.name for ref in refs), {vmid: frozenset(found) for vmid, found in volumes.items()}, dict(others), everyone)


async def _places(inventory: Inventory, ref: StorageRef) -> list[str]:
    serving = await inventory.serving(ref)
    return serving[:1] if ref.shared else serving


async def _by_configuration(checks: Checks, refs: Sequence[StorageRef], guests: Iterable[Guest], node: str | None) -> dict[int, set[str]]:
    names = {ref.name for ref in refs}
    asked = [guest for guest in guests if node is None or guest.node == node or any(ref.shared for ref in refs)]

    def read(guest: Guest) -> Callable[[], Awaitable[Any]]:
        return lambda: checks.inventory.api.get("nodes", guest.node, guest.kind, guest.vmid, "config")

    found: dict[int, set[str]] = {}
    for guest, config in (await gather({guest: read(guest) for guest in asked}, total=PATIENCE)).items():
        if isinstance(config, ProxmoxMcpError) or not isinstance(config, Mapping):
            checks.doubt(f"whether guest {guest.vmid} has disks there: its configuration could not be read")
            continue
        mine = {volume.source for volume in guest_config.disks(config, guest.kind) if volume.storage in names}
        if mine:
            found[guest.vmid] = mine
    return found
