"""The path of a call: gates in their order, intent before the act, outcome after it, nothing hidden."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from proxmox_mcp import carry_out, pipeline
from proxmox_mcp.app import Call, Stamp
from proxmox_mcp.arguments import Destroying, Reading
from proxmox_mcp.audit import AuditLog
from proxmox_mcp.errors import AuditError, InvalidArgument, Refused
from proxmox_mcp.plan import Answer, ApiCall, HostCommand, HostTarget, Plan, Risk
from proxmox_mcp.registry import Tool
from proxmox_mcp.render import View
from tests.piped import POWER, UPID, FakePerson, piped, records, serve_guest
from tests.served_api import Reply

pytestmark = pytest.mark.anyio
STOP = {"vmid": 101, "action": "shutdown", "confirm": True}
BOTH_FLAGS = {"confirm": True, "i_understand_data_loss": True}
DESTROY = {"vmid": 101, "action": "destroy", "confirm": True, "i_understand_data_loss": True}


async def call(app: Any, arguments: dict[str, Any], person: FakePerson | None = None) -> pipeline.Result:
    found = await pipeline.run(POWER, arguments, app, person or FakePerson())
    assert isinstance(found, pipeline.Result)
    return found


async def test_a_read_needs_no_gate_and_leaves_no_record(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        assert (await call(app, {"vmid": 101, "action": "look"})).text == "guest 101\nstatus: running"
        assert not api.writes
        assert not records(tmp_path)


async def test_a_dry_run_shows_exactly_what_would_be_sent_and_sends_nothing(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        found = await call(app, {**STOP, "dry_run": True})
        assert not found.failed
        assert found.text.startswith("Dry run, nothing was changed.\nshutdown guest 101 on pve1\n")
        assert "1. POST /nodes/pve1/qemu/101/status/shutdown timeout=0" in found.text
        assert found.text.endswith("Would work.")
        assert not api.writes
        await call(app, STOP)
        assert [(r.method, r.path, r.params) for r in api.writes] == [("POST", "/nodes/pve1/qemu/101/status/shutdown", {"timeout": "0"})]


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({"vmid": 101, "action": "stop"}, ["confirm=true"]),
        ({"vmid": 101, "action": "destroy"}, ["confirm=true", "i_understand_data_loss=true"]),
        ({"vmid": 101, "action": "destroy", "confirm": True}, ["i_understand_data_loss=true"]),
        ({"vmid": 101, "action": "destroy", "i_understand_data_loss": True}, ["confirm=true"]),
    ],
)
async def test_each_missing_flag_is_named_beside_the_preview_and_nothing_is_sent(
    tmp_path: Path, arguments: dict[str, Any], missing: list[str]
) -> None:
    async with piped(tmp_path) as (api, app):
        with pytest.raises(Refused) as refused:
            await call(app, arguments)
        text = str(refused.value)
        assert text.startswith(f"Nothing was changed: {' and '.join(missing)} missing. It would do:\n")
        assert "1. POST /nodes/pve1/qemu/101/status/" in text
        assert not api.writes
        (record,) = records(tmp_path)
        assert record["event"].startswith("refused: Nothing was changed")
        assert record["steps"][0]["path"].startswith("/nodes/pve1/qemu/101/status/")


async def test_the_intent_is_on_disk_before_anything_is_sent_and_the_outcome_after(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        seen: list[int] = []
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", lambda request: seen.append(len(records(tmp_path))) or UPID)
        found = await call(app, {**STOP, "wait_seconds": 5, "reason": "maintenance"})
        assert found.text.startswith("Done: shutdown guest 101 on pve1")
        assert "note: undo: start it again" in found.text
        assert seen == [1]
        intent, outcome = records(tmp_path)
        assert intent["reason"] == "maintenance"
        assert intent["flags"] == ["confirm"]
        assert intent["approved"] == "flags"
        assert intent["steps"] == [{"method": "POST", "params": {"timeout": 0}, "path": "/nodes/pve1/qemu/101/status/shutdown"}]
        assert outcome["state"] == "ok"
        assert outcome["steps"][0]["upid"] == UPID


async def test_if_the_intent_cannot_be_written_nothing_runs(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where the directory should be")
    async with piped(tmp_path) as (api, app):
        with pytest.raises(AuditError):
            await call(app, STOP)
        assert not api.writes


async def test_read_only_mode_wins_over_all_flags_and_a_dry_run(tmp_path: Path) -> None:
    async with piped(tmp_path, read_only=True) as (api, app):
        for arguments in (DESTROY, {**DESTROY, "dry_run": True}):
            with pytest.raises(InvalidArgument, match="read-only mode"):
                await call(app, arguments)
        assert (await call(app, {"vmid": 101, "action": "look"})).text.startswith("guest 101")
        assert not api.writes


@pytest.mark.parametrize("limits", [{"allow_vmids": ((200, 299),)}, {"allow_nodes": ("pve9",)}])
async def test_changes_outside_the_limits_are_refused(tmp_path: Path, limits: dict[str, Any]) -> None:
    async with piped(tmp_path, **limits) as (api, app):
        for arguments in (STOP, {**STOP, "dry_run": True}):
            with pytest.raises(Refused, match="PROXMOX_ALLOW"):
                await call(app, arguments)
        assert not api.writes


@pytest.mark.parametrize(
    ("policy", "action", "asked"),
    [("off", "destroy", 0), ("data_loss", "shutdown", 0), ("data_loss", "stop", 1), ("data_loss", "destroy", 1), ("all", "shutdown", 1)],
)
async def test_the_policy_says_when_a_person_is_asked(tmp_path: Path, policy: str, action: str, asked: int) -> None:
    async with piped(tmp_path, approval=policy) as (api, app):
        person = FakePerson()
        await call(app, {**DESTROY, "action": action}, person)
        assert len(person.asked) == asked
        assert len(api.writes) == 1
        log = records(tmp_path)
        assert [r.get("event") for r in log[:asked]] == ["a person is asked"] * asked
        assert log[asked]["approved"] == ("person" if asked else "flags")


async def test_a_no_changes_nothing_and_is_recorded(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        with pytest.raises(Refused, match="did not approve") as refused:
            await call(app, DESTROY, FakePerson(says=False))
        assert refused.value.hint == "do not try again unless the person asks for it"
        assert not api.writes
        assert [r["event"] for r in records(tmp_path)] == [
            "a person is asked",
            "refused: Nothing was changed: the person did not approve it",
        ]


async def test_a_client_that_cannot_ask_goes_by_the_flags_unless_the_fallback_denies(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        await call(app, DESTROY, FakePerson(says=None))
        intent, _ = records(tmp_path)  # nobody was asked, and nothing says so
        assert intent["approved"] == "flags (the client cannot ask a person)"
        assert len(api.writes) == 1
    async with piped(tmp_path, approval_fallback="deny") as (api, app):
        with pytest.raises(Refused) as refused:
            await call(app, DESTROY, FakePerson(says=None))
        why = "a person must approve this and this client cannot ask (PROXMOX_APPROVAL_FALLBACK=deny)"
        assert refused.value.what == f"Nothing was changed: {why}"
        assert refused.value.hint == "use a client with MCP elicitation, or change the policy"
        assert not api.writes


@pytest.mark.parametrize(
    ("changes", "arguments", "event"),
    [
        ({"allow_vmids": ((200, 299),), "limit_reads": True}, STOP, "refused: Invalid argument vmid: guest 101 is outside"),
        ({"read_only": True}, STOP, "refused: Invalid argument action: the server runs in read-only mode"),
        ({"allow_vmids": ((200, 299),)}, STOP, "refused: Nothing was changed: guest 101 is outside PROXMOX_ALLOW_VMIDS"),
    ],
)
async def test_a_change_that_was_refused_before_there_was_a_plan_is_recorded(
    tmp_path: Path, changes: dict[str, Any], arguments: dict[str, Any], event: str
) -> None:
    async with piped(tmp_path, **changes) as (api, app):
        with pytest.raises((Refused, InvalidArgument)):
            await call(app, {**arguments, "reason": "maintenance"})
        (record,) = records(tmp_path)
        assert record["event"].startswith(event)
        assert (record["tool"], record["reason"], record["flags"]) == ("power", "maintenance", ["confirm"])
        assert not api.writes


async def test_a_refusal_stands_where_it_cannot_be_recorded_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where the directory should be")
    async with piped(tmp_path, read_only=True) as (_, app):
        with pytest.raises(InvalidArgument, match=r"read-only mode(.|\n)*could not be recorded"):
            await call(app, STOP)


async def test_if_the_world_changes_while_a_person_thinks_nothing_runs(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):

        class Slow(FakePerson):
            async def approve(self, plan: Any) -> bool:
                serve_guest(api, node="pve2")
                return True

        with pytest.raises(Refused, match="the situation changed"):
            await call(app, DESTROY, Slow())
        assert not api.writes


@pytest.mark.parametrize("answer", [[], Reply(500, reason="not now")], ids=["gone", "no answer"])
async def test_what_was_approved_and_cannot_be_looked_at_again_is_refused_and_recorded(tmp_path: Path, answer: Any) -> None:
    async with piped(tmp_path) as (api, app):

        class Slow(FakePerson):
            async def approve(self, plan: Any) -> bool:
                api.on("GET", "/cluster/resources", answer)
                api.on("GET", "/cluster/nextid", 101)
                return True

        begin = "Nothing was changed: it was approved, and could not be looked at again before it was sent: "
        with pytest.raises(Refused, match=begin) as refused:
            await call(app, DESTROY, Slow())
        why = refused.value.what.removeprefix(begin)
        assert len(why) > 10
        assert "Nothing was changed" not in why
        assert refused.value.hint or isinstance(answer, Reply)
        if isinstance(answer, Reply):
            assert "/cluster/resources" in refused.value.tried
            assert "not now" in f"{refused.value.said} {why}"
        assert not api.writes
        assert [record["event"][:60] for record in records(tmp_path)] == [
            "a person is asked",
            "refused: Nothing was changed: it was approved, and could not",
        ]


async def test_an_outcome_that_cannot_be_written_is_told_even_if_the_call_was_cancelled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with piped(tmp_path) as (api, app):

        def served(request: Any) -> str:
            (tmp_path / "audit").rename(tmp_path / "elsewhere")
            (tmp_path / "audit").write_text("in the way")
            anyio.from_thread.run_sync(scope.cancel, token=token)
            return UPID

        token = anyio.lowlevel.current_token()
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", served)
        with anyio.CancelScope() as scope:
            await call(app, {**STOP, "wait_seconds": 30})
        assert scope.cancelled_caught
        assert "The outcome of something already sent could not be recorded in" in caplog.text


async def test_a_failed_task_quotes_its_log_and_is_an_error(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        serve_guest(api, exitstatus="VM quit/powerdown failed - got timeout")
        found = await call(app, {**STOP, "wait_seconds": 5})
        assert found.failed
        assert found.text.startswith("Failed: shutdown guest 101")
        assert "got timeout" in found.text
        assert records(tmp_path)[1]["state"] == "failed"


async def test_warnings_are_success(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        serve_guest(api, exitstatus="WARNINGS: 1")
        found = await call(app, {**STOP, "wait_seconds": 5})
        assert not found.failed
        assert found.text.startswith("Done, with warnings: ")


async def test_still_running_is_no_failure_and_names_the_next_call(tmp_path: Path) -> None:
    async with piped(tmp_path, max_wait=0.3) as (api, app):
        serve_guest(api, exitstatus=None)
        found = await call(app, {**STOP, "wait_seconds": 900})
        assert not found.failed
        assert found.text.startswith("Started, still running: ")
        assert f"proxmox_get_task_log upid={UPID}" in found.text
        assert len(api.writes) == 1


async def test_a_cut_connection_after_the_request_is_unknown_and_never_repeated(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", Reply(200, data=UPID, drop=True))
        found = await call(app, STOP)
        assert found.failed
        assert found.text.startswith("Outcome unknown: ")
        assert "do not repeat it" in found.text
        assert len(api.writes) == 1
        assert records(tmp_path)[1]["state"] == "unknown"


async def test_a_plan_that_stops_says_what_was_done_what_failed_and_what_was_not_tried(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        api.on(
            "POST",
            "/nodes/{node}/qemu/{vmid}/status/{action}",
            lambda r: UPID if r.params["timeout"] != "1" else Reply(500, "VM is locked (backup)"),
        )
        found = await call(app, {**STOP, "times": 3, "wait_seconds": 5})
        assert found.failed
        states = [line.split(" -> ")[1].split(":")[0] for line in found.text.splitlines() if " -> " in line]
        assert states == ["ok", "failed", "not tried"]
        assert len(api.writes) == 2
        assert [step["state"] for step in records(tmp_path)[1]["steps"]] == ["ok", "failed", "not tried"]


async def test_a_batch_goes_on_with_a_result_per_item(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        api.on(
            "POST",
            "/nodes/{node}/qemu/{vmid}/status/{action}",
            lambda r: UPID if r.params["timeout"] != "1" else Reply(500, "VM is locked (backup)"),
        )
        found = await call(app, {**STOP, "times": 3, "on_failure": "continue", "wait_seconds": 5})
        assert found.failed
        assert len(api.writes) == 3
        assert [step["state"] for step in records(tmp_path)[1]["steps"]] == ["ok", "failed", "ok"]


async def test_g33_an_answer_that_is_no_task_is_no_success(tmp_path: Path) -> None:
    async with piped(tmp_path) as (api, app):
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", "OK")
        found = await call(app, {**STOP, "wait_seconds": 5})
        assert found.failed
        assert "no task was started" in found.text
        assert not [path for path in api.paths if "/tasks/" in path]


@pytest.mark.parametrize(
    "answer",
    [
        "UPID:pve1:evil",
        UPID.replace(":101:", ":../..:"),
        "UPID:" + "x" * 10_000,
        5,
        [UPID],
        {"upid": UPID},
        None,
    ],
)
async def test_an_odd_answer_to_a_change_is_unknown_and_never_reads_as_if_nothing_had_been_sent(tmp_path: Path, answer: Any) -> None:
    async with piped(tmp_path) as (api, app):
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", lambda request: answer)
        found = await call(app, {**STOP, "wait_seconds": 5})
        assert found.failed
        assert found.text.startswith("Outcome unknown: ")
        assert len(found.text) < 2_000
        assert [r.method for r in api.writes] == ["POST"]
        _, outcome = records(tmp_path)
        assert outcome["state"] == outcome["steps"][0]["state"] == "unknown"
        assert "abandoned" not in outcome


async def test_what_nobody_foresaw_after_a_change_does_not_hide_the_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: Any, **more: Any) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr("proxmox_mcp.tasks.wait", broken)
    async with piped(tmp_path) as (api, app):
        found = await call(app, {**STOP, "wait_seconds": 3})
        assert found.failed
        assert found.text.startswith("Outcome unknown: shutdown guest 101")
        assert "nobody foresaw" not in found.text
        assert "nobody foresaw this" in caplog.text
        assert [r.method for r in api.writes] == ["POST"]
        assert records(tmp_path)[1]["state"] == "unknown"


async def test_a_client_that_cannot_be_told_how_far_it_is_ends_nothing(tmp_path: Path) -> None:
    class Deaf(FakePerson):
        async def progress(self, elapsed: float, message: str) -> None:
            raise RuntimeError("the pipe is gone")

    async with piped(tmp_path, max_wait=0.6) as (api, app):
        serve_guest(api, exitstatus=None)
        found = await call(app, {**STOP, "wait_seconds": 3}, Deaf())
        assert found.text.startswith("Started, still running: ")


async def test_a_cancelled_wait_leaves_the_task_alone_and_says_so_in_the_record(tmp_path: Path) -> None:
    class Leaving(FakePerson):
        async def progress(self, elapsed: float, message: str) -> None:
            scope.cancel()

    async with piped(tmp_path) as (api, app):
        serve_guest(api, exitstatus=None)
        with anyio.CancelScope() as scope:
            await call(app, {**STOP, "wait_seconds": 40}, Leaving())
        assert scope.cancelled_caught
        _, outcome = records(tmp_path)
        assert outcome["state"] == "unknown"
        assert outcome["steps"][0]["upid"] == UPID
        assert "waiting was abandoned" in outcome["steps"][0]["text"]
        assert outcome["abandoned"].endswith("step 1 of 1")
        assert [r.method for r in api.writes] == ["POST"]


async def test_a_call_cancelled_while_its_intent_is_written_sends_nothing_and_has_its_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = AuditLog.intent

    def cancelled_meanwhile(log: AuditLog, entry: Mapping[str, Any]) -> str:
        anyio.from_thread.run_sync(scope.cancel)
        return write(log, entry)

    monkeypatch.setattr(AuditLog, "intent", cancelled_meanwhile)
    async with piped(tmp_path) as (api, app):
        serve_guest(api)
        with anyio.CancelScope() as scope:
            await call(app, STOP)
        assert scope.cancelled_caught
        intent, outcome = records(tmp_path)
        assert (intent["steps"][0]["method"], outcome["state"]) == ("POST", "not tried")
        assert outcome["abandoned"] == "CancelledError: waiting ended in step 0 of 1"
        assert api.writes == []


async def test_a_call_cancelled_when_all_is_done_has_its_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = carry_out._filled

    def cancelled_meanwhile(*args: Any) -> Any:
        scope.cancel()
        return fill(*args)

    monkeypatch.setattr(carry_out, "_filled", cancelled_meanwhile)
    async with piped(tmp_path) as (api, app):
        serve_guest(api)
        with anyio.CancelScope() as scope:
            await call(app, STOP)
        _, outcome = records(tmp_path)
        assert outcome["state"] == "ok"
        assert "abandoned" not in outcome
        assert len(api.writes) == 1


async def test_secrets_in_parameters_are_masked_in_the_record(tmp_path: Path) -> None:
    from proxmox_mcp import preview
    from proxmox_mcp.plan import ApiCall

    step = ApiCall("POST", ("nodes", "pve1", "lxc"), {"vmid": 205, "password": "hunter22", "cipassword": "hunter22"})
    assert "hunter22" not in str(preview.record(step))
    assert "hunter22" not in preview.step_line(step)


class Shell(Destroying):
    command: str | None = None
    node: str | None = None


def shell(name: str, *, risk: Risk) -> Tool:
    async def refuses(args: Shell, call: Call) -> Plan:
        raise Refused("that is another machine\nwith more words", hint="name the right one")

    return Tool(name, "Shell", "Runs.", "shell", risk, Shell, refuses, risk is Risk.DATA_LOSS)


@pytest.mark.parametrize(
    ("name", "risk", "given", "which"),
    [
        ("proxmox_vm_exec", Risk.DATA_LOSS, {"command": "id", "confirm": True}, "vm"),
        ("proxmox_vm_read_file", Risk.READ, {}, "vm"),
        ("proxmox_host_exec", Risk.DATA_LOSS, {"command": "mysql --password=geheim", "confirm": True}, "host"),
        ("proxmox_host_exec", Risk.DATA_LOSS, {"command": "echo root:geheim | chpasswd"}, "host"),
        ("proxmox_vm_power", Risk.DATA_LOSS, {"node": "pve1"}, "api"),
        ("proxmox_vm_power", Risk.DATA_LOSS, {"node": "pve1", "dry_run": True}, ""),
        ("proxmox_host_exec", Risk.DATA_LOSS, {"command": "id", "dry_run": True}, ""),
        ("proxmox_list_vms", Risk.READ, {}, ""),
    ],
)
async def test_an_early_refusal_stands_in_the_log_of_what_was_meant(
    tmp_path: Path, name: str, risk: Risk, given: dict[str, Any], which: str
) -> None:
    async with piped(tmp_path) as (_, app):
        with pytest.raises(Refused):
            await pipeline.run(shell(name, risk=risk), {**given, "reason": "look"}, app, FakePerson())
        found = {log: records(tmp_path, log) for log in ("api", "host", "vm")}
        assert {log for log, entries in found.items() if entries} == ({which} if which else set())
        if which:
            (entry,) = found[which]
            assert entry["event"] == "refused: Nothing was changed: that is another machine"
            assert (entry["tool"], entry["risk"], entry["reason"]) == (name, str(risk), "look")
            assert entry["flags"] == (["confirm"] if given.get("confirm") else [])
            masked = {"mysql --password=geheim": "mysql --password=***", "echo root:geheim | chpasswd": "echo *** | chpasswd"}
            shown = {name: masked.get(value, value) for name, value in given.items()}
            assert entry["arguments"] == {**shown, "reason": "look"}


class Looking(Reading):
    node: str | None = None


async def test_a_refused_look_at_a_guest_has_no_flags(tmp_path: Path) -> None:
    async def refuses(args: Looking, call: Call) -> Plan:
        raise InvalidArgument("alias", "not in vm_ssh_hosts.json")

    async with piped(tmp_path) as (_, app):
        tool = Tool("proxmox_vm_read_file", "Read", "Reads.", "shell", Risk.READ, Looking, refuses, False)
        with pytest.raises(InvalidArgument):
            await pipeline.run(tool, {"node": "pve1"}, app, FakePerson())
        (entry,) = records(tmp_path, "vm")
        assert (entry["flags"], entry["arguments"]) == ([], {"node": "pve1"})


async def test_what_is_noted_of_a_plan_that_was_refused(tmp_path: Path) -> None:
    def planned(*, obstacles: tuple[str, ...]) -> Any:
        async def plans(args: Destroying, call: Call) -> Plan:
            step = ApiCall("PUT", ("nodes", "pve1", "lxc", 205, "config"), {"password": "geheim22"})
            return Plan("change it", (step,), Risk.DATA_LOSS, ("guest 205", "node pve1"), obstacles=obstacles)

        return Tool("plans", "Plans", "Plans.", "guests", Risk.DATA_LOSS, Destroying, plans, True)

    async with piped(tmp_path, approval="off") as (_, app):
        for arguments, obstacles in (({"confirm": True, "reason": "because"}, ()), ({**BOTH_FLAGS}, ("password=geheim22 is known",))):
            with pytest.raises(Refused):
                await pipeline.run(planned(obstacles=obstacles), arguments, app, FakePerson())
        first, second = records(tmp_path)
        assert first == {
            "event": "refused: Nothing was changed: i_understand_data_loss=true missing. It would do:",
            "tool": "plans",
            "risk": "data loss",
            "approved": "",
            "reason": "because",
            "flags": ["confirm"],
            "summary": "change it",
            "targets": ["guest 205", "node pve1"],
            "steps": [{"method": "PUT", "path": "/nodes/pve1/lxc/205/config", "params": {"password": "***"}}],
        }
        assert (second["obstacles"], second["reason"]) == (["password=*** is known"], "")


def test_a_plan_belongs_to_the_log_of_its_first_step() -> None:
    call, node, guest = (
        ApiCall("POST", ("x",)),
        HostCommand(HostTarget(node="pve1"), ("true",)),
        HostCommand(HostTarget(alias="web"), ("true",)),
    )
    for steps, which in (((), "api"), ((call, node), "api"), ((node, call), "host"), ((guest, node), "vm")):
        assert pipeline.log_of(Plan("do it", steps, Risk.CHANGE, ())) == which


class Listing(Reading):
    fields: list[str] | None = None
    limit: int | None = None
    cursor: str | None = None
    vmid: int | None = None
    upid: str | None = None
    reason: str | None = None


def test_how_a_caller_wants_to_see_the_answer() -> None:
    tool = Tool("proxmox_list_vms", "List", "Lists.", "guests", Risk.READ, Listing, POWER.function, False)
    wanted = Listing(response_format="json", fields=["vmid"], limit=5, cursor="abc")
    assert pipeline.view_of(tool, wanted) == View("proxmox_list_vms", json=True, fields=["vmid"], limit=5, cursor="abc")
    assert pipeline.view_of(tool, Listing(fields=[])) == View("proxmox_list_vms")
    assert pipeline.view_of(tool, Destroying()) == View("proxmox_list_vms")


@pytest.mark.parametrize(
    ("name", "arguments", "changes", "said"),
    [
        ("proxmox_list_vms", {}, {"limit_reads": True}, True),
        ("proxmox_health_overview", {}, {"limit_reads": True}, True),
        ("proxmox_list_vms", {"vmid": 101}, {"limit_reads": True}, False),
        ("proxmox_list_tasks", {"upid": UPID}, {"limit_reads": True}, False),
        ("proxmox_list_vms", {}, {}, False),
        ("proxmox_vm_list_hosts", {}, {"limit_reads": True}, False),  # asks nothing of the cluster
    ],
)
async def test_an_answer_at_large_says_that_a_limit_leaves_something_out(
    tmp_path: Path, name: str, arguments: dict[str, Any], changes: dict[str, Any], said: bool
) -> None:
    async def looks(args: Listing | Looking, call: Call) -> Answer:
        return Answer("looked")

    model = Listing if "list" in name else Looking

    async with piped(tmp_path, allow_vmids=((100, 199),), **changes) as (_, app):
        found = await pipeline.run(Tool(name, "L", "Lists.", "guests", Risk.READ, model, looks, False), arguments, app, FakePerson())
        assert isinstance(found, pipeline.Result)
        assert ("only guests 100-199 are shown (PROXMOX_LIMIT_READS)" in found.text) is said


@pytest.mark.parametrize(
    ("name", "risk", "given", "which", "event"),
    [
        (
            "proxmox_vm_power",
            Risk.CHANGE,
            {"confirm": "yes", "node": "pve1"},
            "api",
            " confirm: must be true or false",
        ),
        (
            "proxmox_vm_power",
            Risk.CHANGE,
            {"node": ["a", {"password": "geheim22"}], "confirm": True},
            "api",
            " node: should be",
        ),
        ("proxmox_vm_exec", Risk.DATA_LOSS, {"command": "echo root:geheim22 | chpasswd", "vmid": 1}, "vm", " vmid: unknown argument"),
        (
            "proxmox_host_read_exec",
            Risk.READ,
            {"comand": "mysql --password=geheim22"},
            "host",
            " comand: unknown argument",
        ),
        ("proxmox_host_exec", Risk.DATA_LOSS, {"params": "[]"}, "host", "s: pass the arguments flat"),
        ("proxmox_vm_power", Risk.CHANGE, {"params": {"dry_run": True, "confirm": 1}}, "", ""),
        ("proxmox_vm_power", Risk.CHANGE, {"dry_run": True, "confirm": 1}, "", ""),
        ("proxmox_list_vms", Risk.READ, {"nodde": "pve1"}, "", ""),
    ],
)
async def test_arguments_that_cannot_be_read_are_a_recorded_refusal(
    tmp_path: Path, name: str, risk: Risk, given: dict[str, Any], which: str, event: str
) -> None:
    async with piped(tmp_path) as (_, app):
        with pytest.raises(InvalidArgument):
            await pipeline.run(shell(name, risk=risk), given, app, FakePerson())
        found = {log: records(tmp_path, log) for log in ("api", "host", "vm")}
        assert {log for log, entries in found.items() if entries} == ({which} if which else set())
        assert "geheim22" not in str(found)
        if which:
            (entry,) = found[which]
            assert entry["event"].startswith(f"refused: Invalid argument{event}")
            assert (entry["tool"], entry["risk"]) == (name, str(risk))
            assert entry["flags"] == (["confirm"] if given.get("confirm") is True else [])
            assert set(entry["arguments"]) == set(given)
            assert entry["reason"] == ("password=***" if "reason" in given else "")


async def test_arguments_beyond_all_measure_are_recorded_by_name(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(150):
        deep = [deep]
    async with piped(tmp_path) as (_, app):
        for given in ({"confirm": deep}, {"confirm": "x" * 300_000, "node\x1b[31m": 1}):
            with pytest.raises(InvalidArgument):
                await pipeline.run(shell("proxmox_vm_power", risk=Risk.CHANGE), given, app, FakePerson())
        first, second = records(tmp_path)
        assert str(first["arguments"]["confirm"]).count("[") == 151
        assert second["arguments"] == {"left out": "300036 characters; confirm, node"}


async def test_a_tool_is_told_who_calls_it_and_how_the_answer_is_wanted(tmp_path: Path) -> None:
    seen: list[Call] = []

    async def looks(args: Listing, call: Call) -> Answer:
        seen.append(call)
        return Answer("looked", record={"a": 1})

    async with piped(tmp_path) as (_, app):
        tool = Tool("proxmox_list_vms", "L", "Lists.", "guests", Risk.READ, Listing, looks, False)
        found = await pipeline.run(tool, {"reason": "look", "cursor": "abc", "response_format": "json"}, app, FakePerson())
        assert isinstance(found, pipeline.Result)
        assert json.loads(found.text)["a"] == 1
        assert (seen[0].stamp, seen[0].cursor) == (Stamp("proxmox_list_vms", reason="look"), "abc")


async def test_a_node_outside_the_limit_is_not_read(tmp_path: Path) -> None:
    async def looks(args: Looking, call: Call) -> Answer:
        return Answer("looked")

    tool = Tool("proxmox_get_node_status", "L", "Looks.", "nodes", Risk.READ, Looking, looks, False)
    async with piped(tmp_path, allow_nodes=("pve1",), limit_reads=True) as (_, app):
        with pytest.raises(InvalidArgument, match="node pve2 is outside PROXMOX_ALLOW_NODES"):
            await pipeline.run(tool, {"node": "pve2"}, app, FakePerson())
        assert isinstance(await pipeline.run(tool, {"node": "pve1"}, app, FakePerson()), pipeline.Result)


async def test_a_reading_tool_cannot_make_a_plan(tmp_path: Path) -> None:
    async def plans(args: Looking, call: Call) -> Plan:
        return Plan("do it", (ApiCall("POST", ("x",)),), Risk.CHANGE, ())

    async with piped(tmp_path) as (api, app):
        tool = Tool("proxmox_list_vms", "L", "Looks.", "guests", Risk.READ, Looking, plans, False)
        with pytest.raises(TypeError, match="proxmox_list_vms made a plan without the gates' arguments"):
            await pipeline.run(tool, {}, app, FakePerson())
        assert not api.writes


def planning(plan: Plan) -> Tool:
    async def plans(args: Destroying, call: Call) -> Plan:
        return plan

    return Tool("plans", "Plans", "Plans.", "guests", Risk.DATA_LOSS, Destroying, plans, True)


async def test_nothing_to_do_keeps_its_notes_and_doubts_and_an_obstacle_is_told(tmp_path: Path) -> None:
    async with piped(tmp_path) as (_, app):
        idle = Plan("start guest 101", (), Risk.CHANGE, (), notes=("it runs",), doubts=("its agent",))
        found = await pipeline.run(planning(idle), {"confirm": True}, app, FakePerson())
        assert isinstance(found, pipeline.Result)
        assert found.text == "Nothing to do: start guest 101\nnote: it runs\nnote: not checked: its agent"
        assert records(tmp_path) == []
        with pytest.raises(Refused, match="it would fail"):
            await pipeline.run(planning(replace(idle, obstacles=("it is locked",))), {"confirm": True}, app, FakePerson())


async def test_a_missing_flag_stays_the_reason_where_the_refusal_cannot_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where the directory should be")
    async with piped(tmp_path) as (_, app):
        with pytest.raises(Refused, match=r"confirm=true missing(.|\n)*could not be recorded"):
            await call(app, {"vmid": 101, "action": "shutdown"})


async def test_a_change_that_is_not_awaited_is_recorded_whole_and_told_as_started(tmp_path: Path) -> None:
    step = ApiCall("POST", ("nodes", "pve1", "qemu", 101, "status", "shutdown"))
    async with piped(tmp_path, approval="off") as (api, app):
        serve_guest(api, exitstatus=None)
        found = await pipeline.run(planning(Plan("stop it", (step,), Risk.DATA_LOSS, ("guest 101",))), BOTH_FLAGS, app, FakePerson())
        assert isinstance(found, pipeline.Result)
        assert found.text.startswith("Started, still running: stop it")
        assert "not at its end" not in found.text  # nobody wanted to wait
        intent, _ = records(tmp_path)
        assert {name: intent[name] for name in ("tool", "risk", "reason", "approved")} == {
            "tool": "plans",
            "risk": "data loss",
            "reason": "",
            "approved": "flags",
        }


async def test_long_names_of_arguments_that_are_left_out_are_cut(tmp_path: Path) -> None:
    async with piped(tmp_path) as (_, app):
        with pytest.raises(InvalidArgument):
            await pipeline.run(shell("proxmox_vm_power", risk=Risk.CHANGE), {"n" * 70: "x" * 300_000}, app, FakePerson())
        (entry,) = records(tmp_path)
        assert entry["arguments"]["left out"].endswith(f"; {'n' * 64}…(+6)")


@pytest.mark.parametrize("wrap", [dict, json.dumps], ids=["object", "text"])
async def test_wrapped_arguments_are_recorded_as_the_flat_ones_are(tmp_path: Path, wrap: Any) -> None:
    given = {"command": "echo root:geheim22 | chpasswd", "confirm": "yes", "reason": "look"}
    async with piped(tmp_path) as (_, app):
        with pytest.raises(InvalidArgument):
            await pipeline.run(shell("proxmox_host_exec", risk=Risk.DATA_LOSS), {"params": wrap(given)}, app, FakePerson())
        (entry,) = records(tmp_path, "host")
        assert entry["arguments"] == {**given, "command": "echo *** | chpasswd"}
        assert entry["reason"] == "look"


async def test_wrapped_text_that_cannot_be_read_keeps_no_password(tmp_path: Path) -> None:
    given = '{"command": "true", "command": "echo root:geheim22 | chpasswd"}'
    async with piped(tmp_path) as (_, app):
        with pytest.raises(InvalidArgument, match="flat"):
            await pipeline.run(shell("proxmox_host_exec", risk=Risk.DATA_LOSS), {"params": given}, app, FakePerson())
        (entry,) = records(tmp_path, "host")
        assert entry["arguments"] == {"params": given.replace("root:geheim22", "***")}
