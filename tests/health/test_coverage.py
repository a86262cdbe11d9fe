"""Who has a recent good backup: missing is said only where every place was read where one could be."""

from __future__ import annotations

from typing import Any

import pytest

from proxmox_mcp.health.coverage import cover
from proxmox_mcp.health.sources import DAY, Seen
from proxmox_mcp.inventory import Guest, Permissions, StorageRef
from proxmox_mcp.storages.volumes import Place

NOW = 1_800_000_000.0
ALL = Permissions({"/": {"Datastore.Allocate": 1}})
NAS, LOCAL = Place("nas", None), Place("local", "pve1")


def guest(vmid: int, **row: Any) -> Guest:
    return Guest(vmid, row.pop("node", "pve1"), "qemu", {"status": "running", **row})


def backup(vmid: int, days: float, **more: Any) -> dict[str, Any]:
    return {"vmid": vmid, "ctime": NOW - days * DAY, **more}


def seen(*guests: Guest, **more: Any) -> Seen:
    refs = [
        StorageRef.of({"storage": "nas", "type": "nfs", "content": "backup"}),
        StorageRef.of({"storage": "local", "type": "dir", "content": "backup"}),
    ]
    return Seen(NOW, **{"guests": list(guests), "storages": refs, "permissions": ALL, "jobs": [], "backups": {NAS: [], LOCAL: []}, **more})


def found(what: Seen) -> tuple[int, list[int], list[int]]:
    result = cover(what)
    return result.recent, [each.guest.vmid for each in result.missing], [each.guest.vmid for each in result.unknown]


def job(**more: Any) -> dict[str, Any]:
    return {"id": "a", "storage": "nas", "schedule": "21:00", "all": 1, **more}


def test_eight_days_are_recent_and_more_are_not() -> None:
    what = seen(guest(100), guest(101), guest(102), backups={NAS: [backup(100, 7.9), backup(101, 8.1), backup(101, 30)], LOCAL: []})
    assert found(what) == (1, [101, 102], [])
    assert [each.newest for each in cover(what).missing] == [pytest.approx(8.1 * DAY), None]


@pytest.mark.parametrize(("interval", "days", "recent"), [(30 * DAY, 59, 1), (30 * DAY, 61, 0), (DAY, 7.9, 1), (DAY, 8.1, 0), (0, 9, 0)])
def test_a_job_that_runs_seldom_gives_twice_its_interval(interval: float, days: float, recent: int) -> None:
    what = seen(guest(100), jobs=[job(schedule="monthly")], intervals={"monthly": interval}, backups={NAS: [backup(100, days)], LOCAL: []})
    assert cover(what).recent == recent


def test_a_backup_that_did_not_verify_is_no_good_one() -> None:
    bad = backup(100, 1, verification={"state": "failed"})
    assert found(seen(guest(100), backups={NAS: [bad], LOCAL: []})) == (0, [100], [])
    assert found(seen(guest(100), backups={NAS: [bad, backup(100, 2, verification={"state": "ok"})], LOCAL: []})) == (1, [], [])


def test_a_backup_that_its_server_cannot_measure_is_not_finished_or_broken() -> None:
    odd = {"format": "pbs-vm", "size": 1}
    assert found(seen(guest(100), backups={NAS: [backup(100, 1, **odd)], LOCAL: []})) == (0, [100], [])
    assert found(seen(guest(100), backups={NAS: [backup(100, 1, **odd, verification={"state": "ok"})], LOCAL: []})) == (1, [], [])
    assert found(seen(guest(100), backups={NAS: [backup(100, 1, format="pbs-vm", size=2**30)], LOCAL: []})) == (1, [], [])
    assert found(seen(guest(100), backups={NAS: [backup(100, 1, format="vma.zst", size=1)], LOCAL: []})) == (1, [], [])


def test_templates_are_left_out() -> None:
    result = cover(seen(guest(100, template=1), guest(101)))
    assert (result.templates, [each.guest.vmid for each in result.missing]) == (1, [101])


def test_where_a_storage_could_not_be_listed_it_is_unknown_not_missing() -> None:
    what = seen(guest(100), guest(101), backups={LOCAL: [backup(101, 1)]}, unread={NAS})
    assert found(what) == (1, [], [100])
    # its job writes to nas alone, and nas was read: what nobody else could read does not matter
    assert found(seen(guest(100), jobs=[job()], backups={NAS: []}, unread={LOCAL})) == (0, [100], [])
    assert found(seen(guest(100), jobs=[job()], backups={LOCAL: []}, unread={NAS})) == (0, [], [100])
    # a job to a storage that is apart on each node: the guest's own node counts
    assert found(seen(guest(100, node="pve2"), jobs=[job(storage="local")], backups={NAS: [], LOCAL: []})) == (0, [], [100])


@pytest.mark.parametrize(
    ("permissions", "known"),
    [
        ({"/": {"Datastore.Allocate": 1}}, True),
        ({"/": {"Datastore.AllocateSpace": 1, "VM.Backup": 1}}, True),
        ({"/": {"Datastore.Audit": 1}}, False),
        ({"/": {"Datastore.AllocateSpace": 1}, "/vms/101": {"VM.Backup": 1}}, False),
        ({"/storage/nas": {"Datastore.Allocate": 1}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_what_a_token_may_not_see_is_unknown_too(permissions: Any, known: bool) -> None:
    assert found(seen(guest(100), permissions=Permissions(permissions))) == ((0, [100], []) if known else (0, [], [100]))


def test_a_filtered_list_of_storages_proves_nothing() -> None:
    what = seen(guest(100), storages=[], backups={}, permissions=Permissions({"/vms/100": {"VM.Audit": 1, "VM.Backup": 1}}))
    assert found(what) == (0, [], [100])
    assert found(seen(guest(100), storages=None, backups={})) == (0, [], [100])
    assert found(seen(guest(100), storages=[], backups={})) == (0, [100], [])  # it sees all there is, and no storage is for backups


@pytest.mark.parametrize(
    ("jobs", "without"),
    [
        ([], [100, 101]),
        ([job()], []),
        ([job(enabled=0)], [100, 101]),
        ([job(enabled=1)], []),
        ([job(exclude="100;102")], [100]),
        ([job(all=0, vmid="101,105")], [100]),
        ([job(all=0, vmid="101"), job(all=0, vmid="100")], []),
        ([job(node="pve2")], [100, 101]),
        ([job(all=0, pool="prod")], [101]),
    ],
)
def test_guests_in_no_job_are_named(jobs: list[dict[str, Any]], without: list[int]) -> None:
    what = seen(guest(100, pool="prod"), guest(101, pool="test"), jobs=jobs)
    assert [each.vmid for each in cover(what).without_job] == without


def test_where_pools_are_hidden_the_list_of_proxmox_decides() -> None:
    jobs = [job(all=0, pool="prod")]
    assert [each.vmid for each in cover(seen(guest(100), guest(101), jobs=jobs, uncovered=frozenset({101}))).without_job] == [101]
    assert not cover(seen(guest(100), jobs=jobs, uncovered=None)).without_job
    assert not cover(seen(guest(100), jobs=None)).without_job
