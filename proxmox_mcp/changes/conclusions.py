"""What a carried-out plan has to say: how its steps ended, and what was read of the object afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proxmox_mcp.plan import Answer, Column, StepResult


def done(
    summary: str,
    results: Sequence[StepResult],
    facts: Mapping[str, Any] | None = None,
    *,
    columns: tuple[Column, ...] = (),
    notes: Sequence[str] = (),
) -> Answer:
    """The answer of a plan whose steps all did their work; warnings of its tasks are quoted, `facts` that are None are left out."""
    warned = [line for result in results if result.state == "warnings" for line in result.text.splitlines()]
    record: dict[str, Any] = {name: value for name, value in (facts or {}).items() if value is not None}
    if warned:
        record["warnings"] = warned
    record |= {"upid": ", ".join(result.upid for result in results if result.upid)} if any(result.upid for result in results) else {}
    title = ("Done, with warnings: " if warned else "Done: ") + summary
    return Answer(title, record=record, columns=columns, notes=tuple(notes))
