"""500 guests on three nodes, one node dead, one storage hanging: through the real server, in both protocol eras."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import ServedCluster, served_cluster
from tests.protocol.talking import ERAS, call, over_stdio
from tests.served_api import environment

pytestmark = pytest.mark.anyio
BUDGET = 10  # seconds for the overview


@pytest.fixture(scope="module")
def cluster() -> Iterator[ServedCluster]:
    with served_cluster(nodes=3, guests=500, offline={"pve3"}, hanging_storage="nas", troubles=True) as api:
        yield api


@ERAS
async def test_the_overview_comes_in_time_and_names_the_gaps(cluster: ServedCluster, tmp_path: Path, era: str) -> None:
    async with over_stdio(tmp_path, environment(cluster, PROXMOX_TIMEOUT="30"), era=era) as client:
        await client.list_tools()
        started = time.monotonic()
        text = await call(client, "proxmox_health_overview")
        took = time.monotonic() - started
        assert took < BUDGET
        assert len(text) < 6_000
        assert "node pve3 is offline" in text
        assert re.search(r"^nodes: 2 of 3 online", text, re.MULTILINE)
        assert re.search(r"^guests: ", text, re.MULTILINE)
        assert re.search(r"unknown", text)
        # what did not answer is named, and no number stands for it
        gaps = [line for line in text.splitlines() if line.startswith("note: ")]
        assert any("storage" in line and "3 s" in line for line in gaps), text
        guests = await call(client, "proxmox_list_vms", fields=["vmid", "status"])
        assert guests.startswith("500 guests")
        assert "note: pve3: not reachable (offline)" in guests


@ERAS
async def test_everything_else_is_listed_complete(cluster: ServedCluster, tmp_path: Path, era: str) -> None:
    async with over_stdio(tmp_path, environment(cluster, PROXMOX_TIMEOUT="1"), era=era) as client:
        rows: list[int] = []
        more: dict[str, str] = {}
        while True:
            page = json.loads(await call(client, "proxmox_list_vms", limit=120, response_format="json", **more))
            rows += [row["vmid"] for row in page["items"]]
            if "cursor" not in page:
                break
            more = {"cursor": page["cursor"]}
        assert rows == sorted(cluster.world.guests)
        nodes = json.loads(await call(client, "proxmox_list_nodes", response_format="json"))["items"]
        assert {row["node"]: row["status"] for row in nodes} == {"pve1": "online", "pve2": "online", "pve3": "offline"}
        assert all(row["cpu"] is None for row in nodes if row["node"] == "pve3" and "cpu" in row)
        for tool in ("proxmox_list_disks", "proxmox_list_zfs", "proxmox_list_lvm", "proxmox_list_tasks"):
            text = await call(client, tool)
            assert "pve1" in text
            assert "pve3" in text.partition("note: ")[2], tool
        backups = await call(client, "proxmox_list_backups")
        assert "nas" in backups.partition("note: ")[2]
        assert "pbs:backup/" in backups
        assert "not listed" not in backups.partition("note: ")[0]
