"""The audit log, verified and shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
from pydantic import AfterValidator, Field

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Reading, between
from proxmox_mcp.plan import Answer
from proxmox_mcp.registry import tool

if TYPE_CHECKING:
    from proxmox_mcp.audit import Report, Which

WHICH: tuple[Which, ...] = ("host", "vm", "api")


class AuditVerify(Reading):
    which: Literal["host", "vm", "api", "all"] = "all"
    tail: Annotated[int, AfterValidator(between(0, 200)), Field(description="newest records to show")] = 0


@tool(
    "proxmox_audit_verify",
    "Verify the tamper-evident audit logs of node commands (host), guest commands (vm) and API changes (api).",
    title="Verify audit log",
    group="audit",
    model=AuditVerify,
)
async def audit_verify(args: AuditVerify, call: Call) -> Answer:
    """INTACT, INTACT WITH REMARKS, BROKEN (first offending line) or NOTHING RECORDED, a log each; the newest `tail` records as JSON lines.

    audit log: 1 BROKEN, 1 INTACT, 1 NOTHING RECORDED
    api: BROKEN, 12 records before the problem
      problem: _api_audit.log, line 13: changed ...
    """
    from proxmox_mcp.audit import tail, verify

    logs: tuple[Which, ...] = WHICH if args.which == "all" else (args.which,)
    keys, directory = call.app.audit_keys, call.app.audit_dir
    # a log of a million lines takes seconds: not on the event loop
    reports = [await anyio.to_thread.run_sync(verify, directory, which, keys) for which in logs]
    verdicts = [report.verdict for report in reports]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(sorted(verdicts)))
    newest = [json.dumps(record) for which in logs for record in await anyio.to_thread.run_sync(tail, directory, which, args.tail)]
    return Answer(
        f"audit log: {counts}",
        lines=() if args.response_format == "json" else _lines(reports),
        record={report.which: report.as_dict() for report in reports} if args.response_format == "json" else {"directory": str(directory)},
        text="\n".join(newest) if newest else None,
        text_source=f"newest {args.tail} records",
    )


def _lines(reports: Sequence[Report]) -> tuple[str, ...]:
    """Each log's report; what cannot be proved of several is said once."""
    limits: dict[str, list[str]] = {}
    for report in reports:
        for limit in report.cannot_prove:
            limits.setdefault(limit, []).append(report.which)
    told = [line for report in reports for line in replace(report, cannot_prove=()).text().splitlines()]
    return (*told, *(f"cannot prove ({', '.join(names)}): {limit}" for limit, names in limits.items()))
