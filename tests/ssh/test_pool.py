"""One connection a target: kept, shared, replaced when it dies; never a command twice."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from proxmox_mcp.errors import SshError, SshUnreachable
from proxmox_mcp.ssh import Outcome, ShellText, SshPool, connect
from proxmox_mcp.ssh_targets import SshTarget
from tests.ssh.servers import Process, Wire, marker, scripted
from tests.sshd import Sshd, account, needs_root, start_sshd

pytestmark = pytest.mark.anyio


async def test_the_second_command_needs_no_handshake(sshd: Sshd, pool: SshPool) -> None:
    for number in range(5):
        assert (await pool.run(sshd.target(), ["echo", str(number)])).stdout == f"{number}\n"
    assert sshd.connections == 1


async def test_targets_that_differ_only_in_the_command_share_a_connection(sshd: Sshd, pool: SshPool) -> None:
    await pool.run(sshd.target(label="node a"), ["true"])
    await pool.run(sshd.target(label="node b", connect_timeout=3), ["true"])
    assert sshd.connections == 1


async def test_fifty_commands_at_once_on_one_connection(sshd: Sshd, pool: SshPool) -> None:
    outcomes = await asyncio.gather(*(pool.run(sshd.target(), ["sh", "-c", f"sleep 0.05; echo {n}"]) for n in range(50)))
    assert [outcome.stdout for outcome in outcomes] == [f"{n}\n" for n in range(50)]
    assert all(outcome.ok for outcome in outcomes)
    assert sshd.connections == 1


@pytest.mark.parametrize("sessions", [1, 3])
async def test_a_server_with_few_sessions_is_respected(tmp_path: Path, pool: SshPool, sessions: int) -> None:
    with start_sshd(tmp_path, options=[f"MaxSessions {sessions}"]) as sshd:
        outcomes = await asyncio.gather(*(pool.run(sshd.target(), ["echo", str(n)]) for n in range(20)))
        assert [outcome.stdout for outcome in outcomes] == [f"{n}\n" for n in range(20)]
        assert sshd.connections == 1


async def test_with_one_session_a_command_is_ended_over_a_second_connection(tmp_path: Path, pool: SshPool) -> None:
    with start_sshd(tmp_path, options=["MaxSessions 1"]) as sshd:
        outcome = await pool.run(sshd.target(), ["sh", "-c", "sleep 300 & sleep 300"], timeout=0.3)
        assert outcome.timed_out
        assert not outcome.may_run_on
        assert (await pool.run(sshd.target(), ["echo", "next"])).stdout == "next\n"
        assert sshd.connections == 2


async def test_when_nothing_can_end_a_command_the_outcome_says_that_it_may_run_on(tmp_path: Path, pool: SshPool) -> None:
    with start_sshd(tmp_path, options=["MaxSessions 1"]) as sshd:

        async def lose_the_key(text: str) -> None:
            sshd.client_key.unlink()

        outcome = await pool.run(sshd.target(), ["sh", "-c", "echo $$; exec sleep 300"], timeout=0.3, on_output=lose_the_key)
        os.kill(int(outcome.stdout), 9)
        assert outcome.timed_out
        assert outcome.may_run_on


async def cancelled(pool: SshPool, target: SshTarget, script: str, **more: Any) -> list[Outcome | None]:
    """What is told of a command whose call is cancelled as soon as it has begun."""
    told: list[Outcome | None] = []
    begun = asyncio.Event()

    async def heard(text: str) -> None:
        begun.set()

    task = asyncio.create_task(pool.run(target, ["sh", "-c", f"echo begun; {script}"], on_output=heard, on_cancelled=told.append, **more))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return told


async def test_a_cancelled_call_is_told_what_became_of_its_command(sshd: Sshd, pool: SshPool) -> None:
    [outcome] = await cancelled(pool, sshd.target(), "sleep 300")
    assert outcome is not None
    assert outcome.exit_status is None
    assert outcome.signal == "TERM"
    assert not outcome.may_run_on


async def test_the_servers_end_waits_for_no_machine_that_hangs(sshd: Sshd, pool: SshPool) -> None:
    told: list[Outcome | None] = []
    begun = asyncio.Event()

    async def heard(text: str) -> None:
        begun.set()

    task = asyncio.create_task(pool.run(sshd.target(), ["sh", "-c", "echo; sleep 9"], on_output=heard, on_cancelled=told.append))
    await begun.wait()
    with sshd.frozen():
        began = time.monotonic()
        task.cancel()
        asyncio.get_running_loop().call_later(0.2, pool.hurry)
        with pytest.raises(asyncio.CancelledError):
            await task
        await pool.close()
        assert time.monotonic() - began < 3
    [outcome] = told
    assert outcome is not None
    assert outcome.may_run_on


async def test_a_call_that_is_cancelled_before_its_command_was_sent_is_told_so(sshd: Sshd, pool: SshPool) -> None:
    told: list[Outcome | None] = []
    with socket.create_server(("127.0.0.1", 0)) as mute:
        nowhere = sshd.target(port=mute.getsockname()[1])
        for asked in (pool.run(nowhere, ["true"], on_cancelled=told.append), pool.hostname(nowhere, on_cancelled=told.append)):
            with anyio.move_on_after(0.1):
                await asked
    full = [asyncio.create_task(pool.run(sshd.target(), ["sleep", "1.5"])) for _ in range(8)]
    await asyncio.sleep(0)
    with anyio.move_on_after(0.7):
        await pool.run(sshd.target(), ["true"], on_cancelled=told.append)
    await asyncio.gather(*full)
    assert told == [None, None, None]


async def test_a_server_without_sessions_is_said_so(tmp_path: Path, pool: SshPool) -> None:
    with start_sshd(tmp_path, options=["MaxSessions 0"]) as sshd, pytest.raises(SshUnreachable, match="opens no session"):
        await pool.run(sshd.target(), ["true"])


async def test_a_dead_connection_is_replaced_for_the_next_command(sshd: Sshd, pool: SshPool) -> None:
    await pool.run(sshd.target(), ["true"])
    sshd.drop_connections()
    assert (await pool.run(sshd.target(), ["echo", "again"])).stdout == "again\n"
    assert sshd.connections == 2


async def test_a_server_that_restarts_in_between(tmp_path: Path, pool: SshPool) -> None:
    with start_sshd(tmp_path) as sshd:
        await pool.run(sshd.target(), ["true"])
        sshd.stop()
        with pytest.raises(SshUnreachable):
            await pool.run(sshd.target(), ["true"])
        sshd.start()
        assert (await pool.run(sshd.target(), ["echo", "again"])).stdout == "again\n"


async def test_a_wire_that_goes_dead_silently_is_noticed(sshd: Sshd, pool: SshPool) -> None:
    async with Wire(sshd.port) as wire:
        target = sshd.target(port=wire.port, known_hosts="ignore", connect_timeout=0.5)
        await pool.run(target, ["true"])
        wire.freeze()
        assert (await pool.run(target, ["echo", "again"])).stdout == "again\n"
        assert wire.connections == 2


async def test_a_connection_that_is_given_up_leaves_its_commands_alone_and_is_closed_after_them(sshd: Sshd, pool: SshPool) -> None:
    target = sshd.target()
    slow = asyncio.create_task(pool.run(target, ["sh", "-c", "sleep 0.5; echo slow"]))
    await pool.run(target, ["true"])
    [link] = pool._links.values()
    link.retire()
    assert (await pool.run(target, ["echo", "new"])).stdout == "new\n"
    assert (await slow).stdout == "slow\n"
    await link.connection.wait_closed()
    assert sshd.connections == 2


async def test_keep_alive_gives_a_dead_wire_up_and_its_command_is_lost(
    sshd: Sshd, pool: SshPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "KEEPALIVE", 0.1)
    counter = tmp_path / "counter"
    async with Wire(sshd.port) as wire:

        async def freeze(text: str) -> None:
            wire.freeze()

        target = sshd.target(port=wire.port, known_hosts="ignore")
        line = ShellText(f"echo run >>{counter}\necho begun\nsleep 2\n")
        outcome = await pool.run(target, ["sh", "-c", line], timeout=20, on_output=freeze)
        assert outcome.lost
        assert outcome.duration < 5
        assert counter.read_text() == "run\n"
        assert (await pool.run(target, ["echo", "next"])).stdout == "next\n"


async def test_others_on_a_connection_are_not_disturbed_by_one_that_ends(sshd: Sshd, pool: SshPool) -> None:
    slow = asyncio.create_task(pool.run(sshd.target(), ["sh", "-c", "sleep 1; echo slow"]))
    ended = await pool.run(sshd.target(), ["sleep", "300"], timeout=0.3)
    assert ended.timed_out
    assert (await slow).stdout == "slow\n"
    assert sshd.connections == 1


async def test_commands_cancelled_while_they_wait_for_room_cost_no_room(sshd: Sshd, pool: SshPool) -> None:
    with anyio.move_on_after(0.3):
        async with anyio.create_task_group() as group:
            for _ in range(30):
                group.start_soon(pool.run, sshd.target(), ["sleep", "300"])
    outcomes = await asyncio.gather(*(pool.run(sshd.target(), ["echo", "room"]) for _ in range(20)))
    assert all(outcome.stdout == "room\n" for outcome in outcomes)
    assert sshd.connections <= 2  # a busy machine may need a second one to end what was cancelled


async def test_a_caller_that_gives_up_during_the_handshake_leaves_it_to_the_others(sshd: Sshd, pool: SshPool) -> None:
    first = asyncio.create_task(pool.run(sshd.target(), ["echo", "first"]))
    second = asyncio.create_task(pool.run(sshd.target(), ["echo", "second"]))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).stdout == "second\n"
    with pytest.raises(asyncio.CancelledError):
        await first
    assert sshd.connections == 1


async def test_a_failed_handshake_is_tried_again_by_the_next_command(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    target = sshd.target(known_hosts=known)
    with pytest.raises(SshError):
        await pool.run(target, ["true"])
    known.write_text(sshd.host_key_line)
    assert (await pool.run(target, ["echo", "now"])).stdout == "now\n"


async def test_closing_the_pool_gives_up_a_handshake(sshd: Sshd) -> None:
    pool = SshPool()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        task = asyncio.create_task(pool.run(sshd.target(port=mute.getsockname()[1]), ["true"]))
        caller, _ = await asyncio.to_thread(mute.accept)
        await pool.close()
        caller.close()
        with pytest.raises(SshError, match="shutting down"):
            await task


async def test_the_hostname_is_asked_once_a_connection(tmp_path: Path, pool: SshPool) -> None:
    asked = 0

    async def handler(process: Process) -> None:
        nonlocal asked
        asked += 1
        process.stdout.write(marker(process) + b"pve1.lab.example\n")
        process.exit(0)

    async with scripted(tmp_path, handler) as target:
        assert await asyncio.gather(*(pool.hostname(target) for _ in range(5))) == ["pve1"] * 5
        assert await pool.hostname(target) == "pve1"
        assert asked == 1


@pytest.mark.parametrize("answer", [b"", b"\n", b"a b\n", b"-x/../y\n", b"\x1b[31m\n"])
async def test_a_hostname_that_is_none_is_refused(tmp_path: Path, pool: SshPool, answer: bytes) -> None:
    async def handler(process: Process) -> None:
        process.stdout.write(marker(process) + answer)
        process.exit(0)

    async with scripted(tmp_path, handler) as target:
        with pytest.raises(SshError, match="did not tell its name"):
            await pool.hostname(target)


async def test_the_real_hostname(sshd: Sshd, pool: SshPool) -> None:
    assert pool.known_hostname(sshd.target()) is None
    assert await pool.hostname(sshd.target()) == platform.node().partition(".")[0]
    assert pool.known_hostname(sshd.target()) == platform.node().partition(".")[0]


@needs_root
async def test_the_hostname_is_asked_without_sudo(sshd: Sshd, pool: SshPool) -> None:
    with account("/bin/sh", sshd) as user:
        assert await pool.hostname(sshd.target(user=user.name, sudo=True)) == platform.node().partition(".")[0]


def test_asyncssh_is_imported_by_the_first_command_only() -> None:
    script = "import sys, proxmox_mcp.ssh, proxmox_mcp.ssh_targets; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(__file__).parents[2]).returncode == 0


async def test_commands_run_side_by_side(sshd: Sshd, pool: SshPool) -> None:
    await pool.run(sshd.target(), ["true"])
    began = time.monotonic()
    argv: Sequence[str] = ["sleep", "0.5"]
    await asyncio.gather(*(pool.run(sshd.target(), argv) for _ in range(8)))
    assert time.monotonic() - began < 2


async def test_a_command_for_one_machine_does_not_run_on_another(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    """An address may lead to another machine after a connection has died, and both may be known hosts."""
    here = platform.node().partition(".")[0]
    assert (await pool.run(sshd.target(), ["echo", "x"], host=here)).stdout == "x\n"
    for sudo_free in (["touch", str(tmp_path / "made")], ["sh", "-c", f"touch {tmp_path}/made"]):
        with pytest.raises(SshError, match=f"it calls itself {here} now. The command was not run"):
            await pool.run(sshd.target(), sudo_free, host="pve-other")
        with pytest.raises(SshError, match="was not run"):
            await pool.run(sshd.target(), sudo_free, host="$(uname -n)")
    assert not (tmp_path / "made").exists()
    assert (await pool.run(sshd.target(), ["cat"], stdin=b"y", host=here)).stdout == "y"
