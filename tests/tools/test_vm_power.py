"""proxmox_vm_power and proxmox_resize_vm: the right state first, nothing escalates by itself, pending told apart from in effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, Refused
from tests.served_api import Reply, Request
from tests.tools.changes import changing

pytestmark = pytest.mark.anyio
YES = {"confirm": True}


@pytest.mark.parametrize(
    ("vmid", "action", "state"),
    [
        (101, "start", "running"),
        (205, "start", "running"),
        (102, "stop", "stopped"),
        (206, "shutdown", "stopped"),
        (102, "shutdown", "stopped"),
    ],
)
async def test_a_guest_that_is_there_already_gets_no_request(vmid: int, action: str, state: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        text = await world.call("vm_power", vmid=vmid, action=action, **YES)
        assert text.startswith("Nothing to do, no request was sent: ")
        assert text.endswith(f"is {state} already.")
        assert not world.api.writes
        assert not world.log


@pytest.mark.parametrize(
    ("vmid", "path", "timeout"), [(101, "/nodes/pve1/qemu/101/status/shutdown", None), (205, "/nodes/pve1/lxc/205/status/shutdown", 20)]
)
async def test_g51_a_shutdown_that_never_ends_is_still_running_and_never_becomes_a_stop(
    vmid: int, path: str, timeout: int | None, tmp_path: Path
) -> None:
    async with changing(tmp_path, max_wait=0.3) as world:
        world.takes("POST", path, "qmshutdown", ends=False)
        text = await world.call("vm_power", vmid=vmid, action="shutdown", timeout=timeout, wait_seconds=20, **YES)
        assert text.startswith("Started, still running: shut down ")
        assert "UPID:pve1:" in text
        assert f"a hard power-off is a call of its own that a person should want: proxmox_vm_power vmid={vmid} action=stop" in text
        assert world.sent == [("POST", path, {} if timeout is None else {"timeout": "20"})]


async def test_g51_a_shutdown_that_fails_in_time_says_what_proxmox_said_and_offers_the_next_call(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        log = ["QEMU Guest Agent is not running - VM 101 qga command 'guest-ping' failed - got timeout"]
        world.takes("POST", "/nodes/pve1/qemu/101/status/shutdown", "qmshutdown", status="VM quit/powerdown failed - got timeout", log=log)
        found = await world.result("vm_power", vmid=101, action="shutdown", **YES)
        assert found.failed
        assert "VM quit/powerdown failed - got timeout" in found.text
        assert "action=stop" in found.text
        assert len(world.api.writes) == 1


async def test_a_guest_that_is_not_as_its_task_says_is_told(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/qemu/101/status/stop")
        text = await world.call("vm_power", vmid=101, action="stop", **YES)
        assert "note: when it was looked at afterwards it was running: look again with proxmox_get_vm_status vmid=101" in text
        world.takes("POST", "/nodes/pve1/qemu/101/status/stop", effect=world.power(101, "stopped"))
        assert "looked at" not in await world.call("vm_power", vmid=101, action="stop", **YES)


async def test_the_patience_of_a_shutdown_is_the_one_that_was_given(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        shown = await world.call("vm_power", vmid=101, action="shutdown", timeout=300, dry_run=True)
        assert "if the guest does not react in 300 s, the task fails" in shown
        assert "in time (60 s by default)" in await world.call("vm_power", vmid=101, action="shutdown", dry_run=True)


async def test_a_done_shutdown_says_nothing_of_stops(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/qemu/101/status/shutdown", effect=world.power(101, "stopped"))
        text = await world.call("vm_power", vmid=101, action="shutdown", **YES)
        assert text.startswith("Done: shut down VM 101 (web) on pve1\nstatus: stopped\n")
        assert "action=stop" not in text
        assert "undo: proxmox_vm_power vmid=101 action=start" in text


@pytest.mark.parametrize(("active", "version", "overruled"), [(True, "9.2.11", True), (False, "9.2.11", False), (True, "8.1.4", False)])
async def test_a_stop_ends_a_shutdown_that_hangs_where_proxmox_can(active: bool, version: str, overruled: bool, tmp_path: Path) -> None:
    async with changing(tmp_path, version=version) as world:
        if active:
            world.api.world.task("pve1", "qmshutdown", "101", age=90, took=None, token="mcp")
        world.takes("POST", "/nodes/pve1/qemu/101/status/stop", effect=world.power(101, "stopped"))
        await world.call("vm_power", vmid=101, action="stop", **YES)
        assert world.sent[0][2] == ({"overrule-shutdown": "1"} if overruled else {})


async def test_a_paused_vm_is_not_shut_down_or_rebooted_but_can_be_powered_off(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        guest = world.api.world.guests[101]
        current = {"vmid": 101, "name": "web", "status": "running", "qmpstatus": "paused", "ha": {"managed": 0}}
        world.api.on("GET", "/nodes/pve1/qemu/101/status/current", current)
        assert guest.running
        for action in ("shutdown", "reboot", "start"):
            assert await world.obstacles("vm_power", vmid=101, action=action) == [
                "VM 101 (web) is paused: resume it first, or power it off with action=stop"
            ]
        assert await world.obstacles("vm_power", vmid=101, action="stop") == []


@pytest.mark.parametrize("vmid", [900, 901])
async def test_a_template_cannot_be_started(vmid: int, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        assert any("templates cannot be started" in line for line in await world.obstacles("vm_power", vmid=vmid, action="start"))


@pytest.mark.parametrize("vmid", [102, 206])
async def test_a_stopped_guest_is_not_rebooted(vmid: int, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        assert any(line.endswith("is not running") for line in await world.obstacles("vm_power", vmid=vmid, action="reboot"))


@pytest.mark.parametrize(("vmid", "kind"), [(101, "qmshutdown"), (205, "vzdump")])
async def test_g43_a_lock_is_named_with_the_task_that_holds_it(vmid: int, kind: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.guests[vmid].lock = "backup"
        task = world.api.world.task("pve1", kind, str(vmid), age=60, took=None)
        (line,) = await world.obstacles("vm_power", vmid=vmid, action="shutdown")
        assert "is busy: it is locked (backup)" in line
        assert task.upid in line
        assert "unlock" not in line


async def test_g43_a_lock_that_comes_between_is_busy_with_the_task_and_nothing_is_repeated(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        task = world.api.world.task("pve1", "vzdump", "101", age=60, took=None)
        locked = "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout"
        world.api.on("POST", "/nodes/pve1/qemu/101/status/shutdown", Reply(500, locked, message=locked))
        found = await world.result("vm_power", vmid=101, action="shutdown", **YES)
        assert found.failed
        assert locked in found.text
        assert task.upid in found.text
        assert len(world.api.writes) == 1


async def test_a_vm_suspended_to_disk_can_be_started(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.guests[102].lock = "suspended"
        assert await world.obstacles("vm_power", vmid=102, action="start") == []
        assert await world.obstacles("snapshot", vmid=102, action="create", snapname="s1") != []


async def test_a_stopped_vm_in_the_middle_of_its_backup_can_be_started(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(102, lock="backup")
        current = {"vmid": 102, "name": "db", "status": "running", "qmpstatus": "prelaunch", "ha": {"managed": 0}}
        world.api.on("GET", "/nodes/pve1/qemu/102/status/current", current)
        assert await world.obstacles("vm_power", vmid=102, action="start") == []


@pytest.mark.parametrize(("vmid", "kind", "action", "after"), [(102, "qemu", "start", "running"), (205, "lxc", "stop", "stopped")])
async def test_of_an_ha_managed_guest_the_guest_is_waited_for_not_the_task(
    vmid: int, kind: str, action: str, after: str, tmp_path: Path
) -> None:
    async with changing(tmp_path, max_wait=0.3) as world:
        guest = world.api.world.guests[vmid]
        guest.ha = "stopped" if action == "start" else "started"
        path = f"/nodes/pve1/{kind}/{vmid}/status/{action}"
        world.takes("POST", path, "hastart" if action == "start" else "hastop")
        text = await world.call("vm_power", vmid=vmid, action=action, wait_seconds=1, **YES)
        assert text.startswith("Started, still running: ")
        assert f"keeps the guest {after} from then on" in text
        world.takes("POST", path, "hastart", effect=world.power(vmid, after))
        text = await world.call("vm_power", vmid=vmid, action=action, wait_seconds=1, **YES)
        assert text.startswith("Done: ")
        assert f"status: {after}" in text


async def test_g26_a_guest_on_another_node_is_not_touched_through_the_one_that_was_named(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for arguments in ({"vmid": 103, "node": "pve1"}, {"vmid": 101, "vm_type": "lxc"}):
            with pytest.raises(Refused, match=r"guest 103 is on node pve2|guest 101 is of type qemu"):
                await world.result("vm_power", **arguments, action="shutdown", **YES)
        with pytest.raises(InvalidArgument, match="timeout is for shutdown and reboot"):
            await world.result("vm_power", vmid=102, action="start", timeout=5, **YES)
        assert not world.api.writes


async def test_a_cut_connection_is_unknown_and_is_not_repeated(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.on("POST", "/nodes/pve1/qemu/102/status/start", Reply(drop=True))
        found = await world.result("vm_power", vmid=102, action="start", **YES)
        assert found.failed
        assert found.text.startswith("Outcome unknown: start VM 102 (db) on pve1")
        assert "do not repeat it" in found.text
        assert len(world.api.writes) == 1
        assert world.log[-1]["state"] == "unknown"


@pytest.mark.parametrize("action", ["start", "stop", "shutdown"])
async def test_an_ha_service_in_error_does_nothing_so_nothing_is_asked_of_it(action: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        guest = world.api.world.guests[101 if action != "start" else 102]
        guest.ha = "error"
        (line,) = await world.obstacles("vm_power", vmid=guest.vmid, action=action)
        assert line.startswith("its HA service is in state error: the HA manager does nothing before that is cleared")
        if action != "start":
            assert await world.obstacles("vm_power", vmid=guest.vmid, action="reboot") == []


async def test_a_vm_that_stands_still_is_not_simply_running(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.on("GET", "/nodes/pve1/qemu/101/status/current", {"status": "running", "qmpstatus": "io-error", "name": "web"})
        text = await world.call("vm_power", vmid=101, action="start", confirm=True)
        assert text.endswith("VM 101 (web) on pve1 is running (QEMU: io-error) already.")


# --- size


@pytest.mark.parametrize(
    ("memory", "told"), [("4096", "4096 MiB"), ("current=4096", "4096 MiB"), (4096, "4096 MiB"), (None, "512 MiB"), ("odd", "odd MiB")]
)
async def test_g24_memory_is_read_as_text_number_and_property_string(memory: Any, told: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(101, memory=memory)
        world.api.on("PUT", "/nodes/pve1/qemu/101/config", None)
        shown = await world.call("resize_vm", vmid=101, memory_mb=8192, dry_run=True)
        assert f"from {told} of memory to 8192 MiB of memory" in shown
        await world.call("resize_vm", vmid=101, memory_mb=8192, **YES)
        assert world.sent[0][2]["memory"] == "8192"


async def test_pending_is_told_apart_from_hot_plugged(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.on("PUT", "/nodes/pve1/qemu/101/config", None)
        rows = [{"key": "memory", "value": "2048", "pending": "4096"}, {"key": "cores", "value": 4}]
        world.api.on("GET", "/nodes/pve1/qemu/101/pending", rows)
        text = await world.call("resize_vm", vmid=101, memory_mb=4096, cores=4, **YES)
        assert "memory: 4096 MiB, pending; 2048 MiB until then" in text
        assert "cores: 4, in effect" in text
        assert "a reboot from inside is not enough" in text


async def test_a_stopped_vm_has_it_from_its_next_start_and_a_container_at_once(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for kind, vmid, words in (("qemu", 102, "cores: 3, from the next start on"), ("lxc", 205, "cores: 3, in effect")):
            world.api.on("PUT", f"/nodes/pve1/{kind}/{vmid}/config", lambda request: world.config(int(request.path.split("/")[4]), cores=3))
            assert words in await world.call("resize_vm", vmid=vmid, cores=3, **YES)


@pytest.mark.parametrize("vmid", [101, 205])
async def test_the_same_size_is_no_request(vmid: int, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        text = await world.call("resize_vm", vmid=vmid, memory_mb=2048, cores=2, **YES)
        assert "has 2048 MiB of memory and 2 cores already" in text
        assert not world.api.writes


async def test_sockets_multiply_and_a_balloon_above_the_memory_is_refused(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(101, sockets=2, balloon=3072, hotplug="disk,cpu,memory")
        shown = await world.call("resize_vm", vmid=101, cores=10, dry_run=True)
        assert "note: 2 sockets x 10 cores = 20 vCPUs" in shown
        assert "pve1 has 16 CPUs: a VM with 20 vCPUs does not start there" in shown
        # cores are never hot-plugged, vcpus are
        assert "hot-plugging is on" not in shown
        assert "note: cores are not hot-plugged: the change waits for a stop and start" in shown
        shown = await world.call("resize_vm", vmid=101, memory_mb=4096, dry_run=True)
        assert "hot-plugging is on" in shown
        assert "waits for a stop and start" not in shown
        assert await world.obstacles("resize_vm", vmid=101, memory_mb=2000) == ["its balloon minimum is 3072 MiB, more than 2000 MiB"]


async def test_vcpus_that_are_set_apart_decide_how_many_run(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(101, sockets=2, cores=4, vcpus=4)
        shown = await world.call("resize_vm", vmid=101, cores=8, dry_run=True)
        assert "note: vcpus=4 in its configuration: so many of the 16 are plugged in, more cores alone do not change that" in shown
        shown = await world.call("resize_vm", vmid=101, cores=1, dry_run=True)
        assert "note: vcpus=4 in its configuration is more than 2: with that it does not start" in shown
        assert "vcpus" not in await world.call("resize_vm", vmid=101, memory_mb=4096, dry_run=True)


async def test_a_configuration_that_changed_meanwhile_is_proxmoxs_no(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        stale = "checksum mismatch (file change by other user?)"
        world.api.on("PUT", "/nodes/pve1/qemu/101/config", Reply(500, stale, message=stale))
        found = await world.result("resize_vm", vmid=101, memory_mb=4096, **YES)
        assert found.failed
        assert stale in found.text


async def test_hot_plugging_that_fails_says_that_the_change_is_kept(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(101, hotplug="memory")
        errors = {"memory": "hotplug problem - a used vm running with NUMA disabled doesn't support memory hotplug"}

        def answer(_: Request) -> Reply:
            return Reply(400, errors=errors, message="Parameter verification failed.")

        world.api.on("PUT", "/nodes/pve1/qemu/101/config", answer)
        found = await world.result("resize_vm", vmid=101, memory_mb=4096, **YES)
        assert found.failed
        assert "hotplug problem" in found.text
        assert "the change is kept all the same" in found.text
        assert "memory: 2048 MiB, in effect" in found.text


async def test_nothing_to_change_is_refused_before_any_request(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for arguments in ({}, {"memory_mb": 8}, {"cores": 0}, {"cores": 257}):
            with pytest.raises(InvalidArgument):
                await world.result("resize_vm", vmid=101, **arguments, **YES)
        assert not world.api.requests
