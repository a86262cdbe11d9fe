"""Whole calls over real TLS while the wire or the other end fails: what is told, what is recorded, what was sent how often."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import audit, pipeline
from proxmox_mcp.app import App
from proxmox_mcp.config import Member
from proxmox_mcp.errors import ConnectionFailed, NotTheApi, ProxmoxMcpError, TlsError
from tests.http.raw_server import RawServer
from tests.piped import UPID, FakePerson, records, serve_guest
from tests.served_api import Certificate, Reply, Request, ServedApi, new_certificate, settings
from tests.tools.asking import ask
from tests.tools.changes import tool

pytestmark = pytest.mark.anyio
SHUTDOWN = {"vmid": 101, "action": "shutdown", "confirm": True, "wait_seconds": 2}
STATUS = f"/nodes/pve1/tasks/{UPID}/status"
POST = "/nodes/pve1/qemu/101/status/shutdown"
HUGE = b'{"data":"' + b"x" * 100_000_000 + b'"}'
REPLIES: dict[str, Reply] = {
    "hang": Reply(hang=True),
    "drop": Reply(drop=True),
    "cut": Reply(data="x" * 500, cut=100),
    "longer than it says": Reply(data="x" * 50, headers={"Content-Length": "20"}),
    "500": Reply(500, "got timeout"),
    "502": Reply(502, "Bad Gateway", body="<html>", content_type="text/html"),
    "503": Reply(503, "Service Unavailable", body=""),
    "595": Reply(595, "No route to host"),
    "596": Reply(596, "Connection timed out"),
    "html": Reply(body="<html>proxy</html>", content_type="text/html"),
    "no json": Reply(body='{"data":[{"vmid":'),
    "no envelope": Reply(body='["data"]'),
}


@asynccontextmanager
async def guest(tmp_path: Path, **changes: Any) -> AsyncIterator[tuple[ServedApi, App]]:
    """Guest 101 of a served API, all that a shutdown asks of it, and an App that reaches it."""
    with ServedApi() as api:
        serve_guest(api)
        api.on("GET", "/access/permissions", {"/": dict.fromkeys(("VM.PowerMgmt", "VM.Audit", "Sys.Audit"), 1)})
        api.on("GET", "/nodes/{node}/qemu/{vmid}/status/current", {"status": "running", "vmid": 101, "name": "web"})
        api.on("GET", "/nodes/{node}/qemu/{vmid}/config", {"name": "web", "digest": "ab12"})
        api.on("GET", "/nodes/{node}/tasks", [])
        app = App(settings(api, **{"audit_dir": tmp_path / "audit", "approval": "off", "timeout": 0.5, "max_wait": 2, **changes}))
        try:
            yield api, app
        finally:
            await app.close()


async def shutdown(app: App) -> str:
    """The text of the answer or of the error."""
    try:
        found = await pipeline.run(tool("vm_power"), SHUTDOWN, app, FakePerson())
    except ProxmoxMcpError as error:
        return str(error)
    assert isinstance(found, pipeline.Result)
    return found.text


@pytest.mark.parametrize("kind", REPLIES)
async def test_a_fault_before_a_change_keeps_it_from_being_sent(kind: str, tmp_path: Path) -> None:
    async with guest(tmp_path) as (api, app):
        api.on("GET", "/nodes/{node}/qemu/{vmid}/config", REPLIES[kind])
        assert not (await shutdown(app)).startswith(("Done", "Started", "Outcome unknown"))
        assert api.writes == []
        assert [entry for entry in records(tmp_path) if "steps" in entry and "event" not in entry] == []


@pytest.mark.parametrize("kind", REPLIES)
async def test_a_fault_in_the_answer_to_a_change_is_never_called_done_and_never_repeated(kind: str, tmp_path: Path) -> None:
    async with guest(tmp_path) as (api, app):
        api.on("POST", POST, REPLIES[kind])
        text = await shutdown(app)
        state = "failed" if kind == "500" else "unknown"
        assert text.startswith({"failed": "Failed: ", "unknown": "Outcome unknown: "}[state]), text
        assert [request.path for request in api.writes] == [POST]
        assert records(tmp_path)[-1]["state"] == state
        assert audit.verify(tmp_path / "audit", "api", app.audit_keys).verdict == "INTACT"


@pytest.mark.parametrize("kind", REPLIES)
async def test_a_fault_while_a_task_is_waited_for_is_borne_and_its_end_still_found(kind: str, tmp_path: Path) -> None:
    async with guest(tmp_path, max_wait=20) as (api, app):
        asked = 0

        def status(_: Any) -> Any:
            nonlocal asked
            asked += 1
            return REPLIES[kind] if asked == 1 else {"upid": UPID, "node": "pve1", "status": "stopped", "exitstatus": "OK"}

        api.on("GET", STATUS, status)
        text = await shutdown(app)
        assert text.startswith(("Done: ", "Outcome unknown: ", "Started, still running: ")), text
        assert (asked > 1) == text.startswith("Done: "), text
        assert len(api.writes) == 1
        assert audit.verify(tmp_path / "audit", "api", app.audit_keys).verdict == "INTACT"


@pytest.mark.parametrize("status", [500, 503, 595, 596])
async def test_after_a_burst_of_errors_the_next_call_is_answered(status: int, tmp_path: Path) -> None:
    async with guest(tmp_path) as (api, _):
        left = 8

        def resources(_: Any) -> Any:
            nonlocal left
            left -= 1
            row = {"vmid": 101, "node": "pve1", "type": "qemu", "status": "running", "name": "web", "id": "qemu/101"}
            return Reply(status, "busy", body="") if left >= 0 else [row]

        api.on("GET", "/cluster/resources", resources)
        for _ in range(8):
            with pytest.raises(ProxmoxMcpError, match=str(status)):
                await ask(api, "list_vms")
        assert "101 web" in await ask(api, "list_vms")


async def test_a_slow_answer_within_the_time_is_an_answer(tmp_path: Path) -> None:
    async with guest(tmp_path, timeout=10) as (api, _):
        row = {"vmid": 101, "node": "pve1", "type": "qemu", "status": "running", "name": "web"}
        api.on("GET", "/cluster/resources", Reply(data=[row], delay=0.5))
        assert "101 web" in await ask(api, "list_vms")


async def test_a_hundred_megabytes_are_given_up_and_cost_the_next_call_nothing(tmp_path: Path) -> None:
    async with guest(tmp_path, timeout=30) as (api, _):
        api.on("GET", "/nodes", Reply(body=HUGE))
        with pytest.raises(NotTheApi, match="larger than 64"):
            await ask(api, "list_nodes", timeout=30)
        api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
        assert "pve1" in await ask(api, "list_nodes")


# --- certificates and names: nothing is sent, and the next step is named


@pytest.mark.parametrize(
    ("certificate", "pinned", "hint"),
    [
        (lambda: new_certificate(days=-1), False, "expired"),
        (lambda: new_certificate("pve9.lab.test"), False, "its certificate is for other names than 127.0.0.1"),
        (new_certificate, True, "PROXMOX_TLS_FINGERPRINT"),
    ],
    ids=["expired", "another name", "wrong pin"],
)
async def test_a_certificate_that_is_not_right_ends_reads_and_changes_before_the_token_leaves(
    certificate: Callable[[], Certificate], pinned: bool, hint: str, tmp_path: Path
) -> None:
    with RawServer(lambda connection: connection.request() and None, certificate=certificate()) as server:
        trust = {"tls_fingerprint": "AB" * 32} if pinned else {"tls_fingerprint": "", "ca_file": server.certificate.ca_file}
        app = App(server.settings(audit_dir=tmp_path / "audit", approval="off", **trust))
        for name, arguments in (("list_nodes", {}), ("vm_power", SHUTDOWN)):
            with pytest.raises(TlsError) as caught:
                await pipeline.run(_any(name), arguments, app, FakePerson())
            assert hint in str(caught.value)
            assert "Nothing was sent" in str(caught.value)
        await app.close()
        assert server.requests == []


async def test_a_name_that_nobody_knows(tmp_path: Path) -> None:
    app = App(settings(members=(Member("pve.invalid", 8006),), tls_fingerprint="AB", audit_dir=tmp_path / "audit"))
    for name, arguments in (("list_nodes", {}), ("vm_power", SHUTDOWN)):
        with pytest.raises(ConnectionFailed, match=r"Cannot connect to pve\.invalid:8006: name not found .*Nothing was sent"):
            await pipeline.run(_any(name), arguments, app, FakePerson())
    await app.close()


def _any(name: str) -> Any:
    from tests.tools.asking import read_tools

    return read_tools().get(name) or tool(name)


# --- members


@pytest.mark.parametrize("at", range(5))
async def test_three_members_of_which_the_first_dies_in_the_middle_of_a_call(at: int) -> None:
    """The first member answers `at` requests and is gone: what it was asked then is told as missing, or asked elsewhere."""
    with ServedApi() as first, ServedApi() as second, ServedApi() as third:
        for api in (first, second, third):
            api.on("GET", "/nodes", [{"node": f"pve{n}", "status": "online"} for n in (1, 2, 3)])
            api.on("GET", "/nodes/{node}/disks/zfs", [{"name": "tank", "size": 1000, "alloc": 10, "free": 990, "health": "ONLINE"}])
        dies_after(first, at)
        app = App(settings(first, second, third, timeout=2, max_concurrency=1))
        try:
            for alive in (False, True):
                found = await pipeline.run(_any("list_zfs"), {"response_format": "json"}, app, FakePerson())
                assert isinstance(found, pipeline.Result)
                told = json.loads(found.text)
                gaps = [note for note in told["notes"] if note.startswith("pve")]
                assert len(told["items"]) + len(gaps) == 3, found.text
                assert all("closed before an answer came" in gap for gap in gaps), found.text
                assert len(gaps) <= (not alive)
        except ConnectionFailed:
            assert at == 0  # the list of nodes itself: there is nothing to show
        await app.close()
        assert third.requests == []


def dies_after(api: ServedApi, answers: int) -> None:
    """From then on it accepts nothing, and what it has accepted is cut."""
    answer = api._answer

    async def mortal(request: Request) -> Reply:
        found = await answer(request)
        if len(api.requests) <= answers:
            return found
        assert api._server is not None
        api._server.close()
        return Reply(drop=True)

    api._answer = mortal  # type: ignore[method-assign]


async def test_a_member_that_dies_while_its_task_runs_is_not_the_end_of_the_wait(tmp_path: Path) -> None:
    async with guest(tmp_path) as (first, _), guest(tmp_path) as (second, _):
        before = 5  # until the first look at the task
        app = App(settings(first, second, audit_dir=tmp_path / "audit", approval="off", timeout=0.5, max_wait=20))
        dies_after(first, before)
        text = await shutdown(app)
        await app.close()
    assert first.paths[before].endswith("/status"), first.paths
    assert text.startswith("Done: shut down VM 101 (web)"), text
    assert len(first.writes) == 1
    assert second.writes == []
