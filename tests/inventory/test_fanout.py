from __future__ import annotations

import asyncio

import anyio
import pytest

from proxmox_mcp.errors import AuthenticationError, ConnectionFailed, NodeUnreachable, PermissionDenied, ProxmoxMcpError, RequestTimeout
from proxmox_mcp.http_client import HttpClient
from proxmox_mcp.inventory import Inventory, gap, gather, per_node
from tests.pve_schema import assert_valid
from tests.served_api import Reply, Request, ServedApi, client, settings


@pytest.mark.anyio
async def test_g19_each_failure_stays_beside_its_node(served: ServedApi) -> None:
    served.on("GET", "/nodes/{node}/qemu", lambda request: [{"vmid": 101, "node": request.vars["node"]}])
    served.on("GET", "/nodes/pve2/qemu", Reply(595, "No route to host"))
    served.on("GET", "/nodes/pve3/qemu", Reply(403, "Permission check failed (/nodes/pve3, Sys.Audit)"))
    async with client(served) as http:
        found = await per_node(["pve1", "pve2", "pve3"], lambda node: http.get("nodes", node, "qemu"))
        inventory = Inventory(http)
        good = inventory.keep(found)
    assert list(found) == ["pve1", "pve2", "pve3"]
    assert good == {"pve1": [{"vmid": 101, "node": "pve1"}]}
    assert inventory.gaps[0] == "pve2: not reachable (595)"
    assert inventory.gaps[1].startswith("pve3: not allowed")
    assert "Sys.Audit" in inventory.gaps[1]
    assert_valid(served.requests)


@pytest.mark.anyio
async def test_g19_nodes_are_asked_at_once_and_never_too_many(served: ServedApi) -> None:
    arrived, enough = 0, asyncio.Event()

    async def answer(_: Request) -> list[int]:
        nonlocal arrived
        arrived += 1
        if arrived >= 5:
            enough.set()
        await enough.wait()  # nobody is answered before five have asked
        return []

    served.on("GET", "/nodes/{node}/qemu", answer)
    running, most = 0, 0

    async def fetch(node: str) -> object:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await http.get("nodes", node, "qemu")
        finally:
            running -= 1

    async with client(served) as http:
        found = await per_node([f"pve{n}" for n in range(12)], fetch)
    assert list(found.values()) == [[]] * 12
    assert served.max_concurrent >= 5
    assert most == 6


@pytest.mark.anyio
async def test_g30_a_silent_source_costs_its_share_and_no_more(served: ServedApi) -> None:
    served.on("GET", "/nodes/{node}/storage", lambda request: Reply(hang=request.vars["node"] == "pve2", data=[]))
    async with client(served) as http:
        found = await per_node(["pve1", "pve2", "pve3"], lambda node: http.get("nodes", node, "storage"), each=0.3)
    assert found["pve1"] == found["pve3"] == []
    assert isinstance(found["pve2"], RequestTimeout)
    assert str(found["pve2"]) == "no answer in 0.3 s"


@pytest.mark.anyio
async def test_all_sources_together_have_a_limit(served: ServedApi) -> None:
    served.on("GET", "/version", {})
    served.on("GET", "/nodes/{node}/storage", Reply(hang=True))
    async with client(served) as http:
        sources = {"quick": lambda: http.get("version"), **{f"s{n}": (lambda: http.get("nodes", "pve1", "storage")) for n in range(20)}}
        with anyio.fail_after(5):
            found = await gather(sources, each=3, total=0.3)
    assert found.pop("quick") == {}
    assert {type(result) for result in found.values()} == {RequestTimeout}
    assert len(found) == 20


@pytest.mark.anyio
async def test_falsy_results_are_results() -> None:
    async def none() -> None:
        return None

    async def zero() -> int:
        return 0

    assert await gather({"a": none, "b": zero}) == {"a": None, "b": 0}


@pytest.mark.anyio
async def test_a_bug_is_not_taken_for_a_gap() -> None:
    async def bug() -> None:
        raise ZeroDivisionError

    with pytest.raises(BaseExceptionGroup) as caught:
        await gather({"a": bug})
    assert caught.value.subgroup(ZeroDivisionError) is not None


def test_what_concerns_everything_is_not_a_gap(served: ServedApi) -> None:
    inventory = Inventory(HttpClient(settings(served)))
    refused = AuthenticationError("who are you", status=401)
    with pytest.raises(AuthenticationError):
        inventory.keep({"pve1": [1], "pve2": refused})
    down: dict[str, int | ProxmoxMcpError] = {"pve1": ConnectionFailed("no connection"), "pve2": ConnectionFailed("no connection")}
    with pytest.raises(ConnectionFailed):
        inventory.keep(down)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (NodeUnreachable("x", status=596), "pve2: not reachable (596)"),
        (NodeUnreachable("x", status=0), "pve2: not reachable (offline)"),
        (
            PermissionDenied("x", status=403, said="Permission check failed (/, Sys.Audit)"),
            "pve2: not allowed (Permission check failed (/, Sys.Audit))",
        ),
        (PermissionDenied("x", status=403), "pve2: not allowed"),
        (RequestTimeout("no answer in 3 s"), "pve2: no answer in 3 s"),
    ],
)
def test_a_gap_is_one_line(error: ProxmoxMcpError, line: str) -> None:
    assert gap("pve2", error) == line
