"""What a client of version 1.x may send: every argument, every value of an enum, in one call; nothing is newly required."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.arguments import parse
from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.registry import all_tools
from tests.pve_schema import SHARED
from tests.tools.changes import changing

pytestmark = pytest.mark.anyio
CONTRACT = SHARED / "contract" / "contract.json"
needs_contract = pytest.mark.skipif(not CONTRACT.is_file(), reason="../shared/contract/contract.json is not here")
SAID: dict[str, Any] = {
    "node": "pve1",
    "vmid": 101,
    "newid": 300,
    "storage": "local",
    "disk": "/dev/sdb",
    "name": "tank",
    "snapname": "snap1",
    "archive": "nas:backup/vzdump-qemu-104-2026_11_30-03_38_21.vma.zst",
    "ostemplate": "local:vztmpl/debian-13.tar.zst",
    "upid": "UPID:pve1:00001001:0006F32D:6B0CEFAD:vzdump:100:root@pam:",
    "disk_storage": "local-lvm",
    "target_storage": "nas",
    "iso": "nas:iso/debian-13.iso",
    "hostname": "ct",
    "ip": "10.77.0.5/24",
    "gateway": "10.77.0.1",
    "password": "hunter22",
    "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUBLICPUBLICPUBLICPUBLICPUBLICPUBLICPUBL ops@lab",
    "device": "/dev/sdb",
    "devices": ["/dev/sdb"],
    "volume_group": "pve",
    "pool": "tank",
    "path": "/srv/x",
    "content": "images",
    "nodes": "pve1",
    "properties": {"compression": "lz4"},
    "property": "compression",
    "dataset": "tank/data",
    "pattern": "auto*",
    "contains": "auto",
    "source": "tank/data@a",
    "target_file": "/dumps/x",
    "incremental_from": "tank/data@b",
    "alias": "web",
    "command": "uptime",
    "service": "nginx",
    "grep": "x",
    "typefilter": "vzdump",
    "fields": ["name"],
    "content_filter": "images",
    "description": "d",
    "uuid": "1b6adfab-a1e5-4627-a32a-6b2548fe0df3",
    "disk_gb": 8,
    "action": "status",
}
DISKS = {"single": 1, "mirror": 2, "raid10": 4, "raidz": 3, "raidz2": 4, "raidz3": 5, "draid": 3, "draid2": 4, "draid3": 5}


def contract() -> dict[str, dict[str, Any]]:
    found = json.loads(CONTRACT.read_text()) if CONTRACT.is_file() else {}
    return {name: tool["params"] for name, tool in found.items()}


def full(params: dict[str, Any]) -> dict[str, Any]:
    """A value for each argument: a sensible one, else its default, else its first choice."""

    def value(name: str, spec: dict[str, Any]) -> Any:
        if "enum" in spec:
            return spec["enum"][0]
        return SAID.get(name, spec.get("default", spec.get("minimum", {"boolean": True, "string": "x"}.get(spec["type"]))))

    return {name: value(name, spec) for name, spec in params.items()}


def calls(name: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The full set, once for each value of each enum and each limit of a number."""
    base = full(params)
    if name == "proxmox_move_disk":
        base["disk"] = "scsi0"
    if name == "proxmox_zfs_send":
        base |= {"target_file": "/dumps/x"}
        del base["target_dataset"]  # one of the two
    if name == "proxmox_clone_vm":
        base["full"] = True  # a linked clone stays where its template is
    if name == "proxmox_zfs_property":
        del base["value"]  # of action=set
    yield base
    for argument, spec in params.items():
        values = [*spec.get("enum", ()), *(spec[limit] for limit in ("minimum", "maximum") if limit in spec)]
        values += [True, False] if spec["type"] == "boolean" else []
        for value in values:
            more: dict[str, Any] = (
                {"devices": [f"/dev/sd{letter}" for letter in "bcdef"[: DISKS[value]]]} if argument == "raidlevel" else {}
            )
            more |= {"value": "lz4"} if name == "proxmox_zfs_property" and value == "set" else {}
            if name == "proxmox_clone_vm" and (argument, value) == ("full", False):
                more = {"target_storage": None}
            yield {**base, argument: value, **more}


@needs_contract
@pytest.mark.parametrize("name", sorted(contract()))
def test_every_published_argument_and_value_is_taken(name: str) -> None:
    model = next(tool.model for tool in all_tools() if tool.name == name)
    for arguments in calls(name, contract()[name]):
        parse(model, arguments)
        parse(model, {"params": arguments})
        parse(model, {"params": json.dumps(arguments)})
        as_text = {key: json.dumps(value) if isinstance(value, list | dict) else value for key, value in arguments.items()}
        parse(model, as_text)


@needs_contract
@pytest.mark.parametrize("name", sorted(contract()))
def test_nothing_is_newly_required(name: str) -> None:
    model = next(tool.model for tool in all_tools() if tool.name == name)
    params = contract()[name]
    required = {argument for argument, field in model.model_fields.items() if field.is_required()}
    assert required <= {argument for argument, spec in params.items() if spec.get("required")}


async def test_an_argument_of_another_action_is_taken_and_said_to_do_nothing(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        given: dict[str, Any] = {
            "vmid": 101,
            "action": "delete",
            "snapname": "nightly",
            "description": "old",
            "force": False,
            "dry_run": True,
        }
        text = await world.call("snapshot", **given)
        assert "1. DELETE /nodes/pve1/qemu/101/snapshot/nightly\n" in text
        assert text.endswith("note: description is not used by action=delete")
        text = await world.call("storage_config", action="remove", storage="usb", path="/mnt/usb", content="backup", dry_run=True)
        assert "note: path is not used by action=remove\nnote: content is not used by action=remove" in text


def test_a_value_to_set_is_never_taken_for_a_read() -> None:
    model = next(tool.model for tool in all_tools() if tool.name == "proxmox_zfs_property")
    with pytest.raises(InvalidArgument, match="value is for action=set"):
        parse(model, {"name": "tank/data", "property": "quota", "value": "10G"})
