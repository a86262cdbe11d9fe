"""Inventory, its lists: what there is, read once a call."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from proxmox_mcp import text
from proxmox_mcp.errors import (
    ApiError,
    AuthenticationError,
    ConfigError,
    ConnectionFailed,
    NotTheApi,
    PermissionDenied,
    ProxmoxMcpError,
    RequestTimeout,
)
from proxmox_mcp.inventory.fanout import gap
from proxmox_mcp.inventory.objects import Guest, Node, Reader, StorageRef, number, part, read_rows, word
from proxmox_mcp.inventory.permissions import Permissions

T = TypeVar("T")


class Lists:
    """What there is. Malformed rows are left out, a 403 is a gap, a dead node hides nobody else."""

    def __init__(self, api: Reader) -> None:
        self.api = api
        self.gaps: list[str] = []
        self.remarks: list[str] = []
        self._kept: dict[str, Any] = {}

    async def guests(self) -> list[Guest]:
        """All guests that the token sees, by vmid (one GET /cluster/resources?type=vm, up to about 10 s old)."""
        return await self._once("guests", self._guests)

    async def nodes(self) -> list[Node]:
        """All nodes, by name (GET /nodes)."""
        return await self._once("nodes", self._nodes)

    async def storages(self) -> list[StorageRef]:
        """All storages that the token sees, by name (GET /storage)."""
        return await self._once("storages", self._storages)

    async def live_nodes(self) -> list[str]:
        """The nodes worth asking; each offline one is a gap."""
        return await self._once("live", self._live)

    async def permissions(self) -> Permissions:
        """What the token may do (GET /access/permissions)."""
        return await self._once("permissions", self._permissions)

    async def version(self) -> tuple[int, int] | None:
        """Major and minor version of Proxmox VE (GET /version)."""
        found = await self._quiet("version")
        match = re.match(r"(\d+)\.(\d+)", str(found.get("version", ""))) if isinstance(found, Mapping) else None
        return (int(match[1]), int(match[2])) if match else None

    async def is_cluster(self) -> bool | None:
        """Whether this is a cluster; None when one node is in sight and the token may not ask (GET /cluster/status)."""
        found = await self._quiet("cluster", "status")
        if isinstance(found, list):
            return any(part(row).get("type") == "cluster" for row in found)
        return True if len(await self.nodes()) > 1 else None

    async def next_free_id(self) -> int:
        """The lowest free vmid (GET /cluster/nextid)."""
        found = number(await self.api.get("cluster", "nextid"))
        if found is None or not 100 <= found <= 999_999_999:
            raise NotTheApi("the answer is not the id of a guest", status=200, tried="GET /cluster/nextid")
        return int(found)

    async def is_free(self, vmid: int) -> bool:
        """Whether no guest has this vmid, seen or unseen by the token (GET /cluster/nextid?vmid=)."""
        try:
            await self.api.get("cluster", "nextid", params={"vmid": vmid})
        except ApiError as error:
            if error.status != 400:
                raise
            return False
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """Gaps and remarks, each once, for the answer."""
        return tuple(dict.fromkeys((*self.gaps, *self.remarks)))

    def keep(self, found: Mapping[str, T | ProxmoxMcpError]) -> dict[str, T]:
        """The results of `per_node` or `gather`; the errors become gaps, unless one says that nothing at all can be had."""
        good: dict[str, T] = {}
        for source, result in found.items():
            if isinstance(result, (AuthenticationError, ConfigError)):
                raise result
            if isinstance(result, ProxmoxMcpError):
                self.gaps.append(gap(source, result))
            else:
                good[source] = result
        if not good:
            for result in found.values():
                if isinstance(result, ConnectionFailed):
                    raise result
        return good

    # --- how

    async def _once(self, what: str, read: Callable[[], Awaitable[T]]) -> T:
        if what not in self._kept:
            self._kept[what] = await read()
        kept: T = self._kept[what]
        return kept

    async def _rows(self, what: str, *path: str, **params: str) -> list[dict[str, Any]]:
        try:
            return await read_rows(self.api, *path, params=params or None)
        except PermissionDenied as error:
            self.gaps.append(gap(what, error))
            return []

    def _sound(self, what: str, rows: list[dict[str, Any]], is_sound: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """The entries that name what they are about; that others were left out is a gap."""
        sound = [row for row in rows if is_sound(row)]
        if len(sound) < len(rows):
            self.gaps.append(f"{what}: {text.counted(len(rows) - len(sound), 'entries')} could not be read")
        return sound

    async def _quiet(self, *path: str) -> Any:
        """An extra read that no answer depends on: None when this token or version does not give it."""
        try:
            return await self._once("/".join(path), lambda: self.api.get(*path))
        except AuthenticationError:
            raise
        except (ApiError, RequestTimeout):
            return None

    async def guest_rows(self) -> list[dict[str, Any]]:
        """The entries behind `guests`, read anew for whoever lists ten thousand of them: the rows are the caller's to change."""

        def is_sound(row: dict[str, Any]) -> bool:
            return row.get("type") in ("qemu", "lxc") and str(row.get("vmid")).isdecimal() and word(row.get("node")) is not None

        return self._sound("guests", await self._rows("guests", "cluster", "resources", type="vm"), is_sound)

    async def _guests(self) -> list[Guest]:
        found = (Guest(int(row["vmid"]), row["node"], row["type"], row) for row in await self.guest_rows())
        return sorted(found, key=lambda guest: guest.vmid)

    async def _nodes(self) -> list[Node]:
        states = {"online": True, "offline": False}
        rows = self._sound("nodes", await self._rows("nodes", "nodes"), lambda row: word(row.get("node")) is not None)
        found = [Node(row["node"], states.get(word(row.get("status")) or ""), row) for row in rows]
        return sorted(found, key=lambda node: node.name)

    async def _storages(self) -> list[StorageRef]:
        rows = self._sound("storages", await self._rows("storages", "storage"), lambda row: word(row.get("storage")) is not None)
        return sorted((StorageRef.of(row) for row in rows), key=lambda ref: ref.name)

    async def _live(self) -> list[str]:
        nodes = await self.nodes()
        self.gaps += [f"{node.name}: not reachable (offline)" for node in nodes if node.online is False]
        return [node.name for node in nodes if node.online is not False]

    async def _permissions(self) -> Permissions:
        found = await self._quiet("access", "permissions")
        if not isinstance(found, Mapping):
            return Permissions(None)
        return Permissions({path: held for path, held in found.items() if isinstance(held, Mapping)})
