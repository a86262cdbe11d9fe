"""Situations from the field that only a real client sees: through the server as a process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxmox_mcp import registry
from proxmox_mcp.tools import ORDER
from tests.cluster import ServedCluster, served_cluster
from tests.protocol.talking import ROOT
from tests.served_api import environment
from tests.stdio import serving


def long_backup(api: ServedCluster) -> None:
    """vzdump starts a task that never ends."""
    api.on("POST", "/nodes/{node}/vzdump", lambda request: api.world.task(request.vars["node"], "vzdump", "100", age=0, took=None).upid)


def test_g05_a_wait_ends_before_the_clients_patience_does(tmp_path: Path) -> None:
    """Nobody asked for less than a minute, and still the answer comes in time, with what to do next, and nothing starts twice."""
    with served_cluster() as api:
        long_backup(api)
        with serving(tmp_path, {**environment(api), "PROXMOX_MAX_WAIT": "1.5"}) as server:
            begun = time.monotonic()
            failed, text = server.call("proxmox_create_backup", vmid=100, storage="nas", confirm=True, wait_seconds=900)
            took = time.monotonic() - begun
    assert not failed
    assert text.startswith("Started, still running: back up VM 100 (web-1) on pve1 to storage nas (mode snapshot)\n")
    assert "\nresult: not at its end after 1s\n" in text
    upid = text.rpartition("upid=")[2].split()[0]
    assert f"\nupid: {upid}\n" in text
    assert text.endswith(f"note: it goes on by itself, do not start it again; look with proxmox_get_task_log upid={upid}")
    assert 1.5 <= took < 6
    assert [request.path for request in api.writes] == ["/nodes/pve1/vzdump"]


def test_g05_the_cap_is_below_a_minute_unless_the_owner_raises_it() -> None:
    from proxmox_mcp.config import Settings, load

    assert Settings().max_wait < 60
    assert load({"PROXMOX_MAX_WAIT": "300"}, base=Path("/none")).max_wait == 300


@pytest.mark.parametrize("arguments", [{}, {"response_format": "json"}, {"nodee": "pve1"}])
def test_g06_an_answer_is_on_the_wire_once(tmp_path: Path, arguments: dict[str, str]) -> None:
    with served_cluster() as api, serving(tmp_path, environment(api)) as server:
        result = server.answer(server.start_call("proxmox_list_vms", **arguments))["result"]
        tools = server.request("tools/list")["result"]["tools"]
    assert set(result) <= {"content", "isError"}
    (content,) = result["content"]
    assert set(content) == {"type", "text"}
    assert len(json.dumps(result)) < len(json.dumps(content["text"])) + 80
    assert not [tool["name"] for tool in tools if "outputSchema" in tool]


def test_g08_fewer_tools_for_clients_that_take_few(tmp_path: Path) -> None:
    def offered(**variables: str) -> list[str]:
        with serving(tmp_path, variables) as server:
            return [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]

    everything = offered()
    assert everything == list(ORDER)
    assert len(everything) == 52
    # a client that cuts after 40 keeps what people ask for most
    assert {"proxmox_health_overview", "proxmox_list_vms", "proxmox_get_vm_status", "proxmox_vm_power", "proxmox_list_backups"} <= set(
        everything[:20]
    )
    groups = {tool.name: tool.group for tool in registry.all_tools()}
    some = offered(PROXMOX_TOOLSETS="overview,guests,backups", PROXMOX_READ_ONLY="1")
    assert some
    assert {groups[name] for name in some} == {"overview", "guests", "backups"}
    assert all(tool.read_only or tool.reads for tool in registry.all_tools() if tool.name in some)


def test_g08_a_group_that_does_not_exist_stops_the_start_with_those_that_do(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "proxmox_mcp"],
        input=b"",
        capture_output=True,
        timeout=30,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PROXMOX_TOOLSETS": "overview,gusets"},
    )
    assert ended.returncode
    assert ended.stdout == b""
    said = ended.stderr.decode()
    assert "gusets" in said
    for group in registry.GROUPS:
        assert group in said
