"""Snapshots: the pseudo snapshot is none, what was never finished is marked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster import served_cluster
from tests.served_api import ServedApi
from tests.tools.asking import ask, ask_json, every_page

pytestmark = pytest.mark.anyio

G44: list[dict[str, Any]] = [
    {"name": "pre_upgrade", "snaptime": 1772326800, "description": "", "vmstate": 0},
    {"name": "nightly", "snaptime": 1772413200, "parent": "pre_upgrade", "snapstate": "prepare"},
    {"name": "current", "digest": "ab12", "running": 1, "description": "You are here!", "parent": "nightly"},
]


async def test_g44_current_is_a_remark_and_no_snapshot(served: ServedApi) -> None:
    served.on("GET", "/cluster/resources", [{"vmid": 101, "node": "pve1", "type": "qemu", "status": "running"}])
    served.on("GET", "/nodes/pve1/qemu/101/snapshot", G44)
    assert (await ask(served, "list_snapshots", vmid=101)).splitlines() == [
        "2 snapshots; guest=101; node=pve1",
        "current: on top of nightly",
        "name taken parent ram description snapstate",
        'pre_upgrade 2026-03-01 01:00Z - no "" -',
        "nightly 2026-03-02 01:00Z pre_upgrade - - prepare",
        "note: not complete, left by a task that was cut off or still runs: nightly; see proxmox_list_tasks",
    ]
    found = await ask_json(served, "list_snapshots", vmid=101)
    assert [row["name"] for row in found["items"]] == ["pre_upgrade", "nightly"]
    assert found["current"] == "on top of nightly"


async def test_a_guest_without_snapshots_and_a_container() -> None:
    with served_cluster() as api:
        assert (await ask(api, "list_snapshots", vmid=101)).splitlines() == ["0 snapshots; guest=101; node=pve2", "current: on no snapshot"]
        rows = await every_page(api, "list_snapshots", vmid=103, limit=1)
        assert [row["name"] for row in rows] == ["before_upgrade", "nightly"]
        assert "GET /nodes/pve1/lxc/103/snapshot" in api.paths
