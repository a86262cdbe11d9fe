"""ZFS snapshots through the pipeline: lists, made, destroyed in two steps, and never those of a running backup."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import NotFound, ProxmoxMcpError, SshError
from proxmox_mcp.mcp_instance import LONGEST_ERROR
from proxmox_mcp.ssh import Outcome
from proxmox_mcp.text import clean_block
from tests.cluster.world import Guest
from tests.served_api import Reply
from tests.zfs.shell import FLAGS, Here, at_the_node, outcome

pytestmark = pytest.mark.anyio
ACT = {"dry_run": False, **FLAGS}
DATA = {"dataset": "tank/data", "pattern": "autosnap_*"}


async def test_the_list_is_by_dataset_and_age(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        text = await here.text("zfs_list_snapshots", dataset="tank/data", contains="autosnap")
        head, columns, *rows = text.splitlines()
        assert head == "2 snapshots; node=pve1; dataset=tank/data; contains=autosnap; used=0B; refer=96.0K"
        assert columns == "name taken"
        assert [row.split()[0] for row in rows] == [
            "tank/data@autosnap_2025-11-30_00:00:01_daily",
            "tank/data@autosnap_2025-12-01_00:00:01_daily",
        ]
        found = json.loads(await here.text("zfs_list_snapshots", response_format="json"))
        held = next(row for row in found["items"] if row["name"] == "tank/share@held")
        assert held["holds"] == 1
        assert next(row for row in found["items"] if row["name"] == "tank/share@clonesrc")["clones"] == "tank/share-clone"


async def test_g64_fifty_thousand_snapshots_are_counted_and_paged(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        lines = "".join(f"tank/data@autosnap_{n:05}\t{n}\t{1796000000 + n}\t0\t98304\t0\t-\toff\n" for n in range(50_000))
        here.pool.instead = lambda argv: outcome(0, lines) if list(argv[:2]) == ["zfs", "list"] else None
        text = await here.text("zfs_list_snapshots")
        assert text.startswith("1-300 of 50000 snapshots; node=pve1;")
        cursor = text.rpartition("cursor=")[2].split()[0]
        assert "autosnap_00300 " in await here.text("zfs_list_snapshots", cursor=cursor)
        lines = lines[:5_000]
        here.pool.instead = lambda argv: outcome(0, lines, omitted_bytes=7) if list(argv[:2]) == ["zfs", "list"] else None
        assert "note: the list is too long: 7 bytes of it were left out; give a dataset" in await here.text("zfs_list_snapshots")
        refused = await here.refusal("zfs_destroy_snapshots_by_pattern", dataset="tank", pattern="*", **ACT)
        assert "too long to be complete" in refused


async def test_a_list_that_did_not_come_to_its_end_is_no_list(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        half = "tank/data@autosnap_1\t1\t1796000000\t0\t98304\t0\t-\toff\n"
        here.pool.instead = lambda argv: outcome(0, half, open_end=True) if list(argv[:2]) == ["zfs", "list"] else None
        with pytest.raises(SshError, match="the output of zfs on pve1 did not come to its end"):
            await here.call("zfs_list_snapshots")


async def test_a_snapshot_is_taken(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        wanted = {"dataset": "tank/data", "snapname": "pre upgrade:1", "recursive": True}
        assert "confirm=true missing" in await here.refusal("zfs_create_snapshot", **wanted)
        text = await here.text("zfs_create_snapshot", **wanted, confirm=True)
        assert here.pool.changes == [["zfs", "snapshot", "-r", "tank/data@pre upgrade:1"]]
        assert "snapshots: 4" in text


@pytest.mark.parametrize(
    ("dataset", "snapname", "recursive", "why"),
    [
        ("tank/data", "before", False, "tank/data@before exists already"),
        ("tank/busy", "s1", True, "tank/busy/kid@s1 exists already"),
        ("tank/nosuch", "x", False, "there is no dataset tank/nosuch"),
        ("tank/data", "vzdump", False, "while one exists, they fail"),
        ("tank/data", "__base__", False, "Proxmox's own"),
        ("tank/" + "x" * 200, "y" * 100, False, "longer than 255 characters"),
    ],
)
async def test_snapshots_that_cannot_be_taken(tmp_path: Path, dataset: str, snapname: str, recursive: bool, why: str) -> None:
    async with at_the_node(tmp_path) as here:
        if "xxx" in dataset:
            here.node.add(dataset)
        assert why in await here.refusal("zfs_create_snapshot", dataset=dataset, snapname=snapname, recursive=recursive, confirm=True)


async def test_a_failure_of_exit_status_2_is_told_without_the_help(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.fail["zfs snapshot *"] = [2, "cannot open 'tank/data': dataset does not exist\nusage:\n\tsnapshot [-r] ...\n"]
        found = await here.call("zfs_create_snapshot", dataset="tank/data", snapname="x", confirm=True)
        assert found.failed
        assert "exit status 2: cannot open 'tank/data': dataset does not exist\n" in found.text
        assert "usage" not in found.text
        assert "snapshots: 0" in found.text


async def test_a_guests_disk_is_proxmox_snapshots_business(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        dry = await here.text("zfs_create_snapshot", dataset="tank/data/subvol-101-disk-0", snapname="x", dry_run=True)
        assert "it is a disk of guest 101: Proxmox does not list this snapshot, and refuses to roll the guest back past it" in dry


# --- by pattern, in two steps


async def test_the_first_step_is_the_default_and_names_all(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        text = await here.text("zfs_destroy_snapshots_by_pattern", **DATA, **FLAGS)
        assert text.startswith("Dry run, nothing was changed.\ndestroy 2 snapshots of tank/data that match autosnap_* on node pve1\n")
        assert "1. on node pve1: zfs destroy tank/data@autosnap_2025-11-30_00:00:01_daily,autosnap_2025-12-01_00:00:01_daily\n" in text
        assert "goes: tank/data: autosnap_2025-11-30_00:00:01_daily, autosnap_2025-12-01_00:00:01_daily" in text
        assert here.pool.changes == []


async def test_the_second_destroys_exactly_what_the_first_showed_and_still_qualifies(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        for part in ("autosnap_a", "autosnap_b", "autosnap_c"):
            here.node.snap(f"tank/data@{part}")
        await here.text("zfs_destroy_snapshots_by_pattern", **DATA)
        here.node.snap("tank/data@autosnap_new")  # made in between
        here.node.snapshots["tank/data@autosnap_a"]["holds"] = ["keep"]
        del here.node.snapshots["tank/data@autosnap_b"]
        here.node.snap("tank/data@autosnap_c")  # destroyed and made again: another one
        found = await here.call("zfs_destroy_snapshots_by_pattern", **DATA, **ACT)
        gone = "autosnap_2025-11-30_00:00:01_daily,autosnap_2025-12-01_00:00:01_daily"
        assert here.pool.changes == [["zfs", "destroy", f"tank/data@{gone}"]]
        assert "destroyed: 2 of 2" in found.text
        assert "3 of the 5 that were shown are gone or stay now" in found.text
        assert "not in the list that was shown, so left alone: tank/data: autosnap_c, autosnap_new" in found.text
        assert "stays, it is held by keep: tank/data: autosnap_a" in found.text


async def test_without_the_first_step_nothing_goes_and_the_list_is_shown(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        refused = await here.refusal("zfs_destroy_snapshots_by_pattern", **DATA, **ACT)
        assert "this list was not shown before" in refused
        assert "goes: tank/data: autosnap_2025-11-30" in refused
        assert "destroyed: 2 of 2" in await here.text("zfs_destroy_snapshots_by_pattern", **DATA, **ACT)


@pytest.mark.parametrize("missing", ["confirm", "i_understand_data_loss"])
async def test_each_flag_is_wanted(tmp_path: Path, missing: str) -> None:
    async with at_the_node(tmp_path) as here:
        await here.text("zfs_destroy_snapshots_by_pattern", **DATA)
        refused = await here.refusal("zfs_destroy_snapshots_by_pattern", **DATA, **{k: v for k, v in ACT.items() if k != missing})
        assert f"{missing}=true missing" in refused


async def test_another_question_has_its_own_list(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        await here.text("zfs_destroy_snapshots_by_pattern", **DATA)
        for other in ({"pattern": "*"}, {"dataset": "tank", "recursive": True}, {"recursive": True}):
            assert "not shown before" in await here.refusal("zfs_destroy_snapshots_by_pattern", **{**DATA, **other}, **ACT)


async def test_holds_clones_and_max_delete(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        text = await here.text("zfs_destroy_snapshots_by_pattern", dataset="tank/share", pattern="*")
        assert "destroy 1 snapshot of tank/share" in text
        assert "stays, clones live on it: tank/share-clone: tank/share: clonesrc" in text
        assert "stays, it is held by keep: tank/share: held" in text
        many = await here.text("zfs_destroy_snapshots_by_pattern", dataset="tank", pattern="*", recursive=True, max_delete=3)
        assert "Stands in the way:\n- 9 snapshots are more than max_delete=3: raise it, or narrow the pattern" in many


async def test_results_are_read_back_one_by_one(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        await here.text("zfs_destroy_snapshots_by_pattern", dataset="tank", pattern="manual-1", recursive=True)
        here.node.fail["zfs destroy tank/share@*"] = [1, "cannot destroy 'tank/share@manual-1': permission denied\n"]
        found = await here.call("zfs_destroy_snapshots_by_pattern", dataset="tank", pattern="manual-1", recursive=True, **ACT)
        assert found.failed
        assert "destroyed: 2 of 3" in found.text
        assert "left:\n- tank/share@manual-1: exit status 1: cannot destroy 'tank/share@manual-1': permission denied" in found.text


async def test_a_deferred_destroy_is_not_taken_for_gone(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        await here.text("zfs_destroy_snapshots_by_pattern", **DATA)

        def deferred(argv: Sequence[str]) -> Outcome | None:
            if list(argv[:2]) != ["zfs", "destroy"]:
                return None
            here.node.snapshots["tank/data@autosnap_2025-11-30_00:00:01_daily"]["deferred"] = "on"
            del here.node.snapshots["tank/data@autosnap_2025-12-01_00:00:01_daily"]
            return outcome(0)

        here.pool.instead = deferred
        found = await here.call("zfs_destroy_snapshots_by_pattern", **DATA, **ACT)
        assert found.failed
        assert "destroyed: 1 of 2" in found.text
        assert "tank/data@autosnap_2025-11-30_00:00:01_daily: marked for destruction, goes with its last hold or clone" in found.text


async def test_many_go_in_batches_of_bounded_length(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        for n in range(250):
            here.node.snap(f"tank/backup@hourly_{n:03}")
        wanted = {"dataset": "tank/backup", "pattern": "hourly_*"}
        await here.text("zfs_destroy_snapshots_by_pattern", **wanted)
        text = await here.text("zfs_destroy_snapshots_by_pattern", **wanted, **ACT)
        assert "destroyed: 250 of 250" in text
        assert [argv[2].count(",") + 1 for argv in here.pool.changes] == [100, 100, 50]


@pytest.mark.parametrize("first", [{}, ACT], ids=["listed", "refused"])
async def test_what_did_not_fit_into_the_list_was_not_shown_and_stays(tmp_path: Path, first: dict[str, Any]) -> None:
    async with at_the_node(tmp_path) as here:
        known = [f"syncoid_pve1_{n:03}_2025-12-01:00:00:01-GMT01:00" for n in range(700)]
        for part in known:
            here.node.snap(f"tank/backup@{part}")
        wanted = {"dataset": "tank/backup", "pattern": "syncoid_*"}
        try:
            found = await here.call("zfs_destroy_snapshots_by_pattern", **wanted, **first)
            text = found.text
        except ProxmoxMcpError as refused:
            text = clean_block(str(refused), LONGEST_ERROR)  # as it goes to the client
            assert "this list was not shown before" in text
        lines = "\n".join(line for line in text.splitlines() if line.startswith("note: goes: "))
        shown = [part for part in known if part in lines]
        assert 100 < len(shown) < 600
        assert f"note: {700 - len(shown)} more qualify than fit into one list" in text
        assert "... and" not in lines
        await here.text("zfs_destroy_snapshots_by_pattern", **wanted, **ACT)
        gone = [part for argv in here.pool.changes for part in argv[2].partition("@")[2].split(",")]
        assert gone == shown


async def test_too_many_are_not_destroyed_in_part(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        for n in range(700):
            here.node.snap(f"tank/backup@syncoid_pve1_{n:03}_2025-12-01:00:00:01-GMT01:00")
        wanted = {"dataset": "tank/backup", "pattern": "syncoid_*", "max_delete": 600}
        assert "700 snapshots are more than max_delete=600" in await here.text("zfs_destroy_snapshots_by_pattern", **wanted)
        assert "700 snapshots are more than max_delete=600" in await here.refusal("zfs_destroy_snapshots_by_pattern", **wanted, **ACT)
        await here.text("zfs_destroy_snapshots_by_pattern", **{**wanted, "max_delete": 1_000})
        less = {**wanted, "max_delete": 9}
        assert "snapshots are more than max_delete=9" in await here.refusal("zfs_destroy_snapshots_by_pattern", **less, **ACT)


async def test_what_proxmox_keeps_for_a_guest_stays(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.api.world.guests[101].snapshots = [{"name": "manual-1", "snaptime": 1, "description": ""}]
        for part in ("__base__", "__replicate_101-0_1796000000__"):
            here.node.snap(f"tank/data/subvol-101-disk-0@{part}")
        wanted = {"dataset": "tank/data/subvol-101-disk-0", "pattern": "*"}
        text = await here.text("zfs_destroy_snapshots_by_pattern", **wanted)
        assert (
            "stays, Proxmox keeps it as a snapshot of guest 101: proxmox_snapshot action=delete removes all of it: "
            "tank/data/subvol-101-disk-0: manual-1" in text
        )
        assert "stays, it is the base of linked clones: tank/data/subvol-101-disk-0: __base__" in text
        assert "stays, storage replication stands on it" in text
        assert "goes: tank/data/subvol-101-disk-0: vzdump\n" in text
        asked = await here.text("zfs_destroy_snapshots_by_pattern", dataset=wanted["dataset"], pattern="__replicate_*")
        assert "destroy 1 snapshot" in asked


async def test_a_copy_on_another_pool_is_not_proxmox_own(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.api.world.guests[101].snapshots = [{"name": "manual-1", "snaptime": 1, "description": ""}]
        here.node.add("tank/backup/subvol-101-disk-0")
        here.node.snap("tank/backup/subvol-101-disk-0@manual-1")
        assert "destroy 1 snapshot" in await here.text(
            "zfs_destroy_snapshots_by_pattern", dataset="tank/backup", pattern="*", recursive=True
        )


async def test_a_missing_dataset(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        with pytest.raises(NotFound, match="dataset does not exist"):
            await here.call("zfs_destroy_snapshots_by_pattern", dataset="tank/nosuch", pattern="*")


# --- leftovers of backups


def g37(here: Here) -> None:
    """Leftovers of 205, another name beside it, and the scratch of a backup of 206 that runs."""
    node = here.node
    for name in list(node.snapshots):
        del node.snapshots[name]
    for vmid, made in ((205, node.now - 90_000), (206, node.now - 60)):
        node.add(f"tank/data/subvol-{vmid}-disk-0")
        node.snap(f"tank/data/subvol-{vmid}-disk-0@vzdump", creation=made)
    node.snap("tank/data/subvol-205-disk-0@vzdump-before", creation=node.now - 90_000)
    here.api.world.guests[206] = Guest(206, "pve1", "lxc", "old")
    runs(here, 206)


def runs(here: Here, *vmids: int | str) -> None:
    rows = [
        {"upid": f"UPID:pve1:0000A1B2:00C0FFEE:69A4B000:vzdump:{vmid}:root@pam:", "type": "vzdump", "id": str(vmid), "starttime": 1}
        for vmid in vmids
    ]
    here.api.on("GET", "/nodes/{node}/tasks", rows)


async def test_g37_only_the_leftover_goes_by_the_nodes_clock(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        g37(here)
        text = await here.text("cleanup_vzdump_snapshots")
        assert "destroy 1 snapshot called @vzdump, left by aborted backups, on node pve1" in text
        assert "1. on node pve1: zfs destroy tank/data/subvol-205-disk-0@vzdump\n" in text
        assert "stays, a backup of guest 206 runs: tank/data/subvol-206-disk-0: vzdump" in text
        assert ["date", "+%s"] in here.pool.ran
        done = await here.text("cleanup_vzdump_snapshots", dry_run=False, confirm=True)
        assert done.startswith("Done: destroy snapshots called @vzdump, left by aborted backups, on node pve1\ndestroyed: 1 of 1\n")
        assert sorted(here.node.snapshots) == ["tank/data/subvol-205-disk-0@vzdump-before", "tank/data/subvol-206-disk-0@vzdump"]
        assert len(here.person.asked) == 1  # it is asked for though it is no data loss


async def test_young_ones_stay_whatever_else(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        g37(here)
        runs(here)
        assert "stays, younger than 30 minutes: tank/data/subvol-206-disk-0: vzdump" in await here.text("cleanup_vzdump_snapshots")
        assert "destroy 2 snapshots" in await here.text("cleanup_vzdump_snapshots", min_age_minutes=0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda here: setattr(here.api.world.guests[205], "lock", "backup"), "guest 205 is locked by a backup"),
        (lambda here: runs(here, 205), "a backup of guest 205 runs"),
        (lambda here: runs(here, ""), "a backup of several guests runs on pve1"),
        (lambda here: here.api.on("GET", "/nodes/{node}/tasks", Reply(596)), "whether a backup runs is not known"),
        (lambda here: here.api.on("GET", "/nodes/{node}/lxc/205/config", Reply(500)), "whether guest 205 is being backed up is not known"),
        (lambda here: here.api.on("GET", "/access/permissions", {"/vms": {"VM.Audit": 1}}), "does not see all tasks of pve1 (Sys.Audit)"),
    ],
)
async def test_what_may_be_in_a_backup_stays_at_any_age(tmp_path: Path, change: Any, why: str) -> None:
    async with at_the_node(tmp_path) as here:
        g37(here)
        change(here)
        for called, arguments in (
            ("cleanup_vzdump_snapshots", {"min_age_minutes": 0, "vmid": 205}),
            ("zfs_destroy_snapshots_by_pattern", {"dataset": "tank/data/subvol-205-disk-0", "pattern": "vzdump"}),
        ):
            text = await here.text(called, **arguments)
            assert why in text
            assert "zfs destroy" not in text
        assert here.pool.changes == []


async def test_without_the_api_nothing_goes(tmp_path: Path) -> None:
    async with at_the_node(tmp_path, token_value="", problems=("PROXMOX_TOKEN_VALUE is not set.",)) as here:
        g37(here)
        refused = await here.refusal("cleanup_vzdump_snapshots", dry_run=False, confirm=True)
        assert "whether a backup runs is not known" in refused


async def test_one_guest_or_dataset_alone(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        g37(here)
        here.node.add("tank/other")
        here.node.snap("tank/other@vzdump", creation=1)
        assert "no snapshot called @vzdump of guest 999" in await here.text("cleanup_vzdump_snapshots", vmid=999)
        text = await here.text("cleanup_vzdump_snapshots", dataset="tank/other")
        assert "stays, whose guest it is cannot be told: tank/other: vzdump" in text
