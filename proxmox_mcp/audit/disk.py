"""Opening, writing and flushing, so that what was written is on disk and is in the file that bears the name."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path


def open_own(path: str, flags: int) -> int:
    """A file descriptor of a file that only its owner may read (0600 when it is created here).

    Raises OSError, for a link too, and for a pipe or device under this name, which could hold the writer for ever.
    """
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    fd = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise irregular(path)
    return fd


def irregular(path: str) -> OSError:
    """What to raise for something else than a file."""
    return OSError(errno.EINVAL, "not a regular file", path)


def unwritable(directory: Path) -> str:
    """Why no file can be made in a directory, which may yet have to be made itself; "" when nothing speaks against it."""
    try:
        mode = os.stat(directory).st_mode
    except (FileNotFoundError, NotADirectoryError) as exc:
        return unwritable(directory.parent) if directory != directory.parent else str(exc.strerror)
    except OSError as exc:
        return exc.strerror or str(exc)
    if not stat.S_ISDIR(mode):
        return f"{directory} is no directory"
    return "" if os.access(directory, os.W_OK | os.X_OK) else f"this user may not write into {directory}"


def is_named(fd: int, path: str) -> bool:
    """Whether the path names the open file."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def complete(fd: int, data: bytes, written: int) -> None:
    """Write what a write left over. Raises the OSError that says why it did."""
    while written < len(data):
        written += os.write(fd, data[written:])


if sys.platform == "win32":

    def pread(fd: int, size: int, offset: int) -> bytes:
        """Bytes from a place in a file."""
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, size)

    def pwrite(fd: int, data: bytes, offset: int) -> int:
        """Overwrite bytes at a place in a file; how many were written."""
        os.lseek(fd, offset, os.SEEK_SET)
        return os.write(fd, data)

else:
    pread, pwrite = os.pread, os.pwrite


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
