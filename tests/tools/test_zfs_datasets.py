"""ZFS datasets and properties through the pipeline and the audited door, against a modelled node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, NotFound, Refused, SshError
from proxmox_mcp.ssh import Outcome
from tests.sshd import needs_sshd
from tests.zfs.far_side import far_side
from tests.zfs.shell import FLAGS, at_the_node, outcome

pytestmark = pytest.mark.anyio


async def test_the_list_splits_at_tabs_and_names_the_node(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        text = await here.text("zfs_list_datasets", pool="tank/data")
        assert text.splitlines()[0] == "4 datasets; node=pve1; pool=tank/data; used=96.0K; avail=5.1G; refer=96.0K"
        assert '"tank/data/with space" filesystem "/tank/data/with space"' in text
        assert "tank/data/vm-200-disk-0 volume -" in text
        found = json.loads(
            await here.text("zfs_list_datasets", response_format="json", include_snapshots=True, fields=["name", "used", "type"])
        )
        assert found["count"] == 21
        assert {"name": "tank/share@held", "used": 0, "type": "snapshot"} in found["items"]
        assert here.pool.changes == []


async def test_a_suspended_pool_is_missing_from_the_list_and_that_is_said(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.pools["susp"] = {"health": "SUSPENDED", "scan": "none requested"}
        here.node.add("susp")
        text = await here.text("zfs_list_datasets")
        assert "susp" not in text.partition("note:")[0]
        assert "note: pool susp is SUSPENDED: it is left out of this list" in text
        before = len(here.pool.ran)
        for called, arguments in (
            ("zfs_list_datasets", {"pool": "susp"}),
            ("zfs_list_snapshots", {"dataset": "susp/a"}),
            ("zfs_property", {"name": "susp/a"}),
            ("zfs_scrub", {"pool": "susp", "confirm": True}),
            ("zfs_create_snapshot", {"dataset": "susp/a", "snapname": "x", "confirm": True}),
            ("zfs_dataset", {"action": "destroy", "name": "susp/a", **FLAGS}),
            ("zfs_send", {"source": "susp/a@s", "target_dataset": "tank/x", "confirm": True}),
        ):
            with pytest.raises(SshError, match="SUSPENDED") as refused:
                await here.call(called, **arguments)
            assert "zpool clear susp" in refused.value.hint
        # all that was asked is the list of pools, which never hangs
        assert {tuple(argv[:2]) for argv in here.pool.ran[before:]} == {("zpool", "list")}


async def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        with pytest.raises(NotFound, match="there is no pool nosuch on pve1; there are: tank"):
            await here.call("zfs_list_datasets", pool="nosuch")
        with pytest.raises(NotFound, match="cannot open 'tank/nosuch': dataset does not exist"):
            await here.call("zfs_list_datasets", pool="tank/nosuch")


async def test_g61_a_node_without_zfs(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.pool.instead = lambda argv: outcome(127, "", "env: 'zpool': No such file or directory\n")
        with pytest.raises(SshError, match="zpool is not installed on pve1"):
            await here.call("zfs_list_datasets")


@pytest.mark.parametrize(
    ("called", "arguments"),
    [
        ("zfs_list_datasets", {"pool": "-r"}),
        ("zfs_list_datasets", {"pool": "tank;id"}),
        ("zfs_list_snapshots", {"dataset": "tank@x"}),
        ("zfs_pool_status", {"pool": "$(id)"}),
        ("zfs_property", {"name": "tank", "property": "-s"}),
        ("zfs_property", {"name": "tank\ttank2"}),
        ("zfs_property", {"action": "set", "name": "tank", "property": "sharenfs", "value": "on", "confirm": True}),
        ("zfs_property", {"action": "set", "name": "tank/data@before", "property": "atime", "value": "on", "confirm": True}),
        ("zfs_dataset", {"action": "create", "name": "tank/x,y", "confirm": True}),
        ("zfs_dataset", {"action": "destroy", "name": "tank/data@before", **FLAGS}),
        ("zfs_dataset", {"action": "destroy", "name": "tank/data#mark", **FLAGS}),
        ("zfs_dataset", {"action": "create", "name": "tank/x", "properties": {"encryption": "on"}, "confirm": True}),
        ("zfs_dataset", {"action": "destroy", "name": "tank", "recursive": True, **FLAGS}),
        ("zfs_create_snapshot", {"dataset": "tank", "snapname": "a/b", "confirm": True}),
        ("zfs_create_snapshot", {"dataset": "tank", "snapname": "a@b", "confirm": True}),
        ("zfs_destroy_snapshots_by_pattern", {"dataset": "tank", "pattern": "a%b"}),
        ("zfs_scrub", {"pool": "-s", "confirm": True}),
        ("zfs_send", {"source": "tank/data", "target_dataset": "tank/x"}),
        ("zfs_send", {"source": "tank/data@before", "target_file": "/mnt/../etc/x"}),
    ],
)
async def test_hostile_arguments_never_reach_the_node(tmp_path: Path, called: str, arguments: dict[str, Any]) -> None:
    async with at_the_node(tmp_path) as here:
        with pytest.raises(InvalidArgument):
            await here.call(called, **arguments)
        assert here.pool.ran == []


async def test_a_dataset_is_made_with_checked_properties(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        wanted = {"action": "create", "name": "tank/new", "properties": {"compression": "zstd", "atime": False}}
        assert "confirm=true missing" in await here.refusal("zfs_dataset", **wanted)
        dry = await here.text("zfs_dataset", **wanted, dry_run=True)
        assert "1. on node pve1: zfs create -o compression=zstd -o atime=off tank/new\nRisk: change; needs confirm=true" in dry
        done = await here.text("zfs_dataset", **wanted, confirm=True, reason="test")
        assert here.pool.changes == [["zfs", "create", "-o", "compression=zstd", "-o", "atime=off", "tank/new"]]
        assert "now: tank/new exists\nmounted: /tank/new" in done
        intent = next(record for record in here.log() if record.get("argv", [])[:2] == ["zfs", "create"] and record["risk"] == "change")
        assert intent["reason"] == "test"


async def test_odd_names_stay_one_word(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        await here.text("zfs_dataset", action="create", name="tank/-rf x", confirm=True)
        await here.text("zfs_create_snapshot", dataset="tank/-rf x", snapname="-r", confirm=True)
        text = await here.text("zfs_property", action="set", name="tank/-rf x", property="org.lab:note", value="-o a=b; id", confirm=True)
        assert here.pool.changes == [
            ["zfs", "create", "tank/-rf x"],
            ["zfs", "snapshot", "tank/-rf x@-r"],
            ["zfs", "set", "org.lab:note=-o a=b; id", "tank/-rf x"],
        ]
        assert "org.lab:note: -o a=b; id (local)" in text


async def test_limited_reads_hold_for_the_node_too(tmp_path: Path) -> None:
    async with at_the_node(tmp_path, allow_nodes=("pve9",), limit_reads=True) as here:
        with pytest.raises(InvalidArgument, match="node pve1 is outside PROXMOX_ALLOW_NODES"):
            await here.call("zfs_list_datasets")
        assert here.pool.ran == []


async def test_guests_that_limited_reads_hide_are_a_doubt(tmp_path: Path) -> None:
    async with at_the_node(tmp_path, allow_vmids=((205, 205),), limit_reads=True) as here:
        dry = await here.text("zfs_dataset", **DESTROY, dry_run=True)
        assert "not checked: whether guests other than guests 205 use it" in dry


async def test_volsize_makes_a_volume(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        text = await here.text("zfs_dataset", action="create", name="tank/a/vol", parents=True, properties={"volsize": "10G"}, confirm=True)
        assert here.pool.changes == [["zfs", "create", "-p", "-V", "10G", "tank/a/vol"]]
        assert "device: /dev/zvol/tank/a/vol" in text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tank/data", "tank/data exists already"),
        ("tank/nosuch/child", "its parent tank/nosuch does not exist; parents=true makes it too"),
        ("tank/data/vm-200-disk-0/x", "is a volume, and a volume has no children"),
    ],
)
async def test_what_cannot_be_made(tmp_path: Path, name: str, why: str) -> None:
    async with at_the_node(tmp_path) as here:
        assert why in await here.refusal("zfs_dataset", action="create", name=name, confirm=True)


@pytest.mark.parametrize(
    ("name", "more", "over"),
    [
        ("tank/root/etc", {}, "/etc"),
        ("tank/root/var/log", {"parents": True}, "/var/log"),
        ("tank/root/etc", {"properties": {"canmount": "on"}}, "/etc"),
        ("tank/root/srv", {}, None),
        ("tank/root/var/lib/vz", {"parents": True, "properties": {"mountpoint": "/var/lib/vz"}}, None),
        ("tank/root/etc", {"properties": {"mountpoint": "/srv/etc"}}, None),
        ("tank/root/etc", {"properties": {"canmount": "noauto"}}, None),
        ("tank/root/etc", {"properties": {"volsize": "1G"}}, None),
    ],
)
async def test_an_inherited_mountpoint_is_not_laid_over_the_system(
    tmp_path: Path, name: str, more: dict[str, Any], over: str | None
) -> None:
    """On a node that boots from ZFS, rpool/ROOT/pve-1 is mounted at /: whatever is made below it is mounted at once, over what is there."""
    async with at_the_node(tmp_path) as here:
        here.node.add("tank/root", mountpoint="/")
        wanted = {"action": "create", "name": name, **more}
        if over is None:
            assert "Would work." in await here.text("zfs_dataset", **wanted, dry_run=True)
        else:
            refused = await here.refusal("zfs_dataset", **wanted, confirm=True)
            assert (
                f"it would be mounted at {over}, over what the node itself lives on: give a mountpoint of its own, or canmount" in refused
            )


async def test_zfs_is_asked_beforehand_whether_it_would_do_it(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.fail["zfs create -n *"] = [1, "cannot create 'tank/q': bad numeric value 'banana'\n"]
        refused = await here.refusal("zfs_dataset", action="create", name="tank/q", confirm=True)
        assert "ZFS says: cannot create 'tank/q': bad numeric value 'banana'" in refused


async def test_a_create_that_fails_says_whether_it_is_there(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.fail["zfs create tank/q"] = [1, "cannot create 'tank/q': permission denied\n"]
        found = await here.call("zfs_dataset", action="create", name="tank/q", confirm=True)
        assert found.failed
        assert "exit status 1: cannot create 'tank/q': permission denied" in found.text
        assert "now: there is no tank/q" in found.text


DESTROY = {"action": "destroy", "name": "tank/busy", "recursive": True}


@pytest.mark.parametrize("missing", ["confirm", "i_understand_data_loss"])
async def test_a_destroy_shows_what_goes_and_wants_both_flags(tmp_path: Path, missing: str) -> None:
    async with at_the_node(tmp_path) as here:
        flags = {name: value for name, value in FLAGS.items() if name != missing}
        refused = await here.refusal("zfs_dataset", **DESTROY, **flags)
        assert f"{missing}=true missing" in refused
        assert "destroy tank/busy of node pve1 with 1 dataset below it and 2 snapshots: its data is lost for good" in refused
        assert "1. on node pve1: zfs unmount tank/busy\n2. on node pve1: zfs destroy -r tank/busy" in refused
        assert "goes with it: tank/busy/kid (file system)" in refused
        assert "snapshots of tank/busy/kid: s1" in refused


async def test_a_destroy_unmounts_first_which_fails_clean(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.busy = ["tank/busy"]
        found = await here.call("zfs_dataset", **DESTROY, **FLAGS)
        assert found.failed
        assert "cannot unmount '/tank/busy': pool or dataset is busy" in found.text
        assert "zfs destroy -r tank/busy -> not tried" in found.text
        assert "gone: nothing" in found.text
        assert "tank/busy@s1" in here.node.snapshots


async def test_what_a_failed_destroy_has_destroyed_is_told(tmp_path: Path) -> None:
    """The snapshots and the child are gone by the time the dataset itself refuses."""
    async with at_the_node(tmp_path) as here:
        here.node.busy = ["tank/busy"]
        here.node.datasets["tank/busy"]["mounted"] = here.node.datasets["tank/busy/kid"]["mounted"] = "no"
        found = await here.call("zfs_dataset", **DESTROY, **FLAGS)
        assert found.failed
        assert "dataset is busy" in found.text
        assert "gone:\n- tank/busy/kid\n- tank/busy@s1\n- tank/busy/kid@s1\nleft: 1 of 4" in found.text


async def test_a_destroy_that_works_is_read_back(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        text = await here.text("zfs_dataset", **DESTROY, **FLAGS)
        assert "destroyed: 4 of 4" in text
        assert here.pool.changes == [["zfs", "unmount", "tank/busy"], ["zfs", "destroy", "-r", "tank/busy"]]
        assert len(here.person.asked) == 1


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tank/data", "a guest that may be running uses it: CT 101 (mail): rootfs (tank:subvol-101-disk-0, 8G); stop it first"),
        ("tank/data/subvol-101-disk-0", "a guest that may be running uses it: CT 101 (mail)"),
        ("tank/share", "tank/share@clonesrc has clones elsewhere (tank/share-clone): destroy or promote them first"),
        ("tank/share", "tank/share@held is held by keep: `zfs release` first"),
    ],
)
async def test_what_is_in_use_is_refused(tmp_path: Path, name: str, why: str) -> None:
    async with at_the_node(tmp_path) as here:
        assert why in await here.refusal("zfs_dataset", action="destroy", name=name, recursive=True, **FLAGS)


async def test_without_recursive_children_and_snapshots_stand_in_the_way(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        refused = await here.refusal("zfs_dataset", action="destroy", name="tank/busy", **FLAGS)
        assert "it has 1 dataset below it and 2 snapshots: recursive=true destroys them too" in refused


async def test_open_files_and_the_nodes_own_file_systems_are_refused(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        mount = "36 35 0:50 / / rw - zfs tank/busy rw"
        here.pool.instead = lambda argv: (
            outcome(0, f"u 0\nm {mount}\np process 7 (cat) has /tank/busy open\n") if "open-files" in argv else None
        )
        refused = await here.refusal("zfs_dataset", **DESTROY, **FLAGS)
        assert "it is in use: process 7 (cat) has /tank/busy open" in refused
        assert "it is in use: tank/busy is mounted at / too: by a container that runs" in refused
        here.node.datasets["tank/busy/kid"]["mountpoint"] = "/var"
        assert "tank/busy/kid is mounted at /var: the node lives on it" in await here.refusal("zfs_dataset", **DESTROY, **FLAGS)


async def test_a_stopped_guests_disk_goes_with_the_flags_and_is_named(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        text = await here.text("zfs_dataset", action="destroy", name="tank/data/vm-200-disk-0", **FLAGS)
        assert "lost too: VM 200 (db): scsi0 (tank:vm-200-disk-0, 32G)" in text
        assert here.pool.changes == [["zfs", "destroy", "tank/data/vm-200-disk-0"]]


async def test_bind_mounts_and_directories_of_storages_count(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.api.world.guests[205].config["mp0"] = "/tank/backup/media,mp=/media"
        here.api.world.storages["dumps"] = {"storage": "dumps", "type": "dir", "path": "/tank/backup", "content": "backup"}
        refused = await here.refusal("zfs_dataset", action="destroy", name="tank/backup", **FLAGS)
        assert "CT 205 (proxy): mp0 (/tank/backup/media)" in refused
        assert "storage dumps" in refused


async def test_limits_to_guests_hold_for_their_volumes(tmp_path: Path) -> None:
    async with at_the_node(tmp_path, allow_vmids=((100, 199),)) as here:
        with pytest.raises(Refused, match="guest 200 is outside PROXMOX_ALLOW_VMIDS"):
            await here.call("zfs_dataset", action="destroy", name="tank/data/vm-200-disk-0", **FLAGS)
        with pytest.raises(Refused, match="guest 200 is outside"):
            await here.call("zfs_create_snapshot", dataset="tank/data/vm-200-disk-0", snapname="x", confirm=True)
        assert here.pool.changes == []


async def test_without_the_api_the_question_stays_open(tmp_path: Path) -> None:
    async with at_the_node(tmp_path, token_value="", problems=("PROXMOX_TOKEN_VALUE is not set.",)) as here:
        dry = await here.text("zfs_dataset", **DESTROY, dry_run=True)
        assert "not checked: which guests and storages use it: the API could not be asked" in dry


async def test_the_approval_is_bound_to_the_very_list(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        approve = here.person.approve

        async def while_it_is_asked(plan: Any) -> Any:
            here.node.snap("tank/busy@just-made")
            return await approve(plan)

        here.person.approve = while_it_is_asked  # type: ignore[method-assign]
        with pytest.raises(Refused, match="the situation changed"):
            await here.call("zfs_dataset", **DESTROY, **FLAGS)
        assert here.pool.changes == []


async def test_a_lost_connection_is_unknown_and_looked_at(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:

        def cut(argv: Sequence[str]) -> Outcome | None:
            if list(argv[:2]) != ["zfs", "destroy"]:
                return None
            here.node.run(list(argv))
            return outcome(None, lost=True)

        here.pool.instead = cut
        found = await here.call("zfs_dataset", **DESTROY, **FLAGS)
        assert found.failed
        assert found.text.startswith("Outcome unknown: destroy tank/busy")
        assert "gone:\n- tank/busy\n" in found.text
        assert [argv for argv in here.pool.ran if argv[:2] == ["zfs", "destroy"]] == [["zfs", "destroy", "-r", "tank/busy"]]


async def test_properties_are_read_without_flags_in_read_only_mode_too(tmp_path: Path) -> None:
    async with at_the_node(tmp_path, read_only=True) as here:
        text = await here.text("zfs_property", name="tank/data", property="quota,compression")
        assert text.splitlines()[1:] == ["property value source", 'compression lz4 "inherited from tank"', 'quota "0 (none)" default']
        exact = json.loads(await here.text("zfs_property", name="tank/data", property="quota", response_format="json"))
        assert exact["items"] == [{"property": "quota", "value": "0", "source": "default"}]
        with pytest.raises(InvalidArgument, match="read-only mode"):
            await here.call("zfs_property", action="set", name="tank/data", property="quota", value="1G", confirm=True)


@pytest.mark.parametrize(
    ("prop", "value", "deadly"),
    [
        ("readonly", "on", True),
        ("readonly", "off", False),
        ("exec", "off", True),
        ("canmount", "noauto", True),
        ("mountpoint", "/srv/root", True),
        ("compression", "zstd", False),
    ],
)
async def test_what_the_node_lives_on_stays_usable(tmp_path: Path, prop: str, value: str, deadly: bool) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.add("tank/root", mountpoint="/")
        for name in ("tank", "tank/root"):  # what it inherits from, and itself
            wanted = {"action": "set", "name": name, "property": prop, "value": value}
            if deadly:
                refused = await here.refusal("zfs_property", **wanted, confirm=True)
                assert f"tank/root is mounted at /: the node lives on it, and {prop}={value} would reach it" in refused
            else:
                await here.text("zfs_property", **wanted, dry_run=True)
        elsewhere = {"action": "set", "name": "tank/data", "property": prop, "value": value}
        assert "Would work." in await here.text("zfs_property", **elsewhere, dry_run=True)


async def test_a_property_is_set_and_read_back_with_the_way_home(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        wanted = {"action": "set", "name": "tank/data", "property": "compression", "value": "zstd"}
        assert "confirm=true missing" in await here.refusal("zfs_property", **wanted)
        text = await here.text("zfs_property", **wanted, confirm=True)
        assert here.pool.changes == [["zfs", "set", "compression=zstd", "tank/data"]]
        assert "(now lz4, inherited from tank)" in text
        assert "compression: zstd (local)" in text
        assert "undo: zfs inherit compression tank/data (proxmox_host_exec)" in text
        assert "Nothing to do" in await here.text("zfs_property", **wanted, confirm=True)
        dry = (await here.text("zfs_property", **wanted, dry_run=True)).splitlines()
        assert dry[1].startswith("Nothing to do: ")
        assert not {"Steps:", "Would work."} & set(dry)
        assert not [line for line in dry if line.startswith("Risk:")]


async def test_exit_status_255_is_zfs_own_refusal(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        found = await here.call("zfs_property", action="set", name="tank/data", property="quota", value="1", confirm=True)
        assert found.failed
        assert found.text.startswith("Failed: set quota=1")
        assert "exit status 255: cannot set property for 'tank/data': size is less than current used" in found.text


async def test_an_unknown_property_is_explained_without_the_help(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        with pytest.raises(SshError, match="bad property list: invalid property 'ashift'") as refused:
            await here.call("zfs_property", name="tank", property="ashift")
        assert "usage" not in str(refused.value)
        assert "zpool get" in refused.value.hint


async def test_a_guests_disk_is_not_resized_behind_proxmox_back_unsaid(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        name = "tank/data/subvol-101-disk-0"
        dry = await here.text("zfs_property", action="set", name=name, property="quota", value="8G", dry_run=True)
        assert "it is a disk of guest 101" in dry
        assert "`pct resize` or the web interface changes both" in dry


@needs_sshd
async def test_over_a_real_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with far_side(tmp_path, monkeypatch) as there:
        listed = await there.call("zfs_list_datasets", pool="tank/data", node="pve1")
        assert '"tank/data/with space" filesystem "/tank/data/with space"' in listed.text
        node = there.machine.read()
        node.busy = ["tank/busy"]
        node.datasets["tank/busy"]["mounted"] = node.datasets["tank/busy/kid"]["mounted"] = "no"
        there.machine.write(node)
        found = await there.call("zfs_dataset", **DESTROY, **FLAGS)
        assert found.failed
        assert "exit status 1: cannot destroy 'tank/busy': dataset is busy" in found.text
        assert "gone:\n- tank/busy/kid\n- tank/busy@s1\n- tank/busy/kid@s1\nleft: 1 of 4" in found.text
        await there.call("zfs_destroy_snapshots_by_pattern", dataset="tank/data/with space", pattern="*", dry_run=True)
        made = await there.call("zfs_create_snapshot", dataset="tank/data/with space", snapname="a b", confirm=True)
        assert made.text.startswith("Done: take snapshot tank/data/with space@a b on node pve1")
        assert "tank/data/with space@a b" in there.machine.read().snapshots
