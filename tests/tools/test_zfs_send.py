"""zfs send through the pipeline: where it may go, what it would cost, and, over a real sshd, that it arrives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, Refused
from proxmox_mcp.read_commands import match
from proxmox_mcp.ssh import Outcome
from proxmox_mcp.zfs import sending
from tests.piped import records
from tests.sshd import needs_sshd
from tests.zfs.far_side import far_side
from tests.zfs.shell import FLAGS, Here, at_the_node, outcome

pytestmark = pytest.mark.anyio
SOURCE = "tank/data@before"
NEW = {"source": SOURCE, "target_dataset": "tank/copy"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "give target_file or target_dataset"),
        ({"target_file": "/mnt/x", "target_dataset": "tank/x"}, "one of them"),
        ({"target_file": "/mnt/x", "force": True}, "a file is never overwritten"),
        ({"target_dataset": "tank"}, "a whole pool is not received into"),
        ({"target_dataset": "tank/data"}, "the source itself"),
        ({"target_file": "/mnt/x/"}, "absolute path"),
        ({"target_file": "relative"}, "absolute path"),
        ({"target_file": "/mnt/$(id)"}, "absolute path"),
        ({"target_dataset": "tank/x", "incremental_from": "-i"}, None),
        ({"target_dataset": "tank/x", "incremental_from": "@a/b"}, "a snapshot's name"),
    ],
)
async def test_targets_and_bases_are_checked_first(tmp_path: Path, arguments: dict[str, Any], why: str | None) -> None:
    async with at_the_node(tmp_path) as here:
        if why is None:  # a name that looks like an option is a name: it is sent as tank/data@-i
            await here.call("zfs_send", source=SOURCE, **arguments, dry_run=True)
            assert ["zfs", "send", "-nvP", "-i", "tank/data@-i", SOURCE] in here.pool.ran
            return
        with pytest.raises(InvalidArgument, match=why):
            await here.call("zfs_send", source=SOURCE, **arguments)
        assert here.pool.ran == []


async def test_replication_does_not_take_the_mountpoint_of_the_system_along(tmp_path: Path) -> None:
    """Properties go with -R: at the next boot the copy would be mounted over the node's own root."""
    async with at_the_node(tmp_path) as here:
        here.node.add("tank/root", mountpoint="/")
        here.node.snap("tank/root@before")
        wanted = {"source": "tank/root@before", "target_dataset": "tank/copy"}
        refused = await here.refusal("zfs_send", **wanted, replication=True, confirm=True)
        assert "tank/root is mounted at /, and with replication the copy would want that place too, at the next boot" in refused
        assert "Would work." in await here.text("zfs_send", **wanted, dry_run=True)
        text = await here.text("zfs_send", **NEW, replication=True, dry_run=True)
        assert "note: mountpoints that were set on the source go along" in text


async def test_without_allowed_directories_no_file_is_written(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        with pytest.raises(Refused, match="no directory is allowed") as refused:
            await here.call("zfs_send", source=SOURCE, target_file="/mnt/x", confirm=True)
        assert "PROXMOX_ZFS_SEND_DIRS=" in refused.value.hint


@pytest.mark.parametrize("path", ["/mnt/other/x", "/mnt/backup", "/mnt/backups/x", "/etc/cron.d/x"])
async def test_outside_of_them_neither(tmp_path: Path, path: str) -> None:
    async with at_the_node(tmp_path, zfs_send_dirs=("/mnt/backup",)) as here:
        with pytest.raises(Refused, match="is in none of the allowed directories: /mnt/backup"):
            await here.call("zfs_send", source=SOURCE, target_file=path, confirm=True)


@pytest.mark.parametrize(
    ("look", "why"),
    [
        ("missing\n", "there is no directory /mnt/backup/sub on pve1"),
        ("outside\n", "/mnt/backup/sub leads outside of /mnt/backup through a link"),
        ("exists\nfree 99999999\n", "/mnt/backup/sub/x exists, and a file is never overwritten"),
        ("free 1000\n", "about 47.1K are sent, and 1000B are free in /mnt/backup/sub"),
    ],
)
async def test_a_file_is_looked_at_beforehand(tmp_path: Path, look: str, why: str) -> None:
    async with at_the_node(tmp_path, zfs_send_dirs=("/mnt/backup",)) as here:
        here.pool.instead = lambda argv: outcome(0, look) if "look" in argv else None
        assert why in await here.refusal("zfs_send", source=SOURCE, target_file="/mnt/backup/sub/x", confirm=True)


async def test_a_new_dataset_is_a_change_with_its_estimate(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        assert "confirm=true missing" in await here.refusal("zfs_send", **NEW)
        text = await here.text("zfs_send", **NEW, replication=True, raw=True, dry_run=True)
        assert (
            "send tank/data@before into the new dataset tank/copy on node pve1: zfs send -R -w tank/data@before | zfs receive -u tank/copy"
            in text
        )
        assert "Risk: change; needs confirm=true\n" in text
        assert "about 47.1K" in text
        assert "it runs as unit pve-mcp-send-" in text


async def test_a_whole_stream_over_a_dataset_wants_force_and_is_data_loss(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        over = {"source": SOURCE, "target_dataset": "tank/backup"}
        refused = await here.refusal("zfs_send", **over, **FLAGS)
        assert "tank/backup exists: a whole stream goes into a new dataset, or over it with force=true and its data is lost" in refused
        assert "i_understand_data_loss=true missing" in await here.refusal("zfs_send", **over, force=True, confirm=True)
        text = await here.text("zfs_send", **over, force=True, dry_run=True)
        assert "Risk: data loss" in text
        assert "everything in tank/backup is lost" in text
        assert "| zfs receive -uF tank/backup" in text


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"target_dataset": "tank/nosuch/x"}, "its parent tank/nosuch does not exist"),
        ({"target_dataset": "tank/data/vm-200-disk-0/x"}, "a volume has no children"),
        ({"target_dataset": "tank/new", "incremental_from": "@manual-1"}, "an incremental stream needs it, with tank/data@manual-1"),
        ({"target_dataset": "tank/share", "force": True}, "tank/share has 3 snapshots, and ZFS does not replace a dataset that has some"),
        ({"target_dataset": "tank/share", "force": True}, "tank/share@held is held by keep"),
        ({"target_dataset": "tank/data/subvol-101-disk-0", "force": True}, "a guest that may be running uses it: CT 101 (mail)"),
        ({"target_dataset": "tank/backup", "incremental_from": "@manual-1"}, "the target does not have tank/data@manual-1"),
    ],
)
async def test_what_stands_in_the_way(tmp_path: Path, arguments: dict[str, Any], why: str) -> None:
    async with at_the_node(tmp_path) as here:
        assert why in await here.refusal("zfs_send", source=SOURCE, **arguments, **FLAGS)


def received(here: Here, *parts: str) -> None:
    """tank/backup got these snapshots of tank/data before."""
    for part in parts:
        here.node.snap(f"tank/backup@{part}", guid=here.node.snapshots[f"tank/data@{part}"]["guid"])


async def test_an_incremental_stream_goes_on_top_of_its_base(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        received(here, "before")
        wanted = {"source": "tank/data@manual-1", "target_dataset": "tank/backup", "incremental_from": "@before"}
        text = await here.text("zfs_send", **wanted, dry_run=True)
        assert "zfs send -i tank/data@before tank/data@manual-1 | zfs receive -u tank/backup" in text
        assert "Risk: data loss" in text  # it exists
        here.node.snap("tank/backup@newer")
        refused = await here.refusal("zfs_send", **wanted, **FLAGS)
        assert "the target has newer snapshots than tank/data@before (tank/backup: newer): force=true destroys them" in refused
        forced = await here.text("zfs_send", **wanted, force=True, dry_run=True)
        assert "what was written to the target after tank/data@before is lost and with the snapshots tank/backup: newer" in forced


async def test_what_zfs_says_of_the_stream_comes_before(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.fail["zfs send -nvP *"] = [1, "warning: cannot send 'tank/data@before': not an earlier snapshot from the same fs\n"]
        assert "ZFS says: warning: cannot send" in await here.refusal("zfs_send", **NEW, confirm=True)


async def test_keys_leftovers_and_damage_are_told(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.datasets["tank/data"]["local"]["keystatus"] = "unavailable"
        assert "the key of tank/data is not loaded: raw=true sends it encrypted" in await here.refusal("zfs_send", **NEW, confirm=True)
        assert "Would work" in await here.text("zfs_send", **NEW, raw=True, dry_run=True)
        here.node.datasets["tank/backup"]["local"]["receive_resume_token"] = "1-a287c037a-c0"
        refused = await here.refusal("zfs_send", source=SOURCE, target_dataset="tank/backup", force=True, raw=True, **FLAGS)
        assert "`zfs receive -A tank/backup` drops it" in refused
        from tests.zfs.samples import DAMAGED

        here.node.pools["tank"]["status"] = DAMAGED.replace("frag", "tank")
        assert "the stream may stop midway" in await here.text("zfs_send", **NEW, raw=True, dry_run=True)


async def test_the_same_transfer_is_not_started_twice(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.pool.instead = lambda argv: outcome(0, "active\n") if argv[0] == "systemctl" else None
        assert "it runs already as pve-mcp-send-" in await here.refusal("zfs_send", **NEW, confirm=True)


async def test_what_goes_on_alone_is_named_with_the_way_to_look(tmp_path: Path) -> None:
    async with at_the_node(tmp_path, max_wait=7) as here:

        def goes_on(argv: Sequence[str]) -> Outcome | None:
            return outcome(sending.GOES_ON) if list(argv[:2]) == ["sh", "-s"] else None

        here.pool.instead = goes_on
        text = await here.text("zfs_send", **NEW, confirm=True)
        assert text.startswith("Started, still running: send tank/data@before")
        look = next(line for line in text.splitlines() if line.startswith("look: "))
        line = look.split("command='")[1].split("'")[0]
        assert match(line, timeout=30, max_bytes=20_000).argv[0].endswith("journalctl")
        assert "proxmox_host_exec command='systemctl stop pve-mcp-send-" in text
        argv, script = next((argv, sent) for argv, sent in zip(here.pool.ran, here.pool.sent, strict=True) if argv[:2] == ["sh", "-s"])
        assert argv[2:] == ["--", sending.unit(sending.Stream(SOURCE), "tank/copy"), "7", "-u", "tank/copy", SOURCE]
        assert script is not None
        assert SOURCE.encode() not in script


# --- over a real sshd, with a real shell on the far side


@needs_sshd
async def test_a_file_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far_side(tmp_path, monkeypatch) as there:
        path = tmp_path / "backup" / "before.zfs"
        found = await there.call("zfs_send", source=SOURCE, target_file=str(path), confirm=True, reason="archive")
        assert not found.failed, found.text
        assert found.text.startswith(f"Done: send tank/data@before on node pve1: zfs send tank/data@before > {path}")
        assert f"file: {path}\nsize: {path.stat().st_size}B" in found.text
        assert there.person.told  # the last line of what it printed
        again = await there.call("zfs_send", source=SOURCE, target_file=str(path), dry_run=True)
        assert f"{path} exists, and a file is never overwritten" in again.text
        change = [record for record in records(tmp_path, "host") if record.get("risk") == "change" and "argv" in record]
        assert [record["argv"][:2] for record in change if record["argv"][0] == "sh"] == [["sh", "-s"]]


@needs_sshd
async def test_a_dataset_arrives_and_is_the_one_that_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far_side(tmp_path, monkeypatch) as there:
        found = await there.call("zfs_send", source=SOURCE, target_dataset="tank/copy", confirm=True)
        assert not found.failed, found.text
        assert "snapshot: tank/copy@before: received whole\nmounted: no; `zfs mount` mounts it" in found.text


@needs_sshd
async def test_a_stream_that_breaks_is_told_with_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far_side(tmp_path, monkeypatch) as there:
        zfs = (there.machine.programs / "zfs").read_text().removeprefix("#!/bin/sh\n")
        there.machine.program(
            "zfs", f'case "$1 $2" in "send tank"*) echo "warning: cannot send: Input/output error" >&2; exit 1;; esac\n{zfs}'
        )
        found = await there.call("zfs_send", source=SOURCE, target_dataset="tank/copy", confirm=True)
        assert found.failed
        assert found.text.startswith("Failed: send tank/data@before into the new dataset tank/copy")
        assert "result: failed: " in found.text
        assert "send 1" in found.text
        assert "receive 1" in found.text
        assert "- warning: cannot send: Input/output error" in found.text
        assert "- cannot receive: failed to read from stream" in found.text
        assert "which means: the sender failed, and the receiver with the broken stream" in found.text
        assert "target: there is no dataset tank/copy" in found.text


@needs_sshd
async def test_a_long_one_goes_on_when_the_call_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far_side(tmp_path, monkeypatch, max_wait=0) as there:
        zfs = (there.machine.programs / "zfs").read_text().removeprefix("#!/bin/sh\n")
        os.mkfifo(tmp_path / "gate")
        os.mkfifo(there.machine.units / "ended")
        there.machine.program("zfs", f'case "$1 $2" in "send tank"*) exec cat {tmp_path}/gate;; esac\n{zfs}')
        path = tmp_path / "backup" / "slow.zfs"
        found = await there.call("zfs_send", source=SOURCE, target_file=str(path), confirm=True)
        assert found.text.startswith("Started, still running")
        assert not path.exists()
        again = await there.call("zfs_send", source=SOURCE, target_file=str(path), dry_run=True)
        assert "it runs already as pve-mcp-send-" in again.text
        await there.app.close()
        (tmp_path / "gate").write_text("the stream\n")
        (there.machine.units / "ended").read_text()
        assert path.read_text() == "the stream\n"
