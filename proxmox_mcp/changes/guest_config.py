"""What a guest's configuration says: volumes, network cards, memory, flags. Pure: raw values in, plain values out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxmox_mcp.changes.disk_size import configured_bytes
from proxmox_mcp.inventory import GuestKind, number

_VOLUME_KEYS = {
    "qemu": re.compile(r"(?:ide|sata|scsi|virtio)\d{1,2}|efidisk0|tpmstate0|unused\d{1,3}|vmstate"),
    "lxc": re.compile(r"rootfs|mp\d{1,3}|unused\d{1,3}"),
}
_CLOUD_INIT = re.compile(r"[:/](?:vm-\d+-)?cloudinit(?:\.(?:raw|qcow2|vmdk))?\Z")
_NET_KEY = re.compile(r"net\d{1,2}")
# the memory of a guest whose configuration does not say
DEFAULT_MEMORY = 512


@dataclass(frozen=True, slots=True)
class Volume:
    """One disk, drive or mount point. `source` is a volume id, a path of the host, or "none"/"cdrom" for an empty drive."""

    key: str
    source: str
    options: Mapping[str, str] = field(compare=False)

    @property
    def storage(self) -> str | None:
        return self.source.partition(":")[0] if ":" in self.source and not self.is_path else None

    @property
    def is_path(self) -> bool:
        """A bind or device mount, or a disk given by its path: not on any storage of Proxmox."""
        return self.source.startswith("/")

    @property
    def is_drive(self) -> bool:
        """A CD-ROM or cloud-init drive: its content does not belong to the guest."""
        return self.options.get("media") == "cdrom"

    @property
    def is_cloud_init(self) -> bool:
        """A cloud-init drive: made anew from the configuration wherever it is."""
        return self.is_drive and _CLOUD_INIT.search(self.source) is not None

    @property
    def size(self) -> int | None:
        """Bytes, as the configuration says."""
        return configured_bytes(self.options.get("size", ""))

    @property
    def format(self) -> str:
        """qcow2, raw, vmdk ...: what the volume's name says, "raw" when it says nothing."""
        suffix = self.source.rpartition("/")[2].rpartition(".")
        return suffix[2] if suffix[1] and suffix[2] in ("qcow2", "vmdk", "qed", "cloop", "subvol") else "raw"

    def __str__(self) -> str:
        return f"{self.key} ({self.source}{', ' + self.options['size'] if 'size' in self.options else ''})"


@dataclass(frozen=True, slots=True)
class Card:
    """A network card's place: bridge (or VNet) and VLAN."""

    key: str
    bridge: str
    tag: str | None


def properties(value: str, first: str) -> dict[str, str]:
    """A property string: "local:1/x.qcow2,size=1G" with first="file" is {"file": "local:1/x.qcow2", "size": "1G"}."""
    found: dict[str, str] = {}
    for part in value.split(","):
        name, equals, rest = part.strip().partition("=")
        if name:
            found[name if equals else first] = rest if equals else name
    return found


def volumes(config: Mapping[str, Any], kind: GuestKind) -> list[Volume]:
    """The disks, drives and mount points of a configuration, in the order of their names."""
    return sorted(_volumes(config, kind), key=lambda volume: volume.key)


def _volumes(config: Mapping[str, Any], kind: GuestKind) -> Iterator[Volume]:
    first = "file" if kind == "qemu" else "volume"
    for key, value in config.items():
        if _VOLUME_KEYS[kind].fullmatch(key) and isinstance(value, str):
            options = properties(value, first)
            yield Volume(key, options.pop(first, ""), options)


def disks(config: Mapping[str, Any], kind: GuestKind) -> list[Volume]:
    """The volumes that hold the guest's own data."""
    return [volume for volume in volumes(config, kind) if not volume.is_drive and volume.storage is not None]


def bind_mounts(config: Mapping[str, Any], kind: GuestKind) -> list[Volume]:
    """Directories and devices of the host in a container."""
    return [volume for volume in volumes(config, kind) if volume.is_path]


def cards(config: Mapping[str, Any]) -> list[Card]:
    """The network cards that are on a bridge."""
    found = []
    for key, value in sorted(config.items()):
        if _NET_KEY.fullmatch(key) and isinstance(value, str):
            options = properties(value, "model")
            if options.get("bridge"):
                found.append(Card(key, options["bridge"], options.get("tag")))
    return found


def memory_mib(value: object) -> int | None:
    """MiB of a `memory` option: a number, "4096" or the property string "current=4096"; None when it cannot be read."""
    if value is None:
        return DEFAULT_MEMORY
    text = properties(value, "current").get("current", "") if isinstance(value, str) else value
    found = number(text)
    return int(found) if found is not None else None


def archived(text: str) -> dict[str, str]:
    """The configuration inside a backup, as GET /nodes/{node}/vzdump/extractconfig gives it: lines of "key: value"; snapshots left out."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            break
        name, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            found[name.strip()] = value.strip()
    return found
