"""Verifying: does the whole chain hold, does the head agree, and what could nobody tell from these files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from proxmox_mcp.audit import lock
from proxmox_mcp.audit.files import Segment, Which, head_path, lines, segment_path, segments
from proxmox_mcp.audit.head import SIZE, Head, is_blank, unpack
from proxmox_mcp.audit.keys import Keys
from proxmox_mcp.audit.record import encode
from proxmox_mcp.audit.report import Newest, Problem, Report
from proxmox_mcp.audit.walk import Flaw, Walk
from proxmox_mcp.errors import AuditError

_LISTED = 20  # remarks of one sort that are written out
_OLD_COPIES = (
    "that log and head were not both put back to older copies, which drops the newest records without a trace: "
    "note number and hash of the newest record elsewhere, and compare"
)
_NO_KEY = "that nobody rewrote log and head as a whole: no key seals them, so whoever can write the files can do that unseen"
_KEY = "that nobody who has the key rewrote them"
_NOTHING = "that nothing was ever recorded: a log deleted together with its head looks the same"


def verify(directory: Path, which: Which, keys: Keys, *, expect: tuple[int, str] | None = None) -> Report:
    """Check a whole log. `expect` is the number and hash of a record that was noted elsewhere: the log must still hold it.

    Memory stays flat, apart from some bytes for every intent without an outcome. Raises AuditError when the files cannot be read.
    """
    try:
        return _Check(directory, which, keys, *_snapshot(directory, which), expect).report()
    except OSError as exc:
        raise AuditError(
            f"The audit log {exc.filename or directory} cannot be read.",
            said=exc.strerror or str(exc),
            hint="verify as the user that runs the server",
        ) from None


def _snapshot(directory: Path, which: Which) -> tuple[bytes | None, list[Segment]]:
    """Head (None: no such file) and segments with their sizes, as no append is under way."""
    path = head_path(directory, which)
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None, segments(directory, which)
    try:
        lock.acquire(fd, os.fspath(path), shared=True)
        try:
            os.lseek(fd, 0, os.SEEK_SET)
            return os.read(fd, SIZE + 1), segments(directory, which)
        finally:
            lock.release(fd)
    finally:
        os.close(fd)


class _Check:
    """One verification: follows the chain, then holds it against the keys, the head and the record noted elsewhere."""

    def __init__(
        self, directory: Path, which: Which, keys: Keys, raw: bytes | None, files: list[Segment], expect: tuple[int, str] | None
    ) -> None:
        self._directory, self._which, self._keys, self._files, self._expect = directory, which, keys, files, expect
        self._nothing = not files and (raw is None or is_blank(raw))
        self._head: Head | str = "the head file is missing" if raw is None else unpack(raw, keys)
        self._walk = Walk(keys, which)
        self._newest: dict[str, Any] = {}
        self._watched = {expect[0]} if expect else set()
        if isinstance(self._head, Head):
            self._watched.add(max(self._head.seq, 1))
        self._met: dict[int, _Met] = {}  # what stands where the watched records are due
        self._open: dict[int, dict[str, Any] | None] = {}  # intents without an outcome so far; only the first ones whole
        self._strays = 0  # outcomes without an intent
        self._first_keyed = 0  # the first record that is written with a key
        self._found: list[str] = []  # remarks made on the way
        self._torn = 0

    def report(self) -> Report:
        problem = None
        try:
            if not self._nothing:
                self._follow()
                self._compare_keys()
                self._compare_head()
            self._compare_expected()
        except Flaw as flaw:
            problem = Problem(flaw.file, flaw.line, flaw.what)
        records = self._walk.seq
        newest = Newest(records, self._walk.last, _word(self._newest.get("time"))) if records else None
        if problem:
            return Report(self._which, "BROKEN", records, problem, newest=newest)
        remarks = tuple(self._remarks())
        if not records:
            return Report(self._which, "NOTHING RECORDED", 0, remarks=remarks, cannot_prove=(_NOTHING,))
        limits = (_OLD_COPIES, _NO_KEY if self._walk.key is None else _KEY)
        return Report(self._which, "INTACT WITH REMARKS" if remarks else "INTACT", records, None, remarks, limits, newest)

    def _lines(self) -> Iterator[bytes]:
        """The lines of all segments. Raises Flaw where one is missing."""
        vouched = self._head.segment if isinstance(self._head, Head) and self._head.seq else 0
        due = 1
        for file in self._files:
            if file.number != due:
                break
            self._walk.enter(due, file.path.name)
            yield from lines(file.path, 0, file.size)
            due += 1
        if due <= max([vouched, *(file.number for file in self._files)]):
            raise Flaw(segment_path(self._directory, self._which, due).name, 0, f"lost file: segment {due} of the log is missing")

    def _follow(self) -> None:
        walk, stream, watched = self._walk, self._lines(), self._watched
        try:
            for line in stream:
                record = walk.feed(line)
                if record is None:
                    continue
                self._newest = record
                kind = record.get("kind")
                if kind == "intent":
                    self._open[walk.seq] = record if len(self._open) < _LISTED else None
                elif kind == "outcome":
                    intent = record.get("of")
                    if type(intent) is int and intent in self._open:
                        del self._open[intent]
                    else:
                        self._strays += 1
                elif kind == "open":
                    self._opened(record["record"])
                if "torn" in record:
                    self._torn += 1
                    if self._torn <= _LISTED:
                        self._found.append(f"{walk.file}, line {walk.line}: before it, {record['torn']['bytes']} bytes of a torn line")
                if "loss" in record:
                    raise Flaw(walk.file, walk.line, f"damaged before this record was appended: {_word(record['loss'])}")
                if walk.seq in watched:
                    self._met[walk.seq] = _Met(walk.last, walk.key, walk.file, walk.line)
        except Flaw as flaw:
            if flaw.due is not None and _comes(stream, flaw.due):
                raise Flaw(flaw.file, flaw.line, f"reordered: record {flaw.due} is due here and comes later") from None
            raise

    def _opened(self, opening: dict[str, Any]) -> None:
        seq = self._walk.seq
        if self._walk.key is not None and not self._first_keyed:
            self._first_keyed = seq
        if opening.get("unchecked"):
            self._found.append(f"record {seq} began a new key without the old one: records cut off before it could not be noticed")

    def _compare_keys(self) -> None:
        if self._walk.seq and self._walk.key is None and self._keys.current is not None:
            what = "not sealed: a key is set, but the log is written without: it was forged, or nothing was recorded since the key was set"
            raise Flaw(self._files[0].path.name, 1, what)

    def _compare_head(self) -> None:
        name, walk, head = head_path(self._directory, self._which).name, self._walk, self._head
        if isinstance(head, str):
            if not walk.seq and walk.torn:
                raise Flaw(self._files[0].path.name, 1, "this is not a log of this version")
            raise Flaw(name, 0, f"lost file: {head}, so nobody can tell whether records were cut off")
        if walk.seq and head.log != walk.log:
            raise Flaw(name, 0, "forged: the head belongs to another log")
        if head.seq > walk.seq:
            missing = f"record {head.seq} is" if head.seq == walk.seq + 1 else f"records {walk.seq + 1} to {head.seq} are"
            if walk.held:
                raise Flaw(walk.held.file, walk.held.line, f"changed: this is not a record, and {missing} missing")
            raise Flaw(walk.file, walk.line + 1, f"cut tail: the log ends here, and {missing} missing")
        met = self._met.get(max(head.seq, 1))
        if met and any(file.number == head.segment and file.size < head.size for file in self._files):
            raise Flaw(met.file, met.line, f"cut tail: the file ends before byte {head.size}, which the head vouches for")
        if (met and head.key != met.key) or self._keys.digest(head.key) is None:
            raise Flaw(name, 0, "forged: the head is not sealed with the key of the record it vouches for")
        if met and head.seq and head.last != met.hash:
            raise Flaw(met.file, met.line, f"rewritten: this is not the record {head.seq} that the head vouches for")

    def _compare_expected(self) -> None:
        if self._expect:
            seq, noted = self._expect
            met = self._met.get(seq)
            if met is None:
                file = self._walk.file or segment_path(self._directory, self._which, 1).name
                raise Flaw(file, self._walk.line + 1, f"cut tail: record {seq}, noted elsewhere, is missing")
            if met.hash != noted:
                raise Flaw(met.file, met.line, f"rewritten: this is not the record {seq} that was noted elsewhere")

    def _remarks(self) -> Iterator[str]:
        walk = self._walk
        yield from self._found
        if self._torn > _LISTED:
            yield f"{self._torn - _LISTED} more torn lines are kept"
        if walk.torn:
            yield f"{walk.file} ends with {walk.torn['bytes']} bytes of a torn line; the next record will tell of them"
        if isinstance(self._head, Head) and walk.seq > self._head.seq:
            ahead = walk.seq - self._head.seq
            yield f"the log is {ahead} records ahead of its head: the process ended before it wrote the head, or an older head was put back"
        if self._first_keyed > 1:
            yield f"records 1 to {self._first_keyed - 1} were written without a key: if there always was one, they are forged"
        if self._keys.current is not None and walk.key not in (None, self._keys.current):
            yield f"the newest segment is written with the older key {walk.key}"
        for seq, intent in list(self._open.items())[:_LISTED]:
            yield f"intent {seq}{_label(intent)} has no outcome: the process ended, the call is still running, or recording it failed"
        if len(self._open) > _LISTED:
            yield f"{len(self._open) - _LISTED} more intents have no outcome"
        if self._strays:
            yield f"{self._strays} outcomes belong to no open intent of this log"


class _Met(NamedTuple):
    hash: str
    key: str | None
    file: str
    line: int


def _comes(stream: Iterator[bytes], seq: int) -> bool:
    mark = f'"seq":{seq},"time"'.encode("ascii")
    try:
        return any(mark in line for line in stream)
    except Flaw:
        return False


def _label(record: dict[str, Any] | None) -> str:
    if record is None:
        return ""
    entry = record.get("record")
    return f" ({_word(entry.get('tool') if isinstance(entry, dict) else None)}, {_word(record.get('time'))})"


def _word(value: object) -> str:
    """Text of a record, fit for a terminal: records are hostile until the chain holds."""
    return encode(value)[1:-1] if isinstance(value, str) else "?"
