"""Appending from a call that may be cancelled at any moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def aside(append: Callable[[], T]) -> T:
    """Runs an append in a thread, to its end whatever becomes of the call.

    Cut off, it might have been written or not: an intent whose id nobody learned stays without its outcome.
    """
    done: list[T] = []
    with anyio.CancelScope(shield=True):
        done.append(await anyio.to_thread.run_sync(append))
    return done.pop()
