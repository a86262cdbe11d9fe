"""Carries a Plan out: intent on disk first, each step sent once and awaited, the outcome on disk, an Answer that hides nothing."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio

from proxmox_mcp import preview, secrets, tasks, text
from proxmox_mcp.app import Call
from proxmox_mcp.changes.prechecks import next_id_instead
from proxmox_mcp.errors import ApiError, AuditError, OutcomeUnknown, ProxmoxMcpError
from proxmox_mcp.plan import Answer, ApiCall, Conclude, GuestState, HostCommand, Plan, Step, StepResult, Wait

Progress = Callable[[float, str], Awaitable[None]]


async def carry_out(call: Call, plan: Plan, wait_seconds: float, progress: Progress) -> Answer:
    """Runs the steps in order. Raises AuditError, with nothing sent, when the intent cannot be recorded."""
    started = time.monotonic()
    intent = await _intent(call, plan)
    progress = _harmless(progress)
    results: list[StepResult] = []
    try:
        await anyio.lowlevel.checkpoint()  # cancelled while the intent was written: nothing is sent
        await _steps(call, plan, wait_seconds, progress, results)
    except BaseException as exc:
        # a cancelled call gets no answer: the record is where the truth goes
        await _outcome(call, plan, intent, _filled(plan, results), started, abandoned=type(exc).__name__)
        raise
    results = _filled(plan, results)
    unrecorded = await _outcome(call, plan, intent, results, started)
    answer = await _conclude(plan, results)
    return replace(answer, notes=(*answer.notes, *unrecorded, *call.remarks))


def _harmless(progress: Progress) -> Progress:
    """A client that cannot be told how far it is must not end what is under way."""

    async def told(elapsed: float, message: str) -> None:
        try:
            await progress(elapsed, message)
        except Exception as exc:
            _words(exc)

    return told


async def _steps(call: Call, plan: Plan, wait_seconds: float, progress: Progress, results: list[StepResult]) -> None:
    deadline = time.monotonic() + min(wait_seconds, call.settings.max_wait)
    for number, step in enumerate(plan.steps):
        last = number == len(plan.steps) - 1
        # a step that others build on is waited for, whatever the caller's patience
        patience = deadline if last or plan.on_failure == "continue" else max(deadline, time.monotonic() + call.settings.max_wait)
        results.append(StepResult(step, "unknown", "cancelled while it was under way"))  # the truth until the next line knows better
        results[-1] = await _step(call, step, patience, progress, results)
        if results[-1].state not in ("ok", "warnings") and plan.on_failure == "stop":
            return


async def _step(call: Call, step: Step, deadline: float, progress: Progress, results: list[StepResult]) -> StepResult:
    try:
        if isinstance(step, HostCommand):
            return await _command(call, step, progress)
        data = await call.api.send(step.method, step.path, step.params)
    except OutcomeUnknown as exc:
        return StepResult(step, "unknown", str(exc))
    except AuditError as exc:
        return StepResult(step, "not tried", str(exc))
    except ProxmoxMcpError as exc:
        hint = await _more_about(call, step, exc)
        return StepResult(step, "failed", "\n".join(filter(None, (str(exc), hint))))
    except Exception as exc:
        return StepResult(step, "unknown", f"it may have been carried out: {_words(exc)}")
    try:
        return await _awaited(call, step, data, deadline, progress, results)
    except Exception as exc:  # it was sent: whatever goes wrong from here on, this must not read as if it had not been
        return StepResult(step, "unknown", f"it was sent, and its end could not be followed: {_words(exc)}", data=data)


async def _awaited(call: Call, step: ApiCall, data: Any, deadline: float, progress: Progress, results: list[StepResult]) -> StepResult:
    patience = max(0.0, deadline - time.monotonic())
    if step.wait is Wait.NOTHING or (step.wait is Wait.TASK_OR_NULL and data is None):
        return StepResult(step, "ok", data=data)
    if not isinstance(data, str) or not data.startswith("UPID:"):
        # vzdump answers "OK" when it did nothing: no task, no success
        words = f"no task was started; Proxmox answered {text.clean(str(data), 200)!r}"
        return StepResult(step, "failed" if data == "OK" else "unknown", words, data=data)
    upid = tasks.Upid.parse(data)
    results[-1] = StepResult(step, "unknown", "waiting was abandoned, the task goes on", data=data, upid=data)
    begun = time.monotonic()
    if isinstance(step.wait, GuestState):
        result = await tasks.guest_result(call.api, step, upid, patience, progress)
    else:
        verdict = await tasks.wait(call.api, upid, patience, progress=progress)
        words = "" if verdict.state in ("ok", "running") else await tasks.explain(call.api, upid, verdict)
        result = StepResult(step, verdict.state, words, data=data, upid=data)
    if result.state == "running" and patience >= 1:
        return replace(result, text=f"not at its end after {text.duration(time.monotonic() - begun)}")
    return result


async def _command(call: Call, step: HostCommand, progress: Progress) -> StepResult:
    began = time.monotonic()

    async def heard(words: str) -> None:
        lines = [line for line in words.splitlines() if line.strip()]
        if lines:
            await progress(time.monotonic() - began, lines[-1])

    outcome = await call.door.run(step, on_output=heard if step.progress else None)
    words = text.clean_block(_message(outcome.stderr) or outcome.stdout, 2_000).strip()
    if outcome.exit_status in step.ok:
        return StepResult(step, "ok", data=outcome)
    if outcome.exit_status is not None:
        return StepResult(step, "failed", f"exit status {outcome.exit_status}" + (f": {words}" if words else ""), data=outcome)
    why = "it was ended after its time was up" if outcome.timed_out else "its output was too long, it was ended" if outcome.capped else ""
    why = why or ("the connection was lost" if outcome.lost else f"ended by signal {outcome.signal}")
    return StepResult(step, "unknown", f"{why}; what it had done until then stays done{f': {words}' if words else ''}", data=outcome)


def _message(stderr: str) -> str:
    """What a program says of its failure, without the help that many print behind it."""
    return re.split(r"(?im)^usage:", stderr)[0].strip() or stderr


async def _more_about(call: Call, step: Step, exc: ProxmoxMcpError) -> str:
    """What else can be said about a refusal: which task holds the lock, which id is free instead of the one that is taken."""
    if isinstance(step, ApiCall) and isinstance(exc, ApiError):
        return await tasks.who_holds_the_lock(call.api, step.path, exc) or await next_id_instead(call.inventory, step.path, step.params)
    return ""


def _words(exc: Exception) -> str:
    """What went wrong behind a change; what nobody foresaw is in the log alone."""
    if isinstance(exc, ProxmoxMcpError):
        return exc.what
    logging.getLogger(__name__).error("after a change was sent", exc_info=exc)
    return "an error inside the server, whose log (stderr) has the details"


def _filled(plan: Plan, results: Sequence[StepResult]) -> list[StepResult]:
    return [*results, *(StepResult(step, "not tried") for step in plan.steps[len(results) :])]


# --- the record


async def _intent(call: Call, plan: Plan) -> str | None:
    """One record for all requests of a plan; commands are recorded one by one at the door they leave through."""
    calls = [step for step in plan.steps if isinstance(step, ApiCall)]
    if not calls:
        return None
    from proxmox_mcp.audit import aside

    with secrets.none_passed():
        entry = {
            **call.stamp.entry(),
            "summary": plan.summary,
            "targets": list(plan.targets),
            "steps": [preview.record(step) for step in calls],
        }
        return await aside(lambda: call.app.log("api").intent(entry))


async def _outcome(
    call: Call, plan: Plan, intent: str | None, results: Sequence[StepResult], started: float, *, abandoned: str = ""
) -> tuple[str, ...]:
    if intent is None:
        return ()
    from proxmox_mcp.audit import aside

    steps = [
        {"state": result.state, "upid": result.upid, "text": text.clean(result.text, 500)}
        for result in results
        if isinstance(result.step, ApiCall)
    ]
    entry = {"state": _overall(results), "steps": steps, "seconds": round(time.monotonic() - started, 3)}
    if abandoned:
        entry["abandoned"] = f"{abandoned}: waiting ended in step {sum(r.state != 'not tried' for r in results)} of {len(plan.steps)}"
    try:
        await aside(lambda: call.app.log("api").outcome(intent, entry))
    except AuditError as exc:
        # a cancelled call has no answer to say it in: the log of the server does
        logging.getLogger(__name__).error("%s (%s)", exc.what, exc.said)
        return (f"the outcome could not be recorded in the audit log: {exc.what}",)
    return ()


# --- the answer

_WORST = ("unknown", "failed", "not tried", "running", "warnings", "ok")
_OPENING = {
    "ok": "Done: ",
    "warnings": "Done, with warnings: ",
    "running": "Started, still running: ",
    "failed": "Failed: ",
    "not tried": "Nothing was changed: ",
    "unknown": "Outcome unknown: ",
}


def _overall(results: Sequence[StepResult]) -> str:
    states = {result.state for result in results}
    return next((state for state in _WORST if state in states and not (state == "not tried" and states - {"not tried"})), "ok")


async def _conclude(plan: Plan, results: Sequence[StepResult]) -> Answer:
    overall = _overall(results)
    if plan.conclude is not None and overall in ("ok", "warnings"):
        try:
            answer = await plan.conclude(results)
        except Exception as exc:
            answer = replace(told(plan, results, overall), notes=(f"what came of it could not be read: {_words(exc)}",))
        return replace(answer, notes=(*answer.notes, *_remarks(plan, results, overall)))
    answer = told(plan, results, overall)
    if plan.after_failure is not None and overall in ("failed", "unknown"):
        answer = await _looked_again(plan.after_failure, results, answer)
    return replace(answer, notes=(*answer.notes, *_remarks(plan, results, overall)))


async def _looked_again(look: Conclude, results: Sequence[StepResult], answer: Answer) -> Answer:
    """A failure can have done half of its work: what is left stands beside the account of the steps."""
    try:
        found = await look(results)
    except Exception as exc:
        return replace(answer, notes=(*answer.notes, f"what it has done until then could not be read: {_words(exc)}"))
    return replace(
        answer,
        record={**(answer.record or {}), **(found.record or {})},
        kinds={**answer.kinds, **found.kinds},
        notes=(*answer.notes, *found.notes),
    )


def told(plan: Plan, results: Sequence[StepResult], overall: str) -> Answer:
    """The plain account of a plan: one line when one step did all, else a line a step."""
    if len(results) == 1:
        lines = {"result": results[0].text} if results[0].text else {}
        if overall not in ("ok", "warnings", "running"):
            lines = {"tried": preview.step_line(results[0].step), **lines}
    else:
        lines = {str(n): f"{preview.step_line(r.step)} -> {r.state}{f': {r.text}' if r.text else ''}" for n, r in enumerate(results, 1)}
    lines |= {"upid": ", ".join(r.upid for r in results if r.upid)} if any(r.upid for r in results) else {}
    return Answer(_OPENING[overall] + plan.summary, record=lines, failed=overall in ("failed", "unknown", "not tried"))


def _remarks(plan: Plan, results: Sequence[StepResult], overall: str) -> tuple[str, ...]:
    remarks = [*plan.notes, *(() if overall in ("ok", "warnings") else plan.otherwise)]
    if overall == "running":
        upid = next(r.upid for r in results if r.state == "running")
        remarks.append(f"it goes on by itself, do not start it again; look with proxmox_get_task_log upid={upid}")
    if overall == "unknown":
        remarks.append("do not repeat it before you have looked at the object and at proxmox_list_tasks")
    if overall in ("ok", "warnings") and plan.undo:
        remarks.append(f"undo: {plan.undo}")
    return tuple(remarks)
