"""Which guests are being backed up: their @vzdump snapshots are never touched, and where that is not known neither."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxmox_mcp.app import Call
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.inventory import Guest, Inventory, gather, read_object, read_rows

SCRATCH = "vzdump"  # the snapshot that a container's backup makes and removes


@dataclass(frozen=True, slots=True)
class Backups:
    """Why a guest's scratch snapshot must stay, by vmid; `unknown` when it could not be found out for any."""

    why: Mapping[int, str] = field(default_factory=dict)
    unknown: str = ""

    def must_stay(self, vmid: int | None) -> str:
        """The reason, or "" when no backup of this guest runs."""
        if self.unknown:
            return self.unknown
        return "whose guest it is cannot be told" if vmid is None else self.why.get(vmid, "")


async def under_way(call: Call, node: str, vmids: Iterable[int]) -> Backups:
    """Active vzdump tasks on the node (GET /nodes/{node}/tasks?source=active), and `lock: backup` in the guests' configurations."""
    wanted = sorted(set(vmids))
    if not wanted:
        return Backups()
    try:
        inventory = call.inventory
        if not (await inventory.permissions()).has(f"/nodes/{node}", "Sys.Audit"):
            return Backups(unknown=f"whether a backup runs is not known: this token does not see all tasks of {node} (Sys.Audit)")
        rows = await read_rows(inventory.api, "nodes", node, "tasks", params={"source": "active", "typefilter": "vzdump"})
        guests = {guest.vmid: guest for guest in await inventory.guests()}
        free = {vmid: vmid not in guests and await inventory.is_free(vmid) for vmid in wanted}
    except ProxmoxMcpError as error:
        return Backups(unknown=f"whether a backup runs is not known: {error.what}")
    busy, all_of_them = _busy(rows)
    if all_of_them:
        return Backups(unknown=f"a backup of several guests runs on {node} ({all_of_them})")
    locks = await gather({vmid: _lock(inventory, guests[vmid]) for vmid in wanted if vmid in guests})
    why: dict[int, str] = {}
    for vmid in wanted:
        lock = locks.get(vmid)
        if vmid in busy:
            why[vmid] = f"a backup of guest {vmid} runs"
        elif isinstance(lock, ProxmoxMcpError):
            why[vmid] = f"whether guest {vmid} is being backed up is not known: {lock.what}"
        elif lock == "backup":
            why[vmid] = f"guest {vmid} is locked by a backup"
        elif vmid not in guests and not free[vmid]:
            why[vmid] = f"whether guest {vmid} is being backed up is not known: this token does not see it"
    return Backups(why)


def _busy(rows: Iterable[Mapping[str, Any]]) -> tuple[set[int], str]:
    """The guests of running vzdump tasks, and the UPID of one that has no single guest."""
    busy: set[int] = set()
    for row in rows:
        if row.get("endtime") or row.get("type", "vzdump") != "vzdump":
            continue
        whose = str(row.get("id") or "")
        if not whose.isdigit():
            return busy, str(row.get("upid") or "vzdump")
        busy.add(int(whose))
    return busy, ""


def _lock(inventory: Inventory, guest: Guest) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        config = await read_object(inventory.api, "nodes", guest.node, guest.kind, guest.vmid, "config")
        return str(config.get("lock") or "")

    return read
