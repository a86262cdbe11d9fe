"""Pool health and scrubs over SSH, with the real answers of zpool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.errors import NotFound, SshError
from tests.zfs import samples
from tests.zfs.shell import Here, at_the_node

pytestmark = pytest.mark.anyio


def troubled(here: Here) -> None:
    here.node.pools["bulk"] = {"health": "DEGRADED", "scan": "none requested", "status": samples.DEGRADED}
    here.node.pools["susp"] = {"health": "SUSPENDED", "scan": "none requested", "status": samples.SUSPENDED}
    here.node.pools["frag"] = {"health": "ONLINE", "scan": "none requested", "status": samples.DAMAGED}


async def test_problems_come_first_and_exit_0_means_nothing(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        troubled(here)
        text = await here.text("zfs_pool_status")
        head, *rest = text.splitlines()
        assert head == "ZFS pools on pve1: 3 of 4 not healthy"
        assert rest[0] == "problems:"
        assert "- bulk: wwn-0x5000c50000000a03 OFFLINE" in rest
        assert "- susp: state SUSPENDED" in rest
        assert "- frag: data errors: 2 data errors" in rest
        assert "- frag: /dev/sdg1 ONLINE, cksum 2" in rest
        assert "damaged_files:\n- /frag/victim\n- frag@a:/victim" in text
        assert "susp is SUSPENDED: what touches it hangs; connect its disks, then `zpool clear susp`" in text
        assert text.index("\nbulk DEGRADED") < text.index("\ntank ONLINE")


async def test_less_without_verbose_and_one_pool_alone(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        troubled(here)
        text = await here.text("zfs_pool_status", pool="bulk", verbose=False)
        assert text.startswith("ZFS pools on pve1: 1 of 1 not healthy")
        assert "wwn-0x5000c50000000a03 mirror-0 OFFLINE" in text
        assert "wwn-0x5000c50000000a02" not in text
        found = json.loads(await here.text("zfs_pool_status", pool="tank", response_format="json"))
        assert found["pools"][0]["size"] == 5905580032
        assert "problems" not in found
        fields = await here.text("zfs_pool_status", fields=["pools"])
        assert "devices" not in fields


async def test_json_is_asked_for_first(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        await here.text("zfs_pool_status", pool="tank")
        assert here.pool.ran[-2:] == [["zpool", "status", "-j", "--json-int", "-v", "tank"], ["zpool", "status", "-v", "-p", "tank"]]
        here.node.json_status = True
        text = await here.text("zfs_pool_status", pool="tank")
        assert here.pool.ran[-1] == ["zpool", "status", "-j", "--json-int", "-v", "tank"]
        assert "ZFS pools on pve1: healthy" in text


async def test_a_pool_that_is_not_there(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        with pytest.raises(NotFound, match="cannot open 'nosuch': no such pool"):
            await here.call("zfs_pool_status", pool="nosuch")


async def test_no_pools(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.pools.clear()
        assert "ZFS pools on pve1: no pools" in await here.text("zfs_pool_status")


async def test_a_scrub_starts_once_and_stops_once(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        assert "confirm=true missing" in await here.refusal("zfs_scrub", pool="tank")
        assert "no scrub of tank runs" in await here.refusal("zfs_scrub", pool="tank", stop=True, confirm=True)
        text = await here.text("zfs_scrub", pool="tank", confirm=True)
        assert "scan: scrub in progress since" in text
        assert "undo: proxmox_zfs_scrub pool=tank stop=true" in text
        assert "a scrub of tank runs already (11.47% done)" in await here.refusal("zfs_scrub", pool="tank", confirm=True)
        text = await here.text("zfs_scrub", pool="tank", stop=True, confirm=True)
        assert "scan: scrub canceled" in text
        assert here.pool.changes == [["zpool", "scrub", "tank"], ["zpool", "scrub", "-s", "tank"]]


@pytest.mark.parametrize(
    ("stop", "said"), [(False, "currently scrubbing; use 'zpool scrub -s' to cancel scrub"), (True, "there is no active scrub")]
)
async def test_zfs_own_refusals_are_quoted(tmp_path: Path, stop: bool, said: str) -> None:
    """Somebody else was quicker than the look before."""
    async with at_the_node(tmp_path) as here:
        here.node.pools["tank"]["scan"] = "scrub in progress since Tue Dec  1 01:37:00 2026" if stop else "none requested"
        here.node.fail["zpool scrub *"] = [1, f"cannot scrub tank: {said}\n"]
        found = await here.call("zfs_scrub", pool="tank", stop=stop, confirm=True)
        assert found.failed
        assert f"exit status 1: cannot scrub tank: {said}" in found.text
        assert "state: ONLINE" in found.text


async def test_a_resilver_comes_first(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        here.node.pools["tank"]["status"] = samples.SPARES
        assert "tank is resilvering (33.33% done): let it end first" in await here.refusal("zfs_scrub", pool="tank", confirm=True)


async def test_a_suspended_pool_is_never_scrubbed(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        troubled(here)
        with pytest.raises(SshError, match="whatever touches it hangs"):
            await here.call("zfs_scrub", pool="susp", confirm=True)
        # the list of pools may be a moment old: the status is looked at too
        here.node.pools["susp"]["health"] = "ONLINE"
        with pytest.raises(SshError, match="whatever touches it hangs"):
            await here.call("zfs_scrub", pool="susp", confirm=True)
        assert here.pool.changes == []


async def test_a_node_that_is_another_one_is_never_asked(tmp_path: Path) -> None:
    async with at_the_node(tmp_path) as here:
        from proxmox_mcp.errors import Refused

        for called, more in (("zfs_pool_status", {}), ("zfs_list_datasets", {}), ("zfs_scrub", {"pool": "tank", "confirm": True})):
            arguments: dict[str, Any] = {"node": "pve2", **more}
            with pytest.raises(Refused, match="PROXMOX_SSH_NODES=pve2="):
                await here.call(called, **arguments)
        assert here.pool.ran == []
