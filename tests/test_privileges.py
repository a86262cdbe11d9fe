"""What a token may do: inherited, replaced further down, held in places only; and the lines that give it the rest."""

from __future__ import annotations

import shlex

import pytest

from proxmox_mcp.privileges import AUDITOR, NEEDS, Need, judge, unlock

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


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_every_need_names_a_path_and_privileges_that_exist(name: str) -> None:
    schema = pytest.importorskip("fakepve.shapes")
    for need in NEEDS[name]:
        assert need.path in ("/", "/vms", "/nodes", "/storage", "/sdn/zones")
        assert set(need.any_of) <= set(schema.PRIVILEGES)
