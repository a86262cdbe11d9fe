"""Steps whose end is a task or a guest's state: what each answer means, how long it is waited for, what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from proxmox_mcp import audit
from proxmox_mcp.app import Call, Stamp
from proxmox_mcp.carry_out import _overall, carry_out, told
from proxmox_mcp.plan import Answer, ApiCall, GuestState, Plan, Risk, StepResult, Wait
from tests.piped import UPID, FakePerson, piped, records, serve_guest
from tests.served_api import Reply, ServedApi

pytestmark = pytest.mark.anyio
STOP = ApiCall("POST", ("nodes", "pve1", "qemu", 101, "status", "stop"))
STATUS, LOG = "/nodes/{node}/tasks/{upid}/status", "/nodes/{node}/tasks/{upid}/log"
LOOK_FIRST = "do not repeat it before you have looked at the object and at proxmox_list_tasks"
GOES_ON = f"it goes on by itself, do not start it again; look with proxmox_get_task_log upid={UPID}"


def plan(*steps: ApiCall, **more: Any) -> Plan:
    return Plan("do it", steps, Risk.CHANGE, ("guest 101",), **more)


async def carried(
    tmp_path: Path, what: Plan, answer: object = UPID, *, ends: str | None = "OK", wait: float = 0, max_wait: float = 50, serve: Any = None
) -> tuple[Answer, list[StepResult], ServedApi]:
    """A plan carried out against an API that answers each change with `answer`, and whose task has ended with `ends` (None: never)."""
    seen: list[StepResult] = []

    async def look(results: Sequence[StepResult]) -> Answer:
        seen.extend(results)
        return Answer("looked", record={})

    async with piped(tmp_path, max_wait=max_wait) as (api, app):
        serve_guest(api, exitstatus=ends)
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", answer)
        if serve is not None:
            serve(api)
        whole = replace(what, conclude=look, after_failure=look)
        return await carry_out(Call(app, Stamp("tool", "change")), whole, wait, FakePerson().progress), seen, api


@pytest.mark.parametrize(
    ("wait", "data", "state", "words"),
    [
        (Wait.NOTHING, "anything", "ok", ""),
        (Wait.NOTHING, None, "ok", ""),
        (Wait.TASK_OR_NULL, None, "ok", ""),
        (Wait.TASK, None, "unknown", "no task was started; Proxmox answered 'None'"),
        (Wait.TASK, "OK", "failed", "no task was started; Proxmox answered 'OK'"),
        (Wait.TASK_OR_NULL, "OK", "failed", "no task was started; Proxmox answered 'OK'"),
        (Wait.TASK, "ok", "unknown", "no task was started; Proxmox answered 'ok'"),
        (Wait.TASK, "x" * 300, "unknown", f"no task was started; Proxmox answered '{'x' * 200}…(+100)'"),
    ],
)
async def test_what_an_answer_without_a_task_means(tmp_path: Path, wait: Wait, data: object, state: Any, words: str) -> None:
    step = replace(STOP, wait=wait)
    _, seen, _ = await carried(tmp_path, plan(step), data)
    assert seen == [StepResult(step, state, words, data=data)]


@pytest.mark.parametrize("wait", [Wait.TASK, Wait.TASK_OR_NULL])
async def test_a_task_that_ended_well_has_no_words(tmp_path: Path, wait: Wait) -> None:
    step = replace(STOP, wait=wait)
    answer, seen, _ = await carried(tmp_path, plan(step, undo="start it", otherwise=("look there",)))
    assert seen == [StepResult(step, "ok", "", data=UPID, upid=UPID)]
    assert answer.notes == ("undo: start it",)


async def test_warnings_are_told_with_the_log_and_are_no_failure(tmp_path: Path) -> None:
    answer, seen, _ = await carried(tmp_path, plan(STOP, undo="start it", otherwise=("look there",)), ends="WARNINGS: 1")
    assert (seen[0].state, seen[0].data, seen[0].upid) == ("warnings", UPID, UPID)
    assert "WARNINGS: 1" in seen[0].text
    assert (answer.title, answer.failed, answer.notes) == ("looked", False, ("undo: start it",))


async def test_a_failed_task_quotes_its_log(tmp_path: Path) -> None:
    answer, seen, _ = await carried(tmp_path, plan(STOP, undo="start it", otherwise=("look there",)), ends="got no lock")
    assert seen[0].state == "failed"
    assert "line one" in seen[0].text
    assert (answer.failed, answer.notes) == (True, ("look there",))


async def test_a_task_that_nobody_waited_for_goes_on(tmp_path: Path) -> None:
    answer, _, _ = await carried(tmp_path, plan(STOP, undo="start it"), ends=None)
    assert (answer.title, answer.failed, answer.record) == ("Started, still running: do it", False, {"upid": UPID})
    assert answer.notes == (GOES_ON,)


@pytest.mark.parametrize(("patience", "said"), [(0.4, False), (1.1, True)])
async def test_a_wait_of_a_second_or_more_is_told(tmp_path: Path, patience: float, said: bool) -> None:
    answer, _, _ = await carried(tmp_path, plan(STOP), ends=None, wait=30, max_wait=patience)
    result = (answer.record or {}).get("result", "")
    assert result == ("not at its end after 1s" if said else "")


async def test_a_step_that_others_build_on_is_waited_for_whatever_the_patience(tmp_path: Path) -> None:
    looks: list[str] = []

    def status(request: Any) -> dict[str, Any]:
        looks.append(request.path)
        ended = {"status": "stopped", "exitstatus": "OK"} if len(looks) > 1 else {"status": "running"}
        return {"upid": UPID, "node": "pve1", "type": "qmstop", "id": "101", **ended}

    def ends_later(api: ServedApi) -> None:
        api.on("GET", STATUS, status)

    _, seen, api = await carried(tmp_path, plan(STOP, STOP), serve=ends_later)
    assert [result.state for result in seen] == ["ok", "ok"]
    assert len(api.writes) == 2


@pytest.mark.parametrize(("is_now", "state"), [("stopped", "ok"), ("running", "running")])
async def test_a_guest_under_ha_is_done_when_it_is_in_its_state(tmp_path: Path, is_now: str, state: str) -> None:
    def guest(api: ServedApi) -> None:
        api.on("GET", "/nodes/pve1/qemu/101/status/current", {"status": is_now, "vmid": 101})

    step = replace(STOP, wait=GuestState("pve1", "qemu", 101, "stopped"))
    answer, seen, _ = await carried(tmp_path, plan(step), wait=0.3, serve=guest)
    if state == "ok":
        assert seen == [StepResult(step, "ok", "guest 101 is stopped", upid=UPID)]
    else:
        assert answer.title == "Started, still running: do it"
        assert (answer.record or {})["result"] == "guest 101 is still running"


@pytest.mark.parametrize(
    ("state", "title", "failed"),
    [
        ("ok", "Done: do it", False),
        ("warnings", "Done, with warnings: do it", False),
        ("running", "Started, still running: do it", False),
        ("failed", "Failed: do it", True),
        ("unknown", "Outcome unknown: do it", True),
    ],
)
def test_what_was_tried_is_told_where_it_went_wrong(state: Any, title: str, failed: bool) -> None:
    found = told(plan(STOP), [StepResult(STOP, state, "words")], state)
    assert (found.title, found.failed) == (title, failed)
    tried = {"tried": "POST /nodes/pve1/qemu/101/status/stop"} if failed else {}
    assert found.record == {**tried, "result": "words"}


async def test_an_unknown_outcome_says_to_look_first(tmp_path: Path) -> None:
    answer, _, _ = await carried(tmp_path, plan(STOP, undo="start it", otherwise=("look there",)), 5)
    assert answer.notes == ("look there", LOOK_FIRST)


BUG = "an error inside the server, whose log (stderr) has the details"


async def test_a_cut_connection_is_unknown_in_its_own_words(tmp_path: Path) -> None:
    _, seen, _ = await carried(tmp_path, plan(STOP), Reply(drop=True))
    (result,) = seen
    assert (result.step, result.state, result.data) == (STOP, "unknown", None)
    assert "the change was sent, and it is not known whether it was made" in result.text


async def test_what_nobody_foresaw_behind_a_request_keeps_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr("proxmox_mcp.tasks.wait", broken)
    _, seen, _ = await carried(tmp_path, plan(STOP))
    assert seen == [StepResult(STOP, "unknown", f"it was sent, and its end could not be followed: {BUG}", data=UPID)]


async def test_warnings_do_not_end_a_plan(tmp_path: Path) -> None:
    _, seen, api = await carried(tmp_path, plan(STOP, STOP), ends="WARNINGS: 1")
    assert [result.state for result in seen] == ["warnings", "warnings"]
    assert len(api.writes) == 2


async def test_a_request_that_was_cancelled_under_way_is_unknown_in_the_record(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        serve_guest(api)
        loop = asyncio.get_running_loop()
        with anyio.CancelScope() as scope:

            def arrived(request: Any) -> Reply:
                loop.call_soon_threadsafe(scope.cancel)  # the API runs in a thread of its own
                return Reply(hang=True)

            api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", arrived)
            await carry_out(Call(app, Stamp("tool", "change")), plan(STOP), 0, FakePerson().progress)
        intent, outcome = records(tmp_path)
        assert (intent["summary"], intent["targets"]) == ("do it", ["guest 101"])
        assert outcome["steps"] == [{"state": "unknown", "upid": "", "text": "cancelled while it was under way"}]
        assert 0 < outcome["seconds"] < 30
        assert outcome["seconds"] == round(outcome["seconds"], 3)
        assert set(outcome) == {"state", "steps", "seconds", "abandoned"}
        assert audit.verify(tmp_path / "audit", "api", audit.Keys.none()).verdict == "INTACT"


async def test_the_record_cuts_long_words_and_the_answer_keeps_all_notes(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", Reply(500, "x" * 900))
        call = Call(app, Stamp("tool", "change"))
        call.remark("a remark of the call")
        answer = await carry_out(call, plan(STOP, notes=("a note",)), 0, FakePerson().progress)
        assert answer.notes == ("a note", "a remark of the call")
        (step,) = records(tmp_path)[1]["steps"]
        assert step["text"].partition("…(+")[0] == (answer.record or {})["result"].replace("\n", " ")[:500]


@pytest.mark.parametrize(
    ("states", "overall"),
    [
        ((), "ok"),
        (("ok",), "ok"),
        (("ok", "not tried"), "ok"),
        (("not tried", "not tried"), "not tried"),
        (("ok", "failed", "not tried"), "failed"),
    ],
)
def test_the_worst_part_is_the_whole(states: tuple[Any, ...], overall: str) -> None:
    assert _overall([StepResult(STOP, state) for state in states]) == overall
