"""proxmox_lvm_manage: on unused disks alone, nothing pulled from under a guest, parameters of a DELETE in its query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument
from tests.cluster import ADMIN
from tests.served_api import Reply
from tests.tools.changes import Changes, changing

pytestmark = pytest.mark.anyio
YES = {"confirm": True}
ALL = {"confirm": True, "i_understand_data_loss": True}
GROUPS = {
    "leaf": 0,
    "children": [
        {"name": "vg1", "size": 1, "free": 1, "lvcount": 2, "leaf": 0, "children": [{"name": "/dev/sdd", "leaf": 1}]},
        {"name": "pve", "size": 1, "free": 1, "lvcount": 3, "leaf": 0, "children": [{"name": "/dev/nvme0n1p3", "leaf": 1}]},
    ],
}
POOLS = [{"lv": "data", "vg": "pve"}, {"lv": "data", "vg": "vg1"}, {"lv": "thin1", "vg": "vg1"}]


def serve(world: Changes) -> None:
    world.api.on("GET", "/nodes/pve1/disks/lvm", GROUPS)
    world.api.on("GET", "/nodes/pve1/disks/lvmthin", POOLS)
    row = {"storage": "thick", "type": "lvm", "vgname": "vg1", "content": "images", "nodes": "pve1"}
    world.api.world.storages["thick"] = row
    world.api.world.storages["thin"] = {**row, "storage": "thin", "type": "lvmthin", "thinpool": "thin1"}
    for storage in ("thick", "thin"):
        disk = {"volid": f"{storage}:vm-102-disk-1", "vmid": 102, "content": "images", "size": 1}
        world.api.world.volumes[storage, "pve1"] = [disk]


async def test_who_lives_in_a_volume_group_is_named_and_a_running_guest_keeps_it(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world)
        text = await world.call("lvm_manage", node="pve1", action="destroy_vg", name="vg1", dry_run=True)
        first = text.splitlines()[1]
        assert first.startswith("destroy volume group vg1 of node pve1 with its 2 logical volumes; lost are VM 102 (db): ")
        assert "thick:vm-102-disk-1, thin:vm-102-disk-1" in first
        assert "the entry of storage thick goes too; the entry of storage thin stays and points nowhere on pve1" in first
        assert "not checked: logical volumes that no storage of Proxmox uses" in text
        world.api.world.guests[102].status = "running"
        (line,) = await world.obstacles("lvm_manage", node="pve1", action="destroy_vg", name="vg1")
        assert line == "guests that may be running have disks there: VM 102 (db); stop them first"


async def test_a_thin_pool_takes_only_its_own_storage_along(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world)
        arguments = {"node": "pve1", "action": "destroy_thin", "name": "thin1"}
        first = (await world.call("lvm_manage", **arguments, cleanup_config=False, dry_run=True)).splitlines()[1]
        assert "lost are VM 102 (db): thin:vm-102-disk-1; the entry of storage thin stays and points nowhere on pve1" in first
        assert "thick" not in first
        world.takes("DELETE", "/nodes/pve1/disks/lvmthin/thin1", "lvmthinremove")
        await world.call("lvm_manage", **arguments, cleanup_disks=True, **ALL)
        (request,) = world.api.writes
        assert request.query == {"volume-group": "vg1", "cleanup-config": "1", "cleanup-disks": "1"}
        assert request.body == b""


async def test_a_pools_name_in_two_groups_needs_the_group(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world)
        with pytest.raises(InvalidArgument, match="data is in pve, vg1: say which"):
            await world.result("lvm_manage", node="pve1", action="destroy_thin", name="data", **ALL)
        shown = await world.call("lvm_manage", node="pve1", action="destroy_thin", name="data", volume_group="vg1", dry_run=True)
        assert "volume-group=vg1" in shown
        (line,) = await world.obstacles("lvm_manage", node="pve1", action="destroy_thin", name="data", volume_group="vg9")
        assert line == "there is no thin pool data on pve1; there are: pve/data, vg1/data, vg1/thin1"


async def test_the_volume_group_that_the_node_boots_from_is_not_destroyed(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world)
        for guest in world.api.world.guests.values():
            guest.status = "stopped"
        disk = {"devpath": "/dev/nvme0n1", "size": 1, "used": "partitions", "osdid": -1, "serial": "S5GXNX0R654321B"}
        parts = [
            {"devpath": f"/dev/nvme0n1p{n}", "parent": "/dev/nvme0n1", "used": used, "size": 1, "osdid": -1}
            for n, used in ((1, "BIOS boot"), (2, "EFI"), (3, "LVM"))
        ]
        world.api.on("GET", "/nodes/pve1/disks/list", [disk, *parts])
        (line,) = await world.obstacles("lvm_manage", node="pve1", action="destroy_vg", name="pve")
        assert line == "volume group pve is on /dev/nvme0n1, which pve1 boots from"


async def test_the_volume_group_of_an_osd_is_not_destroyed(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        group = {
            "name": "ceph-1b6adfab",
            "size": 2**40,
            "free": 0,
            "lvcount": 1,
            "children": [{"name": "/dev/sdd", "size": 2**40, "free": 0}],
        }
        world.api.on("GET", "/nodes/pve1/disks/lvm", {"children": [group]})
        disk = {"devpath": "/dev/sdd", "size": 2**40, "used": "LVM", "osdid": 3, "osdid-list": ["3", "4"]}
        world.api.on("GET", "/nodes/pve1/disks/list", [disk])
        (line,) = await world.obstacles("lvm_manage", node="pve1", action="destroy_vg", name="ceph-1b6adfab")
        assert line == "volume group ceph-1b6adfab is on /dev/sdd, which Ceph uses (OSD 3, OSD 4)"
        world.api.on("GET", "/nodes/pve1/disks/list", [{**disk, "osdid": -1, "osdid-list": None}])
        assert await world.obstacles("lvm_manage", node="pve1", action="destroy_vg", name="ceph-1b6adfab") == []


async def test_names_that_are_taken_or_missing_are_said(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world)
        create = {"node": "pve1", "action": "create_vg", "device": "sdc"}
        assert await world.obstacles("lvm_manage", **create, name="vg1") == ["there is a volume group vg1 on pve1 already"]
        (line,) = await world.obstacles("lvm_manage", **create, name="local")
        assert line == "there is a storage local already (type dir, for every node): take another name, or add_storage=false"
        assert await world.obstacles("lvm_manage", **create, name="local", add_storage=False) == []
        world.api.world.storages["shared1"] = {
            "storage": "shared1",
            "type": "lvm",
            "vgname": "shared1",
            "content": "images",
            "nodes": "pve2",
        }
        assert await world.obstacles("lvm_manage", **create, name="shared1") == []
        assert await world.obstacles("lvm_manage", node="pve1", action="create_thin", device="sdc", name="shared1") != []
        (line,) = await world.obstacles("lvm_manage", node="pve1", action="destroy_vg", name="nope")
        assert line == "there is no volume group nope on pve1; there are: vg1, pve"


async def test_a_disk_in_use_is_refused_with_its_use(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for device, words in (
            ("sda", "/dev/sda belongs to ZFS pool rpool"),
            ("nvme0n1", "volume group pve"),
            ("nvme0n1p3", "volume group pve"),
        ):
            (line,) = await world.obstacles("lvm_manage", node="pve1", action="create_vg", name="vg1", device=device)
            assert "is in use: " in line
            assert words in line


async def test_a_free_partition_can_be_taken(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        free = {"devpath": "/dev/sdd1", "parent": "/dev/sdd", "size": 2**30, "osdid": -1, "type": "partition"}
        world.api.on("GET", "/nodes/pve1/disks/list", [{"devpath": "/dev/sdd", "size": 2**31, "used": "partitions", "osdid": -1}, free])
        shown = await world.call("lvm_manage", node="pve1", action="create_vg", name="vg9", device="/dev/sdd1", dry_run=True)
        assert "device=/dev/sdd1" in shown
        assert "Would work." in shown


async def test_entries_of_the_cluster_need_a_right_of_their_own(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world)
        rights = {path: {name: 1 for name in held if name != "Datastore.Allocate"} for path, held in ADMIN.items()}
        world.grant(rights)
        create = {"node": "pve1", "action": "create_vg", "device": "sdc", "name": "vg9"}
        assert await world.obstacles("lvm_manage", **create) == ["the token lacks Datastore.Allocate on /storage"]
        assert await world.obstacles("lvm_manage", **create, add_storage=False) == []
        destroy = {"node": "pve1", "action": "destroy_vg", "name": "vg1"}
        assert "the token lacks Datastore.Allocate on /storage" in await world.obstacles("lvm_manage", **destroy)
        # what this token cannot see on the storage is looked for in the guests' configurations
        world.config(205, mp0="thick:vm-205-disk-7,mp=/x,size=1G")
        found = await world.obstacles("lvm_manage", **destroy, cleanup_config=False)
        assert found == ["guests that may be running have disks there: CT 205 (mail); stop them first"]


async def test_a_token_that_may_not_look_is_told_so(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        refused = Reply(403, "Permission check failed (/, Sys.Audit)", message="Permission check failed (/, Sys.Audit)")
        world.api.on("GET", "/nodes/pve1/disks/lvm", refused)
        from proxmox_mcp.errors import PermissionDenied

        with pytest.raises(PermissionDenied, match=r"Sys\.Audit"):
            await world.result("lvm_manage", node="pve1", action="destroy_vg", name="vg1", **ALL)
        assert not world.api.writes


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "create_vg", "name": "vg1"},
        {"action": "create_thin", "name": "v g", "device": "sdc"},
        {"action": "create_vg", "name": "-x", "device": "sdc"},
        {"action": "create_vg", "name": "x/../y", "device": "sdc"},
        {"action": "destroy_vg", "name": "a"},
    ],
)
async def test_what_breaks_a_rule_reaches_no_request(arguments: dict[str, Any], tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument):
            await world.result("lvm_manage", node="pve1", **arguments, **ALL)
        assert not world.api.requests


async def test_a_volume_group_is_destroyed_by_its_own_name_alone(tmp_path: Path) -> None:
    """volume_group says where a thin pool is: it never turns the look at who lives there to another group."""
    async with changing(tmp_path) as world:
        serve(world)
        arguments = {"node": "pve1", "action": "destroy_vg", "name": "vg1", "volume_group": "pve"}
        text = await world.call("lvm_manage", **arguments, dry_run=True)
        assert "destroy volume group vg1 of node pve1 with its 2 logical volumes; lost are VM 102 (db): " in text
        assert "1. DELETE /nodes/pve1/disks/lvm/vg1 cleanup-config=1 cleanup-disks=0" in text
        assert "note: volume_group is not used by action=destroy_vg" in text
        world.api.world.guests[102].status = "running"
        text = await world.call("lvm_manage", **arguments, dry_run=True)
        assert "Stands in the way:\n- guests that may be running have disks there: VM 102 (db); stop them first" in text
