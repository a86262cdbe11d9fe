"""Commands over SSH: pooled connections, one command -> one Outcome. The only room that knows asyncssh, which is imported on first use.

Its parts, from the top down:

    pool         SshPool: the connection of a target, its replacement, parallel commands
    command      argv -> the line that every login shell reads the same, and the script that ends a command on the far side
    outcome      Outcome; output with bounded memory, decoded, without noise
    link         one connection: sessions side by side, one command from start to end     (imports asyncssh)
    session      one channel of it                                                        (imports asyncssh)
    connect      a target -> an authenticated connection, or an error that says what to do (imports asyncssh)
    host_keys    known_hosts, and what to say about a key that is not in it               (imports asyncssh)
"""

from __future__ import annotations

from proxmox_mcp.ssh.command import OwnScript, ShellText, operand
from proxmox_mcp.ssh.outcome import Outcome
from proxmox_mcp.ssh.pool import OnCancelled, SshPool
from proxmox_mcp.ssh_targets import SshTarget

__all__ = ["OnCancelled", "Outcome", "OwnScript", "ShellText", "SshPool", "SshTarget", "operand"]
