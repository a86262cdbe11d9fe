"""proxmox_snapshot: names by the rule, nothing deleted unasked, the reason where it cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.changes import guest_snapshots
from proxmox_mcp.errors import InvalidArgument
from tests.served_api import Reply, Request
from tests.tools.changes import SNAPSHOTS, Changes, changing

pytestmark = pytest.mark.anyio
YES = {"confirm": True}


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("2026-03-01", "s2026-03-01"),
        ("pre upgrade", "pre_upgrade"),
        ("v1.2", "v1_2"),
        ("güncelleme", "guncelleme"),
        ("a", "sa"),
        ("a" * 41, "a" * 40),
        ("current", "s_current"),
        ("CURRENT", "s_CURRENT"),
        ("пример", "snap"),
        ("../../etc", "etc"),
        ("", "snap"),
    ],
)
async def test_g46_a_bad_name_is_refused_before_any_request_with_the_rule_and_a_proposal(name: str, proposed: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for action in ("create", "rollback", "delete"):
            with pytest.raises(InvalidArgument) as refused:
                await world.result("snapshot", vmid=101, action=action, snapname=name, **YES)
            assert f"e.g. {proposed}" in str(refused.value)
        assert not world.api.requests


@given(st.text(max_size=60))
def test_g46_every_proposal_is_a_name_by_the_rule(name: str) -> None:
    proposed = guest_snapshots.proposal(name)
    assert guest_snapshots.check_name(proposed) == proposed
    assert not guest_snapshots.reserved(proposed, "qemu")
    assert not guest_snapshots.reserved(proposed, "lxc")


@pytest.mark.parametrize(("vmid", "kind", "name", "possible"), [
    (101, "qemu", "pending", False), (205, "lxc", "vzdump", False), (101, "qemu", "vzdump", True), (205, "lxc", "pending", True),
])  # fmt: skip
async def test_g46_reserved_names_are_those_of_the_guests_kind(vmid: int, kind: str, name: str, possible: bool, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        found = await world.obstacles("snapshot", vmid=vmid, action="create", snapname=name)
        assert (found == []) is possible
        if not possible:
            assert f"e.g. s_{name}" in found[0]
            before = len(world.api.requests)
            with pytest.raises(InvalidArgument, match="reserved name"):
                await world.result("snapshot", vmid=vmid, vm_type=kind, action="create", snapname=name, **YES)
            assert len(world.api.requests) == before


async def test_descriptions_arrive_as_they_are(tmp_path: Path) -> None:
    words = "Größe = 5 + 3; a&b % \n次"
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/qemu/101/snapshot")
        await world.call("snapshot", vmid=101, action="create", snapname="fresh", description=words, **YES)
        assert world.sent[0][2] == {"snapname": "fresh", "description": words}


# --- G45


def on_zfs(world: Changes, vmid: int) -> None:
    disk = {101: {"scsi0": "fast:vm-101-disk-0,size=32G"}, 205: {"rootfs": "fast:subvol-205-disk-0,size=8G"}}[vmid]
    world.api.world.storages["fast"]["nodes"] = "pve1,pve2"
    world.config(vmid, **disk)


@pytest.mark.parametrize("vmid", [101, 205])
async def test_g45_on_zfs_newer_snapshots_stand_in_the_way_and_are_named_never_deleted(vmid: int, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        on_zfs(world, vmid)
        (line,) = await world.obstacles("snapshot", vmid=vmid, action="rollback", snapname="before_upgrade")
        assert "newer snapshots stand in the way (nightly)" in line
        assert f"proxmox_snapshot action=delete vmid={vmid} snapname=nightly" in line
        assert "nightly" in await world.refusal("snapshot", vmid=vmid, action="rollback", snapname="before_upgrade", **YES)
        assert await world.obstacles("snapshot", vmid=vmid, action="rollback", snapname="nightly") == []


@pytest.mark.parametrize("storage", [{"type": "lvmthin"}, {"type": "dir", "path": "/x"}, {"type": "rbd"}, {"type": "btrfs", "path": "/x"}])
async def test_g45_storages_that_can_roll_back_further_are_passed_through(storage: dict[str, Any], tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["local-lvm"] = {"storage": "local-lvm", "content": "images,rootdir", **storage}
        assert await world.obstacles("snapshot", vmid=101, action="rollback", snapname="before_upgrade") == []
        world.api.world.storages["local-lvm"]["snapshot-as-volume-chain"] = 1
        assert len(await world.obstacles("snapshot", vmid=101, action="rollback", snapname="before_upgrade")) == 1


async def test_g45_where_only_the_task_finds_out_the_newer_ones_are_named_all_the_same(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        said = "can't rollback, 'before_upgrade' is not most recent snapshot on 'tank:vm-101-disk-0'"
        world.takes("POST", "/nodes/pve1/qemu/101/snapshot/before_upgrade/rollback", status=said)
        found = await world.result("snapshot", vmid=101, action="rollback", snapname="before_upgrade", **YES)
        assert found.failed
        assert said in found.text
        assert "proxmox_snapshot action=delete vmid=101 snapname=nightly" in found.text
        assert [request.method for request in world.api.writes] == ["POST"]


async def test_g45_the_disks_that_count_are_those_in_the_snapshot(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["fast"]["nodes"] = "pve1"
        present = {"name": "web", "scsi0": "fast:vm-101-disk-0,size=32G", "digest": "ab"}

        def config(request: Request) -> dict[str, Any]:
            then = {"scsi0": "local-lvm:vm-101-disk-0", "vmstate": "fast:vm-101-state-before_upgrade"}
            return {**present, **then} if "snapshot" in request.params else present

        world.api.on("GET", "/nodes/pve1/qemu/101/config", config)
        assert await world.obstacles("snapshot", vmid=101, action="rollback", snapname="before_upgrade") == []


async def test_a_storage_out_of_sight_is_a_doubt_not_a_promise(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        del world.api.world.storages["local-lvm"]
        text = await world.call("snapshot", vmid=101, action="rollback", snapname="before_upgrade", dry_run=True)
        assert "not checked: whether storage local-lvm can roll back past the newer snapshots nightly" in text
        assert "Would work." not in text


# --- G47


async def test_g47_a_bind_mount_is_the_reason_and_a_backup_the_alternative(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(205, rootfs="fast:subvol-205-disk-0,size=8G", mp0="/mnt/media,mp=/media")
        world.api.on("GET", "/nodes/pve1/lxc/205/feature", {"hasFeature": 0})
        (line,) = await world.obstacles("snapshot", vmid=205, action="create", snapname="fresh")
        assert "mp0 (/mnt/media) is a directory or device of the host" in line
        assert "rootfs" not in line
        assert line.endswith("a backup can be made instead: proxmox_create_backup vmid=205")


async def test_g47_a_raw_disk_on_a_directory_is_the_reason(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["plain"] = {"storage": "plain", "type": "dir", "path": "/srv", "content": "images"}
        world.config(
            102, scsi0="plain:102/vm-102-disk-0.raw,size=1G", scsi1="plain:102/vm-102-disk-1.qcow2,size=1G", ide2="none,media=cdrom"
        )
        world.api.on("GET", "/nodes/pve1/qemu/102/feature", {"hasFeature": 0})
        (line,) = await world.obstacles("snapshot", vmid=102, action="create", snapname="fresh")
        assert "scsi0 (plain:102/vm-102-disk-0.raw, 1G) is raw on storage plain of type dir" in line
        assert "scsi1" not in line


async def test_g47_a_task_that_finds_out_alone_is_quoted(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.on("GET", "/nodes/pve1/lxc/205/feature", Reply(500, "no"))
        world.takes("POST", "/nodes/pve1/lxc/205/snapshot", status="snapshot feature is not available")
        shown = await world.call("snapshot", vmid=205, action="create", snapname="fresh", dry_run=True)
        assert "not checked: whether it can be snapshotted: no" in shown
        found = await world.result("snapshot", vmid=205, action="create", snapname="fresh", **YES)
        assert "snapshot feature is not available" in found.text
        assert found.failed


# --- G44 and the rest


async def test_g44_the_present_is_no_snapshot_and_an_unfinished_one_cannot_be_returned_to(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.guests[101].snapshots[1]["snapstate"] = "prepare"
        (line,) = await world.obstacles("snapshot", vmid=101, action="rollback", snapname="nightly")
        assert line == "snapshot nightly is unfinished or failed (state prepare)"
        (line,) = await world.obstacles("snapshot", vmid=101, action="rollback", snapname="elsewhere")
        assert line == "VM 101 (web) has no snapshot elsewhere; it has: before_upgrade, nightly"


async def test_what_is_there_already_or_cannot_have_one_is_said_beforehand(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        assert "has a snapshot nightly already" in (await world.obstacles("snapshot", vmid=101, action="create", snapname="nightly"))[0]
        assert "templates take no snapshots" in (await world.obstacles("snapshot", vmid=900, action="create", snapname="fresh"))[0]
        assert "vmstate is for VMs" in (await world.obstacles("snapshot", vmid=205, action="create", snapname="fresh", vmstate=True))[0]
        world.config(101, hostpci0="mapping=gpu")
        assert "(hostpci0)" in (await world.obstacles("snapshot", vmid=101, action="create", snapname="fresh", vmstate=True))[0]
        world.api.world.guests[101].lock = "snapshot-delete"
        assert "locked (snapshot-delete)" in (await world.obstacles("snapshot", vmid=101, action="delete", snapname="nightly"))[0]


async def test_ram_is_saved_only_where_it_is_wished_for(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/qemu/{vmid}/snapshot")
        await world.call("snapshot", vmid=101, action="create", snapname="ram", vmstate=True, **YES)
        await world.call("snapshot", vmid=102, action="create", snapname="cold", **YES)
        assert [sent[2] for sent in world.sent] == [{"snapname": "ram", "vmstate": "1"}, {"snapname": "cold"}]
        assert "the VM is stopped" in await world.call("snapshot", vmid=102, action="create", snapname="x1", vmstate=True, dry_run=True)


async def test_the_answer_says_what_is_left(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:

        def gone(_: Request) -> None:
            world.api.world.guests[101].snapshots = [SNAPSHOTS[0]]

        world.takes("DELETE", "/nodes/pve1/qemu/101/snapshot/nightly", "qmdelsnapshot", effect=gone)
        text = await world.call("snapshot", vmid=101, action="delete", snapname="nightly", i_understand_data_loss=True, **YES)
        assert "\nsnapshots: before_upgrade\n" in text


async def test_g16_a_delete_carries_no_body_and_its_parameters_in_the_query(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("DELETE", "/nodes/pve1/qemu/101/snapshot/nightly")
        await world.call("snapshot", vmid=101, action="delete", snapname="nightly", force=True, i_understand_data_loss=True, **YES)
        (request,) = world.api.writes
        assert request.body == b""
        assert request.headers.get("content-length", "0") == "0"
        assert request.query == {"force": "1"}


async def test_arguments_of_other_actions_are_said_to_do_nothing(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for idle, arguments in (
            ("description", {"action": "rollback", "snapname": "nightly", "description": "x"}),
            ("vmstate", {"action": "delete", "snapname": "nightly", "vmstate": True}),
            ("force", {"action": "create", "snapname": "fresh", "force": True}),
        ):
            text = await world.call("snapshot", vmid=101, **arguments, dry_run=True)
            assert f"note: {idle} is not used by action={arguments['action']}" in text
            assert f"{idle}=" not in text


async def test_a_snapshot_that_vanishes_while_a_person_thinks_ends_it(tmp_path: Path) -> None:
    from dataclasses import replace

    from proxmox_mcp.errors import Refused
    from tests.piped import FakePerson

    async with changing(tmp_path) as world:
        world.app.settings = replace(world.app.settings, approval="data_loss")

        class Slow(FakePerson):
            async def approve(self, plan: Any) -> bool:
                world.api.world.guests[101].snapshots.pop()
                return True

        with pytest.raises(Refused, match="the situation changed"):
            await world.result("snapshot", vmid=101, action="rollback", snapname="before_upgrade", person=Slow(), **YES)
        assert not world.api.writes
