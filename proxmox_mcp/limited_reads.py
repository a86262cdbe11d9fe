"""The API client of a server whose reads are limited: what is outside is not asked for, and not shown where lists hold it.

A courtesy to the reader, not a wall: names in task logs, job definitions or storages stay readable. The wall is a token with rights on
these guests and nodes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxmox_mcp import limits
from proxmox_mcp.http_client import HttpClient


class LimitedClient(HttpClient):
    """Reads leave out guests outside PROXMOX_ALLOW_VMIDS and nodes outside PROXMOX_ALLOW_NODES. Raises InvalidArgument for their paths."""

    @property
    def limited_to(self) -> str:
        """Which guests and nodes alone it shows: "guests 100-199,205 and nodes pve1,pve2"."""
        return limits.words(self.settings)

    async def get(self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None) -> Any:
        self._check(path)
        found = await super().get(*path, params=params, timeout=timeout)
        return [row for row in found if self._shows(row)] if isinstance(found, list) else found

    async def get_with_total(
        self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> tuple[Any, int | None]:
        self._check(path)
        found, total = await super().get_with_total(*path, params=params, timeout=timeout)
        # who reads by pages counts the rows of one: what is outside stays as an empty row
        return [row if self._shows(row) else {} for row in found] if isinstance(found, list) else found, total

    def _check(self, path: tuple[str | int, ...]) -> None:
        match path:
            case ("nodes", node, "qemu" | "lxc", vmid, *_):
                limits.check_read(self.settings, vmid=int(vmid), node=node)
            case ("nodes", node, "tasks", upid, *_):
                limits.check_read(self.settings, vmid=_vmid(str(upid).split(":")[6:7]), node=node)
            case ("nodes", node, *_):
                limits.check_read(self.settings, node=node)

    def _shows(self, row: Any) -> bool:
        if not isinstance(row, Mapping):
            return True
        node = row.get("name") if row.get("type") == "node" and "node" not in row else row.get("node")
        vmid = _vmid([row.get("vmid"), row.get("id") if "upid" in row else None, str(row.get("sid", "")).partition(":")[2]])
        return (node is None or limits.node_inside(self.settings, str(node))) and (vmid is None or limits.guest_inside(self.settings, vmid))


def _vmid(values: list[Any]) -> int | None:
    """The first of these that is a guest's id."""
    return next((int(value) for value in values if str(value).isdecimal() and int(value) >= 100), None)
