"""Several members of one cluster: who is asked, when the next one is, and when not."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from proxmox_mcp.config import Member
from proxmox_mcp.errors import AuthenticationError, ConnectionFailed, OutcomeUnknown, RequestTimeout, TlsError
from proxmox_mcp.http_client import HttpClient
from tests.http.raw_server import Connection, RawServer
from tests.served_api import Reply, ServedApi, client, new_certificate, settings

pytestmark = pytest.mark.anyio
REFUSING = Member("127.0.0.1", 9)


@pytest.fixture
def second() -> Iterator[ServedApi]:
    with ServedApi() as api:
        api.on("GET", "/version", "second")
        api.on("POST", "/x", "second")
        yield api


@pytest.fixture
def mute() -> Iterator[Member]:
    """Accepts TCP connections and never says a word, as a hung pveproxy does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Member("127.0.0.1", listener.getsockname()[1])


def member(api: ServedApi) -> Member:
    return Member("127.0.0.1", api.port)


async def test_the_next_is_asked_when_one_refuses_also_for_changes(second: ServedApi) -> None:
    for call in (lambda http: http.get("version"), lambda http: http.send("POST", ("x",), {})):
        http = HttpClient(settings(second, members=(REFUSING, Member("nowhere.invalid", 8006), member(second))))
        assert await call(http) == "second"
        await http.close()
    assert second.paths == ["GET /version", "POST /x"]


async def test_the_one_that_worked_is_asked_first_from_then_on(second: ServedApi, mute: Member) -> None:
    http = HttpClient(settings(second, members=(mute, member(second)), timeout=2))
    start = time.monotonic()
    assert await http.get("version") == "second"
    first = time.monotonic() - start
    start = time.monotonic()
    for _ in range(5):
        assert await http.get("version") == "second"
    rest = time.monotonic() - start
    await http.close()
    assert first > 0.4
    assert rest < first
    assert http.sent == 7


async def test_requests_that_start_together_wait_for_the_dead_one_once(second: ServedApi, mute: Member) -> None:
    http = HttpClient(settings(second, members=(mute, member(second)), timeout=2))
    start = time.monotonic()
    assert await asyncio.gather(*(http.get("version") for _ in range(6))) == ["second"] * 6
    assert time.monotonic() - start < 2 * 0.5
    await http.close()


async def test_back_to_another_when_the_good_one_dies(second: ServedApi) -> None:
    with ServedApi() as first:
        first.on("GET", "/version", "first")
        http = HttpClient(settings(first, second))
        assert await http.get("version") == "first"
    assert await http.get("version") == "second"
    await http.close()


async def test_all_that_were_tried_are_named() -> None:
    http = HttpClient(settings(members=(REFUSING, Member("nowhere.invalid", 8006)), tls_fingerprint="AB"))
    with pytest.raises(ConnectionFailed) as caught:
        await http.get("version")
    await http.close()
    assert caught.value.what.startswith("Cannot connect to 127.0.0.1:9: Connection refused; nowhere.invalid:8006: name not found")
    assert "Nothing was sent" in caught.value.what
    assert caught.value.tried == "GET /version"


async def test_a_lone_member_that_says_nothing(mute: Member) -> None:
    http = HttpClient(settings(members=(mute,), timeout=0.2))
    with pytest.raises(ConnectionFailed, match=rf"Cannot connect to {mute}: no connection in time. Nothing was sent"):
        await http.send("POST", ("x",), {})
    await http.close()


async def test_a_wrong_certificate_ends_the_call_and_is_not_passed_over(second: ServedApi) -> None:
    with RawServer(lambda connection: connection.wait(), certificate=new_certificate()) as impostor:
        http = HttpClient(settings(second, members=(Member("127.0.0.1", impostor.port), member(second))))
        with pytest.raises(TlsError):
            await http.get("version")
        await http.close()
        assert impostor.requests == []
    assert second.requests == []


@pytest.mark.parametrize("how", ["drop", "hang", "cut"])
async def test_what_was_sent_is_not_sent_to_another(second: ServedApi, how: str) -> None:
    faults: dict[str, Any] = {"drop": Reply(drop=True), "hang": Reply(hang=True), "cut": Reply(data="x" * 50, cut=5)}
    with ServedApi() as first:
        first.on("POST", "/x", faults[how])
        async with client(first, second, timeout=0.8) as http:
            with pytest.raises(OutcomeUnknown) as caught:
                await http.send("POST", ("x",), {})
        assert first.paths == ["POST /x"]
    assert second.requests == []
    assert "not known whether" in caught.value.what
    assert "proxmox_list_tasks" in caught.value.hint


async def test_a_read_that_hangs_is_not_repeated_elsewhere_either(second: ServedApi) -> None:
    with ServedApi() as first:
        first.on("GET", "/version", Reply(hang=True))
        async with client(first, second, timeout=0.8) as http:
            with pytest.raises(RequestTimeout, match=r"^Request timed out after 0\.8 s"):
                await http.get("version")
    assert second.requests == []


async def test_an_answer_is_an_answer(second: ServedApi) -> None:
    with ServedApi(tokens={}) as first:
        async with client(first, second) as http:
            with pytest.raises(AuthenticationError):
                await http.get("version")
        assert len(first.requests) == 1  # not retried: each try costs three seconds and counts for lockouts
    assert second.requests == []


async def test_ipv6_members() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    from proxmox_mcp.http_client.client import _in_url

    assert _in_url(Member("fe80::1%eth0", 8006)) == "[fe80::1%25eth0]:8006"
    http = HttpClient(settings(members=(Member("::1", 9),), tls_fingerprint="AB"))
    with pytest.raises(ConnectionFailed, match=r"Cannot connect to \[::1\]:9: Connection refused"):
        await http.get("version")
    await http.close()


async def test_through_a_proxy(second: ServedApi) -> None:
    seen: list[bytes] = []

    def tunnel(connection: Connection) -> None:
        seen.append(connection.request())
        connection.say(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with RawServer(tunnel, tls=False) as proxy:
        async with client(second, proxy=f"http://me:pr0xy-geheim@127.0.0.1:{proxy.port}") as http:
            with pytest.raises(ConnectionFailed, match=r"the proxy refused .*407") as caught:
                await http.send("POST", ("x",), {})
    assert "geheim" not in str(caught.value)
    assert "through PROXMOX_PROXY" in str(caught.value)
    assert caught.value.hint.startswith("check PROXMOX_PROXY first")
    assert seen[0].startswith(f"CONNECT 127.0.0.1:{second.port} ".encode())
    assert b"PVEAPIToken" not in seen[0]
    assert second.requests == []
