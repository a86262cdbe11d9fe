"""Storages: states, shared ones once, restricted ones where they are, sizes that are known."""

from __future__ import annotations

from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, NotFound
from tests.cluster import AUDITOR, NO_RIGHTS, served_cluster
from tests.served_api import Reply, ServedApi
from tests.tools.asking import ask, ask_json, every_page

pytestmark = pytest.mark.anyio

NODES = [{"node": "pve1", "status": "online"}, {"node": "pve2", "status": "online"}]
G27: list[dict[str, Any]] = [
    {
        "storage": "local",
        "type": "dir",
        "content": "iso,backup",
        "enabled": 1,
        "active": 1,
        "shared": 0,
        "total": 100000000000,
        "used": 40000000000,
        "avail": 60000000000,
        "used_fraction": 0.4,
    },
    {"storage": "oldnas", "type": "nfs", "content": "backup", "enabled": 0, "active": 0, "shared": 1, "total": 0, "used": 0, "avail": 0},
    {"storage": "usb", "type": "dir", "content": "backup", "enabled": 1, "active": 0, "shared": 0, "total": 0, "used": 0, "avail": 0},
]
G31: list[dict[str, Any]] = [
    {"volid": "san:vm-101-disk-0", "format": "raw", "vmid": 101, "approximate-size": 10737418240, "content": "images"},
    {"volid": "local:iso/x.iso", "format": "iso", "content": "iso"},
    {
        "volid": "local:backup/vzdump-lxc-205-2026_03_01-02_00_00.tar.zst",
        "format": "tar.zst",
        "size": 5,
        "ctime": 1772326800,
        "vmid": 205,
        "content": "backup",
    },
]


async def test_g27_disabled_and_inactive_storages_have_no_fill_level(served: ServedApi) -> None:
    served.on("GET", "/nodes", NODES[:1])
    served.on("GET", "/nodes/pve1/storage", G27)
    text = await ask(served, "list_storage")
    assert text.splitlines()[1:] == [
        "storage node type state used% avail total content",
        "local pve1 dir active 40 55.9G 93.1G iso,backup",
        "oldnas shared nfs disabled - - - backup",
        "usb pve1 dir inactive - - - backup",
    ]
    rows = (await ask_json(served, "list_storage"))["items"]
    assert [(row["state"], row["total"], row["used_fraction"]) for row in rows] == [
        ("active", 100000000000, 0.4),
        ("disabled", None, None),
        ("inactive", None, None),
    ]


async def test_sizes_that_a_type_of_storage_does_not_tell_are_unknown(served: ServedApi) -> None:
    san = {
        "storage": "san",
        "type": "iscsi",
        "content": "images",
        "enabled": 1,
        "active": 1,
        "shared": 1,
        "total": 0,
        "used": 0,
        "avail": 0,
    }
    served.on("GET", "/nodes", NODES[:1])
    served.on("GET", "/nodes/pve1/storage", [san])
    assert "san shared iscsi active - - - images" in await ask(served, "list_storage")
    served.on("GET", "/storage", [{"storage": "san", "type": "iscsi", "content": "images"}])
    served.on(
        "GET", "/nodes/pve1/storage/san/content", [{"volid": "san:0.0.0.scsi-36001", "content": "images", "format": "raw", "size": 2**40}]
    )
    served.on("GET", "/nodes/pve1/storage/san/status", san)
    served.on("GET", "/access/permissions", {"/": {"Datastore.Allocate": 1}})
    found = await ask_json(served, "storage_usage_detail", storage="san")
    assert [found[name] for name in ("state", "total", "used", "avail", "used_fraction")] == ["active", None, None, None, None]


async def test_g28_a_shared_storage_is_one_row_and_local_ones_one_a_node() -> None:
    with served_cluster(nodes=3) as api:
        rows = (await ask_json(api, "list_storage"))["items"]
        assert [(row["storage"], row["node"]) for row in rows if row["storage"] in ("local", "nas")] == [
            ("local", "pve1"), ("local", "pve2"), ("local", "pve3"), ("nas", "shared"),
        ]  # fmt: skip
        only = await ask(api, "list_storage", node="pve2")
        assert only.startswith("5 storages; node=pve2\n")


async def test_a_shared_storage_that_one_node_cannot_reach_is_told(served: ServedApi) -> None:
    served.on("GET", "/nodes", NODES)
    active = {"storage": "nas", "type": "nfs", "content": "backup", "enabled": 1, "shared": 1}
    served.on("GET", "/nodes/pve1/storage", [{**active, "active": 0, "total": 0, "used": 0, "avail": 0}])
    served.on("GET", "/nodes/pve2/storage", [{**active, "active": 1, "total": 100, "used": 50, "avail": 50}])
    text = await ask(served, "list_storage")
    assert "nas shared nfs active 50 50B 100B backup" in text
    assert "note: nas is active on pve2, but inactive on pve1" in text


async def test_a_storage_that_hangs_leaves_the_last_known_figures() -> None:
    with served_cluster(nodes=2, hanging_storage="nas") as api:
        text = await ask(api, "list_storage", timeout=0.5)
    assert text.splitlines()[0].endswith('; state="last known"')
    assert "nas shared nfs 60 - 8.0T iso,backup" in text
    assert "last known are figures that Proxmox kept" in text
    assert "note: pve1: Request timed out after 0.5 s" in text


async def test_a_dead_node_hides_nobody_else() -> None:
    with served_cluster(nodes=3, offline={"pve3"}) as api:
        api.on("GET", "/nodes/pve2/storage", Reply(595, "No route to host"))
        text = await ask(api, "list_storage")
    assert "local pve1 dir active" in text
    assert "note: pve3: not reachable (offline)" in text
    assert "note: pve2: not reachable (595)" in text


async def test_no_rights_and_no_storages_are_told_apart() -> None:
    with served_cluster(rights=NO_RIGHTS) as api:
        assert "permission list is empty" in await ask(api, "list_storage")
        assert "permission list is empty" in await ask(api, "list_cluster_storage")


async def test_cluster_storage_is_what_is_configured() -> None:
    with served_cluster(nodes=2) as api:
        text = await ask(api, "list_cluster_storage")
        rows = (await ask_json(api, "list_cluster_storage"))["items"]
    assert "local-lvm lvmthin images,rootdir all yes no pve/data" in text
    assert "nas nfs backup,iso all yes yes 10.77.0.90:/srv/pve" in text
    assert "oldnas nfs backup all no yes 10.77.0.92:/old" in text
    assert {row["storage"]: row.get("prune-backups") for row in rows}["pbs"] == "keep-all=1"
    assert "sync@pbs" not in text


# --- what lies on one


def serve_content(api: ServedApi, rows: list[dict[str, Any]], **config: Any) -> None:
    api.on("GET", "/nodes", NODES)
    api.on("GET", "/storage", [{"storage": "san", "type": "lvm", "content": "images,iso,backup", **config}])
    api.on("GET", "/nodes/{node}/storage/san/content", rows)
    api.on("GET", "/nodes/{node}/storage/san/status", {"active": 1, "enabled": 1, "total": 1000, "used": 250, "avail": 750, "type": "lvm"})
    api.on("GET", "/cluster/resources", [{"vmid": 205, "node": "pve1", "type": "lxc", "status": "running"}])
    api.on("GET", "/access/permissions", {"/": {"Datastore.Allocate": 1, "VM.Audit": 1}})


async def test_g31_sizes_that_are_approximate_or_unknown(served: ServedApi) -> None:
    serve_content(served, G31, shared=1)
    text = await ask(served, "storage_usage_detail", storage="san")
    lines = text.splitlines()
    assert lines[lines.index("volid content vmid size approx") + 1 :][:3] == [
        "san:vm-101-disk-0 images 101 10.0G yes",
        "local:backup/vzdump-lxc-205-2026_03_01-02_00_00.tar.zst backup 205 5B -",
        "local:iso/x.iso iso - - -",
    ]
    assert "note: the size of 1 volume is not known: totals are at least what they say" in lines
    assert "note: the size of 1 volume is approximate (approx)" in lines
    assert "used_fraction: 25%" in lines
    found = await ask_json(served, "storage_usage_detail", storage="san")
    assert found["by_content"] == [
        {"content": "images", "volumes": 1, "size": 10737418240},
        {"content": "backup", "volumes": 1, "size": 5},
        {"content": "iso", "volumes": 1, "size": None},
    ]
    assert (found["total"], found["used"], found["used_fraction"]) == (1000, 250, 0.25)


async def test_disks_of_guests_that_are_gone_are_named(served: ServedApi) -> None:
    serve_content(served, G31, shared=1)
    assert "of ids that no guest has (orphaned?): 1 disk: san:vm-101-disk-0" in await ask(served, "storage_usage_detail", storage="san")
    served.on("GET", "/access/permissions", {"/": {"Datastore.Allocate": 1}, "/vms/205": {"VM.Audit": 1}})
    assert "orphaned" not in await ask(served, "storage_usage_detail", storage="san")  # it may just be hidden


@pytest.mark.parametrize(("used", "said"), [(400 << 30, True), (15 << 30, True), (10 << 30, False), (2 << 30, False)])
async def test_what_no_listed_volume_explains_is_told(served: ServedApi, used: int, said: bool) -> None:
    serve_content(served, [{"volid": "san:iso/x.iso", "content": "iso", "size": 10 << 30}], shared=1)
    served.on("GET", "/nodes/{node}/storage/san/status", {"active": 1, "enabled": 1, "total": 500 << 30, "used": used, "type": "nfs"})
    text = await ask(served, "storage_usage_detail", storage="san")
    expected = f"note: {(used >> 30) - 10}" + (".0G of the " if used < 100 << 30 else "G of the ")
    assert (expected in text) == said
    assert "in no volume listed here" not in await ask(served, "storage_usage_detail", storage="san", content_filter="iso")
    serve_content(served, G31, shared=1)  # a size is not known: so is what it leaves
    assert "in no volume listed here" not in await ask(served, "storage_usage_detail", storage="san")


async def test_the_largest_come_first_page_by_page_and_by_content() -> None:
    with served_cluster(guests=30) as api:
        rows = await every_page(api, "storage_usage_detail", storage="nas", top_n=7)
        sizes = [row["size"] for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert len({row["volid"] for row in rows}) == len(rows) == len(api.world.volumes["nas", None])
        images = await ask_json(api, "storage_usage_detail", storage="nas", content_filter="iso,snippets")
        assert {row["content"] for row in images["items"]} == {"iso"}
        with pytest.raises(InvalidArgument, match="content_filter"):
            await ask(api, "storage_usage_detail", storage="nas", content_filter="iso&x=1")


async def test_g28_a_shared_storage_is_asked_on_one_node_and_on_the_next_if_that_fails() -> None:
    with served_cluster(nodes=3, guests=6) as api:
        await ask(api, "storage_usage_detail", storage="nas")
        assert [path for path in api.paths if path.endswith("/content")] == ["GET /nodes/pve1/storage/nas/content"]
        api.on("GET", "/nodes/pve1/storage/nas/content", Reply(596, "Connection timed out"))
        text = await ask(api, "storage_usage_detail", storage="nas")
    assert "backup 10" in text
    assert "note: storage nas was read on pve2 (pve1: not reachable (596))" in text


async def test_g29_a_restricted_or_disabled_storage_says_where_it_is() -> None:
    with served_cluster(nodes=2, guests=4) as api:
        assert "storage=fast; node=pve2" in (await ask(api, "storage_usage_detail", storage="fast")).splitlines()[0]
        with pytest.raises(InvalidArgument, match="storage fast is not available on pve1, only on pve2"):
            await ask(api, "storage_usage_detail", storage="fast", node="pve1")
        with pytest.raises(InvalidArgument, match="oldnas is disabled"):
            await ask(api, "storage_usage_detail", storage="oldnas")
        with pytest.raises(NotFound, match="no storage nosuch is visible; there are: fast, local"):
            await ask(api, "storage_usage_detail", storage="nosuch")
        assert not [path for path in api.paths if "pve1/storage/fast" in path or "oldnas" in path]


async def test_what_a_token_is_not_shown_of_a_storage_is_said() -> None:
    backups = "Proxmox leaves out backups that a token may not read; this one lacks Datastore.AllocateSpace on /storage/local and VM."
    disks = "Proxmox leaves out the disks of guests that a token may not configure; this one lacks VM.Config.Disk on /vms"
    with served_cluster(nodes=1, guests=4, rights=AUDITOR) as api:
        local = await ask(api, "storage_usage_detail", storage="local")
        assert backups in local
        assert disks not in local
        thin = await ask(api, "storage_usage_detail", storage="local-lvm")
        assert disks in thin
        assert "leaves out backups" not in thin
        assert "leaves out" not in await ask(api, "storage_usage_detail", storage="local", content_filter="iso")
    with served_cluster(nodes=1, guests=4) as api:
        assert "leaves out" not in await ask(api, "storage_usage_detail", storage="nas")
