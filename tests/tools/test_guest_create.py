"""proxmox_create_vm and proxmox_create_container: made as the web interface makes them, checked before anything is sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import preview
from proxmox_mcp.errors import InvalidArgument, NodeUnreachable, NotFound
from proxmox_mcp.plan import Plan
from tests.cluster.world import Guest
from tests.piped import FakePerson
from tests.served_api import Reply, Request
from tests.tools.changes import Changes, changing

pytestmark = pytest.mark.anyio
YES = {"confirm": True}
VM: dict[str, Any] = {"node": "pve1", "disk_storage": "local-lvm", "disk_gb": 32}
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
CT: dict[str, Any] = {"node": "pve1", "disk_storage": "local-lvm", "ostemplate": TEMPLATE}
ISO = "nas:iso/debian-13.1.0-amd64-netinst.iso"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJnI1fbJq5xX8Qh6b7XyX8c9mW0l5Qk3mZ0yq5ZkQm1o ops@desk"


async def sent(world: Changes, tool: str, **arguments: Any) -> dict[str, Any]:
    """The parameters of the one request that this sends."""
    world.takes("POST", "/nodes/{node}/qemu", "qmcreate")
    world.takes("POST", "/nodes/{node}/lxc", "vzcreate")
    await world.call(tool, **arguments, **YES)
    return world.sent[-1][2]


# --- ids and nodes


@pytest.mark.parametrize(("tool", "arguments"), [("create_vm", VM), ("create_container", CT)])
async def test_without_an_id_the_next_free_one_is_taken_and_a_taken_one_names_it(
    tool: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    async with changing(tmp_path) as world:
        assert (await sent(world, tool, **arguments))["vmid"] == "100"
        (line,) = await dry(world, tool, **arguments, vmid=205)
        assert line == "vmid 205 is taken by CT 205 on pve1; the next free id is 100"


async def test_more_vcpus_than_the_node_has_keep_a_vm_from_starting(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        words = "pve1 has 16 CPUs: a VM with 20 vCPUs does not start there"
        assert f"note: {words}\n" in await world.call("create_vm", **VM, cores=10, sockets=2, dry_run=True)
        assert await world.obstacles("create_vm", **VM, cores=10, sockets=2, start=True) == [words]
        assert await world.obstacles("create_vm", **VM, cores=8, sockets=2, start=True) == []
        assert await world.obstacles("create_container", **CT, cores=20, start=True) == []


async def dry(world: Changes, tool: str, **arguments: Any) -> list[str]:
    world.api.requests.clear()
    return await world.obstacles(tool, **arguments)


@pytest.mark.parametrize(("tool", "arguments", "path"), [("create_vm", VM, "qemu"), ("create_container", CT, "lxc")])
async def test_an_id_that_is_taken_meanwhile_is_proxmoxs_no_with_a_free_one(
    tool: str, arguments: dict[str, Any], path: str, tmp_path: Path
) -> None:
    async with changing(tmp_path) as world:

        def race(_: Request) -> Reply:
            world.api.world.guests[100] = Guest(100, "pve2", "qemu", "faster")
            text = "unable to create VM 100 - VM 100 already exists on node 'pve2'"
            return Reply(500, text, message=text)

        world.api.on("POST", f"/nodes/pve1/{path}", race)
        found = await world.result(tool, **arguments, **YES)
        assert found.failed
        assert "already exists on node 'pve2'" in found.text
        assert "Id 100 is taken; the next free one is 104." in found.text
        assert len(world.api.writes) == 1


async def test_a_single_node_needs_no_naming_and_several_do_unless_the_storage_says_which(tmp_path: Path) -> None:
    async with changing(tmp_path, nodes=1) as world:
        world.api.world.guests.clear()
        await sent(world, "create_vm", disk_storage="local-lvm", disk_gb=8)
        assert world.sent[-1][1] == "/nodes/pve1/qemu"
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument, match="say on which: pve1, pve2"):
            await world.result("create_vm", disk_storage="local-lvm", disk_gb=8, **YES)
        await sent(world, "create_vm", disk_storage="fast", disk_gb=8)
        assert world.sent[-1][1] == "/nodes/pve2/qemu"


async def test_a_storage_that_is_nowhere_or_on_nodes_that_are_away_is_said_instead_of_asking_for_a_node(tmp_path: Path) -> None:
    async with changing(tmp_path, nodes=3) as world:
        world.api.world.offline = frozenset({"pve3"})
        with pytest.raises(NodeUnreachable, match="storage fast is on pve3 alone, not online now"):
            await world.result("create_vm", disk_storage="fast", disk_gb=8, **YES)
        with pytest.raises(NotFound, match="no storage nope is visible; there are: fast, local"):
            await world.result("create_vm", disk_storage="nope", disk_gb=8, **YES)
        world.api.world.offline = frozenset({"pve2", "pve3"})
        (line,) = await world.obstacles("create_vm", disk_storage="fast", disk_gb=8)
        assert line == "storage fast is not available on pve1, only on pve3"


# --- VMs


@pytest.mark.parametrize(
    ("storage", "disk"),
    [
        ({"type": "dir", "path": "/srv"}, "some:32,format=qcow2,iothread=1"),
        ({"type": "nfs", "server": "x", "export": "/y"}, "some:32,format=qcow2,iothread=1"),
        ({"type": "lvm", "vgname": "x"}, "some:32,iothread=1"),
        ({"type": "lvm", "vgname": "x", "snapshot-as-volume-chain": 1}, "some:32,format=qcow2,iothread=1"),
        ({"type": "zfspool", "pool": "x"}, "some:32,iothread=1"),
        ({"type": "rbd"}, "some:32,iothread=1"),
        ({"type": "btrfs", "path": "/x"}, "some:32,iothread=1"),
    ],
)
async def test_a_disk_takes_snapshots_wherever_its_storage_can(storage: dict[str, Any], disk: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["some"] = {"storage": "some", "content": "images", **storage}
        world.api.on("GET", "/nodes/pve1/storage/some/status", {"active": 1, "avail": 2**40})
        found = await sent(world, "create_vm", **{**VM, "disk_storage": "some"})
        assert found["scsi0"] == disk
        assert found["scsihw"] == "virtio-scsi-single"


async def test_an_iso_image_is_a_cd_that_is_booted_first(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        found = await sent(world, "create_vm", **VM, iso=ISO, ostype="win11", start=True)
        assert found["ide2"] == f"{ISO},media=cdrom"
        assert found["boot"] == "order=ide2;scsi0;net0"
        assert found["ostype"] == "win11"
        assert found["start"] == "1"
        text = await world.call("create_vm", **VM, iso=ISO, ostype="win11", dry_run=True)
        assert "only with the VirtIO drivers" in text
        assert "ide2" not in await sent(world, "create_vm", **VM)


async def test_a_missing_image_or_template_is_said_with_those_that_are_there(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        (line,) = await world.obstacles("create_vm", **VM, iso="nas:iso/debian-13.2.0-amd64-netinst.iso")
        assert line == f"there is no nas:iso/debian-13.2.0-amd64-netinst.iso on pve1; there is {ISO}"
        (line,) = await world.obstacles("create_container", **{**CT, "ostemplate": "local:vztmpl/none.tar.gz"})
        assert line == f"there is no local:vztmpl/none.tar.gz on pve1; there is {TEMPLATE}"
        (line,) = await world.obstacles("create_container", **{**CT, "ostemplate": "pbs:vztmpl/none.tar.gz"})
        assert line.startswith("storage pbs is set up for backup, not for vztmpl; storages of pve1 for it: local")


@pytest.mark.parametrize(
    ("size", "disk"), [("1.5G", "local-lvm:1.5,iothread=1"), ("512M", "local-lvm:0.5,iothread=1"), (32, "local-lvm:32,iothread=1")]
)
async def test_g49_the_size_arrives_in_gib(size: Any, disk: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        assert (await sent(world, "create_vm", **{**VM, "disk_gb": size}))["scsi0"] == disk
        for wrong in ("-5", "ten", 0, "70000G"):
            with pytest.raises(InvalidArgument):
                await world.result("create_vm", **{**VM, "disk_gb": wrong}, **YES)


@pytest.mark.parametrize(
    ("storage", "certain"),
    [
        ({"type": "lvm", "vgname": "x"}, True),
        ({"type": "zfspool", "pool": "x"}, True),
        ({"type": "zfspool", "pool": "x", "sparse": 1}, False),
        ({"type": "lvmthin"}, False),
        ({"type": "dir", "path": "/x"}, False),
    ],
)
async def test_too_little_room_is_certain_only_where_it_is_taken_at_once(storage: dict[str, Any], certain: bool, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["some"] = {"storage": "some", "content": "images,rootdir", **storage}
        world.api.on("GET", "/nodes/pve1/storage/some/status", {"active": 1, "avail": 8 * 2**30})
        text = await world.call("create_vm", **{**VM, "disk_storage": "some"}, dry_run=True)
        assert "storage some has 8.0G free, 32.0G are asked for" in text
        assert ("Stands in the way" in text) is certain
        world.api.on("GET", "/nodes/pve1/storage/some/status", {"active": 1, "avail": 0, "total": 0, "used": 0})
        assert "free" not in (await world.call("create_vm", **{**VM, "disk_storage": "some"}, dry_run=True)).replace("next free id", "")


@pytest.mark.parametrize("kind", ["iscsi", "iscsidirect", "esxi"])
async def test_on_some_types_of_storage_no_volume_can_be_made(kind: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["san"] = {"storage": "san", "type": kind, "content": "images", "portal": "10.0.0.1", "target": "iqn.x"}
        world.api.on("GET", "/nodes/pve1/storage/san/status", {"active": 1, "total": 0, "used": 0, "avail": 0})
        words = f"storage san is of type {kind}, where Proxmox makes no volumes"
        assert await world.obstacles("create_vm", **{**VM, "disk_storage": "san"}) == [words]


async def test_storages_that_do_not_serve_are_said(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        cases = {
            "fast": "storage fast is not available on pve1, only on pve2",
            "nas": "storage nas is set up for backup, iso, not for images; storages of pve1 for it: local-lvm",
        }
        for storage, words in cases.items():
            assert await world.obstacles("create_vm", **{**VM, "disk_storage": storage}) == [words]
        world.api.on("GET", "/nodes/pve1/storage/local-lvm/status", {"active": 0, "avail": 0})
        assert await world.obstacles("create_vm", **VM) == ["storage local-lvm is not active on pve1"]
        world.api.on("GET", "/nodes/pve1/storage/local-lvm/status", Reply(596, "Connection timed out"))
        text = await world.call("create_vm", **VM, dry_run=True)
        assert "not checked: room on storage local-lvm" in text


async def test_a_bridge_that_is_not_there_stands_in_the_way_of_a_start_alone(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        text = await world.call("create_vm", **VM, bridge="vmbr9", dry_run=True)
        assert "note: no bridge vmbr9 is visible on pve1 (visible: vmbr0)" in text
        assert "Would work." in text
        assert "vmbr9" in (await world.obstacles("create_vm", **VM, bridge="vmbr9", start=True))[0]


async def test_the_right_to_a_vnet_is_held_in_its_zone(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.on("GET", "/nodes/pve1/network", [{"iface": "vmbr0", "type": "bridge"}, {"iface": "blue", "type": "vnet"}])
        world.api.on("GET", "/cluster/sdn/vnets", [{"vnet": "blue", "zone": "lab", "type": "vnet"}])
        world.without("SDN.Use")
        assert await world.obstacles("create_vm", **VM, bridge="blue") == ["the token lacks SDN.Use on /sdn/zones/lab/blue"]
        assert await world.obstacles("create_vm", **VM) == ["the token lacks SDN.Use on /sdn/zones/localnetwork/vmbr0"]


async def test_a_start_that_failed_behind_a_task_that_ended_well_is_noticed(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:

        def made(request: Request) -> None:
            world.api.world.guests[300] = Guest(300, "pve1", "qemu", "new", status="stopped")

        world.takes("POST", "/nodes/pve1/qemu", "qmcreate", effect=made)
        text = await world.call("create_vm", **VM, vmid=300, start=True, **YES)
        assert "it was to be started and does not run" in text
        assert "vmid: 300\nstatus: stopped\n" in text


# --- containers


async def test_g18_only_what_was_given_is_sent(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        found = await sent(world, "create_container", **CT, vmid=300)
        assert found == {
            "vmid": "300",
            "ostemplate": TEMPLATE,
            "cores": "1",
            "memory": "512",
            "swap": "512",
            "rootfs": "local-lvm:8",
            "net0": "name=eth0,bridge=vmbr0,ip=dhcp",
            "unprivileged": "1",
        }


@pytest.mark.parametrize(
    ("arguments", "net0"),
    [
        ({"ip": "192.168.1.50/24", "gateway": "192.168.1.1"}, "name=eth0,bridge=vmbr0,ip=192.168.1.50/24,gw=192.168.1.1"),
        ({"ip": "192.168.1.50/24"}, "name=eth0,bridge=vmbr0,ip=192.168.1.50/24"),
        ({"ip": "2001:db8::5/64", "gateway": "2001:db8::1"}, "name=eth0,bridge=vmbr0,ip6=2001:db8::5/64,gw6=2001:db8::1"),
        ({"ip": "manual", "bridge": "vmbr1"}, "name=eth0,bridge=vmbr1,ip=manual"),
    ],
)
async def test_addresses(arguments: dict[str, Any], net0: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        assert (await sent(world, "create_container", **CT, **arguments))["net0"] == net0


@pytest.mark.parametrize(
    "arguments",
    [
        {"gateway": "192.168.1.1"}, {"ip": "manual", "gateway": "192.168.1.1"}, {"ip": "192.168.1.50"}, {"ip": "192.168.1.50/33"},
        {"ip": "192.168.1.50/4"}, {"ip": "10.0.0.5/24", "gateway": "2001:db8::1"}, {"ip": "10.0.0.5/24", "gateway": "gw,firewall=1"},
        {"ip": "10.0.0.5/24,gw=1.2.3.4"}, {"ip": "fe80::1%eth0/64"}, {"bridge": "vmbr0,firewall=0"}, {"hostname": "bad_host"},
        {"password": "abc"}, {"password": "secret\nroot::"}, {"ssh_public_key": "no key"}, {"swap_mb": -1}, {"memory_mb": 8},
        {"ssh_public_key": "-----BEGIN OPENSSH PRIVATE KEY-----\nx"}, {"ssh_public_key": KEY + "\nnot a key"},
    ],
)  # fmt: skip
async def test_what_breaks_a_rule_reaches_no_request(arguments: dict[str, Any], tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument) as refused:
            await world.result("create_container", **CT, **arguments, **YES)
        assert "secret" not in str(refused.value)
        assert "abc" not in str(refused.value)
        assert not world.api.requests


async def test_keys_arrive_line_by_line_and_passwords_are_seen_nowhere(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        keys = f"# mine\n{KEY}\r\n\n{KEY.replace('ops', 'dev')}\n"
        arguments = {**CT, "password": "Tr0ub4dor&3 =;", "ssh_public_key": keys, "vmid": 300}
        shown = await world.call("create_container", **arguments, dry_run=True)
        assert "password='***'" in shown
        found = await sent(world, "create_container", **arguments)
        assert found["password"] == "Tr0ub4dor&3 =;"
        assert found["ssh-public-keys"] == f"{KEY}\n{KEY.replace('ops', 'dev')}"
        told = Reply(500, "bad password Tr0ub4dor&3 =; given", message="bad password Tr0ub4dor&3 =; given")
        world.api.on("POST", "/nodes/pve1/lxc", told)
        failed = await world.result("create_container", **arguments, **YES)
        for text in (shown, failed.text, str(world.log)):
            assert "Tr0ub4dor" not in text


async def test_a_privileged_container_is_said_loudly_and_has_no_features_for_tokens(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        shown = await world.call("create_container", **CT, unprivileged=False, dry_run=True)
        assert "create PRIVILEGED CT 100" in shown
        assert "unprivileged=0" in shown
        (line,) = await world.obstacles("create_container", **CT, unprivileged=False, nesting=True)
        assert line.startswith("features of a privileged container are for root@pam alone")
        assert (await sent(world, "create_container", **CT, nesting=True))["features"] == "nesting=1"
        world.without("Sys.Modify")
        assert await dry(world, "create_container", **CT, unprivileged=False) == ["the token lacks Sys.Modify on /"]


async def test_on_version_8_a_privileged_container_needs_no_more_than_before(tmp_path: Path) -> None:
    async with changing(tmp_path, version="8.4.1") as world:
        world.without("Sys.Modify", "VM.PowerMgmt")
        assert await world.obstacles("create_container", **CT, unprivileged=False, start=True) == []


async def test_a_password_that_reads_like_something_else_does_not_blank_it_out_of_question_and_record(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.app.settings = replace(world.app.settings, approval="all")
        world.takes("POST", "/nodes/{node}/lxc", "vzcreate")
        asked: list[str] = []

        class Person(FakePerson):
            async def approve(self, plan: Plan) -> bool:
                asked.append(preview.question(plan))
                return True

        arguments = {**CT, "vmid": 300, "bridge": "vmbr0", "password": "vmbr0", "reason": "log in with vmbr0"}
        await world.call("create_container", **arguments, **YES, person=Person())
        (question,) = asked
        assert "bridge=vmbr0" in question
        assert "password='***'" in question
        for record in world.log[:2]:
            assert record["steps"][0]["params"]["net0"] == "name=eth0,bridge=vmbr0,ip=dhcp"
            assert record["steps"][0]["params"]["password"] == "***"
            assert record["reason"] == "log in with ***"
