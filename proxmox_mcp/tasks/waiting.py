"""Waiting for tasks and guests: bounded, patient with the network, never taking "not known" for "failed"."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.errors import (
    ApiError,
    Busy,
    ConnectionFailed,
    NotFound,
    NotTheApi,
    PermissionDenied,
    ProxmoxMcpError,
    RequestTimeout,
    Unsupported,
)
from proxmox_mcp.inventory import Reader, number, part, read_object, read_rows, word
from proxmox_mcp.plan import ApiCall, GuestState, StepResult
from proxmox_mcp.tasks.logs import explain, page
from proxmox_mcp.tasks.upid import RUNNING, UPID_MAX, TaskVerdict, Upid, verdict

Progress = Callable[[float, str], Awaitable[None]]
"""Called while a wait goes on, with the seconds waited and the last line of the log (hostile text)."""


async def status(api: Reader, upid: Upid, *, timeout: float | None = None) -> Mapping[str, Any]:
    """GET /nodes/{node}/tasks/{upid}/status: upid, node, type, id, user, tokenid?, starttime, status, exitstatus?."""
    found = await api.get("nodes", upid.node, "tasks", str(upid), "status", timeout=timeout)
    return found if isinstance(found, Mapping) else {}


async def _sleep(seconds: float) -> None:
    import anyio

    await anyio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a wait looks: seconds between looks, growing; how many failed looks in a row it bears; clock and sleep."""

    first: float = 0.25
    growth: float = 1.5
    longest: float = 2.0
    tolerance: int = 5
    request: float = 10.0  # seconds for one look
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = _sleep


PACE = Pace()
_Look = Callable[[float], Awaitable[TaskVerdict]]


async def wait(api: Reader, upid: Upid, seconds: float, *, progress: Progress | None = None, pace: Pace = PACE) -> TaskVerdict:
    """Waits for a task's end, `seconds` at most. Looks at least once; raises nothing about the task.

    "running" when the time is up first; "unknown" when its status can no longer be read: the task may well go on.
    """
    doubted = False
    seen = 0

    async def look(timeout: float) -> TaskVerdict:
        nonlocal doubted
        found = verdict(await status(api, upid, timeout=timeout))
        if found.text == "unexpected status" and not doubted:
            doubted = True  # between the end of a task and the last line of its log it looks as if it had been killed
            return RUNNING
        return found

    async def tell(elapsed: float) -> None:
        nonlocal seen
        if progress is None:
            return
        line = ""
        try:
            lines, total = await page(api, upid, seen, 100, timeout=pace.request)
            if seen + len(lines) < total:
                lines, total = await page(api, upid, total - 1, 1, timeout=pace.request)
            seen = max(0, total - 1)
            line = lines[-1] if lines and lines != ["no content"] else ""
        except ProxmoxMcpError:
            pass  # the log is an extra
        await progress(elapsed, text.clean(line, 200))

    return await _poll(look, tell, seconds, pace)


async def wait_guest(api: Reader, state: GuestState, seconds: float, *, progress: Progress | None = None, pace: Pace = PACE) -> TaskVerdict:
    """Waits until a guest has a status: "ok" when it has, "running" (with what it is instead) when the time is up.

    The HA manager may move the guest meanwhile, so it is looked for again when it is not where it was.
    """
    node = state.node
    seen = ""

    async def look(timeout: float) -> TaskVerdict:
        nonlocal node, seen
        try:
            current = await read_object(api, "nodes", node, state.kind, state.vmid, "status", "current", timeout=timeout)
        except NotFound:
            rows = await read_rows(api, "cluster", "resources", params={"type": "vm"}, timeout=timeout)
            places = [place for row in rows if number(row.get("vmid")) == state.vmid and (place := word(row.get("node")))]
            if not places or places[0] == node:
                raise
            node = places[0]
            return RUNNING
        if current.get("status") == state.status:
            return TaskVerdict("ok", f"guest {state.vmid} is {state.status}")
        ha = part(current.get("ha"))
        seen = f"guest {state.vmid} is still {current.get('status', 'in an unknown state')}"
        if ha.get("managed"):
            seen += f", HA state {text.clean(str(ha.get('state', 'unknown')), 40)}"
        return TaskVerdict("running", seen)

    async def tell(elapsed: float) -> None:
        if progress is not None:
            await progress(elapsed, seen)

    return await _poll(look, tell, seconds, pace)


async def _poll(look: _Look, tell: Callable[[float], Awaitable[None]], seconds: float, pace: Pace) -> TaskVerdict:
    begun = pace.clock()
    interval, failures = pace.first, 0
    while True:
        remaining = seconds - (pace.clock() - begun)
        try:
            found = await look(max(2.0, min(pace.request, remaining)))
            failures = 0
        except ProxmoxMcpError as error:
            failures += 1
            found = TaskVerdict("unknown", f"its status could not be read: {error.what}")
            if failures >= pace.tolerance or not _passing(error):
                return found
        if failures == 0 and found.state != "running":
            return found
        elapsed = pace.clock() - begun
        if elapsed >= seconds:
            return found
        if failures == 0:
            await tell(elapsed)
        await pace.sleep(min(interval, max(0.0, seconds - (pace.clock() - begun))))
        interval = min(interval * pace.growth, pace.longest)


def _passing(error: ProxmoxMcpError) -> bool:
    """Whether the same look may work a moment later."""
    if isinstance(error, (PermissionDenied, NotFound, Unsupported)):
        return False
    return isinstance(error, (ConnectionFailed, RequestTimeout, NotTheApi)) or (isinstance(error, ApiError) and error.status >= 500)


async def guest_result(api: Reader, step: ApiCall, upid: Upid, seconds: float, progress: Progress, *, pace: Pace = PACE) -> StepResult:
    """Awaits a step whose task only files a request (an HA-managed guest): first the task, then the state of the guest."""
    assert isinstance(step.wait, GuestState)
    begun = pace.clock()
    found = await wait(api, upid, seconds, progress=progress, pace=pace)
    if found.state == "running":
        return StepResult(step, "running", upid=str(upid))
    if not found.done:
        return StepResult(step, found.state, await explain(api, upid, found), upid=str(upid))
    found = await wait_guest(api, step.wait, seconds - (pace.clock() - begun), progress=progress, pace=pace)
    return StepResult(step, found.state, found.text, upid=str(upid))


async def who_holds_the_lock(api: Reader, path: Sequence[str | int], error: ProxmoxMcpError) -> str:
    """For a Busy error on a guest's path: which running task of that guest can be seen; "" when there is nothing to say."""
    if not isinstance(error, Busy) or len(path) < 4 or path[0] != "nodes" or path[2] not in ("qemu", "lxc"):
        return ""
    node, vmid = path[1], path[3]
    try:
        items = await read_rows(api, "nodes", node, "tasks", params={"source": "active", "vmid": vmid})
    except ProxmoxMcpError:
        return ""
    running = [item for item in items if item.get("status") == "RUNNING"]
    if not running:
        return f"No running task of guest {vmid} is visible to this token."
    return "\n".join(f"Running now: {text.clean(str(i.get('type')), 40)} {text.clean(str(i.get('upid')), UPID_MAX)}" for i in running[:3])
