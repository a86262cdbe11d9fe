"""The server with a window into it: on SIGUSR1 it tells on standard error how many tasks, objects and bytes it holds.

With PYTHONMALLOC=malloc every byte of every object comes from glibc, which counts what is in use. Resident memory says less: a page
that was freed may stay with the process, scattered between small blocks that live.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
from typing import Any

from proxmox_mcp.cli import main

FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class MallInfo(ctypes.Structure):
    """What mallinfo2(3) gives: sums over all arenas."""

    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


_LIBC = ctypes.CDLL(None)
_LIBC.mallinfo2.restype = MallInfo


def _tell(*_: Any) -> None:
    # a collection first, and free pages back to the system: what is free is no growth
    gc.collect()
    _LIBC.malloc_trim(0)
    heap = _LIBC.mallinfo2()
    os.write(2, f"watched: {len(asyncio.all_tasks())} {len(gc.get_objects())} {heap.uordblks + heap.hblkhd}\n".encode())


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _tell)
    sys.exit(main())
