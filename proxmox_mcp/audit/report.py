"""What verify found, as data and as text for a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from proxmox_mcp.audit.files import Which

Verdict = Literal["INTACT", "INTACT WITH REMARKS", "BROKEN", "NOTHING RECORDED"]


@dataclass(frozen=True, slots=True)
class Problem:
    """The first thing that is wrong: in line `line` (from 1; 0 for the whole file) of `file`."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest record; noted elsewhere, it proves later that nothing up to it is missing."""

    seq: int
    hash: str
    time: str


@dataclass(frozen=True, slots=True)
class Report:
    """What verify found. `records` is the number of records that hold, up to the first problem if there is one."""

    which: Which
    verdict: Verdict
    records: int
    first_problem: Problem | None = None
    remarks: tuple[str, ...] = ()
    cannot_prove: tuple[str, ...] = ()
    newest: Newest | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return asdict(self)

    def text(self) -> str:
        """A few lines for a person:

        api: INTACT WITH REMARKS, 3 records
          newest: record 3 of 2026-03-01T01:00:00.000000+00:00, hash 5e9c...
          remark: intent 3 (proxmox_start_vm, 2026-03-01T01:00:00.000000+00:00) has no outcome
          cannot prove: that nobody who has the key rewrote them
        """
        counted = f"{self.records:,} record{'' if self.records == 1 else 's'}"
        found = [f"{self.which}: {self.verdict}, {counted}{' before the problem' if self.first_problem else ''}"]
        if self.first_problem:
            found.append(f"problem: {self.first_problem}")
        if self.newest:
            found.append(f"newest: record {self.newest.seq} of {self.newest.time}, hash {self.newest.hash}")
        found += [f"remark: {remark}" for remark in self.remarks]
        found += [f"cannot prove: {limit}" for limit in self.cannot_prove]
        return "\n  ".join(found)
