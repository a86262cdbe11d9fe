"""proxmox_clone_vm and proxmox_move_disk: linked or full is said, each kind has its endpoint, nothing of a snapshot is deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, Refused
from tests.cluster.world import Guest
from tests.served_api import Reply, Request
from tests.tools.changes import Changes, changing

pytestmark = pytest.mark.anyio
YES = {"confirm": True}


async def cloned(world: Changes, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The answer and the parameters of the one request that this clone sends."""
    for kind in ("qemu", "lxc"):
        world.takes("POST", f"/nodes/{{node}}/{kind}/{{vmid}}/clone")
    text = await world.call("clone_vm", **arguments, **YES)
    return text, world.sent[-1][2]


# --- G48


async def test_g48_a_template_is_linked_and_with_a_target_storage_full(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        text, sent = await cloned(world, vmid=900, newid=201)
        assert sent == {"newid": "201", "full": "0"}
        assert "as a linked clone" in text
        world.api.world.storages["other"] = {**world.api.world.storages["local-lvm"], "storage": "other"}
        world.api.on("GET", "/nodes/pve1/storage/other/status", {"active": 1, "avail": 2**40})
        text, sent = await cloned(world, vmid=900, newid=202, target_storage="other")
        assert sent == {"newid": "202", "full": "1", "storage": "other"}
        assert "as a full clone" in text
        assert "full, because target_storage is given" in text
        assert (await cloned(world, vmid=102, newid=203))[1] == {"newid": "203", "full": "1"}
        assert (await cloned(world, vmid=900, newid=204, full=True))[1] == {"newid": "204", "full": "1"}


async def test_g48_linked_with_a_target_storage_is_refused_before_any_request(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument, match="stays on its template's storage"):
            await world.result("clone_vm", vmid=900, newid=201, target_storage="fast", full=False, **YES)
        with pytest.raises(InvalidArgument, match="newid is the id of the source"):
            await world.result("clone_vm", vmid=101, newid=101, **YES)
        assert not world.api.requests


@pytest.mark.parametrize("vmid", [101, 206])
async def test_g48_a_linked_clone_needs_a_template_or_a_snapshot(vmid: int, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        (line,) = await world.obstacles("clone_vm", vmid=vmid, full=False)
        assert line.startswith("a linked clone needs a template or a snapshot")
    async with changing(tmp_path) as world:
        _, sent = await cloned(world, vmid=101, newid=201, full=False, snapname="nightly")
        assert sent == {"newid": "201", "full": "0", "snapname": "nightly"}


@pytest.mark.parametrize(
    ("vmid", "arguments", "what"),
    [(900, {}, "linked clone"), (901, {}, "linked clone"), (101, {"snapname": "nightly"}, "full clone")],
)
async def test_storages_that_cannot_are_said_with_the_alternative(vmid: int, arguments: dict[str, Any], what: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        kind_of_storage = {"type": "zfspool", "pool": "x"} if arguments else {"type": "dir", "path": "/x"}
        world.api.world.storages["local-lvm"] = {"storage": "local-lvm", "content": "images,rootdir", **kind_of_storage}
        asked: list[dict[str, Any]] = []

        def feature(request: Request) -> dict[str, int]:
            asked.append(request.params)
            return {"hasFeature": 0}

        for kind in ("qemu", "lxc"):
            world.api.on("GET", f"/nodes/pve1/{kind}/{vmid}/feature", feature)
        (line,) = await world.obstacles("clone_vm", vmid=vmid, **arguments)
        assert f"does not do a {what} of" in line
        assert asked == [{"feature": "clone" if what == "linked clone" else "copy", **arguments}]
        # where nothing in sight speaks against it, it is a doubt: Proxmox decides
        world.api.world.storages["local-lvm"] = {"storage": "local-lvm", "type": "lvmthin", "content": "images,rootdir"}
        assert "not checked: why Proxmox says" in await world.call("clone_vm", vmid=vmid, **arguments, dry_run=True)


async def test_a_running_container_is_copied_from_a_snapshot_or_not_at_all(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        (line,) = await world.obstacles("clone_vm", vmid=205, newid=300)
        assert line == "CT 205 (mail) is running: a container is copied while stopped, or from a snapshot (snapname)"
        _, sent = await cloned(world, vmid=205, newid=300, snapname="nightly", name="copy", description="é=1")
        assert sent == {"newid": "300", "full": "1", "snapname": "nightly", "hostname": "copy", "description": "é=1"}
        assert (await cloned(world, vmid=101, newid=301, name="web2"))[1] == {"newid": "301", "full": "1", "name": "web2"}


async def test_a_container_with_a_bind_mount_cannot_be_cloned(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(206, mp0="/mnt/media,mp=/media")
        assert "mp0 (/mnt/media) is a directory or device of the host" in (await world.obstacles("clone_vm", vmid=206))[0]


async def test_the_new_id_is_free_or_the_next_one_is_named(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        _, sent = await cloned(world, vmid=102)
        assert sent["newid"] == "100"
    async with changing(tmp_path) as world:
        (line,) = await world.obstacles("clone_vm", vmid=102, newid=103)
        assert line == "newid 103 is taken by VM 103 on pve2; the next free id is 100"

        def race(_: Request) -> Reply:
            world.api.world.guests[200] = Guest(200, "pve1", "qemu", "faster")
            text = "unable to create VM 200: config file already exists"
            return Reply(500, text, message=text)

        world.api.on("POST", "/nodes/pve1/qemu/102/clone", race)
        found = await world.result("clone_vm", vmid=102, newid=200, **YES)
        assert "Id 200 is taken; the next free one is 100." in found.text


async def test_another_node_gets_a_copy_through_shared_storage_alone(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        (line,) = await world.obstacles("clone_vm", vmid=102, newid=300, target_node="pve2")
        assert line.startswith("scsi0 (local-lvm:vm-102-disk-0, 32G) is on storage local-lvm, which pve2 does not share")
        world.api.world.storages["ceph"] = {"storage": "ceph", "type": "rbd", "content": "images"}
        world.config(102, scsi0="ceph:vm-102-disk-0,size=32G")
        _, sent = await cloned(world, vmid=102, newid=300, target_node="pve2")
        assert sent == {"newid": "300", "full": "1", "target": "pve2"}
        with pytest.raises(Refused, match="did you mean pve2"):
            await world.result("clone_vm", vmid=102, newid=301, target_node="PVE2", **YES)


@pytest.mark.parametrize("drive", ["local:iso/debian.iso,media=cdrom", "local-lvm:vm-102-cloudinit,media=cdrom,size=4M"])
async def test_a_drive_on_a_storage_of_the_node_keeps_a_vm_from_being_cloned_elsewhere(drive: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["ceph"] = {"storage": "ceph", "type": "rbd", "content": "images"}
        world.config(102, scsi0="ceph:vm-102-disk-0,size=32G", ide2=drive, unused0="local-lvm:vm-102-disk-7")
        (line,) = await world.obstacles("clone_vm", vmid=102, newid=300, target_node="pve2")
        assert line.startswith(f"ide2 ({drive.partition(',')[0]}")
        assert "which pve2 does not share" in line
        for instead in ("nas:iso/debian.iso,media=cdrom", "none,media=cdrom"):
            world.config(102, ide2=instead)
            assert await world.obstacles("clone_vm", vmid=102, newid=300, target_node="pve2") == []
        world.config(102, ide2=drive)
        assert await world.obstacles("clone_vm", vmid=102, newid=300) == []


async def test_the_saved_ram_of_a_snapshot_is_no_disk_of_its_clone(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["ceph"] = {"storage": "ceph", "type": "rbd", "content": "images"}
        world.config(101, scsi0="ceph:vm-101-disk-0,size=32G", vmstate="local-lvm:vm-101-state-nightly")
        assert await world.obstacles("clone_vm", vmid=101, newid=300, snapname="nightly", target_node="pve2") == []


async def test_the_tpm_of_a_vm_is_copied_and_moved_while_it_is_stopped(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        second(world)
        for vmid in (101, 102):
            world.config(vmid, tpmstate0=f"local-lvm:vm-{vmid}-disk-1,size=4M,version=v2.0")
        (line,) = await world.obstacles("clone_vm", vmid=101, newid=300)
        assert line == "VM 101 (web) is running: its TPM state is copied while it is stopped, or from a snapshot (snapname)"
        (line,) = await world.obstacles("move_disk", vmid=101, disk="tpmstate0", target_storage="quick")
        assert "its TPM state is moved while it is stopped (proxmox_vm_power vmid=101 action=shutdown)" in line
        assert await world.obstacles("move_disk", vmid=101, disk="scsi0", target_storage="quick") == []
        assert await world.obstacles("clone_vm", vmid=102, newid=300) == []
        assert await world.obstacles("move_disk", vmid=102, disk="tpmstate0", target_storage="quick") == []


async def test_the_tpm_of_a_running_vm_is_copied_from_a_snapshot_or_for_a_linked_clone(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(101, tpmstate0="local-lvm:vm-101-disk-1,size=4M,version=v2.0")
        assert await world.obstacles("clone_vm", vmid=101, newid=300, snapname="nightly") == []
        assert await world.obstacles("clone_vm", vmid=101, newid=300, snapname="nightly", full=False) == []


async def test_the_drive_of_a_host_needs_its_console(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(102, ide2="cdrom,media=cdrom")
        assert await world.obstacles("clone_vm", vmid=102, newid=300) == []
        world.without("Sys.Console")
        assert await world.obstacles("clone_vm", vmid=102, newid=300) == ["the token lacks Sys.Console on /"]


async def test_the_answer_names_the_disks_of_the_clone(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:

        def made(_: Request) -> None:
            world.api.world.guests[300] = Guest(300, "pve1", "qemu", "Copy-of-VM-db", status="stopped")

        world.takes("POST", "/nodes/pve1/qemu/102/clone", "qmclone", effect=made)
        text = await world.call("clone_vm", vmid=102, newid=300, **YES)
        assert "vmid: 300\nname: Copy-of-VM-db\nclone: full\ndisks:\n- scsi0 (local-lvm:vm-300-disk-0, 32G)\n" in text


async def test_what_a_clone_needs_of_the_token(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for privilege, path in (
            ("VM.Clone", "/vms/102"),
            ("VM.Allocate", "/vms/300"),
            ("Datastore.AllocateSpace", "/storage/local-lvm"),
            ("SDN.Use", "/sdn/zones/localnetwork/vmbr0"),
        ):
            world.without(privilege)
            assert await world.obstacles("clone_vm", vmid=102, newid=300) == [f"the token lacks {privilege} on {path}"]


# --- G50


def second(world: Changes, **more: Any) -> None:
    world.api.world.storages["quick"] = {"storage": "quick", "type": "lvmthin", "content": "images,rootdir", **more}
    world.api.on("GET", "/nodes/pve1/storage/quick/status", {"active": 1, "avail": 2**40})
    for guest in world.api.world.guests.values():
        guest.snapshots = []
    for kind, action in (("qemu", "move_disk"), ("lxc", "move_volume")):
        world.takes("POST", f"/nodes/pve1/{kind}/{{vmid}}/{action}")


@pytest.mark.parametrize(
    ("vmid", "disk", "path", "key"),
    [(101, "scsi0", "/nodes/pve1/qemu/101/move_disk", "disk"), (206, "rootfs", "/nodes/pve1/lxc/206/move_volume", "volume")],
)
@pytest.mark.parametrize("delete", [True, False])
async def test_g50_each_kind_has_its_endpoint_and_the_source_is_deleted_only_when_meant(
    vmid: int, disk: str, path: str, key: str, delete: bool, tmp_path: Path
) -> None:
    async with changing(tmp_path) as world:
        second(world)
        shown = await world.call("move_disk", vmid=vmid, disk=disk, target_storage="quick", delete_source=delete, dry_run=True)
        assert ("the old copy is deleted" if delete else "the old copy stays as unusedN") in shown
        await world.call("move_disk", vmid=vmid, disk=disk, target_storage="quick", delete_source=delete, **YES)
        ((method, sent_to, params),) = world.sent
        assert (method, sent_to) == ("POST", path)
        assert params.pop("digest")
        assert params == {key: disk, "storage": "quick", **({"delete": "1"} if delete else {})}


async def test_g50_the_old_copy_is_named_after_the_move(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        second(world)
        old = "local-lvm:vm-101-disk-0"

        def moved(_: Request) -> None:
            world.config(101, scsi0="quick:vm-101-disk-0,size=32G", unused0=old)

        world.takes("POST", "/nodes/pve1/qemu/101/move_disk", "qmmove", effect=moved)
        arguments = {"vmid": 101, "disk": "scsi0", "target_storage": "quick"}
        text = await world.call("move_disk", **arguments, delete_source=False, **YES)
        assert f"scsi0: quick:vm-101-disk-0\nold copy: unused0 ({old})\n" in text
        world.config(101, scsi0=f"{old},size=32G", unused0=None)
        assert "the old copy could not be deleted and was kept" in await world.call("move_disk", **arguments, **YES)


async def test_a_move_that_failed_says_where_the_disk_is_and_nothing_of_an_old_copy(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        second(world)
        world.takes("POST", "/nodes/pve1/qemu/101/move_disk", "qmmove", status="storage migration failed: no space left")
        found = await world.result("move_disk", vmid=101, disk="scsi0", target_storage="quick", **YES)
        assert found.failed
        assert "storage migration failed: no space left" in found.text
        assert "scsi0: local-lvm:vm-101-disk-0" in found.text
        assert "old copy: " not in found.text


async def test_a_disk_that_snapshots_need_is_not_moved_and_deleted(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        second(world)
        world.api.world.guests[101].snapshots = [{"name": "good", "snaptime": 1}, {"name": "later", "snaptime": 2}]

        def config(request: Request) -> dict[str, Any]:
            disk = "other" if request.params.get("snapshot") == "good" else "vm-101-disk-0"
            return {"name": "web", "scsi0": f"local-lvm:{disk},size=32G", "digest": "ab"}

        world.api.on("GET", "/nodes/pve1/qemu/101/config", config)
        (line,) = await world.obstacles("move_disk", vmid=101, disk="scsi0", target_storage="quick")
        assert "is part of snapshot later: it cannot be moved and deleted" in line
        assert await world.obstacles("move_disk", vmid=101, disk="scsi0", target_storage="quick", delete_source=False) == []


async def test_what_cannot_be_moved_is_said(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        second(world)
        world.config(101, ide2="nas:iso/x.iso,media=cdrom")
        world.config(206, mp0="/mnt/media,mp=/media", unused0="local-lvm:vm-206-disk-3")
        cases = [
            (
                {"vmid": 205, "disk": "rootfs"},
                "a container's volume is moved while it is stopped (proxmox_vm_power vmid=205 action=shutdown)",
            ),
            ({"vmid": 101, "disk": "ide2"}, "is a CD-ROM drive, and those are not moved"),
            ({"vmid": 206, "disk": "unused0"}, "is not in use: of a container only what is in use is moved"),
            ({"vmid": 206, "disk": "mp0"}, "is a directory or device of the host"),
            ({"vmid": 101, "disk": "scsi5"}, "has no disk scsi5; it has: scsi0 (local-lvm:vm-101-disk-0, 32G)"),
            ({"vmid": 101, "disk": "rootfs"}, "has no disk rootfs"),
            ({"vmid": 206, "disk": "rootfs", "format": "qcow2"}, "format is for the disks of VMs"),
            ({"vmid": 101, "disk": "scsi0", "format": "qcow2"}, "storage quick of type lvmthin has no qcow2, only raw"),
        ]
        for arguments, words in cases:
            found = await world.obstacles("move_disk", target_storage="quick", **arguments)
            assert any(words in line for line in found), (arguments, found)
        for vmid, disk in ((101, "scsi0"), (206, "rootfs")):
            found = await world.obstacles("move_disk", vmid=vmid, disk=disk, target_storage="local-lvm")
            assert any("is on storage local-lvm already" in line for line in found)


@pytest.mark.parametrize(
    ("disk", "value"),
    [("ide2", "local-lvm:vm-101-cloudinit,media=cdrom,size=4M"), ("unused0", "local-lvm:vm-101-disk-3")],
)
async def test_a_cloud_init_drive_and_an_unused_disk_of_a_vm_can_be_moved(disk: str, value: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        second(world)
        world.config(101, **{disk: value})
        await world.call("move_disk", vmid=101, disk=disk, target_storage="quick", **YES)
        ((_, path, params),) = world.sent
        assert path == "/nodes/pve1/qemu/101/move_disk"
        assert (params["disk"], params["storage"]) == (disk, "quick")


async def test_a_disk_can_change_its_format_where_it_is(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        second(world, type="dir", path="/srv")
        world.config(101, scsi0="quick:101/vm-101-disk-0.raw,size=32G")
        arguments = {"vmid": 101, "disk": "scsi0", "target_storage": "quick"}
        assert "is on storage quick already" in (await world.obstacles("move_disk", **arguments))[0]
        assert await world.obstacles("move_disk", **arguments, format="qcow2") == []
        world.config(101, scsi0="local-lvm:vm-101-disk-0,size=32G")
        shown = await world.call("move_disk", **arguments, dry_run=True)
        assert "it arrives as raw on quick, where only qcow2 takes snapshots" in shown


@pytest.mark.parametrize("disk", ["hda", "scsi31", "ide4", "virtio16", "net0", "scsi0,format=raw", "../x", "SCSI0", ""])
async def test_a_name_that_no_disk_has_reaches_no_request(disk: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument):
            await world.result("move_disk", vmid=101, disk=disk, target_storage="quick", **YES)
        assert not world.api.requests
