"""What an earlier process began and never finished: intents among the newest records that have no outcome."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.audit.files import STEMS, Which
from proxmox_mcp.audit.read import tail
from proxmox_mcp.audit.record import timestamp
from proxmox_mcp.errors import AuditError

_NEWEST = 2_000  # records of each log that are looked at
_DAYS = 7  # what is older has been seen, or never will be
_BEGAN = timestamp()  # no record of this process is older


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A change that was recorded before it was sent, and of which nothing is known since."""

    which: Which
    seq: int
    time: str  # UTC, to the second
    tool: str
    what: str  # the plan's summary, or the command

    def __str__(self) -> str:
        return f"{self.tool} of {self.time} has no recorded outcome: {self.what} (record {self.seq} of the log {self.which})"


def unfinished(directory: Path, *, now: float | None = None) -> list[Unfinished]:
    """Changes of the last week whose process died before it could record what became of them, the oldest first; reads are left out.

    What a process that still runs on this machine has begun is its own business. Reads the ends of the logs alone; whether the chain
    holds is for `verify`. Logs that cannot be read have nothing to tell here.
    """
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime((time.time() if now is None else now) - _DAYS * 86_400))
    found: list[Unfinished] = []
    for which in STEMS:
        try:
            records = tail(directory, which, _NEWEST)
        except AuditError:
            continue
        ended = {record.get("of") if isinstance(record.get("of"), int | str) else None for record in records}
        for record in records:
            entry = record.get("record")
            if record.get("kind") != "intent" or not isinstance(entry, Mapping) or entry.get("risk") == "read":
                continue
            seq, at = record.get("seq"), str(record.get("time"))
            if not isinstance(seq, int):
                continue
            if seq not in ended and f"{record.get('log')}-{seq}" not in ended and at >= since and not _runs(record.get("writer"), at):
                found.append(Unfinished(which, seq, f"{at[:19]}Z", _tool(entry), _what(entry)))
    return sorted(found, key=lambda one: one.time)


def _tool(entry: Mapping[str, Any]) -> str:
    return text.clean(str(entry.get("tool") or "a change"), 80)


def _what(entry: Mapping[str, Any]) -> str:
    argv = entry.get("argv")
    command = " ".join(map(str, argv)) if isinstance(argv, list) else ""
    return text.clean(str(entry.get("summary") or f"{command} on {entry.get('target')}"), 300)


def _runs(writer: object, at: str) -> bool:
    """Whether the process that wrote a record at that time, "host/pid", still runs here."""
    host, _, pid = str(writer).rpartition("/")
    # on Windows the question would be a signal
    if os.name == "nt" or host != socket.gethostname() or not (pid.isdecimal() and len(pid) < 12):
        return False
    if int(pid) == os.getpid():  # in a container every server has the same
        return at >= _BEGAN
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's, so it runs
        return True
    return True
