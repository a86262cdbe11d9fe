"""Commands carried out, looks at what is left, the account of a plan: by its own words, with a node that answers as told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.app import App, Call, Stamp
from proxmox_mcp.carry_out import carry_out, told
from proxmox_mcp.config import Settings
from proxmox_mcp.errors import ApiError, SshUnreachable
from proxmox_mcp.plan import Answer, ApiCall, HostCommand, HostTarget, Kind, Plan, Risk, StepResult, Wait
from proxmox_mcp.ssh import Outcome
from tests.piped import UPID, FakePerson, piped, records
from tests.served_api import Reply

pytestmark = pytest.mark.anyio
NODE = HostTarget(node="pve1")
WENT_WELL = Outcome(0, None, False, False, False, "", "", 0, 0, False, 0.1, 0, "")
CALL = ApiCall("POST", ("x",), {"a": 1}, wait=Wait.NOTHING)


class Node:
    """Stands for the SSH pool: answers each command with the next outcome, and says what it hears."""

    def __init__(self, *outcomes: Outcome | Exception, says: Sequence[str] = ()) -> None:
        self._outcomes, self._says = list(outcomes), says
        self.ran: list[tuple[str, ...]] = []

    def known_hostname(self, target: Any) -> str:
        return "pve1"

    async def run(self, target: Any, argv: Any, *, on_output: Any, **more: Any) -> Outcome:
        self.ran.append(tuple(argv))
        for words in self._says if on_output else ():
            await on_output(words)
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self) -> None:
        return None


def command(*argv: str, **more: Any) -> HostCommand:
    return HostCommand(NODE, argv or ("zfs", "destroy", "tank/x"), **more)


def plan(*steps: HostCommand | ApiCall, **more: Any) -> Plan:
    return Plan("do it", steps, Risk.CHANGE, ("node pve1",), **more)


async def carried(tmp_path: Path, what: Plan, node: Node) -> tuple[Answer, list[tuple[float, str]]]:
    heard: list[tuple[float, str]] = []

    async def progress(elapsed: float, words: str) -> None:
        heard.append((elapsed, words))

    app = App(Settings(audit_dir=tmp_path / "audit", ssh_host="127.0.0.1"))
    app.__dict__["ssh"] = node
    try:
        return await carry_out(Call(app, Stamp("tool", "change")), what, 0, progress), heard
    finally:
        await app.close()


@pytest.mark.parametrize(
    ("outcome", "state", "words"),
    [
        (WENT_WELL, "ok", ""),
        (replace(WENT_WELL, exit_status=1, stderr="cannot destroy: busy\n"), "failed", "exit status 1: cannot destroy: busy"),
        (replace(WENT_WELL, exit_status=2, stdout="said so\n"), "failed", "exit status 2: said so"),
        (replace(WENT_WELL, exit_status=2), "failed", "exit status 2"),
        (
            replace(WENT_WELL, exit_status=2, stderr="bad property\nUsage:\n\tlist\nFor the property list, run: zfs set\n"),
            "failed",
            "exit status 2: bad property",
        ),
        (replace(WENT_WELL, exit_status=2, stderr="usage: zfs\n\tlist\n"), "failed", "exit status 2: usage: zfs\n\tlist"),
        (
            replace(WENT_WELL, exit_status=None, timed_out=True),
            "unknown",
            "it was ended after its time was up; what it had done until then stays done",
        ),
        (
            replace(WENT_WELL, exit_status=None, capped=True, stdout="y"),
            "unknown",
            "its output was too long, it was ended; what it had done until then stays done: y",
        ),
        (
            replace(WENT_WELL, exit_status=None, lost=True),
            "unknown",
            "the connection was lost; what it had done until then stays done",
        ),
        (
            replace(WENT_WELL, exit_status=None, signal="KILL"),
            "unknown",
            "ended by signal KILL; what it had done until then stays done",
        ),
    ],
)
async def test_what_became_of_a_command(tmp_path: Path, outcome: Outcome, state: str, words: str) -> None:
    seen: list[StepResult] = []

    async def look(results: Sequence[StepResult]) -> Answer:
        seen.extend(results)
        return Answer("looked", record={})

    step = command()
    answer, _ = await carried(tmp_path, plan(step, conclude=look, after_failure=look), Node(outcome))
    assert seen == [StepResult(step, state, words, data=outcome)]  # type: ignore[arg-type]
    assert answer.failed is (state != "ok" and answer.title != "looked")
    if state != "ok":
        assert answer.record == {"tried": "on node pve1: zfs destroy tank/x", "result": words}
        assert answer.title == {"failed": "Failed: do it", "unknown": "Outcome unknown: do it"}[state]


async def test_another_status_may_mean_success_and_the_words_of_a_failure_are_cut(tmp_path: Path) -> None:
    answer, _ = await carried(tmp_path, plan(command(ok=(0, 3))), Node(replace(WENT_WELL, exit_status=3)))
    assert (answer.title, answer.record, answer.failed) == ("Done: do it", {}, False)
    answer, _ = await carried(tmp_path, plan(command()), Node(replace(WENT_WELL, exit_status=1, stderr="x" * 9_000)))
    assert "[... 7000 characters left out ...]" in (answer.record or {})["result"]


@pytest.mark.parametrize(
    ("call", "reason", "active", "words"),
    [
        (
            ApiCall("PUT", ("nodes", "pve1", "qemu", 101, "config"), {"cores": 2}, wait=Wait.NOTHING),
            "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout",
            [{"type": "vzdump", "upid": UPID, "status": "RUNNING"}],
            f"Running now: vzdump {UPID}",
        ),
        (
            ApiCall("POST", ("nodes", "pve1", "qemu", 101, "clone"), {"newid": 102}),
            "unable to create VM 102: config file already exists",
            [],
            "Id 102 is taken; the next free one is 105.",
        ),
    ],
)
async def test_a_refusal_says_what_stands_in_the_way(tmp_path: Path, call: ApiCall, reason: str, active: object, words: str) -> None:
    async with piped(tmp_path) as (api, app):
        api.on(call.method, "/" + "/".join(map(str, call.path)), Reply(500, reason))
        api.on("GET", "/nodes/pve1/tasks", active)
        api.on("GET", "/cluster/nextid", lambda request: Reply(400, "exists") if "vmid" in request.query else "105")
        answer = await carry_out(Call(app, Stamp("tool", "change")), plan(call), 0, FakePerson().progress)
        assert answer.title == "Failed: do it"
        assert (answer.record or {})["result"].endswith(f"\n{words}")


async def test_a_refused_command_says_no_more(tmp_path: Path) -> None:
    answer, _ = await carried(tmp_path, plan(command()), Node(ApiError("no such node", status=500)))
    assert (answer.record or {})["result"] == "no such node"


async def test_the_last_line_is_passed_on_while_a_command_runs(tmp_path: Path) -> None:
    says = ("first\nsecond\n", "\n \n", "third")
    _, heard = await carried(tmp_path, plan(command(progress=True)), Node(WENT_WELL, says=says))
    assert [words for _, words in heard] == ["second", "third"]
    assert all(0 <= elapsed < 10 for elapsed, _ in heard)
    _, heard = await carried(tmp_path, plan(command()), Node(WENT_WELL, says=says))
    assert heard == []


async def test_a_command_that_could_not_be_run_failed_and_ends_the_plan(tmp_path: Path) -> None:
    node = Node(SshUnreachable("pve1 is not there.", hint="Look."))
    steps = (command(), command("zfs", "list"))
    answer, _ = await carried(tmp_path, plan(*steps, otherwise=("look there",), undo="do it back"), node)
    assert len(node.ran) == 1
    assert answer.title == "Failed: do it"
    assert answer.record == {
        "1": "on node pve1: zfs destroy tank/x -> failed: pve1 is not there.\nNext: Look.",
        "2": "on node pve1: zfs list -> not tried",
    }
    assert answer.notes == ("look there",)


async def test_a_batch_goes_on_and_its_worst_part_is_the_whole(tmp_path: Path) -> None:
    failed = replace(WENT_WELL, exit_status=1, stderr="no")
    node = Node(WENT_WELL, failed, WENT_WELL)
    steps = tuple(command("zfs", "destroy", name) for name in ("a", "b", "c"))
    answer, _ = await carried(tmp_path, plan(*steps, on_failure="continue", undo="do it back"), node)
    assert [argv[2] for argv in node.ran] == ["a", "b", "c"]
    assert answer.title == "Failed: do it"
    assert list((answer.record or {}).values()) == [
        "on node pve1: zfs destroy a -> ok",
        "on node pve1: zfs destroy b -> failed: exit status 1: no",
        "on node pve1: zfs destroy c -> ok",
    ]
    assert answer.notes == ()
    answer, _ = await carried(tmp_path, plan(*steps[:1], undo="do it back", notes=("a note",)), Node(WENT_WELL))
    assert answer.notes == ("a note", "undo: do it back")


async def test_what_a_failure_left_stands_beside_its_account(tmp_path: Path) -> None:
    async def look(results: Sequence[StepResult]) -> Answer:
        return Answer("ignored", record={"left": 3, "result": "replaced"}, kinds={"left": Kind.BYTES}, notes=("half of it",))

    failed = replace(WENT_WELL, exit_status=1, stderr="no")
    answer, _ = await carried(tmp_path, plan(command(), after_failure=look, notes=("a note",)), Node(failed))
    assert answer.title == "Failed: do it"
    assert answer.record == {"tried": "on node pve1: zfs destroy tank/x", "result": "replaced", "left": 3}
    assert answer.kinds == {"left": Kind.BYTES}
    assert answer.notes == ("half of it", "a note")
    assert answer.failed


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError("no such pool", status=500), "no such pool"),
        (KeyError("a bug"), "an error inside the server, whose log (stderr) has the details"),
    ],
)
async def test_a_look_that_fails_hides_nothing_of_what_was_done(
    tmp_path: Path, error: Exception, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def look(results: Sequence[StepResult]) -> Answer:
        raise error

    answer, _ = await carried(tmp_path, plan(command(), conclude=look), Node(WENT_WELL))
    assert (answer.title, answer.failed) == ("Done: do it", False)
    assert answer.notes == (f"what came of it could not be read: {words}",)
    failed = replace(WENT_WELL, exit_status=1, stderr="no")
    answer, _ = await carried(tmp_path, plan(command(), after_failure=look), Node(failed))
    assert (answer.title, answer.failed) == ("Failed: do it", True)
    assert answer.record == {"tried": "on node pve1: zfs destroy tank/x", "result": "exit status 1: no"}
    assert answer.notes == (f"what it has done until then could not be read: {words}",)
    logged = [record for record in caplog.records if record.name == "proxmox_mcp.carry_out"]
    assert bool(logged) is isinstance(error, KeyError)
    assert all(record.getMessage() == "after a change was sent" and record.exc_info for record in logged)


def test_an_account_names_every_task() -> None:
    results = [StepResult(CALL, "ok", upid="UPID:a"), StepResult(CALL, "ok"), StepResult(CALL, "running", upid="UPID:b")]
    found = told(plan(CALL, CALL, CALL), results, "running")
    assert found.title == "Started, still running: do it"
    assert (found.record or {})["upid"] == "UPID:a, UPID:b"
    assert not found.failed
    single = told(plan(CALL), results[:1], "ok")
    assert single.record == {"upid": "UPID:a"}
    nothing = told(plan(CALL), [StepResult(CALL, "not tried", "the log is full")], "not tried")
    assert (nothing.title, nothing.failed) == ("Nothing was changed: do it", True)
    assert nothing.record == {"tried": "POST /x a=1", "result": "the log is full"}


async def test_each_command_has_its_own_record_and_the_plan_none(tmp_path: Path) -> None:
    await carried(tmp_path, plan(command()), Node(WENT_WELL))
    assert records(tmp_path) == []
    intent, outcome = records(tmp_path, "host")
    assert intent["argv"] == ["zfs", "destroy", "tank/x"]
    assert re.fullmatch(r"[0-9.]+", str(outcome["seconds"]))


async def test_a_command_whose_record_cannot_be_written_is_not_tried(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where the directory should be")
    node = Node(WENT_WELL)
    answer, _ = await carried(tmp_path, plan(command()), node)
    assert answer.title == "Nothing was changed: do it"
    assert (answer.record or {})["result"].startswith("Nothing was sent: the audit record could not be written to ")
    assert node.ran == []


async def test_what_nobody_foresaw_in_a_command_may_have_been_carried_out(tmp_path: Path) -> None:
    answer, _ = await carried(tmp_path, plan(command()), Node(RuntimeError("nobody foresaw this")))
    assert answer.title == "Outcome unknown: do it"
    words = "it may have been carried out: an error inside the server, whose log (stderr) has the details"
    assert (answer.record or {})["result"] == words
