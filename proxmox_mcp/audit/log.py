"""Appending: one writer at a time, flushed before it counts, chained to the newest record that anything still vouches for."""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

from proxmox_mcp.audit import lock
from proxmox_mcp.audit.disk import complete, flush, flush_directory, is_named, open_own, pread, pwrite
from proxmox_mcp.audit.files import Which, head_path, segment_path
from proxmox_mcp.audit.head import SIZE, pack
from proxmox_mcp.audit.keys import Keys
from proxmox_mcp.audit.place import Place, find_place
from proxmox_mcp.audit.record import Mask, compose, encode, entry_text, optional, seal, unmasked
from proxmox_mcp.errors import AuditError

LOOK = 0.005  # seconds: in a burst of appends, the look at the names would cost as much as all the rest
_NO_KEYS = Keys.none()
_FAILED = {
    "intent": "Nothing was sent: the audit record could not be written to {}.",
    "outcome": "The outcome of something already sent could not be recorded in {}.",
    "note": "The audit record could not be written to {}.",
}


_LOGS: WeakSet[AuditLog] = WeakSet()


def _forked() -> None:
    for log in _LOGS:
        log._begin_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class AuditLog:
    """One log, open for appending; any number of threads and processes may append at once.

    Nothing is opened before the first append, which creates the directory (0700) and the files (0600). `mask` is applied to
    every text of every entry. A segment that has reached `max_bytes` is followed by the next one.
    """

    def __init__(
        self,
        directory: Path,
        which: Which,
        *,
        keys: Keys = _NO_KEYS,
        max_bytes: int = 64 << 20,
        mask: Mask = unmasked,
    ) -> None:
        self._directory, self._which, self._keys, self._max_bytes, self._mask = directory, which, keys, max_bytes, mask
        self._digest = keys.sealing
        self._head_path, self._log_path = os.fspath(head_path(directory, which)), ""
        self._head_fd = self._log_fd = -1
        self._place: Place | None = None  # where the last append left the log; None: look again
        self._head_raw = b""  # what it left in the head
        self._look_again = 0.0
        self._seen: tuple[str, int, str] | None = None  # log id, number and hash of the newest record of this process
        self._begin_process()
        _LOGS.add(self)

    def intent(self, entry: Mapping[str, Any]) -> str:
        """Record what is about to be done; on return it is on disk. Returns the record's id for `outcome`.

        Raises AuditError when it cannot be recorded: then nothing may be done.
        """
        return self._append("intent", entry)

    def outcome(self, intent_id: str, entry: Mapping[str, Any]) -> None:
        """Record what became of an intent. Raises AuditError when it cannot be recorded."""
        self._append("outcome", entry, intent_id)

    def note(self, entry: Mapping[str, Any]) -> str:
        """Record something that has no outcome: a refusal, a question asked. Returns the record's id. Raises AuditError."""
        return self._append("note", entry)

    def close(self) -> None:
        """Close the files; a later append opens them again."""
        with self._mutex:
            self._forget()

    def _append(self, kind: str, entry: Mapping[str, Any], intent_id: str = "") -> str:
        try:
            record = entry_text(entry, self._mask)
            if not (self._mutex.acquire(blocking=False) or self._mutex.acquire(timeout=lock.WAIT)):
                raise AuditError(f"Another call has been writing to the audit log beside {self._head_path} for {lock.WAIT:g} seconds.")
            try:
                place = self._lock()
                if not place.opened or place.size >= self._max_bytes or place.key != self._keys.current:
                    self._open_segment(place)
                self._write(place, kind, record, intent_id)
                head = pack(place.log, place.segment, place.size, place.seq, place.last, place.key, self._digest)
                flush(self._log_fd)
                self._write_head(head)
                lock.release(self._head_fd)
                self._place, self._head_raw, self._seen = place, head, (place.log, place.seq, place.last)
                return f"{place.log}-{place.seq}"
            except BaseException:
                self._forget()  # the lock goes with the file that carries it
                raise
            finally:
                self._mutex.release()
        except OSError as exc:
            path = exc.filename or self._log_path or self._directory
            raise AuditError(_FAILED[kind].format(path), said=exc.strerror or str(exc), hint=_hint(exc, self._directory)) from None
        except (ValueError, RecursionError) as exc:
            raise AuditError("This entry cannot be recorded in the audit log: JSON cannot hold it.", said=str(exc)) from None

    def _lock(self) -> Place:
        """Keep all other processes out. Returns where the next record goes: the last append's place, if nobody touched the files since."""
        place, self._place = self._place, None  # unless this append succeeds, the next one looks at everything again
        while True:
            if self._head_fd < 0:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._head_fd = open_own(self._head_path, os.O_RDWR | os.O_CREAT)
            lock.acquire(self._head_fd, self._head_path)
            if place is not None and self._untouched(place):
                return place
            if is_named(self._head_fd, self._head_path):
                return self._find_place()
            os.close(self._head_fd)  # deleted or replaced while it was open: others lock the new one
            self._head_fd = -1

    def _untouched(self, place: Place) -> bool:
        """Whether the files are as the last append left them, and (looked up again after LOOK seconds) still bear their names."""
        if os.lseek(self._log_fd, 0, os.SEEK_END) != place.size or pread(self._head_fd, SIZE + 1, 0) != self._head_raw:
            return False
        if (now := time.monotonic()) < self._look_again:
            return True
        self._look_again = now + LOOK
        return is_named(self._log_fd, self._log_path) and is_named(self._head_fd, self._head_path)

    def _find_place(self) -> Place:
        place = find_place(self._directory, self._which, self._keys, pread(self._head_fd, SIZE + 1, 0), self._seen)
        if place.key is not None and self._keys.current is None:
            raise AuditError(
                f"The audit log beside {self._head_path} is written with the key {place.key}, and no key is set.",
                hint="set PROXMOX_AUDIT_HMAC_KEY or PROXMOX_AUDIT_HMAC_KEY_FILE again, or name another PROXMOX_AUDIT_DIR",
            )
        if place.loss:
            logging.getLogger(__name__).warning("the audit log beside %s was damaged: %s", self._head_path, place.loss)
        if place.opened:
            self._open_log(place, os.O_WRONLY | os.O_APPEND)
        return place

    def _begin_process(self) -> None:
        """At the start, and in a forked child: a file opened before the fork would share its lock with the parent."""
        self._mutex = threading.Lock()
        self._forget()
        self._writer = encode(f"{socket.gethostname()}/{os.getpid()}")

    def _open_segment(self, place: Place) -> None:
        if place.opened:
            place.segment, place.size, place.glue = place.segment + 1, 0, b""
        place.key = self._keys.current
        if place.seq == 0:
            # the head is on disk before the log: from here on a log without one has lost it
            self._write_head(pack(place.log, 1, 0, 0, place.last, place.key, self._digest))
            flush(self._head_fd)
        self._open_log(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        flush_directory(self._directory)
        opening: dict[str, Any] = {"format": 1, "key": place.key, "segment": place.segment, "which": self._which}
        if place.unchecked:
            opening["unchecked"] = True
        self._write(place, "open", encode(opening))
        place.opened, place.unchecked = True, False

    def _open_log(self, place: Place, flags: int) -> None:
        if self._log_fd >= 0:
            os.close(self._log_fd)
            self._log_fd = -1
        self._log_path = os.fspath(segment_path(self._directory, self._which, place.segment))
        self._log_fd = open_own(self._log_path, flags)

    def _write(self, place: Place, kind: str, record: str, intent_id: str = "") -> None:
        """Append one record and move the place on."""
        more = ("", "", "")
        if intent_id or place.torn or place.loss:
            more = optional(place.loss, _reference(intent_id, place.log), place.torn)
        place.seq += 1
        text = compose(place.log, place.seq, place.last, kind, record, self._writer, more)
        place.last, line = seal(text, self._digest)
        data = place.glue + line + b"\n"
        if (written := os.write(self._log_fd, data)) < len(data):
            complete(self._log_fd, data, written)
        place.size += len(data)
        place.glue, place.torn, place.loss = b"", None, ""

    def _write_head(self, head: bytes) -> None:
        if pwrite(self._head_fd, head, 0) < SIZE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._head_path)

    def _forget(self) -> None:
        for fd in (self._log_fd, self._head_fd):
            if fd >= 0:
                os.close(fd)
        self._log_fd = self._head_fd = -1
        self._place = None


def _reference(intent_id: str, log: str) -> int | str | None:
    """How an outcome names its intent: by number, or by its whole id when that stands in another log."""
    return int(intent_id[len(log) + 1 :]) if intent_id.startswith(f"{log}-") else intent_id or None


def _hint(exc: OSError, directory: Path) -> str:
    if exc.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return f"free space on the disk that holds {directory}, or name another PROXMOX_AUDIT_DIR, then call again"
    if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"let the user that runs this server write to {directory}, or name another PROXMOX_AUDIT_DIR, then call again"
    return f"look at {directory}: it must be a directory on a working disk; or name another PROXMOX_AUDIT_DIR"
