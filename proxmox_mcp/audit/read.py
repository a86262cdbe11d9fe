"""Reading records for people and other tools; nothing is verified here, and nothing that stands in the log is left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proxmox_mcp.audit.files import Which, lines, lines_backwards, segment_path, segments
from proxmox_mcp.audit.record import encode, parse
from proxmox_mcp.errors import AuditError

_SHOWN = 1000  # bytes of a line that is no record


def tail(directory: Path, which: Which, n: int) -> list[dict[str, Any]]:
    """The newest `n` records, the newest last; [] without a log. A line that is no record is `{"unreadable": text}`.

    Reads from the end, so that its cost does not grow with the log. Raises AuditError.
    """
    found: list[dict[str, Any]] = []
    try:
        for segment in reversed(segments(directory, which)):
            for line in lines_backwards(segment.path):
                if len(found) >= n:
                    break
                parsed = parse(line)
                found.append(parsed[1] if parsed else _unreadable(line))
    except OSError as exc:
        raise _cannot_read(exc, directory, which) from None
    return found[::-1]


def export(directory: Path, which: Which) -> Iterator[str]:
    """Every record as it stands in the log, a JSON object without a newline, all segments in order.

    A line that is no record is `{"unreadable": text}`. Raises AuditError.
    """
    try:
        for segment in segments(directory, which):
            for line in lines(segment.path, 0, segment.size):
                parsed = parse(line)
                yield parsed[0] if parsed else encode(_unreadable(line))
    except OSError as exc:
        raise _cannot_read(exc, directory, which) from None


def _unreadable(line: bytes) -> dict[str, Any]:
    return {"unreadable": line[:_SHOWN].decode("ascii", "backslashreplace"), "bytes": len(line)}


def _cannot_read(exc: OSError, directory: Path, which: Which) -> AuditError:
    return AuditError(
        f"The audit log {exc.filename or segment_path(directory, which, 1)} cannot be read.",
        said=exc.strerror or str(exc),
        hint="read it as the user that runs the server",
    )
