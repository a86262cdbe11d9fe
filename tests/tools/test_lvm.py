"""LVM: a tree of groups and a flat list of thin pools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster import served_cluster
from tests.served_api import ServedApi
from tests.tools.asking import ask, ask_json

pytestmark = pytest.mark.anyio

G55 = {
    "leaf": 0,
    "children": [
        {
            "name": "pve",
            "size": 500107862016,
            "free": 17179869184,
            "leaf": 0,
            "children": [{"name": "/dev/sda3", "size": 500107862016, "free": 17179869184, "leaf": 1}],
        }
    ],
}
THIN = {"lv": "data", "vg": "pve", "lv_size": 365000000000, "used": 200000000000, "metadata_size": 3900000000, "metadata_used": 100000000}


def serve(api: ServedApi, groups: Any, pools: Any) -> None:
    api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    api.on("GET", "/nodes/pve1/disks/lvm", groups)
    api.on("GET", "/nodes/pve1/disks/lvmthin", pools)


async def test_g55_a_volume_group_with_its_disk_and_free_space(served: ServedApi) -> None:
    serve(served, G55, [])
    assert await ask(served, "list_lvm") == "1 volume group\nnode vg size free lvs pvs\npve1 pve 466G 16.0G - /dev/sda3"
    row = (await ask_json(served, "list_lvm"))["items"][0]
    assert (row["pvs"], row["pv_sizes"], row["pv_free"]) == (["/dev/sda3"], [500107862016], [17179869184])


@pytest.mark.parametrize("empty", [{"leaf": 0, "children": []}, {}])
async def test_g55_an_empty_host_has_no_volume_groups(served: ServedApi, empty: Any) -> None:
    serve(served, empty, [])
    assert await ask(served, "list_lvm") == "0 volume groups"
    assert await ask(served, "list_lvm_thin", node="pve1") == "0 thin pools; node=pve1"


async def test_g55_thin_pools_with_data_and_metadata(served: ServedApi) -> None:
    serve(served, G55, [THIN])
    assert await ask(served, "list_lvm_thin") == "1 thin pool\nnode vg lv size data% meta%\npve1 pve data 340G 54.8 2.6"


async def test_g55_metadata_that_fills_is_a_warning(served: ServedApi) -> None:
    serve(served, G55, [{**THIN, "metadata_used": 3200000000}, {**THIN, "lv": "unseen", "used": None, "metadata_used": None}])
    text = await ask(served, "list_lvm_thin")
    assert "note: pve/data on pve1: metadata 82.1 % full; at 100 % the pool stops: extend it (lvextend --poolmetadatasize)" in text
    assert "pve1 pve unseen 340G - -" in text or "unseen - -" in text
    assert text.count("note:") == 1


async def test_every_node_is_asked_when_none_is_named() -> None:
    with served_cluster(nodes=2) as api:
        assert [row["node"] for row in (await ask_json(api, "list_lvm"))["items"]] == ["pve1", "pve2"]
        assert [row["node"] for row in (await ask_json(api, "list_lvm_thin", node="pve2"))["items"]] == ["pve2"]
