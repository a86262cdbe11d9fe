"""Logs of tasks, by their tail, and what in them explains an end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from proxmox_mcp import text
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.inventory import Reader
from proxmox_mcp.tasks.upid import TaskVerdict, Upid


@dataclass(frozen=True, slots=True)
class Log:
    """Lines of a task's log. `omitted` lines are missing in front of `lines[gap]`."""

    lines: tuple[str, ...]
    total: int
    omitted: int
    state: Literal["lines", "empty", "gone"]
    gap: int = 0


async def log_tail(api: Reader, upid: Upid, lines: int) -> Log:
    """The last lines. Proxmox counts from the front and gives 50 unless told otherwise, so the total is asked first."""
    first, total = await page(api, upid, 0, 1)
    if (nothing := _nothing(first, total)) is not None:
        return nothing
    start = max(0, total - lines)
    found = first if total == 1 else (await page(api, upid, start, lines))[0]
    return Log(tuple(found), total, start, "lines")


async def log_head_and_tail(api: Reader, upid: Upid, head: int, tail: int) -> Log:
    """The first and the last lines."""
    first, total = await page(api, upid, 0, head)
    if (nothing := _nothing(first, total)) is not None:
        return nothing
    if total <= len(first):
        return Log(tuple(first), total, 0, "lines")
    start = max(len(first), total - tail)
    last, _ = await page(api, upid, start, tail)
    return Log((*first, *last), total, start - len(first), "lines", gap=len(first))


async def log_from(api: Reader, upid: Upid, first: int, lines: int) -> Log:
    """`lines` lines from line `first`, counted from 1."""
    found, total = await page(api, upid, first - 1, lines)
    if (nothing := _nothing(found, total)) is not None:
        return nothing
    return Log(tuple(found), total, min(first - 1, total), "lines")


async def page(api: Reader, upid: Upid, start: int, limit: int, *, timeout: float | None = None) -> tuple[list[str], int]:
    """`limit` lines from `start` (0 is the first), and how many there are."""
    path = ("nodes", upid.node, "tasks", str(upid), "log")
    rows, total = await api.get_with_total(*path, params={"start": start, "limit": limit}, timeout=timeout)
    lines = [str(row.get("t", "")) for row in rows if isinstance(row, Mapping)] if isinstance(rows, Sequence) else []
    return lines, start + len(lines) if total is None else total


def _nothing(lines: Sequence[str], total: int) -> Log | None:
    """An empty or missing log comes as one line of text."""
    if total == 0 or (total == 1 and list(lines) == ["no content"]):
        return Log((), 0, 0, "empty")
    if total == 1 and lines and lines[0].startswith("unable to open file"):
        return Log((), 0, 0, "gone")
    return None


_TROUBLE = re.compile(r"error|\berr\b|fail|warn|cannot|can't|unable|denied|refused|timeout|timed out|no space|not enough|abort", re.I)
_WARNING = re.compile(r"warn", re.I)


async def explain(api: Reader, upid: Upid, verdict: TaskVerdict) -> str:
    """Why a task ended as it did: its exit status and the lines of its log that say so, cleaned. Never raises for an unreadable log."""
    said = text.clean(verdict.text, 1_000)
    try:
        log = await log_tail(api, upid, 1_000)
    except ProxmoxMcpError as error:
        return f"{said} (its log could not be read: {error.what})"
    if log.state != "lines":
        return f"{said} (its log is {'empty' if log.state == 'empty' else 'no longer there'})"
    lines = [line for line in (text.clean(raw, 300) for raw in log.lines) if line]
    # the line that ends the log repeats the exit status
    lines = [line for line in lines if not (line.startswith("TASK ") and line.partition(": ")[2] in said)]
    pattern = _WARNING if verdict.state == "warnings" else _TROUBLE
    telling = [line for line in lines if pattern.search(line)][-5:] or lines[-3:]
    return "\n".join([said, *(f"log: {line}" for line in telling)])
