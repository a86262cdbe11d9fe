"""The lists of accepted and refused lines."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "read-commands"


def read(path: Path, *, escapes: bool = False) -> list[str]:
    """The lines of a list, without comments. `escapes`: \\n, \\xHH and the like stand for their character."""
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")]
    return [_unescaped(line) for line in lines] if escapes else lines


def _unescaped(line: str) -> str:
    return re.sub(r"\\(?:[ntr\\]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})", lambda found: found[0].encode().decode("unicode_escape"), line)


ACCEPTED = read(HERE / "accepted.txt")
REFUSED = read(HERE / "refused.txt", escapes=True)
