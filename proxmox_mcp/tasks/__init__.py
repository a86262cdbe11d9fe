"""Tasks: UPIDs, verdicts, logs by their tail, waiting.

A task is asked after on the node in its UPID, whoever was asked to start it:
GET /nodes/{node}/tasks/{upid}/status and .../log.
"""

from __future__ import annotations

from proxmox_mcp.tasks.logs import Log, explain, log_head_and_tail, log_tail
from proxmox_mcp.tasks.upid import UPID_FORM, TaskVerdict, Upid, verdict, verdict_of_list_item
from proxmox_mcp.tasks.waiting import Pace, Progress, guest_result, status, wait, wait_guest, who_holds_the_lock

__all__ = [
    "UPID_FORM",
    "Log",
    "Pace",
    "Progress",
    "TaskVerdict",
    "Upid",
    "explain",
    "guest_result",
    "log_head_and_tail",
    "log_tail",
    "status",
    "verdict",
    "verdict_of_list_item",
    "wait",
    "wait_guest",
    "who_holds_the_lock",
]
