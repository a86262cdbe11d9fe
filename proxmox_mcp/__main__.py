"""`python -m proxmox_mcp`."""

from __future__ import annotations

import sys

from proxmox_mcp.cli import main

if __name__ == "__main__":
    sys.exit(main())
