"""Who has a dataset open, read from the real /proc of this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from proxmox_mcp.zfs import open_files

pytestmark = pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="needs Linux's /proc")


def look(*paths: Path | str, mounts: str = " - zfs no/such \n") -> list[str]:
    argv = ["sh", "-c", open_files.SCRIPT, "open-files", *map(str, paths)]
    done = subprocess.run(argv, input=mounts, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"u {os.getuid()}"
    return lines[1:]


def test_a_process_that_works_there_or_has_a_file_open(tmp_path: Path) -> None:
    place = tmp_path / "a b*[x]"
    place.mkdir()
    assert look(open_files._literal(str(place))) == []
    with subprocess.Popen(["cat"], cwd=place, stdin=subprocess.PIPE) as idle:
        (line,) = look(open_files._literal(str(place)))
        assert line == f"p process {idle.pid} (cat) has {place} open"
        idle.kill()
    with (place / "file").open("w"):
        (line,) = look(open_files._literal(str(place)))
        assert line.endswith(f"has {place}/file open")
        # the pattern means that path and nothing else
        assert look(open_files._literal(str(tmp_path / "a b*"))) == []


def test_mounts_in_other_places_are_told() -> None:
    tables = [
        "36 35 0:50 / /tank/x rw,relatime shared:1 - zfs tank/x rw,xattr",
        "99 98 0:50 / / rw,relatime - zfs tank/x rw,xattr",
        "98 97 0:51 / /mnt/a\\040b rw - zfs tank/with\\040space rw",
    ]
    assert open_files._elsewhere(tables, {"tank/x": "/tank/x", "tank/with space": "/tank/with space"}) == [
        "tank/x is mounted at / too: by a container that runs, or by fstab",
        "tank/with space is mounted at /mnt/a b too: by a container that runs, or by fstab",
    ]
    assert open_files._elsewhere(tables[:1], {"tank/x": "/tank/x"}) == []


def test_the_mount_tables_are_searched() -> None:
    own = Path("/proc/self/mountinfo").read_text().splitlines()[0]
    assert f"m {own}" in look("/nonexistent/place", mounts=own[-30:] + "\n")
