"""A lock on an open file that the operating system drops when its owner dies."""

# filelock opens and closes its file for every turn, which alone costs half of a flush to disk

from __future__ import annotations

import os
import random
import sys
import time

from proxmox_mcp.errors import AuditError

WAIT = 10.0  # seconds

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 1 << 30  # the locked byte lies behind the content: on Windows a locked byte cannot be read by others

    def _take(fd: int, shared: bool) -> None:
        os.lseek(fd, _BEYOND, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def release(fd: int) -> None:
        """Let others in."""
        os.lseek(fd, _BEYOND, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    _SHARED, _ALONE = fcntl.LOCK_SH | fcntl.LOCK_NB, fcntl.LOCK_EX | fcntl.LOCK_NB

    def _take(fd: int, shared: bool) -> None:
        fcntl.flock(fd, _SHARED if shared else _ALONE)

    def release(fd: int) -> None:
        """Let others in."""
        fcntl.flock(fd, fcntl.LOCK_UN)


def acquire(fd: int, path: str, *, shared: bool = False) -> None:
    """Wait for the lock, WAIT seconds at most. Raises AuditError when others keep it, OSError when the file system has no locks."""
    deadline, pause = 0.0, 0.0002
    while True:
        try:
            return _take(fd, shared)
        except OSError as exc:
            # msvcrt says PermissionError (EACCES) or EDEADLOCK for a lock that is taken
            if not isinstance(exc, (BlockingIOError, PermissionError)) and sys.platform != "win32":
                raise
            now = time.monotonic()
            deadline = deadline or now + WAIT
            if now >= deadline:
                raise AuditError(
                    f"Another process has held the audit log's lock {path} for {WAIT:g} seconds.",
                    said=str(exc.strerror),
                    hint="find the server process that hangs and end it, then call again",
                ) from None
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(pause * 2, 0.005)
