"""Choosing tools at start: what is not offered is neither listed nor callable, and a limit to some guests and nodes holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proxmox_mcp import registry
from proxmox_mcp.tools import ORDER
from tests.cluster import served_cluster
from tests.protocol.talking import ERAS, ROOT, ask, call, in_memory, names, over_stdio

pytestmark = pytest.mark.anyio
GATES = {"confirm", "dry_run", "i_understand_data_loss", "wait_seconds"}


def of_groups(*groups: str) -> list[str]:
    return [tool.name for tool in registry.all_tools() if tool.group in groups]


# --- read-only


@ERAS
async def test_read_only_mode_lists_what_reads_and_nothing_else(tmp_path: Path, era: str) -> None:
    async with in_memory(None, tmp_path, era, PROXMOX_READ_ONLY="1") as client:
        listed = (await client.list_tools()).tools
    wanted = [tool.name for tool in registry.all_tools() if tool.read_only or tool.reads]
    assert [tool.name for tool in listed] == wanted
    assert 25 <= len(wanted) < len(ORDER)
    for tool in listed:
        assert tool.annotations
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is None
        assert not GATES & set(tool.input_schema["properties"]), tool.name


async def test_in_read_only_mode_a_mixed_tool_keeps_its_reading_actions(tmp_path: Path) -> None:
    with served_cluster() as api:
        async with in_memory(api, tmp_path, PROXMOX_READ_ONLY="true") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for record in registry.all_tools():
                for name, values in record.reads.items():
                    assert tools[record.name].input_schema["properties"][name]["enum"] == list(values)
            service = {"vmid": 103, "service": "nginx", "confirm": True}
            failed, text = await ask(client, "proxmox_ct_service_action", **service, action="restart")
            assert failed
            assert text.startswith("Invalid argument action: the server runs in read-only mode; only status, is-active")
            failed, text = await ask(client, "proxmox_ct_service_action", **service, action="status")
            assert "read-only mode" not in text  # it goes on, to an SSH that is not configured here
        assert not api.writes


@ERAS
async def test_what_read_only_mode_leaves_out_cannot_be_called(tmp_path: Path, era: str) -> None:
    with served_cluster() as api:
        async with in_memory(api, tmp_path, era, PROXMOX_READ_ONLY="1", PROXMOX_TOOLS="proxmox_vm_power,proxmox_list_vms") as client:
            assert await names(client) == ["proxmox_list_vms"]  # read-only wins over a tool that is named
            failed, text = await ask(client, "proxmox_vm_power", vmid=100, action="stop", confirm=True)
            assert failed
            assert text.startswith("This server does not offer proxmox_vm_power: its owner chose its tools (read-only mode")
            failed, text = await ask(client, "proxmox_list_vm")
            assert failed
            assert text == "Unknown tool: proxmox_list_vm; did you mean proxmox_list_vms?"
            assert await ask(client, "list_vms") == (True, "Unknown tool: list_vms; did you mean proxmox_list_vms?")
            # the prefix that all share makes nothing alike, and least of all what reaches a shell
            assert await ask(client, "proxmox_nonsense") == (True, "Unknown tool: proxmox_nonsense")
        assert not api.requests


async def test_the_flag_is_the_variable(tmp_path: Path) -> None:
    async with over_stdio(tmp_path, {}, "--read-only", "--toolsets", "guests,snapshots") as client:
        assert await names(client) == [name for name in of_groups("guests", "snapshots") if "list" in name or "get" in name]


# --- toolsets, tools, exclusions


@ERAS
@pytest.mark.parametrize(
    ("variables", "offered"),
    [
        ({}, list(ORDER)),
        ({"PROXMOX_TOOLSETS": "overview, guests"}, of_groups("overview", "guests")),
        ({"PROXMOX_TOOLS": "proxmox_list_isos,proxmox_list_vms"}, ["proxmox_list_vms", "proxmox_list_isos"]),
        ({"PROXMOX_TOOLSETS": "tasks", "PROXMOX_TOOLS": "proxmox_list_vms"}, ["proxmox_list_vms", *of_groups("tasks")]),
        ({"PROXMOX_TOOLSETS": "tasks", "PROXMOX_EXCLUDE_TOOLS": "proxmox_list_tasks"}, ["proxmox_get_task_log"]),
        (
            {"PROXMOX_TOOLS": "proxmox_list_vms,proxmox_vm_power", "PROXMOX_EXCLUDE_TOOLS": "proxmox_vm_power"},
            ["proxmox_list_vms"],
        ),
    ],
    ids=["all", "toolsets", "tools", "both", "excluded from a toolset", "excluded though named"],
)
async def test_the_choice_and_the_order(tmp_path: Path, era: str, variables: dict[str, str], offered: list[str]) -> None:
    async with in_memory(None, tmp_path, era, **variables) as client:
        assert await names(client) == offered


def test_the_order_names_every_tool_once_the_most_used_first() -> None:
    listed = [tool.name for tool in registry.all_tools()]
    assert listed == list(ORDER)
    assert listed[:4] == ["proxmox_health_overview", "proxmox_list_vms", "proxmox_get_vm_status", "proxmox_vm_power"]


@pytest.mark.parametrize(
    ("arguments", "variable", "wrong", "valid"),
    [
        (["--toolsets", "overview,gests"], "PROXMOX_TOOLSETS", "gests", registry.GROUPS),
        (["--tools", "proxmox_list_vm"], "PROXMOX_TOOLS", "proxmox_list_vm", ORDER),
        (["--exclude-tools", "vm_power"], "PROXMOX_EXCLUDE_TOOLS", "vm_power", ORDER),
        (["--exclude-tools", "proxmox_vm_exec*"], "PROXMOX_EXCLUDE_TOOLS", "proxmox_vm_exec*", ORDER),
        (["--toolsets", "audit+vm\u202e"], "PROXMOX_TOOLSETS", "audit+vm", registry.GROUPS),
    ],
)
def test_an_unknown_name_stops_the_start_with_the_valid_ones(
    tmp_path: Path, arguments: list[str], variable: str, wrong: str, valid: tuple[str, ...]
) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "proxmox_mcp", *arguments],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert f"{variable} names what does not exist: {wrong}\n" in found.stderr
    assert f"valid: {', '.join(valid)}" in found.stderr


# --- a limit to some guests and nodes


@ERAS
async def test_a_limit_removes_what_cannot_be_held_to_it(tmp_path: Path, era: str) -> None:
    async with in_memory(None, tmp_path, era, PROXMOX_ALLOW_VMIDS="100-199") as client:
        by_guests = set(await names(client))
    async with in_memory(None, tmp_path, era, PROXMOX_ALLOW_NODES="pve1") as client:
        by_nodes = set(await names(client))
    gone = {"proxmox_host_exec", "proxmox_host_read_exec", "proxmox_vm_exec", "proxmox_disk_prepare", "proxmox_lvm_manage"}
    gone |= {"proxmox_zfs_pool_manage", "proxmox_storage_config", "proxmox_zfs_dataset", "proxmox_zfs_send"} & set(ORDER)
    for left in (by_guests, by_nodes):
        assert not gone & left
        assert {"proxmox_vm_power", "proxmox_create_vm", "proxmox_lxc_exec", "proxmox_list_disks", "proxmox_audit_verify"} <= left
    assert {tool.limit for tool in registry.all_tools() if tool.name in by_guests and not tool.read_only} == {"guest"}


async def test_a_tool_that_cannot_be_limited_stays_when_it_is_named(tmp_path: Path) -> None:
    async with in_memory(None, tmp_path, PROXMOX_ALLOW_VMIDS="100", PROXMOX_TOOLS="proxmox_host_exec,proxmox_vm_power") as client:
        assert await names(client) == ["proxmox_vm_power", "proxmox_host_exec"]


OUTSIDE = [  # guest 105 is on pve3, 102 on pve3, 104 on pve2; 103 a container on pve1
    ("proxmox_vm_power", {"vmid": 105, "action": "reboot"}),
    ("proxmox_resize_vm", {"vmid": 105, "memory_mb": 512}),
    ("proxmox_snapshot", {"vmid": 105, "action": "create", "snapname": "s1"}),
    ("proxmox_create_backup", {"vmid": 105, "storage": "nas"}),
    ("proxmox_clone_vm", {"vmid": 100, "newid": 300}),
    ("proxmox_clone_vm", {"vmid": 105, "newid": 110}),
    ("proxmox_move_disk", {"vmid": 105, "disk": "scsi0", "target_storage": "fast"}),
    ("proxmox_create_vm", {"vmid": 300, "disk_storage": "local-lvm", "disk_gb": 8, "node": "pve1"}),
    (
        "proxmox_create_container",
        {
            "vmid": 300,
            "ostemplate": "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
            "disk_storage": "local-lvm",
            "node": "pve1",
            "password": "long enough",
        },
    ),
]


@pytest.mark.parametrize(("tool", "arguments"), OUTSIDE, ids=lambda v: v if isinstance(v, str) else str(v.get("vmid")))
async def test_changes_outside_the_guests_are_refused(tmp_path: Path, tool: str, arguments: dict[str, object]) -> None:
    with served_cluster() as api:
        async with in_memory(api, tmp_path, PROXMOX_ALLOW_VMIDS="100-104,110") as client:
            for how in ({"dry_run": True}, {"confirm": True}):
                failed, text = await ask(client, tool, **arguments, **how)
                assert failed
                assert text.startswith("Nothing was changed: guest ")
                assert "is outside PROXMOX_ALLOW_VMIDS" in text
        assert not api.writes
    (refusal,) = [record for record in audit(tmp_path) if record["kind"] == "note"]
    assert "PROXMOX_ALLOW_VMIDS" in refusal["record"]["event"]


async def test_changes_outside_the_nodes_are_refused_and_inside_they_run(tmp_path: Path) -> None:
    with served_cluster() as api:
        async with in_memory(api, tmp_path, PROXMOX_ALLOW_NODES="pve1,pve2") as client:
            failed, text = await ask(client, "proxmox_vm_power", vmid=105, action="reboot", confirm=True)
            assert failed
            assert "node pve3 is outside PROXMOX_ALLOW_NODES" in text
            assert not api.writes
            await call(client, "proxmox_vm_power", vmid=100, action="reboot", confirm=True)
            assert [request.path for request in api.writes] == ["/nodes/pve1/qemu/100/status/reboot"]


def audit(home: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (home / "audit" / "_api_audit.log").read_text().splitlines()]


# --- reads, on request


async def test_without_the_request_reads_see_everything(tmp_path: Path) -> None:
    with served_cluster() as api:
        async with in_memory(api, tmp_path, PROXMOX_ALLOW_VMIDS="100-104", PROXMOX_ALLOW_NODES="pve1") as client:
            assert (await call(client, "proxmox_list_vms")).startswith("12 guests\n")
            assert (await call(client, "proxmox_list_nodes")).startswith("3 nodes")
            assert "on pve3" in await call(client, "proxmox_get_vm_status", vmid=105)


@ERAS
async def test_on_request_reads_show_only_what_is_inside(tmp_path: Path, era: str) -> None:
    limit = {"PROXMOX_ALLOW_VMIDS": "100-104", "PROXMOX_ALLOW_NODES": "pve1,pve2", "PROXMOX_LIMIT_READS": "true"}
    with served_cluster() as api:
        async with in_memory(api, tmp_path, era, **limit) as client:
            assert client.instructions
            assert "Only guests 100-104 and nodes pve1,pve2 are shown." in client.instructions
            guests = json.loads(await call(client, "proxmox_list_vms", response_format="json"))["items"]
            assert [row["vmid"] for row in guests] == [100, 101, 103, 104]
            nodes = json.loads(await call(client, "proxmox_list_nodes", response_format="json"))["items"]
            assert [row["node"] for row in nodes] == ["pve1", "pve2"]
            seen = "\n".join(
                [
                    await call(client, "proxmox_health_overview"),
                    await call(client, "proxmox_list_tasks", limit=500),
                    await call(client, "proxmox_list_backups", limit=500),
                    await call(client, "proxmox_list_disks"),
                    await call(client, "proxmox_list_zfs"),
                    await call(client, "proxmox_list_storage"),
                    await call(client, "proxmox_storage_usage_detail", storage="local-lvm", node="pve1"),
                ]
            )
            assert "pve3" not in seen
            assert not [vmid for vmid in range(105, 112) if f"-{vmid}-" in seen or f" {vmid} " in seen]
            assert " 103 " in seen
            for tool, arguments in (
                ("proxmox_get_vm_status", {"vmid": 105}),
                ("proxmox_list_snapshots", {"vmid": 105}),
                ("proxmox_get_node_status", {"node": "pve3"}),
                ("proxmox_list_disks", {"node": "pve3"}),
                ("proxmox_get_task_log", {"upid": "UPID:pve3:00000001:00000001:69A4B000:qmstart:100:root@pam:"}),
                ("proxmox_get_task_log", {"upid": "UPID:pve1:00000001:00000001:69A4B000:qmstart:111:root@pam:"}),
            ):
                before = len(api.requests)
                failed, text = await ask(client, tool, **arguments)
                assert failed
                assert "this server limits reads too (PROXMOX_LIMIT_READS)" in text
                assert len(api.requests) == before


async def test_what_a_limit_leaves_out_is_said_and_not_laid_to_the_token(tmp_path: Path) -> None:
    limit = {"PROXMOX_ALLOW_NODES": "pve1", "PROXMOX_LIMIT_READS": "true"}
    with served_cluster(guests=6) as api:
        elsewhere = next(guest.vmid for guest in api.world.guests.values() if guest.node == "pve2")
        own = next(guest.vmid for guest in api.world.guests.values() if guest.node == "pve1")
        said = "note: only nodes pve1 are shown (PROXMOX_LIMIT_READS)"
        async with in_memory(api, tmp_path, **limit) as client:
            for tool in ("health_overview", "list_vms", "list_nodes", "list_backups", "list_tasks", "list_storage"):
                assert said in (await call(client, f"proxmox_{tool}")).splitlines(), tool
            assert said not in await call(client, "proxmox_get_vm_status", vmid=own)
            for tool, more in (("proxmox_get_vm_status", {}), ("proxmox_vm_power", {"action": "start", "dry_run": True})):
                failed, text = await ask(client, tool, vmid=elsewhere, **more)
                assert failed
                assert f"guest {elsewhere} is not among nodes pve1, and this server limits reads too (PROXMOX_LIMIT_READS)" in text
                assert "VM.Audit" not in text
        async with in_memory(api, tmp_path, PROXMOX_ALLOW_NODES="pve1") as client:
            assert "are shown" not in await call(client, "proxmox_list_vms")


async def test_what_lives_on_a_storage_is_not_taken_for_nobody_where_reads_are_limited(tmp_path: Path) -> None:
    limit = {
        "PROXMOX_ALLOW_VMIDS": "900-999",
        "PROXMOX_LIMIT_READS": "1",
        "PROXMOX_TOOLS": "proxmox_storage_config,proxmox_zfs_pool_manage",
    }
    doubt = "not checked: whether guests other than guests 900-999 have disks there: this server does not look at them"
    with served_cluster() as api:
        async with in_memory(api, tmp_path, **limit) as client:
            for tool, arguments in (
                ("proxmox_storage_config", {"action": "remove", "storage": "local-lvm"}),
                ("proxmox_zfs_pool_manage", {"action": "destroy", "node": "pve2", "name": "tank"}),
            ):
                assert doubt in (await call(client, tool, **arguments, dry_run=True)).splitlines()


async def test_pages_of_tasks_are_complete_under_a_limit(tmp_path: Path) -> None:
    with served_cluster() as api:
        api.world.tasks.clear()
        for number in range(300):
            api.world.task("pve1", "qmstart", str(100 + number % 50), age=600 + number, took=1)
        inside = [task.upid for task in api.world.tasks.values() if task.id == "101"]
        limit = {"PROXMOX_ALLOW_VMIDS": "101", "PROXMOX_LIMIT_READS": "true"}
        found: list[str] = []
        async with in_memory(api, tmp_path, **limit) as client:
            more: dict[str, str] = {}
            while True:
                page = json.loads(await call(client, "proxmox_list_tasks", node="pve1", limit=2, response_format="json", **more))
                found += [row["upid"] for row in page["items"]]
                if "cursor" not in page:
                    break
                more = {"cursor": page["cursor"]}
        assert found == inside
