"""proxmox_storage_config: entries of the cluster's configuration, checked against the nodes, and who is left behind by a removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, Refused
from tests.tools.changes import changing

pytestmark = pytest.mark.anyio
YES = {"confirm": True}


async def test_a_pool_that_is_nowhere_is_refused_and_one_that_is_somewhere_is_pinned(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        assert await world.obstacles("storage_config", action="add_zfs", storage="more", pool="dozer") == ["no pool dozer on pve1, pve2"]
        assert await world.obstacles("storage_config", action="add_zfs", storage="more", pool="tank", nodes="pve1") == [
            "no pool tank on pve1"
        ]
        text = await world.call("storage_config", action="add_zfs", storage="more", pool="tank", dry_run=True)
        assert "pool tank is on pve2, not on pve1: nodes=pve2 would keep it from failing there" in text
        text = await world.call("storage_config", action="add_zfs", storage="more", pool="rpool/data", nodes="pve1, pve2", dry_run=True)
        assert "nodes=pve1,pve2" in text
        assert "not checked: whether rpool/data exists in pool rpool" in text


async def test_an_id_in_use_and_an_unknown_node_are_refused(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        found = await world.obstacles("storage_config", action="add_dir", storage="local", path="/srv/x")
        assert found == ["there is a storage local already (type dir)"]
        with pytest.raises(Refused, match="did you mean pve1"):
            await world.result("storage_config", action="add_dir", storage="more", path="/srv/x", nodes="PVE1", **YES)
        text = await world.call("storage_config", action="add_dir", storage="more", path="/var/lib/vz", dry_run=True)
        assert "storage local has the same path" in text


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("add_zfs", {}),
        ("add_dir", {}),
        ("add_zfs", {"storage": "1x", "pool": "tank"}),
        ("add_zfs", {"pool": "tank", "content": "iso"}),
        ("add_zfs", {"pool": "../x"}),
        ("add_zfs", {"pool": "tank//x"}),
        ("add_dir", {"path": "srv"}),
        ("add_dir", {"path": "/srv/../etc"}),
        ("add_dir", {"path": "/srv;id"}),
        ("add_dir", {"path": "/"}),
        ("add_dir", {"path": "/srv", "content": "images,foo"}),
        ("add_dir", {"storage": "m", "path": "/x"}),
        ("add_dir", {"path": "/x", "nodes": "pve1/../x"}),
    ],
)
async def test_what_breaks_a_rule_reaches_no_request(action: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        with pytest.raises(InvalidArgument):
            await world.result("storage_config", action=action, **{"storage": "more", **arguments}, **YES)
        assert not world.api.requests


async def test_an_entry_can_be_for_a_node_that_is_away(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.offline = frozenset({"pve2"})
        text = await world.call("storage_config", action="add_dir", storage="more", path="/srv/x", nodes="pve1,pve2", dry_run=True)
        assert "nodes=pve1,pve2" in text
        assert text.endswith("Would work.")
        text = await world.call("storage_config", action="add_zfs", storage="more", pool="tank", nodes="pve2", dry_run=True)
        assert "not checked: ZFS pools of pve2: No route to host" in text


async def test_a_removal_names_the_guests_and_jobs_that_it_leaves_behind(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        text = await world.call("storage_config", action="remove", storage="local-lvm", dry_run=True)
        assert "its data stays" in text
        assert "VM 101 (web): local-lvm:vm-101-disk-0" in text
        assert "VM 103 (git): local-lvm:vm-103-disk-0" in text
        assert "Undo: add it again with type=lvmthin, vgname=pve, thinpool=data" in text
        text = await world.call("storage_config", action="remove", storage="nas", dry_run=True)
        assert "1 iso" in text
        assert "backup jobs that use it fail from then on: backup-a1, backup-c3" in text
        assert "the password or key" in await world.call("storage_config", action="remove", storage="pbs", dry_run=True)


async def test_a_removal_of_nothing_or_of_a_base_is_refused(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        (line,) = await world.obstacles("storage_config", action="remove", storage="away")
        assert line.startswith("there is no storage away; there are: fast, local")
        world.api.world.storages["vol"] = {"storage": "vol", "type": "lvm", "vgname": "x", "base": "local-lvm:lun", "content": "images"}
        assert "storage vol stands on it" in await world.obstacles("storage_config", action="remove", storage="local-lvm")


async def test_a_disabled_storage_is_searched_in_the_guests_own_words(tmp_path: Path) -> None:
    async with changing(tmp_path) as world:
        world.api.world.storages["local-lvm"]["disable"] = 1
        text = await world.call("storage_config", action="remove", storage="local-lvm", dry_run=True)
        assert "VM 101 (web): local-lvm:vm-101-disk-0" in text
        assert "not checked: whether storage local-lvm holds more than this token sees" in text


async def test_a_storage_that_cannot_be_activated_is_proxmoxs_no(tmp_path: Path) -> None:
    from tests.served_api import Reply

    async with changing(tmp_path) as world:
        said = "create storage failed: could not activate storage 'more', zfs error: cannot import 'tank': no such pool available"
        world.api.on("POST", "/storage", Reply(500, said, message=said))
        found = await world.result("storage_config", action="add_zfs", storage="more", pool="tank", nodes="pve2", **YES)
        assert found.failed
        assert "no such pool available" in found.text
