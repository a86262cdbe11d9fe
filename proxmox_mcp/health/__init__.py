"""How the cluster is: what is asked, within a budget of time, and what the answers come to.

`look` asks all sources at once (sources); `report` says what was seen (findings); backups have a chapter of their own (coverage).
Whatever did not answer is a gap with a name, never a zero.
"""

from __future__ import annotations

from proxmox_mcp.health.findings import Report, report
from proxmox_mcp.health.sources import Seen, look

__all__ = ["Report", "Seen", "look", "report"]
