"""A clock that is wrong or jumps: every read still answers, what Proxmox said stays as it is, the audit chain holds."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from proxmox_mcp import audit, pipeline
from proxmox_mcp.app import App
from proxmox_mcp.audit import record
from tests.faults.direct import reaching
from tests.faults.test_reads import NOW, cluster, leaves
from tests.piped import POWER, FakePerson, piped
from tests.tools.asking import NoPerson, read_tools
from tests.tools.test_read_tools import CALLS, arguments

pytestmark = pytest.mark.anyio
YEAR = 31_557_600
CLOCKS = {"1970": 0.0, "before": -1e9, "a year behind": NOW - YEAR, "a year ahead": NOW + YEAR, "far": 1e11, "beyond": 2.0**62}
# ages and what is judged by them
AGED = {"duration", "age", "ended", "state", "count"}


async def ask(name: str, clock: float, format_: str) -> str:
    api = cluster()
    app, _ = reaching(api, clock=clock)
    try:
        found = await pipeline.run(read_tools()[name], {**arguments(name, api), "response_format": format_}, app, NoPerson())
        assert isinstance(found, pipeline.Result)
        return found.text
    finally:
        await app.close()


@pytest.mark.parametrize("when", CLOCKS)
async def test_a_wrong_clock_changes_ages_alone(when: str) -> None:
    for name in sorted(set(CALLS) - {"health_overview"}):
        right, wrong = [json.loads(await ask(name, clock, "json")) for clock in (NOW, CLOCKS[when])]
        changed = {under for under, _ in Counter(leaves(right)) - Counter(leaves(wrong))}
        assert changed <= AGED, (name, changed)


@pytest.mark.parametrize("when", CLOCKS)
async def test_no_age_is_negative(when: str) -> None:
    for name in sorted(CALLS):
        text = await ask(name, CLOCKS[when], "markdown")
        assert not re.search(r"(?<![\w.:+-])-[0-9.]+[smhdw]", text), name


async def test_a_clock_that_jumps_between_two_looks(tmp_path: Path) -> None:
    jumps = itertools.cycle((NOW, 0.0, 2.0**62, NOW - YEAR))
    api = cluster()
    app, _ = reaching(api)
    app.clock = lambda: next(jumps)
    try:
        for name in sorted(CALLS):
            found = await pipeline.run(read_tools()[name], arguments(name, api), app, NoPerson())
            assert isinstance(found, pipeline.Result)
    finally:
        await app.close()


async def test_the_record_of_a_change_holds_while_the_clock_runs_backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = itertools.count(NOW * 10**9, -(10**12))
    monkeypatch.setattr(record, "time_ns", lambda: next(moments))
    async with piped(tmp_path, max_wait=2) as (api, app):
        assert isinstance(app, App)
        for _ in range(3):
            await pipeline.run(POWER, {"vmid": 101, "action": "shutdown", "confirm": True, "wait_seconds": 1}, app, FakePerson())
        report = audit.verify(tmp_path / "audit", "api", app.audit_keys)
        assert (report.verdict, report.records) == ("INTACT", 7)
        assert len(api.writes) == 3
