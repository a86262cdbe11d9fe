"""Tasks: UPIDs, verdicts, logs by their tail, waiting.

A task is asked after on the node in its UPID, whoever was asked to start it:
GET /nodes/{node}/tasks/{upid}/status and .../log.
"""

from __future__ import annotations

from proxmox_mcp.tasks.listing import Page, Place, Wanted, is_failure, page_of, place
from proxmox_mcp.tasks.logs import Log, explain, log_from, log_head_and_tail, log_tail
from proxmox_mcp.tasks.upid import UPID_FORM, TaskVerdict, Upid, verdict, verdict_of_list_item
from proxmox_mcp.tasks.waiting import Pace, Progress, guest_result, status, wait, wait_guest, who_holds_the_lock

__all__ = [
    "UPID_FORM",
    "Log",
    "Pace",
    "Page",
    "Place",
    "Progress",
    "TaskVerdict",
    "Upid",
    "Wanted",
    "explain",
    "guest_result",
    "is_failure",
    "log_from",
    "log_head_and_tail",
    "log_tail",
    "page_of",
    "place",
    "status",
    "verdict",
    "verdict_of_list_item",
    "wait",
    "wait_guest",
    "who_holds_the_lock",
]
