"""Nodes: statuses as given, no numbers for what is not there, names as they are meant."""

from __future__ import annotations

import pytest

from proxmox_mcp.errors import InvalidArgument, NodeUnreachable, NotFound
from tests.cluster import NO_RIGHTS, served_cluster
from tests.served_api import Reply, ServedApi
from tests.tools.asking import ask, ask_json

pytestmark = pytest.mark.anyio

G20 = [
    {"node": "pve1", "status": "online", "cpu": 0.07, "maxcpu": 8, "mem": 8589934592, "maxmem": 34359738368, "uptime": 86400},
    {"node": "pve2", "status": "offline", "maxcpu": 4, "maxmem": 17179869184, "level": ""},
    {"node": "pve3", "status": "unknown"},
]


async def test_g20_an_offline_node_has_no_live_numbers(served: ServedApi) -> None:
    served.on("GET", "/nodes", G20)
    assert await ask(served, "list_nodes") == (
        "3 nodes\nnode status cpu% mem% disk% uptime\npve1 online 7 25 - 1d\npve2 offline - - - -\npve3 unknown - - - -"
    )
    rows = (await ask_json(served, "list_nodes"))["items"]
    assert [(row["node"], row["status"], row["cpu"]) for row in rows] == [
        ("pve1", "online", 0.07),
        ("pve2", "offline", None),
        ("pve3", "unknown", None),
    ]
    assert rows[1]["maxmem"] == 17179869184
    assert rows[1]["mem_fraction"] is None


async def test_without_sys_audit_the_figures_are_unknown_and_the_answer_says_why() -> None:
    with served_cluster(nodes=2, rights=NO_RIGHTS) as api:
        text = await ask(api, "list_nodes")
    assert "pve1 - - - -" in text
    assert "permission list is empty" in text


async def test_g25_load_is_text_and_there_is_no_swap(served: ServedApi) -> None:
    served.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    status = {
        "loadavg": ["0.31", "0.40", "0.52"],
        "swap": {"total": 0, "used": 0, "free": 0},
        "cpu": 0.021,
        "cpuinfo": {"model": "Xeon", "cpus": 16, "mhz": "2400.000"},
        "memory": {"total": 67108864, "used": 33554432, "free": 33554432},
        "uptime": 12,
    }
    served.on("GET", "/nodes/pve1/status", status)
    text = await ask(served, "get_node_status")
    lines = text.splitlines()
    assert "load: 0.31,0.4,0.52" in lines
    assert "cpus: 16" in lines
    assert "swap: none" in lines
    assert "uptime: 12s" in lines
    assert (await ask_json(served, "get_node_status"))["load"] == [0.31, 0.4, 0.52]
    assert (await ask_json(served, "get_node_status", fields=["memory_used", "swap"])) == {
        "title": "status of node pve1", "memory_used": 33554432, "swap": "none",
    }  # fmt: skip
    assert (await ask_json(served, "get_node_status", fields=["swap_used", "boot"])) == {
        "title": "status of node pve1", "swap_used": None, "boot": None,
    }  # fmt: skip
    with pytest.raises(InvalidArgument, match="unknown: nosuch; known: version, kernel"):
        await ask(served, "get_node_status", fields=["nosuch"])


async def test_g21_another_spelling_is_taken_for_a_read_and_reported() -> None:
    with served_cluster(nodes=2) as api:
        for spelling in ("PVE1", "pve1.lan"):
            text = await ask(api, "get_node_status", node=spelling)
            assert text.startswith("status of node pve1\n")
            assert f"note: node {spelling} is called pve1" in text
        assert api.count("GET", "/nodes/pve1/status") == 2
        assert not [path for path in api.paths if "lan" in path or "PVE1" in path]
        with pytest.raises(NotFound, match="there is no node pve9; the nodes are pve1, pve2"):
            await ask(api, "get_node_status", node="pve9")
        with pytest.raises(InvalidArgument, match="say which: pve1, pve2"):
            await ask(api, "get_node_status")


async def test_a_true_596_keeps_its_wording_and_an_offline_node_is_not_asked() -> None:
    with served_cluster(nodes=2, offline={"pve2"}) as api:
        api.on("GET", "/nodes/pve1/status", Reply(596, "Connection timed out"))
        with pytest.raises(NodeUnreachable) as caught:
            await ask(api, "get_node_status", node="pve1")
        assert caught.value.status == 596
        with pytest.raises(NodeUnreachable, match="node pve2 is offline, so it was not asked"):
            await ask(api, "get_node_status", node="pve2")
        assert not [path for path in api.paths if "/pve2/" in path]


async def test_secure_boot_is_a_yes_or_a_no() -> None:
    with served_cluster(nodes=1) as api:
        assert "boot: efi\nsecure_boot: no" in await ask(api, "get_node_status", node="pve1")
