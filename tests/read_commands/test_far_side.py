"""The wrapper, really run: by every shell here, on files, links, pipes, devices and hostile names."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxmox_mcp.read_commands import REFUSED, Kind, PathCheck, ReadCommand, match, refusal, wrap
from proxmox_mcp.read_commands.far_side import REFUSAL, SCRIPT

SHELLS = [shell for shell in (("dash",), ("busybox", "sh")) if shutil.which(shell[0])] or [("sh",)]
CAT, LS = shutil.which("cat") or "/bin/cat", shutil.which("ls") or "/bin/ls"


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with one of everything."""
    (tmp_path / "plain").write_text("hello\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/shadow").write_text("root:$6$secret\n")
    (tmp_path / "to-plain").symlink_to("plain")
    (tmp_path / "to-link").symlink_to("to-plain")
    (tmp_path / "to-shadow").symlink_to("etc/shadow")
    (tmp_path / "to-to-shadow").symlink_to(tmp_path / "to-shadow")
    (tmp_path / "dir-link").symlink_to("etc")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to-null").symlink_to("/dev/null")
    (tmp_path / "to-zero").symlink_to("/dev/zero")
    (tmp_path / "to-proc").symlink_to("/proc/self/environ")
    (tmp_path / "to-mounts").symlink_to("/proc/self/mounts")
    (tmp_path / "to-root").symlink_to("/proc/self/root")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    return tmp_path


def _argv(command: ReadCommand, shell: tuple[str, ...], timeout: float = 20.0) -> list[str]:
    argv = list(wrap(command, timeout=timeout))
    at = argv.index("sh")
    return [*argv[:at], *shell, *argv[at + 1 :]]


def _run(command: ReadCommand, shell: tuple[str, ...], timeout: float = 20.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_argv(command, shell, timeout), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def _command(program: str, kind: Kind, *names: str | Path) -> ReadCommand:
    checks = tuple(PathCheck(str(name), kind, at) for at, name in enumerate(names, 1))
    return ReadCommand((program, *map(str, names)), checks, "test")


def _refused(done: subprocess.CompletedProcess[str], reason: str) -> None:
    assert done.returncode == REFUSED
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(REFUSAL)
    said = refusal(done.returncode, done.stderr)
    assert said is not None
    assert reason in said


def test_output_is_the_programs_own_and_nothing_else(place: Path, shell: tuple[str, ...]) -> None:
    done = _run(_command(CAT, Kind.FILE, place / "plain", place / "to-link"), shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\nhello\n", "")


@pytest.mark.parametrize("name", ["to-shadow", "to-to-shadow", "dir-link/shadow", "etc/shadow"])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_secret_behind_links_is_refused(place: Path, name: str, kind: Kind) -> None:
    _refused(_run(_command(CAT, kind, place / name), ("sh",)), "holds secrets")


def test_the_second_path_is_checked_too(place: Path, shell: tuple[str, ...]) -> None:
    _refused(_run(_command(CAT, Kind.FILE, place / "plain", place / "to-shadow"), shell), "holds secrets")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pipe", "not a regular file"),
        ("empty", "not a regular file"),
        ("to-null", "is a device"),
        ("to-zero", "is a device"),
        ("to-proc", "holds secrets"),
        ("to-root", "not a regular file"),
        ("to-root/etc/shadow", "holds secrets"),
    ],
)
def test_only_regular_files_are_opened(place: Path, shell: tuple[str, ...], name: str, reason: str) -> None:
    _refused(_run(_command(CAT, Kind.FILE, place / name), shell), reason)
    _refused(_run(_command(CAT, Kind.SUM, place / "plain", place / name), shell), reason)


def test_a_socket_is_not_opened(place: Path, shell: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("sock")
        _refused(_run(_command(CAT, Kind.FILE, place / "sock"), shell), "not a regular file")


def test_what_is_not_there_is_the_programs_to_say(place: Path, shell: tuple[str, ...]) -> None:
    names = ["nothing", "nothing/below", "dangling", "loop", "plain/below"]
    done = _run(_command(CAT, Kind.FILE, *(place / name for name in names)), shell)
    assert done.returncode == 1
    assert [name for name in names if str(place / name) not in done.stderr] == []
    assert refusal(done.returncode, done.stderr) is None


def test_hostile_names(place: Path, shell: tuple[str, ...]) -> None:
    names = ["a b", "it's", 'say "x"', "$(touch x)", "`touch x`", "-rf", "a;b", "a\nb", "a\n", "*", "\\", "é\x1b[31m", "--", " "]
    links = []
    for number, name in enumerate(names):
        (place / name).write_text(f"{number}\n")
        links.append(place / f"link{number}")
        links[-1].symlink_to(place / name)
    expected = "".join(f"{number}\n" for number in range(len(names)))
    assert _run(_command(CAT, Kind.FILE, *(place / name for name in names)), shell).stdout == expected
    assert _run(_command(CAT, Kind.FILE, *links), shell).stdout == expected
    for name in ("a\nb", "a\n", "é\x1b[31m", "$(touch x)"):
        (place / name).unlink()
        (place / name).mkdir()
        _refused(_run(_command(CAT, Kind.FILE, place / name), shell), "not a regular file")
    assert not (place / "x").exists()


def test_files_of_proc_and_sys(shell: tuple[str, ...], place: Path) -> None:
    assert "MemTotal" in _run(match("cat /proc/meminfo"), shell).stdout
    assert _run(match("cat /proc/mounts"), shell).stdout != ""
    assert _run(match("cat /proc/net/dev"), shell).stdout != ""
    assert "Name:" in _run(match("cat /proc/self/status"), shell).stdout
    assert _run(_command(CAT, Kind.FILE, place / "to-mounts"), shell).stdout != ""
    _refused(_run(_command(CAT, Kind.FILE, "/proc/kallsyms"), shell), "not a listed file of /proc")
    _refused(_run(_command(CAT, Kind.FILE, "/sys/kernel/notes"), shell), "not a listed file of /sys")
    _refused(_run(_command(CAT, Kind.FILE, "/proc/self/environ"), shell), "holds secrets")


def test_sys_is_read_through_its_links(shell: tuple[str, ...]) -> None:
    if not Path("/sys/class/net/lo/mtu").exists():
        pytest.skip("no /sys/class/net/lo here")
    assert _run(match("cat /sys/class/net/lo/mtu"), shell).stdout.strip().isdigit()


def test_names_are_listed_and_secrets_are_not(place: Path, shell: tuple[str, ...]) -> None:
    assert "plain" in _run(_command(LS, Kind.META, place), shell).stdout
    assert "pipe" in _run(_command(LS, Kind.META, place / "pipe"), shell).stdout
    assert _run(_command(LS, Kind.META, "/dev/null"), shell).stdout == "/dev/null\n"
    _refused(_run(_command(LS, Kind.META, place / "to-shadow"), shell), "holds secrets")


def test_a_tree_with_a_secret_in_it_is_not_walked(place: Path, shell: tuple[str, ...]) -> None:
    for kind in (Kind.TREE, Kind.GREP):
        _refused(_run(_command(LS, kind, place), shell), f"contains {place}/etc/shadow")
        _refused(_run(_command(LS, kind, place / "dir-link"), shell), "contains")
        assert _run(_command(LS, kind, place / "empty"), shell).returncode == 0
        assert _run(_command(LS, kind, place / "plain"), shell).returncode == 0
        _refused(_run(_command(LS, kind, place / "pipe"), shell), "neither")


def test_content_is_searched_only_where_no_key_and_no_guest_data_lies(place: Path, shell: tuple[str, ...]) -> None:
    (place / "empty/server.pem").write_text("x")
    assert _run(_command(LS, Kind.TREE, place / "empty"), shell).returncode == 0
    _refused(_run(_command(LS, Kind.GREP, place / "empty"), shell), "contains")
    (place / "empty/server.pem").rename(place / "empty/server.pub")
    assert _run(_command(LS, Kind.GREP, place / "empty"), shell).returncode == 0
    (place / "empty/vm-101-disk-0.qcow2").write_text("x")
    _refused(_run(_command(LS, Kind.GREP, place / "empty"), shell), "vm-101-disk-0.qcow2")


def test_devices(place: Path, shell: tuple[str, ...]) -> None:
    _refused(_run(_command(CAT, Kind.DEVICE, "/dev/null"), shell), "not a disk")
    _refused(_run(_command(CAT, Kind.DEVICE, place / "plain"), shell), "not a disk")
    _refused(_run(_command(CAT, Kind.DEVICE, place / "to-zero"), shell), "not a disk")
    assert _run(_command(CAT, Kind.DEVICE, "/dev/no-such-disk"), shell).returncode == 1


def test_a_disk_is_let_through(shell: tuple[str, ...]) -> None:
    disk = next((path for path in sorted(Path("/dev").iterdir()) if path.is_block_device()), None)
    if disk is None:
        pytest.skip("no block device here")
    assert _run(_command(LS, Kind.DEVICE, disk), shell).stdout == f"{disk}\n"


def test_the_environment_is_clean_and_input_is_closed(shell: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_LOGIN", "x")
    env = _run(ReadCommand((shutil.which("env") or "",), (), "test"), shell).stdout.splitlines()
    names = {line.split("=")[0] for line in env}
    assert {"PATH", "LC_ALL", "HOME", "PAGER", "BLKID_FILE", "TMPDIR"} <= names
    assert names <= {
        "PATH",
        "LC_ALL",
        "HOME",
        "TMPDIR",
        "TERM",
        "COLUMNS",
        "PAGER",
        "SYSTEMD_PAGER",
        "BLKID_FILE",
        "PYTHONDONTWRITEBYTECODE",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    }
    argv = _argv(ReadCommand((CAT,), (), "test"), shell)
    assert subprocess.run(argv, input="typed", capture_output=True, text=True, timeout=30).stdout == ""


def test_exit_status_and_priority_pass_through(shell: tuple[str, ...]) -> None:
    false, nice = shutil.which("false") or "", shutil.which("nice") or ""
    assert _run(ReadCommand((false,), (), "test"), shell).returncode == 1
    assert int(_run(ReadCommand((nice,), (), "test"), shell).stdout) >= 10


def test_the_time_is_limited(shell: tuple[str, ...]) -> None:
    sleep = shutil.which("sleep") or ""
    assert _run(ReadCommand((sleep, "30"), (), "test"), shell, timeout=0.2).returncode == 124
    assert wrap(match("uptime"), timeout=2.5)[wrap(match("uptime")).index("-k") + 2] == "3"


def test_a_program_in_its_other_place_is_found(shell: tuple[str, ...]) -> None:
    name = Path(CAT).name
    assert _run(ReadCommand((f"/usr/lib/nowhere/{name}", "/dev/null"), (), "test"), shell).returncode == 0
    missing = _run(ReadCommand(("/usr/bin/no-such-program",), (), "test"), shell)
    assert missing.returncode == 127
    assert "no-such-program" in missing.stderr


def test_values_are_positional_and_the_script_is_constant() -> None:
    argv = wrap(match("cat /etc/hosts /etc/fstab"))
    at = argv.index("-c", argv.index("sh"))
    assert argv[at + 1 :] == (
        SCRIPT,
        "pve-read",
        "file",
        "1",
        "/etc/hosts",
        "file",
        "2",
        "/etc/fstab",
        "--",
        "/usr/bin/cat",
        "/etc/hosts",
        "/etc/fstab",
    )
    assert len(" ".join(argv)) < 32_000


def test_busybox_tools_do_as_well(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("no busybox here")
    tools = tmp_path_factory.mktemp("tools")
    for tool in ("readlink", "find", "head", "tr", "cat"):
        (tools / tool).symlink_to(busybox)

    def run(kind: Kind, name: str) -> subprocess.CompletedProcess[str]:
        argv = [busybox, "sh", "-c", SCRIPT, "pve-read", kind.value, "1", str(place / name), "--", str(tools / "cat"), str(place / name)]
        return subprocess.run(argv, env={"PATH": str(tools)}, capture_output=True, text=True, timeout=30)

    assert run(Kind.FILE, "to-link").stdout == "hello\n"
    _refused(run(Kind.FILE, "to-to-shadow"), "holds secrets")
    _refused(run(Kind.GREP, "."), "contains")
    _refused(run(Kind.TREE, "dir-link"), "contains")
    assert run(Kind.FILE, "dangling").returncode == 1
    _refused(run(Kind.FILE, "pipe"), "not a regular file")


def test_a_programs_own_97_is_not_a_refusal() -> None:
    assert refusal(REFUSED, "something else\n") is None
    assert refusal(1, f"{REFUSAL}x: y\n") is None
    assert refusal(None, f"{REFUSAL}x: y\n") is None
    assert refusal(REFUSED, f"{REFUSAL}x: y\nmore") == "x: y"
