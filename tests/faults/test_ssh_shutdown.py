"""The server is ended while a command runs over a real sshd: in two seconds, with an outcome that says no more than is known."""

from __future__ import annotations

import contextlib
import fcntl
import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sshd import Sshd, needs_sshd, start_sshd
from tests.stdio import Server, serving

pytestmark = needs_sshd
FLAGS = {"confirm": True, "i_understand_data_loss": True}
WAYS = ["end of input", signal.SIGINT, signal.SIGTERM]


def environment(sshd: Sshd, **more: str) -> dict[str, str]:
    target = sshd.target()
    return {
        "PROXMOX_SSH_HOST": "127.0.0.1",
        "PROXMOX_SSH_PORT": str(target.port),
        "PROXMOX_SSH_USER": target.user,
        "PROXMOX_SSH_KEY_PATH": str(target.key_file),
        "PROXMOX_SSH_KNOWN_HOSTS": str(target.known_hosts),
        "PROXMOX_APPROVAL": "off",
        **more,
    }


def end(server: Server, how: Any) -> float:
    """Ends it; how many seconds it took."""
    began = time.monotonic()
    if how == "end of input":
        assert server.end(30) == 0
    else:
        server.process.send_signal(how)
        assert server.process.wait(30) == 0
    return time.monotonic() - began


def records(home: Path) -> list[dict[str, Any]]:
    (log,) = home.rglob("_host_ssh_audit.log")
    return [json.loads(line) for line in log.read_text().splitlines()]


def last_outcome(home: Path) -> dict[str, Any]:
    """What became of the newest intent."""
    found = records(home)
    intent = next(line for line in reversed(found) if line["kind"] == "intent")
    (outcome,) = [line["record"] for line in found if line.get("of") == intent["seq"]]
    return dict(outcome)


def until(true: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)  # another process is on its way


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@pytest.mark.parametrize(
    ("how", "trap"), [*((how, "") for how in WAYS), (signal.SIGTERM, "trap '' TERM INT HUP; ")], ids=["input", "int", "term", "stubborn"]
)
def test_what_runs_is_ended_and_its_outcome_written(tmp_path: Path, how: Any, trap: str) -> None:
    with start_sshd(tmp_path) as sshd, serving(tmp_path, environment(sshd)) as server:
        pid = tmp_path / "pid"
        command = f"{trap}echo $$ >{pid}.new; mv {pid}.new {pid}; sleep 60; sleep 60"
        server.start_call("proxmox_host_exec", command=command, timeout=100, **FLAGS)
        until(pid.exists)
        assert end(server, how) < 2
        outcome = last_outcome(tmp_path)
        assert outcome["state"] == outcome["exit"] == "unknown"
        if not trap:  # a stubborn one may take longer than there is time to wait for
            assert outcome["text"].startswith("cancelled while it ran; it was ended on the far side")
            assert not outcome["may_run_on"]
        until(lambda: not alive(int(pid.read_text())), 5)


@pytest.mark.parametrize("how", ["end of input", signal.SIGTERM])
def test_a_machine_that_hangs_holds_nothing_up_and_may_still_run_it(tmp_path: Path, how: Any) -> None:
    with start_sshd(tmp_path) as sshd, serving(tmp_path, environment(sshd)) as server:
        mark = tmp_path / "ran"
        server.start_call("proxmox_host_exec", command=f"touch {mark}; sleep 60", timeout=100, **FLAGS)
        until(mark.exists)
        with sshd.frozen():
            assert end(server, how) < 2
        outcome = last_outcome(tmp_path)
        assert outcome["state"] == "unknown"
        assert outcome["text"] == "cancelled while it ran; the far side did not confirm that it ended: it may still run"


@pytest.mark.parametrize("how", ["end of input", signal.SIGTERM])
def test_a_mute_port_holds_nothing_up_and_nothing_was_run(tmp_path: Path, how: Any) -> None:
    with start_sshd(tmp_path) as sshd, socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        with serving(tmp_path, environment(sshd, PROXMOX_SSH_PORT=str(port), PROXMOX_SSH_TIMEOUT="30")) as server:
            server.start_call("proxmox_host_read_exec", command="uptime")
            until(lambda: any(tmp_path.rglob("_host_ssh_audit.log")) and len(records(tmp_path)) == 2)
            assert end(server, how) < 2
        assert last_outcome(tmp_path) == {"state": "not run", "text": "cancelled before it ran"}


@pytest.mark.parametrize("how", ["end of input", signal.SIGTERM])
def test_a_log_that_another_process_keeps_locked_holds_nothing_up(tmp_path: Path, how: Any) -> None:
    with start_sshd(tmp_path) as sshd, serving(tmp_path, environment(sshd)) as server:
        mark = tmp_path / "ran"
        server.start_call("proxmox_host_exec", command=f"touch {mark}; sleep 60", timeout=100, **FLAGS)
        until(mark.exists)
        (head,) = tmp_path.rglob("_host_ssh_audit.head")
        with head.open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert end(server, how) < 2
        assert records(tmp_path)[-1]["kind"] == "intent"  # without its outcome: verify lists it, the next start tells it
