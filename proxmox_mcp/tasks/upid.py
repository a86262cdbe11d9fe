"""The id of a task and the verdict on its end, as Proxmox writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from proxmox_mcp.errors import InvalidArgument

UPID_FORM = (
    "UPID:<node>:<pid>:<pstart>:<starttime>:<type>:<id>:<user>: with the trailing colon, as a task list or a start of a task gave it"
)
UPID_MAX = 256

# Proxmox's own grammar; `?`, `#` and `%` are kept out of the free parts because the text becomes part of a path
_UPID = re.compile(
    r"UPID:(?P<node>[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)"
    r":(?P<pid>[0-9A-Fa-f]{8}):(?P<pstart>[0-9A-Fa-f]{8,9}):(?P<starttime>[0-9A-Fa-f]{8})"
    r":(?P<type>[a-zA-Z0-9_.-]+):(?P<id>[!-9;-~]*):(?P<user>[!-9;-~]+):"
)
_FORBIDDEN = re.compile(r"[/?#%]|\.\.")


@dataclass(frozen=True, slots=True)
class Upid:
    """A task's id. `str()` gives the exact text; `user` is the bare user, `token` the token's name when one started the task."""

    text: str
    node: str
    pid: int
    pstart: int
    started: int  # Unix seconds
    type: str
    id: str  # often a vmid; empty for tasks over several guests
    user: str
    token: str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a UPID, white space around it ignored. Raises InvalidArgument("upid", ...) for anything else."""
        text = text.strip()
        match = _UPID.fullmatch(text) if len(text) <= UPID_MAX and not _FORBIDDEN.search(text) else None
        if match is None:
            raise InvalidArgument("upid", "this is not the id of a task", hint=f"give it in the form {UPID_FORM}")
        user, _, token = match["user"].partition("!")
        return cls(
            text=text,
            node=match["node"],
            pid=int(match["pid"], 16),
            pstart=int(match["pstart"], 16),
            started=int(match["starttime"], 16),
            type=match["type"],
            id=match["id"],
            user=user,
            token=token or None,
        )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """How a task ended, or that it has not. `text` is Proxmox's exit status, or why it is not known; `warnings` their number, when told."""

    state: Literal["ok", "warnings", "failed", "unknown", "running"]
    text: str = ""
    warnings: int | None = None

    @property
    def done(self) -> bool:
        """Whether the task did its work."""
        return self.state in ("ok", "warnings")

    def __str__(self) -> str:
        return {"ok": "OK", "running": "running"}.get(self.state, self.text or self.state)


RUNNING = TaskVerdict("running")


def verdict(status: Mapping[str, Any]) -> TaskVerdict:
    """The verdict in an answer of .../tasks/{upid}/status: `exitstatus` is there only when `status` is "stopped"."""
    if status.get("status") == "running":
        return RUNNING
    if status.get("status") != "stopped":
        return TaskVerdict("unknown", f"status {status.get('status', 'missing')}")
    return _of_exit(status.get("exitstatus"))


def verdict_of_list_item(item: Mapping[str, Any]) -> TaskVerdict:
    """The verdict in an item of a task list: `status` is OK, WARNINGS: n, RUNNING or an error's text.

    /cluster/tasks gives none for a running task; neither does a task whose end was never recorded, so a missing one is unknown.
    """
    return RUNNING if item.get("status") == "RUNNING" else _of_exit(item.get("status"))


def _of_exit(exitstatus: object) -> TaskVerdict:
    if not isinstance(exitstatus, str) or not exitstatus:
        return TaskVerdict("unknown", "no exit status recorded")
    if exitstatus == "OK":
        return TaskVerdict("ok", "OK")
    if exitstatus.startswith("WARNINGS:"):
        number = re.fullmatch(r"WARNINGS: (\d{1,9})", exitstatus)
        return TaskVerdict("warnings", exitstatus, int(number[1]) if number else None)
    if exitstatus == "unexpected status":  # killed, or its log ends without a last line
        return TaskVerdict("unknown", exitstatus)
    return TaskVerdict("failed", exitstatus)
