"""The Inspector's command line, the one client here that is not made by the SDK's authors in Python: installed once, into a cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from platformdirs import user_cache_path

from tests.protocol.talking import ROOT

PACKAGE, VERSION = "@modelcontextprotocol/inspector", "2.12.0"


@cache
def installed() -> Path:
    """The program. Skips the test where node or npm is missing, or nothing can be installed."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("node and npm are needed for the Inspector")
    place = user_cache_path("pve-mcp-tests", appauthor=False) / f"inspector-{VERSION}"
    program = place / "node_modules" / ".bin" / "mcp-inspector"
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / "lock"):
        if not program.exists():
            # its scripts after installing fetch what only its web page needs
            command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(place), f"{PACKAGE}@{VERSION}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            if done.returncode:
                pytest.skip(f"the Inspector cannot be installed: {done.stderr.strip()[-300:]}")
    return program


@dataclass(frozen=True)
class Run:
    """How one run ended: its status, the result, and what stood on standard error."""

    status: int
    result: Any
    stderr: str


def inspect(home: Path, era: str, env: Mapping[str, str], *arguments: str, server: Sequence[str] = ()) -> Run:
    """One run against `python -m proxmox_mcp` (or another command) with these variables. `era`: legacy or modern."""
    program = installed()
    variables = {"HOME": str(home), "XDG_STATE_HOME": str(home), "PYTHONPATH": str(ROOT), **env}
    given = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    command = [str(program), "--cli", "--format", "json", "--protocol-era", era, *given]
    command += [*(server or (sys.executable, "-m", "proxmox_mcp")), *arguments]
    own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=home, env=own)
    return Run(done.returncode, json.loads(done.stdout)["result"] if done.stdout.strip() else None, done.stderr)
