"""What the demo cluster is made of: nodes, disks, pools, storages and guests. Invented, consistent, pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

MIB, GIB, TIB = 1024**2, 1024**3, 1024**4
CLUSTER = "lab"
RELEASE = "9.2"
VERSION = "9.2.4"
OFFLINE_FOR = 9 * 3600  # seconds since the third node was last seen


@dataclass(frozen=True, slots=True)
class Disk:
    """A physical disk; `used` as Proxmox names it, empty when free; `wearout` is the percentage of life left."""

    devpath: str
    model: str
    serial: str
    size: int
    type: Literal["nvme", "ssd", "hdd"]
    used: str
    health: str = "PASSED"
    wearout: int | None = None
    rpm: int = 0
    hours: int = 9_000
    reallocated: int = 0
    pending: int = 0
    celsius: int = 36


@dataclass(frozen=True, slots=True)
class Pool:
    """The ZFS pool of a node: `usable` is what its storage offers of `size`, `other` what is stored on it besides guests' disks."""

    layout: str
    members: tuple[str, ...]
    size: int
    usable: float
    other: int
    faulted: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A host; `load` is its own share of CPU and `mem_own` its own memory, both without guests."""

    name: str
    ip: str
    cpu_model: str
    cpus: int
    cores: int
    mhz: str
    memory: int
    mem_own: int
    load: float
    root_total: int
    root_used: int
    up: int
    online: bool = True
    disks: tuple[Disk, ...] = ()
    pool: Pool | None = None
    thin_size: int = 794 * GIB
    vg_size: int = 931 * GIB - 2 * GIB


NODES = (
    Node(
        "pve1", "10.20.0.11", "AMD Ryzen 9 7900 12-Core Processor", 24, 12, "3700.000", 64_170 * MIB, 5_300 * MIB, 0.021,
        94 * GIB, 29 * GIB, 41 * 86400 + 5 * 3600,
        disks=(
            Disk("/dev/nvme0n1", "Samsung SSD 980 PRO 1TB", "S5GXNX0R611204B", 1_000_204_886_016, "nvme", "LVM", wearout=91, celsius=44),
            Disk("/dev/sda", "WDC WD40EFZX-68AWUN0", "WD-WX12D81K4P7R", 4_000_787_030_016, "hdd", "ZFS", rpm=5400, hours=21_417),
            Disk("/dev/sdb", "WDC WD40EFZX-68AWUN0", "WD-WX12D81K4T1N", 4_000_787_030_016, "hdd", "ZFS", rpm=5400, hours=21_415),
            Disk("/dev/sdc", "CT2000MX500SSD1", "2229E6501F3C", 2_000_398_934_016, "ssd", "", wearout=98, hours=1_260, celsius=31),
        ),
        pool=Pool("mirror-0", ("sda", "sdb"), 3_985_729_650_688, 0.97, 610 * GIB),
    ),
    Node(
        "pve2", "10.20.0.12", "Intel(R) Xeon(R) E-2278G CPU @ 3.40GHz", 16, 8, "3400.000", 64_020 * MIB, 4_900 * MIB, 0.034,
        94 * GIB, 61 * GIB, 41 * 86400 + 4 * 3600,
        disks=(
            Disk("/dev/nvme0n1", "Samsung SSD 970 EVO 1TB", "S4EWNX0M903377L", 1_000_204_886_016, "nvme", "LVM", wearout=63, celsius=49),
            Disk("/dev/sda", "ST4000VN008-2DR166", "ZDH9A1B2", 4_000_787_030_016, "hdd", "ZFS", rpm=5980, hours=38_902),
            Disk(
                "/dev/sdb", "ST4000VN008-2DR166", "ZDH9A1C7", 4_000_787_030_016, "hdd", "ZFS", "FAILED!", rpm=5980, hours=38_899,
                reallocated=1_912, pending=344, celsius=43,
            ),
            Disk("/dev/sdc", "ST4000VN008-2DR166", "ZDH9A1D0", 4_000_787_030_016, "hdd", "ZFS", rpm=5980, hours=38_904),
        ),
        pool=Pool("raidz1-0", ("sda", "sdb", "sdc"), 11_991_548_690_432, 0.655, 2_350 * GIB, faulted="sdb"),
    ),
    Node(
        "pve3", "10.20.0.13", "13th Gen Intel(R) Core(TM) i5-1340P", 16, 12, "1900.000", 31_790 * MIB, 3_000 * MIB, 0.02,
        94 * GIB, 22 * GIB, 0, online=False,
    ),
)  # fmt: skip
BY_NAME = {node.name: node for node in NODES}

# storage.cfg; `nodes` and `shared` as Proxmox writes them
STORAGES: dict[str, dict[str, Any]] = {
    "local": {"type": "dir", "path": "/var/lib/vz", "content": "iso,vztmpl,backup", "prune-backups": "keep-last=3"},
    "local-lvm": {"type": "lvmthin", "vgname": "pve", "thinpool": "data", "content": "rootdir,images"},
    "tank": {"type": "zfspool", "pool": "tank", "content": "rootdir,images", "nodes": "pve1,pve2", "sparse": 1, "mountpoint": "/tank"},
    "nas": {
        "type": "nfs", "server": "10.20.0.40", "export": "/volume1/proxmox", "path": "/mnt/pve/nas", "content": "iso,backup,vztmpl",
        "shared": 1, "prune-backups": "keep-weekly=4",
    },
    "pbs": {
        "type": "pbs", "server": "10.20.0.41", "datastore": "main", "username": "pve@pbs", "content": "backup", "shared": 1,
        "prune-backups": "keep-daily=7,keep-weekly=4",
    },
    "oldnas": {
        "type": "nfs", "server": "10.20.0.39", "export": "/export/vm", "path": "/mnt/pve/oldnas", "content": "backup",
        "shared": 1, "disable": 1,
    },
}  # fmt: skip
# total size, and what is on it besides what the API lists
SHARED_SIZE = {"nas": (7_440 * GIB, 6_330 * GIB), "pbs": (3_720 * GIB, 1_480 * GIB)}

# file, storage, node ("" on a shared one), size
FILES = (
    ("iso/debian-13.1.0-amd64-netinst.iso", "nas", "", 783 * MIB),
    ("iso/ubuntu-24.04.3-live-server-amd64.iso", "nas", "", 3_149 * MIB),
    ("iso/Win11_24H2_English_x64.iso", "nas", "", 5_559 * MIB),
    ("iso/virtio-win-0.1.271.iso", "nas", "", 709 * MIB),
    ("iso/OPNsense-25.7-dvd-amd64.iso", "local", "pve1", 2_213 * MIB),
    ("vztmpl/debian-13-standard_13.1-2_amd64.tar.zst", "nas", "", 124 * MIB),
    ("vztmpl/alpine-3.22-default_20250617_amd64.tar.xz", "local", "pve1", 3 * MIB),
)


@dataclass(frozen=True, slots=True)
class Guest:
    """A VM or container; `disks` are (key, storage, GiB), `cpu`, `mem` and `fill` the fractions in use while it runs."""

    vmid: int
    kind: Literal["qemu", "lxc"]
    name: str
    node: str
    running: bool
    cores: int
    memory: int  # MiB
    disks: tuple[tuple[str, str, int], ...]
    up: int = 41 * 86400
    cpu: float = 0.03
    mem: float = 0.5
    fill: float = 0.4
    tags: str = ""
    pool: str = ""
    ostype: str = "l26"
    template: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    snapshots: tuple[tuple[str, int, str, bool], ...] = ()  # name, age in seconds, description, with memory; oldest first


_DAY = 86400
GUESTS = (
    Guest(100, "qemu", "opnsense", "pve1", True, 2, 4096, (("scsi0", "local-lvm", 32),), cpu=0.061, mem=0.38, tags="network",
          ostype="other", extra={"startup": "order=1,up=30"}),
    Guest(101, "qemu", "web01", "pve1", True, 4, 8192, (("scsi0", "local-lvm", 64),), up=12 * _DAY + 4 * 3600, cpu=0.072, mem=0.46,
          tags="prod;web", pool="prod", extra={"agent": "1"}, snapshots=(("before_php84", 12 * _DAY, "before the PHP update", False),)),
    Guest(102, "qemu", "db01", "pve1", True, 4, 16384, (("scsi0", "local-lvm", 32), ("scsi1", "tank", 200)), cpu=0.184, mem=0.71,
          tags="db;prod", pool="prod", extra={"agent": "1"},
          snapshots=(("pre_upgrade", 33 * _DAY, "before PostgreSQL 17", False), ("after_upgrade", 32 * _DAY, "", True))),
    Guest(103, "qemu", "gitlab", "pve2", True, 4, 12288, (("scsi0", "tank", 120),), up=20 * _DAY, cpu=0.093, mem=0.83, tags="dev",
          extra={"agent": "1"}),
    Guest(104, "qemu", "win11-desk", "pve2", False, 4, 8192, (("scsi0", "local-lvm", 128),), ostype="win11", tags="desktop",
          extra={"bios": "ovmf", "efidisk0": "local-lvm:vm-104-disk-1,efitype=4m,pre-enrolled-keys=1,size=4M",
                 "tpmstate0": "local-lvm:vm-104-disk-2,size=4M,version=v2.0",
                 "ide2": "nas:iso/virtio-win-0.1.271.iso,media=cdrom,size=709M"}),
    Guest(105, "qemu", "k3s-1", "pve1", True, 4, 8192, (("scsi0", "local-lvm", 60),), cpu=0.112, mem=0.62, tags="k3s", pool="lab"),
    Guest(106, "qemu", "k3s-2", "pve2", True, 4, 8192, (("scsi0", "local-lvm", 60),), cpu=0.127, mem=0.66, tags="k3s", pool="lab"),
    Guest(107, "qemu", "k3s-3", "pve3", True, 4, 8192, (("scsi0", "local-lvm", 60),), tags="k3s", pool="lab"),
    Guest(108, "qemu", "mail", "pve2", True, 2, 6144, (("scsi0", "tank", 250),), cpu=0.024, mem=0.57, fill=0.61, tags="prod", pool="prod",
          extra={"agent": "1"}),
    Guest(110, "qemu", "homeassistant", "pve2", True, 2, 4096, (("scsi0", "local-lvm", 32),), up=6 * _DAY + 7 * 3600, cpu=0.035, mem=0.41,
          extra={"bios": "ovmf", "efidisk0": "local-lvm:vm-110-disk-1,efitype=4m,size=4M"}),
    Guest(200, "lxc", "pihole", "pve1", True, 1, 512, (("rootfs", "local-lvm", 8),), cpu=0.006, mem=0.22, fill=0.31, tags="network",
          ostype="debian"),
    Guest(201, "lxc", "proxy", "pve1", True, 2, 1024, (("rootfs", "local-lvm", 8),), cpu=0.011, mem=0.19, fill=0.24, tags="prod;web",
          pool="prod", ostype="debian", snapshots=(("before_tls13", 19 * _DAY, "", False),)),
    Guest(202, "lxc", "jellyfin", "pve2", True, 4, 4096, (("rootfs", "local-lvm", 16),), cpu=0.048, mem=0.33, fill=0.52, ostype="debian",
          extra={"mp0": "/tank/media,mp=/media"}),
    Guest(203, "lxc", "grafana", "pve2", True, 2, 2048, (("rootfs", "local-lvm", 16),), up=3 * _DAY, cpu=0.017, mem=0.44, fill=0.93,
          ostype="debian", tags="monitoring"),
    Guest(204, "lxc", "unifi", "pve3", True, 2, 2048, (("rootfs", "local-lvm", 16),), ostype="debian", tags="network"),
    Guest(205, "lxc", "devbox", "pve1", False, 4, 4096, (("rootfs", "local-lvm", 32),), ostype="ubuntu", pool="lab"),
    Guest(206, "lxc", "syncthing", "pve1", True, 2, 1024, (("rootfs", "tank", 400),), up=2 * _DAY, cpu=0.009, mem=0.36, fill=0.7,
          ostype="alpine"),
    Guest(9000, "qemu", "debian-13-cloud", "pve1", False, 2, 2048, (("scsi0", "local-lvm", 8),), template=True,
          extra={"ide2": "local-lvm:vm-9000-cloudinit,media=cdrom,size=4M"}),
    Guest(9001, "lxc", "debian-13-base", "pve1", False, 1, 512, (("rootfs", "local-lvm", 4),), template=True, ostype="debian"),
)  # fmt: skip
PROFILES = {guest.vmid: guest for guest in GUESTS}
NOT_IN_NIGHTLY = (104, 206, 9000, 9001)
FAILING_BACKUP = 108  # its nightly backup ends with an error since FAILING_FOR nights
FAILING_FOR = 9
PROTECTED_BACKUP = 102  # the oldest of this guest
WEEKLY = (100, 102, 200)


def config(guest: Guest) -> dict[str, Any]:
    """The configuration of a guest as the API answers it."""
    mac = f"BC:24:11:{guest.vmid // 256 % 256:02X}:{guest.vmid % 256:02X}:1F"
    values: dict[str, Any] = {"cores": guest.cores, **guest.extra}
    if guest.running:
        values["onboot"] = 1
    if guest.tags:
        values["tags"] = guest.tags
    kind = "base" if guest.template else "vm"
    for number, (key, storage, gib) in enumerate(guest.disks):
        if guest.kind == "lxc":
            prefix = "subvol" if storage == "tank" else kind
            values[key] = f"{storage}:{prefix}-{guest.vmid}-disk-{number},size={gib}G"
        else:
            # the small EFI and TPM volumes of a guest hold the numbers after its first disk
            place = number if number == 0 or "efidisk0" not in guest.extra else number + 2
            values[key] = f"{storage}:{kind}-{guest.vmid}-disk-{place},discard=on,iothread=1,size={gib}G"
    if guest.kind == "lxc":
        values |= {"hostname": guest.name, "arch": "amd64", "memory": guest.memory, "swap": 512, "ostype": guest.ostype, "unprivileged": 1}
        values |= {
            "features": "nesting=1",
            "net0": f"name=eth0,bridge=vmbr0,firewall=1,hwaddr={mac},ip=10.20.1.{guest.vmid % 250}/24,type=veth",
        }
        return values
    values |= {"name": guest.name, "memory": str(guest.memory), "sockets": 1, "cpu": "host", "ostype": guest.ostype, "numa": 0}
    values |= {"scsihw": "virtio-scsi-single", "boot": "order=scsi0", "net0": f"virtio={mac},bridge=vmbr0,firewall=1"}
    values["smbios1"] = f"uuid=5e0cbf0a-6a3e-4c58-9d0e-{guest.vmid:012d}"
    return values
