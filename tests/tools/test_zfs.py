"""ZFS pools: damaged ones first, and ONLINE does not mean healthy."""

from __future__ import annotations

from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, NotFound
from tests.cluster import served_cluster
from tests.served_api import ServedApi
from tests.tools.asking import ask, ask_json

pytestmark = pytest.mark.anyio


def leaf(name: str, state: str = "ONLINE", **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "read": 0, "write": 0, "cksum": 0, "msg": "", "leaf": 1, **more}


def pool(state: str, *devices: dict[str, Any], group: str = "raidz1-0", **more: Any) -> dict[str, Any]:
    tree = {**leaf("tank", state), "leaf": 0, "children": [{**leaf(group, state), "leaf": 0, "children": list(devices)}]}
    return {"name": "tank", "state": state, "errors": "No known data errors", "leaf": 0, "children": [tree], **more}


G54 = pool(
    "DEGRADED",
    leaf("sda"),
    leaf("sdb", "FAULTED", read=3, write=12, msg="too many errors"),
    leaf("sdc"),
    status="One or more devices are faulted in response to persistent errors.\n\tSufficient replicas exist for the pool to continue.",
    action="Replace the faulted device.",
    scan="resilvered 1.09T in 1 days 02:03:04 with 0 errors on Mon Mar  2 11:34:02 2026",
)


def serve(api: ServedApi, detail: dict[str, Any]) -> None:
    api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    api.on(
        "GET",
        "/nodes/pve1/disks/zfs",
        [{"name": "tank", "size": 4096, "alloc": 1024, "free": 3072, "frag": 5, "dedup": 1, "health": detail["state"]}],
    )
    api.on("GET", "/nodes/pve1/disks/zfs/tank", detail)


async def test_g54_a_degraded_pool_with_its_bad_device(served: ServedApi) -> None:
    serve(served, G54)
    assert (await ask(served, "get_zfs_pool", name="tank")).splitlines() == [
        "ZFS pool tank on pve1: not healthy",
        "problems:",
        "- state DEGRADED",
        "- sdb FAULTED, read 3, write 12, too many errors",
        "state: DEGRADED",
        "status: One or more devices are faulted in response to persistent errors. Sufficient replicas exist for the pool to continue.",
        "action: Replace the faulted device.",
        "scan: resilvered 1.09T in 1 days 02:03:04 with 0 errors on Mon Mar  2 11:34:02 2026",
        "errors: No known data errors",
        "size: 4.0K",
        "alloc: 1.0K",
        "free: 3.0K",
        "devices:",
        "name vdev state read write cksum msg",
        "tank - DEGRADED 0 0 0 -",
        "raidz1-0 tank DEGRADED 0 0 0 -",
        "sda raidz1-0 ONLINE 0 0 0 -",
        'sdb raidz1-0 FAULTED 3 12 0 "too many errors"',
        "sdc raidz1-0 ONLINE 0 0 0 -",
        "note: Proxmox cuts counters of a thousand and more to their first digits (1.2K becomes 1.2): zpool status shows them whole",
    ]


@pytest.mark.parametrize(
    ("detail", "problems"),
    [
        (pool("ONLINE", leaf("sda"), leaf("sdb")), None),
        (pool("ONLINE", leaf("sda", cksum=4)), ["sda ONLINE, cksum 4"]),
        (pool("ONLINE", leaf("sda"), errors="1 data errors, use '-v' for a list"), ["data errors: 1 data errors, use '-v' for a list"]),
        (pool("SUSPENDED", leaf("sda")), ["state SUSPENDED"]),
        (pool("ONLINE", leaf("sda"), scan="scrub: with 7 errors"), ["the last scan found errors: scrub: with 7 errors"]),
        (pool("ONLINE", leaf("sda"), status="Some supported features are not enabled on the pool."), None),
        (pool("ONLINE", leaf("sdx", "AVAIL"), group="spares"), None),
        (pool("DEGRADED", leaf("sda", "REMOVED"), leaf("sdb", "UNAVAIL", msg="x")), ["state DEGRADED", "sda REMOVED", "sdb UNAVAIL, x"]),
        ({"name": "tank", "state": "ONLINE"}, None),
    ],
)  # fmt: skip
async def test_g54_what_makes_a_pool_unhealthy(served: ServedApi, detail: dict[str, Any], problems: list[str] | None) -> None:
    serve(served, detail)
    found = await ask_json(served, "get_zfs_pool", name="tank")
    assert found.get("problems") == problems
    assert found["title"].endswith("not healthy" if problems else ": healthy")


async def test_pools_of_all_nodes_troubled_ones_first() -> None:
    with served_cluster(nodes=2, troubles=True) as api:
        rows = (await ask_json(api, "list_zfs"))["items"]
        assert [(row["node"], row["name"], row["health"]) for row in rows] == [
            ("pve2", "tank", "DEGRADED"), ("pve1", "rpool", "ONLINE"), ("pve2", "rpool", "ONLINE"),
        ]  # fmt: skip
        assert "proxmox_get_zfs_pool" in await ask(api, "list_zfs", node="pve1")


async def test_the_node_of_a_pool_is_found_and_a_pool_that_many_have_is_asked_back() -> None:
    with served_cluster(nodes=2) as api:
        assert (await ask(api, "get_zfs_pool", name="tank")).startswith("ZFS pool tank on pve2: healthy")
        with pytest.raises(InvalidArgument, match="pool rpool is on pve1, pve2: say which"):
            await ask(api, "get_zfs_pool", name="rpool")
        with pytest.raises(NotFound, match="there is no ZFS pool nope; there are: rpool on pve1, rpool on pve2, tank on pve2"):
            await ask(api, "get_zfs_pool", name="nope")


@pytest.mark.parametrize(
    ("offline", "words"),
    [
        ({"pve2"}, r"no ZFS pool gone is seen; there are: rpool on pve1 \(not seen: pve2: not reachable \(offline\)\)"),
        (set(), "there is no ZFS pool gone; there are: rpool on pve1, rpool on pve2, tank on pve2"),
    ],
)
async def test_a_pool_may_be_on_a_node_that_is_away(offline: set[str], words: str) -> None:
    with served_cluster(nodes=2, offline=offline) as api, pytest.raises(NotFound, match=words):
        await ask(api, "get_zfs_pool", name="gone")


async def test_no_pools_is_a_plain_zero(served: ServedApi) -> None:
    served.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    served.on("GET", "/nodes/pve1/disks/zfs", [])
    assert await ask(served, "list_zfs") == "0 ZFS pools"
