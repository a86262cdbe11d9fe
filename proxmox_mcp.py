"""`python proxmox_mcp.py`: the single-file entry point that existing client configurations name. The package of the same name wins on import."""

from __future__ import annotations

import sys

from proxmox_mcp.cli import main

if __name__ == "__main__":
    sys.exit(main())
