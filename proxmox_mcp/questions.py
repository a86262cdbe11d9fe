"""Questions that wait for a person's answer: each good for one act, few, and not for long."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from proxmox_mcp.plan import Plan


class Questions:
    """Remembers which plan was shown under which one-time name."""

    def __init__(self, *, most: int = 64, seconds: float = 900, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._waiting: dict[str, tuple[float, Plan]] = {}

    def add(self, plan: Plan) -> str:
        """A one-time name for this plan; the oldest question is forgotten when there are too many."""
        while len(self._waiting) >= self._most:
            del self._waiting[next(iter(self._waiting))]
        nonce = secrets.token_hex(16)
        self._waiting[nonce] = (self._clock(), plan)
        return nonce

    def take(self, nonce: str) -> Plan | None:
        """The plan that was shown under this name, once; None when unknown, used before or too old."""
        asked = self._waiting.pop(nonce, None)
        return asked[1] if asked and self._clock() - asked[0] <= self._seconds else None
