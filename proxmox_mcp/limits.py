"""The owner's limit to some guests and nodes: which are inside, and what a call may ask for where reads are limited too."""

from __future__ import annotations

from typing import Any

from proxmox_mcp.config import Settings
from proxmox_mcp.errors import InvalidArgument


def is_set(settings: Settings) -> bool:
    """Whether there is a limit at all."""
    return bool(settings.allow_vmids or settings.allow_nodes)


def limits_reads(settings: Settings) -> bool:
    """Whether reads, too, show only what is inside (PROXMOX_LIMIT_READS)."""
    return settings.limit_reads and is_set(settings)


def guest_inside(settings: Settings, vmid: int) -> bool:
    """Whether PROXMOX_ALLOW_VMIDS names this guest, or nothing."""
    return not settings.allow_vmids or any(low <= vmid <= high for low, high in settings.allow_vmids)


def node_inside(settings: Settings, name: str) -> bool:
    """Whether PROXMOX_ALLOW_NODES names this node, or nothing."""
    return not settings.allow_nodes or name in settings.allow_nodes


def words(settings: Settings) -> str:
    """The limit for a reader: "guests 100-199,205 and nodes pve1,pve2"."""
    ranges = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in settings.allow_vmids)
    parts = [f"guests {ranges}" if ranges else "", f"nodes {','.join(settings.allow_nodes)}" if settings.allow_nodes else ""]
    return " and ".join(filter(None, parts))


def check_read(settings: Settings, vmid: Any = None, node: Any = None) -> None:
    """Where reads are limited, raises InvalidArgument for a guest or node outside."""
    if not limits_reads(settings):
        return
    also = "and this server limits reads too (PROXMOX_LIMIT_READS)"
    if isinstance(vmid, int) and not guest_inside(settings, vmid):
        raise InvalidArgument("vmid", f"guest {vmid} is outside PROXMOX_ALLOW_VMIDS, {also}")
    if isinstance(node, str) and not node_inside(settings, node):
        raise InvalidArgument("node", f"node {node} is outside PROXMOX_ALLOW_NODES, {also}")
