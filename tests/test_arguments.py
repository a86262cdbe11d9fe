"""Arguments: closed, strict where it matters, each fault named."""

from __future__ import annotations

import time
from typing import Any, Literal

import pytest

from proxmox_mcp.arguments import (
    Changing,
    Destroying,
    JsonObject,
    Listing,
    NodeName,
    StorageId,
    Vmid,
    VolumeId,
    Waiting,
    parse,
    schema,
)
from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.registry import Tool, all_tools


class Guests(Listing):
    node: NodeName | None = None
    vmid: Vmid | None = None
    status: Literal["running", "stopped"] | None = None


class Wipe(Destroying, Waiting):
    storage: StorageId
    volume: VolumeId | None = None
    properties: JsonObject | None = None


def test_g03_schemas_are_flat_closed_and_lean() -> None:
    made = schema(Wipe)
    assert made["type"] == "object"
    assert made["additionalProperties"] is False
    assert made["required"] == ["storage"]
    assert set(made["properties"]) == set(Wipe.model_fields)
    text = str(made)
    for noise in ("$ref", "$defs", "anyOf", "title", "None", "default"):
        assert noise not in text
    assert next(iter(made["properties"])) == "storage"


@pytest.mark.parametrize("wrapped", [{"params": {"vmid": 101}}, {"params": '{"vmid":101}'}])
def test_g03_the_old_params_wrapper_still_works(wrapped: dict[str, object]) -> None:
    assert parse(Guests, wrapped) == Guests(vmid=101)


def test_g03_a_wrapper_that_holds_no_object_shows_the_flat_form() -> None:
    with pytest.raises(InvalidArgument, match="flat"):
        parse(Guests, {"params": "vmid=101"})


@pytest.mark.parametrize(
    ("given", "near"),
    [({"dryrun": True}, "dry_run"), ({"i_understand_dataloss": True}, "i_understand_data_loss"), ({"confrim": True}, "confirm")],
)
def test_g07_a_misspelt_argument_is_refused_with_the_closest_known_one(given: dict[str, object], near: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse(Wipe, {"storage": "nas", **given})
    assert next(iter(given)) in refused.value.argument
    assert f"did you mean {near}?" in str(refused.value)


@pytest.mark.parametrize(
    ("tool", "given", "wrong"),
    [
        ("proxmox_get_vm_status", {"name": "web01"}, "node"),  # which a guest's name is not
        ("proxmox_zfs_pool_manage", {"action": "create", "node": "pve1", "name": "tank", "disks": ["/dev/sdb"]}, "cleanup_disks"),
        ("proxmox_vm_power", {"action": "start", "vmid": 101, "vm_id": 101}, "vmid"),  # given already
    ],
)
def test_what_is_only_a_little_alike_or_given_already_is_not_suggested(tool: str, given: dict[str, object], wrong: str) -> None:
    (record,) = (record for record in all_tools() if record.name == tool)
    with pytest.raises(InvalidArgument) as refused:
        parse(record.model, given)
    assert f"did you mean {wrong}" not in str(refused.value)
    assert f"unknown argument; known: {', '.join(schema(record.model)['properties'])}" in str(refused.value)


@pytest.mark.parametrize("value", ["yes", "true", 1, "1", 1.0, None, [True]])
@pytest.mark.parametrize("gate", ["confirm", "dry_run"])
def test_gates_take_real_booleans_only(gate: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=gate):
        parse(Changing, {gate: value})


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse(Guests, {"vmid": 7, "status": "paused", "node": "../x"})
    for name in ("vmid", "status", "node"):
        assert name in refused.value.argument
    assert "../x" not in str(refused.value)


def test_a_fault_is_told_in_one_sentence() -> None:
    from proxmox_mcp.tools.vm_power import ResizeVm

    for given, told in (
        ({"vmid": 7, "cores": 2}, "Invalid argument vmid: must be between 100 and 999999999"),
        ({"cores": 2}, "Invalid argument vmid: is required"),
        ({"vmid": 101}, "Invalid arguments: give memory_mb, cores or both"),
        ({"cores": "x"}, "Invalid arguments: vmid: is required; cores: must be a whole number"),
        ({"vmid": "web01"}, "Invalid argument vmid: must be a whole number; proxmox_list_vms name=... finds it"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            parse(ResizeVm, given)
        assert str(refused.value).startswith(told)


def test_arrays_and_objects_sent_as_json_text_are_accepted() -> None:
    for fields in ('["vmid","name"]', "vmid,name", " vmid, name,"):
        assert parse(Guests, {"fields": fields}).fields == ["vmid", "name"]  # type: ignore[attr-defined]
    assert parse(Wipe, {"storage": "nas", "properties": '{"a":"b"}'}).properties == {"a": "b"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("seconds", [0, 0.5, 900, 10_000])
def test_wait_seconds_takes_any_number_from_zero_on(seconds: float) -> None:
    assert parse(Wipe, {"storage": "nas", "wait_seconds": seconds}).wait_seconds == seconds  # type: ignore[attr-defined]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_wait_seconds_refuses_what_is_no_duration(seconds: float) -> None:
    with pytest.raises(InvalidArgument, match="wait_seconds"):
        parse(Wipe, {"storage": "nas", "wait_seconds": seconds})


@pytest.mark.parametrize("node", ["pve1", "PVE1", "pve1.lan", "a", "node-7"])
def test_node_names(node: str) -> None:
    assert parse(Guests, {"node": node}).node == node  # type: ignore[attr-defined]


HOSTILE = [
    "../pve2",
    "pve1/../x",
    "pve1?x=1",
    "pve1#",
    "pve%2f",
    "pve1\r\nX: y",
    "pve\x00",
    "",
    "-pve",
    "pve-",
    "p\u0443e",
    "a" * 65,
    "pve1 ",
    ".",
]


@pytest.mark.parametrize("node", HOSTILE)
def test_hostile_node_names_are_refused(node: str) -> None:
    with pytest.raises(InvalidArgument, match="node"):
        parse(Guests, {"node": node})


@pytest.mark.parametrize(
    "volume",
    [
        "nas:iso/debian-13.iso",
        "local:backup/vzdump-qemu-101-2026_02_28-03_00_00.vma.zst",
        "pbs:backup/vm/101/2026-03-01T01:00:00Z",
        "local-lvm:vm-1-disk-0",
        "nas:iso/Win11_24H2 (1) [x64] R&D.iso",
    ],
)
def test_volume_ids(volume: str) -> None:
    assert parse(Wipe, {"storage": "nas", "volume": volume}).volume == volume  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "volume",
    [
        "nas:../x",
        "nas:iso/../../x",
        "nas:/etc",
        "nas:",
        "iso/x",
        "nas:a//b",
        "nas:iso/..",
        "nas:a\nb",
        "nas:x?y",
        "nas:x#y",
        "nas:x%2f",
        "nas:iso/x.iso,media=disk",
        "nas:iso/x;y",
        "nas:(x)",
    ],
)
def test_hostile_volume_ids_are_refused(volume: str) -> None:
    with pytest.raises(InvalidArgument, match="volume"):
        parse(Wipe, {"storage": "nas", "volume": volume})


def leaned(prop: dict[str, Any]) -> dict[str, Any]:
    """What pydantic's own generator says of an argument, without what `schema` leaves out on purpose."""
    options = [option for option in prop.get("anyOf", ()) if option != {"type": "null"}]
    merged = {**(options[0] if options else {}), **{key: value for key, value in prop.items() if key not in ("anyOf", "title", "default")}}
    if merged.get("type") == "object":
        merged.pop("additionalProperties", None)
    return merged


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_the_schema_says_what_pydantic_would_say(tool: Tool) -> None:
    ours, theirs = schema(tool.model), tool.model.model_json_schema()
    assert ours.get("required") == theirs.get("required")
    assert ours["properties"].keys() == theirs["properties"].keys()
    for name, spec in ours["properties"].items():
        assert {key: value for key, value in spec.items() if key != "default"} == leaned(theirs["properties"][name]), name
        if "default" in spec:
            assert spec["default"] == theirs["properties"][name]["default"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"confirm":false,"confirm":true}', '{"a":{"b":1,"b":2}}'])
def test_json_text_is_an_object_that_says_one_thing_or_it_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse(Wipe, {"storage": "nas", "properties": text})
    assert refused.value.argument == "properties"
    with pytest.raises(InvalidArgument, match="flat"):
        parse(Wipe, {"params": text})


def test_a_truth_value_is_no_number() -> None:
    for name, model in (("vmid", Guests), ("limit", Guests), ("wait_seconds", Wipe)):
        with pytest.raises(InvalidArgument) as refused:
            parse(model, {"storage": "nas", name: True} if model is Wipe else {name: True})
        assert (refused.value.argument, "must be a number" in str(refused.value)) == (name, True)


def test_endless_faults_are_told_in_short_and_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(InvalidArgument) as refused:
        parse(Wipe, {f"wrong{n}": n for n in range(100_000)})
    assert time.monotonic() - began < 5
    assert len(str(refused.value)) < 10_000
    assert str(refused.value).endswith("and 99981 more")


def test_no_list_of_disks_is_endless() -> None:
    (tool,) = (tool for tool in all_tools() if tool.name == "proxmox_zfs_pool_manage")
    with pytest.raises(InvalidArgument, match="at most 256"):
        parse(tool.model, {"action": "create", "name": "tank", "raidlevel": "mirror", "devices": ["sda"] * 257})
