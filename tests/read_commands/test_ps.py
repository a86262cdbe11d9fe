"""`ps` reads a line it does not understand again in BSD style, where `-e` shows environments: the real one must not show any."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from random import Random

import pytest

from proxmox_mcp.read_commands import describe, match
from tests.read_commands import generator
from tests.read_commands.lists import ACCEPTED

PS = shutil.which("ps") or ""
SECRET = "marker-in-the-environment-of-a-process"


def _shown(arguments: tuple[str, ...]) -> bool:
    done = subprocess.run([PS, *arguments], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=30)
    return SECRET in done.stdout


@pytest.fixture(scope="module")
def process() -> Iterator[int]:
    """A process with a secret in its environment, that `ps axe` shows."""
    environment = {"PATH": os.environ["PATH"], "DB_PASSWORD": SECRET}
    with subprocess.Popen(["sleep", "600"], env=environment) as running:
        try:
            if not PS or not _shown(("axeww",)):
                pytest.skip("no ps here that shows environments")
            yield running.pid
        finally:
            running.kill()


def test_no_accepted_line_shows_an_environment(process: int) -> None:
    lines = [line for line in ACCEPTED if line.startswith("ps ")]
    assert len(lines) > 10
    assert [line for line in lines if _shown(match(line).argv[1:])] == []
    assert not _shown(match(f"ps -p {process} -o pid,args").argv[1:])


def test_nor_does_anything_else_that_the_rows_allow(process: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("sleep", "e", "axe", "we", "name", "u", "o")
    monkeypatch.setattr(generator, "SAMPLES", {**generator.SAMPLES, "NAME": names, "PID": (str(process),), "PIDS": (f"1,{process}",)})
    rows = [row for row in describe() if row.command == "ps"]
    lines = {generator.line(generator.command(row, Random(seed)), Random(seed)) for row in rows for seed in range(12)}
    assert [line for line in sorted(lines) if _shown(match(line).argv[1:])] == []
