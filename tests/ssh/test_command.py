"""argv -> a line that every login shell reads the same; what is refused; the script that ends a command."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.ssh import ShellText, operand
from proxmox_mcp.ssh.command import LINE_LIMIT, PATH, ending, prepare
from tests.sshd import processes

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
SHELLS = ["bash", "dash", "zsh", "ksh", "tcsh", "fish", "busybox"]
HOSTILE = [
    "a b",
    "$HOME",
    "`id`",
    "$(id)",
    ";id",
    "!x",
    "!!",
    "\\",
    "\\n",
    "\\\\",
    "'",
    '"',
    "*",
    "~",
    "é ☃",
    "{a,b}",
    "%s",
    "\t",
    "",
    "-x",
    "#",
]


def output(line: str, shell: str, **options: str) -> bytes:
    """What the line prints in this login shell, without the marker."""
    path = shutil.which(shell)
    if not path:
        pytest.skip(f"{shell} is not installed")
    command = [path, *(["sh"] if shell == "busybox" else []), "-c", line]
    done = subprocess.run(command, capture_output=True, timeout=20, env={**os.environ, **options})
    return done.stdout.partition(b"\n")[2]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_login_shell_passes_each_word_exactly(shell: str) -> None:
    words = [*HOSTILE, ShellText("two\nlines\n")]
    line = prepare(["printf", "<%s>\\n", *words], timeout=5).line
    assert output(line, shell) == "".join(f"<{word}>\n" for word in words).encode()


@pytest.mark.parametrize("shell", SHELLS)
def test_every_login_shell_takes_a_long_line(shell: str) -> None:
    word = "x'\\!" * 4_000
    assert output(prepare(["printf", "%s", word], timeout=5).line, shell) == word.encode()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r")), max_size=5))
def test_any_words_arrive_unchanged(words: list[str]) -> None:
    line = prepare(["printf", "%s\\0", "begin", *words], timeout=5).line
    assert output(line, "dash").decode() == "".join(f"{word}\0" for word in ["begin", *words])


def test_the_environment_is_fixed_and_clean() -> None:
    line = prepare(["env"], timeout=5, extra_env={"LANGUAGE": "de", "ODD": "a b'c"}).line
    found = dict(entry.split("=", 1) for entry in output(line, "dash", LEAK="1", BASH_ENV="/x", PAGER="less").decode().splitlines())
    assert "LEAK" not in found
    assert "BASH_ENV" not in found
    expected = {"PATH": PATH, "LC_ALL": "C.UTF-8", "PAGER": "cat", "LANGUAGE": "de", "ODD": "a b'c", "HOME": os.environ.get("HOME", "")}
    assert expected.items() <= found.items()


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        ([], "argv"),
        ("ls", "argv"),
        ([""], "argv"),
        (["-c"], "argv"),
        (["A=/cat", "bash", "payload.sh"], "argv"),
        (["ls", "a\0b"], "argv[1]"),
        (["ls", "x", "a\nb"], "argv[2]"),
        (["ls", "a\rb"], "argv[1]"),
        (["sh", "-c", ShellText("a\0b")], "argv[2]"),
        (["sh", "-c", "a\nb"], "argv[2]"),
        (["ls", "\ud800"], "argv[1]"),
        (["ls", "x" * LINE_LIMIT], "argv"),
    ],
)
def test_what_cannot_be_passed_is_refused(argv: Sequence[str], named: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        prepare(argv, timeout=5)
    assert refused.value.argument == named


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "A;id", "Ä"])
def test_names_of_variables_are_checked(name: str) -> None:
    with pytest.raises(InvalidArgument):
        prepare(["env"], timeout=5, extra_env={name: "x"})


@pytest.mark.parametrize("value", ["-rf", "--help", "-", "a\0b", "a\nb"])
def test_operand_refuses_options_and_breaks(value: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        operand(value, "dataset")
    assert refused.value.argument == "dataset"


@pytest.mark.parametrize("value", ["tank/data@x", "a b", "a-b", "$(id)", "é"])
def test_operand_passes_everything_else(value: str) -> None:
    assert operand(value) == value


def test_sudo_gets_the_argv_and_nothing_around_it() -> None:
    words = prepare(["zfs", "list"], timeout=5, sudo=True).line
    assert "LC_ALL=C.UTF-8 PAGER=cat TERM=dumb DEBIAN_FRONTEND=noninteractive sudo -n -- zfs list" in words.replace("' '", "")
    assert "timeout" not in words


def test_the_marker_is_not_in_the_line_that_a_shell_may_echo() -> None:
    command = prepare(["true"], timeout=5)
    assert command.marker.decode() not in command.line
    assert command.token in command.line


def end(token: str, process: tuple[int, str] | None) -> str:
    return subprocess.run(["sh", "-c", ending(token, process)], capture_output=True, text=True, timeout=30).stdout


def would_end(token: str, process: tuple[int, str] | None) -> str:
    """What the script prints when it only says what it would kill."""
    spoken = 'kill() { echo "kill $*"; }\n' + ending(token, process)
    return subprocess.run(["sh", "-c", spoken], capture_output=True, text=True, timeout=30).stdout


def started(argv: Sequence[str]) -> tuple[subprocess.Popen[bytes], tuple[int, str]]:
    """A running command in a session of its own, as sshd starts it, and what its marker said."""
    command = prepare(argv, timeout=60)
    process = subprocess.Popen(["sh", "-c", command.line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    assert process.stdout
    _, pid, start = process.stdout.readline().decode().split()
    return process, (int(pid), start)


SCRIPTS = [
    "sleep MARK",
    "sleep MARK & sleep MARK | cat; :",
    "trap '' TERM HUP INT; sleep MARK & wait; while :; do sleep MARK; done",
    "setsid -w sleep MARK",
]


@linux
@pytest.mark.parametrize("script", SCRIPTS)
def test_ending_ends_the_whole_command(script: str) -> None:
    mark = str(300_000_000 + int.from_bytes(os.urandom(3)))
    process, reported = started(["sh", "-c", f"echo ready; {script.replace('MARK', mark)}"])
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    assert end("0" * 16, reported) == "left\n"
    assert processes(f"sleep\0{mark}") == []
    process.wait(10)
    process.stdout.close()


@linux
@pytest.mark.parametrize("shell", ["bash", "dash", "ksh", "zsh", "busybox"])
def test_both_scripts_run_in_every_sh(shell: str, tmp_path: Path) -> None:
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"{shell} is not installed")
    sh = tmp_path / "sh"
    sh.symlink_to(found)
    command = prepare(["sleep", "300"], timeout=60)
    line = command.line.replace("exec /bin/sh ", f"exec {sh} ")
    process = subprocess.Popen(["dash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    assert process.stderr
    marker, pid, start = process.stdout.readline().decode().split()
    assert marker.encode() == command.marker
    assert int(pid) == process.pid
    script = ending(command.token, (int(pid), start))
    ended = subprocess.run([sh, "-c", script], capture_output=True, text=True, timeout=30)
    assert ended.stdout == "left\n"
    process.wait(10)
    # without /proc (FreeBSD) the process group is what can be ended
    process.stdout.close()
    process.stderr.close()
    process = subprocess.Popen(["sh", "-c", "sleep 300 & sleep 300"], start_new_session=True)
    script = ending(command.token, (process.pid, "")).replace("/proc/", "/no-proc/")
    ended = subprocess.run([sh, "-c", script], capture_output=True, text=True, timeout=30)
    process.wait(10)
    assert ended.stdout in ("left\n", f"left {process.pid}\n")


@linux
def test_ending_spares_a_stranger_who_got_the_process_id() -> None:
    process, (pid, start) = started(["sleep", "300"])
    assert would_end("0" * 16, (pid, str(int(start) - 1))) == "left\n"
    assert end("0" * 16, (pid, start)) == "left\n"
    process.wait(10)
    assert process.stdout
    process.stdout.close()


@linux
def test_ending_never_touches_the_way_it_came_by() -> None:
    """Sessions 0 and 1 hold the first processes and the kernel's; ours holds whoever asked."""
    start = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    spoken = would_end("0" * 16, (os.getpid(), start))
    assert f" {os.getpid()} " not in f"{spoken} "
    assert " 1 " not in spoken
    for first in (0, 1):
        with pytest.raises(ValueError, match="first process"):
            ending("0" * 16, (first, "5"))


@linux
def test_ending_finds_a_command_whose_profile_hangs_by_its_token() -> None:
    command = prepare(["true"], timeout=60)
    process = subprocess.Popen(["sh", "-c", f"sleep 300; : {command.line}"], start_new_session=True)
    try:
        # on a busy machine one look over all processes can miss one: what was not found is said so, and looked for again
        assert any(end(command.token, None) == "left\n" for _ in range(5))
        process.wait(10)
    finally:
        process.kill()
        process.wait(10)


def test_ending_does_not_claim_what_it_cannot_find() -> None:
    assert end("f" * 16, None) == "left ?\n"
