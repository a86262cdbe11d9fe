"""Read tools while one of their requests fails or is answered wrongly: an error, or an answer that shows no other number and says what is
missing.

More wrong values: PVE_MCP_FAULTS=60 python -m pytest tests/faults
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from proxmox_mcp import pipeline
from proxmox_mcp.arguments import Listing
from proxmox_mcp.errors import ProxmoxMcpError
from tests.cluster import ServedCluster, served_cluster
from tests.faults.direct import MISSING, Direct, Twist, places, reaching, same
from tests.served_api import Reply, Request
from tests.tools.asking import NoPerson, read_tools
from tests.tools.test_read_tools import CALLS, arguments

pytestmark = pytest.mark.anyio
NOW = 1_796_091_400
EACH = int(os.environ.get("PVE_MCP_FAULTS", "4"))  # values of each answer
# no number among them: what is shown instead of a number must be nothing
WORTHLESS: tuple[Any, ...] = (None, "", "x", [], {}, [None], ["a"], [[]], [{}], {"a": None}, MISSING)
# counts, and totals per kind of content, "at least what they say" where a volume's size is unknown
COUNTS = {"count", "remaining", "_truncated_items", "volumes", "by_content.size"}
# a row in which one of these is wrong says that it is about something else
IDENTITIES = {"content", "format", "upid", "name"}
# what is right, but comes to light only when something else is unknown: a page of volumes begins elsewhere, no swap to speak of is told
ALLOWED = {"storage_usage_detail": ("size", "vmid"), "get_node_status": ("swap_used",)}
REFUSED = "Permission check failed (/, Sys.Audit)"


def _broken(_: Request) -> Reply:
    raise httpx.ReadError("connection reset")


def _silent(_: Request) -> Reply:
    raise httpx.ReadTimeout("no answer")


FAULTS: dict[str, Callable[[Request], Reply]] = {
    "403": lambda _: Reply(403, REFUSED, message=REFUSED),
    "500": lambda _: Reply(500, "the moon is in the wrong phase"),
    "501": lambda _: Reply(501, "Method not implemented"),
    "502": lambda _: Reply(502, "Bad Gateway", body="<html>", content_type="text/html"),
    "595": lambda _: Reply(595, "No route to host"),
    "596": lambda _: Reply(596, "Connection timed out"),
    "html": lambda _: Reply(body="<html>", content_type="text/html"),
    "half of it": lambda _: Reply(body='{"data":[{"vmid":10'),
    "nothing": lambda _: Reply(body=""),
    "cut": _broken,
    "no answer": _silent,
}


def cluster() -> ServedCluster:
    """Not served: the requests go straight to it."""
    api = served_cluster(nodes=2, guests=12, troubles=True, now=NOW)
    api.on("GET", "/cluster/jobs/schedule-analyze", lambda _: [{"timestamp": NOW + 86_400 * n, "utc": "x"} for n in range(10)])
    return api


async def ask(api: ServedCluster, name: str, twist: Twist | None = None) -> tuple[dict[str, Any] | None, Direct]:
    """The whole answer as JSON; None for an error that says what went wrong."""
    app, wire = reaching(api, twist, clock=NOW)
    tool = read_tools()[name]
    whole = {"limit": 10_000} if issubclass(tool.model, Listing) else {}
    try:
        found = await pipeline.run(tool, {**arguments(name, api), **whole, "response_format": "json"}, app, NoPerson())
        assert isinstance(found, pipeline.Result)
        return json.loads(found.text), wire
    except ProxmoxMcpError:
        return None, wire
    finally:
        await app.close()


def leaves(value: Any, under: str = "") -> Iterator[tuple[str, Any]]:
    """(name, value) of everything that is shown, notes apart."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in ("notes", "cursor"):
                yield from leaves(item, "by_content.size" if (under, key) == ("by_content", "size") else key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, under)
    else:
        yield under, value


def other_numbers(found: dict[str, Any], healthy: dict[str, Any]) -> list[tuple[str, Any]]:
    """Numbers that are shown now and were not before; of rows that are missing the count may tell, where a note does too."""
    new = Counter(leaves(found)) - Counter(leaves(healthy))
    told = found.get("notes") != healthy.get("notes")
    numbers = [(name, value) for name, value in new if isinstance(value, int | float) and not isinstance(value, bool)]
    return [(name, value) for name, value in numbers if not (told and name in COUNTS)]


@pytest.mark.parametrize("name", sorted(CALLS))
async def test_what_a_failed_request_would_have_shown_is_said_to_be_missing(name: str) -> None:
    api = cluster()
    healthy, wire = await ask(api, name)
    assert healthy is not None
    for target in dict.fromkeys(request.target for request in wire.seen):
        for kind in random.Random(f"{name}{target}").sample(sorted(FAULTS), min(len(FAULTS), EACH)):
            fault = FAULTS[kind]
            found, _ = await ask(
                api, name, lambda request, reply, at=target, fault=fault: fault(request) if request.target == at else reply
            )
            if found is None:
                continue
            assert not other_numbers(found, healthy), (target, kind)
            if Counter(leaves(healthy)) - Counter(leaves(found)):
                assert set(found.get("notes", ())) - set(healthy.get("notes", ())), (target, kind)


@pytest.mark.parametrize("name", sorted(CALLS))
async def test_a_worthless_value_is_never_shown_as_a_number(name: str) -> None:
    api = cluster()
    healthy, wire = await ask(api, name)
    assert healthy is not None
    answers = {request.target: json.loads(json.dumps(data)) for request, data in zip(wire.seen, wire.answers, strict=True)}
    for target, data in answers.items():
        dice = random.Random(f"{name}{target}")
        chances = [(way, junk) for way in places(data) for junk in WORTHLESS if not _legitimate(data, way, junk)]
        for way, junk in dice.sample(chances, min(len(chances), EACH)):
            found, _ = await ask(api, name, same(target, "GET", way, junk))
            if found is not None:
                wrong = [(under, value) for under, value in other_numbers(found, healthy) if under not in ALLOWED.get(name, ())]
                assert not wrong, (target, way, junk)


def _legitimate(data: Any, way: tuple[Any, ...], junk: Any) -> bool:
    """Whether the answer would still be of Proxmox's form: a shorter list, an object of which little is known or about something else."""
    if not way:
        return junk in (([], [{}]) if isinstance(data, list) else ({}, {"a": None}))
    row = isinstance(data, list) and len(way) == 1 and junk in ({}, {"a": None})
    fewer = (junk is MISSING and isinstance(way[-1], int)) or (way[-1] == "children" and (junk is MISSING or junk == []))
    return row or fewer or way[-1] in IDENTITIES
