"""Where a log stands: the record that the next one follows, found in the head, in the lines behind it and in this process's memory."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxmox_mcp.audit.files import Segment, Which, lines, segment_path, segments
from proxmox_mcp.audit.head import Head, is_blank, unpack
from proxmox_mcp.audit.keys import Keys
from proxmox_mcp.audit.record import ZEROS, parse
from proxmox_mcp.audit.walk import Flaw, Walk
from proxmox_mcp.errors import AuditError


@dataclass(slots=True)
class Place:
    """The end of a log. `seq` and `last` are the newest record's number and hash, `size` the bytes of the newest segment."""

    log: str
    segment: int = 1
    size: int = 0
    seq: int = 0
    last: str = ZEROS
    key: str | None = None  # id of the key of the newest segment
    opened: bool = False  # the newest segment has its opening record
    glue: bytes = b""  # the newline that the last line lacks
    torn: dict[str, Any] | None = None  # what a crash left behind the newest record; the next record tells of it
    unchecked: bool = False  # what it stands on could not be checked: its key is not known here
    loss: str = ""  # what is known to be gone or changed; the next record tells of it, and verify never forgets


def find_place(directory: Path, which: Which, keys: Keys, raw_head: bytes, seen: tuple[str, int, str] | None) -> Place:
    """Where the next record goes. `seen` is the newest record of this process: log id, number, hash.

    What is ahead wins: records behind the head (the process ended before it rewrote it), the head over a log that was cut,
    this process's memory over an older copy of both. The next record then follows one that is gone, which verify finds for
    good. Raises AuditError when the files are not a log of this version, OSError when they cannot be read.
    """
    files = segments(directory, which)
    head = unpack(raw_head, keys)
    if isinstance(head, Head):
        place = _after_head(directory, which, keys, head, files)
    elif any(file.size for file in files):
        place = _without_head(which, keys, files)
        place.loss = f"the log had lost its head ({head}); records cut off its end before this one leave no trace"
    else:
        place = Place(secrets.token_hex(8))
        if files or not is_blank(raw_head):
            place.loss = f"the log was empty, and {head}; what it held is lost"
    if seen and (place.log != seen[0] or place.seq < seen[1] or (place.seq == seen[1] and place.last != seen[2])):
        place.loss = f"record {seen[1]} of log {seen[0]}, which this process had written, was not there: the files were deleted or replaced"
        if place.log == seen[0] or not place.seq:
            place.log, place.seq, place.last = seen
    return place


def _after_head(directory: Path, which: Which, keys: Keys, head: Head, files: list[Segment]) -> Place:
    newer = [file for file in files if file.number >= head.segment]
    if not newer or newer[0].number != head.segment:
        newer.insert(0, Segment(head.segment, segment_path(directory, which, head.segment), 0))
    walk = Walk(keys, which, log=head.log, seq=head.seq, last=head.last, key=head.key, strict=False)
    loss = ""
    if newer[0].size < head.size:
        loss = f"the log was cut: {newer[0].path.name} held {newer[0].size} bytes, and the head vouches for {head.size}"
    elif head.key != keys.current and (key := _opening_key(newer[0], head.key)) != head.key:
        loss = f"the head was forged: it is sealed with {head.key or 'no key'}, {newer[0].path.name} with {key or 'no key'}"
    else:
        loss = _follow(walk, newer, head.size)
    place = _place(walk, newer[-1], loss)
    place.unchecked = keys.digest(head.key) is None
    return place


def _opening_key(file: Segment, default: str | None) -> str | None:
    for line in lines(file.path, 0, file.size):
        parsed = parse(line)
        if parsed and parsed[1].get("kind") == "open" and isinstance(record := parsed[1].get("record"), dict):
            return record.get("key")
    return default


def _without_head(which: Which, keys: Keys, files: list[Segment]) -> Place:
    walk = Walk(keys, which, strict=False)
    newest = max(file for file in files if file.size)
    if not walk.begin_at(next(lines(newest.path, 0, newest.size))):
        raise AuditError(
            f"{newest.path} is not a log of this version and has no head, so nothing is appended to it.",
            hint="move it elsewhere or name another PROXMOX_AUDIT_DIR, then call again; `pve-mcp audit verify-legacy` checks logs of 1.x",
        )
    _follow(walk, [newest], 0)
    return _place(walk, newest, "")


def _follow(walk: Walk, files: list[Segment], start: int) -> str:
    """Move on through everything that follows; what is wrong with the first line that does not."""
    for file in files:
        walk.enter(file.number, file.path.name, opened=start > 0)
        try:
            for line in lines(file.path, start, file.size):
                walk.feed(line)
        except Flaw as flaw:
            return f"{flaw.file}, behind record {walk.seq}: {flaw.what}"
        start = 0
    return ""


def _place(walk: Walk, newest: Segment, loss: str) -> Place:
    opened = walk.opened or (bool(loss) and newest.size > 0)
    glue = b""
    if newest.size > 0:
        with open(newest.path, "rb") as file:
            file.seek(newest.size - 1)
            glue = b"" if file.read() == b"\n" else b"\n"
    torn = None if loss else walk.torn
    return Place(walk.log, newest.number, newest.size, walk.seq, walk.last, walk.key, opened, glue, torn, loss=loss)
