"""The line between client and server: floods, fragments, cancellations in any order, ends in the middle of a message."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.test_killed import STOP, serve, until
from tests.piped import UPID
from tests.served_api import Reply, ServedApi, environment
from tests.stdio import ROOT, serving, told


def message(number: Any, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def test_a_thousand_pings_and_a_call_among_them(tmp_path: Path) -> None:
    with serving(tmp_path, {}) as server:
        server.raw(b"".join(message(f"p{n}", "ping") for n in range(500)))
        call = server.start_call("proxmox_audit_verify")
        server.raw(b"".join(message(f"p{n}", "ping") for n in range(500, 1000)))
        assert all(server.answer(f"p{n}")["result"] == {} for n in range(1000))  # type: ignore[arg-type]
        assert "NOTHING RECORDED" in told(server.answer(call))[1]
        assert not server.junk
        assert server.end() == 0


def test_messages_that_come_in_pieces_and_in_heaps(tmp_path: Path) -> None:
    dice = random.Random(7)
    with serving(tmp_path, {}) as server:
        stream = b"".join(message(f"m{n}", "ping") if n % 3 else message(f"m{n}", "tools/list") for n in range(60))
        stream = stream.replace(b'"m7"', '"m\u00fc7"'.encode())
        while stream:
            size = dice.choice((1, 3, 50, 4000, 100_000))
            server.raw(stream[:size])
            stream = stream[size:]
        names = ["m\u00fc7" if n == 7 else f"m{n}" for n in range(60)]
        assert all("result" in server.answer(name) for name in names)  # type: ignore[arg-type]
        assert server.end() == 0


@pytest.mark.parametrize("size", [1_000_000, 20_000_000], ids=["1 MB", "20 MB"])
def test_an_argument_without_measure_is_refused_and_the_next_call_answered(tmp_path: Path, size: int) -> None:
    with serving(tmp_path, {}) as server:
        failed, text = server.call("proxmox_list_vms", cursor="x" * size)
        assert failed
        assert "cursor: longer than 2048 characters" in text
        assert len(text) < 1_000
        failed, text = server.call("proxmox_list_vms", **{"y" * size: 1})
        assert failed
        assert len(text) < 2_000
        assert "result" in server.request("ping")
        assert server.end() == 0


def test_numbers_names_and_depths_that_no_client_sends(tmp_path: Path) -> None:
    with serving(tmp_path, {}) as server:
        deep: Any = 0
        for _ in range(100):
            deep = [deep]
        for arguments in ({"limit": 10**400}, {"limit": 1e308}, {"fields": deep}, {"\ud800": 1}, {"status": "\x00\x1b[2J"}):
            answer = server.answer(server.start_call("proxmox_list_vms", **arguments))
            assert "error" in answer or told(answer)[0], arguments
            assert "\\u001b" not in json.dumps(answer)
        server.raw(b'{"jsonrpc":"2.0","id":"nan","method":"tools/call","params":{"name":"proxmox_list_vms","arguments":{"limit":NaN}}}\n')
        server.raw(b'{"jsonrpc":"2.0","id":"deep","method":"ping","params":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n")
        assert "result" in server.request("ping")
        assert server.process.poll() is None
        assert server.end() == 0


def test_cancellations_of_what_was_never_asked_is_done_or_is_asked_later(tmp_path: Path) -> None:
    with ServedApi() as api:
        serve(api, "done")
        api.on("GET", "/cluster/resources", Reply(data=[], delay=0.05))
        with serving(tmp_path, environment(api)) as server:

            def cancel(number: Any) -> None:
                server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

            done = server.start_call("proxmox_list_vms")
            server.answer(done)
            for number in (done, done, 10**9, "never", 1):
                cancel(number)
            cancel(server._id + 1)  # of the next request, before it is there
            assert told(server.answer(server.start_call("proxmox_list_vms")))[1].startswith("0 guests")
            alive = [server.start_call("proxmox_list_vms") for _ in range(40)]
            order = random.Random(3).sample(alive, len(alive))
            for number in order[:20]:
                cancel(number)
                cancel(number)
            for number in order[20:]:
                assert told(server.answer(number))[1].startswith("0 guests")
            assert not server.call("proxmox_list_vms")[0]
            assert server.end() == 0


def test_a_change_that_is_cancelled_while_others_wait_leaves_them_alone(tmp_path: Path) -> None:
    with ServedApi() as api:
        serve(api, "wait")
        with serving(tmp_path, environment(api, PROXMOX_AUDIT_DIR=str(tmp_path / "audit"), PROXMOX_MAX_WAIT="2")) as server:
            numbers = [server.start_call("proxmox_vm_power", **STOP, wait_seconds=3) for _ in range(4)]
            until(lambda: len(api.writes) == 4)
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": numbers[1]}})
            for number in (numbers[0], numbers[2], numbers[3]):
                failed, text = told(server.answer(number))
                assert not failed
                assert text.startswith("Started, still running: shut down VM 101 (web)")
            assert server.end() == 0
        states = [json.loads(line)["record"].get("state") for line in (tmp_path / "audit" / "_api_audit.log").read_text().splitlines()]
        assert sorted(filter(None, states)) == ["running", "running", "running", "unknown"]


@pytest.mark.parametrize("half", [b'{"jsonrpc":"2.0","id":9,"method":"too', b'{"jsonrpc":"2.0","id":9,"method":"ping"}', b"\xff"])
def test_input_that_ends_in_the_middle_of_a_line_ends_the_server(tmp_path: Path, half: bytes) -> None:
    with ServedApi() as api:
        serve(api, "wait")
        with serving(tmp_path, environment(api, PROXMOX_AUDIT_DIR=str(tmp_path / "audit"))) as server:
            server.start_call("proxmox_vm_power", **STOP, wait_seconds=40)
            until(lambda: api.count("GET", f"/nodes/pve1/tasks/{UPID}/status") > 1)
            server.raw(half)
            began = time.monotonic()
            assert server.end() == 0
            assert time.monotonic() - began < 3
            assert not server.junk
        outcome = json.loads((tmp_path / "audit" / "_api_audit.log").read_text().splitlines()[-1])
        assert (outcome["kind"], outcome["record"]["state"]) == ("outcome", "unknown")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_client_that_reads_no_more_does_not_keep_an_outcome_from_being_written(tmp_path: Path) -> None:
    """Its end of the output is closed: the answer has nowhere to go, the record has."""
    log = tmp_path / "audit" / "_api_audit.log"
    with ServedApi() as api:
        serve(api, "done")
        around = {"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PROXMOX_AUDIT_DIR": str(log.parent)}
        line = [sys.executable, "-m", "proxmox_mcp"]
        pipe = subprocess.PIPE
        with subprocess.Popen(line, env=around | environment(api), cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as server:
            assert server.stdin
            assert server.stdout
            client = {"name": "c", "version": "1"}
            server.stdin.write(message(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client))
            server.stdin.flush()
            server.stdout.readline()
            server.stdout.close()
            server.stdin.write(message(2, "tools/call", name="proxmox_vm_power", arguments={**STOP, "wait_seconds": 20}))
            server.stdin.flush()
            until(lambda: log.exists() and b'"kind":"outcome"' in log.read_bytes())
            server.stdin.close()
            server.wait(10)
        assert json.loads(log.read_text().splitlines()[-1])["record"]["state"] == "ok"
        assert len(api.writes) == 1
