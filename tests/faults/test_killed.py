"""The server is killed at each stage of a change: what was sent, what the log then says, what the next start and the doctor tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from proxmox_mcp import audit, doctor
from tests.piped import UPID, serve_guest
from tests.served_api import Reply, ServedApi, environment, settings
from tests.stdio import ROOT, Server, serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

STOP = {"vmid": 101, "action": "shutdown", "confirm": True}
STATUS, PERMISSIONS = "/nodes/{node}/qemu/{vmid}/status/current", "/access/permissions"
# stage: what the server waits for, the changes that were sent, and whether the log holds an intent and its outcome
STAGES: dict[str, tuple[int, bool, bool]] = {
    "plan": (0, False, False),
    "intent": (0, True, False),
    "sent": (1, True, False),
    "wait": (1, True, False),
    "outcome": (1, True, True),
}


def serve(api: ServedApi, stage: str) -> None:
    serve_guest(api, exitstatus=None if stage == "wait" else "OK")
    api.on("GET", PERMISSIONS, {"/": dict.fromkeys(("VM.PowerMgmt", "VM.Audit", "Sys.Audit"), 1)})
    api.on("GET", "/nodes/{node}/qemu/{vmid}/config", {"name": "web", "digest": "ab12"})
    api.on("GET", "/nodes/{node}/tasks", [])
    running = {"status": "running", "qmpstatus": "running", "vmid": 101, "name": "web"}
    api.on("GET", STATUS, Reply(hang=True) if stage == "plan" else running)
    if stage == "sent":
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", Reply(hang=True))


def kill(server: Server, api: ServedApi, stage: str) -> None:
    """Waits for the stage and kills there; "intent" and "outcome" kill themselves."""
    reached: dict[str, Callable[[], bool]] = {
        "plan": lambda: api.count("GET", "/nodes/pve1/qemu/101/status/current") > 0,
        "sent": lambda: bool(api.writes),
        "wait": lambda: api.count("GET", f"/nodes/pve1/tasks/{UPID}/status") > 1,
    }
    if stage in reached:
        until(reached[stage])
        server.process.kill()
    assert server.process.wait(20) == -9


@pytest.mark.parametrize("stage", STAGES)
def test_a_server_that_is_killed_leaves_a_log_that_says_how_far_it_came(tmp_path: Path, stage: str) -> None:
    sent, intended, concluded = STAGES[stage]
    with ServedApi() as api:
        serve(api, stage)
        env = environment(api, PROXMOX_APPROVAL="off", PROXMOX_AUDIT_DIR=str(tmp_path / "audit"))
        own = stage in ("intent", "outcome")
        with serving(tmp_path, env, *([stage] if own else []), module="tests.faults.dying" if own else "proxmox_mcp") as server:
            server.start_call("proxmox_vm_power", **STOP, wait_seconds=40)
            kill(server, api, stage)
        assert len(api.writes) == sent
        open_end = intended and not concluded

        report = verified(tmp_path)
        assert report.verdict == ("NOTHING RECORDED" if not intended else "INTACT WITH REMARKS" if open_end else "INTACT")
        assert any("(proxmox_vm_power, " in remark and "has no outcome" in remark for remark in report.remarks) == open_end
        assert doctor_tells(tmp_path, api) == open_end
        with serving(tmp_path, env) as server:
            if open_end:
                until(lambda: bool(server.stderr))
                (line,) = server.stderr
                assert line.startswith("pve-mcp: proxmox_vm_power of 2")
                assert "shut down VM 101 (web)" in line
                assert "look before it is repeated" in line
            assert server.end() == 0
        # no start does anything about it by itself
        assert len(api.writes) == sent


def test_what_another_server_has_under_way_is_not_called_unfinished(tmp_path: Path) -> None:
    with ServedApi() as api:
        serve(api, "sent")
        with serving(tmp_path, environment(api, PROXMOX_AUDIT_DIR=str(tmp_path / "audit"))) as busy:
            busy.start_call("proxmox_vm_power", **STOP)
            until(lambda: bool(api.writes))
            assert not doctor_tells(tmp_path, api)
            busy.process.kill()
            busy.process.wait(10)
        assert doctor_tells(tmp_path, api)


CUT_OFF = """
import pathlib, sys
from proxmox_mcp.audit import AuditLog
log = AuditLog(pathlib.Path(sys.argv[1]), "host")
for n in range(9):
    log.intent({"tool": "t", "risk": "change", "argv": ["zfs", "destroy", f"tank/{n}"], "target": "node pve1"})
log.intent({"tool": "look", "risk": "read", "argv": ["uptime"], "target": "node pve1"})
"""


def test_many_unfinished_changes_are_counted_not_all_named(tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    subprocess.run([sys.executable, "-c", CUT_OFF, str(directory)], cwd=ROOT, check=True)
    with serving(tmp_path, {"PROXMOX_AUDIT_DIR": str(directory)}) as server:
        until(lambda: len(server.stderr) == 6)
        assert "zfs destroy tank/0 on node pve1 (record 2 of the log host)" in server.stderr[0]
        assert "4 more changes have no recorded outcome" in server.stderr[5]
        assert "uptime" not in "".join(server.stderr)
        assert server.end() == 0


CLIENT = """
import json, subprocess, sys, time
server = subprocess.Popen([sys.executable, "-m", "proxmox_mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def say(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n"); server.stdin.flush()
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
say(id=1, method="initialize", params=hello)
server.stdout.readline()
say(method="notifications/initialized")
call = {"name": "proxmox_vm_power", "arguments": json.loads(sys.argv[1]), "_meta": {"progressToken": "t"}}
say(id=2, method="tools/call", params=call)
print(server.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("during", ["wait", "sent"])
def test_a_client_that_is_killed_takes_the_server_with_it_and_the_outcome_is_written(tmp_path: Path, during: str) -> None:
    with ServedApi() as api:
        serve(api, during)
        env = {"PATH": os.defpath, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **environment(api)}
        arguments = json.dumps({**STOP, "wait_seconds": 40})
        with subprocess.Popen([sys.executable, "-c", CLIENT, arguments], cwd=tmp_path, env=env, stdout=subprocess.PIPE) as client:
            assert client.stdout
            pid = int(client.stdout.readline())
            until(lambda: bool(api.writes) and (during == "sent" or api.count("GET", f"/nodes/pve1/tasks/{UPID}/status") > 1))
            client.kill()
        until(lambda: not Path(f"/proc/{pid}").exists(), 5)
        (log,) = tmp_path.rglob("_api_audit.log")
        *_, intent, outcome = map(json.loads, log.read_text().splitlines())
        assert (intent["kind"], outcome["kind"]) == ("intent", "outcome")
        assert outcome["record"]["state"] == "unknown"
        assert "waiting ended in step 1 of 1" in outcome["record"]["abandoned"]
        assert len(api.writes) == 1


def verified(home: Path) -> audit.Report:
    return audit.verify(home / "audit", "api", audit.Keys.none())


def doctor_tells(home: Path, api: ServedApi) -> bool:
    findings = anyio.run(doctor.examine, settings(api, audit_dir=home / "audit"))
    return any("has no recorded outcome" in finding.text for finding in findings if finding.subject == "audit log")


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)  # another process is on its way
