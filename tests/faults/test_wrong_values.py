"""Answers of Proxmox in which a value is missing or of another type, under every change: no crash, nothing on a guess, no wrong "Done".

More of them: PVE_MCP_FAULTS=40 python -m pytest tests/faults
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import pipeline
from proxmox_mcp.errors import ProxmoxMcpError
from tests.cluster import ServedCluster, served_cluster
from tests.faults.direct import JUNK, MISSING, Direct, Twist, places, reaching, same
from tests.piped import FakePerson
from tests.tools.changes import NOW, Changes, guests, tool
from tests.tools.test_changing_tools import CASES, Case

pytestmark = pytest.mark.anyio
EACH = int(os.environ.get("PVE_MCP_FAULTS", "3"))  # values of each answer
# what an answer to a change or the end of its task says
DECIDING = ("status", "exitstatus")


async def attempt(case: Case, tmp_path: Path, twist: Twist | None = None) -> tuple[str, Direct]:
    """The text of the answer or of the error."""
    api: ServedCluster = served_cluster(2, 0, now=NOW)  # not served: the requests go straight to it
    api.world.guests = guests()
    for guest in api.world.guests.values():
        api.world._disk(guest)
    app, wire = reaching(api, twist, audit_dir=tmp_path, approval="off", max_wait=0.05)
    case.prepare(Changes(api, app, tmp_path))
    try:
        found = await pipeline.run(tool(case.tool), {**case.arguments, **case.opened}, app, FakePerson())
        assert isinstance(found, pipeline.Result)
        return found.text, wire
    except ProxmoxMcpError as error:
        return str(error), wire
    finally:
        await app.close()


def wrong(case: Case, wire: Direct) -> Iterator[tuple[str, str, tuple[Any, ...], Any]]:
    """Method and target of a request, and what becomes of which value of its answer."""
    answers = {(request.method, request.target): data for request, data in zip(wire.seen, wire.answers, strict=True)}
    for (method, target), data in answers.items():
        dice = random.Random(f"{case}{target}")
        chances = [(way, junk) for way in places(json.loads(json.dumps(data))) for junk in (*JUNK, MISSING)]
        yield from ((method, target, way, junk) for way, junk in dice.sample(chances, min(len(chances), EACH)))


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_no_value_of_an_answer_makes_a_change_crash_or_lie(case: Case, tmp_path: Path) -> None:
    text, healthy = await attempt(case, tmp_path)
    assert text.startswith("Done")
    for method, target, way, junk in wrong(case, healthy):
        text, wire = await attempt(case, tmp_path, same(target, method, way, junk))
        where = (method, target, way, junk, text)
        assert text, where
        writes = [request for request in wire.seen if request.method != "GET"]
        assert len(writes) <= 1, where
        if not writes:
            assert not text.startswith(("Done", "Started")), where
        if case.task and (method != "GET" or (target.endswith("/status") and "/tasks/" in target)) and (not way or way[-1] in DECIDING):
            assert not text.startswith("Done"), where
