"""What zfs and zpool say when they fail, as one message and the error it stands for.

Exit status 1 is a failure, 2 a usage error (and a failure with the whole help behind it), 255 a failure too (`zfs set`): the status is the
channel's own and never means "no connection" here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proxmox_mcp import text
from proxmox_mcp.errors import NotFound, ProxmoxMcpError, SshError
from proxmox_mcp.terminal import ending

if TYPE_CHECKING:
    from proxmox_mcp.ssh import Outcome

_MOST = 1_000
_MISSING = re.compile(r"does not exist|no such pool|no such pool or dataset|could not find any snapshots|no such property", re.IGNORECASE)
_HINTS = (
    (r"permission denied|must be run as root", "use root (PROXMOX_SSH_USER), PROXMOX_SSH_SUDO=true, or delegate it with `zfs allow`"),
    (r"currently suspended", "the pool lost its disks: connect them, then `zpool clear`; proxmox_zfs_pool_status shows it"),
    (r"is busy", "something has it open: stop that first"),
    (r"being held", "`zfs holds` names who holds it, `zfs release` lets go"),
    (r"dependent clones", "the clones live on it: destroy or promote them first"),
    (r"modules (?:are not|cannot be) loaded|auto-loaded|/dev/zfs", "the ZFS kernel module is not loaded there: `modprobe zfs`"),
    (r"bad property list", "a pool's own properties are read with proxmox_host_read_exec: zpool get PROPERTY POOL"),
    (r"key must be loaded|encryption key not loaded", "load its key on the node, or send it raw"),
)


def said(stderr: str) -> str:
    """The message itself: what stands before the help, without blank lines; the first line when there is nothing but help."""
    before = re.split(r"^usage:", stderr, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line.strip() for line in before.splitlines() if line.strip()]
    return text.clean("; ".join(lines) or stderr.strip().partition("\n")[0], _MOST)


def hint(message: str) -> str:
    """The next step that a message calls for; "" when none is known."""
    return next((words for pattern, words in _HINTS if re.search(pattern, message, re.IGNORECASE)), "")


def failure(outcome: Outcome, argv: Sequence[str], node: str) -> ProxmoxMcpError:
    """The error that a command's end stands for; it did not end with a status that means success."""
    tried = f"{text.clean(shlex.join(argv), 300)} on {node}"
    message = said(outcome.stderr)
    if outcome.exit_status is None:
        what = f"{ending(outcome)} on {node}"
        return SshError(what, tried=tried, said=message, hint="the pool may be suspended: proxmox_zfs_pool_status")
    if outcome.exit_status == 127:
        what = f"{argv[0]} is not installed on {node}, or not on the path that commands get there"
        return SshError(what, tried=tried, said=message, hint="a node without ZFS has no such pools or datasets")
    if _MISSING.search(message) and "parent does not exist" not in message:
        return NotFound(f"{message} (on {node})", status=0, tried=tried, hint="proxmox_zfs_list_datasets shows what there is")
    return SshError(message or f"exit status {outcome.exit_status}, and nothing said", tried=tried, hint=hint(message))
