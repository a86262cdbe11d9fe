"""Inventory: which guest, node or storage is meant."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from proxmox_mcp.errors import (
    ApiError,
    AuthenticationError,
    InvalidArgument,
    NodeUnreachable,
    NotFound,
    PermissionDenied,
    ProxmoxMcpError,
    Refused,
    RequestTimeout,
)
from proxmox_mcp.inventory.fanout import gap, per_node
from proxmox_mcp.inventory.lists import Lists
from proxmox_mcp.inventory.objects import Guest, GuestKind, Node, StorageRef, read_rows

T = TypeVar("T")

_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_STORAGE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,98}[A-Za-z0-9]")


class Inventory(Lists):
    """The lists and look-ups of one tool call."""

    async def guest(
        self, vmid: int, *, node: str | None = None, kind: str | None = None, change: bool = False, live: bool = False
    ) -> Guest:
        """The guest with this id. Where `node` or `kind` contradict it, a read takes the truth and remarks it, a change is refused.

        `live`: raises NodeUnreachable without asking its node when the cluster knows that it is offline.
        """
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
            if live:
                raise NodeUnreachable(
                    f"guest {vmid} ({found.kind}) is on {found.node}, and that node is offline, so it was not asked",
                    status=0,
                    hint="proxmox_list_nodes shows which nodes are online; the guest's backups can still be listed",
                )
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

    async def node_or_only(self, name: str | None) -> Node:
        """The node of this name, for reading from it; without a name the only one there is."""
        if name is not None:
            return await self.node(name, live=True)
        known = await self.nodes()
        if len(known) != 1:
            raise InvalidArgument("node", f"say which: {', '.join(node.name for node in known) or 'no node is visible'}")
        return known[0]

    async def from_nodes(self, name: str | None, fetch: Callable[[str], Awaitable[T]]) -> dict[str, T]:
        """`fetch(node)` on the node of this name, or on every one worth asking: those that fail are gaps, unless none answers."""
        places = await self.live_nodes() if name is None else [(await self.node(name, live=True)).name]
        found = await per_node(places, fetch)
        good = self.keep(found)
        if not good:
            for result in found.values():
                if isinstance(result, ProxmoxMcpError):
                    raise result
        return good

    async def storage(self, name: str) -> StorageRef:
        """The storage of this name. Raises NotFound, with what can be seen instead."""
        if not _STORAGE.fullmatch(name):
            raise InvalidArgument("storage", "a storage's id is letters, digits, '-', '_' and '.', beginning with a letter")
        known = await self.storages()
        found = next((ref for ref in known if ref.name == name), None)
        if found is None:
            seen = ", ".join(ref.name for ref in known[:20]) or "none"
            unseen = (await self.permissions()).explains_empty("storages", f"/storage/{name}", "Datastore.Audit", "Datastore.AllocateSpace")
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
        if not ref.shared and change and len(serving) > 1:
            raise Refused(f"storage {name} is separate on {', '.join(serving)}: say on which", hint="name the node")
        silent = [node.name for node in await self.nodes() if node.online is False and (ref.nodes is None or node.name in ref.nodes)]
        places = serving + [f"{node} (offline)" for node in silent]
        if not ref.shared and not change and len(places) > 1:
            self.remarks.append(f"storage {name} is separate on {', '.join(places)}; this is the one of {serving[0]}")
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
        if self.api.limited_to:
            outside = f"guest {vmid} is not among {self.api.limited_to}, and this server limits reads too (PROXMOX_LIMIT_READS)"
            raise InvalidArgument("vmid", outside)
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
        return [(kind, row) for kind in kinds for row in await read_rows(self.api, "nodes", node, kind)]

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
