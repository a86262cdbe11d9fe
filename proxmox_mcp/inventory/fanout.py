"""Several reads at once: bounded in number and time, each failure kept beside its source."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from proxmox_mcp.errors import ApiError, NodeUnreachable, PermissionDenied, ProxmoxMcpError, RequestTimeout

K = TypeVar("K")
T = TypeVar("T")

AT_ONCE = 6  # below the client's own bound, so that waiting for a slot there never counts as a source's silence


async def gather(
    sources: Mapping[K, Callable[[], Awaitable[T]]], *, each: float | None = None, total: float | None = None, at_once: int = AT_ONCE
) -> dict[K, T | ProxmoxMcpError]:
    """Runs all sources, `each` and `total` seconds at most, and gives for each its result or its error, in the order given.

    A source that is too slow has a RequestTimeout. Only errors of this project are kept, anything else is a bug and raised.
    """
    import anyio

    found: dict[K, T | ProxmoxMcpError] = {}
    slots = anyio.CapacityLimiter(at_once)

    async def run(key: K, source: Callable[[], Awaitable[T]]) -> None:
        async with slots:
            with anyio.move_on_after(each) as patience:
                try:
                    found[key] = await source()
                except ProxmoxMcpError as error:
                    found[key] = error
            if patience.cancelled_caught:
                found[key] = RequestTimeout(f"no answer in {each:g} s")

    with anyio.move_on_after(total):
        async with anyio.create_task_group() as group:
            for key, source in sources.items():
                group.start_soon(run, key, source)
    late = RequestTimeout(f"not answered within the {total:g} s that all sources had together" if total else "not answered")
    return {key: found.get(key, late) for key in sources}


async def per_node(
    nodes: Iterable[str], fetch: Callable[[str], Awaitable[T]], *, each: float | None = None, total: float | None = None
) -> dict[str, T | ProxmoxMcpError]:
    """`fetch(node)` for each node: see `gather`."""

    def bound(node: str) -> Callable[[], Awaitable[T]]:
        return lambda: fetch(node)

    return await gather({node: bound(node) for node in nodes}, each=each, total=total)


def gap(source: str, error: ProxmoxMcpError) -> str:
    """One line for what is missing: "pve2: not reachable (595)"."""
    if isinstance(error, NodeUnreachable):
        return f"{source}: not reachable ({error.status or 'offline'})"
    if isinstance(error, PermissionDenied):
        return f"{source}: not allowed" + (f" ({error.said})" if error.said else "")
    if isinstance(error, ApiError) and error.said:
        return f"{source}: {error.said}"
    return f"{source}: {error.what}"
