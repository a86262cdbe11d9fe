"""What may be read on the far side: the same secret paths for nodes, guests and containers, checked here and, after symlinks, there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxmox_mcp import secrets
from proxmox_mcp.errors import InvalidArgument, Refused

if TYPE_CHECKING:
    from proxmox_mcp.read_commands import ReadCommand
    from proxmox_mcp.ssh import Outcome

# $1: the path; the rest: the program that reads it. For owners who allow secret paths: still regular files alone.
_ANY_FILE = """[ -f "$1" ] || { echo "$1: no such regular file" >&2; exit 1; }
shift
exec "$@"
"""


# The grammar is a large room, built when the first command is read, not at every start.


def reading(path: str, argv: tuple[str, ...], *, secrets_too: bool = False) -> tuple[str, ...]:
    """The argv that runs `argv` on a regular file at `path`. Raises InvalidArgument for relative, odd and secret paths."""
    from proxmox_mcp.read_commands.far_side import SCRIPT
    from proxmox_mcp.read_commands.paths import Kind, fault
    from proxmox_mcp.ssh import OwnScript

    why = fault(path, Kind.FILE)
    if why is not None and not (secrets_too and why.startswith(("holds secrets", "looks like"))):
        hint = "the owner of the server can set PROXMOX_ALLOW_SECRET_READS" if why.startswith(("holds secrets", "looks like")) else ""
        raise InvalidArgument("path", why, hint=hint)
    if secrets_too:
        return ("sh", "-c", OwnScript(_ANY_FILE), "pve-read", path, *argv)
    return ("sh", "-c", OwnScript(SCRIPT), "pve-read", Kind.FILE.value, str(_operand(argv, path)), path, "--", *argv)


def _operand(argv: tuple[str, ...], path: str) -> int:
    """Which word is the file: the last that reads so, for a text to look for stands before it."""
    return len(argv) - 1 - argv[::-1].index(path)


def carried(command: ReadCommand, timeout: float) -> tuple[str, ...]:
    """The argv that carries an accepted read command out on a node; only the wrapper's own text may hold line breaks."""
    from proxmox_mcp.read_commands.far_side import SCRIPT, wrap
    from proxmox_mcp.ssh import OwnScript

    return tuple(OwnScript(word) if word == SCRIPT else word for word in wrap(command, timeout=timeout))


def refused(outcome: Outcome, path: str) -> None:
    """Raises Refused when the far side refused the path after resolving it."""
    from proxmox_mcp.read_commands import refusal

    why = refusal(outcome.exit_status, outcome.stderr)
    if why is not None:
        raise Refused(f"refused after resolving the path: {secrets.mask_text(why)}", tried=path)
