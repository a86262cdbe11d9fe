"""Attacks that once worked on the grammar, its wrapper and the judge of shell lines: each stays refused, or harmless."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxmox_mcp.read_commands import REFUSED, match, refusal, wrap
from proxmox_mcp.read_commands.far_side import OPENER, SCRIPT

needs_perl = pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here")


def run(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(wrap(match(line)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


# --- a file that is swapped for a link between the check and the use


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A directory as a container's root sees it: names in it can become links to the node's own files at any moment."""
    root = tmp_path / "subvol-205-disk-0"
    root.mkdir()
    (root / "app.log").write_text("hello\n")
    (root / "log").mkdir()
    (root / "log/app.log").write_text("hello\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/shadow").write_text("node's secret\n")
    return root


@contextmanager
def swapping(path: Path, secret: Path) -> Iterator[None]:
    over = threading.Event()
    link, plain = path.with_name("link"), path.with_name("plain")

    def swap() -> None:
        while not over.is_set():
            link.symlink_to(secret)
            os.replace(link, path)
            plain.write_text("hello\n")
            os.replace(plain, path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@needs_perl
@pytest.mark.parametrize("program", ["cat", "tail -n 1", "grep -e e"])
def test_a_file_swapped_for_a_link_is_never_shown(guest: Path, program: str) -> None:
    with swapping(guest / "app.log", guest.parent / "etc/shadow"):
        for _ in range(25):
            done = run(f"{program} {guest / 'app.log'}")
            assert "secret" not in done.stdout
            assert done.returncode in (0, 1, REFUSED)


@needs_perl
def test_what_is_opened_is_what_was_judged(guest: Path) -> None:
    secret = guest.parent / "etc"
    (guest / "link").symlink_to(secret / "shadow")
    (guest / "dir").symlink_to(secret)
    (guest / "away").symlink_to(secret)
    for judged in (guest / "link", guest / "dir/shadow", guest / "away", guest / "gone"):
        done = subprocess.run(["perl", "-e", OPENER, "1", "1", str(judged), "cat", str(judged)], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (REFUSED, "")
        assert refusal(done.returncode, done.stderr) == f"{judged}: was changed meanwhile"


@needs_perl
def test_what_guests_can_change_is_read_all_the_same(guest: Path) -> None:
    log = guest / "app.log"
    assert run(f"cat {log}").stdout == "hello\n"
    assert run(f"cat {log} {guest / 'log/app.log'} /etc/hostname").stdout.startswith("hello\nhello\n")
    assert run(f"grep -n {log} -e hello").stdout == "1:hello\n"
    assert run(f"grep {log} {log}").returncode == 1  # the pattern reads like the file, and stays a pattern
    assert run(f"grep -r hello {guest / 'log'}").stdout == "./app.log:hello\n"
    assert run(f"wc -l {log}").stdout == "1 -\n"
    missing = run(f"cat {guest / 'none'}")
    assert missing.returncode == 1
    assert str(guest / "none") in missing.stderr


def test_what_only_root_can_change_keeps_its_name() -> None:
    closed = all(os.stat(place).st_uid == 0 and not os.stat(place).st_mode & 0o022 for place in ("/", "/etc"))
    if not closed:
        pytest.skip("others may write to /etc here")
    assert run("wc -l /etc/passwd").stdout.endswith(" /etc/passwd\n")


# --- the check itself looks, and must not mount


def test_the_check_of_a_tree_stops_where_looking_would_mount(tmp_path: Path) -> None:
    """Below a visible .zfs each look at a snapshot mounts it."""
    snapshot = tmp_path / ".zfs/snapshot/a"
    snapshot.mkdir(parents=True)
    os.utime(tmp_path / ".zfs", (1, 1))
    before = os.stat(tmp_path / ".zfs").st_atime_ns
    done = run(f"du -a {tmp_path}")
    assert done.returncode == REFUSED
    assert f"contains {tmp_path}/.zfs" in done.stderr
    assert os.stat(tmp_path / ".zfs").st_atime_ns == before
    assert "-print -quit" in SCRIPT
