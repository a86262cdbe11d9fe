"""A served API without the wire: the client's requests go straight to its handlers, and any answer can be twisted on its way back."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from proxmox_mcp.app import App
from proxmox_mcp.config import Member
from proxmox_mcp.http_client import HttpClient
from tests import served_api
from tests.served_api import SECRET, TOKEN_ID, Reply, Request, ServedApi, settings

Twist = Callable[[Request, Reply], Reply]
# what stands where something else is due
JUNK: tuple[Any, ...] = (None, "", "x", -1, 3.5, 10**30, True, [], {}, [None], [7], ["a"], [[]], [{}], {"a": None}, [{"a": None}])
MISSING = object()


class Direct(httpx.AsyncBaseTransport):
    """`seen` are the requests of this transport and `answers` what was due, unless `keep` is false; `twist` makes another answer of it."""

    def __init__(self, api: ServedApi, twist: Twist | None = None, *, keep: bool = True) -> None:
        self._api, self._twist, self._keep = api, twist, keep
        self.seen: list[Request] = []
        self.answers: list[Any] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        url = urlsplit(target)
        body = await request.aread()
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = unquote(url.path).removeprefix("/api2/json")
        asked = Request(request.method, path, target, served_api._pairs(url.query), served_api._form(headers, body), headers, body, 1)
        reply = await self._api._answer(asked)
        if self._keep:
            self.seen.append(asked)
            self.answers.append(copy.deepcopy(reply.data))
        if self._twist is not None:
            reply = self._twist(asked, reply)
        content = {"content-type": reply.content_type}
        return httpx.Response(reply.status, headers=content, content=served_api._payload(reply), extensions={"reason_phrase": b""})


def reaching(
    api: ServedApi, twist: Twist | None = None, *, clock: float | None = None, keep: bool = True, **changes: Any
) -> tuple[App, Direct]:
    """An App whose API client ends in this served API."""
    values = settings(members=(Member("127.0.0.1", 8006),), verify_tls=False, **changes)
    app = App(values, **({} if clock is None else {"clock": lambda: clock}))
    wire = Direct(api, twist, keep=keep)
    app.__dict__["api"] = HttpClient(values, transport=wire)
    assert (values.token_value, f"{values.user}!{values.token_name}") == (SECRET, TOKEN_ID)
    return app, wire


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in an answer and the answer itself; of a list the first two."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(2, len(value))):
            yield from places(value[index], (*path, index))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """The value at the end of a way."""
    for step in path:
        value = value[step]
    return value


def replaced(answer: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """A copy of the answer with this value there, or nothing (MISSING)."""
    if not path:
        return None if junk is MISSING else junk
    copied = copy.deepcopy(answer)
    inner = at(copied, path[:-1])
    if junk is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = junk
    return copied


def same(target: str, method: str, way: tuple[Any, ...], junk: Any) -> Twist:
    """Twists every answer to this request: the value at `way` becomes junk; where the way does not lead anywhere, nothing happens."""

    def twist(request: Request, reply: Reply) -> Reply:
        if (request.method, request.target) != (method, target) or reply.status >= 300:
            return reply
        try:
            data = replaced(json.loads(json.dumps(reply.data)), way, junk)
        except (KeyError, IndexError, TypeError):
            return reply
        return Reply(data=data, total=reply.total)

    return twist
