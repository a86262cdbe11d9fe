"""The demo nodes' hardware as the API tells it: status, network, disks, SMART, LVM, ZFS."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from fakepve.model import PveError

from proxmox_mcp.demo.world import GIB, MIB, VERSION, Disk, Guest, Node

REPO = "14e6f2d1a7c3b905"
_KERNEL = "6.17.4-1-pve"


def fingerprint(node: str) -> str:
    """A SHA-256 fingerprint that belongs to the node's name."""
    digest = hashlib.sha256(node.encode()).hexdigest().upper()
    return ":".join(digest[i : i + 2] for i in range(0, 64, 2))


def node_status(node: Node, usage: dict[str, Any]) -> dict[str, Any]:
    """GET /nodes/{node}/status; `usage` as in the list of nodes."""
    load = usage["cpu"] * node.cpus
    used = usage["mem"]
    return {
        "uptime": usage["uptime"],
        "cpu": usage["cpu"],
        "wait": 0.0021,
        "idle": 0,
        "loadavg": [f"{load * f:.2f}" for f in (1.0, 1.06, 0.97)],
        "cpuinfo": {
            "model": node.cpu_model,
            "cpus": node.cpus,
            "cores": node.cores,
            "sockets": 1,
            "mhz": node.mhz,
            "hvm": "1",
            "user_hz": 100,
            "flags": "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr",
        },
        "memory": {"total": node.memory, "used": used, "free": int((node.memory - used) * 0.6), "available": node.memory - used},
        "swap": {"total": 8 * GIB - 4096, "used": 214 * MIB, "free": 8 * GIB - 4096 - 214 * MIB},
        "rootfs": {
            "total": node.root_total,
            "used": node.root_used,
            "avail": int((node.root_total - node.root_used) * 0.95),
            "free": node.root_total - node.root_used,
        },
        "ksm": {"shared": 0},
        "kversion": f"Linux {_KERNEL} #1 SMP PREEMPT_DYNAMIC PMX",
        "current-kernel": {"sysname": "Linux", "release": _KERNEL, "version": "#1 SMP PREEMPT_DYNAMIC PMX", "machine": "x86_64"},
        "boot-info": {"mode": "efi", "secureboot": 0},
        "pveversion": f"pve-manager/{VERSION}/{REPO}",
    }


def network(node: Node) -> list[dict[str, Any]]:
    """GET /nodes/{node}/network."""
    return [
        {
            "iface": "eno1",
            "type": "eth",
            "active": 1,
            "exists": 1,
            "method": "manual",
            "method6": "manual",
            "families": ["inet"],
            "priority": 3,
        },
        {
            "iface": "vmbr0",
            "type": "bridge",
            "active": 1,
            "autostart": 1,
            "bridge_ports": "eno1",
            "bridge_stp": "off",
            "bridge_fd": "0",
            "address": node.ip,
            "netmask": "24",
            "cidr": f"{node.ip}/24",
            "gateway": "10.20.0.1",
            "method": "static",
            "method6": "manual",
            "families": ["inet"],
            "priority": 4,
        },
    ]


def _by_id(disk: Disk) -> str:
    bus = "nvme" if disk.type == "nvme" else "ata"
    return f"/dev/disk/by-id/{bus}-{disk.model.replace(' ', '_')}_{disk.serial}"


def disk_list(node: Node, partitions: bool) -> list[dict[str, Any]]:
    """GET /nodes/{node}/disks/list."""
    rows: list[dict[str, Any]] = []
    for disk in node.disks:
        row = {
            "devpath": disk.devpath,
            "size": disk.size,
            "model": disk.model,
            "serial": disk.serial,
            "vendor": "ATA" if disk.type == "hdd" else "unknown",
            "wwn": f"0x5002538{hashlib.sha256(disk.serial.encode()).hexdigest()[:9]}",
            "type": disk.type,
            "rpm": disk.rpm,
            "health": disk.health,
            "wearout": "N/A" if disk.wearout is None else disk.wearout,
            "gpt": int(bool(disk.used)),
            "osdid": -1,
            "osdid-list": None,
            "by_id_link": _by_id(disk),
        }
        if disk.used:
            row["used"] = "partitions" if partitions else disk.used
        rows.append(row)
        if partitions and disk.used:
            separator = "p" if disk.type == "nvme" else ""
            sizes: tuple[tuple[int, int, str], ...] = ((1, MIB, "BIOS boot"), (2, GIB, "EFI"), (3, disk.size - GIB - 2 * MIB, "LVM"))
            if disk.used == "ZFS":
                sizes = ((1, disk.size - 8 * MIB - MIB, "ZFS"), (9, 8 * MIB, "ZFS reserved"))
            rows += [
                {
                    "devpath": f"{disk.devpath}{separator}{number}",
                    "parent": disk.devpath,
                    "type": "partition",
                    "size": size,
                    "used": used,
                    "gpt": 1,
                    "osdid": -1,
                }
                for number, size, used in sizes
            ]
    return rows


def smart(node: Node, devpath: str, health_only: bool) -> dict[str, Any]:
    """GET /nodes/{node}/disks/smart."""
    disk = next((disk for disk in node.disks if disk.devpath == devpath), None)
    if disk is None:
        raise PveError(500, f"not a disk: {devpath}")
    if health_only:
        return {"health": disk.health}
    if disk.type == "nvme":
        left = 100 if disk.wearout is None else disk.wearout
        lines = (
            "SMART/Health Information (NVMe Log 0x02)",
            "Critical Warning:                   0x00",
            f"Temperature:                        {disk.celsius} Celsius",
            "Available Spare:                    100%",
            "Available Spare Threshold:          10%",
            f"Percentage Used:                    {100 - left}%",
            f"Power On Hours:                     {disk.hours:,}",
            "Media and Data Integrity Errors:    0",
        )
        return {"health": disk.health, "type": "text", "wearout": left, "text": "\n".join(lines) + "\n"}
    worn = min(99, disk.reallocated // 20)
    table = (
        (1, "Raw_Read_Error_Rate", 118, 99, 6, "0"),
        (5, "Reallocated_Sector_Ct", 100 - worn, 100 - worn, 10, str(disk.reallocated)),
        (9, "Power_On_Hours", max(1, 100 - disk.hours // 900), max(1, 100 - disk.hours // 900), 0, str(disk.hours)),
        (194, "Temperature_Celsius", 150 - disk.celsius, 140 - disk.celsius, 0, str(disk.celsius)),
        (197, "Current_Pending_Sector", 100 - disk.pending // 10, 100 - disk.pending // 10, 0, str(disk.pending)),
    )
    attributes = [
        {
            "id": f"{number:3d}",
            "name": name,
            "flags": "-O--CK",
            "value": value,
            "normalized": value,
            "worst": worst,
            "threshold": threshold,
            "fail": "NOW" if threshold and value <= threshold else "-",
            "raw": raw,
        }
        for number, name, value, worst, threshold, raw in table
    ]
    return {"health": disk.health, "type": "ata", "attributes": attributes}


def lvm(node: Node) -> dict[str, Any]:
    """GET /nodes/{node}/disks/lvm."""
    device = next(disk for disk in node.disks if disk.used == "LVM")
    free = 16 * GIB
    volume = {"name": f"{device.devpath}p3", "size": node.vg_size, "free": free, "leaf": 1}
    return {"leaf": 0, "children": [{"name": "pve", "size": node.vg_size, "free": free, "lvcount": 3, "leaf": 0, "children": [volume]}]}


def lvm_thin(node: Node, used: int) -> list[dict[str, Any]]:
    """GET /nodes/{node}/disks/lvmthin."""
    metadata = 8 * GIB
    return [
        {
            "lv": "data",
            "vg": "pve",
            "lv_size": node.thin_size,
            "used": used,
            "metadata_size": metadata,
            "metadata_used": int(metadata * used / node.thin_size * 0.18),
            "lv_state": "a",
            "lv_type": "t",
            "pool_lv": "",
            "ctime": "1743500000",
        },
    ]


def zfs_list(node: Node, used: int) -> list[dict[str, Any]]:
    """GET /nodes/{node}/disks/zfs; a raidz pool counts parity into its sizes."""
    pool = node.pool
    if pool is None:
        return []
    # what `usable` takes off is parity (raidz) or what ZFS keeps for itself (mirror)
    alloc = int((pool.other + used) / (pool.usable if pool.layout.startswith("raidz") else 1))
    health = "DEGRADED" if pool.faulted else "ONLINE"
    return [{"name": "tank", "size": pool.size, "alloc": alloc, "free": pool.size - alloc, "frag": 11, "dedup": 1, "health": health}]


def zfs_pool(node: Node, name: str) -> dict[str, Any]:
    """GET /nodes/{node}/disks/zfs/{name}."""
    pool = node.pool
    if pool is None or name != "tank":
        raise PveError(500, f"command 'zpool status -P {name}' failed: exit code 1")
    state = "DEGRADED" if pool.faulted else "ONLINE"
    disks = {disk.devpath.removeprefix("/dev/"): disk for disk in node.disks}
    leaves = []
    for member in pool.members:
        leaf = {"name": f"{_by_id(disks[member])}-part1", "state": "ONLINE", "read": 0, "write": 0, "cksum": 0, "msg": "", "leaf": 1}
        if member == pool.faulted:
            leaf |= {"state": "FAULTED", "read": 38, "write": 412, "cksum": 6, "msg": "too many errors"}
        leaves.append(leaf)
    errors = {"read": 0, "write": 0, "cksum": 0, "msg": "", "leaf": 0}
    group = {"name": pool.layout, "state": state, **errors, "children": leaves}
    answer: dict[str, Any] = {
        "name": "tank",
        "state": state,
        "leaf": 0,
        "children": [{"name": "tank", "state": state, **errors, "children": [group]}],
        "scan": f"scrub repaired 0B in 05:41:10 with 0 errors on {_scrubbed()}",
        "errors": "No known data errors",
    }
    if pool.faulted:
        answer["status"] = (
            "One or more devices are faulted in response to persistent errors. "
            "Sufficient replicas exist for the pool to continue functioning in a degraded state."
        )
        answer["action"] = "Replace the faulted device, or use 'zpool clear' to mark the device repaired."
    return answer


def _scrubbed() -> str:
    """When the monthly scrub ended: 06:05 on a day three weeks ago, as zpool prints it."""
    return time.strftime("%a %b %e 06:05:12 %Y", time.gmtime(time.time() - 21 * 86400))


def interfaces(guest: Guest) -> list[dict[str, Any]]:
    """What the guest agent says about network interfaces."""
    mac = f"bc:24:11:{guest.vmid // 256 % 256:02x}:{guest.vmid % 256:02x}:1f"
    address = {"ip-address": f"10.20.1.{guest.vmid % 250}", "ip-address-type": "ipv4", "prefix": 24}
    return [{"name": "eth0", "hardware-address": mac, "ip-addresses": [address]}]


def filesystems(guest: Guest) -> list[dict[str, Any]]:
    """What the guest agent says about file systems."""
    total = guest.disks[0][2] * GIB
    disk = {"bus-type": "scsi", "bus": 0, "target": 0, "unit": 0, "serial": "drive-scsi0"}
    return [
        {"name": "sda1", "mountpoint": "/", "type": "ext4", "total-bytes": total, "used-bytes": int(total * guest.fill), "disk": [disk]}
    ]
