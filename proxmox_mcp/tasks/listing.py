"""Task lists of nodes, the newest start first, page by page: a node's list of 100,000 tasks is never read whole."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.inventory import Reader, number, rows_of
from proxmox_mcp.tasks.upid import Upid, verdict_of_list_item

Place = tuple[int, str]  # of a task in the order: minus its start, its UPID

_CHUNK = 2_000  # rows of one request at most
_SLACK = 60  # seconds by which the ends in an archive may be out of order


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks. Proxmox filters too; what it lets through is held against this again."""

    vmid: int | None = None
    type: str | None = None
    errors_only: bool = False
    since: int | None = None  # of the start, in Unix seconds

    def params(self) -> dict[str, Any]:
        narrowed = {"vmid": self.vmid, "typefilter": self.type, "since": self.since}
        # a running task has not failed, so the archive alone will do
        return narrowed | ({"source": "archive", "statusfilter": "error,unknown"} if self.errors_only else {"source": "all"})

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        if self.errors_only and not is_failure(row):
            return False
        return (self.vmid is None or str(row.get("id")) == str(self.vmid)) and (self.type is None or row.get("type") == self.type)


@dataclass(frozen=True, slots=True)
class Page:
    """Tasks of a node in order, and how many follow them as far as Proxmox tells, 0 only when there are none."""

    rows: Sequence[Mapping[str, Any]]
    beyond: int
    running: Sequence[Mapping[str, Any]] = ()  # seen running, wherever they stand in the order


def is_failure(row: Mapping[str, Any]) -> bool:
    """Whether an item of a task list failed or was killed. Warnings are no failure, an end that nobody recorded is not known to be one."""
    found = verdict_of_list_item(row)
    return found.state == "failed" or found.text == "unexpected status"


def place(row: Mapping[str, Any]) -> Place:
    """Where a task stands: newest start first, then by UPID."""
    return -int(row["starttime"]), str(row["upid"])


async def page_of(api: Reader, node: str, wanted: Wanted, limit: int, *, after: Place | None = None) -> Page:
    """The next `limit` tasks of a node behind `after` (GET /nodes/{node}/tasks).

    Proxmox lists what runs first, then its archive by the end of the tasks, the latest first. What follows a row of the archive ended
    before it, and so started before it ended: up to there the rows read are complete.
    """
    params = wanted.params() | {"until": None if after is None else -after[0]}
    best: dict[str, Mapping[str, Any]] = {}
    running: dict[str, Mapping[str, Any]] = {}
    start, chunk, matched, passed = 0, min(limit + 25, _CHUNK), 0, 0
    while True:
        got, total = await api.get_with_total("nodes", node, "tasks", params=params | {"start": start, "limit": chunk})
        rows = [row for item in rows_of(got, "nodes", node, "tasks") if (row := _whole(item)) is not None]
        fresh = [row for row in rows if after is None or place(row) > after]
        passed += len(rows) - len(fresh)
        running |= {row["upid"]: row for row in fresh if row.get("status") == "RUNNING"}
        found = {row["upid"]: row for row in fresh if row in wanted and row["upid"] not in best}
        matched += len(found)
        first = heapq.nsmallest(limit, (*best.values(), *found.values()), key=place)
        if len(got) < chunk:
            return Page(first, matched - len(first), tuple(running.values()))
        ends = [end for row in rows if (end := number(row.get("endtime"))) is not None]
        if ends and len(first) == limit and first[-1]["starttime"] > min(ends) + _SLACK:
            rest = 1 if total is None else total - passed - len(first)
            return Page(first, max(1, rest), tuple(running.values()))
        best = {row["upid"]: row for row in first}
        start += len(got)
        chunk = min(chunk * 2, _CHUNK)


def _whole(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """A row with what the UPID says where the list does not; None when it is no task."""
    try:
        upid = Upid.parse(str(item.get("upid")))
    except InvalidArgument:
        return None
    # of a running task Proxmox names the token within the user, of an ended one beside it
    user = f"{upid.user}!{upid.token}" if upid.token else upid.user
    told = {"upid": str(upid), "node": upid.node, "type": upid.type, "id": upid.id, "user": user, "starttime": upid.started}
    return {**item, **told}
