"""The server, dying by SIGKILL the moment a record of this kind (the first argument) is on disk: what no signal from outside can hit."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from proxmox_mcp.audit import AuditLog
from proxmox_mcp.cli import main

if __name__ == "__main__":
    append = AuditLog._append

    def fatal(log: AuditLog, kind: str, *arguments: Any) -> str:
        written = append(log, kind, *arguments)
        if kind == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    AuditLog._append = fatal  # type: ignore[method-assign]
    sys.exit(main(sys.argv[2:]))
