"""What holds for each of the 13 changing API tools and both kinds of guests: the gates, the exact requests, the record, the hints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import audit, pipeline, preview
from proxmox_mcp.app import Call, Stamp
from proxmox_mcp.arguments import parse
from proxmox_mcp.errors import InvalidArgument, Refused
from proxmox_mcp.plan import ApiCall, Plan, Risk
from tests.piped import FakePerson, records
from tests.pve_schema import SHARED, validator
from tests.tools.changes import Changes, changing, tool, tools

pytestmark = pytest.mark.anyio
DIGEST = "42225a9bd4188db3870afad2c51c3f010157dbe9"
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
VM_BACKUP = "nas:backup/vzdump-qemu-300-2026_03_01-02_00_00.vma.zst"
CT_BACKUP = "nas:backup/vzdump-lxc-300-2026_03_01-02_00_00.tar.zst"
CT_CONFIG = "arch: amd64\nhostname: old\nrootfs: local-lvm:vm-300-disk-0,size=8G\nunprivileged: 1\n"


@dataclass(frozen=True)
class Case:
    """One change that would work. `sent` are its requests; `asks`: a person is asked although it is no data loss."""

    tool: str
    arguments: dict[str, Any]
    sent: tuple[str, str, dict[str, str]]
    data_loss: bool = False
    asks: bool = False
    task: str = "task"  # "" when it is done once answered
    prepare: Callable[[Changes], None] = field(default=lambda _: None)

    @property
    def flags(self) -> list[str]:
        return ["confirm", "i_understand_data_loss"] if self.data_loss else ["confirm"]

    @property
    def opened(self) -> dict[str, bool]:
        return dict.fromkeys(self.flags, True)

    def __str__(self) -> str:
        what = self.arguments.get("action") or ""
        return "-".join(filter(None, (self.tool, str(what), self.sent[1].split("/")[-1], str(self.arguments.get("vmid", "")))))


def ct_archive(world: Changes) -> None:
    world.api.on("GET", "/nodes/{node}/vzdump/extractconfig", CT_CONFIG)


def stopped(vmid: int) -> Callable[[Changes], None]:
    def prepare(world: Changes) -> None:
        world.api.world.guests[vmid].status = "stopped"

    return prepare


def unsnapped(vmid: int) -> Callable[[Changes], None]:
    def prepare(world: Changes) -> None:
        world.api.world.guests[vmid].snapshots = []
        world.api.world.storages["second"] = {**world.api.world.storages["local-lvm"], "storage": "second", "thinpool": "more"}
        world.api.world.usage = lambda storage: (1, 1 << 40)

    return prepare


def both(*steps: Callable[[Changes], None]) -> Callable[[Changes], None]:
    def prepare(world: Changes) -> None:
        for step in steps:
            step(world)

    return prepare


def no_guests(world: Changes) -> None:
    """Nobody lives anywhere, and the node does not boot from what is destroyed."""
    world.api.world.guests.clear()
    world.api.world.volumes.clear()


P1 = "/nodes/pve1"
CASES = [
    Case("vm_power", {"vmid": 102, "action": "start"}, ("POST", f"{P1}/qemu/102/status/start", {})),
    Case("vm_power", {"vmid": 206, "action": "start"}, ("POST", f"{P1}/lxc/206/status/start", {})),
    Case("vm_power", {"vmid": 101, "action": "shutdown", "timeout": 90}, ("POST", f"{P1}/qemu/101/status/shutdown", {"timeout": "90"})),
    Case("vm_power", {"vmid": 205, "action": "reboot"}, ("POST", f"{P1}/lxc/205/status/reboot", {})),
    Case("vm_power", {"vmid": 101, "action": "stop"}, ("POST", f"{P1}/qemu/101/status/stop", {}), asks=True),
    Case("vm_power", {"vmid": 205, "action": "stop"}, ("POST", f"{P1}/lxc/205/status/stop", {}), asks=True),
    Case(
        "resize_vm",
        {"vmid": 101, "memory_mb": 4096, "cores": 4},
        ("PUT", f"{P1}/qemu/101/config", {"memory": "4096", "cores": "4", "digest": DIGEST}),
        task="",
    ),
    Case("resize_vm", {"vmid": 205, "cores": 3}, ("PUT", f"{P1}/lxc/205/config", {"cores": "3", "digest": DIGEST}), task=""),
    Case(
        "create_vm",
        {"vmid": 300, "node": "pve1", "name": "new", "disk_storage": "local-lvm", "disk_gb": 32},
        (
            "POST",
            f"{P1}/qemu",
            {
                "vmid": "300",
                "name": "new",
                "cores": "2",
                "sockets": "1",
                "memory": "2048",
                "ostype": "l26",
                "scsihw": "virtio-scsi-single",
                "scsi0": "local-lvm:32,iothread=1",
                "net0": "virtio,bridge=vmbr0",
                "boot": "order=scsi0;net0",
            },
        ),
    ),
    Case(
        "create_container",
        {"vmid": 301, "node": "pve1", "ostemplate": TEMPLATE, "disk_storage": "local-lvm", "hostname": "ct"},
        (
            "POST",
            f"{P1}/lxc",
            {
                "vmid": "301",
                "ostemplate": TEMPLATE,
                "hostname": "ct",
                "cores": "1",
                "memory": "512",
                "swap": "512",
                "rootfs": "local-lvm:8",
                "net0": "name=eth0,bridge=vmbr0,ip=dhcp",
                "unprivileged": "1",
            },
        ),
    ),
    Case("clone_vm", {"vmid": 900, "newid": 302}, ("POST", f"{P1}/qemu/900/clone", {"newid": "302", "full": "0"})),
    Case(
        "clone_vm",
        {"vmid": 206, "newid": 303, "name": "copy"},
        ("POST", f"{P1}/lxc/206/clone", {"newid": "303", "hostname": "copy", "full": "1"}),
    ),
    Case(
        "move_disk",
        {"vmid": 101, "disk": "scsi0", "target_storage": "second"},
        ("POST", f"{P1}/qemu/101/move_disk", {"disk": "scsi0", "storage": "second", "delete": "1", "digest": DIGEST}),
        asks=True,
        prepare=unsnapped(101),
    ),
    Case(
        "move_disk",
        {"vmid": 206, "disk": "rootfs", "target_storage": "second", "delete_source": False},
        ("POST", f"{P1}/lxc/206/move_volume", {"volume": "rootfs", "storage": "second", "digest": DIGEST}),
        prepare=unsnapped(206),
    ),
    Case(
        "snapshot",
        {"vmid": 101, "action": "create", "snapname": "fresh", "description": "Größe; a=b"},
        ("POST", f"{P1}/qemu/101/snapshot", {"snapname": "fresh", "description": "Größe; a=b"}),
    ),
    Case("snapshot", {"vmid": 205, "action": "create", "snapname": "fresh"}, ("POST", f"{P1}/lxc/205/snapshot", {"snapname": "fresh"})),
    Case(
        "snapshot",
        {"vmid": 101, "action": "rollback", "snapname": "nightly"},
        ("POST", f"{P1}/qemu/101/snapshot/nightly/rollback", {}),
        asks=True,
    ),
    Case(
        "snapshot",
        {"vmid": 205, "action": "rollback", "snapname": "nightly"},
        ("POST", f"{P1}/lxc/205/snapshot/nightly/rollback", {}),
        asks=True,
    ),
    Case(
        "snapshot",
        {"vmid": 101, "action": "delete", "snapname": "nightly"},
        ("DELETE", f"{P1}/qemu/101/snapshot/nightly", {}),
        data_loss=True,
    ),
    Case(
        "snapshot",
        {"vmid": 205, "action": "delete", "snapname": "nightly", "force": True},
        ("DELETE", f"{P1}/lxc/205/snapshot/nightly", {"force": "1"}),
        data_loss=True,
    ),
    Case(
        "create_backup",
        {"vmid": 103, "storage": "nas"},
        ("POST", "/nodes/pve2/vzdump", {"vmid": "103", "storage": "nas", "mode": "snapshot", "compress": "zstd", "remove": "0"}),
    ),
    Case(
        "create_backup",
        {"vmid": 205, "compress": "none", "mode": "suspend", "protected": True, "notes": "first\nsecond"},
        (
            "POST",
            f"{P1}/vzdump",
            {
                "vmid": "205",
                "storage": "local",
                "mode": "suspend",
                "compress": "0",
                "remove": "0",
                "protected": "1",
                "notes-template": "first\\nsecond",
            },
        ),
    ),
    Case(
        "restore_backup",
        {"vmid": 300, "archive": VM_BACKUP, "storage": "local-lvm", "node": "pve1"},
        ("POST", f"{P1}/qemu", {"vmid": "300", "archive": VM_BACKUP, "storage": "local-lvm"}),
    ),
    Case(
        "restore_backup",
        {"vmid": 300, "archive": CT_BACKUP, "storage": "local-lvm", "node": "pve1"},
        (
            "POST",
            f"{P1}/lxc",
            {"vmid": "300", "ostemplate": CT_BACKUP, "restore": "1", "storage": "local-lvm", "unprivileged": "1"},
        ),
        prepare=ct_archive,
    ),
    Case(
        "restore_backup",
        {"vmid": 102, "archive": VM_BACKUP, "force": True},
        ("POST", f"{P1}/qemu", {"vmid": "102", "archive": VM_BACKUP, "force": "1"}),
        data_loss=True,
    ),
    Case(
        "restore_backup",
        {"vmid": 206, "archive": CT_BACKUP, "force": True, "start_after_restore": True},
        (
            "POST",
            f"{P1}/lxc",
            {
                "vmid": "206",
                "ostemplate": CT_BACKUP,
                "restore": "1",
                "storage": "local-lvm",
                "force": "1",
                "unprivileged": "1",
                "start": "1",
            },
        ),
        data_loss=True,
        prepare=ct_archive,
    ),
    Case(
        "disk_prepare",
        {"node": "pve1", "action": "init_gpt", "disk": "sdc"},
        ("POST", f"{P1}/disks/initgpt", {"disk": "/dev/sdc"}),
        data_loss=True,
    ),
    Case(
        "lvm_manage",
        {"node": "pve1", "action": "create_vg", "name": "vg1", "device": "/dev/sdc"},
        ("POST", f"{P1}/disks/lvm", {"name": "vg1", "device": "/dev/sdc", "add_storage": "1"}),
    ),
    Case(
        "lvm_manage",
        {"node": "pve1", "action": "create_thin", "name": "thin1", "device": "sdc", "add_storage": False},
        ("POST", f"{P1}/disks/lvmthin", {"name": "thin1", "device": "/dev/sdc", "add_storage": "0"}),
    ),
    Case(
        "lvm_manage",
        {"node": "pve1", "action": "destroy_vg", "name": "pve"},
        ("DELETE", f"{P1}/disks/lvm/pve", {"cleanup-config": "1", "cleanup-disks": "0"}),
        data_loss=True,
        prepare=no_guests,
    ),
    Case(
        "lvm_manage",
        {"node": "pve1", "action": "destroy_thin", "name": "data", "cleanup_config": False},
        ("DELETE", f"{P1}/disks/lvmthin/data", {"volume-group": "pve", "cleanup-config": "0", "cleanup-disks": "0"}),
        data_loss=True,
        prepare=no_guests,
    ),
    Case(
        "zfs_pool_manage",
        {"node": "pve1", "action": "create", "name": "fresh", "devices": ["/dev/sdc"]},
        (
            "POST",
            f"{P1}/disks/zfs",
            {"name": "fresh", "devices": "/dev/sdc", "raidlevel": "single", "ashift": "12", "compression": "lz4", "add_storage": "1"},
        ),
    ),
    Case(
        "zfs_pool_manage",
        {"node": "pve2", "action": "destroy", "name": "tank", "cleanup_disks": True},
        ("DELETE", "/nodes/pve2/disks/zfs/tank", {"cleanup-config": "1", "cleanup-disks": "1"}),
        data_loss=True,
    ),
    Case(
        "storage_config",
        {"action": "add_zfs", "storage": "more", "pool": "tank/vm", "nodes": "pve2"},
        (
            "POST",
            "/storage",
            {"storage": "more", "type": "zfspool", "pool": "tank/vm", "content": "images,rootdir", "sparse": "1", "nodes": "pve2"},
        ),
        task="",
    ),
    Case(
        "storage_config",
        {"action": "add_dir", "storage": "dump", "path": "/srv/dump", "content": "backup iso"},
        ("POST", "/storage", {"storage": "dump", "type": "dir", "path": "/srv/dump", "content": "backup,iso"}),
        task="",
    ),
    Case("storage_config", {"action": "remove", "storage": "fast"}, ("DELETE", "/storage/fast", {}), task=""),
]


def ready(case: Case, world: Changes) -> None:
    case.prepare(world)
    method, path, _ = case.sent
    if case.task:
        world.takes(method, path, case.task)
    else:
        world.api.on(method, path, None)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_without_its_flags_it_is_shown_and_nothing_is_written(case: Case, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        ready(case, world)
        shown = await world.call(case.tool, **case.arguments, dry_run=True)
        assert shown.startswith("Dry run, nothing was changed.\n")
        assert f"1. {case.sent[0]} {case.sent[1]}" in shown
        assert "Stands in the way" not in shown
        assert not world.log
        told = await world.refusal(case.tool, **case.arguments)
        assert told.startswith(f"Nothing was changed: {' and '.join(f'{flag}=true' for flag in case.flags)} missing. It would do:\n")
        assert told.partition("It would do:\n")[2] == shown.partition("\n")[2]
        for missing in case.flags[: 2 * case.data_loss]:
            given = {flag: True for flag in case.flags if flag != missing}
            assert f"Nothing was changed: {missing}=true missing." in await world.refusal(case.tool, **case.arguments, **given)
        assert {record["event"][:8] for record in world.log} == {"refused:"}
        for word in ("yes", "true", 1):
            with pytest.raises(InvalidArgument, match="true or false"):
                await world.result(case.tool, **case.arguments, **{**case.opened, case.flags[-1]: word})
        assert not world.api.writes


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_its_plan_is_the_same_in_the_same_world_and_one_that_a_token_can_carry_out(case: Case, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        ready(case, world)
        plan = await planned(case, world)
        assert plan == await planned(case, world)
        assert plan.asks == case.asks
        assert plan.risk is (Risk.DATA_LOSS if case.data_loss else Risk.CHANGE)
        assert not plan.obstacles
        for step in plan.steps if validator() is not None else ():
            assert isinstance(step, ApiCall)
            path, params = "/" + "/".join(map(str, step.path)), preview.given(step.params)
            assert validator().check(step.method, path, params) == []
            assert not validator().root_only(step.method, path, params)
        audits = dict.fromkeys(("Datastore.Audit", "Sys.Audit", "VM.Audit", "SDN.Audit"), 1)
        world.grant(dict.fromkeys(("/", "/vms", "/storage", "/nodes", "/sdn"), audits))
        lacking = (await planned(case, world)).obstacles
        assert lacking
        assert all(line.startswith("the token lacks ") for line in lacking)
        with pytest.raises(Refused, match="the token lacks"):
            await world.result(case.tool, **case.arguments, **case.opened)
        assert not world.api.writes


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_with_all_flags_exactly_the_previewed_requests_are_sent_and_recorded(case: Case, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        ready(case, world)
        before = await planned(case, world)
        result = await world.result(case.tool, **case.arguments, **case.opened, reason="a test")
        assert result.text.startswith("Done: "), result.text
        assert world.sent == [case.sent]
        assert [preview.step_line(step) for step in before.steps] == [preview.step_line(step) for step in steps_of(world, before)]
        intent, outcome = world.log
        assert intent["tool"] == f"proxmox_{case.tool}"
        assert intent["reason"] == "a test"
        assert intent["flags"] == [*case.flags, *(["force"] if case.arguments.get("force") else [])]
        assert intent["risk"] == ("data loss" if case.data_loss else "change")
        assert [(step["method"], step["path"]) for step in intent["steps"]] == [case.sent[:2]]
        assert outcome["state"] == "ok"
        assert bool(outcome["steps"][0]["upid"]) == bool(case.task)
        assert audit.verify(tmp_path / "audit", "api", world.app.audit_keys).verdict == "INTACT"


async def planned(case: Case, world: Changes) -> Plan:
    record = tool(case.tool)
    plan = await record.function(parse(record.model, case.arguments), Call(world.app, Stamp(record.name)))
    assert isinstance(plan, Plan)
    return plan


def steps_of(world: Changes, plan: Plan) -> list[ApiCall]:
    """The recorded requests as steps, with the types of the plan's own values."""
    sent = []
    for request, step in zip(world.api.writes, plan.steps, strict=True):
        assert isinstance(step, ApiCall)
        given = {name: value for name, value in step.params.items() if value is not None}
        assert {name: str(value) for name, value in given.items()} == request.params
        sent.append(ApiCall(request.method, tuple(request.path.strip("/").split("/")), given))  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize("case", [case for case in CASES if case.data_loss or case.asks], ids=str)
async def test_a_no_changes_nothing_and_a_yes_does_it_once(case: Case, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        ready(case, world)
        world.app.settings = _asking(world)
        with pytest.raises(Refused, match="did not approve"):
            await world.result(case.tool, **case.arguments, **case.opened, person=FakePerson(says=False))
        assert not world.api.writes
        person = FakePerson(says=True)
        await world.result(case.tool, **case.arguments, **case.opened, person=person)
        assert len(person.asked) == 1
        assert world.sent == [case.sent]
        assert records(tmp_path)[-2]["approved"] == "person"


def _asking(world: Changes) -> Any:
    from dataclasses import replace

    return replace(world.app.settings, approval="data_loss")


async def test_read_only_mode_refuses_each_whatever_the_flags(tmp_path: Path) -> None:
    async with changing(tmp_path, read_only=True) as world:
        for case in CASES:
            for more in ({}, {"dry_run": True}, case.opened):
                with pytest.raises(Refused, match="read-only mode"):
                    await world.result(case.tool, **case.arguments, **more)
        assert not world.api.requests


@pytest.mark.parametrize("case", [case for case in CASES if case.task], ids=str)
async def test_a_task_that_fails_warns_or_goes_on_is_told_apart(case: Case, tmp_path: Path) -> None:
    method, path, _ = case.sent
    async with changing(tmp_path) as world:
        case.prepare(world)
        log = ["WARN: take note", "ERROR: it went wrong"]
        for status, opening, failed, quoted in (
            ("WARNINGS: 1", "Done, with warnings: ", False, "take note"),
            ("it went wrong", "Failed: ", True, "it went wrong"),
        ):
            world.takes(method, path, status=status, log=log)
            found = await world.result(case.tool, **case.arguments, **case.opened)
            assert found.text.startswith(opening)
            assert found.failed is failed
            assert quoted in found.text
        world.takes(method, path, ends=False)
        found = await world.result(case.tool, **case.arguments, **case.opened)
        assert found.text.startswith("Started, still running: ")
        assert "proxmox_get_task_log upid=UPID:" in found.text
        assert not found.failed
        assert world.log[-1]["state"] == "running"
        assert world.sent == [case.sent] * 3


def test_the_hints_are_those_of_the_contract() -> None:
    if not (SHARED / "contract" / "contract.json").is_file():
        pytest.skip("../shared/contract/contract.json is not here")
    contract = json.loads((SHARED / "contract" / "contract.json").read_text())
    assert len(tools()) == 13
    for name, record in tools().items():
        want = contract[f"proxmox_{name}"]
        assert not record.read_only
        assert record.destructive is want["destructive"]
        fields = record.model.model_fields
        assert set(want["params"]) <= set(fields)
        required = {argument for argument, info in fields.items() if info.is_required()}
        assert required <= {argument for argument, facts in want["params"].items() if facts.get("required")}


def test_every_tool_has_a_case_for_each_kind_of_guest_it_serves() -> None:
    assert {case.tool for case in CASES} == set(tools())
    for name in ("vm_power", "resize_vm", "clone_vm", "move_disk", "snapshot", "create_backup", "restore_backup"):
        vmids = {case.arguments["vmid"] for case in CASES if case.tool == name}
        paths = " ".join(case.sent[1] for case in CASES if case.tool == name)
        assert ("/qemu" in paths and "/lxc" in paths) or {103, 205} <= vmids


async def test_a_misspelt_safety_argument_sends_nothing(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for case in CASES:
            with pytest.raises(InvalidArgument, match="did you mean dry_run"):
                await world.result(case.tool, **case.arguments, **case.opened, dryrun=True)
        assert not world.api.requests


def test_the_pipeline_is_the_only_way_in() -> None:
    """No tool of these reads a gate itself."""
    folder = Path(pipeline.__file__).parent / "tools"
    for module in {record.function.__module__.rpartition(".")[2] for record in tools().values()}:
        text = (folder / f"{module}.py").read_text()
        assert "args.confirm" not in text
        assert "args.dry_run" not in text
        assert "i_understand_data_loss" not in text
