"""The grammar of read-only host commands: what may run on a node without anyone's consent, and how it is carried there.

`match` accepts a line or says why not; `wrap` gives the argv that carries it out; `refusal` reads the far side's answer; `harmless` judges
a shell line; `describe` lists the rows.
"""

from __future__ import annotations

from proxmox_mcp.read_commands.far_side import REFUSED, refusal, wrap
from proxmox_mcp.read_commands.grammar import Row
from proxmox_mcp.read_commands.paths import Kind
from proxmox_mcp.read_commands.shell_lines import harmless
from proxmox_mcp.read_commands.tables import GRAMMAR
from proxmox_mcp.read_commands.types import Limits, PathCheck, ReadCommand

__all__ = ["REFUSED", "Kind", "PathCheck", "ReadCommand", "Row", "describe", "harmless", "match", "refusal", "wrap"]


def match(line: str, *, timeout: float = 30.0, max_bytes: int = 200_000) -> ReadCommand:
    """The read-only command that `line` is. `timeout` (seconds) and `max_bytes` of output bound intervals, counts and sizes.

    Raises InvalidArgument("command", ...) when no row of the grammar accepts it; the hint is the nearest allowed form.
    """
    return GRAMMAR.match(line, Limits(timeout, max_bytes))


def describe() -> tuple[Row, ...]:
    """The rows of the grammar, for the documentation."""
    return GRAMMAR.rows
