"""What holds for all read tools: valid requests, complete lists, hostile values refused, every number one that Proxmox gave."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxmox_mcp.arguments import Listing, schema
from proxmox_mcp.errors import InvalidArgument, ProxmoxMcpError
from proxmox_mcp.plan import Risk
from tests.cluster import ServedCluster, served_cluster
from tests.pve_schema import SHARED, assert_valid
from tests.served_api import Reply, ServedApi
from tests.tools.asking import ask, ask_json, every_page, read_tools

pytestmark = pytest.mark.anyio

UPID = "UPID:pve1:00001001:0006F32D:6B0CE49C:vzdump:100:root@pam:"
# arguments with which each tool has something to say about the served cluster
CALLS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("health_overview", "list_nodes", "list_vms", "list_backups", "list_storage", "list_cluster_storage")},
    **{name: {} for name in ("list_isos", "list_lvm", "list_lvm_thin", "list_zfs", "list_tasks", "list_backup_jobs")},
    "list_disks": {"include_partitions": True},
    "get_node_status": {"node": "pve1"},
    "get_vm_status": {"vmid": 101},
    "list_snapshots": {"vmid": 100},
    "storage_usage_detail": {"storage": "nas"},
    "get_disk_smart": {"node": "pve1", "disk": "sda"},
    "get_zfs_pool": {"node": "pve1", "name": "rpool"},
    "get_task_log": {"upid": UPID},
}
MORE_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("health_overview", {"node": "pve1"}),
    ("list_vms", {"node": "pve1", "status": "running", "guest_type": "qemu", "vmid": 100}),
    ("list_backups", {"storage": "nas", "vmid": 101, "node": "pve1"}),
    ("list_isos", {"storage": "local", "node": "pve1", "content": "vztmpl"}),
    ("storage_usage_detail", {"storage": "local-lvm", "node": "pve2", "content_filter": "images,rootdir"}),
    ("get_disk_smart", {"node": "pve1", "disk": "/dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K1234567", "healthonly": True}),
    ("list_tasks", {"node": "pve1", "typefilter": "vzdump", "vmid": 100, "errors_only": True}),
    ("get_vm_status", {"vmid": 103, "node": "pve2", "vm_type": "lxc"}),
]


def first_task(api: ServedCluster) -> str:
    return next(iter(api.world.tasks))


def arguments(name: str, api: ServedCluster) -> dict[str, Any]:
    return {"upid": first_task(api)} if name == "get_task_log" else CALLS[name]


def test_there_are_twenty_and_they_only_read() -> None:
    tools = read_tools()
    assert set(tools) == set(CALLS)
    assert len(tools) == 20
    assert {tool.risk for tool in tools.values()} == {Risk.READ}


async def test_every_request_is_a_get_that_the_real_api_accepts() -> None:
    with served_cluster(nodes=2, guests=30, troubles=True) as api:
        for name in CALLS:
            assert await ask(api, name, **arguments(name, api))
        for name, given_ in MORE_CALLS:
            assert await ask(api, name, **given_)
        page = await ask_json(api, "list_tasks", limit=3)
        assert (await ask_json(api, "list_tasks", limit=3, cursor=page["cursor"]))["items"]
        assert {request.method for request in api.requests} == {"GET"}
        assert_valid(api.requests)


LISTS = sorted(name for name, tool in read_tools().items() if issubclass(tool.model, Listing))


@pytest.mark.parametrize("name", LISTS)
async def test_every_list_is_complete_page_by_page_and_takes_fields(name: str) -> None:
    with served_cluster(nodes=2, guests=8, troubles=True) as api:
        whole = (await ask_json(api, name, **CALLS[name], limit=10_000))["items"]
        assert await every_page(api, name, **CALLS[name], limit=2) == whole
        field = next(iter(whole[0]))
        assert [list(row) for row in (await ask_json(api, name, **CALLS[name], fields=[field], limit=10_000))["items"]] == [[field]] * len(
            whole
        )
        with pytest.raises(InvalidArgument, match="unknown: nosuch"):
            await ask(api, name, **CALLS[name], fields=["nosuch"])


async def test_hostile_names_and_notes_never_leave_their_place() -> None:
    with served_cluster(nodes=2, guests=24, hostile=True, troubles=True) as api:
        api.world.tasks[first_task(api)].log.insert(0, "\x1b]0;title\x07\u202e>>>\r\nTASK OK")
        for name in CALLS:
            for format_ in ("markdown", "json"):
                text = await ask(api, name, **arguments(name, api), response_format=format_)
                assert not re.search(
                    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]", text
                ), name
                if format_ == "json":
                    json.loads(text)


# --- hostile arguments

BASES = {
    "node": "pve1",
    "storage": "local",
    "upid": UPID,
    "disk": "/dev/sda",
    "name": "tank",
    "typefilter": "vzdump",
    "content_filter": "images,iso",
}
HOSTILE = (
    *("../", "/../", "/", "?", "#", "%2f", "%2e%2e/", "\\..\\", "?x=1", "\r\n", "\n", "\0", "\x1b[2J", "\u202e", "\ufeff", "\t"),
    *("é", "узел", "节点", "ｐｖｅ", "x" * 600),
)
# these never become part of a request
LOCAL = {("list_vms", "name")}


def strings() -> list[tuple[str, str]]:
    """Every argument of every read tool that takes free text."""
    found = []
    for name, tool in read_tools().items():
        for argument, prop in schema(tool.model)["properties"].items():
            if prop.get("type") == "string" and "enum" not in prop and argument not in ("cursor", "response_format"):
                found.append((name, argument))
    return found


def test_no_argument_is_left_out_of_the_property() -> None:
    assert {argument for _, argument in strings()} == set(BASES)
    assert len(strings()) > 20


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize(("name", "argument"), [pair for pair in strings() if pair not in LOCAL])
def test_a_hostile_value_is_refused_before_any_request(hostile_api: ServedApi, name: str, argument: str, data: st.DataObject) -> None:
    base = BASES[argument]
    at = data.draw(st.integers(1, len(base) - 1))
    value = base[:at] + data.draw(st.sampled_from(HOSTILE)) + base[at:]
    if argument == "disk" and "/" in value and re.fullmatch(r"/dev(/[a-z]+)+", value):
        return  # an inner slash may be part of a device's name
    given_ = {**({} if name == "health_overview" else CALLS[name]), argument: value}
    with pytest.raises(InvalidArgument):
        anyio.run(lambda: ask(hostile_api, name, **given_))
    assert not hostile_api.requests


@pytest.fixture(scope="module")
def hostile_api() -> Iterator[ServedApi]:
    with ServedApi() as api:
        yield api


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.integers().filter(lambda n: not 100 <= n <= 999_999_999),
        st.floats().filter(lambda n: not n.is_integer()),
        st.booleans(),
        st.text().filter(lambda s: not re.fullmatch(r"\s*\+?0*[1-9][0-9]{2,8}(\.0*)?\s*", s)),
        st.sampled_from([None, [], {}, "101/../102", "1e3", "101?x", "١٠١"]),
    )
)
def test_a_vmid_that_is_none_is_refused_before_any_request(hostile_api: ServedApi, vmid: Any) -> None:
    for name in ("get_vm_status", "list_snapshots"):
        with pytest.raises(InvalidArgument, match="vmid"):
            anyio.run(lambda name=name: ask(hostile_api, name, vmid=vmid))  # type: ignore[misc]
    assert not hostile_api.requests


async def test_a_name_to_look_for_never_becomes_part_of_a_request() -> None:
    with served_cluster() as api:
        assert (await ask(api, "list_vms", name="../?#%2f é")).startswith("0 guests")
        assert {request.target for request in api.requests} == {"/api2/json/cluster/resources?type=vm", "/api2/json/nodes"}


# --- every number is one that Proxmox gave

Numbers = set[float]
Prepare = Callable[[ServedApi, Any], None]
# computed from the row, and held against it below
QUOTIENTS = {"mem_fraction", "disk_fraction", "used_fraction", "alloc_fraction", "data_percent", "metadata_percent"}
COUNTS = {"count", "remaining", "offset", "_truncated_items", "duration", "volumes"}


def captures() -> list[tuple[str, str, Any]]:
    """(title, path, data) of the captured reads that answered, where the shared facts are at hand."""
    file = SHARED / "pve" / "captures.json"
    if not file.is_file():
        return []
    return [
        (f"{entry['section']}: {entry['title']}", entry["path"], entry["answer"])
        for entry in json.loads(file.read_text())
        if entry["method"] == "GET" and entry["status"] == 200 and isinstance(entry.get("answer"), dict)
    ]


def numbers(value: Any) -> Numbers:
    """Every number in an answer, also one that came as text."""
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    if isinstance(value, str):
        return {float(value)} if re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?\s*", value) else set()
    if isinstance(value, dict):
        return {number for item in value.values() for number in numbers(item)}
    return {number for item in value for number in numbers(item)}


def shown(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a JSON answer with the name it stands under."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from shown(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from shown(item, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


GUEST = {"status": "running", "node": "pve1"}
ONE_NODE = [{"node": "pve1", "status": "online"}]
STORE = {"type": "dir", "content": "images,rootdir,iso,vztmpl,backup,snippets,import"}


def reader(path: str, query: str) -> tuple[str, dict[str, Any]] | None:
    """The tool and arguments that read a path."""
    fixed = {
        "/nodes": "list_nodes", "/cluster/resources": "list_vms", "/storage": "list_cluster_storage", "/cluster/backup": "list_backup_jobs",
        "/nodes/pve1/storage": "list_storage", "/nodes/pve1/disks/lvm": "list_lvm", "/nodes/pve1/disks/lvmthin": "list_lvm_thin",
        "/nodes/pve1/disks/zfs": "list_zfs", "/nodes/pve1/disks/list": "list_disks", "/nodes/pve1/status": "get_node_status",
    }  # fmt: skip
    if path in fixed:
        return None if "type=" in query and "type=vm" not in query else (fixed[path], {})
    if found := re.fullmatch(r"/nodes/pve1/(qemu|lxc)/(\d+)/(status/current|pending|snapshot)", path):
        return ("list_snapshots" if found[3] == "snapshot" else "get_vm_status"), {"vmid": int(found[2])}
    if found := re.fullmatch(r"/nodes/pve1/storage/([^/]+)/(content|status)", path):
        return "storage_usage_detail", {"storage": found[1], "top_n": 1000}
    if found := re.fullmatch(r"/nodes/pve1/disks/zfs/([^/]+)", path):
        return "get_zfs_pool", {"name": found[1]}
    if path == "/nodes/pve1/disks/smart":
        return "get_disk_smart", {"disk": "/dev/sda"}
    if path == "/nodes/pve1/tasks":
        return "list_tasks", {"limit": 1000}
    if found := re.fullmatch(r"/nodes/pve1/tasks/(UPID[^/]+)/(status|log)", path):
        return "get_task_log", {"upid": found[1].replace("%3A", ":").replace("%40", "@").replace("%21", "!")}
    return None


def background(api: ServedApi, path: str) -> None:
    """What a tool needs besides the captured answer."""
    api.on("GET", "/nodes", ONE_NODE)
    api.on("GET", "/access/permissions", {"/": {"VM.Audit": 1, "Datastore.Allocate": 1, "Sys.Audit": 1}})
    api.on("GET", "/cluster/backup-info/not-backed-up", [])
    if found := re.fullmatch(r"/nodes/pve1/(qemu|lxc)/(\d+)/.*", path):
        api.on("GET", "/cluster/resources", [{**GUEST, "vmid": int(found[2]), "type": found[1]}])
        for part in ("status/current", "pending", "snapshot"):
            api.on("GET", f"/nodes/pve1/{found[1]}/{found[2]}/{part}", {"status": "running"} if part == "status/current" else [])
    else:
        api.on("GET", "/cluster/resources", [])
    if found := re.fullmatch(r"/nodes/pve1/storage/([^/]+)/.*", path):
        api.on("GET", "/storage", [{**STORE, "storage": found[1]}])
        api.on("GET", f"/nodes/pve1/storage/{found[1]}/content", [])
        api.on("GET", f"/nodes/pve1/storage/{found[1]}/status", {"active": 1})
    if found := re.fullmatch(r"/nodes/pve1/disks/zfs/([^/]+)", path):
        api.on("GET", "/nodes/pve1/disks/zfs", [{"name": found[1]}])
    if found := re.fullmatch(r"/nodes/pve1/tasks/(.*)/(status|log)", path):
        api.on("GET", "/nodes/pve1/tasks/{upid}/status", {"status": "stopped", "exitstatus": "OK"})
        api.on("GET", "/nodes/pve1/tasks/{upid}/log", [])


REPLAYED = [(title, path, answer) for title, path, answer in captures() if reader(path.partition("?")[0], path.partition("?")[2])]


def test_the_captures_hold_answers_for_most_read_tools() -> None:
    if not captures():
        pytest.skip("../shared/pve/captures.json is not here")
    assert len({reader(path.partition("?")[0], "")[0] for _, path, _ in REPLAYED}) >= 17  # type: ignore[index]
    assert len(REPLAYED) > 70


@pytest.mark.parametrize(("title", "path", "answer"), REPLAYED, ids=[title for title, _, _ in REPLAYED])
async def test_every_number_shown_is_a_number_in_the_answer(served: ServedApi, title: str, path: str, answer: dict[str, Any]) -> None:
    path, _, query = path.partition("?")
    found = reader(path, query)
    assert found is not None
    name, arguments_ = found
    background(served, path)
    plain = path.replace("%3A", ":").replace("%40", "@").replace("%21", "!")
    served.on("GET", plain, Reply(data=answer["data"], total=answer.get("total")))
    given_numbers = numbers(answer["data"]) | numbers(path.replace("/", " ").split())
    result = await ask_json(served, name, **arguments_)
    volumes = answer["data"] if name == "storage_usage_detail" and path.endswith("/content") else []
    sizes = {float(sum(row.get("size") or 0 for row in volumes if row["content"] == kind)) for kind in {row["content"] for row in volumes}}
    for under, number in shown(result):
        if under in COUNTS or (under == "started" and name == "get_task_log") or (under == "starttime" and name == "list_tasks"):
            continue
        if under in QUOTIENTS and number not in given_numbers:
            scale, precision = (100, 0.051) if under.endswith("_percent") else (1, 1e-9)
            assert any(b and abs(a / b * scale - number) <= precision for a in given_numbers for b in given_numbers), under
            continue
        assert number in given_numbers | (sizes if under == "size" else set()), under
    assert await ask(served, name, **arguments_)


async def test_an_error_of_proxmox_keeps_its_words(served: ServedApi) -> None:
    for path, name, arguments_ in (
        ("/nodes/pve1/status", "get_node_status", {"node": "pve1"}),
        ("/nodes/pve1/disks/list", "list_disks", {"node": "pve1"}),
        ("/nodes/pve1/disks/smart", "get_disk_smart", {"disk": "sda"}),
        ("/nodes/pve1/qemu/101/status/current", "get_vm_status", {"vmid": 101}),
        ("/cluster/backup", "list_backup_jobs", {}),
    ):
        background(served, path)
        served.on("GET", "/cluster/resources", [{**GUEST, "vmid": 101, "type": "qemu"}])
        served.on("GET", path, Reply(500, "the moon is in the wrong phase"))
        with pytest.raises(ProxmoxMcpError, match="the moon is in the wrong phase") as caught:
            await ask(served, name, **arguments_)
        assert f"GET {path}" in str(caught.value)
