"""`python proxmox_mcp.py`: the single-file entry point of existing client configurations. On import the package of the same name wins."""

from __future__ import annotations

import sys

from proxmox_mcp.cli import main

if __name__ == "__main__":
    sys.exit(main())
