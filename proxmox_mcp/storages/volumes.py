"""Volumes of one content type, wherever they are: each shared storage is asked once, each other one on every node that has it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxmox_mcp.errors import InvalidArgument, NotTheApi, ProxmoxMcpError
from proxmox_mcp.inventory import Inventory, StorageRef, gather, number, read_rows, word

PATIENCE = 40.0  # seconds for a place, further tries on other nodes included; below what clients wait for a call


@dataclass(frozen=True, slots=True)
class Place:
    """A storage, and the node where it was or would be read; `node` None: the storage is shared, every node shows the same."""

    storage: str
    node: str | None

    def __str__(self) -> str:
        return f"storage {self.storage}" + (f" on {self.node}" if self.node else "")


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found: `volumes` by place as the API gave them; `failed` are the places that could not be read, and why."""

    volumes: Mapping[Place, Sequence[Mapping[str, Any]]]
    failed: Mapping[Place, ProxmoxMcpError] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()  # storages that hold this content and are switched off

    def rows(self) -> list[dict[str, Any]]:
        """Each volume once, with its `storage` and its `node` ("shared": any)."""
        return [
            {**volume, "storage": place.storage, "node": place.node or "shared"}
            for place, volumes in self.volumes.items()
            for volume in volumes
        ]


async def find(
    inventory: Inventory, content: str, *, storage: str | None = None, node: str | None = None, vmid: int | None = None
) -> Listing:
    """All volumes of a content type (backup, iso, vztmpl ...) on one storage or on all, as one node sees them or all nodes.

    GET /nodes/{node}/storage/{storage}/content?content=. Raises for a storage that cannot have such volumes.
    """
    refs = [await _one(inventory, storage, content)] if storage is not None else await inventory.storages()
    refs = [ref for ref in refs if content in ref.content]
    only = (await inventory.node(node, live=True)).name if node is not None else None
    sources: dict[Place, Callable[[], Awaitable[list[dict[str, Any]]]]] = {}
    for ref in refs:
        if ref.enabled:
            sources |= await places(inventory, ref, content, node=only, vmid=vmid)
    if storage is not None and not sources:
        await inventory.storage_on(storage, only)  # says why no node serves it
    if only is None:
        await inventory.live_nodes()  # an offline node may have some too: that is a gap
    found = await gather(sources, each=PATIENCE)
    good = {place: result for place, result in found.items() if not isinstance(result, ProxmoxMcpError)}
    inventory.keep({str(place): result for place, result in found.items()})
    failed = {place: result for place, result in found.items() if isinstance(result, ProxmoxMcpError)}
    if failed and not good and (storage is not None or len(found) == 1):
        raise next(iter(failed.values()))
    return Listing(good, failed, tuple(ref.name for ref in refs if not ref.enabled))


async def places(
    inventory: Inventory, ref: StorageRef, content: str, *, node: str | None = None, vmid: int | None = None
) -> dict[Place, Callable[[], Awaitable[list[dict[str, Any]]]]]:
    """Where a storage is to be read, and how; with `node` only as that node has it. Nothing is sent before a source is called."""
    serving = await inventory.serving(ref)
    if node is not None:
        serving = [name for name in serving if name == node]

    def read(place: str) -> Callable[[], Awaitable[list[dict[str, Any]]]]:
        return lambda: _content(inventory, ref, place, content, vmid)

    if not ref.shared:
        return {Place(ref.name, name): read(name) for name in serving}
    if not serving:
        return {}
    if node is not None:
        return {Place(ref.name, None): read(node)}

    async def from_any() -> list[dict[str, Any]]:
        return (await inventory.from_shared(ref, lambda name: _content(inventory, ref, name, content, vmid)))[1]

    return {Place(ref.name, None): from_any}


async def _one(inventory: Inventory, storage: str, content: str) -> StorageRef:
    ref = await inventory.storage(storage)
    if content not in ref.content:
        holds = ", ".join(sorted(ref.content)) or "nothing that is known"
        others = ", ".join(other.name for other in await inventory.storages() if content in other.content) or "none"
        raise InvalidArgument("storage", f"{storage} is set up for {holds}, not for {content}; storages for {content}: {others}")
    return ref


async def _content(inventory: Inventory, ref: StorageRef, node: str, content: str, vmid: int | None) -> list[dict[str, Any]]:
    path = ("nodes", node, "storage", ref.name, "content")
    rows = await read_rows(inventory.api, *path, params={"content": content, "vmid": vmid})
    if not all(word(row.get("volid")) for row in rows):
        raise NotTheApi("a volume in the answer has no id", status=200, tried=f"GET /{'/'.join(path)}")
    # not every storage plugin honours the filters
    rows = [row for row in rows if row.get("content", content) == content]
    return [row for row in rows if vmid is None or number(row.get("vmid")) == vmid]


def size(row: Mapping[str, Any]) -> int | float | None:
    """A volume's size in bytes: exact, else approximate; the placeholder 1 of a backup server is unknown."""
    exact = number(row.get("size"))
    if exact == 1 and str(row.get("format", "")).startswith("pbs-"):
        return None
    return exact if exact is not None else number(row.get("approximate-size"))


def retention(rule: object) -> str | None:
    """A prune-backups rule as text, whether it came as an object or as text; None: there is none."""
    if isinstance(rule, Mapping):
        return ",".join(f"{name}={rule[name]}" for name in sorted(rule)) or None
    return str(rule) if rule else None
