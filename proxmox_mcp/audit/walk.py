"""Following the chain line by line: what verify does with a whole log, and an append with the lines behind the head."""

from __future__ import annotations

import hashlib
from typing import Any

from proxmox_mcp.audit.keys import Digest, Keys
from proxmox_mcp.audit.record import ZEROS, hashed_part, is_id, own_hash, parse


class Flaw(Exception):
    """The chain ends here: `what` is wrong in `line` (from 1; 0 for the whole file) of `file`. `due` is a record that is absent."""

    def __init__(self, file: str, line: int, what: str, *, due: int | None = None) -> None:
        self.file, self.line, self.what, self.due = file, line, what, due
        super().__init__(what)


class Walk:
    """A position in the chain that moves on with every line that follows it.

    Lines that are no JSON objects are held back: they are what a crash left of a line, if the next record tells of them.
    """

    def __init__(
        self, keys: Keys, which: str, *, log: str = "", seq: int = 0, last: str = ZEROS, key: str | None = None, strict: bool = True
    ) -> None:
        self._keys, self._which, self._strict = keys, which, strict  # not strict: without its key a segment's hashes are taken as they are
        self.log, self.seq, self.last, self.key = log, seq, last, key
        self.opened = False  # the segment has its opening record
        self.file, self.line, self._segment = "", 0, 0
        self._digest: Digest | None = keys.digest(key)
        self._debris: Any = None  # running hash of the lines held back
        self._debris_size = 0
        self.held: Flaw | None = None  # what the first line held back is, if no record tells of it

    def enter(self, segment: int, file: str, *, opened: bool = False) -> None:
        """The next line is the first one of this segment, or (`opened`) one behind its opening record."""
        self._segment, self.file, self.line, self.opened = segment, file, 0, opened

    def begin_at(self, line: bytes) -> bool:
        """Take the place before an opening record as given; False when the line is none."""
        parsed = parse(line)
        fields = parsed[1] if parsed else {}
        log: Any
        prev: Any
        log, seq, prev = fields.get("log"), fields.get("seq"), fields.get("prev")
        if fields.get("kind") != "open" or type(seq) is not int or not is_id(log) or not is_id(prev, 64):
            return False
        self.log, self.seq, self.last = log, seq - 1, prev
        return True

    def feed(self, line: bytes) -> dict[str, Any] | None:
        """The record on this line, which is the next one of the chain; None when the line is held back. Raises Flaw."""
        self.line += 1
        parsed = parse(line)
        if parsed is None:
            self._hold(line)
            return None
        text, fields = parsed
        digest, key = self._digest, self.key
        opening = fields.get("kind") == "open"
        if opening and not self.opened:
            key = self._key_of(fields)
            digest = self._keys.digest(key)
        own = own_hash(text, line, digest)
        if (
            own is None
            or fields.get("prev") != self.last
            or fields.get("seq") != self.seq + 1
            or fields.get("log") != self.log
            or opening == self.opened
        ):
            raise self.held or self._explain(line, fields, own, opening)
        if self._debris is not None or "torn" in fields:
            self._settle(fields)
        if opening:
            self.opened, self.key, self._digest = True, key, digest
        self.seq += 1
        self.last = own
        return fields

    @property
    def torn(self) -> dict[str, Any] | None:
        """Size and SHA-256 of the lines held back, None when there are none."""
        return None if self._debris is None else {"bytes": self._debris_size, "sha256": self._debris.hexdigest()}

    def _hold(self, line: bytes) -> None:
        if self._debris is None:
            self._debris, self._debris_size = hashlib.sha256(line), len(line)
            self.held = self._flaw("changed: this is not a record, and no record after it tells of a line torn by a crash")
        else:
            self._debris.update(b"\n" + line)
            self._debris_size += 1 + len(line)

    def _settle(self, fields: dict[str, Any]) -> None:
        if fields.get("torn") != self.torn:
            raise self.held or self._flaw("missing: the torn line that this record tells of is not before it")
        self._debris = self.held = None

    def _key_of(self, fields: dict[str, Any]) -> str | None:
        opening = fields.get("record")
        if not isinstance(opening, dict) or opening.get("which") != self._which or opening.get("segment") != self._segment:
            raise self.held or self._flaw("forged: the opening record is not the one of this file")
        key: str | None = opening.get("key")
        if key is not None and not is_id(key):
            raise self._flaw("forged: the opening record names no key in a way that this version knows")
        if key is None and self.key is not None:
            raise self._flaw("forged: a segment without a key follows segments with one")
        if self._strict and self._keys.digest(key) is None:
            known = f"is not among the {len(self._keys)} known here" if len(self._keys) else "is needed to check it, and no key is set"
            raise self._flaw(f"wrong key: this segment was written with the key {key}, which {known}")
        if not self.log:
            self.log = str(fields.get("log"))
        return key

    def _explain(self, line: bytes, fields: dict[str, Any], own: str | None, opening: bool) -> Flaw:
        if own is None or not (self.opened or opening):
            if not {"kind", "log", "prev", "seq"} <= fields.keys():
                return self._flaw("this is not a log of this version" if self.seq == 0 else "changed: this is not a record of this log")
            if "hash" not in fields:
                return self._flaw("unhashed: the record has no hash")
            if not self.opened and not opening:
                return self._flaw("missing: the opening record of the segment is due here", due=self.seq + 1)
            if self.key is not None and fields["hash"] == hashlib.sha256(hashed_part(line)).hexdigest():
                return self._flaw("forged: the record is hashed without the key")
            return self._flaw("changed: the line does not match its own hash")
        seq, due = fields.get("seq"), self.seq + 1
        if not isinstance(seq, int) or fields.get("log") != self.log:
            return self._flaw("forged: the record belongs to another log")
        if seq > due:
            return self._flaw(f"missing: record {due} is due here and record {seq} follows", due=due)
        if seq < due:
            return self._flaw(f"duplicated or reordered: record {seq} stands where record {due} is due")
        if fields.get("prev") != self.last:
            return self._flaw("forged: the record does not follow the one before it; one of the two was replaced")
        return self._flaw("forged: an opening record stands inside a segment")

    def _flaw(self, what: str, *, due: int | None = None) -> Flaw:
        return Flaw(self.file, self.line, what, due=due)
