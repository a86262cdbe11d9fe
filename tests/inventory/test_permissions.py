from __future__ import annotations

import pytest

from proxmox_mcp.inventory import Inventory, Permissions
from tests.cluster import ADMIN, AUDITOR, NO_RIGHTS, ONE_GUEST, served_cluster
from tests.served_api import Reply, ServedApi, client

# a role on / that is not passed down, one on a guest, one on all storages and another on one of them
MIXED = {
    "/": {"Sys.Audit": 0},
    "/vms/101": {"VM.Audit": 1},
    "/storage": {"Datastore.Audit": 1},
    "/storage/nas": {"Datastore.AllocateSpace": 1},
}


@pytest.mark.parametrize(
    ("path", "privilege", "held"),
    [
        ("/", "Sys.Audit", True),
        ("/nodes/pve1", "Sys.Audit", False),
        ("/vms/101", "VM.Audit", True),
        ("/vms/102", "VM.Audit", False),
        ("/storage/local", "Datastore.Audit", True),
        ("/storage/nas", "Datastore.Audit", False),  # the entry of the path itself replaces what comes from above
        ("/storage/nas", "Datastore.AllocateSpace", True),
    ],
)
def test_a_privilege_is_held_on_its_path_or_passed_down(path: str, privilege: str, held: bool) -> None:
    assert Permissions(MIXED).has(path, privilege) is held


def test_what_could_not_be_read_is_unknown() -> None:
    unknown = Permissions(None)
    assert unknown.has("/vms", "VM.Audit") is None
    assert "not known" in unknown.explains_empty("guests", "/vms", "VM.Audit")
    assert "not known" in unknown.explains_no_backups("nas")


def test_g23_an_empty_permission_list_explains_an_empty_list() -> None:
    told = Permissions(NO_RIGHTS).explains_empty("guests", "/vms", "VM.Audit")
    assert told.startswith("0 guests are visible to this token, and its permission list is empty")
    assert "Datacenter → Permissions → API Token Permission" in told


def test_g23_a_narrow_token_sees_some() -> None:
    told = Permissions(ONE_GUEST).explains_empty("guests", "/vms", "VM.Audit")
    assert told == "this token sees only some guests or none: it does not hold VM.Audit on /vms, only on /vms/101"


def test_one_of_several_privileges_is_enough() -> None:
    either = ("Datastore.Audit", "Datastore.AllocateSpace")
    assert Permissions({"/storage": {"Datastore.AllocateSpace": 1}}).explains_empty("storages", "/storage", *either) == ""
    told = Permissions({"/storage": {"VM.Audit": 1}}).explains_empty("storages", "/storage", *either)
    assert told.endswith("it does not hold Datastore.Audit or Datastore.AllocateSpace on /storage")


@pytest.mark.parametrize("rights", [ADMIN, AUDITOR])
def test_g23_with_the_privilege_an_empty_list_is_empty(rights: dict[str, dict[str, int]]) -> None:
    assert Permissions(rights).explains_empty("guests", "/vms", "VM.Audit") == ""


def test_g36_the_privileges_that_hide_backups_are_named() -> None:
    assert Permissions(ADMIN).explains_no_backups("nas") == ""
    told = Permissions(AUDITOR).explains_no_backups("nas")
    assert told.endswith("this one lacks Datastore.AllocateSpace on /storage/nas and VM.Backup on /vms")
    half = {"/storage": {"Datastore.AllocateSpace": 1}, "/vms": {"VM.Audit": 1}}
    assert Permissions(half).explains_no_backups("nas").endswith("lacks VM.Backup on /vms")
    assert Permissions({"/storage/nas": {"Datastore.Allocate": 1}}).explains_no_backups("nas") == ""


@pytest.mark.anyio
async def test_permissions_are_read_once_a_call() -> None:
    with served_cluster(1, 1, rights=ONE_GUEST) as api:
        async with client(api) as http:
            inventory = Inventory(http)
            assert (await inventory.permissions()).entries == ONE_GUEST
            assert await inventory.permissions() is await inventory.permissions()
    assert api.paths == ["GET /access/permissions"]


@pytest.mark.anyio
async def test_permissions_that_cannot_be_read_are_unknown(served: ServedApi) -> None:
    served.on("GET", "/access/permissions", Reply(500, "got no worker"))
    async with client(served) as http:
        assert (await Inventory(http).permissions()).entries is None
