"""Environment and .env -> one frozen Settings; says what is wrong and how to mend it."""

from __future__ import annotations

from proxmox_mcp.config.loading import load
from proxmox_mcp.config.settings import Member, Settings, require_api, require_ssh
from proxmox_mcp.config.variables import VARIABLES, Variable

__all__ = ["VARIABLES", "Member", "Settings", "Variable", "load", "require_api", "require_ssh"]
