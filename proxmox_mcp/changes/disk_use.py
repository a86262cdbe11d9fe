"""What a disk of a node is used for, and by whom: nobody takes or empties a disk that somebody else needs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.errors import NotFound
from proxmox_mcp.inventory import Reader, flag, gather, number, read_object, read_rows, rows_of
from proxmox_mcp.storages import disks, zpools


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk or partition as GET /nodes/{node}/disks/list has it; `size` in bytes, "" is unknown."""

    path: str  # /dev/sda
    by_id: str  # its name below /dev/disk/by-id, which a reboot does not change
    parent: str  # the disk of a partition
    serial: str
    wwn: str
    model: str
    size: int
    used: str  # "" when free; LVM, ZFS, partitions, mounted, ext4 ...
    mounted: bool
    ceph: tuple[str, ...] = ()  # what Ceph has on it: "OSD 3", "DB", "WAL", "journal"
    partitions: tuple[Disk, ...] = ()

    def __str__(self) -> str:
        known = ", ".join(filter(None, (self.model, f"serial {self.serial}" if self.serial else "", text.size(self.size))))
        return f"{self.path} ({known})"

    @property
    def fingerprint(self) -> str:
        parts = ",".join(f"{part.path}:{part.used}" for part in self.partitions)
        return f"{self.path}|{self.serial}|{self.wwn}|{self.size}|{self.used}|{parts}"


async def listed(api: Reader, node: str) -> list[Disk]:
    """All disks of a node with their partitions."""
    known = [_disk(row) for row in await disks.rows(api, node, partitions=True, smart=False) if _is_device(row)]
    return [replace(disk, partitions=tuple(part for part in known if part.parent == disk.path)) for disk in known if not disk.parent]


async def find(api: Reader, node: str, name: str) -> Disk:
    """The disk or partition of this name (sda, /dev/sda, /dev/disk/by-id/...). Raises NotFound with those there are."""
    path = await disks.device(api, node, name)
    known = await listed(api, node)
    found = next((disk for whole in known for disk in (whole, *whole.partitions) if disk.path == path), None)
    if found is None:
        raise NotFound(f"node {node} has no disk {path}; there are: {', '.join(map(str, known)) or 'none are visible'}", status=0)
    return found


# they become words of commands on the node: what is no path is none
_PATH = re.compile(r"(?!.*\.\.)/[A-Za-z0-9][A-Za-z0-9/_.:+=@%~#-]*", re.ASCII)


def _is_device(row: Mapping[str, Any]) -> bool:
    path = str(row.get("devpath") or "")
    return path.startswith("/dev/") and _PATH.fullmatch(path) is not None


def _disk(row: Mapping[str, Any]) -> Disk:
    def known(name: str) -> str:
        value = text.clean(str(row.get(name) or "").strip(), 120)
        return "" if value == "unknown" else value

    by_id = str(row.get("by_id_link") or "")
    return Disk(
        path=str(row["devpath"]),
        by_id=by_id if _PATH.fullmatch(by_id) else "",
        parent=str(row.get("parent") or ""),
        serial=known("serial"),
        wwn=known("wwn"),
        model=known("model"),
        size=int(number(row.get("size")) or 0),
        used=known("used"),
        mounted=flag(row.get("mounted")),
        ceph=_ceph(row),
    )


def _ceph(row: Mapping[str, Any]) -> tuple[str, ...]:
    """`osdid` names one OSD at most, `osdid-list` all of them; a disk can also hold the journals and databases of OSDs elsewhere."""
    listed = row.get("osdid-list")
    ids = {number(one) for one in (row.get("osdid"), *(listed if isinstance(listed, list) else ()))}
    osds = sorted(int(one) for one in ids if one is not None and one >= 0)
    parts = {"journals": "journal", "db": "DB", "wal": "WAL"}
    return (*(f"OSD {one}" for one in osds), *(word for name, word in parts.items() if (number(row.get(name)) or 0) > 0))


async def claims(checks: Checks, node: str, disk: Disk) -> tuple[str, ...]:
    """Who needs this disk now: "/dev/sda1 is mounted", "/dev/sda belongs to ZFS pool tank" ...; empty: nobody, whatever is on it."""
    parts = (disk, *disk.partitions)
    found = [f"{part.path} is mounted" for part in parts if part.mounted or part.used == "mounted"]
    found += [f"{part.path} is Ceph {', '.join(part.ceph)}" for part in parts if part.ceph]
    found += [f"{part.path} is held by the device mapper (encryption, multipath, LVM)" for part in parts if part.used == "Device Mapper"]
    if any("LVM" in part.used for part in parts):
        found += await _volume_groups(checks, node, parts)
    if any("ZFS" in part.used for part in parts):
        found += await _pools(checks, node, parts)
    return tuple(dict.fromkeys(found))


async def _volume_groups(checks: Checks, node: str, parts: tuple[Disk, ...]) -> list[str]:
    path = ("nodes", node, "disks", "lvm")
    tree = await checks.attempt(read_object(checks.inventory.api, *path), f"volume groups of {node}")
    if tree is None:
        return [f"{parts[0].path} is in use by LVM"]
    paths = {part.path for part in parts}
    return [
        f"{volume.get('name')} is a physical volume of volume group {group.get('name')}"
        for group in rows_of(tree.get("children", []), *path)
        for volume in rows_of(group.get("children", []), *path)
        if volume.get("name") in paths
    ]


async def _pools(checks: Checks, node: str, parts: tuple[Disk, ...]) -> list[str]:
    members = await pool_members(checks, node)
    if members is None:
        return [f"{parts[0].path} is in use by ZFS"]
    found = [f"{parts[0].path} belongs to ZFS pool {pool}" for pool, devices in members.items() if carries(parts[0], devices)]
    if not found and any(members.values()):
        # a device may go by a name that no disk tells (by-partuuid, a mapper's): then it could be on this one
        known = await checks.attempt(listed(checks.inventory.api, node), f"disks of {node}")
        strange = [
            pool
            for pool, devices in members.items()
            if not all(any(carries(disk, (device,)) for disk in known or ()) for device in devices)
        ]
        names = ", ".join(strange)
        checks.doubt(f"whether {parts[0].path} belongs to ZFS pool {names}: not all of its devices are known disks", when=bool(strange))
    return found


async def pool_members(checks: Checks, node: str) -> dict[str, list[str]] | None:
    """The imported ZFS pools of a node and the devices they stand on; None when that cannot be read."""
    base = ("nodes", node, "disks", "zfs")
    pools = await checks.attempt(read_rows(checks.inventory.api, *base), f"ZFS pools of {node}")
    if pools is None:
        return None
    names = [str(row["name"]) for row in pools if row.get("name")]

    def detail(name: str) -> Callable[[], Awaitable[Any]]:
        return lambda: checks.inventory.api.get(*base, name)

    members: dict[str, list[str]] = {}
    for name, pool in (await gather({name: detail(name) for name in names})).items():
        if not isinstance(pool, Mapping):
            checks.doubt(f"the disks of ZFS pool {name}: they could not be read")
            return None
        members[name] = [device.name for device in zpools.devices(pool) if device.leaf]
    return members


def carries(disk: Disk, devices: Iterable[str]) -> bool:
    """Whether one of a pool's devices is on this disk. A device may go by another of its names, which carry the serial number or WWN."""
    parts = (disk, *disk.partitions)
    names = {part.path for part in parts} | {part.by_id for part in parts if part.by_id}
    marks = {mark for part in parts for mark in (part.serial, part.wwn) if len(mark) >= 6}
    return any(device in names or device.split("-part")[0] in names or any(mark in device for mark in marks) for device in devices)


async def must_be_free(checks: Checks, node: str, disk: Disk) -> None:
    """An obstacle for anything that is on a disk: Proxmox makes pools, volume groups and partition tables on unused ones alone."""
    claimed = await claims(checks, node, disk)
    if claimed:
        checks.refuse(f"{disk} is in use: {'; '.join(claimed)}")
    elif disk.used:
        checks.refuse(f"{disk} is not empty: {disk.used}; proxmox_disk_prepare action=wipe empties it")


async def must_not_be_the_system(checks: Checks, node: str, what: str, devices: Iterable[str]) -> None:
    """An obstacle for a pool or volume group on a disk with a boot partition, the one the node runs from, or on one that Ceph uses."""
    known = await checks.attempt(listed(checks.inventory.api, node), f"whether {node} boots from {what}")
    boots = [disk for disk in known or () if any(part.used in ("EFI", "BIOS boot") for part in disk.partitions)]
    on = [disk.path for disk in boots if carries(disk, tuple(devices))]
    checks.refuse(f"{what} is on {', '.join(on)}, which {node} boots from", when=bool(on))
    for disk in known or ():
        held = dict.fromkeys(word for part in (disk, *disk.partitions) for word in part.ceph)
        if held and carries(disk, tuple(devices)):
            checks.refuse(f"{what} is on {disk.path}, which Ceph uses ({', '.join(held)})")
