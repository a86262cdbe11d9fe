"""proxmox_disk_prepare: disks in use are refused by name, wiping goes over SSH from the start, the disk proves who it is right before."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.changes import disk_use
from proxmox_mcp.errors import InvalidArgument, NotFound, Refused
from proxmox_mcp.ssh import command
from tests.piped import records
from tests.served_api import Reply
from tests.sshd import needs_sshd, start_sshd
from tests.tools.changes import Changes, changing

pytestmark = pytest.mark.anyio
ALL = {"confirm": True, "i_understand_data_loss": True}
HERE = platform.node().partition(".")[0]
FREE = {
    "devpath": "/dev/sdc",
    "by_id_link": "/dev/disk/by-id/ata-FREE_C",
    "serial": "FREE-C-0001",
    "wwn": "0x5000c50000000a07",
    "model": "VIRTUAL",
    "size": 2**30,
    "type": "hdd",
    "osdid": -1,
}


def part(number: int, used: str, **more: Any) -> dict[str, Any]:
    return {"devpath": f"/dev/sdc{number}", "parent": "/dev/sdc", "type": "partition", "size": 2**28, "used": used, "osdid": -1, **more}


def serve(world: Changes, *rows: dict[str, Any]) -> None:
    world.api.on("GET", "/nodes/{node}/disks/list", list(rows))


# --- G53


@pytest.mark.parametrize("name", ["sdc", "/dev/sdc", "/dev/disk/by-id/ata-FREE_C"])
async def test_g53_a_disk_is_found_under_each_of_its_names(name: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, FREE)
        world.takes("POST", "/nodes/pve1/disks/initgpt", "diskinit")
        await world.call("disk_prepare", node="pve1", action="init_gpt", disk=name, uuid="1b6adfab-a1e5-4627-a32a-6b2548fe0df3", **ALL)
        assert world.sent == [("POST", "/nodes/pve1/disks/initgpt", {"disk": "/dev/sdc", "uuid": "1b6adfab-a1e5-4627-a32a-6b2548fe0df3"})]


@pytest.mark.parametrize(
    "disk",
    ["/dev/sda; reboot", "sda;id", "/dev/../etc/passwd", "$(id)", "sda b", "-a", "/etc/passwd", "/dev/sd\na", "", "//dev/sda", "a" * 300],
)
async def test_g53_what_is_no_disks_name_reaches_no_request_and_no_command(disk: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        for via in ("auto", "api", "ssh"):
            with pytest.raises(InvalidArgument):
                await world.result("disk_prepare", node="pve1", action="wipe", disk=disk, via=via, **ALL)
        assert not world.api.requests


@pytest.mark.parametrize(("action", "via"), [("init_gpt", "api"), ("init_gpt", "ssh"), ("wipe", "auto"), ("wipe", "api")])
async def test_g53_a_partition_is_refused_with_its_disk(action: str, via: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, {**FREE, "used": "partitions"}, part(2, "ext4"))
        with pytest.raises(InvalidArgument, match="/dev/sdc2 is a partition; name the whole disk, /dev/sdc"):
            await world.result("disk_prepare", node="pve1", action=action, disk="sdc2", via=via, **ALL)


async def test_a_disk_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, FREE)
        for name in ("sdz", "/dev/disk/by-id/ata-OTHER"):
            with pytest.raises(NotFound, match="/dev/sdc"):
                await world.result("disk_prepare", node="pve1", action="init_gpt", disk=name, **ALL)


@pytest.mark.parametrize("odd", ["--all", "-f", "/dev/../etc/passwd", "/dev/sdc\n/dev/sda", "/dev/$(id)", 5])
async def test_what_the_api_gives_as_no_path_never_becomes_a_word_of_a_command(odd: Any, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, {**FREE, "by_id_link": odd})
        (disk,) = await disk_use.listed(world.app.api, "pve1")
        assert (disk.path, disk.by_id) == ("/dev/sdc", "")
        serve(world, {**FREE, "devpath": odd})
        assert not await disk_use.listed(world.app.api, "pve1")


# --- disks in use


TREE = {
    "leaf": 0,
    "children": [{"name": "vg0", "leaf": 0, "children": [{"name": "/dev/sdc", "leaf": 1}, {"name": "/dev/sdc3", "leaf": 1}]}],
}


def pool(device: str) -> dict[str, Any]:
    return {"name": "bulk", "state": "ONLINE", "children": [{"name": "bulk", "children": [{"name": device, "state": "ONLINE", "leaf": 1}]}]}


async def test_a_pool_whose_devices_no_disk_names_leaves_a_doubt(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, {**FREE, "used": "ZFS"}, {**FREE, "devpath": "/dev/sdd", "serial": "OTHER-01", "wwn": "", "by_id_link": ""})
        world.api.on("GET", "/nodes/pve1/disks/zfs", [{"name": "bulk"}])
        words = "whether /dev/sdc belongs to ZFS pool bulk: not all of its devices are known disks"
        for device, doubted in (("6c1e8b1a-9d41-4a3b-8a55-0d8a4ff0c1aa", True), ("/dev/sdd", False)):
            world.api.on("GET", "/nodes/pve1/disks/zfs/bulk", pool(device))
            text = await world.call("disk_prepare", node="pve1", action="wipe", disk="sdc", via="ssh", dry_run=True)
            assert (words in text) is doubted


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{**FREE, "used": "mounted", "mounted": 1}], "/dev/sdc is mounted"),
        ([{**FREE, "used": "partitions"}, part(1, "ext4", mounted=1)], "/dev/sdc1 is mounted"),
        ([{**FREE, "used": "partitions", "osdid": 3}], "/dev/sdc is Ceph OSD 3"),
        ([{**FREE, "used": "partitions", "osdid": -1, "osdid-list": ["4", 3]}], "/dev/sdc is Ceph OSD 3, OSD 4"),
        ([{**FREE, "used": "LVM", "osdid-list": None, "db": 2, "wal": "1", "journals": 0}], "/dev/sdc is Ceph DB, WAL"),
        ([{**FREE, "used": "Device Mapper"}], "held by the device mapper"),
        ([{**FREE, "used": "LVM"}], "/dev/sdc is a physical volume of volume group vg0"),
        ([{**FREE, "used": "partitions"}, part(3, "LVM")], "/dev/sdc3 is a physical volume of volume group vg0"),
        ([{**FREE, "used": "ZFS"}], "/dev/sdc belongs to ZFS pool bulk"),
    ],
)
@pytest.mark.parametrize("action", ["init_gpt", "wipe"])
async def test_a_disk_in_use_is_refused_and_the_use_named(rows: list[dict[str, Any]], words: str, action: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, *rows)
        world.api.on("GET", "/nodes/pve1/disks/lvm", TREE)
        world.api.on("GET", "/nodes/pve1/disks/zfs", [{"name": "bulk"}])
        world.api.on("GET", "/nodes/pve1/disks/zfs/bulk", pool("/dev/disk/by-id/wwn-0x5000c50000000a07-part1"))
        found = await world.obstacles("disk_prepare", node="pve1", action=action, disk="sdc", via="api")
        assert any("is in use" in line and words in line for line in found), found


@pytest.mark.parametrize(
    "device",
    [
        "/dev/sdc",
        "/dev/sdc1",
        "/dev/disk/by-id/ata-FREE_C-part1",
        "/dev/disk/by-id/scsi-XY_FREE-C-0001",
        "/dev/disk/by-id/wwn-0x5000c50000000a07",
    ],
)
async def test_a_pools_disk_is_known_under_each_of_its_names(device: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, {**FREE, "used": "ZFS"}, part(1, "ZFS"))
        disk = await disk_use.find(world.app.api, "pve1", "sdc")
        assert disk_use.carries(disk, [device])
        assert not disk_use.carries(disk, ["/dev/sdd", "/dev/disk/by-id/ata-OTHER-part1", "/dev/sdca"])


async def test_old_data_is_no_use_for_a_wipe_and_stands_in_the_way_of_a_gpt(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, {**FREE, "used": "ZFS", "gpt": 1}, part(1, "ZFS"), part(9, "ZFS reserved"))
        world.api.on("GET", "/nodes/pve1/disks/zfs", [])
        assert await world.obstacles("disk_prepare", node="pve1", action="wipe", disk="sdc", via="api") == [
            "no API token may wipe a disk, only root@pam itself with a ticket: via=ssh does it over SSH"
        ]
        found = await world.obstacles("disk_prepare", node="pve1", action="init_gpt", disk="sdc")
        assert found == ["/dev/sdc (VIRTUAL, serial FREE-C-0001, 1.0G) is not empty: ZFS; proxmox_disk_prepare action=wipe empties it"]


async def test_where_uses_cannot_be_read_the_disk_counts_as_used(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, {**FREE, "used": "LVM"})
        world.api.on("GET", "/nodes/pve1/disks/lvm", Reply(500, "vgs failed"))
        found = await world.obstacles("disk_prepare", node="pve1", action="wipe", disk="sdc", via="api")
        assert "is in use: /dev/sdc is in use by LVM" in found[0]


# --- G15: over SSH, or not at all


async def test_g15_the_api_way_reports_and_stops(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        serve(world, FREE)
        told = await world.refusal("disk_prepare", node="pve1", action="wipe", disk="sdc", via="api", **ALL)
        assert "1. PUT /nodes/pve1/disks/wipedisk disk=/dev/sdc" in told
        assert "no API token may wipe a disk" in told
        assert not records(tmp_path, "host")


@needs_sshd
async def test_g15_without_ssh_the_missing_variables_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No SSH setting at all: the API's address is tried with what the user's agent and home have, which is nothing here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with start_sshd(tmp_path) as sshd:
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh/known_hosts").write_text(sshd.host_key_line + "\n")
        async with changing(tmp_path, ssh_port=sshd.port) as world:
            serve(world, FREE)
            (line,) = await world.obstacles("disk_prepare", node="pve1", action="wipe", disk="sdc")
            assert "PROXMOX_SSH_KEY_PATH" in line
            assert "PROXMOX_SSH_PASSWORD" in line
            told = await world.refusal("disk_prepare", node="pve1", action="wipe", disk="sdc", **ALL)
            assert "PROXMOX_SSH_KEY_PATH" in told
            assert not world.api.writes


async def test_g15_a_shell_that_is_not_there_is_said_so_and_the_api_is_not_asked_instead(tmp_path: Path) -> None:
    async with changing(tmp_path, ssh_host="127.0.0.1", ssh_port=1, ssh_timeout=2.0) as world:
        serve(world, FREE)
        (line,) = await world.obstacles("disk_prepare", node="pve1", action="wipe", disk="sdc")
        assert "cannot be reached" in line
        assert "PUT" not in await world.call("disk_prepare", node="pve1", action="wipe", disk="sdc", dry_run=True)


@dataclass
class Far:
    """A node whose shell is a real sshd here; its disk is a file with something on it."""

    world: Changes
    image: Path
    serial: Path

    @property
    def commands(self) -> list[list[str]]:
        return [record["argv"] for record in records(self.world.tmp_path, "host") if record.get("argv", ["uname"])[0] != "uname"]


@asynccontextmanager
async def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Far]:
    if shutil.which("wipefs") is None or shutil.which("mkswap") is None:
        pytest.skip("wipefs and mkswap are not installed")
    tools, image, serial = tmp_path / "bin", tmp_path / "disk.img", tmp_path / "serial"
    tools.mkdir()
    serial.write_text("FREE-C-0001\n")
    udevadm = tools / "udevadm"
    udevadm.write_text(f'#!/bin/sh\n[ "$1" = info ] && cat {serial}\nexit 0\n')
    udevadm.chmod(0o755)
    image.write_bytes(bytes(2**20))
    ran(["mkswap", str(image)])
    monkeypatch.setattr(command, "PATH", f"{tools}:{command.PATH}")
    monkeypatch.setitem(command.ENVIRONMENT, "PATH", f"{tools}:{command.ENVIRONMENT['PATH']}")
    with start_sshd(tmp_path) as sshd:
        target = sshd.target()
        access = {"ssh_host": target.host, "ssh_port": target.port, "ssh_user": target.user, "ssh_key_path": target.key_file}
        async with changing(tmp_path, nodes=1, ssh_known_hosts=str(target.known_hosts), **access) as world:
            world.api.world.nodes[0] = HERE
            serve(world, {**FREE, "by_id_link": str(image), "used": "swap"})
            yield Far(world, image, serial)


def ran(argv: list[str]) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def signatures(image: Path) -> str:
    return ran(["wipefs", str(image)])


@needs_sshd
async def test_a_wipe_runs_over_ssh_after_the_same_gates_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far(tmp_path, monkeypatch) as there:
        assert "swap" in signatures(there.image)
        told = await there.world.refusal("disk_prepare", action="wipe", disk="sdc")
        assert f"2. on node {HERE}: wipefs --all {there.image}" in told
        assert not there.commands
        assert "swap" in signatures(there.image)
        text = await there.world.call("disk_prepare", action="wipe", disk="sdc", **ALL)
        assert text.startswith("Done: erase every signature and partition table on /dev/sdc")
        assert "over SSH" in text
        assert signatures(there.image) == ""
        assert [argv[0] for argv in there.commands] == ["sh", "wipefs", "udevadm"]
        assert not there.world.api.writes
        assert not there.world.log
        outcomes = [record for record in records(tmp_path, "host") if "exit" in record]
        assert [record["exit"] for record in outcomes][-3:] == [0, 0, 0]


@needs_sshd
async def test_another_disk_under_the_same_name_is_not_wiped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far(tmp_path, monkeypatch) as there:
        there.serial.write_text("ANOTHER-DISK\n")
        found = await there.world.result("disk_prepare", action="wipe", disk="sdc", **ALL)
        assert found.failed
        assert "is not the disk it was" in found.text
        assert "swap" in signatures(there.image)
        assert [argv[0] for argv in there.commands] == ["sh"]


@needs_sshd
async def test_a_machine_that_is_another_node_is_an_obstacle_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far(tmp_path, monkeypatch) as there:
        there.world.api.world.nodes[0] = "pve7"
        told = await there.world.refusal("disk_prepare", node="pve7", action="wipe", disk="sdc", **ALL)
        assert "no SSH target is configured for node pve7" in told
        assert "PROXMOX_SSH_NODES=pve7=" in told
        assert not there.commands


async def test_a_disk_that_changed_while_a_person_thinks_is_left_alone(tmp_path: Path) -> None:
    from dataclasses import replace

    from tests.piped import FakePerson

    async with changing(tmp_path) as world:
        serve(world, FREE)
        world.app.settings = replace(world.app.settings, approval="data_loss")

        class Slow(FakePerson):
            async def approve(self, plan: Any) -> bool:
                serve(world, {**FREE, "serial": "OTHER"})
                return True

        with pytest.raises(Refused, match="the situation changed"):
            await world.result("disk_prepare", node="pve1", action="init_gpt", disk="sdc", person=Slow(), **ALL)
        assert not world.api.writes
