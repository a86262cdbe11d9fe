"""One command on a real sshd: what arrives there, what comes back, how it ends."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from proxmox_mcp.errors import SshAuthFailed, SshError
from proxmox_mcp.ssh import ShellText, SshPool, link
from tests.ssh.servers import Process, Wire, hangs_up, marker, scripted
from tests.sshd import Sshd, account, needs_root, processes, start_sshd

pytestmark = pytest.mark.anyio

NOISE = {
    ".bashrc": "echo PROFILE NOISE; echo PROFILE NOISE >&2; export LC_ALL=xx_YY.UTF-8\n",
    ".cshrc": "echo PROFILE NOISE\n",
    ".zshenv": "echo PROFILE NOISE; echo PROFILE NOISE >&2\n",
    ".config/fish/config.fish": "echo PROFILE NOISE; echo PROFILE NOISE >&2\n",
}


def mark() -> str:
    """A number of seconds that no other process sleeps."""
    return str(100_000_000 + int.from_bytes(os.urandom(4)))


async def test_g56_output_that_is_not_utf8(sshd: Sshd, pool: SshPool) -> None:
    outcome = await pool.run(sshd.target(), ["printf", "good\\ncaf\\351\\n"])
    assert outcome.ok
    assert outcome.stdout == "good\ncaf\ufffd\n"
    assert outcome.replaced
    assert (await pool.run(sshd.target(), ["echo", "é"])).stdout == "é\n"
    assert sshd.connections == 1


async def test_g57_a_command_that_reads_stdin_gets_its_end(sshd: Sshd, pool: SshPool) -> None:
    outcome = await pool.run(sshd.target(), ["cat"], timeout=5)
    assert outcome.ok
    assert outcome.stdout == ""
    assert outcome.duration < 4


async def test_stdin_arrives_whole(sshd: Sshd, pool: SshPool) -> None:
    data = os.urandom(3_000_000)
    outcome = await pool.run(sshd.target(), ["sha256sum"], stdin=data)
    assert outcome.stdout == f"{hashlib.sha256(data).hexdigest()}  -\n"


async def test_stdin_that_nobody_reads_is_no_fault(sshd: Sshd, pool: SshPool) -> None:
    outcome = await pool.run(sshd.target(), ["true"], stdin=b"x" * 5_000_000)
    assert outcome.ok


async def test_g58_a_connection_lost_in_the_middle_is_unknown_and_not_repeated(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    seen = asyncio.Event()

    async def cut(text: str) -> None:
        if "part" in text:
            seen.set()
            sshd.drop_connections()

    line = ShellText(f"echo run >> {counter}\necho part\nsleep 20")
    outcome = await pool.run(sshd.target(), ["sh", "-c", line], on_output=cut, timeout=30)
    assert seen.is_set()
    assert outcome.lost
    assert outcome.exit_status is None
    assert not outcome.ok
    assert outcome.stdout == "part\n"
    after = await pool.run(sshd.target(), ["cat", str(counter)])
    assert after.stdout == "run\n"
    assert sshd.connections == 2


async def test_g58_a_server_that_aborts_after_part_of_the_output(tmp_path: Path, pool: SshPool) -> None:
    async def handler(process: Process) -> None:
        process.stdout.write(marker(process) + b"part")
        await process.stdout.drain()
        process.get_extra_info("connection").abort()

    async with scripted(tmp_path, handler) as target:
        outcome = await pool.run(target, ["zfs", "destroy", "tank/x"])
        assert (outcome.lost, outcome.exit_status, outcome.stdout) == (True, None, "part")


async def test_a_connection_that_dies_with_the_request_is_unknown_and_not_repeated(tmp_path: Path, pool: SshPool) -> None:
    async with hangs_up(tmp_path) as (target, server):
        outcome = await pool.run(target, ["zfs", "destroy", "tank/x"])
        assert (outcome.lost, outcome.exit_status, outcome.ok) == (True, None, False)
        assert server.requests == 1


async def test_a_channel_that_closes_without_a_status_is_lost(tmp_path: Path, pool: SshPool) -> None:
    async def handler(process: Process) -> None:
        process.stdout.write(marker(process) + b"all of it")
        process.close()

    async with scripted(tmp_path, handler) as target:
        assert (await pool.run(target, ["true"])).lost


async def test_g60_locale_warnings_do_not_hide_the_message(sshd: Sshd, pool: SshPool) -> None:
    noise = "; ".join(f"echo 'perl: warning: {line}' >&2" for line in ("Setting locale failed.", "Falling back.", "a", "b", "c"))
    outcome = await pool.run(sshd.target(), ["sh", "-c", f"{noise}; echo '205 running web'"])
    assert (outcome.ok, outcome.stdout, outcome.stderr) == (True, "205 running web\n", "")
    outcome = await pool.run(sshd.target(), ["sh", "-c", f"{noise}; echo 'CT 205 does not exist' >&2; exit 2"])
    assert (outcome.exit_status, outcome.stderr) == (2, "CT 205 does not exist\n")


async def test_g61_sbin_is_on_the_path_and_127_comes_through(sshd: Sshd, pool: SshPool) -> None:
    path = (await pool.run(sshd.target(), ["printenv", "PATH"])).stdout
    assert path == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    outcome = await pool.run(sshd.target(), ["zfs-is-not-here", "list"])
    assert outcome.exit_status == 127
    assert "zfs-is-not-here" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


async def test_g62_words_reach_the_inner_shell_exactly_once(sshd: Sshd, pool: SshPool) -> None:
    outcome = await pool.run(sshd.target(), ["sh", "-c", "echo \"a b\" '$HOME'; printf '<%s>' \"$@\"", "sh", "x;id", "$(id)", "!y"])
    assert outcome.stdout == "a b $HOME\n<x;id><$(id)><!y>"


async def test_g64_twenty_megabytes_keep_head_and_tail(sshd: Sshd, pool: SshPool) -> None:
    outcome = await pool.run(
        sshd.target(), ["sh", "-c", "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last"], max_bytes=1000
    )
    assert outcome.ok
    assert not outcome.capped
    assert outcome.stdout.startswith("first\nxxx")
    assert outcome.stdout.endswith("xxx\nlast\n")
    assert f"\n[... {outcome.omitted_bytes} bytes left out ...]\n" in outcome.stdout
    whole = b"first\n" + b"x" * 20_000_000 + b"\nlast\n"
    assert outcome.stdout_bytes == len(whole)
    assert outcome.omitted_bytes == len(whole) - 1000
    assert outcome.stdout_sha256 == hashlib.sha256(whole).hexdigest()


async def test_both_streams_are_bounded_each(sshd: Sshd, pool: SshPool) -> None:
    outcome = await pool.run(sshd.target(), ["sh", "-c", "seq 1 100000 >&2; echo out"], max_bytes=100)
    assert outcome.stdout == "out\n"
    assert outcome.omitted_bytes == 0
    assert outcome.omitted_stderr > 500_000
    assert outcome.stderr.startswith("1\n2\n")
    assert outcome.stderr.endswith("\n100000\n")


async def test_the_exit_status_is_the_commands_own(sshd: Sshd, pool: SshPool) -> None:
    for status in (0, 1, 2, 124, 126, 137, 254, 255):
        outcome = await pool.run(sshd.target(), ["sh", "-c", f"exit {status}"])
        assert (outcome.exit_status, outcome.signal, outcome.lost, outcome.timed_out) == (status, None, False, False)


async def test_a_signal_is_told_from_a_status(sshd: Sshd, pool: SshPool) -> None:
    for signal in ("KILL", "TERM", "SEGV", "PIPE"):
        outcome = await pool.run(sshd.target(), ["sh", "-c", f"ulimit -c 0; kill -{signal} $$"])
        assert (outcome.exit_status, outcome.signal, outcome.lost) == (None, signal, False)


async def test_endless_output_is_ended_there(sshd: Sshd) -> None:
    pool = SshPool(read_limit=3_000_000)
    try:
        word = f"y{mark()}"
        outcome = await pool.run(sshd.target(), ["yes", word], max_bytes=1000)
        assert outcome.capped
        assert outcome.exit_status is None
        assert not outcome.ok
        assert not outcome.may_run_on
        assert 3_000_000 < outcome.stdout_bytes < 12_000_000
        assert processes(f"yes\0{word}") == []
        assert (await pool.run(sshd.target(), ["echo", "next"])).stdout == "next\n"
        assert sshd.connections == 1
    finally:
        await pool.close()


@pytest.mark.parametrize(
    "script",
    [
        "sleep MARK",
        "sleep MARK & sleep MARK | cat; :",
        "trap '' TERM HUP; while :; do sleep MARK; done",
        "trap 'exit 0' TERM; sleep MARK & wait",
        "setsid -w sleep MARK",
        "exec nohup sleep MARK",
    ],
)
async def test_a_command_whose_time_is_up_is_ended_there(sshd: Sshd, pool: SshPool, script: str) -> None:
    seconds = mark()
    outcome = await pool.run(sshd.target(), ["sh", "-c", "echo begun; " + script.replace("MARK", seconds)], timeout=0.3)
    assert outcome.timed_out
    assert outcome.exit_status is None
    assert not outcome.may_run_on
    assert outcome.stdout == "begun\n"
    assert processes(f"sleep\0{seconds}") == []


async def test_what_detached_itself_lives_on_and_does_not_hold_the_answer(sshd: Sshd, pool: SshPool) -> None:
    seconds = mark()
    outcome = await pool.run(sshd.target(), ["sh", "-c", f"sleep {seconds} & echo started"], timeout=20)
    assert outcome.open_end  # who else could still print is not known
    assert not (await pool.run(sshd.target(), ["sh", "-c", "sleep 3 >/dev/null 2>&1 & echo started"])).open_end
    assert outcome.ok
    assert outcome.stdout == "started\n"
    assert outcome.duration < 10
    left = processes(f"sleep\0{seconds}")
    assert len(left) == 1
    os.kill(left[0], 9)


@pytest.mark.skipif(not shutil.which("timeout"), reason="no GNU timeout")
async def test_a_command_has_a_limit_of_its_own_on_the_far_side(sshd: Sshd, pool: SshPool) -> None:
    outcome = await pool.run(sshd.target(), ["sh", "-c", "tr '\\0' ' ' </proc/$PPID/cmdline"], timeout=33)
    assert outcome.stdout.startswith("timeout -k 5 43 env -i ")


async def test_a_cancelled_call_ends_its_command_first(sshd: Sshd, pool: SshPool) -> None:
    seconds = mark()
    begun = asyncio.Event()

    async def heard(text: str) -> None:
        begun.set()

    task = asyncio.create_task(pool.run(sshd.target(), ["sh", "-c", f"echo begun; sleep {seconds}"], on_output=heard))
    await begun.wait()
    assert processes(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes(seconds) == []
    assert (await pool.run(sshd.target(), ["echo", "next"])).stdout == "next\n"


async def test_a_cancel_scope_ends_its_command_too(sshd: Sshd, pool: SshPool) -> None:
    seconds = mark()
    with anyio.move_on_after(0.4) as scope:
        await pool.run(sshd.target(), ["sleep", seconds])
    assert scope.cancelled_caught
    assert processes(f"sleep\0{seconds}") == []


async def test_output_is_heard_while_it_comes(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    heard: list[str] = []

    async def listen(text: str) -> None:
        heard.append(text)
        if "one" in text:
            await asyncio.to_thread(gate.write_text, "go\n")

    script = f"printf 'one caf\\303'; cat {gate} >/dev/null; printf '\\251 two\\n' >&1; echo three >&2"
    outcome = await pool.run(sshd.target(), ["sh", "-c", script], on_output=listen)
    assert outcome.ok
    assert heard[0] == "one caf"
    assert sorted("".join(heard).split()) == ["caf\u00e9", "one", "three", "two"]


async def test_a_slow_listener_holds_the_far_side_back_and_misses_nothing(sshd: Sshd, pool: SshPool) -> None:
    sizes: list[int] = []

    async def listen(text: str) -> None:
        sizes.append(len(text))
        await asyncio.sleep(0.001)

    outcome = await pool.run(sshd.target(), ["sh", "-c", "head -c 8000000 /dev/zero | tr '\\0' x"], on_output=listen)
    assert outcome.ok
    assert sum(sizes) == outcome.stdout_bytes == 8_000_000
    assert max(sizes) < 2_000_000


async def test_a_listener_that_fails_ends_the_command_and_its_error_goes_on(sshd: Sshd, pool: SshPool) -> None:
    seconds = mark()

    async def listen(text: str) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await pool.run(sshd.target(), ["sh", "-c", f"echo begun; sleep {seconds}"], on_output=listen)
    assert processes(f"sleep\0{seconds}") == []


async def test_a_listener_that_never_returns_does_not_hold_the_outcome(sshd: Sshd, pool: SshPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LISTENER_TIME", 0.1)

    async def listen(text: str) -> None:
        await asyncio.Event().wait()

    outcome = await pool.run(sshd.target(), ["echo", "out"], on_output=listen)
    assert outcome.ok
    assert outcome.stdout == "out\n"


async def test_banner_and_profile_noise_stay_out(tmp_path: Path, pool: SshPool) -> None:
    banner = tmp_path / "banner"
    banner.write_text("*** AUTHORISED USE ONLY ***\n")
    with start_sshd(tmp_path, options=[f"Banner {banner}"]) as sshd:
        (sshd.home / ".bashrc").write_text(NOISE[".bashrc"] + "set -x\n")
        outcome = await pool.run(sshd.target(), ["sh", "-c", "echo out; echo err >&2"])
        assert (outcome.stdout, outcome.stderr) == ("out\n", "err\n")


@needs_root
@pytest.mark.parametrize("endless", ["sleep", "yes"])
async def test_a_profile_that_never_ends_is_ended_and_costs_no_memory(sshd: Sshd, pool: SshPool, endless: str) -> None:
    word = mark()
    with account("/bin/bash", sshd, files={".bashrc": f"echo my profile\n{endless} {word}\n"}) as user:
        outcome = await pool.run(sshd.target(user=user.name), ["true"], timeout=0.5)
        if outcome.ok:
            pytest.skip("this bash reads no profile here")
        assert outcome.timed_out
        assert outcome.stdout == ""
        assert (word if endless == "yes" else "my profile") in outcome.stderr
        assert len(outcome.stderr) < 5000
        assert not outcome.may_run_on
        assert processes(f"{endless}\0{word}") == []


@needs_root
@pytest.mark.parametrize("shell", ["bash", "dash", "tcsh", "fish", "zsh", "ksh", "busybox"])
async def test_a_login_shell_that_is_not_bash(sshd: Sshd, pool: SshPool, shell: str) -> None:
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"{shell} is not installed")
    place = tempfile.mkdtemp(dir="/tmp")
    try:
        os.chmod(place, 0o755)
        if shell == "busybox":
            os.symlink(found, f"{place}/ash")
            found = f"{place}/ash"
        with account(found, sshd, files=NOISE) as user:
            target = sshd.target(user=user.name)
            words = ["a b", "$HOME", "!x", "\\n", "'", "é", ShellText("two\nlines")]
            outcome = await pool.run(target, ["sh", "-c", "printf '<%s>' \"$@\"; echo err >&2; exit 7", "sh", *words])
            assert outcome.stdout == "".join(f"<{word}>" for word in words)
            assert outcome.stderr == "err\n"
            assert outcome.exit_status == 7
            seconds = mark()
            outcome = await pool.run(target, ["sh", "-c", f"sleep {seconds} & sleep {seconds}"], timeout=0.3)
            assert outcome.timed_out
            assert not outcome.may_run_on
            assert processes(f"sleep\0{seconds}") == []
    finally:
        shutil.rmtree(place)


@needs_root
@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false"])
async def test_an_account_without_a_shell_is_said_so(sshd: Sshd, pool: SshPool, shell: str) -> None:
    with account(shell, sshd) as user, pytest.raises(SshError, match="did not start the command") as failed:
        await pool.run(sshd.target(user=user.name), ["id"])
    assert "The command was not run" in str(failed.value)


@contextmanager
def sudo_rule(user: str, rule: str) -> Iterator[None]:
    if not shutil.which("sudo"):
        pytest.skip("sudo is not installed")
    path = Path(f"/etc/sudoers.d/{user}")
    path.write_text(f"{user} ALL=(root) {rule}\n")
    path.chmod(0o440)
    try:
        yield
    finally:
        path.unlink()


@needs_root
async def test_sudo_that_asks_for_a_password_fails_at_once(sshd: Sshd, pool: SshPool) -> None:
    if not shutil.which("sudo"):
        pytest.skip("sudo is not installed")
    with account("/bin/bash", sshd) as user, pytest.raises(SshAuthFailed, match=r"asks .* for a password") as failed:
        await pool.run(sshd.target(user=user.name, sudo=True), ["zfs", "list"], timeout=10)
    assert "NOPASSWD" in failed.value.hint
    assert "was not run" in str(failed.value)


@needs_root
async def test_sudo_runs_as_root_and_ends_as_root(sshd: Sshd, pool: SshPool) -> None:
    with account("/bin/bash", sshd) as user, sudo_rule(user.name, "NOPASSWD: ALL"):
        target = sshd.target(user=user.name, sudo=True)
        assert (await pool.run(target, ["id", "-un"])).stdout == "root\n"
        assert (await pool.run(target, ["printenv", "ODD"], extra_env={"ODD": "a b"})).stdout == "a b\n"
        assert (await pool.run(target, ["sh", "-c", "exit 255"])).exit_status == 255
        seconds = mark()
        outcome = await pool.run(target, ["sh", "-c", f"trap '' TERM; sleep {seconds} & sleep {seconds}"], timeout=0.3)
        assert outcome.timed_out
        assert not outcome.may_run_on
        assert processes(f"sleep\0{seconds}") == []
        assert sshd.connections == 1


@needs_root
async def test_sudo_for_one_program_that_will_not_end_is_said_so(sshd: Sshd, pool: SshPool) -> None:
    seconds = mark()
    with account("/bin/bash", sshd) as user:
        program = user.home / "stubborn"
        program.write_text(f"#!/bin/sh\ntrap '' TERM\nwhile :; do sleep {seconds}; done\n")
        program.chmod(0o755)
        with sudo_rule(user.name, f"NOPASSWD: {program}"):
            outcome = await pool.run(sshd.target(user=user.name, sudo=True), [str(program)], timeout=0.3)
        left = processes(str(program)) + processes(f"sleep\0{seconds}")
        for pid in left:
            os.kill(pid, 9)
        assert outcome.timed_out
        assert outcome.may_run_on
        assert left


async def test_time_up_on_a_dead_wire_ends_the_command_over_a_new_connection(sshd: Sshd, pool: SshPool) -> None:
    async with Wire(sshd.port) as wire:
        seconds = mark()

        async def freeze(text: str) -> None:
            wire.freeze()

        target = sshd.target(port=wire.port, known_hosts="ignore", connect_timeout=1)
        outcome = await pool.run(target, ["sh", "-c", f"echo begun; sleep {seconds}"], timeout=1, on_output=freeze)
        assert outcome.timed_out
        assert not outcome.may_run_on
        assert processes(f"sleep\0{seconds}") == []


async def test_closing_the_pool_ends_what_runs(sshd: Sshd) -> None:
    pool = SshPool()
    seconds = mark()
    begun = asyncio.Event()

    async def heard(text: str) -> None:
        begun.set()

    task = asyncio.create_task(pool.run(sshd.target(), ["sh", "-c", f"echo begun; sleep {seconds}"], on_output=heard))
    await begun.wait()
    await pool.close()
    outcome = await task
    assert outcome.exit_status is None
    assert not outcome.ok
    assert processes(f"sleep\0{seconds}") == []
    with pytest.raises(SshError, match="shutting down"):
        await pool.run(sshd.target(), ["true"])
