"""fakepve behind a wire that breaks: each answer may be slow, cut, lost, foreign or wrong, and every fault is counted."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from fakepve.certs import make_cert

from proxmox_mcp.demo import TOKEN, USER, Demo
from proxmox_mcp.demo.api import DemoCluster

FAULTS = ("slow", "hang", "drop", "cut", "500", "502", "503", "595", "596", "html", "no json", "no envelope", "wrong types", "wrong types")
SECRET = "0f0e0d0c-0000-4000-8000-0123456789ab"


class FaultyCluster(DemoCluster):
    """`rate` is the share of answers that a fault replaces. `writes` counts the requests to change something that arrived."""

    def __init__(self, seed: int, hang: float) -> None:
        super().__init__()
        self.rate, self.kinds = 0.0, FAULTS
        self.faults: Counter[str] = Counter()
        self.seen, self.writes = 0, 0
        self.time_scale = 0.02
        self._dice, self._hang = random.Random(seed), hang
        self._lock = threading.Lock()

    def _build_app(self) -> web.Application:
        application: web.Application = super()._build_app()
        application.middlewares.insert(0, self._break)
        return application

    @web.middleware
    async def _break(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.seen += 1
        self.writes += request.method != "GET"
        if self._dice.random() >= self.rate:
            answer: web.StreamResponse = await handler(request)
            return answer
        fault = self._dice.choice(self.kinds)
        self.faults[fault] += 1
        if fault == "slow":
            await asyncio.sleep(self._dice.uniform(0.05, 0.5))
            return await handler(request)  # type: ignore[no-any-return]
        if fault == "hang":
            await asyncio.sleep(self._hang)
            return web.json_response({"data": None})
        if fault == "drop":
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError("dropped")
        if fault == "cut":
            return await self._cut(request, handler)
        if fault.isdigit():
            said = b"" if fault >= "595" else b'{"data":null,"message":"a fault\\n"}'
            return web.Response(status=int(fault), reason="a fault", body=said)
        if fault == "html":
            return web.Response(text="<html><body>Bad gateway</body></html>", content_type="text/html")
        if fault == "no json":
            return web.Response(text='{"data":[{"vmid":', content_type="application/json")
        if fault == "no envelope":
            return web.json_response(["data"])
        answer = await handler(request)
        return web.json_response(self._twisted(answer), status=answer.status)

    async def _cut(self, request: web.Request, handler: Any) -> web.StreamResponse:
        answer = await handler(request)
        body = answer.body if isinstance(answer.body, bytes) else b"{}"
        half = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        half.content_length = len(body) + 10
        await half.prepare(request)
        await half.write(body[: len(body) // 2])
        assert request.transport is not None
        request.transport.abort()
        return half

    def _twisted(self, answer: Any) -> Any:
        """The answer with one value replaced by what has no business there."""
        whole = json.loads(answer.text or "null")
        rows = whole.get("data") if isinstance(whole, dict) else None
        place: Any = self._dice.choice(rows) if isinstance(rows, list) and rows else rows
        if isinstance(place, dict) and place:
            place[self._dice.choice(list(place))] = self._dice.choice((None, "", "x", -1, 10**30, [], {"a": [None]}, True))
        return whole


@contextmanager
def running(seed: int, hang: float) -> Iterator[tuple[FaultyCluster, dict[str, str]]]:
    """The cluster, served over TLS, and the variables that reach it."""
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # it tells of every connection that is dropped here on purpose
    cluster = FaultyCluster(seed, hang)
    cluster.apitokens[f"{USER}!{TOKEN}"] = SECRET
    with tempfile.TemporaryDirectory() as place:
        certificate, key, der = make_cert(place)
        demo = Demo(cluster, x509.load_der_x509_certificate(der).fingerprint(hashes.SHA256()).hex(":").upper(), SECRET)
        demo.start(certificate, key)
        Path(key).unlink()
    try:
        yield (
            cluster,
            {
                "PROXMOX_HOST": f"127.0.0.1:{demo.port}",
                "PROXMOX_USER": USER,
                "PROXMOX_TOKEN_NAME": TOKEN,
                "PROXMOX_TOKEN_VALUE": SECRET,
                "PROXMOX_TLS_FINGERPRINT": demo.fingerprint,
            },
        )
    finally:
        demo.stop()
