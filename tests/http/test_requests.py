"""What stands on the wire: methods, bodies, queries, headers, connections."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from proxmox_mcp import __version__
from proxmox_mcp.errors import ConfigError, InvalidArgument
from proxmox_mcp.http_client import HttpClient, Repeat
from tests.served_api import SECRET, Reply, Request, ServedApi, client, settings

pytestmark = pytest.mark.anyio


async def test_a_read_is_a_query_without_a_body(served: ServedApi) -> None:
    served.on("GET", "/nodes/{node}/tasks", [{"upid": "x"}])
    async with client(served) as http:
        assert await http.get("nodes", "pve1", "tasks", params={"limit": 5, "errors": True, "since": None}) == [{"upid": "x"}]
        assert http.sent == 1
    (request,) = served.requests
    assert request.target == "/api2/json/nodes/pve1/tasks?limit=5&errors=1"
    assert request.body == b""
    assert request.headers["authorization"] == f"PVEAPIToken=root@pam!mcp={SECRET}"
    assert request.headers["user-agent"] == f"pve-mcp/{__version__}"
    assert request.headers["accept-encoding"] == "identity"
    assert "content-length" not in request.headers
    assert "content-type" not in request.headers


async def test_total_comes_with_the_data(served: ServedApi) -> None:
    served.on("GET", "/log", Reply(data=[{"n": 1, "t": "x"}], total=4711))
    served.on("GET", "/list", Reply(data=[]))
    async with client(served) as http:
        assert await http.get_with_total("log", params={"limit": 1}) == ([{"n": 1, "t": "x"}], 4711)
        assert await http.get_with_total("list") == ([], None)


async def test_g16_delete_has_no_body_and_its_parameters_in_the_query(served: ServedApi) -> None:
    served.on("DELETE", "/nodes/{node}/qemu/{vmid}/snapshot/{name}", "UPID:x")
    async with client(served) as http:
        assert await http.send("DELETE", ("nodes", "pve1", "qemu", 101, "snapshot", "s1"), {"force": True}) == "UPID:x"
    (request,) = served.requests
    assert request.target == "/api2/json/nodes/pve1/qemu/101/snapshot/s1?force=1"
    assert request.body == b""
    assert request.headers.get("content-length", "0") == "0"


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_g18_only_what_was_given_is_sent_and_arrives_unchanged(served: ServedApi, method: str) -> None:
    served.on(method, "/nodes/pve1/lxc", lambda request: request.form)
    words = "a;b=c+d&e\nf é %41 \u4e16 'x' \"y\""
    given = {
        "vmid": 205,
        "description": words,
        "hostname": None,
        "onboot": True,
        "unprivileged": False,
        "cpulimit": 1.5,
        "vms": [1, 2],
        "swap": 0,
    }
    async with client(served) as http:
        echoed = await http.send(method, ("nodes", "pve1", "lxc"), given)  # type: ignore[arg-type]
    assert echoed == {"vmid": "205", "description": words, "onboot": "1", "unprivileged": "0", "cpulimit": "1.5", "vms": "1,2", "swap": "0"}
    (request,) = served.requests
    assert request.query == {}
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert b";" not in request.body
    assert request.body.count(b"=") == len(echoed)


async def test_an_array_repeats_its_key(served: ServedApi) -> None:
    served.on("POST", "/exec", lambda request: request.form["command"])
    async with client(served) as http:
        assert await http.send("POST", ("exec",), {"command": Repeat(["ls", "-l", "a b"])}) == ["ls", "-l", "a b"]


async def test_a_change_without_parameters(served: ServedApi) -> None:
    served.on("POST", "/nodes/pve1/qemu/101/status/start", None)
    async with client(served) as http:
        assert await http.send("POST", ("nodes", "pve1", "qemu", 101, "status", "start"), {}) is None
    assert served.requests[0].body == b""
    assert served.requests[0].headers["content-length"] == "0"


async def test_path_parts_arrive_decoded(served: ServedApi) -> None:
    served.on("GET", "/nodes/{node}/storage/{storage}/content/{volume}", lambda request: request.vars["volume"])
    served.on("GET", "/nodes/{node}/tasks/{upid}/status", lambda request: request.vars["upid"])
    upid = r"UPID:pve1:00000B79:00073E5A:6B0E2E8D:imgdel:local\x3aiso:root@pam!mcp:"
    async with client(served) as http:
        volume = "local:iso/debian 13+x (ü).iso"
        assert await http.get("nodes", "pve1", "storage", "local", "content", volume) == volume
        assert await http.get("nodes", "pve1", "tasks", upid, "status") == upid


async def test_odd_user_names_reach_the_server_whole(served: ServedApi) -> None:
    user = "jürgen;a+b%20&x@corp@ad"
    served.tokens[f"{user}!mcp"] = SECRET
    served.on("GET", "/version", "ok")
    async with client(served, user=user) as http:
        assert await http.get("version") == "ok"
    assert ";" not in served.requests[0].headers["authorization"]


async def test_one_connection_serves_many_reads(served: ServedApi) -> None:
    served.on("GET", "/version", {})
    async with client(served) as http:
        for _ in range(5):
            await http.get("version")
    assert served.connections == 1


async def test_no_more_requests_at_once_than_allowed(served: ServedApi) -> None:
    served.on("GET", "/slow/{n}", Reply(data=1, delay=0.02))
    async with client(served, max_concurrency=3) as http:
        assert await asyncio.gather(*(http.get("slow", n) for n in range(12))) == [1] * 12
    assert served.max_concurrent == 3
    assert served.connections == 3


async def test_a_later_request_opens_what_close_closed(served: ServedApi) -> None:
    served.on("GET", "/version", {})
    http = HttpClient(settings(served))
    await http.close()
    await http.get("version")
    await http.close()
    await http.get("version")
    await http.close()
    await http.close()
    assert served.connections == 2


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_proxies_of_the_environment_are_not_used(served: ServedApi, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    served.on("GET", "/version", "ok")
    async with client(served) as http:
        assert await http.get("version") == "ok"


async def test_g10_a_bracketed_address_in_no_proxy_is_nothing_to_us(served: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1,::1,[::1],fe80::/10")
    served.on("GET", "/nodes", [{"node": "pve1"}])
    async with client(served) as http:
        assert await http.get("nodes") == [{"node": "pve1"}]


async def test_settings_with_problems_send_nothing(served: ServedApi) -> None:
    async with client(served, problems=("PROXMOX_TIMEOUT=x: write seconds.",)) as http:
        with pytest.raises(ConfigError, match="PROXMOX_TIMEOUT"):
            await http.get("version")
    http = HttpClient(settings())
    with pytest.raises(ConfigError, match="PROXMOX_HOST is not set"):
        await http.get("version")
    assert served.requests == []


async def test_what_could_not_arrive_is_not_sent(served: ServedApi) -> None:
    async with client(served) as http:
        for method, params in (("POST", {"d": "x" * 600_000}), ("DELETE", {"d": "x" * 8000}), ("POST", {"d": "\0"})):
            with pytest.raises(InvalidArgument):
                await http.send(method, ("x",), params)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument):
            await http.get("x", params={"d": "x" * 8000})
        assert http.sent == 0
    assert served.connections == 0


async def test_a_large_form_below_the_limit_arrives(served: ServedApi) -> None:
    served.on("POST", "/x", lambda request: len(request.form["d"]))
    async with client(served) as http:
        assert await http.send("POST", ("x",), {"d": "x" * 500_000}) == 500_000


async def test_parallel_changes_and_reads_keep_to_their_own_answers(served: ServedApi) -> None:
    def echo(request: Request) -> str:
        return request.path

    served.on("GET", "/r/{n}", echo)
    served.on("PUT", "/w/{n}", echo)
    async with client(served) as http:
        calls = [http.get("r", n) if n % 2 else http.send("PUT", ("w", n), {"n": n}) for n in range(40)]
        assert await asyncio.gather(*calls) == [f"/{'r' if n % 2 else 'w'}/{n}" for n in range(40)]


def test_making_a_client_imports_and_opens_nothing() -> None:
    code = (
        "import sys; from proxmox_mcp.config import Settings; from proxmox_mcp.http_client import HttpClient;"
        "HttpClient(Settings()); print({'httpx', 'anyio', 'certifi'} & sys.modules.keys())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
