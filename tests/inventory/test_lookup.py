from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from proxmox_mcp.config import Settings
from proxmox_mcp.errors import AuthenticationError, InvalidArgument, NodeUnreachable, NotFound, NotTheApi, PermissionDenied, Refused
from proxmox_mcp.http_client import HttpClient
from proxmox_mcp.inventory import Guest, Inventory, per_node
from tests.cluster import NO_RIGHTS, ONE_GUEST, served_cluster
from tests.pve_schema import assert_valid
from tests.served_api import Reply, ServedApi, client

NODES = [{"node": "pve1", "status": "online"}, {"node": "pve2", "status": "online"}]
WEB = {"id": "qemu/101", "vmid": 101, "node": "pve1", "type": "qemu", "status": "running", "name": "web", "template": 0, "tags": "a;b"}
SILENT = {"id": "lxc/205", "vmid": 205, "node": "pve2", "type": "lxc", "status": "unknown"}


# --- lists


@pytest.mark.anyio
async def test_g22_a_guest_row_without_name_template_or_numbers(served: ServedApi) -> None:
    served.on("GET", "/cluster/resources", [SILENT, WEB])
    async with client(served) as http:
        web, silent = await Inventory(http).guests()
    assert (web.vmid, web.name, web.status, web.template, web.tags, web.lock) == (101, "web", "running", False, ("a", "b"), None)
    assert (silent.vmid, silent.name, silent.status, silent.template, silent.tags) == (205, None, "unknown", False, ())
    assert [request.params for request in served.requests] == [{"type": "vm"}]


@pytest.mark.anyio
async def test_rows_that_say_nothing_are_left_out_and_counted(served: ServedApi) -> None:
    useless: list[dict[str, Any]] = [{"type": "storage"}, {"node": None}, {"vmid": "x"}]
    served.on(
        "GET",
        "/cluster/resources",
        [WEB, {"vmid": 7}, *({**WEB, **bad} for bad in useless)],
    )
    served.on("GET", "/nodes", [{"node": "pve1"}, {"status": "online"}, {"node": ""}])
    served.on("GET", "/storage", [{"storage": "local"}, {"type": "dir"}])
    async with client(served) as http:
        inventory = Inventory(http)
        assert [guest.vmid for guest in await inventory.guests()] == [101]
        assert [(node.name, node.online) for node in await inventory.nodes()] == [("pve1", None)]
        (local,) = await inventory.storages()
        assert inventory.gaps == [
            "guests: 4 entries could not be read",
            "nodes: 2 entries could not be read",
            "storages: 1 entry could not be read",
        ]
    assert (local.nodes, local.shared, local.enabled, local.content) == (None, False, True, frozenset())


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [None, {}, "", 0, ["noise"], [{"node": "pve1"}, None]])
async def test_an_answer_that_is_no_list_of_objects_is_not_an_empty_one(answer: Any, served: ServedApi) -> None:
    for path in ("/cluster/resources", "/nodes", "/storage"):
        served.on("GET", path, answer)
    async with client(served) as http:
        for read in (Inventory(http).guests, Inventory(http).nodes, Inventory(http).storages):
            with pytest.raises(NotTheApi, match="is not a list"):
                await read()


@pytest.mark.anyio
async def test_g20_a_node_is_online_offline_or_unknown(served: ServedApi) -> None:
    rows = [{"node": "pve3", "status": "unknown"}, {"node": "pve1", "status": "online"}, {"node": "pve2", "status": "offline", "maxcpu": 4}]
    served.on("GET", "/nodes", rows)
    async with client(served) as http:
        found = await Inventory(http).nodes()
    assert [(node.name, node.online) for node in found] == [("pve1", True), ("pve2", False), ("pve3", None)]
    assert found[1].row == rows[2]


@pytest.mark.anyio
async def test_g19_offline_nodes_are_not_asked_but_named() -> None:
    with served_cluster(3, offline={"pve2"}) as api:
        async with client(api) as http:
            inventory = Inventory(http)
            assert await inventory.live_nodes() == ["pve1", "pve3"]
            assert await inventory.live_nodes() == ["pve1", "pve3"]
    assert inventory.gaps == ["pve2: not reachable (offline)"]
    assert api.paths == ["GET /nodes"]


@pytest.mark.anyio
async def test_a_list_that_may_not_be_read_is_a_gap(served: ServedApi) -> None:
    served.on("GET", "/storage", Reply(403, "Permission check failed (/storage, Datastore.Audit)"))
    async with client(served) as http:
        inventory = Inventory(http)
        assert await inventory.storages() == []
    assert inventory.gaps[0].startswith("storages: not allowed")


@pytest.mark.anyio
async def test_a_wrong_token_is_never_an_empty_list(served: ServedApi) -> None:
    async with client(served, token_value="00000000-0000-0000-0000-000000000000") as http:
        for read in (Inventory(http).guests, Inventory(http).nodes, Inventory(http).permissions, Inventory(http).version):
            with pytest.raises(AuthenticationError):
                await read()


@pytest.mark.anyio
async def test_g26_what_was_read_stands_for_one_call_only(served: ServedApi) -> None:
    places = iter(["pve1", "pve2"])
    served.on("GET", "/cluster/resources", lambda _: [{**WEB, "node": next(places)}])
    async with client(served) as http:
        first, second = Inventory(http), Inventory(http)
        assert [(await first.guest(101)).node for _ in range(3)] == ["pve1"] * 3
        assert (await second.guest(101)).node == "pve2"
    assert len(served.requests) == 2


@pytest.mark.anyio
async def test_facts_about_the_cluster() -> None:
    with served_cluster(2, 3, version="8.4.14") as api:
        async with client(api) as http:
            inventory = Inventory(http)
            assert await inventory.version() == (8, 4)
            assert await inventory.version() == (8, 4)
            assert await inventory.is_cluster() is True
            assert await inventory.next_free_id() == 103
            assert await inventory.is_free(103) is True
            assert await inventory.is_free(101) is False
        assert api.count("GET", "/version") == 1
        assert_valid(api.requests)


@pytest.mark.anyio
@pytest.mark.parametrize(("nodes", "rights", "expected"), [(1, None, False), (1, NO_RIGHTS, None), (3, NO_RIGHTS, True)])
async def test_whether_it_is_a_cluster_may_be_unknown(nodes: int, rights: Any, expected: bool | None) -> None:
    with served_cluster(nodes, 1, **({} if rights is None else {"rights": rights})) as api:
        async with client(api) as http:
            assert await Inventory(http).is_cluster() is expected


# --- guests


@pytest.mark.anyio
async def test_a_guest_is_found_by_its_id_with_one_request() -> None:
    with served_cluster(3, 500) as api:
        async with client(api) as http:
            guest = await Inventory(http).guest(107)
    assert (guest.vmid, guest.node, guest.kind, guest.name) == (107, "pve2", "lxc", "backup-1")
    assert api.paths == ["GET /cluster/resources"]


@pytest.mark.anyio
async def test_g26_a_read_uses_the_real_node_and_says_so(served: ServedApi) -> None:
    served.on("GET", "/cluster/resources", [WEB])
    async with client(served) as http:
        inventory = Inventory(http)
        assert (await inventory.guest(101, node="pve2", kind="lxc")).node == "pve1"
    assert inventory.remarks == ["guest 101 is on node pve1, not on pve2", "guest 101 is of type qemu, not lxc"]


@pytest.mark.anyio
@pytest.mark.parametrize("asked", [{"node": "pve2"}, {"kind": "lxc"}, {"node": "PVE1"}, {"node": "pve1.lan"}])
async def test_g26_g21_a_change_is_refused_with_the_truth(served: ServedApi, asked: dict[str, str]) -> None:
    served.on("GET", "/cluster/resources", [WEB])
    async with client(served) as http:
        with pytest.raises(Refused) as caught:
            await Inventory(http).guest(101, change=True, node=asked.get("node"), kind=asked.get("kind"))
    text = str(caught.value)
    assert text.startswith("Nothing was changed: guest 101 is ")
    assert ("node pve1" if "node" in asked else "type qemu") in text


@pytest.mark.anyio
async def test_a_matching_node_and_type_cause_no_remark(served: ServedApi) -> None:
    served.on("GET", "/cluster/resources", [WEB])
    async with client(served) as http:
        inventory = Inventory(http)
        assert (await inventory.guest(101, node="pve1", kind="qemu", change=True)).vmid == 101
    assert inventory.remarks == []


@pytest.mark.anyio
async def test_a_guest_of_an_offline_node_is_told_or_refused() -> None:
    with served_cluster(3, offline={"pve2"}) as api:
        async with client(api) as http:
            inventory = Inventory(http)
            assert (await inventory.guest(101)).status == "unknown"
            with pytest.raises(Refused, match="guest 101 is on pve2, and that node is offline"):
                await inventory.guest(101, change=True)
    assert inventory.remarks == ["guest 101 is on pve2, and that node is offline"]


@pytest.mark.anyio
async def test_an_unknown_id_names_its_neighbours() -> None:
    with served_cluster(2, 12) as api:
        async with client(api) as http:
            with pytest.raises(NotFound, match="there is no guest 115; the nearest are 107, 108, 109, 110, 111"):
                await Inventory(http).guest(115)
        assert_valid(api.requests)


@pytest.mark.anyio
async def test_a_hidden_guest_is_told_apart_from_a_missing_one() -> None:
    with served_cluster(2, 12, rights=ONE_GUEST) as api:
        async with client(api) as http:
            with pytest.raises(PermissionDenied, match="guest 105 exists, but this token does not see it") as caught:
                await Inventory(http).guest(105)
            with pytest.raises(NotFound, match="there is no guest 500"):
                await Inventory(http).guest(500)
    assert "VM.Audit on /vms/105" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize("node", [None, "pve2"])
async def test_a_guest_just_created_is_found_before_the_list_knows_it(node: str | None) -> None:
    with served_cluster(3, 12) as api:
        api.on("GET", "/cluster/resources", [])
        async with client(api) as http:
            inventory = Inventory(http)
            guest = await inventory.guest(107, node=node, change=True)
    assert guest == Guest(107, "pve2", "lxc", {})
    assert guest.name == "backup-1"
    assert inventory.gaps == []


@pytest.mark.anyio
async def test_a_guest_that_no_list_shows_is_not_invented() -> None:
    with served_cluster(2, 12) as api:
        api.on("GET", "/cluster/resources", [])
        api.on("GET", "/nodes/{node}/lxc", [])
        async with client(api) as http:
            with pytest.raises(PermissionDenied, match="guest 107 exists"):
                await Inventory(http).guest(107)


# --- nodes


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["PVE1", "pve1.lan", "Pve1.example.com"])
async def test_g21_another_spelling_is_taken_by_a_read_and_refused_by_a_change(served: ServedApi, name: str) -> None:
    served.on("GET", "/nodes", NODES)
    async with client(served) as http:
        inventory = Inventory(http)
        assert (await inventory.node(name)).name == "pve1"
        with pytest.raises(Refused, match=f"there is no node {name}: did you mean pve1"):
            await inventory.node(name, change=True)
    assert inventory.remarks == [f"node {name} is called pve1"]
    assert served.paths == ["GET /nodes"]


@pytest.mark.anyio
async def test_g21_an_address_is_taken_for_the_node_that_has_it() -> None:
    with served_cluster(3) as api:
        async with client(api) as http:
            inventory = Inventory(http)
            assert (await inventory.node("10.77.0.11")).name == "pve2"
            with pytest.raises(NotFound):
                await inventory.node("10.77.0.99")


@pytest.mark.anyio
async def test_g21_the_exact_name_wins_and_an_ambiguous_one_is_refused(served: ServedApi) -> None:
    served.on("GET", "/nodes", [{"node": "PVE1", "status": "online"}, {"node": "pve1", "status": "online"}])
    async with client(served) as http:
        inventory = Inventory(http)
        assert (await inventory.node("pve1", change=True)).name == "pve1"
        with pytest.raises(NotFound, match="there is no node Pve1; the nodes are PVE1, pve1"):
            await inventory.node("Pve1")
    assert inventory.remarks == []


@pytest.mark.anyio
async def test_an_offline_node_is_known_but_not_asked() -> None:
    with served_cluster(3, offline={"pve3"}) as api:
        async with client(api) as http:
            inventory = Inventory(http)
            assert (await inventory.node("pve3")).online is False
            with pytest.raises(NodeUnreachable, match="node pve3 is offline, so it was not asked"):
                await inventory.node("pve3", live=True)
    assert api.paths == ["GET /nodes"]


# --- storages


@pytest.mark.anyio
async def test_storages_as_the_configuration_has_them() -> None:
    with served_cluster(3, troubles=True) as api:
        async with client(api) as http:
            found = {ref.name: ref for ref in await Inventory(http).storages()}
    assert list(found) == sorted(found)
    assert (found["local"].shared, found["local"].nodes, found["local"].enabled) == (False, None, True)
    assert (found["nas"].shared, found["nas"].content) == (True, frozenset({"iso", "backup"}))
    assert found["fast"].nodes == frozenset({"pve3"})
    assert found["oldnas"].enabled is False


@pytest.mark.anyio
async def test_a_network_storage_is_shared_even_where_the_list_does_not_say_so(served: ServedApi) -> None:
    rows = [{"storage": "nas", "type": "nfs"}, {"storage": "main", "type": "pbs"}, {"storage": "a1", "type": "dir", "shared": "1"}]
    served.on("GET", "/storage", rows)
    async with client(served) as http:
        assert all(ref.shared for ref in await Inventory(http).storages())


@pytest.mark.anyio
async def test_g29_a_restricted_storage_is_asked_on_its_node() -> None:
    with served_cluster(3) as api:
        async with client(api) as http:
            ref, node = await Inventory(http).storage_on("fast")
            with pytest.raises(InvalidArgument, match="storage fast is not available on pve1, only on pve3"):
                await Inventory(http).storage_on("fast", "pve1")
            with pytest.raises(InvalidArgument, match="oldnas is disabled"):
                await Inventory(http).storage_on("oldnas")
    assert (ref.name, node) == ("fast", "pve3")


@pytest.mark.anyio
async def test_a_storage_whose_only_node_is_offline() -> None:
    with served_cluster(3, offline={"pve3"}) as api:
        async with client(api) as http:
            with pytest.raises(NodeUnreachable, match="no node that serves storage fast is online"):
                await Inventory(http).storage_on("fast")


@pytest.mark.anyio
async def test_a_storage_of_each_node_is_never_taken_for_one() -> None:
    with served_cluster(2) as api:
        async with client(api) as http:
            inventory = Inventory(http)
            _, node = await inventory.storage_on("local")
            assert (await inventory.storage_on("local", "pve2"))[1] == "pve2"
            with pytest.raises(Refused, match="storage local is separate on pve1, pve2: say on which"):
                await inventory.storage_on("local", change=True)
    assert node == "pve1"
    assert inventory.remarks == ["storage local is separate on pve1, pve2; this is the one of pve1"]


@pytest.mark.anyio
async def test_a_storage_of_each_node_has_one_on_a_silent_node_too() -> None:
    with served_cluster(2, offline={"pve2"}) as api:
        async with client(api) as http:
            inventory = Inventory(http)
            await inventory.storage_on("nas")
            assert (await inventory.storage_on("local", change=True))[1] == "pve1"
            assert inventory.remarks == []
            await inventory.storage_on("local")
    assert inventory.remarks == ["storage local is separate on pve1, pve2 (offline); this is the one of pve1"]


@pytest.mark.anyio
async def test_an_unknown_storage_says_what_there_is_and_why_it_may_be_hidden() -> None:
    with served_cluster(2) as api:
        async with client(api) as http:
            with pytest.raises(NotFound, match=r"no storage nope is visible; there are: fast, local, local-lvm, nas, oldnas, pbs$"):
                await Inventory(http).storage("nope")
    with served_cluster(2, rights=ONE_GUEST) as api:
        async with client(api) as http:
            with pytest.raises(
                NotFound, match=r"there are: none .*does not hold Datastore.Audit or Datastore.AllocateSpace on /storage/nope"
            ):
                await Inventory(http).storage("nope")


@pytest.mark.anyio
async def test_g28_a_shared_storage_is_read_on_one_node_and_on_another_if_that_fails() -> None:
    with served_cluster(3, offline={"pve1"}) as api:
        api.on("GET", "/nodes/pve2/storage/nas/content", Reply(500, "storage 'nas' is not online"))
        async with client(api) as http:
            inventory = Inventory(http)
            nas = await inventory.storage("nas")
            node, rows = await inventory.from_shared(nas, lambda name: http.get("nodes", name, "storage", "nas", "content"))
            again, _ = await inventory.from_shared(nas, lambda name: http.get("nodes", name, "storage", "nas", "status"))
    assert node == "pve3"
    assert len(rows) == len({row["volid"] for row in rows})
    assert again == "pve2"
    assert inventory.remarks == ["storage nas was read on pve3 (pve2: storage 'nas' is not online)"]
    assert not [path for path in api.paths if "/nodes/pve1/" in path]


@pytest.mark.anyio
async def test_g28_a_shared_storage_needs_no_node_and_a_refusal_is_one_everywhere() -> None:
    with served_cluster(3) as api:
        api.on("GET", "/nodes/{node}/storage/nas/content", Reply(403, "Permission check failed (/storage/nas, Datastore.Audit)"))
        async with client(api) as http:
            inventory = Inventory(http)
            nas, node = await inventory.storage_on("nas", change=True)
            with pytest.raises(PermissionDenied):
                await inventory.from_shared(nas, lambda name: http.get("nodes", name, "storage", "nas", "content"))
    assert node == "pve1"
    assert inventory.remarks == []
    assert api.paths[-1] == "GET /nodes/pve1/storage/nas/content"
    assert len([path for path in api.paths if path.endswith("content")]) == 1


@pytest.mark.anyio
async def test_g28_a_shared_storage_that_no_node_gives_is_an_error() -> None:
    with served_cluster(2) as api:
        api.on("GET", "/nodes/{node}/storage/nas/content", Reply(596, "Connection timed out"))
        async with client(api) as http:
            inventory = Inventory(http)
            nas = await inventory.storage("nas")
            with pytest.raises(NodeUnreachable) as caught:
                await inventory.from_shared(nas, lambda name: http.get("nodes", name, "storage", "nas", "content"))
    assert caught.value.status == 596


# --- hostile values

_SAID = [
    "../pve1",
    "pve1/../x",
    "pve1?x=1",
    "pve1#x",
    "pve1%2f",
    "pve1\r\nHost: x",
    "pve1\x00",
    "p" * 5000,
    "\u0443\u0437\u0435\u043b",
    "p ",
    "",
]


def _harmless(text: str) -> bool:
    return text.isascii() and text.replace("-", "").replace(".", "").replace("_", "").isalnum()


@pytest.mark.anyio
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.sampled_from(_SAID) | st.text().filter(lambda text: not _harmless(text)))
async def test_hostile_names_are_refused_before_any_request(served: ServedApi, value: str) -> None:
    async with client(served) as http:
        inventory = Inventory(http)
        for look in (
            lambda: inventory.node(value),
            lambda: inventory.guest(101, node=value),
            lambda: inventory.storage(value),
            lambda: inventory.storage_on(value),
        ):
            with pytest.raises(InvalidArgument):
                await look()
    assert served.requests == []


@pytest.mark.anyio
@pytest.mark.parametrize("vmid", [-1, 0, 99, 1_000_000_000])
async def test_impossible_ids_are_refused_before_any_request(served: ServedApi, vmid: int) -> None:
    async with client(served) as http:
        with pytest.raises(InvalidArgument):
            await Inventory(http).guest(vmid)
    assert served.requests == []


@pytest.mark.anyio
async def test_hostile_rows_of_the_cluster_break_nothing() -> None:
    with served_cluster(2, 40, hostile=True) as api:
        async with client(api) as http:
            guests = await Inventory(http).guests()
    assert len(guests) == 40
    assert {guest.name for guest in guests} == {guest.name for guest in api.world.guests.values()}


# --- scale, and an independent fake


@pytest.mark.anyio
async def test_five_hundred_guests_three_nodes_one_dead_and_a_hanging_storage() -> None:
    with served_cluster(3, 500, offline={"pve3"}, hanging_storage="nas") as api:
        async with client(api) as http:
            inventory = Inventory(http)
            guests = await inventory.guests()
            lists = await per_node(await inventory.live_nodes(), lambda node: http.get("nodes", node, "storage"), each=0.2, total=1)
            found = inventory.keep(lists)
    assert len(guests) == 500
    assert {(guest.status, guest.name) for guest in guests if guest.node == "pve3"} == {("unknown", None)}
    assert found == {}
    assert inventory.gaps == ["pve3: not reachable (offline)", "pve1: no answer in 0.2 s", "pve2: no answer in 0.2 s"]


@pytest.mark.anyio
async def test_the_same_against_fakepve(fakepve: Any, fakepve_settings: Settings) -> None:
    fakepve.add_vm(101, "web", status="running")
    fakepve.add_ct(205, config={"hostname": "files"})
    http = HttpClient(fakepve_settings)
    try:
        inventory = Inventory(http)
        assert [(guest.vmid, guest.kind, guest.name) for guest in await inventory.guests()] == [(101, "qemu", "web"), (205, "lxc", "files")]
        (node,) = [node for node in await inventory.nodes() if node.name == (await inventory.guest(101)).node]
        assert node.online is True
        assert await inventory.version() == (9, 0)
        assert await inventory.is_free(101) is False
        assert (await inventory.permissions()).has("/vms/101", "VM.Audit") is True
        with pytest.raises(NotFound):
            await inventory.guest(999)
    finally:
        await http.close()
