"""Real processes that append."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python process that runs `script`, with pipes to talk to it."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(script: str, *arguments: str, told: str = "") -> str:
    """What the script prints when it is told something; it must end well."""
    process = start(script, *arguments)
    out, err = process.communicate(told, timeout=60)
    assert process.returncode == 0, err
    return out
