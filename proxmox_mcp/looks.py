"""Lists that were shown to a caller, so that the second step acts on exactly what the first one showed: few, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable


class Looks:
    """Remembers, by what was asked for, which things were shown. Lives as long as the server: after a restart one looks again."""

    def __init__(self, *, most: int = 64, seconds: float = 3_600, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._shown: dict[Hashable, tuple[float, frozenset[str]]] = {}

    def remember(self, key: Hashable, things: Iterable[str]) -> None:
        """These were shown for this question; an earlier list for it no longer counts."""
        self._shown.pop(key, None)
        while len(self._shown) >= self._most:
            del self._shown[next(iter(self._shown))]
        self._shown[key] = (self._clock(), frozenset(things))

    def last(self, key: Hashable) -> frozenset[str] | None:
        """What was shown for this question; None when nothing was, or too long ago."""
        found = self._shown.get(key)
        return found[1] if found and self._clock() - found[0] <= self._seconds else None
