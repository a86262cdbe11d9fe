"""How is it: problems first, few tokens, a budget of time, and nothing that did not answer is taken for well."""

from __future__ import annotations

import time
from typing import Any

import pytest

from proxmox_mcp.errors import ApiError, AuthenticationError, ConnectionFailed
from tests.cluster import AUDITOR, NO_RIGHTS, ONE_GUEST, served_cluster
from tests.pve_schema import assert_valid
from tests.served_api import Reply, ServedApi
from tests.tools.asking import ask, ask_json
from tests.tools.test_nodes import G20
from tests.tools.test_storage import G27
from tests.tools.test_vms import G22
from tests.tools.test_zfs import G54

pytestmark = pytest.mark.anyio
DAY = 86_400


def parts(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith(("- ", "note: ")))


def serve(api: ServedApi, **answers: Any) -> None:
    """A node where all is well, and what a test changes in it."""
    api.on("GET", "/nodes", answers.get("nodes", [{"node": "pve1", "status": "online", "cpu": 0.1, "maxcpu": 4, "mem": 1, "maxmem": 4}]))
    api.on(
        "GET",
        "/cluster/resources",
        lambda request: answers.get("guests", []) if request.params["type"] == "vm" else answers.get("last_known", []),
    )
    api.on("GET", "/cluster/status", answers.get("status", [{"type": "node", "name": "pve1", "online": 1}]))
    api.on("GET", "/cluster/backup", answers.get("jobs", []))
    api.on("GET", "/cluster/backup-info/not-backed-up", [])
    api.on("GET", "/cluster/jobs/schedule-analyze", lambda request: [{"timestamp": 1000 + DAY * n} for n in range(10)])
    api.on("GET", "/access/permissions", answers.get("permissions", {"/": {"Sys.Audit": 1, "VM.Audit": 1, "Datastore.Allocate": 1}}))
    api.on("GET", "/storage", answers.get("storage", []))
    api.on("GET", "/nodes/{node}/storage", answers.get("storages", []))
    api.on(
        "GET",
        "/nodes/{node}/disks/zfs",
        [{"name": "tank", "size": 10, "alloc": 1, "health": answers["pool"]["state"]}] if "pool" in answers else [],
    )
    api.on("GET", "/nodes/{node}/disks/zfs/tank", answers.get("pool"))
    api.on("GET", "/nodes/{node}/disks/list", answers.get("disks", []))
    api.on("GET", "/nodes/{node}/tasks", Reply(data=answers.get("tasks", []), total=len(answers.get("tasks", []))))


async def test_all_is_well() -> None:
    with served_cluster(guests=20) as api:
        text = await ask(api, "health_overview")
        assert_valid(api.requests)
    assert text.startswith("health of the cluster: no problem found\nnodes: 3 of 3 online (pve1 cpu 7% mem 38%,")
    said = parts(text)
    assert said["quorum"] == "yes, cluster lab of 3 nodes"
    assert said["guests"] == "18: 14 running, 4 stopped; 2 templates"
    assert said["zfs_pools"] == "4, all healthy"
    assert said["disks"] == "12, 12 ok"
    assert said["tasks"] == "0 failed in the last day"
    assert said["backups"] == "18 guests with a recent one, 0 without; templates not counted"
    assert "note:" not in text


async def test_every_trouble_is_found_and_stands_first() -> None:
    with served_cluster(guests=30, troubles=True) as api:
        found = await ask_json(api, "health_overview")
    assert found["title"] == "health of the cluster: 8 problems"
    assert found["problems"] == [
        "ZFS pool tank on pve3: state DEGRADED; /dev/sdb FAULTED, read 3, write 12, too many errors",
        "disk /dev/sdb on pve1 (WDC_WD40EFRX-68N32N0): SMART says FAILED!",
        "storage local on pve1: 93% full (89.3G of 96.0G)",
        "storage local on pve2: 93% full (89.3G of 96.0G)",
        "storage local on pve3: 93% full (89.3G of 96.0G)",
        "storage usb on pve1: enabled but not active",
        "3 guests without a recent good backup: 109 build-1 (last 20d1h ago), 119 build-2 (none), 129 build-3 (last 20d1h ago)",
        "1 task failed in the last day: vzdump 100 on pve1 (job errors)",
    ]


async def test_500_guests_a_dead_node_and_a_hanging_storage_stay_in_the_budget() -> None:
    quicktok = pytest.importorskip("quicktok")
    with served_cluster(nodes=3, guests=500, offline={"pve3"}, hanging_storage="nas", troubles=True) as api:
        begun = time.monotonic()
        text = await ask(api, "health_overview", timeout=30.0)
        took = time.monotonic() - begun
    assert took < 10
    assert len(quicktok.get_encoding("o200k_base").encode(text)) < 500
    assert text.startswith("health of the cluster: 5 problems, not everything answered\nproblems:\n- node pve3 is offline\n")
    assert "note: pve3: offline, so not asked about disks, pools, tasks and local storages" in text
    assert "note: storages of pve1, pve2: no answer in 3 s (often an unreachable network storage)" in text
    assert "note: backups of storage nas: no answer in 3 s (often an unreachable network storage)" in text
    said = parts(text)
    assert said["guests"] == "500: 267 running, 67 stopped, 166 unknown"
    assert said["storages"].startswith("6 last known, 1 unknown; fullest local on pve1 93%")
    assert said["backups"] == "92 guests with a recent one, 0 without; unknown for 408"
    assert "storage local on pve1: 93% full (89.3G of 96.0G), as last known" in text


async def test_g20_one_of_three_online_is_a_problem(served: ServedApi) -> None:
    serve(served, nodes=G20)
    text = await ask(served, "health_overview")
    assert "- node pve2 is offline\n- node pve3 is in an unknown state\n" in text
    assert parts(text)["nodes"] == "1 of 3 online (pve1 cpu 7% mem 25%)"
    assert not [path for path in served.paths if "/nodes/pve2/" in path]


async def test_guests_of_a_node_that_has_just_died_do_not_count_as_running(served: ServedApi) -> None:
    served_guests = [{**G22[0], "vmid": 101 + n, "node": f"pve{n}", "id": f"qemu/{101 + n}"} for n in (1, 2)]
    serve(served, nodes=G20, guests=served_guests)
    assert parts(await ask(served, "health_overview"))["guests"] == "2: 1 running, 0 stopped, 1 unknown"


async def test_g22_guests_without_numbers_are_counted(served: ServedApi) -> None:
    serve(served, guests=G22)
    assert parts(await ask(served, "health_overview"))["guests"] == "2: 1 running, 0 stopped, 1 unknown"


async def test_g23_no_visible_guests_is_no_claim_that_there_are_none(served: ServedApi) -> None:
    serve(served, permissions={})
    text = await ask(served, "health_overview")
    assert "0 guests are visible to this token, and its permission list is empty" in text
    assert parts(text)["backups"] == "no guest is seen that needs one"


async def test_a_cluster_without_guests_has_no_backups_that_are_unknown(served: ServedApi) -> None:
    serve(served)
    text = await ask(served, "health_overview")
    assert text.startswith("health of the cluster: no problem found\n")
    assert (parts(text)["guests"], parts(text)["backups"]) == ("0: 0 running, 0 stopped", "no guest is seen that needs one")


async def test_what_the_list_of_guests_does_not_tell_is_unknown_and_the_rest_is_told(served: ServedApi) -> None:
    serve(served)
    served.on("GET", "/cluster/resources", Reply(500, "a list that is out of order"))
    text = await ask(served, "health_overview")
    said = parts(text)
    assert (said["nodes"], said["guests"], said["backups"]) == ("1 of 1 online (pve1 cpu 10% mem 25%)", "unknown", "unknown")
    assert "note: guests: a list that is out of order" in text
    served.on("GET", "/nodes", Reply(500, "and so is this one"))
    with pytest.raises(ApiError, match="and so is this one"):
        await ask(served, "health_overview")


async def test_g27_an_inactive_storage_is_a_problem_and_a_disabled_one_is_not(served: ServedApi) -> None:
    serve(served, storages=G27)
    text = await ask(served, "health_overview")
    assert "problems:\n- storage usb on pve1: enabled but not active\nnodes:" in text
    assert parts(text)["storages"] == "1 active, 1 disabled, 1 inactive; fullest local on pve1 40%"


async def test_g30_fill_levels_of_a_hanging_list_come_from_the_statistics_and_are_marked(served: ServedApi) -> None:
    last = [{"storage": "local", "node": "pve1", "status": "available", "disk": 90, "maxdisk": 100, "shared": 0, "type": "storage"}]
    serve(served, last_known=last)
    served.on("GET", "/nodes/pve1/storage", Reply(hang=True))
    begun = time.monotonic()
    text = await ask(served, "health_overview", timeout=30.0)
    assert time.monotonic() - begun < 5
    assert "- storage local on pve1: 90% full (90B of 100B), as last known" in text
    assert parts(text)["storages"] == "1 last known; fullest local on pve1 90%"
    assert "note: storages of pve1: no answer in 3 s (often an unreachable network storage)" in text


async def test_g54_a_damaged_pool_is_a_problem_and_so_is_one_that_says_online(served: ServedApi) -> None:
    serve(served, pool=G54)
    assert "- ZFS pool tank on pve1: state DEGRADED; sdb FAULTED, read 3, write 12, too many errors\n" in await ask(
        served, "health_overview"
    )
    serve(served, pool={"name": "tank", "state": "ONLINE", "errors": "2 data errors, use '-v' for a list", "children": []})
    text = await ask(served, "health_overview")
    assert "- ZFS pool tank on pve1: data errors: 2 data errors" in text
    assert parts(text)["zfs_pools"] == "1, 1 not healthy"


async def test_a_pool_that_does_not_tell_more_is_a_gap(served: ServedApi) -> None:
    serve(served, pool={"state": "ONLINE"})
    served.on("GET", "/nodes/pve1/disks/zfs/tank", Reply(500, "command '/sbin/zpool status -P tank' failed: exit code 1"))
    text = await ask(served, "health_overview")
    assert "not everything answered" in text
    assert "note: ZFS pool tank of pve1: " in text


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"status": [{"type": "cluster", "name": "lab", "quorate": 0, "nodes": 3}]}, "cluster lab has no quorum"),
        ({"disks": [{"devpath": "/dev/sdb", "health": "OK", "wearout": 4}]}, "disk /dev/sdb on pve1 (model unknown): 4% of its life left"),
        ({"guests": [{**G22[0], "hastate": "error"}]}, "HA state error: 101 web"),
        ({"nodes": [{"node": "pve1", "status": "online", "mem": 99, "maxmem": 100}]}, "node pve1: memory 99% used"),
        ({"nodes": [{"node": "pve1", "status": "online", "disk": 91, "maxdisk": 100}]}, "node pve1: root file system 91% full"),
    ],
)  # fmt: skip
async def test_other_troubles(served: ServedApi, answers: dict[str, Any], problem: str) -> None:
    serve(served, **answers)
    assert f"- {problem}" in await ask(served, "health_overview")


async def test_failed_tasks_are_those_that_ended_within_the_day_and_equal_ones_are_one(served: ServedApi) -> None:
    now = 1_800_000_000

    def task(number: int, started: int, ended: int, status: str) -> dict[str, Any]:
        upid = f"UPID:pve1:{number:08X}:00C0F000:{now - started:08X}:vzdump:101:root@pam:"
        return {"upid": upid, "starttime": now - started, "endtime": now - ended, "status": status}

    tasks = [
        task(1, 90_000, 80_000, "job errors"),
        task(2, 3_600, 3_000, "job errors"),
        task(3, 150_000, 149_000, "old"),
        task(4, 50, 40, "WARNINGS: 1"),
    ]
    serve(served, tasks=tasks)
    text = await ask(served, "health_overview", clock=float(now))
    assert "- 2 tasks failed in the last day: vzdump 101 on pve1 2x (job errors)\n" in text
    asked = next(request for request in served.requests if request.path.endswith("/tasks"))
    assert asked.params["since"] == str(now - 2 * DAY)


async def test_one_node_alone() -> None:
    with served_cluster(nodes=3, guests=12, troubles=True) as api:
        text = await ask(api, "health_overview", node="pve2")
        assert text.startswith("health of node pve2: 1 problem\nproblems:\n- storage local on pve2: 93% full")
        assert parts(text)["nodes"].startswith("1 of 1 online (pve2 ")
        assert parts(text)["guests"].startswith("4: ")
        assert not [path for path in api.paths if "/nodes/pve3/" in path]
        other = await ask(api, "health_overview", node="PVE2")
    assert other.startswith("health of node pve2: 1 problem\n")
    assert other.endswith("note: node PVE2 is called pve2")


async def test_a_guest_in_no_job_is_judged_only_by_all_places() -> None:
    with served_cluster(nodes=2, guests=4) as api:
        api.world.jobs.clear()
        api.world.volumes["nas", None].clear()
        api.world.volumes["pbs", None].clear()
        assert "- 4 guests without a recent good backup: 100 web-1 (none, in no job)" in await ask(api, "health_overview")
        # what lies on the other node was not asked for, so it is not known
        one = parts(await ask(api, "health_overview", node="pve1"))
        assert one["backups"].startswith("unknown for 2 (100 web-1, 102 mail-1); in no job: 100 web-1")


@pytest.mark.parametrize("rights", [AUDITOR, ONE_GUEST, NO_RIGHTS])
async def test_a_narrow_token_is_told_what_it_does_not_see(rights: Any) -> None:
    with served_cluster(nodes=2, guests=12, rights=rights, troubles=True) as api:
        text = await ask(api, "health_overview")
    said = parts(text)
    assert "without a recent good backup" not in text
    if rights is AUDITOR:
        assert said["backups"].startswith("unknown for 11")
        assert "lacks Datastore.AllocateSpace on /storage/local, /storage/nas, /storage/pbs, /storage/usb and VM.Backup on /vms" in text
        return
    assert said["quorum"] == said["zfs_pools"] == said["disks"] == "unknown"
    assert said["tasks"].endswith("of those that are visible")
    assert said["storages"] == "none visible"
    assert "note: quorum: not allowed" in text
    assert "guests" in text.splitlines()[-1]
    assert text.splitlines()[0].endswith(", not everything answered, not all is visible to this token")


async def test_no_problem_is_not_said_of_what_a_token_does_not_see() -> None:
    with served_cluster(nodes=2, guests=12, rights=AUDITOR) as api:
        text = await ask(api, "health_overview")
        assert text.startswith("health of the cluster: no problem found, not all is visible to this token\n")
    with served_cluster(nodes=2, guests=12) as api:
        assert (await ask(api, "health_overview")).startswith("health of the cluster: no problem found\n")


async def test_hostile_names_stay_in_their_line() -> None:
    with served_cluster(guests=30, hostile=True, troubles=True) as api:
        text = await ask(api, "health_overview")
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.startswith("TASK OK")]


async def test_nothing_at_all_is_an_error_and_not_an_overview_full_of_gaps(served: ServedApi) -> None:
    served.tokens.clear()
    with pytest.raises(AuthenticationError):
        await ask(served, "health_overview")


async def test_nobody_there_is_an_error_too() -> None:
    with ServedApi() as gone:
        pass
    with pytest.raises(ConnectionFailed):
        await ask(gone, "health_overview")
