"""The list of tools, as a client reads it: a snapshot of each, and what must hold for all.

A snapshot that differs fails: a changed schema is a changed contract. To write them anew: UPDATE_SNAPSHOTS=1 pytest this-file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from proxmox_mcp import registry
from proxmox_mcp.app import App
from proxmox_mcp.config import Settings
from proxmox_mcp.mcp_instance import published
from proxmox_mcp.plan import Risk


def words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


SNAPSHOTS = Path(__file__).resolve().parents[1] / "snapshots"
# The hints that users of the published tools rely on. What is in neither set changes something and destroys nothing.
READS = words(
    "health_overview list_nodes get_node_status list_vms get_vm_status list_snapshots list_backups list_backup_jobs list_storage",
    "storage_usage_detail list_cluster_storage list_isos list_disks get_disk_smart list_lvm list_lvm_thin list_zfs get_zfs_pool",
    "list_tasks get_task_log zfs_list_datasets zfs_list_snapshots zfs_pool_status vm_list_hosts vm_read_file host_read_exec",
    "ct_log_tail audit_verify",
)
DESTROYS = words(
    "vm_power resize_vm snapshot restore_backup disk_prepare lvm_manage zfs_pool_manage storage_config zfs_dataset zfs_property",
    "zfs_destroy_snapshots_by_pattern move_disk zfs_send vm_exec host_exec lxc_exec ct_service_action",
    "cleanup_vzdump_snapshots",
)
CREATES = words(
    "create_vm create_container create_backup clone_vm zfs_create_snapshot zfs_scrub",
)
# What a model knows by the name alone; the gates, paging and waiting stand in the instructions.
SELF_EVIDENT = words(
    "confirm dry_run i_understand_data_loss reason wait_seconds response_format fields limit cursor",
    "node vmid vm_type guest_type name status action storage errors_only upid snapname description command service timeout",
    "mode compress notes protected start start_after_restore disk_storage disk_gb cores sockets memory_mb swap_mb ostype bridge hostname",
    "gateway password ssh_public_key unprivileged nesting target_storage target_node content top_n lines max_chars max_bytes",
    "include_partitions healthonly include_snapshots property value dataset snapname pool devices raidlevel ashift compression add_storage",
    "parents cleanup_config recursive stop verbose which via format sparse contains max_delete min_age_minutes target_file target_dataset",
)


@cache
def listed() -> dict[str, dict[str, Any]]:
    """Each tool as it goes over the wire."""
    app = App(Settings())
    tools = [published(record, app) for record in registry.all_tools()]
    return {
        tool.name.removeprefix("proxmox_"): {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.parameters,
            "annotations": tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else None,
        }
        for tool in tools
    }


def names() -> list[str]:
    return [record.name.removeprefix("proxmox_") for record in registry.all_tools()]


def walk(node: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield path, key, value
            yield from walk(value, f"{path}/{key}")
    elif isinstance(node, list):
        for item in node:
            yield from walk(item, path)


@pytest.mark.parametrize("name", names())
def test_each_tool_is_the_one_on_file(name: str) -> None:
    path = SNAPSHOTS / f"{name}.json"
    found = json.dumps(listed()[name], indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"no snapshot of {name}; write it with UPDATE_SNAPSHOTS=1"
    assert json.loads(found) == json.loads(path.read_text(encoding="utf-8")), "meant? write it anew with UPDATE_SNAPSHOTS=1"


def test_no_snapshot_is_left_of_a_tool_that_is_gone() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == set(names())


def test_the_hints_are_those_that_were_published() -> None:
    assert set(names()) == READS | DESTROYS | CREATES
    for name, tool in listed().items():
        hints = tool["annotations"]
        assert hints["readOnlyHint"] is (name in READS), name
        assert hints["openWorldHint"] is False
        if name in READS:
            assert "destructiveHint" not in hints
        else:
            assert hints["destructiveHint"] is (name in DESTROYS), name


def test_what_can_destroy_data_says_so_and_asks_for_the_second_flag() -> None:
    for record in registry.all_tools():
        gated = "i_understand_data_loss" in record.model.model_fields
        assert gated == (record.risk is Risk.DATA_LOSS), record.name
        assert not (gated and not record.destructive), record.name
        assert ("confirm" in record.model.model_fields) == (not record.read_only), record.name
        assert ("dry_run" in record.model.model_fields) == (not record.read_only), record.name


@pytest.mark.parametrize("name", names())
def test_a_tool_is_named_titled_and_described_in_a_sentence(name: str) -> None:
    tool = listed()[name]
    assert re.fullmatch(r"proxmox_[a-z0-9_]+", tool["name"])
    assert len(tool["name"]) <= 45
    assert 3 <= len(tool["title"]) <= 40
    said = tool["description"]
    assert said.endswith(".")
    assert said == said.strip()
    assert "\n" not in said
    assert 20 <= len(said) <= 160
    # one sentence; a second is a limit that a model would guess wrong
    assert len(re.findall(r"[.!?](?:\s|$)", said.replace(" ...", ""))) <= 2


@pytest.mark.parametrize("name", names())
def test_every_argument_that_is_not_self_evident_is_described(name: str) -> None:
    properties = listed()[name]["inputSchema"]["properties"]
    silent = {argument for argument, spec in properties.items() if "description" not in spec}
    assert silent - SELF_EVIDENT == set()
    for argument, spec in properties.items():
        said = spec.get("description", "x")
        assert 1 <= len(said) <= 90, argument
        assert not said.endswith(".") or said.endswith("..."), argument


@pytest.mark.parametrize("name", names())
def test_a_schema_is_closed_flat_and_plain(name: str) -> None:
    schema = listed()[name]["inputSchema"]
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert schema["type"] == "object"
    assert list(schema) in (["type", "properties", "additionalProperties"], ["type", "properties", "required", "additionalProperties"])
    assert set(schema.get("required", ())) <= set(schema["properties"])
    for path, key, value in walk(schema["properties"]):
        assert key not in ("$ref", "$defs", "allOf", "oneOf"), path
        assert key != "title" or not isinstance(value, str), path
        assert key != "default" or value is not None, path
        if key == "anyOf":
            assert {"type": "null"} not in value, path
    for argument, spec in schema["properties"].items():
        assert "type" in spec, argument  # some clients' translations need it beside an enum
        assert spec["type"] != "array" or "items" in spec, argument


@pytest.mark.parametrize("name", names())
def test_what_the_schema_advertises_the_model_accepts(name: str) -> None:
    """Every advertised default and enumerated value."""
    record = next(tool for tool in registry.all_tools() if tool.name == f"proxmox_{name}")
    schema = listed()[name]["inputSchema"]
    for argument, spec in schema["properties"].items():
        for value in [*spec.get("enum", ()), *([spec["default"]] if "default" in spec else [])]:
            field = record.model.model_fields[argument]
            TypeAdapter(Annotated[(field.annotation, "", *field.metadata)]).validate_python(value)
