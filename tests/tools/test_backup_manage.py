"""proxmox_create_backup and proxmox_restore_backup: on the right node, never pruning unasked, the losses named before an overwrite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.changes import backup_archive, guest_config
from proxmox_mcp.errors import InvalidArgument, Refused
from tests.cluster import ADMIN
from tests.served_api import Reply, Request
from tests.tools.changes import NOW, Changes, changing

pytestmark = pytest.mark.anyio
YES = {"confirm": True}
ALL = {"confirm": True, "i_understand_data_loss": True}
G34_CT = "nas:backup/vzdump-lxc-205-2026_03_01-02_00_00.tar.zst"
G34_VM = "nas:backup/vzdump-qemu-205-2026_03_01-02_00_00.vma.zst"
CT_CONFIG = "arch: amd64\nhostname: mail\nrootfs: local-zfs:subvol-205-disk-0,size=8G\nunprivileged: 1\nnet0: name=eth0,bridge=vmbr0\n"
VM_CONFIG = (
    "#notes\nname: db1\nmemory: 256\nscsi0: local-lvm:vm-310-disk-0,size=32G\nide2: none,media=cdrom\n"
    "net0: virtio=BC:24:11:C8:A9:95,bridge=vmbr0\n[before]\nscsi0: gone:vm-310-disk-9,size=1G\n#qmdump#map:scsi0:drive-scsi0:local:qcow2:\n"
)


def archived(world: Changes, config: str) -> None:
    world.api.on("GET", "/nodes/{node}/vzdump/extractconfig", config)


# --- making one


async def test_g33_ok_instead_of_a_task_is_no_backup(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.on("POST", "/nodes/pve2/vzdump", "OK")
        found = await world.result("create_backup", vmid=103, storage="nas", wait_seconds=30, **YES)
        assert found.failed
        assert "no task was started; Proxmox answered 'OK'" in found.text
        assert world.sent[0][:2] == ("POST", "/nodes/pve2/vzdump")
        assert not [request for request in world.api.requests if "OK" in request.path]


async def test_old_backups_are_pruned_only_when_wished_for_and_then_a_person_is_asked(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/vzdump", "vzdump")
        await world.call("create_backup", vmid=101, storage="nas", **YES)
        shown = await world.call("create_backup", vmid=101, storage="nas", prune=True, dry_run=True)
        assert "then older backups are deleted by the retention of nas" in shown
        assert "note: retention of nas: keep-daily=7,keep-weekly=4" in shown
        await world.call("create_backup", vmid=101, storage="nas", prune=True, **YES)
        assert [sent[2]["remove"] for sent in world.sent] == ["0", "1"]


@pytest.mark.parametrize(("compress", "sent"), [("none", "0"), ("lzo", "lzo"), ("gzip", "gzip"), ("zstd", "zstd")])
async def test_compression_in_the_words_of_the_api(compress: str, sent: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/vzdump", "vzdump")
        await world.call("create_backup", vmid=205, compress=compress, **YES)
        assert world.sent[0][2]["compress"] == sent


async def test_a_backup_server_compresses_by_itself(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/vzdump", "vzdump")
        text = await world.call("create_backup", vmid=101, storage="pbs", **YES)
        assert "compress" not in world.sent[0][2]
        assert "a backup server compresses by itself" in text


async def test_a_storage_without_backups_names_those_that_have(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["local"]["content"] = "iso,vztmpl"
        (line,) = await world.obstacles("create_backup", vmid=101)
        assert line == "storage local is set up for iso, vztmpl, not for backup; storages of pve1 for it: nas, pbs"
        assert (await world.obstacles("create_backup", vmid=101, storage="oldnas"))[0] == "storage oldnas is disabled"
        assert "no storage elsewhere is visible" in (await world.obstacles("create_backup", vmid=101, storage="elsewhere"))[0]


async def test_what_is_not_in_the_backup_and_what_else_is_running_is_said(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.config(205, mp0="local-lvm:vm-205-disk-1,mp=/data", mp1="/mnt/media,mp=/media", mp2="local-lvm:vm-205-disk-2,mp=/x,backup=1")
        world.api.world.task("pve1", "vzdump", "102", age=60, took=None)
        text = await world.call("create_backup", vmid=205, dry_run=True)
        assert "not in the backup: mp0 (local-lvm:vm-205-disk-1), mp1 (/mnt/media)" in text
        assert "pve1 is making another backup: this one waits for it" in text
        world.config(101, scsi1="local-lvm:vm-101-disk-1,backup=0,size=1G")
        assert "not in the backup: scsi1 (local-lvm:vm-101-disk-1, 1G)" in await world.call("create_backup", vmid=101, dry_run=True)


async def test_the_new_archive_is_named_with_its_size(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:

        def made(_: Request) -> None:
            row = {"volid": "nas:backup/vzdump-qemu-101-2026_12_01-02_17_00.vma.zst", "content": "backup", "vmid": 101}
            old = {"volid": "nas:backup/vzdump-qemu-101-2026_11_01-02_17_00.vma.zst", "content": "backup", "vmid": 101}
            world.api.world.volumes["nas", None] = [{**old, "ctime": NOW - 10**6, "size": 9}, {**row, "ctime": NOW + 1, "size": 3 * 2**30}]

        world.takes("POST", "/nodes/pve1/vzdump", "vzdump", effect=made)
        text = await world.call("create_backup", vmid=101, storage="nas", **YES)
        assert "archive: nas:backup/vzdump-qemu-101-2026_12_01-02_17_00.vma.zst\nsize: 3.0G" in text


async def test_an_older_archive_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        old = {"volid": "nas:backup/vzdump-qemu-101-2026_11_01-02_17_00.vma.zst", "content": "backup", "vmid": 101, "ctime": NOW - 60}
        world.api.world.volumes["nas", None] = [old]
        world.takes("POST", "/nodes/pve1/vzdump", "vzdump")
        text = await world.call("create_backup", vmid=101, storage="nas", **YES)
        assert "archive:" not in text
        assert "the new archive is not in the list of nas" in text


async def test_a_call_whose_answer_never_comes_is_unknown(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.on("POST", "/nodes/pve1/vzdump", Reply(596, "Connection timed out"))
        found = await world.result("create_backup", vmid=101, storage="nas", **YES)
        assert found.text.startswith("Outcome unknown: back up VM 101 (web) on pve1")
        assert "do not repeat it" in found.text
        assert len(world.api.writes) == 1


@pytest.mark.parametrize(
    ("notes", "sent"),
    [("{{guestname}} before\nthe upgrade", "{{guestname}} before\\nthe upgrade"), ("C:\\temp; a=b", "C:\\\\temp; a=b")],
)
async def test_notes_travel_as_a_template(notes: str, sent: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/pve1/vzdump", "vzdump")
        await world.call("create_backup", vmid=101, storage="nas", notes=notes, **YES)
        assert world.sent[0][2]["notes-template"] == sent
        with pytest.raises(InvalidArgument, match=r"\{\{hostname\}\} is no variable"):
            await world.result("create_backup", vmid=101, notes="{{hostname}}", **YES)


async def test_job_errors_quote_the_log(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        log = [f"INFO: {n}%" for n in range(300)] + ["ERROR: Backup of VM 101 failed - job failed with err -5"]
        world.takes("POST", "/nodes/pve1/vzdump", "vzdump", status="job errors", log=log)
        found = await world.result("create_backup", vmid=101, storage="nas", **YES)
        assert found.failed
        assert "job failed with err -5" in found.text


# --- restoring one


@pytest.mark.parametrize(
    ("volid", "kind", "vmid", "server"),
    [
        ("nas:backup/vzdump-lxc-205-2026_03_01-02_00_00.tar.zst", "lxc", 205, False),
        ("local:backup/vzdump-qemu-101-2026_02_28-03_00_00.vma", "qemu", 101, False),
        ("local:backup/vzdump-lxc-205-2026_02_28-03_00_00.tgz", "lxc", 205, False),
        ("pbs:backup/vm/101/2026-03-01T01:00:00Z", "qemu", 101, True),
        ("pbs:backup/ct/205/2026-03-01T01:00:00Z", "lxc", 205, True),
        ("nas:backup/renamed.vma.zst", "qemu", None, False),
        ("nas:backup/vzdump-qemu-101-before-upgrade.vma.zst", "qemu", 101, False),
        ("nas:backup/vzdump-lxc-205-keep.tar.zst", "lxc", 205, False),
        ("nas:backup/renamed.tar", "lxc", None, False),
        ("nas:backup/renamed.bin", None, None, False),
    ],
)
def test_g32_archives_tell_their_kind_and_guest(volid: str, kind: str | None, vmid: int | None, server: bool) -> None:
    archive = backup_archive.parse(volid)
    assert (archive.kind, archive.vmid, archive.on_backup_server) == (kind, vmid, server)
    assert archive.storage == volid.partition(":")[0]


def test_the_configuration_in_an_archive_ends_where_its_snapshots_begin() -> None:
    config = guest_config.archived(VM_CONFIG)
    assert config["scsi0"] == "local-lvm:vm-310-disk-0,size=32G"
    assert [volume.key for volume in guest_config.disks(config, "qemu")] == ["scsi0"]


async def test_g34_the_endpoint_and_the_parameters_are_the_archives(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        del world.api.world.guests[205]
        archived(world, CT_CONFIG)
        shown = await world.call("restore_backup", vmid=205, node="pve1", archive=G34_CT, storage="local-lvm", dry_run=True)
        assert f"1. POST /nodes/pve1/lxc vmid=205 ostemplate={G34_CT} restore=1 storage=local-lvm unprivileged=1\n" in shown
        archived(world, VM_CONFIG)
        shown = await world.call("restore_backup", vmid=205, node="pve1", archive=G34_VM, storage="local-lvm", dry_run=True)
        assert f"1. POST /nodes/pve1/qemu vmid=205 archive={G34_VM} storage=local-lvm\n" in shown
        assert "force" not in shown
        for volid, kind in ((G34_CT, "qemu"), (G34_VM, "lxc")):
            with pytest.raises(InvalidArgument, match="is a backup of type"):
                await world.result("restore_backup", vmid=300, archive=volid, vm_type=kind, **YES)


@pytest.mark.parametrize(("vmid", "archive", "config"), [(101, G34_VM, VM_CONFIG), (205, G34_CT, CT_CONFIG)])
async def test_g34_a_running_target_is_refused_first(vmid: int, archive: str, config: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, config)
        found = await world.obstacles("restore_backup", vmid=vmid, archive=archive, storage="local-lvm", force=True)
        assert found == [found[0]]
        assert f"is running: stop it first (proxmox_vm_power vmid={vmid} action=shutdown)" in found[0]


async def test_g34_force_is_sent_only_over_an_existing_guest_and_with_both_flags(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        world.takes("POST", "/nodes/pve1/qemu", "qmrestore")
        (line,) = await world.obstacles("restore_backup", vmid=102, archive=G34_VM)
        assert "needs force=true (and i_understand_data_loss=true); the next free id is 100" in line
        assert "i_understand_data_loss=true missing" in await world.refusal("restore_backup", vmid=102, archive=G34_VM, force=True, **YES)
        with pytest.raises(Refused, match="needs force=true"):
            await world.result("restore_backup", vmid=102, archive=G34_VM, **ALL)
        await world.call("restore_backup", vmid=102, archive=G34_VM, force=True, **ALL)
        text = await world.call("restore_backup", vmid=300, node="pve1", archive=G34_VM, force=True, **YES)
        assert "there is nothing to overwrite, force is not sent" in text
        assert [sent[2].get("force") for sent in world.sent] == ["1", None]


async def test_what_an_overwrite_destroys_is_in_its_first_sentence(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        world.api.world.guests[102].snapshots = [{"name": "good", "snaptime": 1}, {"name": "better", "snaptime": 2, "parent": "good"}]
        world.config(102, scsi1="local-lvm:vm-102-disk-1,size=500G", unused0="local-lvm:vm-102-disk-2")
        text = await world.call("restore_backup", vmid=102, archive=G34_VM, force=True, dry_run=True)
        first = text.splitlines()[1]
        for lost in ("scsi0 (local-lvm:vm-102-disk-0, 32G)", "scsi1 (local-lvm:vm-102-disk-1, 500G)", "unused0", "good, better"):
            assert lost in first
        assert "Risk: data loss" in text
        # what is not in the backup is not overwritten
        assert (
            ": its disks (scsi0 (local-lvm:vm-102-disk-0, 32G)), its snapshots (good, better) and its configuration are destroyed" in first
        )
        kept = "scsi1 (local-lvm:vm-102-disk-1, 500G), unused0 (local-lvm:vm-102-disk-2)"
        assert first.endswith(f"; not in the backup, so kept as unused disks: {kept}")
        archived(world, VM_CONFIG.replace("size=32G", "backup=0,size=32G", 1))
        text = await world.call("restore_backup", vmid=102, archive=G34_VM, force=True, dry_run=True)
        assert "its disks (none)" in text
        archived(world, VM_CONFIG.replace("ide2: none", "scsi1: local-lvm:vm-310-cloudinit"))
        text = await world.call("restore_backup", vmid=102, archive=G34_VM, force=True, dry_run=True)
        assert "kept as unused disks: unused0" in text


@pytest.mark.parametrize(
    ("vmid", "archive", "config"),
    [(102, G34_VM, ""), (102, G34_VM.replace(".vma.zst", ".tar"), VM_CONFIG), (206, G34_CT, CT_CONFIG.replace("local-zfs", "local-lvm"))],
)
async def test_an_overwrite_destroys_all_where_it_is_not_known_better(vmid: int, archive: str, config: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, config)
        more = "scsi1" if vmid == 102 else "mp3"
        world.config(vmid, **{more: f"local-lvm:vm-{vmid}-disk-9,size=500G"})
        first = (await world.call("restore_backup", vmid=vmid, archive=archive, force=True, dry_run=True)).splitlines()[1]
        assert f"{more} (local-lvm:vm-{vmid}-disk-9, 500G)" in first.partition("), its snapshots")[0]
        assert "kept as unused" not in first


@pytest.mark.parametrize(
    ("options", "words"),
    [({"protection": 1}, "is protected (protection=1)"), ({"lock": "backup"}, "is locked (backup)")],
)
async def test_a_protected_or_locked_guest_is_not_overwritten(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        world.config(102, **options)
        assert words in (await world.obstacles("restore_backup", vmid=102, archive=G34_VM, force=True))[0]


async def test_an_id_of_the_other_kind_or_of_another_node_is_refused(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, CT_CONFIG)
        found = await world.obstacles("restore_backup", vmid=102, archive=G34_CT, storage="local-lvm", force=True)
        assert found == ["the backup is of a container, and VM 102 (db) is not: take another id"]
        with pytest.raises(Refused, match="guest 103 is on node pve2, not on pve1"):
            await world.result("restore_backup", vmid=103, node="pve1", archive=G34_VM, force=True, **ALL)


async def test_a_container_goes_where_it_came_from_unless_told_otherwise(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, CT_CONFIG)
        found = await world.obstacles("restore_backup", vmid=300, node="pve1", archive=G34_CT)
        assert "no storage local-zfs is visible" in found[0]
        archived(world, CT_CONFIG.replace("local-zfs", "local-lvm"))
        shown = await world.call("restore_backup", vmid=300, node="pve1", archive=G34_CT, dry_run=True)
        assert "storage=local-lvm" in shown
        archived(world, "hostname: x\n")
        with pytest.raises(InvalidArgument, match="a container's backup needs a storage"):
            await world.result("restore_backup", vmid=300, node="pve1", archive=G34_CT, **YES)


async def test_disks_whose_storage_is_gone_need_another(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG.replace("local-lvm:vm-310", "away:vm-310"))
        assert "no storage away is visible" in (await world.obstacles("restore_backup", vmid=300, node="pve1", archive=G34_VM))[0]
        assert await world.obstacles("restore_backup", vmid=300, node="pve1", archive=G34_VM, storage="local-lvm") == []
        found = await world.obstacles("restore_backup", vmid=300, node="pve1", archive=G34_VM, storage="nas")
        assert found[0].startswith("storage nas is set up for backup, iso, not for images; storages of pve1 for it: local-lvm")


async def test_a_missing_archive_is_certain_only_where_the_token_would_see_it(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        missing = f"volume '{G34_VM}' does not exist"
        world.api.on("GET", "/nodes/{node}/vzdump/extractconfig", Reply(500, missing, message=missing))
        (line,) = await world.obstacles("restore_backup", vmid=300, node="pve1", archive=G34_VM, storage="local-lvm")
        assert line.startswith(f"there is no {G34_VM} on pve1")
        world.grant({path: {name: 1 for name in held if name not in ("Datastore.Allocate", "VM.Backup")} for path, held in ADMIN.items()})
        text = await world.call("restore_backup", vmid=300, node="pve1", archive=G34_VM, storage="local-lvm", dry_run=True)
        assert f"not checked: whether {G34_VM} exists" in text
        assert "there is no" not in text


async def test_a_privileged_container_and_bind_mounts_are_not_for_every_token(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, CT_CONFIG.replace("unprivileged: 1\n", "mp0: /mnt/media,mp=/media\n"))
        arguments = {"vmid": 300, "node": "pve1", "archive": G34_CT, "storage": "local-lvm"}
        (line,) = await world.obstacles("restore_backup", **arguments)
        assert line.startswith("mp0 (/mnt/media) in the backup is a directory or device of the host")
        archived(world, CT_CONFIG.replace("unprivileged: 1\n", ""))
        assert "unprivileged=0" in await world.call("restore_backup", **arguments, dry_run=True)
        world.without("Sys.Modify")
        assert await world.obstacles("restore_backup", **arguments) == ["the token lacks Sys.Modify on /"]


async def test_whoever_restores_over_the_very_guest_needs_no_right_to_read_its_backups(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        own = "nas:backup/vzdump-qemu-300-2026_03_01-02_00_00.vma.zst"
        world.without("Datastore.Allocate", "VM.Backup")
        assert await world.obstacles("restore_backup", vmid=300, node="pve1", archive=own, storage="local-lvm") == []
        found = await world.obstacles("restore_backup", vmid=301, node="pve1", archive=own, storage="local-lvm")
        assert found == ["the token lacks VM.Backup on /vms/300"]


async def test_a_backup_of_nobody_is_for_those_who_may_allocate_the_storage(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        arguments = {"vmid": 300, "node": "pve1", "archive": "nas:backup/renamed.vma.zst", "storage": "local-lvm"}
        assert await world.obstacles("restore_backup", **arguments) == []
        world.without("Datastore.Allocate")
        assert await world.obstacles("restore_backup", **arguments) == ["the token lacks Datastore.Allocate on /storage/nas"]


async def test_making_a_guest_and_overwriting_one_take_different_rights(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        own = "nas:backup/vzdump-qemu-102-2026_03_01-02_00_00.vma.zst"
        world.without("VM.Allocate")
        assert await world.obstacles("restore_backup", vmid=102, archive=own, force=True) == []
        found = await world.obstacles("restore_backup", vmid=300, node="pve1", archive=own, storage="local-lvm")
        assert found == ["the token lacks VM.Allocate on /vms/300"]
        world.without("VM.Backup")
        assert await world.obstacles("restore_backup", vmid=102, archive=own, force=True) == ["the token lacks VM.Backup on /vms/102"]


async def test_the_same_mac_addresses_twice_are_warned_of(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        source = "nas:backup/vzdump-qemu-101-2026_03_01-02_00_00.vma.zst"
        arguments = {"vmid": 300, "node": "pve1", "archive": source, "storage": "local-lvm"}
        assert "unique=true gives new ones" in await world.call("restore_backup", **arguments, dry_run=True)
        shown = await world.call("restore_backup", **arguments, unique=True, dry_run=True)
        assert "unique=1" in shown
        assert "same MAC" not in shown


async def test_a_local_archive_is_restored_on_its_node(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        archived(world, VM_CONFIG)
        local = "local:backup/vzdump-qemu-310-2026_12_01-02_17_38.vma.zst"
        with pytest.raises(Refused, match="storage local is separate on pve1, pve2: say on which"):
            await world.result("restore_backup", vmid=300, archive=local, storage="local-lvm", **YES)
        shown = await world.call("restore_backup", vmid=300, node="pve2", archive=local, storage="local-lvm", dry_run=True)
        assert "POST /nodes/pve2/qemu" in shown


@pytest.mark.parametrize("archive", ["../../etc/passwd", "/var/lib/vz/dump/x.vma", "nas:../x", "nas:backup/x;rm -rf", "nas:backup/a?b"])
async def test_hostile_archives_reach_no_request(archive: str, tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument):
            await world.result("restore_backup", vmid=300, node="pve1", archive=archive, storage="local-lvm", **YES)
        assert not world.api.requests
