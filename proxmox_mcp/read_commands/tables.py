"""All tables as one grammar."""

from __future__ import annotations

from proxmox_mcp.read_commands import tables_network, tables_proxmox, tables_storage, tables_system, tables_text
from proxmox_mcp.read_commands.grammar import Grammar

TABLES = {
    "Files, text and directories": tables_text.ROWS,
    "Disks, file systems, LVM and ZFS": tables_storage.ROWS,
    "System, services, journal and packages": tables_system.ROWS,
    "Network": tables_network.ROWS,
    "Proxmox VE, corosync and Ceph": tables_proxmox.ROWS,
}
GRAMMAR = Grammar(row for rows in TABLES.values() for row in rows)
