"""The server as a process: starts without configuration, ends within two seconds and loses nothing, keeps its head under load."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.audit import Keys, verify
from tests.cluster import served_cluster
from tests.piped import UPID, serve_guest
from tests.served_api import Reply, Request, ServedApi, environment
from tests.stdio import serving, told

STOP = {"vmid": 101, "action": "shutdown", "confirm": True}


def records(home: Path) -> list[dict[str, Any]]:
    (log,) = home.rglob("_api_audit.log")
    return [json.loads(line) for line in log.read_text().splitlines()]


def serve_power(api: ServedApi, **more: Any) -> None:
    serve_guest(api, **more)
    api.on("GET", "/access/permissions", {"/": dict.fromkeys(("VM.PowerMgmt", "VM.Audit", "Sys.Audit"), 1)})
    api.on("GET", "/nodes/{node}/qemu/{vmid}/status/current", {"status": "running", "qmpstatus": "running", "vmid": 101, "name": "web"})
    api.on("GET", "/nodes/{node}/qemu/{vmid}/config", {"name": "web", "digest": "ab12"})
    api.on("GET", "/nodes/{node}/tasks", [])


def test_it_starts_without_configuration_and_the_first_call_names_what_is_missing(tmp_path: Path) -> None:
    with serving(tmp_path, {}) as server:
        assert server.hello["result"]["serverInfo"]["version"] == "2.0.0"
        assert len(server.request("tools/list")["result"]["tools"]) == 52
        failed, text = server.call("proxmox_list_vms")
        assert failed
        for name in ("PROXMOX_HOST", "PROXMOX_USER", "PROXMOX_TOKEN_NAME", "PROXMOX_TOKEN_VALUE", ".env", "pve-mcp doctor"):
            assert name in text
        assert server.end() == 0
        assert not server.junk


@pytest.mark.parametrize("how", ["end of input", signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("during", ["idle", "waiting", "sending"])
def test_it_ends_within_two_seconds_and_writes_the_outcomes_of_calls_under_way(tmp_path: Path, how: Any, during: str) -> None:
    with ServedApi() as api:
        serve_power(api, exitstatus=None)
        if during == "sending":
            api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", Reply(hang=True))
        with serving(tmp_path, environment(api)) as server:
            server.request("tools/list")
            if during != "idle":
                server.start_call("proxmox_vm_power", **STOP, wait_seconds=40)
                _until(lambda: len(api.writes) == 1 and (during == "sending" or api.count("GET", f"/nodes/pve1/tasks/{UPID}/status")))
            started = time.monotonic()
            if how == "end of input":
                assert server.end() == 0
            else:
                server.process.send_signal(how)
                assert server.process.wait(10) == 0
            assert time.monotonic() - started < 2
            assert not server.junk
        if during != "idle":
            _, intent, outcome = records(tmp_path)
            assert intent["kind"] == "intent"
            assert outcome["record"]["state"] == "unknown"
            assert outcome["record"]["abandoned"].endswith("step 1 of 1")
            assert outcome["record"]["steps"][0]["upid"] == (UPID if during == "waiting" else "")
            assert len(api.writes) == 1


def test_a_cancelled_call_gets_no_answer_and_the_server_goes_on(tmp_path: Path) -> None:
    with ServedApi() as api:
        serve_power(api, exitstatus=None)
        with serving(tmp_path, environment(api)) as server:
            number = server.start_call("proxmox_vm_power", **STOP, wait_seconds=40)
            _until(lambda: bool(api.count("GET", f"/nodes/pve1/tasks/{UPID}/status")))
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            _until(lambda: len(records(tmp_path)) == 3)
            assert not server.call("proxmox_get_vm_status", vmid=101)[0]
            assert records(tmp_path)[2]["record"]["steps"][0]["upid"] == UPID
            assert server.end() == 0
            assert number not in server._kept


def test_progress_comes_when_the_client_gave_a_token(tmp_path: Path) -> None:
    with ServedApi() as api:
        serve_power(api, exitstatus=None)
        with serving(tmp_path, {**environment(api), "PROXMOX_MAX_WAIT": "2.5"}) as server:
            failed, text = told(server.answer(server.start_call("proxmox_vm_power", "tok", **STOP, wait_seconds=900)))
            assert not failed
            assert "still running" in text
            notes = [n["params"] for n in server.notes if n["method"] == "notifications/progress"]
            assert notes
            assert all(n["progressToken"] == "tok" for n in notes)
            assert "TASK ERROR" in notes[-1]["message"] or "line" in notes[-1]["message"]
            before = len(server.notes)
            server.call("proxmox_vm_power", **STOP, wait_seconds=2)
            assert len(server.notes) == before


def test_a_hundred_calls_at_once_and_half_of_them_cancelled(tmp_path: Path) -> None:
    with ServedApi() as api:
        serve_power(api)
        api.on("GET", "/nodes/{node}/qemu/{vmid}/status/current", Reply(data={"status": "running", "vmid": 101, "name": "web"}, delay=0.05))
        with serving(tmp_path, {**environment(api), "PROXMOX_MAX_CONCURRENCY": "4"}) as server:
            numbers = [server.start_call("proxmox_get_vm_status", vmid=101) for _ in range(100)]
            assert all("web" in told(server.answer(number))[1] for number in numbers)
            assert 1 < api.max_concurrent <= 4
            numbers = [server.start_call("proxmox_get_vm_status", vmid=101) for _ in range(100)]
            for number in numbers[::2]:
                server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            for number in numbers[1::2]:
                failed, text = told(server.answer(number))
                assert not failed
                assert "web" in text
            assert not server.call("proxmox_get_vm_status", vmid=101)[0]
            assert server.end() == 0


def test_a_hundred_calls_of_all_kinds_each_get_their_own_answer_and_each_change_its_own_record(tmp_path: Path) -> None:
    with served_cluster(nodes=3, guests=100) as api:
        guests = list(api.world.guests.values())
        running = [guest for guest in guests if guest.running and not guest.template]

        def endless(request: Request) -> Reply:
            task = api.world.task(request.vars["node"], "vzstop", request.vars["vmid"], age=0, took=None)
            return Reply(data=task.upid, delay=0.03)

        api.on("POST", "/nodes/{node}/{kind}/{vmid}/status/shutdown", endless)
        with serving(tmp_path, {**environment(api), "PROXMOX_MAX_CONCURRENCY": "4", "PROXMOX_MAX_WAIT": "30"}) as server:
            reads = {server.start_call("proxmox_get_vm_status", vmid=guest.vmid): guest for guest in guests[:50]}
            changes = {
                server.start_call("proxmox_vm_power", vmid=guest.vmid, action="shutdown", confirm=True, wait_seconds=30): guest
                for guest in running[:50]
            }
            for number, guest in reads.items():
                failed, text = told(server.answer(number, timeout=60))
                assert not failed
                assert f" {guest.vmid} ({guest.name}) on {guest.node}: " in text
            _until(lambda: len(api.writes) == 50, seconds=60)
            cancelled = list(changes)[::2]
            for number in cancelled:
                server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            _until(lambda: sum(line["kind"] == "outcome" for line in records(tmp_path)) >= 25, seconds=60)
            assert server.end() == 0  # the other half is cancelled by the end of the server
            assert not server.junk
        assert 1 < api.max_concurrent <= 4
    assert sorted(request.vars["vmid"] for request in api.writes) == sorted(str(guest.vmid) for guest in running[:50])
    kept = records(tmp_path)
    intents = {line["seq"]: line["record"] for line in kept if line["kind"] == "intent"}
    outcomes = {line["of"]: line["record"] for line in kept if line["kind"] == "outcome"}
    assert intents.keys() == outcomes.keys()
    assert len(intents) == 50
    for number, intent in intents.items():
        (step,) = intent["steps"]
        (result,) = outcomes[number]["steps"]
        vmid = step["path"].split("/")[4]
        assert intent["targets"][0] == f"guest {vmid}"
        assert result["upid"].split(":")[6] == vmid
        assert outcomes[number]["state"] == "unknown"
    directory = next(tmp_path.rglob("_api_audit.log")).parent
    assert verify(directory, "api", Keys()).verdict == "INTACT"


@pytest.mark.parametrize(
    "junk",
    [
        b"not json\n",
        b"{}\n",
        b"[]\n",
        b"\n\n",
        b'{"jsonrpc":"2.0","id":7}\n',
        b'{"jsonrpc":"2.0"',
        b"\xff\xfe\x00\n",
        b'{"a":"' + b"x" * 5_000_000 + b'"}\n',
    ],
    ids=["text", "empty object", "array", "blank", "no method", "half a line", "bytes", "huge line"],
)
def test_junk_on_the_line_does_not_end_the_server(tmp_path: Path, junk: bytes) -> None:
    with serving(tmp_path, {}) as server:
        server.raw(junk if junk.endswith(b"\n") else junk + b"\n")
        assert server.request("tools/list")["result"]["tools"]
        assert not server.junk
        assert server.end() == 0


def test_a_wrong_choice_of_tools_stops_the_start_with_the_valid_ones(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    found = subprocess.run(
        [sys.executable, "-m", "proxmox_mcp", "--toolsets", "overview,gests"],
        cwd=tmp_path,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parent.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert "gests" in found.stderr
    assert "guests" in found.stderr
    assert not found.stdout


def _until(true: Any, seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)  # another process is on its way
