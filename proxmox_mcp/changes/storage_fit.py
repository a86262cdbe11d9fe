"""Whether a storage suits what is to be put there: content type, node, room, formats, snapshots."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.changes.disk_size import GIB
from proxmox_mcp.changes.guest_config import Volume
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.errors import NotFound
from proxmox_mcp.inventory import GuestKind, StorageRef, flag, number, read_object
from proxmox_mcp.storages import volumes

CONTENT = {"qemu": "images", "lxc": "rootdir"}
_FILES = frozenset({"dir", "nfs", "cifs", "cephfs", "glusterfs"})
_SNAPSHOTS = frozenset({"zfspool", "zfs", "lvmthin", "rbd", "btrfs"})
_NO_NEW = frozenset({"iscsi", "iscsidirect", "esxi"})  # their volumes are what the other side has
_NO_SNAPSHOTS = frozenset({"lvm", "iscsi", "iscsidirect", "esxi"})


async def suits(
    checks: Checks, name: str, node: str, content: str, *, gib: float | None = None, whole: bool = False
) -> tuple[StorageRef | None, tuple[str, ...]]:
    """The storage, when it is there, and notes; what speaks against it becomes an obstacle.

    `gib` is the size of the new volumes; `whole`: the storage takes all of it at once, so too little room is certain to fail.
    """
    try:
        ref = await checks.inventory.storage(name)
    except NotFound as error:
        checks.refuse(error.what)
        return None, ()
    if content not in ref.content:
        fits = [other.name for other in await checks.inventory.storages() if content in other.content and serves(other, node)]
        checks.refuse(
            f"storage {name} is set up for {', '.join(sorted(ref.content)) or 'nothing that is known'}, not for {content}; "
            f"storages of {node} for it: {', '.join(fits) or 'none'}"
        )
    if content in CONTENT.values() and ref.type in _NO_NEW:
        checks.refuse(f"storage {name} is of type {ref.type}, where Proxmox makes no volumes")
    if not ref.enabled:
        checks.refuse(f"storage {name} is disabled")
        return ref, ()
    if not serves(ref, node):
        checks.refuse(f"storage {name} is not available on {node}, only on {', '.join(sorted(ref.nodes or ()))}")
        return ref, ()
    state = await checks.attempt(read_object(checks.inventory.api, "nodes", node, "storage", name, "status"), f"room on storage {name}")
    return ref, _room(checks, ref, node, state, gib, whole) if state is not None else ()


def _room(checks: Checks, ref: StorageRef, node: str, state: Mapping[str, Any], gib: float | None, whole: bool) -> tuple[str, ...]:
    if not flag(state.get("active")):
        checks.refuse(f"storage {ref.name} is not active on {node}")
        return ()
    # all sizes are 0 where the type does not tell them: iscsi, esxi
    free = None if number(state.get("total")) == 0 else number(state.get("avail"))
    if gib is None or free is None or free >= gib * GIB:
        return ()
    short = f"storage {ref.name} has {text.size(free)} free, {text.size(gib * GIB)} are asked for"
    checks.refuse(short, when=whole)
    return () if whole else (f"{short}: what is written later can fill it up",)


def serves(ref: StorageRef, node: str) -> bool:
    """Whether the configuration lets this node use the storage."""
    return ref.enabled and (ref.nodes is None or node in ref.nodes)


def takes_all_at_once(ref: StorageRef | None, kind: GuestKind) -> bool:
    """Whether a new volume's whole size is taken from the storage when it is made."""
    if ref is None:
        return False
    return ref.type == "lvm" or (ref.type == "zfspool" and kind == "qemu" and not flag(ref.row.get("sparse")))


async def volume_exists(checks: Checks, volid: str, node: str, content: str) -> None:
    """A volume that a new guest is made from must be there and readable (ISO image, template)."""
    storage = volid.partition(":")[0]
    ref, _ = await suits(checks, storage, node, content)
    if ref is None or content not in ref.content or not serves(ref, node):
        return
    listing = await checks.attempt(volumes.find(checks.inventory, content, storage=storage, node=node), f"content of storage {storage}")
    if listing is None:
        return
    known = [str(row.get("volid")) for row in listing.rows()]
    if volid not in known:
        near = difflib.get_close_matches(volid, known, n=3, cutoff=0.4) or known[:3]
        checks.refuse(f"there is no {volid} on {node}; " + (f"there is {', '.join(near)}" if near else f"{storage} holds no {content}"))


def is_chain(ref: StorageRef) -> bool:
    """Whether snapshots there are volumes of their own in a chain (since Proxmox VE 9)."""
    return flag(ref.row.get("snapshot-as-volume-chain"))


def formats(ref: StorageRef) -> tuple[str, ...]:
    """The disk formats of VMs there; the first is for new disks: qcow2 where that is what makes snapshots possible."""
    if ref.type in _FILES:
        return ("qcow2", "raw", "vmdk")
    return ("qcow2", "raw") if ref.type == "lvm" and is_chain(ref) else ("raw",)


def takes_snapshots(ref: StorageRef, volume: Volume, kind: GuestKind) -> bool | None:
    """Whether this volume can be part of a snapshot; None when this type of storage is not known here."""
    if ref.type in _SNAPSHOTS:
        return True
    if ref.type in _FILES or (ref.type == "lvm" and is_chain(ref)):
        return kind == "qemu" and volume.format == "qcow2"
    return False if ref.type in _NO_SNAPSHOTS else None


def takes_clones(ref: StorageRef, volume: Volume, *, full: bool, snapshot: bool) -> bool:
    """Whether this volume can be cloned: copied, or linked to as a base image."""
    if full:
        return not snapshot or ref.type != "zfspool"
    return ref.type in _SNAPSHOTS or volume.format == "qcow2"


def only_to_newest(ref: StorageRef) -> bool:
    """Whether a rollback there works to the newest snapshot alone."""
    return ref.type in ("zfspool", "zfs") or is_chain(ref)
