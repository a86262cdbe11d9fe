"""The files of a log: their names, and their lines forwards and backwards without holding a file in memory."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from proxmox_mcp.audit.disk import irregular

Which = Literal["host", "vm", "api"]
STEMS: dict[Which, str] = {"host": "_host_ssh_audit", "vm": "_vm_ssh_audit", "api": "_api_audit"}
_CHUNK = 1 << 20


class Segment(NamedTuple):
    """One file of the log; `number` counts from 1."""

    number: int
    path: Path
    size: int  # bytes


def segment_path(directory: Path, which: Which, number: int) -> Path:
    """`_api_audit.log`, then `_api_audit.2.log` and so on: the highest number is the newest, no file is ever renamed."""
    return directory / (f"{STEMS[which]}.log" if number == 1 else f"{STEMS[which]}.{number}.log")


def head_path(directory: Path, which: Which) -> Path:
    return directory / f"{STEMS[which]}.head"


def segments(directory: Path, which: Which) -> list[Segment]:
    """What is there, in order; [] when the directory does not exist. Raises OSError."""
    pattern = re.compile(re.escape(STEMS[which]) + r"(?:\.([1-9][0-9]{0,8}))?\.log")
    try:
        entries = list(os.scandir(directory))
    except FileNotFoundError:
        return []
    named = [(match, entry) for entry in entries if (match := pattern.fullmatch(entry.name)) and match[1] != "1"]
    return sorted(Segment(int(match[1] or 1), Path(entry.path), _size(entry.path)) for match, entry in named)


def _size(path: str) -> int:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise irregular(path)
    return status.st_size


def lines(path: Path, start: int, end: int) -> Iterator[bytes]:
    """The lines between two offsets, without their newlines; the last one may lack it. Only the byte 0x0A ends a line."""
    if start >= end:
        return
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        left = end - start
        begun: list[bytes] = []
        while left > 0 and (chunk := file.read(min(left, _CHUNK))):
            left -= len(chunk)
            whole = chunk.split(b"\n")
            if len(whole) == 1:
                begun.append(chunk)
                continue
            begun.append(whole[0])
            whole[0] = b"".join(begun)
            begun = [whole.pop()]
            yield from whole
        if rest := b"".join(begun):
            yield rest


def lines_backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file, the last one first, without their newlines."""
    with open(path, "rb", buffering=0) as file:
        position = file.seek(0, os.SEEK_END)
        if position == 0:
            return
        file.seek(position - 1)
        if file.read(1) == b"\n":
            position -= 1
        parts: list[bytes] = []  # of the line whose beginning was not reached yet, its end first
        while position > 0:
            size = min(_CHUNK, position)
            position -= size
            file.seek(position)
            *whole, end = file.read(size).split(b"\n")
            parts.append(end)
            for line in reversed(whole):
                yield b"".join(reversed(parts))
                parts = [line]
        yield b"".join(reversed(parts))
