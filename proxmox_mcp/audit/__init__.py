"""The audit log: hash-chained records of what was asked, sent and answered; docs/audit.md is the format and its guarantees."""

from __future__ import annotations

from proxmox_mcp.audit.aside import aside
from proxmox_mcp.audit.disk import unwritable
from proxmox_mcp.audit.files import Which
from proxmox_mcp.audit.keys import Keys
from proxmox_mcp.audit.log import AuditLog
from proxmox_mcp.audit.read import export, tail
from proxmox_mcp.audit.report import Problem, Report, Verdict
from proxmox_mcp.audit.unfinished import Unfinished, unfinished
from proxmox_mcp.audit.verify import verify

__all__ = [
    "AuditLog",
    "Keys",
    "Problem",
    "Report",
    "Unfinished",
    "Verdict",
    "Which",
    "aside",
    "export",
    "tail",
    "unfinished",
    "unwritable",
    "verify",
]
