"""The command line: arguments first, heavy imports after."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run `pve-mcp`; returns the exit status."""
    from proxmox_mcp import config, server

    server.serve(config.load())
    return 0
