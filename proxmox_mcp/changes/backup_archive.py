"""The volume id of a backup: whose it is and of which kind, on file storages and on a backup server."""

from __future__ import annotations

import re
from dataclasses import dataclass

from proxmox_mcp.inventory import GuestKind

_FILE = re.compile(
    r"backup/(?:[^/]+/)*vzdump-(?P<kind>qemu|lxc)-(?P<vmid>[1-9][0-9]{2,8})-(?P<when>\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d)"
    r"\.(?:(?:vma|tar)(?:\.(?:gz|lzo|zst|bz2|xz))?|tgz)",
    re.ASCII,
)
# a file that was renamed keeps its owner as long as its name begins like this
_OWNED = re.compile(r"backup/(?:[^/]+/)*vzdump-(?P<kind>qemu|lxc)-(?P<vmid>[1-9][0-9]{2,8})-.+", re.ASCII)
_SERVER = re.compile(r"backup/(?:ns/[^/]+/)*(?P<kind>vm|ct)/(?P<vmid>[1-9][0-9]{2,8})/(?P<when>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)", re.ASCII)
_KINDS: dict[str, GuestKind] = {"qemu": "qemu", "lxc": "lxc", "vm": "qemu", "ct": "lxc"}


@dataclass(frozen=True, slots=True)
class Archive:
    """A backup. `vmid` (whose it is) is None when its name was changed; `kind` when its form does not say; `when` as the name has it."""

    volid: str
    storage: str
    kind: GuestKind | None
    vmid: int | None
    when: str
    on_backup_server: bool


def parse(volid: str) -> Archive:
    """Reads `nas:backup/vzdump-qemu-101-2026_03_01-02_00_00.vma.zst` or `pbs:backup/vm/101/2026-03-01T01:00:00Z`."""
    storage, _, name = volid.partition(":")
    for pattern, server in ((_FILE, False), (_SERVER, True)):
        match = pattern.fullmatch(name)
        if match is not None:
            return Archive(volid, storage, _KINDS[match["kind"]], int(match["vmid"]), match["when"], server)
    owned = _OWNED.fullmatch(name)
    if owned is not None:
        return Archive(volid, storage, _KINDS[owned["kind"]], int(owned["vmid"]), "", False)
    # a renamed file still tells by its form what is in it
    kind: GuestKind | None = "qemu" if re.search(r"\.vma(\.|$)", name) else "lxc" if re.search(r"\.(tar(\.|$)|tgz$)", name) else None
    return Archive(volid, storage, kind, None, "", False)
