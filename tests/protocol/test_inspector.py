"""The Inspector's command line against the server as a process and a served cluster, in both protocol eras, every line recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.config import Settings
from proxmox_mcp.tools import ORDER
from tests.cluster import ServedCluster, served_cluster
from tests.protocol.inspector import Run, inspect, installed
from tests.protocol.recording import NOW, held, relayed
from tests.protocol.test_prompts import SIX
from tests.protocol.test_resources import TEMPLATES
from tests.served_api import SECRET, environment

ERAS = pytest.mark.parametrize(("era", "revision"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])


@ERAS
def test_lists_schemas_and_a_call(tmp_path: Path, era: str, revision: str) -> None:
    installed()
    with served_cluster(now=NOW) as api:
        server = relayed(tmp_path / "record")

        def result(method: str, *arguments: str) -> Any:
            run = inspect(tmp_path, era, environment(api), "--method", method, *arguments, server=server)
            assert run.status == 0, run.stderr
            assert not run.stderr.strip(), run.stderr  # with --strict: no schema that some client could not take
            return run.result

        assert [tool["name"] for tool in result("tools/list", "--strict")["tools"]] == list(ORDER)
        assert [resource["uri"] for resource in result("resources/list")["resources"]] == ["proxmox://overview"]
        templates = result("resources/templates/list")["resourceTemplates"]
        assert [template["uriTemplate"] for template in templates] == list(TEMPLATES)
        assert [prompt["name"] for prompt in result("prompts/list")["prompts"]] == SIX
        (said,) = result("tools/call", "--tool-name", "proxmox_list_vms", "--tool-arg", "node=pve1")["content"]
        assert said["text"].startswith("4 guests; node=pve1\n")
        held(f"inspector-{revision}", tmp_path / "record")


def test_a_refused_call_is_an_error_with_its_text(tmp_path: Path) -> None:
    with served_cluster() as api:
        run = power(tmp_path, api, '{"vmid":100,"action":"stop"}')
        assert run.status == 5
        assert run.result["content"][0]["text"].startswith("Nothing was changed: confirm=true missing.")
        assert not api.writes
        assert SECRET not in f"{run}"


def power(home: Path, api: ServedCluster, arguments: str) -> Run:
    called = ("--method", "tools/call", "--tool-name", "proxmox_vm_power", "--tool-args-json", arguments)
    return inspect(home, "modern", environment(api), *called)


@ERAS
def test_a_change_on_a_stateful_cluster(fakepve: Any, fakepve_settings: Settings, tmp_path: Path, era: str, revision: str) -> None:
    fakepve.add_vm(102, "db")
    settings = fakepve_settings
    env = {
        "PROXMOX_HOST": str(settings.members[0]),
        "PROXMOX_USER": settings.user,
        "PROXMOX_TOKEN_NAME": settings.token_name,
        "PROXMOX_TOKEN_VALUE": settings.token_value,
        "PROXMOX_CA_FILE": str(settings.ca_file),
    }
    wanted = '{"vmid":102,"action":"start","confirm":true,"wait_seconds":10}'
    run = inspect(tmp_path, era, env, "--method", "tools/call", "--tool-name", "proxmox_vm_power", "--tool-args-json", wanted)
    assert run.status == 0, run.stderr
    assert run.result["content"][0]["text"].startswith("Done: start VM 102 (db) on pve1")
    assert fakepve.vm(102).status == "running"
