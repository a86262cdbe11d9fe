"""Connections that break, answers that never end or never come: each told apart, nothing repeated that could have acted."""

from __future__ import annotations

import asyncio
import time
import tracemalloc

import pytest

from proxmox_mcp.errors import ConnectionFailed, NotTheApi, OutcomeUnknown, PermissionDenied, RequestTimeout
from proxmox_mcp.http_client import HttpClient, client
from tests.http.raw_server import Connection, RawServer, json_reply

pytestmark = pytest.mark.anyio
OK = json_reply(b'{"data":"ok"}')


async def test_an_idle_connection_that_dies_under_a_read_is_replaced_once() -> None:
    def keep_alive_once(connection: Connection) -> None:
        connection.request()
        connection.say(OK)
        if connection.number == 1:
            connection.request()  # taken, then closed without a byte: the race of every keep-alive connection
        else:
            while connection.request():
                connection.say(OK)

    with RawServer(keep_alive_once) as server:
        http = HttpClient(server.settings())
        assert [await http.get("version") for _ in range(4)] == ["ok"] * 4
        assert server.connections == 2
        assert len(server.requests) == 5
        await http.close()


async def test_a_change_on_a_dying_connection_is_unknown_and_sent_once() -> None:
    def die_on_the_second(connection: Connection) -> None:
        connection.request()
        connection.say(OK)
        connection.request()

    with RawServer(die_on_the_second) as server:
        http = HttpClient(server.settings())
        await http.get("version")
        with pytest.raises(OutcomeUnknown, match="it is not known whether it was made") as caught:
            await http.send("PUT", ("x",), {"a": 1})
        assert caught.value.tried == "PUT /x"
        assert sum(request.startswith(b"PUT ") for request in server.requests) == 1
        await http.close()


async def test_a_connection_the_server_closed_earlier_is_not_used() -> None:
    def close_after_each(connection: Connection) -> None:
        connection.request()
        connection.say(json_reply(b'{"data":"ok"}', extra=b"Connection: Keep-Alive\r\n"))

    with RawServer(close_after_each) as server:
        http = HttpClient(server.settings())
        for _ in range(3):
            assert await http.send("POST", ("x",), {}) == "ok"
            await asyncio.sleep(0.05)  # the close has to arrive
        assert server.connections == 3
        await http.close()


async def test_a_fresh_connection_that_closes_is_an_error_after_one_try() -> None:
    with RawServer(lambda connection: connection.request() and None) as server:
        http = HttpClient(server.settings())
        with pytest.raises(ConnectionFailed, match=r"Cannot connect to .*: the connection was closed before an answer came"):
            await http.get("version")
        assert server.connections == 1
        await http.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (json_reply(b'{"data":"ok"}', length=500), "broke off after 13 bytes"),
        (json_reply(b'{"data":"ok"}', length=5), "is not what the API gives"),
        (
            b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n8\r\n{"data":',
            "broke off after 8 bytes",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nabcd", "broke off"),
        (json_reply(b""), "is not what the API gives"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", "text/html"),
    ],
)
async def test_bodies_that_lie(answer: bytes, words: str) -> None:
    def say(connection: Connection) -> None:
        connection.request()
        connection.say(answer)

    with RawServer(say) as server:
        http = HttpClient(server.settings())
        with pytest.raises(NotTheApi, match=words):
            await http.get("version")
        with pytest.raises(OutcomeUnknown, match="not known whether the change was made"):
            await http.send("POST", ("x",), {})
        assert len(server.requests) == 2
        await http.close()


async def test_a_refusal_counts_even_when_its_body_is_cut() -> None:
    def refuse(connection: Connection) -> None:
        connection.request()
        connection.say(json_reply(b'{"da', status=b"403 Permission check failed (/vms/101, VM.PowerMgmt)", length=900))

    with RawServer(refuse) as server:
        http = HttpClient(server.settings())
        with pytest.raises(PermissionDenied, match=r"VM\.PowerMgmt on /vms/101"):
            await http.send("POST", ("x",), {})
        await http.close()


@pytest.mark.parametrize(
    "answer", [b"not http at all\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\x00" * 200, b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000 + b"\r\n"]
)
async def test_what_is_no_http_is_a_lost_connection(answer: bytes) -> None:
    def say(connection: Connection) -> None:
        connection.request()
        connection.say(answer)

    with RawServer(say) as server:
        http = HttpClient(server.settings())
        with pytest.raises(ConnectionFailed, match="Cannot connect to"):
            await http.get("version")
        with pytest.raises(OutcomeUnknown):
            await http.send("POST", ("x",), {})
        await http.close()


async def test_a_huge_answer_is_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_BODY", 2**20)
    sent = 0

    def flood(connection: Connection) -> None:
        nonlocal sent
        connection.request()
        connection.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n")
        for _ in range(1600):
            connection.say(b"x" * 65536)
            sent += 65536

    with RawServer(flood) as server:
        http = HttpClient(server.settings())
        tracemalloc.start()
        try:
            with pytest.raises(NotTheApi, match=r"larger than 1\.0M"):
                await http.get("version")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        await http.close()
    assert peak < 8 * 2**20
    assert sent < 80 * 2**20


async def test_slow_bytes_do_not_stretch_the_timeout() -> None:
    def drip(connection: Connection) -> None:
        connection.request()
        connection.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
        for _ in range(200):
            connection.say(b" ")
            time.sleep(0.02)

    with RawServer(drip) as server:
        http = HttpClient(server.settings(timeout=0.3))
        start = time.monotonic()
        with pytest.raises(RequestTimeout, match=r"^Request timed out after 0\.3 s"):
            await http.get("version")
        with pytest.raises(OutcomeUnknown, match=r"^Request timed out after 0\.3 s; the change was sent"):
            await http.send("POST", ("x",), {})
        assert time.monotonic() - start < 3
        await http.close()


async def test_a_timeout_of_the_call_wins_over_the_setting() -> None:
    with RawServer(lambda connection: connection.request() and connection.wait()) as server:
        http = HttpClient(server.settings(timeout=30))
        start = time.monotonic()
        with pytest.raises(RequestTimeout, match=r"^Request timed out after 0\.1 s"):
            await http.get("version", timeout=0.1)
        assert time.monotonic() - start < 10
        await http.close()


async def test_after_a_timeout_the_next_request_gets_its_own_answer() -> None:
    def late_first(connection: Connection) -> None:
        while request := connection.request():
            if b"/slow" in request:
                time.sleep(0.2)
                connection.say(json_reply(b'{"data":"late"}'))
            else:
                connection.say(json_reply(b'{"data":"prompt"}'))

    with RawServer(late_first) as server:
        http = HttpClient(server.settings())
        with pytest.raises(RequestTimeout):
            await http.get("slow", timeout=0.05)
        assert await http.get("fast") == "prompt"
        await http.close()


async def test_a_cancelled_call_ends_at_once_and_frees_its_place() -> None:
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang_on_slow(connection: Connection) -> None:
        while request := connection.request():
            if b"/slow" in request:
                loop.call_soon_threadsafe(arrived.set)
                connection.wait()
                return
            connection.say(OK)

    with RawServer(hang_on_slow) as server:
        http = HttpClient(server.settings(max_concurrency=1))
        call = asyncio.create_task(http.get("slow"))
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await http.get("fast") == "ok"
        await http.close()


async def test_odd_json_is_read_as_far_as_it_goes() -> None:
    answers = iter(
        [
            b'{"data":{"cpu":NaN,"mem":Infinity,"x":-Infinity}}',
            b'{"data":"caf\xe9"}',
            b'\xef\xbb\xbf{"data":1}',
            b'{"data":' + b"[" * 200_000,
        ]
    )

    def say(connection: Connection) -> None:
        while connection.request():
            connection.say(json_reply(next(answers)))

    with RawServer(say) as server:
        http = HttpClient(server.settings())
        assert await http.get("a") == {"cpu": None, "mem": None, "x": None}
        assert await http.get("b") == "caf\ufffd"
        for _ in range(2):
            with pytest.raises(NotTheApi):
                await http.get("c")
        await http.close()
