"""The Inspector's command line against the server as a process and a served cluster, in both protocol eras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proxmox_mcp.tools import ORDER
from tests.cluster import ServedCluster, served_cluster
from tests.protocol.inspector import inspect, installed
from tests.protocol.test_prompts import SIX
from tests.protocol.test_resources import TEMPLATES
from tests.served_api import SECRET, environment

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@pytest.fixture(scope="module")
def cluster() -> Iterator[ServedCluster]:
    installed()
    with served_cluster() as api:
        yield api


@ERAS
def test_the_schemas_are_portable(cluster: ServedCluster, tmp_path: Path, era: str) -> None:
    run = inspect(tmp_path, era, {}, "--method", "tools/list", "--strict")
    assert run.status == 0, run.stderr
    assert [tool["name"] for tool in run.result["tools"]] == list(ORDER)
    assert not run.stderr.strip(), run.stderr


@ERAS
def test_resources_templates_and_prompts(cluster: ServedCluster, tmp_path: Path, era: str) -> None:
    run = inspect(tmp_path, era, {}, "--method", "resources/list")
    assert [resource["uri"] for resource in run.result["resources"]] == ["proxmox://overview"]
    run = inspect(tmp_path, era, {}, "--method", "resources/templates/list")
    assert [template["uriTemplate"] for template in run.result["resourceTemplates"]] == list(TEMPLATES)
    run = inspect(tmp_path, era, {}, "--method", "prompts/list")
    assert [prompt["name"] for prompt in run.result["prompts"]] == SIX


@ERAS
def test_a_call_and_a_refused_one(cluster: ServedCluster, tmp_path: Path, era: str) -> None:
    env = environment(cluster)
    run = inspect(tmp_path, era, env, "--method", "tools/call", "--tool-name", "proxmox_list_vms", "--tool-arg", "status=running")
    assert run.status == 0
    assert run.result["content"][0]["text"].startswith("9 guests; status=running\n")
    run = inspect(
        tmp_path, era, env, "--method", "tools/call", "--tool-name", "proxmox_vm_power", "--tool-args-json", '{"vmid":100,"action":"stop"}'
    )
    assert run.status == 5
    assert "Nothing was changed: confirm=true missing" in run.stderr
    assert not cluster.writes
    assert SECRET not in run.stderr


@ERAS
def test_a_resource_and_a_prompt(cluster: ServedCluster, tmp_path: Path, era: str) -> None:
    run = inspect(tmp_path, era, environment(cluster), "--method", "resources/read", "--uri", "proxmox://guest/103")
    assert run.result["contents"][0]["text"].startswith("container 103 (git-1) on pve1: running")
    run = inspect(tmp_path, era, {}, "--method", "prompts/get", "--prompt-name", "safe_upgrade", "--prompt-args", "vmid=101")
    assert "on guest 101" in run.result["messages"][0]["content"]["text"]
