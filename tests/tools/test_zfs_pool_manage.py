"""proxmox_zfs_pool_manage: enough unused disks of the right number; a destroyed pool's guests, backups and storages are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument
from tests.tools.changes import Changes, changing

pytestmark = pytest.mark.anyio
ALL = {"confirm": True, "i_understand_data_loss": True}


def disks(world: Changes, count: int, **more: Any) -> list[str]:
    """So many unused disks."""
    rows = [
        {
            "devpath": f"/dev/sd{chr(97 + n)}",
            "size": 2**40,
            "serial": f"DISK-{n:04}",
            "by_id_link": f"/dev/disk/by-id/ata-D_{n}",
            "osdid": -1,
            **more,
        }
        for n in range(count)
    ]
    world.api.on("GET", "/nodes/pve1/disks/list", rows)
    world.api.on("GET", "/nodes/pve1/disks/zfs", [])
    return [row["devpath"] for row in rows]


@pytest.mark.parametrize(
    ("level", "fewest"),
    [("single", 1), ("mirror", 2), ("raid10", 4), ("raidz", 3), ("raidz2", 4), ("raidz3", 5), ("draid", 3), ("draid2", 4), ("draid3", 5)],
)
async def test_each_level_needs_its_number_of_disks(level: str, fewest: int, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        names = disks(world, 6)
        arguments = {"node": "pve1", "action": "create", "name": "fresh", "raidlevel": level}
        shown = await world.call("zfs_pool_manage", **arguments, devices=names[:fewest], dry_run=True)
        assert f"devices={','.join(names[:fewest])} raidlevel={level}" in shown
        assert "Would work." in shown
        with pytest.raises(InvalidArgument, match="needs"):
            await world.result("zfs_pool_manage", **arguments, devices=names[: fewest - 1], **ALL)
        if level in ("single", "raid10"):
            with pytest.raises(InvalidArgument):
                await world.result("zfs_pool_manage", **arguments, devices=names[: fewest + 1], **ALL)


async def test_devices_may_come_as_json_text_and_by_any_name(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        disks(world, 2)
        arguments = {"node": "pve1", "action": "create", "name": "fresh", "raidlevel": "mirror"}
        for given in (["sda", "/dev/disk/by-id/ata-D_1"], json.dumps(["/dev/sda", "sdb"])):
            assert "devices=/dev/sda,/dev/sdb" in await world.call("zfs_pool_manage", **arguments, devices=given, dry_run=True)
        assert await world.obstacles("zfs_pool_manage", **arguments, devices=["sda", "/dev/disk/by-id/ata-D_0"]) == [
            "/dev/sda is named twice"
        ]
        for wrong in (["sda", "/dev/sdb;id"], ["sda", "../sdb"], ["sda", "a,b"], "sda,sdb"):
            with pytest.raises(InvalidArgument):
                await world.result("zfs_pool_manage", **arguments, devices=wrong, **ALL)


async def test_disks_in_use_and_names_in_use_are_refused(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        arguments = {"node": "pve1", "action": "create", "raidlevel": "mirror"}
        found = await world.obstacles("zfs_pool_manage", **arguments, name="fresh", devices=["sda", "sdc"])
        assert found == ["/dev/sda (WDC_WD40EFRX-68N32N0, serial WD-WCC7K1234567, 4.0T) is in use: /dev/sda belongs to ZFS pool rpool"]
        found = await world.obstacles("zfs_pool_manage", node="pve1", action="create", name="rpool", devices=["sdc"])
        assert found == ["there is a pool rpool on pve1 already"]
        found = await world.obstacles("zfs_pool_manage", node="pve1", action="create", name="nas", devices=["sdc"])
        assert found == ["there is a storage nas already (type nfs, for every node): take another name, or add_storage=false"]


@pytest.mark.parametrize(
    "name", ["mirror", "mirror1", "raidz-x", "draid2", "spares", "log", "c0t0", "1tank", "-x", "tank/data", "tank@x", "t"]
)
async def test_names_that_no_pool_can_have_reach_no_request(name: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument):
            await world.result("zfs_pool_manage", node="pve1", action="create", name=name, devices=["sdc"], **ALL)
        assert not world.api.requests


async def test_what_a_layout_means_is_said(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        names = disks(world, 3)
        arguments = {"node": "pve1", "action": "create", "name": "fresh"}
        assert "no redundancy" in await world.call("zfs_pool_manage", **arguments, devices=names[:1], dry_run=True)
        assert "one mirror of 3 disks" in await world.call("zfs_pool_manage", **arguments, devices=names, raidlevel="mirror", dry_run=True)


# --- destroying


def lived_in(world: Changes) -> None:
    world.api.world.storages["dump"] = {"storage": "dump", "type": "dir", "path": "/tank/dump", "content": "backup,iso", "nodes": "pve2"}
    world.api.world.storages["sub"] = {"storage": "sub", "type": "zfspool", "pool": "tank/vm", "content": "images", "nodes": "pve2"}
    world.api.world.storages["far"] = {"storage": "far", "type": "zfspool", "pool": "tanker", "content": "images", "nodes": "pve2"}
    backup = {"content": "backup", "vmid": 102, "size": 1}
    world.api.world.volumes["dump", "pve2"] = [{"volid": f"dump:backup/vzdump-qemu-102-{n}.vma", **backup} for n in range(3)]
    world.api.world.volumes["sub", "pve2"] = [{"volid": "sub:vm-103-disk-0", "vmid": 103, "content": "images", "size": 1}]
    world.api.world.volumes["far", "pve2"] = [{"volid": "far:vm-102-disk-0", "vmid": 102, "content": "images", "size": 1}]
    world.api.world.usage = lambda storage: (1, 2**40)


async def test_all_who_live_on_a_pool_are_named_and_a_running_guest_keeps_it(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        lived_in(world)
        arguments = {"node": "pve2", "action": "destroy", "name": "tank"}
        (line,) = await world.obstacles("zfs_pool_manage", **arguments)
        assert line == "guests that may be running have disks there: VM 103 (git); stop them first"
        world.api.world.guests[103].status = "stopped"
        first = (await world.call("zfs_pool_manage", **arguments, cleanup_disks=True, dry_run=True)).splitlines()[1]
        assert "with all its datasets and snapshots; lost are VM 103 (git): sub:vm-103-disk-0; 3 backup" in first
        assert (
            "the entry of storage fast goes too; the entry of storage dump, sub stays and points nowhere on pve2; its disks are wiped"
            in first
        )
        assert "far" not in first


async def test_a_storage_that_other_nodes_have_too_stays_for_them(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["both"] = {"storage": "both", "type": "zfspool", "pool": "tank", "content": "images", "nodes": "pve1,pve2"}
        world.api.world.storages["all"] = {"storage": "all", "type": "zfspool", "pool": "tank", "content": "images"}
        arguments = {"node": "pve2", "action": "destroy", "name": "tank"}
        first = (await world.call("zfs_pool_manage", **arguments, dry_run=True)).splitlines()[1]
        others = ", ".join(name for name in world.api.world.nodes if name != "pve2")
        assert "the entry of storage fast goes too; " in first
        assert "storage both stays for pve1 alone" in first
        assert f"storage all stays for {others} alone" in first
        kept = (await world.call("zfs_pool_manage", **arguments, cleanup_config=False, dry_run=True)).splitlines()[1]
        assert "the entry of storage all, both, fast stays and points nowhere on pve2" in kept


async def test_without_the_data_loss_flag_the_tenants_are_the_answer(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        lived_in(world)
        world.api.world.guests[103].status = "stopped"
        told = await world.refusal("zfs_pool_manage", node="pve2", action="destroy", name="tank", confirm=True)
        assert "i_understand_data_loss=true missing" in told
        assert "VM 103 (git): sub:vm-103-disk-0" in told


async def test_a_guest_that_moves_in_meanwhile_changes_the_plan(tmp_path: Path) -> None:
    from dataclasses import replace

    from proxmox_mcp.errors import Refused
    from tests.piped import FakePerson

    async with changing(tmp_path) as world:
        world.app.settings = replace(world.app.settings, approval="data_loss")

        class Slow(FakePerson):
            async def approve(self, plan: Any) -> bool:
                world.api.world.volumes["fast", "pve2"] = [{"volid": "fast:vm-102-disk-3", "vmid": 102, "content": "images", "size": 1}]
                return True

        with pytest.raises(Refused, match="the situation changed"):
            await world.result("zfs_pool_manage", node="pve2", action="destroy", name="tank", person=Slow(), **ALL)
        assert not world.api.writes


async def test_a_pool_that_is_not_there_or_that_the_node_boots_from_is_refused(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        found = await world.obstacles("zfs_pool_manage", node="pve2", action="destroy", name="nope")
        assert found == ["there is no pool nope on pve2; there are: rpool, tank"]
        boot = {"devpath": "/dev/sda2", "parent": "/dev/sda", "used": "EFI", "size": 1, "osdid": -1}
        world.api.on("GET", "/nodes/pve2/disks/list", [{"devpath": "/dev/sda", "size": 1, "used": "partitions", "osdid": -1}, boot])
        found = await world.obstacles("zfs_pool_manage", node="pve2", action="destroy", name="rpool")
        assert found == ["pool rpool is on /dev/sda, which pve2 boots from"]
