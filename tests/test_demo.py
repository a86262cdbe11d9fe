"""The demo cluster: its answers agree with each other, nothing in them is a placeholder, and changes take effect."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from proxmox_mcp import demo, pipeline
from proxmox_mcp.app import App
from proxmox_mcp.config import Settings, require_ssh
from proxmox_mcp.demo import history, world
from proxmox_mcp.errors import ApiError, ConfigError, NodeUnreachable, TokenNotAllowed
from proxmox_mcp.http_client import HttpClient
from proxmox_mcp.registry import all_tools
from tests.piped import FakePerson
from tests.stdio import measuring

pytestmark = pytest.mark.anyio
ONLINE = [node.name for node in world.NODES if node.online]
READS = [
    "nodes",
    "storage",
    "version",
    "access/permissions",
    "cluster/resources",
    "cluster/status",
    "cluster/tasks",
    "cluster/ha/status/current",
]
READS += ["cluster/backup", "cluster/backup-info/not-backed-up"]
NODE_READS = [
    "status",
    "version",
    "time",
    "network",
    "tasks",
    "qemu",
    "lxc",
    "disks/list",
    "disks/lvm",
    "disks/lvmthin",
    "disks/zfs",
    "disks/zfs/tank",
]
NODE_READS += ["storage", *(f"storage/{name}/content" for name in ("local-lvm", "tank", "nas", "pbs"))]


@pytest.fixture(scope="module")
def cluster() -> Iterator[demo.Demo]:
    with demo.started() as running:
        running.cluster.time_scale = 0  # tasks end at once
        yield running


@pytest.fixture
def settings(cluster: demo.Demo, tmp_path: Path) -> Settings:
    return demo.settings_for(cluster, Settings(audit_dir=tmp_path))


class Reader:
    def __init__(self, settings: Settings) -> None:
        self.http = HttpClient(settings)

    async def __call__(self, path: str, **params: Any) -> Any:
        return await self.http.get(*path.split("/"), params=params)


@pytest.fixture
async def read(settings: Settings) -> Any:
    reader = Reader(settings)
    yield reader
    await reader.http.close()


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("path", READS + [f"nodes/{node}/{path}" for node in ONLINE for path in NODE_READS])
async def test_no_answer_holds_a_placeholder(read: Reader, path: str) -> None:
    answer = await read(path)
    assert answer not in (None, "", 0)
    assert [text for text in texts(answer) if re.search(r"fake|example|EXAMPLE|0000-0000", text) and text != "fakepve"] == []


async def test_no_tool_meets_an_answer_that_nobody_thought_of(
    settings: Settings, cluster: demo.Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the demo does not answer itself comes from fakepve's schema: "fake", 0."""
    tools = {tool.name: tool for tool in all_tools()}
    archive = next(name for name in cluster.cluster.storages["pbs"]["volumes"] if "/101/" in name)
    look: list[tuple[str, dict[str, Any]]] = [
        *((name, {}) for name in ("health_overview", "list_backups", "list_backup_jobs", "list_disks", "list_zfs", "list_tasks")),
        *((name, {"vmid": vmid}) for name in ("get_vm_status", "list_snapshots") for vmid in (101, 200)),
        *(("snapshot", {"vmid": vmid, "action": "create", "snapname": "before", "dry_run": True}) for vmid in (101, 200)),
        *(("clone_vm", {"vmid": vmid, "dry_run": True}) for vmid in (101, 205, 9000)),
        ("restore_backup", {"vmid": 300, "archive": f"pbs:{archive}", "dry_run": True}),
        ("create_backup", {"vmid": 101, "storage": "nas", "dry_run": True}),
        ("move_disk", {"vmid": 101, "disk": "scsi0", "target_storage": "tank", "dry_run": True}),
        ("resize_vm", {"vmid": 101, "cores": 2, "dry_run": True}),
        ("create_vm", {"node": "pve1", "disk_storage": "tank", "disk_gb": 8, "dry_run": True}),
        ("zfs_pool_manage", {"action": "destroy", "name": "tank", "node": "pve1", "dry_run": True}),
        ("storage_config", {"action": "remove", "storage": "nas", "dry_run": True}),
    ]
    met: list[str] = []
    made_up = cluster.cluster.synthesise

    async def noticed(match: Any, method: str, info: Any, user: Any, values: Any) -> Any:
        met.append(f"{method} {match.template}")
        return await made_up(match, method, info, user, values)

    app = App(settings)
    monkeypatch.setattr(cluster.cluster, "synthesise", noticed)
    told = {}
    for name, arguments in look:
        found = await pipeline.run(tools[f"proxmox_{name}"], arguments, app, FakePerson())
        assert isinstance(found, pipeline.Result)
        told[name, arguments.get("vmid")] = found.text
    await app.close()
    assert met == []
    assert "Would work." in told["snapshot", 101]
    assert "Would work." in told["snapshot", 200]
    assert "as a linked clone" in told["clone_vm", 9000]
    assert "(web01) as new VM 300" in told["restore_backup", 300]
    assert not [text for text in told.values() if "fake" in text]


@pytest.mark.parametrize(("schedule", "days"), [("22:00", 1), ("sun 03:00", 7)])
def test_a_schedule_comes_when_it_says(schedule: str, days: int) -> None:
    now = 1_796_091_400
    times = [run["timestamp"] for run in history.runs(schedule, now, 5)]
    assert len(times) == 5
    assert now < times[0] <= now + days * 86_400
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {days * 86_400}
    assert {time.strftime("%a %H:%M", time.gmtime(when)).lower()[-len(schedule) :] for when in times} == {schedule}


async def test_three_nodes_one_of_them_silent(read: Reader) -> None:
    rows = {row["node"]: row for row in await read("nodes")}
    assert {name: row["status"] for name, row in rows.items()} == {"pve1": "online", "pve2": "online", "pve3": "offline"}
    assert "mem" not in rows["pve3"]
    assert "uptime" not in rows["pve3"]
    with pytest.raises(NodeUnreachable):
        await read("nodes/pve3/status")
    (head, *members) = await read("cluster/status")
    assert (head["type"], head["quorate"], head["nodes"]) == ("cluster", 1, 3)
    assert [member["online"] for member in members] == [1, 1, 0]


async def test_a_nodes_load_is_the_same_wherever_it_is_told_and_covers_its_guests(read: Reader) -> None:
    resources = await read("cluster/resources")
    listed = {row["node"]: row for row in await read("nodes")}
    for node in ONLINE:
        status = await read(f"nodes/{node}/status")
        (resource,) = [row for row in resources if row["type"] == "node" and row["node"] == node]
        assert status["memory"]["used"] == listed[node]["mem"] == resource["mem"]
        assert status["cpu"] == listed[node]["cpu"] == resource["cpu"]
        assert status["rootfs"]["used"] == listed[node]["disk"] == resource["disk"]
        assert status["memory"]["used"] + status["memory"]["free"] <= status["memory"]["total"]
        guests = sum(row["mem"] for row in resources if row["type"] in ("qemu", "lxc") and row["node"] == node)
        assert 0 < guests < status["memory"]["used"]


async def test_a_guest_is_told_alike_in_every_list(read: Reader) -> None:
    resources = [row for row in await read("cluster/resources", type="vm") if row["status"] != "unknown"]
    assert {row["type"] for row in resources} == {"qemu", "lxc"}
    for row in resources:
        path = f"nodes/{row['node']}/{row['type']}/{row['vmid']}"
        current, config = await read(f"{path}/status/current"), await read(f"{path}/config")
        for key in ("status", "mem", "maxmem", "maxdisk", "cpu", "disk"):
            assert current[key] == row[key], (row["vmid"], key)
        assert int(config["memory"]) * 1024**2 == row["maxmem"]
        assert row["name"] == config.get("name", config.get("hostname"))
        assert row["mem"] <= row["maxmem"]
        assert (row["mem"] > 0) == (row["uptime"] > 0) == (row["status"] == "running")


async def test_nothing_is_known_of_guests_on_the_silent_node(read: Reader) -> None:
    rows = [row for row in await read("cluster/resources", type="vm") if row["node"] == "pve3"]
    assert rows
    assert all(row.keys() == {"id", "type", "node", "vmid", "status"} and row["status"] == "unknown" for row in rows)


async def test_storages_agree_with_the_pools_below_them(read: Reader) -> None:
    for node in ONLINE:
        stores = {row["storage"]: row for row in await read(f"nodes/{node}/storage")}
        (thin,) = await read(f"nodes/{node}/disks/lvmthin")
        assert (stores["local-lvm"]["total"], stores["local-lvm"]["used"]) == (thin["lv_size"], thin["used"])
        (pool,) = await read(f"nodes/{node}/disks/zfs")
        assert pool["size"] == pool["alloc"] + pool["free"]
        assert stores["tank"]["used"] <= pool["alloc"]
        assert stores["tank"]["total"] <= pool["size"]
        assert (await read(f"nodes/{node}/disks/zfs/tank"))["state"] == pool["health"]
        assert (stores["oldnas"]["enabled"], stores["oldnas"]["active"], stores["oldnas"]["total"]) == (0, 0, 0)
        for resource in await read("cluster/resources", type="storage"):
            if resource["node"] == node and resource["storage"] in stores:
                assert resource["disk"] == stores[resource["storage"]]["used"]
        for name, store in stores.items():
            if store["active"]:
                assert store["used"] + store["avail"] == store["total"], name


async def test_a_local_storage_lists_what_lies_on_that_node_and_a_shared_one_the_same_everywhere(read: Reader) -> None:
    lists = {node: {item["volid"] for item in await read(f"nodes/{node}/storage/local-lvm/content")} for node in ONLINE}
    assert "local-lvm:vm-102-disk-0" in lists["pve1"]
    assert lists["pve1"] & lists["pve2"] == set()
    shared = [await read(f"nodes/{node}/storage/pbs/content") for node in ONLINE]
    assert shared[0] == shared[1]


async def test_every_disk_of_a_guest_is_a_volume_of_its_storage(read: Reader) -> None:
    for row in await read("cluster/resources", type="vm"):
        if row["node"] not in ONLINE:
            continue
        config = await read(f"nodes/{row['node']}/{row['type']}/{row['vmid']}/config")
        for key, value in config.items():
            volid = str(value).split(",")[0]
            if key.rstrip("0123456789") in ("scsi", "rootfs", "efidisk", "tpmstate") and ":" in volid:
                listed = await read(f"nodes/{row['node']}/storage/{volid.split(':')[0]}/content")
                assert volid in {item["volid"] for item in listed}


async def test_the_broken_disk_shows_in_smart_in_the_list_and_in_the_pool(read: Reader) -> None:
    (failed,) = [disk for disk in await read("nodes/pve2/disks/list") if disk["health"] == "FAILED!"]
    assert (await read("nodes/pve2/disks/smart", disk=failed["devpath"]))["health"] == "FAILED!"
    pool = await read("nodes/pve2/disks/zfs/tank")
    (group,) = pool["children"][0]["children"]
    (leaf,) = [leaf for leaf in group["children"] if leaf["state"] == "FAULTED"]
    assert leaf["name"].startswith(failed["by_id_link"])


async def test_smart_of_each_kind_of_disk(read: Reader) -> None:
    for node in ONLINE:
        for disk in await read(f"nodes/{node}/disks/list"):
            health = await read(f"nodes/{node}/disks/smart", disk=disk["devpath"], healthonly=1)
            assert health == {"health": disk["health"]}
            whole = await read(f"nodes/{node}/disks/smart", disk=disk["devpath"])
            assert whole["type"] == ("text" if disk["type"] == "nvme" else "ata")
            assert whole["health"] == disk["health"]
    with pytest.raises(ApiError, match="not a disk: /dev/sdz"):
        await read("nodes/pve1/disks/smart", disk="/dev/sdz")


async def test_a_pool_that_is_not_there_fails_as_zpool_does(read: Reader) -> None:
    with pytest.raises(ApiError, match="command 'zpool status -P nope' failed: exit code 1"):
        await read("nodes/pve2/disks/zfs/nope")


async def test_the_failed_backup_of_last_night_shows_in_tasks_log_and_missing_volumes(read: Reader) -> None:
    day_ago = int(time.time()) - 86400
    failed = [task for task in await read("nodes/pve2/tasks", errors=1, since=day_ago) if not task["status"].startswith("WARNINGS")]
    assert [(task["type"], task["status"]) for task in failed] == [("vzdump", "job errors")]
    lines, total = await read.http.get_with_total("nodes", "pve2", "tasks", failed[0]["upid"], "log", params={"limit": 0})
    assert total == len(lines)
    assert any(f"ERROR: Backup of VM {world.FAILING_BACKUP} failed" in line["t"] for line in lines)
    assert lines[-1]["t"] == "TASK ERROR: job errors"
    newest: dict[int, int] = {}
    for item in await read("nodes/pve2/storage/pbs/content"):
        newest[item["vmid"]] = max(newest.get(item["vmid"], 0), item["ctime"])
    assert newest[world.FAILING_BACKUP] < time.time() - 8 * 86400
    assert newest[103] > day_ago
    assert not newest.keys() & set(world.NOT_IN_NIGHTLY)


async def test_tasks_are_filtered_and_paged_as_proxmox_does(read: Reader) -> None:
    everything, total = await read.http.get_with_total("nodes", "pve1", "tasks", params={"limit": 5})
    assert len(everything) == 5
    assert total is not None
    assert total > 20
    assert {task["type"] for task in await read("nodes/pve1/tasks", typefilter="vzdump")} == {"vzdump"}
    assert [task["id"] for task in await read("nodes/pve2/tasks", vmid=203)] == ["203"]
    (task,) = await read("nodes/pve2/tasks", vmid=203)
    assert (task["user"], task["tokenid"]) == ("root@pam", "ansible")


async def finished(read: Reader, upid: str) -> dict[str, Any]:
    with anyio.fail_after(10):
        while True:
            status: dict[str, Any] = await read.http.get("nodes", upid.split(":")[1], "tasks", upid, "status")
            if status["status"] == "stopped":
                return status
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(("kind", "node", "vmid"), [("qemu", "pve2", 110), ("lxc", "pve2", 203)])
async def test_power_works(read: Reader, kind: str, node: str, vmid: int) -> None:
    path = ("nodes", node, kind, vmid, "status")
    for action, status in (("shutdown", "stopped"), ("start", "running"), ("stop", "stopped"), ("start", "running")):
        upid = await read.http.send("POST", (*path, action), {})
        assert (await finished(read, upid))["exitstatus"] == "OK"
        now = await read.http.get(*path, "current")
        assert (now["status"], now["mem"] > 0) == (status, status == "running")


@pytest.mark.parametrize(("kind", "node", "vmid"), [("qemu", "pve1", 105), ("lxc", "pve1", 201)])
async def test_snapshots_work(read: Reader, kind: str, node: str, vmid: int) -> None:
    path = ("nodes", node, kind, vmid, "snapshot")
    upid = await read.http.send("POST", path, {"snapname": "trial", "description": "one"})
    assert (await finished(read, upid))["exitstatus"] == "OK"
    assert "trial" in {row["name"] for row in await read.http.get(*path)}
    upid = await read.http.send("POST", (*path, "trial", "rollback"), {})
    assert (await finished(read, upid))["exitstatus"] == "OK"
    upid = await read.http.send("DELETE", (*path, "trial"), {})
    assert (await finished(read, upid))["exitstatus"] == "OK"
    assert "trial" not in {row["name"] for row in await read.http.get(*path)}


@pytest.mark.parametrize("storage", ["pbs", "nas"])
async def test_a_backup_leaves_a_volume(read: Reader, storage: str) -> None:
    before = {item["volid"] for item in await read(f"nodes/pve2/storage/{storage}/content", vmid=103)}
    upid = await read.http.send("POST", ("nodes", "pve2", "vzdump"), {"vmid": 103, "storage": storage})
    assert (await finished(read, upid))["exitstatus"] == "OK"
    (new,) = [item for item in await read(f"nodes/pve2/storage/{storage}/content", vmid=103) if item["volid"] not in before]
    assert new["subtype"] == "qemu"


async def test_refusals_are_those_of_proxmox(read: Reader) -> None:
    assert await read.http.send("POST", ("nodes", "pve1", "vzdump"), {"vmid": 103, "storage": "nas"}) == "OK"
    with pytest.raises(ApiError, match="does not support backups"):
        await read.http.send("POST", ("nodes", "pve2", "vzdump"), {"vmid": 103, "storage": "local-lvm"})
    with pytest.raises(TokenNotAllowed):
        await read.http.send("PUT", ("nodes", "pve1", "disks", "wipedisk"), {"disk": "/dev/sdc"})


@pytest.mark.parametrize("hour", [0, 3, 12, 23])
def test_the_record_fits_together_at_any_hour(hour: int) -> None:
    now = 1_796_000_000 // 86400 * 86400 + hour * 3600 + 120
    assert now - 86400 < history.last_night(now) < now - 3600
    assert time.gmtime(history.last_sunday(now))[3:7] == (3, 0, 0, 6)
    assert all(job["next-run"] > now for job in history.jobs(now) if job["enabled"])
    assert all(task["starttime"] < task["endtime"] <= now for task in history.tasks(now))
    assert len({task["upid"] for task in history.tasks(now)}) == len(history.tasks(now))
    ages = [now - volume["ctime"] for volumes in history.backups(now).values() for volume in volumes.values()]
    assert min(ages) > 0


def test_the_settings_of_the_demo_reach_nothing_real(cluster: demo.Demo, tmp_path: Path) -> None:
    own = {"token_value": "5ecret", "ssh_host": "pve.lan", "ssh_password": "5ecret", "vm_ssh_hosts": tmp_path, "problems": ("x",)}
    real = Settings(audit_dir=tmp_path, read_only=True, **own)
    made = demo.settings_for(cluster, real)
    assert [str(member) for member in made.members] == [f"127.0.0.1:{cluster.port}"]
    assert (made.ssh_host, made.ssh_password, made.vm_ssh_hosts, made.problems) == ("", "", None, ())
    assert made.read_only
    assert made.audit_dir == tmp_path / "demo"
    assert "5ecret" not in (made.token_value, made.ssh_password)


def test_the_demo_asks_for_no_ssh_settings(cluster: demo.Demo) -> None:
    with pytest.raises(ConfigError) as caught:
        require_ssh(demo.settings_for(cluster, Settings()), guests=False)
    assert str(caught.value).endswith("none of them has a shell.")


async def test_the_demo_logs_in_nowhere(settings: Settings) -> None:
    """Its API is on this machine, which is nobody's node."""
    tools = {tool.name: tool for tool in all_tools()}
    calls: dict[str, dict[str, Any]] = {
        "host_exec": {"command": "true", "confirm": True},
        "host_read_exec": {"command": "uptime"},
        "zfs_list_datasets": {},
        "lxc_exec": {"vmid": 200, "command": "true", "confirm": True},
    }
    app = App(settings)
    for name, arguments in calls.items():
        with pytest.raises(ConfigError, match="none of them has a shell"):
            await pipeline.run(tools[f"proxmox_{name}"], arguments, app, FakePerson())
    assert "ssh" not in app.__dict__
    await app.close()


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fakepve", None)
    with pytest.raises(ConfigError, match=r"pve-mcp\[demo\]"):
        demo.require()


def test_try_shows_what_readme_shows(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent
    env = {"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(root), **measuring()}
    command = [sys.executable, "-m", "proxmox_mcp", "try"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=60)
    shown = done.stdout
    assert done.returncode == 0, shown + done.stderr
    answers = [f"> {name}\n" + shown.split(f"> {name}\n")[1].split("\n\n")[0] for name in demo.CALLS]
    transcript = (root / "README.md").read_text(encoding="utf-8").split("<!-- begin transcript -->")[1]
    # the guests stand still; of the overview, which tells ages, the first line must do
    assert answers[1] in transcript
    assert answers[0].splitlines()[1] in transcript
    assert json.loads(shown[shown.index("\n{") : shown.rindex("\n}") + 2])["mcpServers"]["proxmox"]["command"] == sys.executable
    assert done.stderr == ""
