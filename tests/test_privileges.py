"""What a token may do: inherited, replaced further down, held in places only; and the lines that give it the rest."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import registry
from proxmox_mcp.privileges import AUDITOR, BACKUP_LISTING, NEEDS, SSH_GUEST, SSH_NODE, Need, judge, unlock

POWER = Need("/vms", ("VM.PowerMgmt",))
AUDIT = Need("/vms", ("VM.Audit",))


def held(*privileges: str, below: int = 1) -> dict[str, int]:
    return dict.fromkeys(privileges, below)


def test_a_privilege_on_the_root_is_passed_down() -> None:
    assert judge([POWER, AUDIT], {"/": held("VM.Audit", "VM.PowerMgmt")}).state == "works"


def test_a_privilege_that_is_not_passed_down_does_not_count_below() -> None:
    assert judge([AUDIT], {"/": held("VM.Audit", below=0)}).state == "no"
    assert judge([Need("/", ("Sys.Audit",))], {"/": held("Sys.Audit", below=0)}).state == "works"


def test_an_entry_further_down_replaces_what_comes_from_above() -> None:
    verdict = judge([POWER], {"/": held("VM.Audit", "VM.PowerMgmt"), "/vms": held("VM.Audit")})
    assert verdict.state == "no"
    assert verdict.lacking == (POWER,)


def test_a_privilege_on_some_guests_makes_a_tool_work_there() -> None:
    verdict = judge([AUDIT, POWER], {"/": held("VM.Audit"), "/vms/101": held("VM.PowerMgmt"), "/vms/102": held("VM.PowerMgmt")})
    assert (verdict.state, verdict.only, verdict.lacking) == ("partly", ("/vms/101", "/vms/102"), (POWER,))


def test_one_privilege_of_several_is_enough() -> None:
    need = Need("/storage", ("Datastore.Audit", "Datastore.AllocateSpace"))
    assert judge([need], {"/": held("Datastore.AllocateSpace")}).state == "works"


def test_a_need_for_a_part_leaves_the_rest_of_the_tool() -> None:
    verdict = judge([AUDIT, Need("/vms", ("VM.Config.CPU",), part="cores")], {"/": held("VM.Audit")})
    assert (verdict.state, verdict.only) == ("partly", ())


def test_a_token_without_anything_can_do_nothing() -> None:
    assert judge([AUDIT], {}).state == "no"


def test_the_auditor_role_reads_all_but_backups() -> None:
    permissions = {"/": held(*AUDITOR)}
    assert judge(NEEDS["proxmox_list_vms"], permissions).state == "works"
    assert judge(NEEDS["proxmox_list_zfs"], permissions).state == "works"
    assert judge(NEEDS["proxmox_health_overview"], permissions).state == "partly"
    assert judge(NEEDS["proxmox_list_backups"], permissions).state == "no"
    assert judge(NEEDS["proxmox_vm_power"], permissions).state == "no"


def test_the_lines_go_to_the_root_where_a_role_only_adds() -> None:
    lines = unlock([POWER, Need("/storage", ("Datastore.AllocateSpace",))], {"/": held("VM.Audit")}, "mcp@pve", "assistant")
    assert [shlex.split(line) for line in lines] == [
        ["pveum", "role", "add", "McpExtra", "--privs", "Datastore.AllocateSpace,VM.PowerMgmt"],
        ["pveum", "acl", "modify", "/", "--users", "mcp@pve", "--tokens", "mcp@pve!assistant", "--roles", "McpExtra"],
    ]


def test_where_an_entry_shadows_the_root_the_lines_go_to_its_path_and_leave_the_user_alone() -> None:
    lines = unlock([POWER], {"/": held("VM.Audit"), "/vms": held("VM.Audit", "VM.Console")}, "mcp@pve", "assistant")
    commands = [line for line in lines if not line.startswith("#")]
    assert shlex.split(commands[1]) == ["pveum", "acl", "modify", "/vms", "--tokens", "mcp@pve!assistant", "--roles", "McpExtra-vms"]
    # an entry for the user on /vms would replace what it inherits there
    assert not any("--users" in line for line in commands)
    assert any("pveum user permissions mcp@pve --path /vms" in line for line in lines)


def test_root_needs_no_line_for_the_user() -> None:
    assert not any("--users" in line for line in unlock([POWER], {}, "root@pam", "mcp"))


def test_the_table_has_a_row_for_every_tool_and_no_other() -> None:
    assert set(NEEDS) == {tool.name for tool in registry.all_tools()}
    assert set(NEEDS) >= SSH_NODE | SSH_GUEST


def test_a_tool_with_neither_need_nor_ssh_asks_neither() -> None:
    assert {name for name, needs in NEEDS.items() if not needs} - SSH_NODE - SSH_GUEST == {"proxmox_audit_verify"}


def test_no_need_is_a_privilege_that_one_version_lacks() -> None:
    """Proxmox VE 9 dropped VM.Monitor and brought the others: a role with any of them is refused by one of the two."""
    named = {privilege for needs in NEEDS.values() for need in needs for privilege in need.any_of} | set(AUDITOR) | set(BACKUP_LISTING)
    assert {name for name in named if name in ("VM.Monitor", "VM.Replicate") or name.startswith("VM.GuestAgent")} == set()


def test_each_declared_privilege_of_the_api_is_in_the_row_of_the_tool_that_calls_it() -> None:
    """What the schema of the API declares for the call that makes each tool what it is."""
    schema = Path(__file__).resolve().parents[2] / "shared" / "pve" / "pve-api.json"
    if not schema.exists():
        pytest.skip("the schema of the API is not here")
    paths = json.loads(schema.read_text())["paths"]
    for name, (method, path) in CALLS.items():
        held = {privilege for need in NEEDS[name] for privilege in need.any_of}
        declared = set(_privileges(paths[path][method]["permissions"].get("check")))
        assert declared, f"{method} {path} declares none: it says nothing about {name}"
        assert declared & held, f"{name}: {method} {path} wants one of {sorted(declared)}"


CALLS = {
    "proxmox_get_node_status": ("GET", "/nodes/{node}/status"),
    "proxmox_get_vm_status": ("GET", "/nodes/{node}/qemu/{vmid}/status/current"),
    "proxmox_vm_power": ("POST", "/nodes/{node}/qemu/{vmid}/status/stop"),
    "proxmox_resize_vm": ("PUT", "/nodes/{node}/lxc/{vmid}/config"),
    "proxmox_clone_vm": ("POST", "/nodes/{node}/qemu/{vmid}/clone"),
    "proxmox_move_disk": ("POST", "/nodes/{node}/lxc/{vmid}/move_volume"),
    "proxmox_list_snapshots": ("GET", "/nodes/{node}/qemu/{vmid}/snapshot"),
    "proxmox_snapshot": ("DELETE", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}"),
    "proxmox_list_backups": ("GET", "/nodes/{node}/storage/{storage}/content"),
    "proxmox_list_isos": ("GET", "/nodes/{node}/storage/{storage}/content"),
    "proxmox_storage_usage_detail": ("GET", "/nodes/{node}/storage/{storage}/status"),
    "proxmox_list_backup_jobs": ("GET", "/cluster/backup"),
    "proxmox_storage_config": ("POST", "/storage"),
    "proxmox_list_disks": ("GET", "/nodes/{node}/disks/list"),
    "proxmox_get_disk_smart": ("GET", "/nodes/{node}/disks/smart"),
    "proxmox_list_lvm": ("GET", "/nodes/{node}/disks/lvm"),
    "proxmox_list_lvm_thin": ("GET", "/nodes/{node}/disks/lvmthin"),
    "proxmox_list_zfs": ("GET", "/nodes/{node}/disks/zfs"),
    "proxmox_get_zfs_pool": ("GET", "/nodes/{node}/disks/zfs/{name}"),
    "proxmox_disk_prepare": ("POST", "/nodes/{node}/disks/initgpt"),
    "proxmox_lvm_manage": ("POST", "/nodes/{node}/disks/lvm"),
    "proxmox_zfs_pool_manage": ("DELETE", "/nodes/{node}/disks/zfs/{name}"),
}


def _privileges(check: Any) -> list[str]:
    """Every privilege that a permission check of the schema names."""
    if not isinstance(check, list):
        return []
    if check[:1] == ["perm"]:
        return list(check[2])
    return [privilege for part in check[1:] for privilege in _privileges(part)]


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_every_need_names_a_path_and_privileges_that_exist(name: str) -> None:
    schema = pytest.importorskip("fakepve.shapes")
    for need in NEEDS[name]:
        assert need.path in ("/", "/vms", "/nodes", "/storage", "/sdn/zones")
        assert set(need.any_of) <= set(schema.PRIVILEGES)
