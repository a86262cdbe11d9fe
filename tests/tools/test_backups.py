"""Backups, images and jobs: every storage, each volume once, empty told apart from hidden."""

from __future__ import annotations

from typing import Any

import pytest

from proxmox_mcp.errors import InvalidArgument, RequestTimeout
from tests.cluster import AUDITOR, NO_RIGHTS, served_cluster
from tests.served_api import Reply, ServedApi
from tests.tools.asking import ask, ask_json, every_page

pytestmark = pytest.mark.anyio

G32: list[dict[str, Any]] = [
    {
        "volid": "pbs:backup/vm/101/2026-03-01T01:00:00Z",
        "format": "pbs-vm",
        "subtype": "qemu",
        "vmid": 101,
        "ctime": 1772326800,
        "size": 1,
        "content": "backup",
        "protected": 1,
        "verification": {"state": "ok", "upid": "UPID:..."},
    },
    {
        "volid": "local:backup/vzdump-qemu-101-2026_02_28-03_00_00.vma.zst",
        "format": "vma.zst",
        "subtype": "qemu",
        "vmid": 101,
        "ctime": 1772247600,
        "size": 3221225472,
        "content": "backup",
    },
]
OTHER = {
    "volid": "pbs:backup/ct/205/2026-03-01T02:00:00Z",
    "format": "pbs-ct",
    "vmid": 205,
    "ctime": 1772330400,
    "size": 9,
    "content": "backup",
}


def serve(api: ServedApi) -> None:
    api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    api.on(
        "GET",
        "/storage",
        [{"storage": "pbs", "type": "pbs", "content": "backup"}, {"storage": "local", "type": "dir", "content": "backup"}],
    )
    # neither honours the vmid filter
    api.on("GET", "/nodes/pve1/storage/pbs/content", [G32[0], OTHER])
    api.on("GET", "/nodes/pve1/storage/local/content", [G32[1]])


async def test_g32_backups_of_a_backup_server_belong_to_their_guest(served: ServedApi) -> None:
    serve(served)
    text = await ask(served, "list_backups", vmid=101)
    assert text.splitlines() == [
        "2 backups; vmid=101; type=qemu",
        "vmid created size volid node protected verified",
        "101 2026-03-01 01:00Z - pbs:backup/vm/101/2026-03-01T01:00:00Z shared yes ok",
        "101 2026-02-28 03:00Z 3.0G local:backup/vzdump-qemu-101-2026_02_28-03_00_00.vma.zst pve1 - -",
    ]
    rows = (await ask_json(served, "list_backups"))["items"]
    assert [(row["vmid"], row["type"]) for row in rows] == [(205, "lxc"), (101, "qemu"), (101, "qemu")]
    assert [row["size"] for row in rows] == [9, None, 3221225472]


async def test_without_storage_every_one_with_backups_is_read_once() -> None:
    with served_cluster(nodes=3, guests=12) as api:
        await ask(api, "list_backups", limit=5)
        assert sorted(path for path in api.paths if path.endswith("/content")) == [
            "GET /nodes/pve1/storage/local/content", "GET /nodes/pve1/storage/nas/content", "GET /nodes/pve1/storage/pbs/content",
            "GET /nodes/pve2/storage/local/content", "GET /nodes/pve3/storage/local/content",
        ]  # fmt: skip
        rows = await every_page(api, "list_backups", limit=5)
        assert len({(row["volid"], row["node"]) for row in rows}) == len(rows) == 25
        assert [row["ctime"] for row in rows] == sorted((row["ctime"] for row in rows), reverse=True)
        assert {row["storage"] for row in rows} == {"nas", "pbs"}
        one = await ask(api, "list_backups", storage="pbs")
        assert one.startswith("3 backups; storage=pbs;")
        assert "note: not read, because disabled: oldnas" in await ask(api, "list_backups")


async def test_g28_an_image_on_a_shared_storage_is_one_row() -> None:
    with served_cluster(nodes=2, guests=2) as api:
        text = await ask(api, "list_isos")
        assert text.splitlines()[1:] == [
            "volid size node",
            "local:iso/virtio-win-0.1.285.iso 720M pve1",
            "local:iso/virtio-win-0.1.285.iso 720M pve2",
            "nas:iso/debian-13.1.0-amd64-netinst.iso 668M shared",
        ]
        one = await ask_json(api, "list_isos", node="pve2", storage="nas")
        assert [row["volid"] for row in one["items"]] == ["nas:iso/debian-13.1.0-amd64-netinst.iso"]
        assert "GET /nodes/pve2/storage/nas/content" in api.paths
        templates = await ask_json(api, "list_isos", content="vztmpl", node="pve1")
        assert [row["volid"] for row in templates["items"]] == ["local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"]


async def test_g29_a_storage_that_does_not_hold_backups_or_is_elsewhere() -> None:
    with served_cluster(nodes=2, guests=4) as api:
        with pytest.raises(
            InvalidArgument, match="fast is set up for images, rootdir, not for backup; storages for backup: local, nas, oldnas, pbs"
        ):
            await ask(api, "list_backups", storage="fast")
        with pytest.raises(InvalidArgument, match="oldnas is disabled"):
            await ask(api, "list_backups", storage="oldnas")
        api.world.storages["nas"]["nodes"] = "pve2"
        with pytest.raises(InvalidArgument, match="storage nas is not available on pve1, only on pve2"):
            await ask(api, "list_backups", storage="nas", node="pve1")
        assert (await ask(api, "list_backups", storage="nas")).startswith("8 backups; storage=nas")
        assert "GET /nodes/pve1/storage/nas/content" not in api.paths


async def test_g36_no_visible_backups_name_exactly_the_missing_privileges(served: ServedApi) -> None:
    served.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    served.on("GET", "/storage", [{"storage": "nas", "type": "nfs", "content": "backup"}])
    served.on("GET", "/nodes/pve1/storage/nas/content", [])
    served.on("GET", "/access/permissions", {"/storage/nas": {"Datastore.Audit": 1}})
    text = await ask(served, "list_backups")
    assert text.startswith("0 backups\n")
    assert "0 visible, which does not mean that there are none" in text
    assert "lacks Datastore.AllocateSpace on /storage/nas and VM.Backup on /vms" in text
    served.on("GET", "/access/permissions", {"/": {"Datastore.AllocateSpace": 1}})
    assert (await ask(served, "list_backups")).endswith("lacks VM.Backup on /vms")
    served.on("GET", "/access/permissions", {"/": {"Datastore.Allocate": 1}})
    assert await ask(served, "list_backups") == "0 backups\nnote: read: nas"


async def test_a_token_that_may_see_some_backups_is_told_that_there_may_be_more(served: ServedApi) -> None:
    served.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    served.on("GET", "/storage", [{"storage": "nas", "type": "nfs", "content": "backup"}])
    served.on("GET", "/nodes/pve1/storage/nas/content", lambda request: [G32[1]] if request.params.get("vmid") != "102" else [])
    served.on("GET", "/access/permissions", {"/storage": {"Datastore.AllocateSpace": 1}, "/vms/101": {"VM.Backup": 1}})
    text = await ask(served, "list_backups")
    assert text.startswith("1 backup\n")
    assert text.endswith("note: there may be more: Proxmox leaves out backups that a token may not read; this one lacks VM.Backup on /vms")
    assert "note" not in await ask(served, "list_backups", vmid=101)
    assert (await ask(served, "list_backups", vmid=102)).endswith("this one lacks VM.Backup on /vms/102")
    served.on("GET", "/nodes/pve1/storage/nas/content", [])
    assert (await ask(served, "list_backups", vmid=101)).endswith("note: read: nas")


async def test_an_auditor_is_told_and_a_token_without_rights_too() -> None:
    with served_cluster(rights=AUDITOR) as api:
        assert "lacks Datastore.AllocateSpace on /storage/local, /storage/nas, /storage/pbs and VM.Backup on /vms" in await ask(
            api, "list_backups"
        )
    with served_cluster(rights=NO_RIGHTS) as api:
        assert "0 storages are visible to this token" in await ask(api, "list_backups")
        assert "0 storages are visible to this token" in await ask(api, "list_isos")


async def test_what_cannot_be_read_is_a_gap_and_the_rest_is_there() -> None:
    with served_cluster(nodes=2, guests=12, hanging_storage="nas", offline={"pve2"}) as api:
        text = await ask(api, "list_backups", timeout=0.5)
        assert text.startswith("3 backups;")
        assert "note: storage nas: Request timed out after 0.5 s" in text
        assert "note: pve2: not reachable (offline)" in text
        with pytest.raises(RequestTimeout):
            await ask(api, "list_backups", storage="nas", timeout=0.5)


async def test_two_storages_of_the_same_name_on_two_nodes_do_not_swallow_each_other() -> None:
    with served_cluster(nodes=2, guests=2) as api:
        same = {**G32[1], "volid": "local:backup/vzdump-qemu-100-2026_02_28-03_00_00.vma.zst", "vmid": 100}
        api.world.volumes["local", "pve1"].append(same)
        api.world.volumes["local", "pve2"].append(same)
        rows = await every_page(api, "list_backups", storage="local", limit=1)
    assert [row["node"] for row in rows] == ["pve1", "pve2"]


# --- jobs

G35: list[dict[str, Any]] = [
    {
        "id": "backup-a1",
        "type": "vzdump",
        "schedule": "21:00",
        "storage": "nas",
        "all": 1,
        "exclude": "900,901",
        "enabled": 1,
        "prune-backups": {"keep-daily": "7"},
        "next-run": 1772398800,
        "mode": "snapshot",
    },
    {"id": "backup-b2", "type": "vzdump", "schedule": "sun 03:00", "storage": "nas", "pool": "prod", "enabled": 0},
    {"id": "backup-c3", "type": "vzdump", "schedule": "02:30", "storage": "nas", "vmid": "101,102"},
]


async def test_g35_jobs_by_list_all_and_pool(served: ServedApi) -> None:
    served.on("GET", "/cluster/backup", G35)
    served.on("GET", "/cluster/backup-info/not-backed-up", [{"vmid": 900, "type": "qemu", "name": "scratch"}])
    text = await ask(served, "list_backup_jobs")
    assert text.splitlines() == [
        "3 backup jobs; storage=nas",
        "id guests schedule next-run enabled mode retention",
        'backup-a1 "all except 900, 901" 21:00 2026-03-01 21:00Z yes snapshot keep-daily=7',
        'backup-b2 "pool prod (disabled)" "sun 03:00" - no - "storage default"',
        'backup-c3 "101, 102" 02:30 - yes - "storage default"',
        "note: in no job: 900 scratch",
    ]


async def test_jobs_are_shown_although_the_uncovered_guests_are_not_to_be_had(served: ServedApi) -> None:
    served.on("GET", "/cluster/backup", [])
    served.on("GET", "/cluster/backup-info/not-backed-up", Reply(500, "got timeout"))
    text = await ask(served, "list_backup_jobs")
    assert text.startswith("0 backup jobs\nnote: which guests are in no job is not known: ")
