from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from proxmox_mcp.config import Settings
from proxmox_mcp.errors import Busy, NotFound
from proxmox_mcp.http_client import HttpClient
from proxmox_mcp.plan import ApiCall, GuestState
from proxmox_mcp.tasks import Pace, TaskVerdict, Upid, explain, guest_result, log_tail, wait, wait_guest, who_holds_the_lock
from tests.pve_schema import assert_valid
from tests.served_api import Reply, Request, ServedApi, client

UPID = Upid.parse("UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:qmstart:101:ops@pve!mcp:")
TASK = f"/nodes/pve2/tasks/{UPID}"
RUNNING = {"status": "running", "pid": 77, "type": "qmstart", "id": "101"}
OK = {"status": "stopped", "exitstatus": "OK"}


@dataclass
class Watch:
    """A clock that moves only while somebody sleeps."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def pace(self, **changes: Any) -> Pace:
        return Pace(clock=lambda: self.now, sleep=self.sleep, **changes)


def in_turn(*answers: Any) -> Callable[[Request], Any]:
    """One answer after the other, the last one for ever."""
    left: Iterator[Any] = iter(answers[:-1])
    return lambda _: next(left, answers[-1])


async def nothing(elapsed: float, line: str) -> None:
    pass


@pytest.mark.anyio
async def test_g39_polling_goes_on_while_there_is_no_exit_status(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", in_turn(RUNNING, RUNNING, OK))
    watch = Watch()
    async with client(served) as http:
        assert await wait(http, UPID, 60, pace=watch.pace()) == TaskVerdict("ok", "OK")
    assert served.paths == [f"GET {TASK}/status"] * 3
    assert_valid(served.requests)


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", [0, 3, 20])
async def test_g39_g51_at_the_deadline_it_is_still_running(served: ServedApi, seconds: float) -> None:
    served.on("GET", f"{TASK}/status", RUNNING)
    watch = Watch()
    async with client(served) as http:
        assert await wait(http, UPID, seconds, pace=watch.pace()) == TaskVerdict("running")
    assert watch.now == pytest.approx(1000 + seconds)
    assert served.requests
    assert served.writes == []


@pytest.mark.anyio
async def test_it_looks_often_at_first_and_then_every_two_seconds(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", RUNNING)
    watch = Watch()
    async with client(served) as http:
        await wait(http, UPID, 30, pace=watch.pace())
    assert watch.slept[0] == 0.25
    assert watch.slept[:-1] == sorted(watch.slept[:-1])
    assert max(watch.slept) == 2.0
    assert len(served.requests) < 22


@pytest.mark.anyio
async def test_g38_warnings_are_done(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", {"status": "stopped", "exitstatus": "WARNINGS: 1"})
    async with client(served) as http:
        assert await wait(http, UPID, 60, pace=Watch().pace()) == TaskVerdict("warnings", "WARNINGS: 1", 1)


@pytest.mark.anyio
@pytest.mark.parametrize("trouble", [Reply(595, "No route to host"), Reply(596, "Connection timed out"), Reply(drop=True), Reply(cut=5)])
async def test_a_network_that_stumbles_does_not_end_the_wait(served: ServedApi, trouble: Reply) -> None:
    answers = iter((RUNNING, trouble, RUNNING, trouble, trouble, OK, OK))
    asked = 0

    def status(_: Request) -> Any:
        nonlocal asked
        asked += 1
        return next(answers)

    served.on("GET", f"{TASK}/status", status)
    async with client(served) as http:
        assert (await wait(http, UPID, 60, pace=Watch().pace())).state == "ok"
    assert asked == 6  # a read that is lost on the way may be sent twice, which is not a look of ours


@pytest.mark.anyio
async def test_a_network_that_is_gone_ends_as_unknown_never_as_failed(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", in_turn(RUNNING, Reply(595, "No route to host")))
    async with client(served) as http:
        found = await wait(http, UPID, 600, pace=Watch().pace())
    assert found.state == "unknown"
    assert "could not be read" in found.text
    assert len(served.requests) == 6


@pytest.mark.anyio
async def test_a_deadline_amid_trouble_is_unknown_too(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", Reply(595, "No route to host"))
    async with client(served) as http:
        assert (await wait(http, UPID, 0, pace=Watch().pace())).state == "unknown"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "refusal",
    [
        Reply(403, "Permission check failed (/nodes/pve2, Sys.Audit)"),
        Reply(400, errors={"upid": "no such task"}, message="Parameter verification failed."),
        Reply(501, "Method 'GET /x' not implemented"),
    ],
)
async def test_what_will_not_change_is_not_asked_again(served: ServedApi, refusal: Reply) -> None:
    served.on("GET", f"{TASK}/status", refusal)
    async with client(served) as http:
        assert (await wait(http, UPID, 60, pace=Watch().pace())).state == "unknown"
    assert len(served.requests) == 1


@pytest.mark.anyio
async def test_the_moment_between_end_and_last_log_line_is_not_a_verdict(served: ServedApi) -> None:
    killed = {"status": "stopped", "exitstatus": "unexpected status"}
    served.on("GET", f"{TASK}/status", in_turn(RUNNING, killed, OK))
    async with client(served) as http:
        assert (await wait(http, UPID, 60, pace=Watch().pace())).state == "ok"
        served.on("GET", f"{TASK}/status", killed)
        assert await wait(http, UPID, 60, pace=Watch().pace()) == TaskVerdict("unknown", "unexpected status")


@pytest.mark.anyio
async def test_progress_tells_the_last_line_and_asks_only_for_new_ones(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", in_turn(RUNNING, RUNNING, RUNNING, RUNNING, OK))
    logs: Sequence[list[str]] = (["no content"], ["a", "b"], ["a", "b"], [f"line {n}\x1b[0m" for n in range(1, 401)])
    turn = iter(logs)
    now: list[str] = []

    def log(request: Request) -> Reply:
        start, limit = int(request.params["start"]), int(request.params["limit"])
        if limit > 1:
            now[:] = next(turn)
        rows = [{"n": n, "t": line} for n, line in enumerate(now, 1)]
        return Reply(data=rows[start : start + limit], total=len(rows))

    served.on("GET", f"{TASK}/log", log)
    told: list[tuple[float, str]] = []

    async def progress(elapsed: float, line: str) -> None:
        told.append((elapsed, line))

    async with client(served) as http:
        await wait(http, UPID, 60, progress=progress, pace=Watch().pace())
    assert [line for _, line in told] == ["", "b", "b", "line 400"]
    assert [elapsed for elapsed, _ in told] == sorted(elapsed for elapsed, _ in told)
    assert_valid(served.requests)


@pytest.mark.anyio
async def test_a_log_that_cannot_be_read_does_not_hinder_the_wait(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", in_turn(RUNNING, OK))
    served.on("GET", f"{TASK}/log", Reply(500, "disk full"))
    async with client(served) as http:
        assert (await wait(http, UPID, 60, progress=nothing, pace=Watch().pace())).state == "ok"


@pytest.mark.anyio
async def test_a_cancelled_wait_ends_at_once_and_changes_nothing(served: ServedApi) -> None:
    asked = anyio.Event()
    served.on("GET", f"{TASK}/status", RUNNING)

    async def sleep(_: float) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with client(served) as http, anyio.create_task_group() as group:
        group.start_soon(lambda: wait(http, UPID, 3600, pace=Pace(sleep=sleep)))
        await asked.wait()
        group.cancel_scope.cancel()
    assert served.writes == []


# --- guests under high availability


def current(status: str, **more: Any) -> dict[str, Any]:
    return {"vmid": 101, "status": status, "ha": {"managed": 1, "state": "started"}, **more}


STATE = GuestState("pve1", "qemu", 101, "running")


@pytest.mark.anyio
async def test_a_guest_is_awaited_until_it_has_the_status(served: ServedApi) -> None:
    served.on("GET", "/nodes/pve1/qemu/101/status/current", in_turn(current("stopped"), current("stopped"), current("running")))
    async with client(served) as http:
        assert (await wait_guest(http, STATE, 60, pace=Watch().pace())).state == "ok"
    assert_valid(served.requests)


@pytest.mark.anyio
async def test_a_guest_that_the_ha_manager_moved_is_found_again(served: ServedApi) -> None:
    gone = Reply(500, "Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist")
    served.on("GET", "/nodes/pve1/qemu/101/status/current", in_turn(current("stopped"), gone))
    served.on("GET", "/cluster/resources", [{"vmid": "101", "node": "pve3", "type": "qemu", "status": "stopped"}])
    served.on("GET", "/nodes/pve3/qemu/101/status/current", in_turn(current("stopped"), current("running")))
    async with client(served) as http:
        assert (await wait_guest(http, STATE, 60, pace=Watch().pace())).state == "ok"


@pytest.mark.anyio
async def test_a_guest_that_does_not_get_there_is_told_as_it_is(served: ServedApi) -> None:
    served.on("GET", "/nodes/pve1/qemu/101/status/current", current("stopped", ha={"managed": 1, "state": "error"}))
    told: list[str] = []

    async def progress(elapsed: float, line: str) -> None:
        told.append(line)

    async with client(served) as http:
        found = await wait_guest(http, STATE, 10, progress=progress, pace=Watch().pace())
    assert found == TaskVerdict("running", "guest 101 is still stopped, HA state error")
    assert set(told) == {"guest 101 is still stopped, HA state error"}


@pytest.mark.anyio
async def test_a_guest_that_is_gone_is_unknown(served: ServedApi) -> None:
    served.on(
        "GET", "/nodes/pve1/qemu/101/status/current", Reply(500, "Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist")
    )
    served.on("GET", "/cluster/resources", [])
    async with client(served) as http:
        assert (await wait_guest(http, STATE, 10, pace=Watch().pace())).state == "unknown"


STEP = ApiCall("POST", ("nodes", "pve1", "qemu", 101, "status", "start"), wait=STATE)


@pytest.mark.anyio
async def test_a_filed_request_is_not_yet_a_started_guest(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", OK)
    served.on("GET", "/nodes/pve1/qemu/101/status/current", in_turn(current("stopped"), current("running")))
    async with client(served) as http:
        result = await guest_result(http, STEP, UPID, 60, nothing, pace=Watch().pace())
        served.on("GET", "/nodes/pve1/qemu/101/status/current", current("stopped"))
        late = await guest_result(http, STEP, UPID, 5, nothing, pace=Watch().pace())
    assert (result.state, result.upid) == ("ok", str(UPID))
    assert late.state == "running"
    assert "still stopped" in late.text


@pytest.mark.anyio
async def test_a_filed_request_that_fails_is_explained(served: ServedApi) -> None:
    served.on("GET", f"{TASK}/status", {"status": "stopped", "exitstatus": "command 'ha-manager' failed: exit code 255"})
    served.on("GET", f"{TASK}/log", Reply(data=[{"n": 1, "t": "unable to read crm status"}], total=1))
    async with client(served) as http:
        result = await guest_result(http, STEP, UPID, 60, nothing, pace=Watch().pace())
    assert result.state == "failed"
    assert "unable to read crm status" in result.text


# --- locks


@pytest.mark.anyio
async def test_g43_the_running_task_of_a_locked_guest_is_named(served: ServedApi) -> None:
    item = {"upid": str(UPID), "type": "vzdump", "id": "101", "status": "RUNNING", "user": "ops@pve!mcp"}
    served.on("GET", "/nodes/pve1/tasks", in_turn([item], []))
    path = ("nodes", "pve1", "qemu", 101, "status", "start")
    async with client(served) as http:
        named = await who_holds_the_lock(http, path, Busy("busy", status=500))
        unseen = await who_holds_the_lock(http, path, Busy("busy", status=500))
        other = await who_holds_the_lock(http, path, NotFound("gone", status=500))
        no_guest = await who_holds_the_lock(http, ("storage",), Busy("busy", status=500))
    assert named == f"Running now: vzdump {UPID}"
    assert unseen == "No running task of guest 101 is visible to this token."
    assert other == no_guest == ""
    assert [request.params for request in served.requests] == [{"source": "active", "vmid": "101"}] * 2
    assert_valid(served.requests)


# --- the tasks of an independent fake


@pytest.mark.anyio
async def test_real_tasks_of_fakepve_end_and_tell_why(fakepve: Any, fakepve_settings: Settings) -> None:
    fakepve.add_vm(101, "web", status="stopped")
    http = HttpClient(fakepve_settings)
    node = next(iter(fakepve.nodes))
    start: tuple[str | int, ...] = ("nodes", node, "qemu", 101, "status", "start")
    try:
        first = Upid.parse(await http.send("POST", start, {}))
        done = await wait(http, first, 20, progress=nothing)
        again = Upid.parse(await http.send("POST", start, {}))
        failed = await wait(http, again, 20)
        told = await explain(http, again, failed)
        log = await log_tail(http, first, 10)
    finally:
        await http.close()
    assert (first.node, first.type, first.id, first.token) == (node, "qmstart", "101", "mcp")
    assert done.state == "ok"
    assert failed.state == "failed"
    assert "already running" in told
    assert log.lines[-1] == "TASK OK"
