"""One pooled connection to the cluster: reads that may be repeated, changes that never are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from proxmox_mcp.config import Settings

if TYPE_CHECKING:
    import httpx


class HttpClient:
    """The REST API of one cluster. Cheap to make, never raises when made: the first request opens connections."""

    def __init__(self, settings: Settings, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.settings = settings
        self.sent = 0  # requests put on the wire
        self._transport = transport

    async def get(self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None) -> Any:
        """GET: the answer's `data`. `timeout` in seconds for the whole request (default: the setting)."""
        return (await self.get_with_total(*path, params=params, timeout=timeout))[0]

    async def get_with_total(
        self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> tuple[Any, int | None]:
        """GET of a list that is longer than what is answered (task lists, logs): `data` and `total`."""
        raise NotImplementedError

    async def send(self, method: Literal["POST", "PUT", "DELETE"], path: tuple[str | int, ...], params: Mapping[str, Any]) -> Any:
        """A change: the answer's `data`. Never repeated; OutcomeUnknown when it was sent and no certain answer came."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close all connections."""
