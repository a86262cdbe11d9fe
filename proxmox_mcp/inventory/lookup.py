"""Inventory: lists and look-ups for one tool call."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from proxmox_mcp.errors import (
    ApiError,
    AuthenticationError,
    ConfigError,
    ConnectionFailed,
    InvalidArgument,
    NodeUnreachable,
    NotFound,
    PermissionDenied,
    ProxmoxMcpError,
    Refused,
    RequestTimeout,
)
from proxmox_mcp.inventory.fanout import gap, per_node
from proxmox_mcp.inventory.objects import Guest, GuestKind, Node, Reader, StorageRef
from proxmox_mcp.inventory.permissions import Permissions

T = TypeVar("T")

_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_STORAGE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,98}[A-Za-z0-9]")


class Inventory:
    """Looks things up for one tool call."""

    def __init__(self, api: Reader) -> None:
        self.api = api
        self.gaps: list[str] = []
        self.remarks: list[str] = []
        self._kept: dict[tuple[str | int, ...], Any] = {}

    # --- lists: malformed rows are left out, a 403 is a gap, a dead node hides nobody else

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
            return any(row.get("type") == "cluster" for row in found)
        return True if len(await self.nodes()) > 1 else None

    async def next_free_id(self) -> int:
        """The lowest free vmid (GET /cluster/nextid)."""
        return int(await self.api.get("cluster", "nextid"))

    async def is_free(self, vmid: int) -> bool:
        """Whether no guest has this vmid, seen or unseen by the token (GET /cluster/nextid?vmid=)."""
        try:
            await self.api.get("cluster", "nextid", params={"vmid": vmid})
        except ApiError as error:
            if error.status != 400:
                raise
            return False
        return True

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

    # --- one guest, node or storage

    async def guest(self, vmid: int, *, node: str | None = None, kind: str | None = None, change: bool = False) -> Guest:
        """The guest with this id. Where `node` or `kind` contradict it, a read takes the truth and remarks it, a change is refused."""
        if not 100 <= vmid <= 999_999_999:
            raise InvalidArgument("vmid", "a guest's id is a number from 100 to 999999999")
        if node is not None:
            _check_node(node)
        found = next((guest for guest in await self.guests() if guest.vmid == vmid), None) or await self._unlisted(vmid, node)
        if node is not None and node != found.node:
            self._contradiction(f"guest {vmid} is on node {found.node}, not on {node}", f"node {found.node}", change)
        if kind is not None and kind != found.kind:
            self._contradiction(f"guest {vmid} is of type {found.kind}, not {kind}", f"vm_type {found.kind}", change)
        if found.status == "unknown" and await self._is_offline(found.node):
            if change:
                raise Refused(f"guest {vmid} is on {found.node}, and that node is offline", hint=f"bring {found.node} back first")
            self.remarks.append(f"guest {vmid} is on {found.node}, and that node is offline")
        return found

    async def node(self, name: str, *, change: bool = False, live: bool = False) -> Node:
        """The node of this name. Another spelling (case, FQDN, address) is remarked by a read and refused by a change.

        `live`: raises NodeUnreachable without asking it when the cluster knows that it is offline.
        """
        _check_node(name)
        known = await self.nodes()
        found = next((node for node in known if node.name == name), None)
        if found is None:
            found = await self._spelled(name, known)
            if change:
                raise Refused(f"there is no node {name}: did you mean {found.name}?", hint=f"name node {found.name}")
            self.remarks.append(f"node {name} is called {found.name}")
        if live and found.online is False:
            raise NodeUnreachable(
                f"node {found.name} is offline, so it was not asked", status=0, hint="proxmox_list_nodes shows which nodes are online"
            )
        return found

    async def storage(self, name: str) -> StorageRef:
        """The storage of this name. Raises NotFound, with what can be seen instead."""
        if not _STORAGE.fullmatch(name):
            raise InvalidArgument("storage", "a storage's id is letters, digits, '-', '_' and '.', beginning with a letter")
        known = await self.storages()
        found = next((ref for ref in known if ref.name == name), None)
        if found is None:
            seen = ", ".join(ref.name for ref in known[:20]) or "none"
            unseen = (await self.permissions()).explains_empty("storages", f"/storage/{name}", "Datastore.Audit")
            raise NotFound(f"no storage {name} is visible; there are: {seen}" + (f" ({unseen})" if unseen else ""), status=0)
        return found

    async def storage_on(self, name: str, node: str | None = None, *, change: bool = False) -> tuple[StorageRef, str]:
        """A storage and a node that can serve it: the one named, else the first that is online. Raises when there is none."""
        ref = await self.storage(name)
        if not ref.enabled:
            raise InvalidArgument("storage", f"{name} is disabled in the storage configuration, so no node serves it")
        if node is not None:
            wanted = (await self.node(node, change=change, live=True)).name
            if ref.nodes is not None and wanted not in ref.nodes:
                raise InvalidArgument("node", f"storage {name} is not available on {wanted}, only on {', '.join(sorted(ref.nodes))}")
            return ref, wanted
        serving = await self.serving(ref)
        if not serving:
            raise NodeUnreachable(f"no node that serves storage {name} is online", status=0)
        if not ref.shared and len(serving) > 1:
            apart = f"storage {name} is separate on {', '.join(serving)}"
            if change:
                raise Refused(f"{apart}: say on which", hint="name the node")
            self.remarks.append(f"{apart}; this is the one of {serving[0]}")
        return ref, serving[0]

    async def serving(self, ref: StorageRef) -> list[str]:
        """The nodes that can serve a storage, those known to be online first. Of a shared one any shows all, of another each its own."""
        nodes = [node for node in await self.nodes() if node.online is not False and (ref.nodes is None or node.name in ref.nodes)]
        return [node.name for node in sorted(nodes, key=lambda node: node.online is not True)]

    async def from_shared(self, ref: StorageRef, fetch: Callable[[str], Awaitable[T]]) -> tuple[str, T]:
        """`fetch(node)` on the first node that serves a shared storage, on the next one where that fails: (node, result)."""
        failed: list[str] = []
        last: ProxmoxMcpError = NodeUnreachable(f"no node that serves storage {ref.name} is online", status=0)
        for node in await self.serving(ref):
            try:
                result = await fetch(node)
            except (AuthenticationError, PermissionDenied):
                raise
            except (ApiError, RequestTimeout) as error:
                last = error
                failed.append(gap(node, error))
                continue
            if failed:
                self.remarks.append(f"storage {ref.name} was read on {node} ({'; '.join(failed)})")
            return node, result
        raise last

    # --- how

    async def _once(self, what: str, read: Callable[[], Awaitable[T]]) -> T:
        if (what,) not in self._kept:
            self._kept[(what,)] = await read()
        kept: T = self._kept[(what,)]
        return kept

    async def _rows(self, what: str, *path: str, **params: str) -> list[Mapping[str, Any]]:
        try:
            found = await self.api.get(*path, params=params or None)
        except PermissionDenied as error:
            self.gaps.append(gap(what, error))
            return []
        return [row for row in found if isinstance(row, Mapping)] if isinstance(found, Sequence) else []

    async def _quiet(self, *path: str) -> Any:
        """An extra read that no answer depends on: None when this token or version does not give it."""
        try:
            return await self._once("/".join(path), lambda: self.api.get(*path))
        except AuthenticationError:
            raise
        except (ApiError, RequestTimeout):
            return None

    async def _guests(self) -> list[Guest]:
        rows = await self._rows("guests", "cluster", "resources", type="vm")
        whole = (row for row in rows if row.get("type") in ("qemu", "lxc") and row.get("vmid") and row.get("node"))
        return sorted((Guest(int(row["vmid"]), row["node"], row["type"], row) for row in whole), key=lambda guest: guest.vmid)

    async def _nodes(self) -> list[Node]:
        states = {"online": True, "offline": False}
        rows = await self._rows("nodes", "nodes")
        found = [Node(row["node"], states.get(row.get("status", "")), row) for row in rows if isinstance(row.get("node"), str)]
        return sorted(found, key=lambda node: node.name)

    async def _storages(self) -> list[StorageRef]:
        rows = await self._rows("storages", "storage")
        return sorted((StorageRef.of(row) for row in rows if isinstance(row.get("storage"), str)), key=lambda ref: ref.name)

    async def _live(self) -> list[str]:
        nodes = await self.nodes()
        self.gaps += [f"{node.name}: not reachable (offline)" for node in nodes if node.online is False]
        return [node.name for node in nodes if node.online is not False]

    async def _permissions(self) -> Permissions:
        found = await self._quiet("access", "permissions")
        return Permissions(found if isinstance(found, Mapping) else None)

    async def _is_offline(self, name: str) -> bool:
        return any(node.name == name and node.online is False for node in await self.nodes())

    def _contradiction(self, truth: str, name: str, change: bool) -> None:
        if change:
            raise Refused(truth, hint=f"name {name} or leave it out")
        self.remarks.append(truth)

    async def _unlisted(self, vmid: int, node: str | None) -> Guest:
        """A guest that the cluster's list does not show: just created, hidden from the token, or not there."""
        known = sorted((guest.vmid for guest in await self.guests()), key=lambda other: abs(other - vmid))[:5]
        near = f"; the nearest are {', '.join(map(str, sorted(known)))}" if known else ""
        if await self.is_free(vmid):
            raise NotFound(f"there is no guest {vmid}{near}", status=0, hint="proxmox_list_vms shows the guests")
        if (await self.permissions()).has(f"/vms/{vmid}", "VM.Audit") is False:
            raise _hidden(vmid)
        for place, lists in self.keep(await per_node(await self._ask(node), self._lists)).items():
            for kind, row in lists:
                if str(row.get("vmid")) == str(vmid):
                    return Guest(vmid, place, kind, row)
        raise _hidden(vmid)

    async def _ask(self, node: str | None) -> list[str]:
        live = await self.live_nodes()
        return [node] if node in live and node is not None else live

    async def _lists(self, node: str) -> list[tuple[GuestKind, Mapping[str, Any]]]:
        kinds: tuple[GuestKind, ...] = ("qemu", "lxc")
        return [(kind, row) for kind in kinds for row in await self.api.get("nodes", node, kind) if isinstance(row, Mapping)]

    async def _spelled(self, name: str, known: Sequence[Node]) -> Node:
        for spelling in (name.casefold(), name.partition(".")[0].casefold()):
            close = [node for node in known if node.name.casefold() == spelling]
            if len(close) == 1:
                return close[0]
        addresses = await self._quiet("cluster", "status") if re.fullmatch(r"[0-9.]+", name) else None
        called = [row.get("name") for row in addresses or () if row.get("ip") == name]
        close = [node for node in known if node.name in called]
        if len(close) == 1:
            return close[0]
        raise NotFound(f"there is no node {name}; the nodes are {', '.join(node.name for node in known) or 'not visible'}", status=0)


def _check_node(name: str) -> None:
    if not _NODE.fullmatch(name) or ".." in name:
        raise InvalidArgument("node", "a node's name is letters, digits and '-'", hint="proxmox_list_nodes shows the names")


def _hidden(vmid: int) -> PermissionDenied:
    what = f"guest {vmid} exists, but this token does not see it"
    return PermissionDenied(what, status=0, hint=f"give the token VM.Audit on /vms/{vmid}, e.g. with the role PVEAuditor")
