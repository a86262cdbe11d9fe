"""Opening, writing and flushing, so that what was written is on disk and is in the file that bears the name."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path


def open_own(path: str, flags: int) -> int:
    """A file descriptor of a file that only its owner may read (0600 when it is created here). Raises OSError, for a link too."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0), 0o600)


def is_named(fd: int, path: str) -> bool:
    """Whether the path names the open file."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def write_all(fd: int, data: bytes) -> None:
    """Every byte, or OSError with a part of them written."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


if sys.platform == "win32":

    def read_start(fd: int, size: int) -> bytes:
        """The first bytes of a file."""
        os.lseek(fd, 0, os.SEEK_SET)
        return os.read(fd, size)

    def write_start(fd: int, data: bytes) -> None:
        """Overwrite the first bytes of a file."""
        os.lseek(fd, 0, os.SEEK_SET)
        write_all(fd, data)

else:

    def read_start(fd: int, size: int) -> bytes:
        """The first bytes of a file."""
        return os.pread(fd, size, 0)

    def write_start(fd: int, data: bytes) -> None:
        """Overwrite the first bytes of a file."""
        if os.pwrite(fd, data, 0) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


if sys.platform == "darwin":
    import fcntl

    def flush(fd: int) -> None:
        """Wait until the file is on the medium: fsync alone leaves it in the drive's cache."""
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError:  # network file systems know only fsync
            os.fsync(fd)

else:
    flush = os.fsync


def flush_directory(path: Path) -> None:
    """Wait until the names in a directory are on the medium, where a directory can be opened."""
    if sys.platform != "win32":
        fd = os.open(path, os.O_RDONLY)
        try:
            flush(fd)
        finally:
            os.close(fd)
