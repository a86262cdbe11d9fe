"""Verifying a log of pve-mcp 1.x, as far as its format allows: a chain without record numbers, without a head, without a lock.

A line is a JSON object; `hash` is SHA-256, or HMAC-SHA256 with a key, over its other fields as JSON (keys sorted, no blanks, UTF-8), `prev`
the hash of the line before. That version began the chain anew ("" as `prev`) behind a line that it could not read back.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proxmox_mcp.audit.files import lines
from proxmox_mcp.audit.keys import Digest, Keys
from proxmox_mcp.audit.report import Problem, Verdict
from proxmox_mcp.audit.walk import Flaw
from proxmox_mcp.errors import AuditError

_LISTED = 20  # remarks of one sort that are written out
_NEIGHBOURS = 1000  # lines among which two processes may have written at the same time
_READ_BACK = 65_536  # bytes of the file's end that 1.x looked at for the last hash
_SPLIT = ("\x85", "\u2028", "\u2029")  # characters at which it took a line for two
_ALWAYS = (
    "that no lines were cut off its end: nothing outside the file says how many there were",
    "that every command stands in it: 1.x wrote a line after the command, and went on when it could not write",
    "the very bytes of a line: the hash is over what it means, so blanks and escapes may have been changed",
)
_NO_KEY = "that nobody rewrote it as a whole: no key seals it, so whoever could write the file could do that unseen"
_KEY = "that nobody who has the key rewrote it"


@dataclass(frozen=True, slots=True)
class LegacyReport:
    """What was found. `lines` counts those that are not blank, `chained` those that hold, up to the first problem if there is one."""

    file: str
    verdict: Verdict
    lines: int
    chained: int
    sealed: int  # of the chained ones, with a known key
    first_problem: Problem | None = None
    remarks: tuple[str, ...] = ()
    cannot_prove: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return asdict(self)

    def text(self) -> str:
        """A few lines for a person:

        _host_ssh_audit.log (1.x): INTACT WITH REMARKS, 128 of 130 lines chained, 128 sealed with a key
          remark: line 17 is no readable record: torn by a crash, or damaged
          cannot prove: that nobody who has the key rewrote it
        """
        sealed = f", {self.sealed:,} sealed with a key" if self.sealed else ""
        before = " before the problem" if self.first_problem else ""
        found = [f"{self.file} (1.x): {self.verdict}, {self.chained:,} of {self.lines:,} lines chained{sealed}{before}"]
        if self.first_problem:
            found.append(f"problem: {self.first_problem}")
        found += [f"remark: {remark}" for remark in self.remarks]
        found += [f"cannot prove: {limit}" for limit in self.cannot_prove]
        return "\n  ".join(found)


def verify_legacy(path: Path, keys: Keys) -> LegacyReport:
    """Check a whole log of 1.x. Memory stays flat. Raises AuditError when it cannot be read or is a log of this version."""
    check = _Check(path, keys)
    problem = None
    try:
        check.follow()
    except OSError as exc:
        raise AuditError(f"The log {path} cannot be read.", said=exc.strerror or str(exc), hint="name the file of the old log") from None
    except Flaw as flaw:
        problem = Problem(flaw.file, flaw.line, flaw.what)
    if problem:
        return LegacyReport(path.name, "BROKEN", check.lines, check.chained, check.sealed, problem)
    if not check.lines:
        return LegacyReport(path.name, "NOTHING RECORDED", 0, 0, 0, cannot_prove=("that nothing was ever recorded",))
    remarks = tuple(check.remarks())
    limits = (*_ALWAYS, _KEY if check.sealed == check.chained and check.sealed else _NO_KEY)
    verdict: Verdict = "INTACT WITH REMARKS" if remarks else "INTACT"
    return LegacyReport(path.name, verdict, check.lines, check.chained, check.sealed, None, remarks, limits)


class _Check:
    """Follows one file; what 1.x itself could leave behind is a remark, everything else a Flaw."""

    def __init__(self, path: Path, keys: Keys) -> None:
        self._path, self._keys = path, keys
        self._digests: list[Digest] = [digest for key in keys.ids if (digest := keys.digest(key))]
        plain = Keys.none().digest(None)
        assert plain is not None
        self._plain = plain
        self.lines = self.chained = self.sealed = 0
        self._first_sealed = 0
        self._recent: deque[str] = deque(maxlen=_NEIGHBOURS)
        self._last = ""  # the hash that the next line should follow
        self._begins = True  # nothing stands before, or nothing that 1.x could read back
        self._notes: dict[str, list[str]] = {}

    def follow(self) -> None:
        for number, raw in enumerate(lines(self._path, 0, self._path.stat().st_size), 1):
            line = raw.rstrip(b"\r")
            if not line.strip():
                continue
            self.lines += 1
            fields = _fields(line)
            if fields is None:
                self._note("torn", f"line {number} is no readable record: torn by a crash, or damaged")
                self._begins = True
            elif "seq" in fields and "log" in fields and "hash" in fields:
                raise AuditError(f"{self._path} is a log of this version.", hint="verify it with: pve-mcp audit verify")
            elif "hash" not in fields:
                self._note("unchained", f"line {number} is not chained (as before version 1.1): nothing vouches for it")
                self._begins = True
            else:
                self._chained(number, fields)
                self._begins = len(line) >= _READ_BACK or any(mark in line.decode("utf-8") for mark in _SPLIT)

    def _chained(self, number: int, fields: dict[str, Any]) -> None:
        stored, prev = fields.pop("hash"), fields.get("prev")
        sealed = self._matches(number, fields, stored)
        if stored in self._recent:
            raise Flaw(self._path.name, number, "repeated: this line stands in the log twice")
        if prev != self._last:
            self._joint(number, prev)
        if self.sealed and not sealed:
            raise Flaw(self._path.name, number, "not sealed with a key, as earlier lines are: forged, or the key was taken away")
        if sealed and not self.sealed:
            self._first_sealed = number
        self.chained += 1
        self.sealed += sealed
        self._last = stored
        self._recent.append(stored)

    def _matches(self, number: int, fields: dict[str, Any], stored: object) -> bool:
        """Whether a key seals the line; a Flaw when neither a key nor plain SHA-256 gives its hash."""
        try:
            body = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            body = b""
        if any(digest(body) == stored for digest in self._digests):
            return True
        if self._plain(body) == stored:
            return False
        key = "sealed with a key that is not known here" if not self._digests else "sealed with another key"
        raise Flaw(self._path.name, number, f"changed, or {key}: its hash is not that of what it says")

    def _joint(self, number: int, prev: object) -> None:
        if prev == "" and self._begins:
            self._note("anew", f"line {number} begins the chain anew, as 1.x did behind a line it could not read back")
        elif prev == "":
            raise Flaw(self._path.name, number, "the chain begins anew behind a whole line: logs were joined, or lines taken out")
        elif prev in self._recent:
            self._note("side by side", f"line {number} does not follow the line before it, but an earlier one: two servers wrote at once")
        elif not self.chained:
            raise Flaw(self._path.name, number, "cut off: lines before this one are missing")
        else:
            raise Flaw(self._path.name, number, "lines before this one are missing, changed or out of order")

    def _note(self, sort: str, remark: str) -> None:
        self._notes.setdefault(sort, []).append(remark if len(self._notes.get(sort, ())) < _LISTED else "")

    def remarks(self) -> Iterator[str]:
        for found in self._notes.values():
            yield from found[:_LISTED]
            if len(found) > _LISTED:
                yield f"{len(found) - _LISTED} more lines like that one"
        if self._keys.ids and self.chained and not self.sealed:
            yield "a key is set, but no line is sealed with it: if 1.x had the key, the log is forged"
        if self._first_sealed and self.sealed < self.chained:
            yield f"the lines before line {self._first_sealed} are not sealed with a key: if there always was one, they are forged"


def _fields(line: bytes) -> dict[str, Any] | None:
    """The fields of a line, None when it is no JSON object or names a field twice (1.x never did)."""
    twice = False

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        found = dict(pairs)
        twice = twice or len(found) < len(pairs)
        return found

    try:
        fields = json.loads(line.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and not twice else None
