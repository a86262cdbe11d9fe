"""Answers that are not as expected: a field that is missing, null or of another type is unknown, never an exception."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest

from proxmox_mcp import pipeline
from proxmox_mcp.app import App
from proxmox_mcp.config import Member
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.http_client import HttpClient
from tests.cluster import served_cluster
from tests.served_api import settings
from tests.tools.asking import NoPerson, ask, read_tools
from tests.tools.test_read_tools import CALLS, arguments

Answers = dict[str, Any]  # by path and query
JUNK: tuple[Any, ...] = (None, "", "x", -1, 3.5, 10**30, True, [], {}, [None], [7], ["a"], [[]], [{}], {"a": None}, [{"a": None}])


@pytest.fixture(scope="module")
def recorded() -> dict[str, tuple[dict[str, Any], Answers]]:
    """For each tool its arguments, and what a healthy cluster answers to each of its requests."""

    async def record() -> dict[str, tuple[dict[str, Any], Answers]]:
        found = {}
        with served_cluster(nodes=2, guests=12, troubles=True) as api:
            api.on("GET", "/cluster/jobs/schedule-analyze", lambda request: [{"timestamp": 86_400 * n, "utc": "x"} for n in range(10)])
            client = HttpClient(settings(api))
            for name in CALLS:
                given = arguments(name, api)
                seen = len(api.requests)
                await ask(api, name, **given)
                answers = {}
                for request in api.requests[seen:]:
                    data, total = await client.get_with_total(*request.path.strip("/").split("/"), params=request.params)
                    answers[request.target] = {"data": data} | ({} if total is None else {"total": total})
                found[name] = (given, answers)
            await client.close()
        return found

    return anyio.run(record)


async def replay(name: str, given: dict[str, Any], answers: Answers, format_: str = "markdown") -> None:
    """Asks through the real client; the only allowed exceptions are those that say what went wrong."""

    def handle(request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        if target not in answers:
            return httpx.Response(501, json={"data": None, "message": "not implemented\n"})
        return httpx.Response(200, content=json.dumps(answers[target]), headers={"content-type": "application/json;charset=UTF-8"})

    reaching = settings(members=(Member("127.0.0.1", 8006),), verify_tls=False)
    app = App(reaching)
    app.__dict__["api"] = HttpClient(reaching, transport=httpx.MockTransport(handle))
    try:
        result = await pipeline.run(read_tools()[name], {**given, "response_format": format_}, app, NoPerson())
        assert isinstance(result, pipeline.Result)
        if format_ == "json":
            json.loads(result.text)
    except ProxmoxMcpError:
        pass  # it says what is wrong; anything else is a bug
    finally:
        await app.close()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in an answer, at most two of each list."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(2, len(value))):
            yield from places(value[index], (*path, index))


def changed(answer: Any, path: tuple[Any, ...], junk: Any) -> Any:
    copied = copy.deepcopy(answer)
    inner = copied
    for step in path[:-1]:
        inner = inner[step]
    if junk is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = junk
    return copied


@pytest.mark.parametrize("name", sorted(CALLS))
def test_whole_answers_of_another_type(recorded: dict[str, tuple[dict[str, Any], Answers]], name: str) -> None:
    given, answers = recorded[name]

    chance = random.Random(name)

    async def every() -> None:
        for target in answers:
            for junk in (None, *chance.sample(JUNK, 3)):
                await replay(name, given, {**answers, target: {"data": junk}})

    anyio.run(every)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_single_values_that_are_missing_or_of_another_type(recorded: dict[str, tuple[dict[str, Any], Answers]], name: str) -> None:
    given, answers = recorded[name]
    chance = random.Random(name)

    async def every() -> None:
        for target, answer in answers.items():
            ways = list(places(answer["data"]))
            for path in chance.sample(ways, min(len(ways), 150 // len(answers))):
                junk = chance.choice((*JUNK, ..., "\x1b[31m\u202e" + "y" * 3000))
                odd = {**answers, target: {**answer, "data": changed(answer["data"], path, junk)}}
                await replay(name, given, odd, chance.choice(("markdown", "json")))

    anyio.run(every)
