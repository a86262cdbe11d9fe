"""Which guest, node or storage is meant: vmid -> node and type, spelling of nodes, which node can serve a storage.

One Inventory serves one tool call: what it read stands for that long and no longer. What a list could not see is collected in
`gaps`, what was taken differently from how it was asked in `remarks`; both belong into the answer.
"""

from __future__ import annotations

from proxmox_mcp.inventory.fanout import gap, gather, per_node
from proxmox_mcp.inventory.lookup import Inventory
from proxmox_mcp.inventory.objects import (
    Guest,
    GuestKind,
    Node,
    Reader,
    StorageRef,
    called,
    flag,
    number,
    part,
    read_object,
    read_rows,
    rows_of,
    share,
    storage_state,
    word,
)
from proxmox_mcp.inventory.permissions import Permissions

__all__ = [
    "Guest",
    "GuestKind",
    "Inventory",
    "Node",
    "Permissions",
    "Reader",
    "StorageRef",
    "called",
    "flag",
    "gap",
    "gather",
    "number",
    "part",
    "per_node",
    "read_object",
    "read_rows",
    "rows_of",
    "share",
    "storage_state",
    "word",
]
