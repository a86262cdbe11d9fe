"""A plan in words: what a person is asked is what will run, whole."""

from __future__ import annotations

import hashlib
import shlex

import pytest

from proxmox_mcp import preview, secrets
from proxmox_mcp.inventory import called
from proxmox_mcp.plan import Answer, ApiCall, HostCommand, HostTarget, Plan, Risk
from proxmox_mcp.render import View, render
from proxmox_mcp.ssh import OwnScript
from proxmox_mcp.terminal import shell_plan

NODE = HostTarget(node="pve1")


def test_a_line_break_in_a_command_is_seen() -> None:
    plan = shell_plan(NODE, "echo harmless\nrm -rf /srv/x", timeout=60)
    for words in (preview.question(plan), "\n".join(preview.preview(plan)), plan.summary):
        assert "echo harmless⏎rm -rf /srv/x" in words
        assert "echo harmless rm" not in words


def test_the_longest_command_is_shown_to_its_end() -> None:
    line = f"echo {'x' * 16_000}; rm -rf /srv/x"
    plan = shell_plan(NODE, line, timeout=60)
    assert "; rm -rf /srv/x" in preview.question(plan)
    assert "; rm -rf /srv/x" in render(Answer("Dry run, nothing was changed.", lines=tuple(preview.preview(plan))), View())
    assert len(plan.summary) < 300


def test_many_steps_share_the_room() -> None:
    steps = tuple(HostCommand(NODE, ("zfs", "destroy", f"tank/a@{'s' * 3_000}{n}")) for n in range(50))
    shown = preview.steps(Plan("destroy", steps, Risk.DATA_LOSS, ("node pve1",)))
    assert shown[0].startswith("1. on node pve1: zfs destroy tank/a@sss")
    assert shown[0].endswith("…(+2034)")
    assert shown[-1] == "... and 10 more steps"
    assert sum(map(len, shown)) < 45_000


def test_a_shell_line_is_not_said_to_work() -> None:
    told = preview.preview(shell_plan(NODE, "make -C /root/thing install", timeout=60))
    assert "not checked: what the command itself does: nothing of it was tried" in told
    assert told[-1] == "Nothing found that stands in the way."


def test_several_lines_of_a_parameter_are_seen() -> None:
    step = ApiCall("POST", ("nodes", "pve1", "qemu", 101, "snapshot"), {"snapname": "s1", "description": "first\nsecond"})
    assert preview.step_line(step) == "POST /nodes/pve1/qemu/101/snapshot snapname=s1 description='first⏎second'"


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("echo hi \x1b]0;rm -rf /srv;\x07", r"\x1b]0;rm -rf /srv;\x07"),
        ("echo \x9b; rm -rf /srv m", r"\x9b; rm -rf /srv m"),
        ("rm -rf /s\u200brv", r"/s\u200brv"),
        ("rm -rf /sr\u115fv", r"/sr\u115fv"),
        ("rm -rf /srv\u202e/gol", r"/srv\u202e/gol"),
        ("rm -rf\u00a0/srv", r"rm -rf\xa0/srv"),
        ("ls\r\nrm -rf /srv", r"ls\x0d⏎rm -rf /srv"),
        ("rm -rf /srv\U000e0041", r"/srv\U000e0041"),
    ],
)
def test_nothing_of_a_command_is_invisible(line: str, seen: str) -> None:
    plan = shell_plan(NODE, line, timeout=60)
    for words in (preview.question(plan), "\n".join(preview.preview(plan)), plan.summary):
        assert seen in words


@pytest.mark.parametrize(
    "line",
    [
        'export DB_PASSWORD="$(rm -rf /srv)"',
        "echo -----BEGIN PRIVATE KEY-----\nrm -rf /srv",
        "rm -rf -- --token /srv",
        'password=\\" rm -rf /srv \\"',
        "echo \"it is password='$(rm -rf /srv)'\"",
        "token=`rm${IFS}-rf${IFS}/srv`",
    ],
)
def test_no_mask_hides_from_a_person_what_runs(line: str) -> None:
    plan = shell_plan(NODE, line, timeout=60)
    assert preview.steps(plan, whole=True)[0] in preview.question(plan)
    assert shlex.split(preview.steps(plan, whole=True)[0].partition(": ")[2])[-1] == line.replace("\n", "⏎")


def test_the_server_s_own_secrets_are_not_shown_to_anybody() -> None:
    secrets.register("own-secret-of-this-server")
    assert "own-secret" not in preview.question(shell_plan(NODE, "echo own-secret-of-this-server", timeout=60))


def test_a_person_is_told_what_could_not_be_checked() -> None:
    asked = preview.question(shell_plan(NODE, "make install", timeout=60))
    assert asked.endswith("\nNot checked: what the command itself does: nothing of it was tried\nCarry it out?")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("web", " (web)"),
        ("web.example-1.lan", " (web.example-1.lan)"),
        (None, ""),
        ("", ""),
        (5, ""),
        ("web) on pve1. Nothing is lost. (", ' ("web) on pve1. Nothing is lost. (")'),
        ('a"b', ' ("a\\"b")'),
        ("a\nCarry it out? yes", ' ("a Carry it out? yes")'),
        ("x" * 300, f' ("{"x" * 60}…(+240)")'),
    ],
)
def test_a_guest_s_name_never_passes_for_our_words(name: object, shown: str) -> None:
    assert called(name) == shown


def test_a_preview_and_a_question_word_for_word() -> None:
    steps = (
        ApiCall(
            "PUT", ("nodes", "pve1", "qemu", 101, "config"), {"onboot": True, "tags": ["a", "b c"], "cipassword": "geheim", "memory": None}
        ),
        HostCommand(HostTarget(node="pve1", vmid=205), ("tee", "/tmp/x y"), stdin=b"abc"),
        HostCommand(HostTarget(alias="web"), ("id",)),
        HostCommand(HostTarget(), ("id",)),
    )
    plan = Plan(
        "set two\u202e things",
        steps,
        Risk.DATA_LOSS,
        ("guest 101",),
        undo="set\nthem back",
        notes=("first\x1b",),
        otherwise=("second",),
        doubts=("whether it\nholds",),
    )
    lines = [
        "1. PUT /nodes/pve1/qemu/101/config onboot=1 tags='a,b c' cipassword='***'",
        "2. on container 205 of node pve1: tee '/tmp/x y' < 3 bytes",
        "3. on guest web: id",
        "4. on the SSH host: id",
    ]
    shown = preview.preview(plan)
    assert shown[:6] == ["set two things", "Steps:", *lines]
    assert shown[6:] == [
        "Risk: data loss; needs confirm=true and i_understand_data_loss=true",
        "Undo: set them back",
        "note: first",
        "note: second",
        "not checked: whether it holds",
        "Nothing found that stands in the way.",
    ]
    assert preview.question(plan).splitlines() == [
        "set two things",
        "This can destroy data.",
        *lines,
        "Not checked: whether it holds",
        "Carry it out?",
    ]
    assert preview.preview(Plan("x", steps[2:3], Risk.CHANGE, (), obstacles=("a\nb", "c")))[-3:] == ["Stands in the way:", "- a b", "- c"]
    assert preview.preview(Plan("x", steps[2:3], Risk.CHANGE, ()))[-2:] == ["Risk: change; needs confirm=true", "Would work."]
    assert preview.question(Plan("x", steps[2:3], Risk.CHANGE, ())).splitlines()[1] == "This changes your cluster."


@pytest.mark.parametrize(("where", "most"), [("summary", 2_000), ("undo", 500), ("notes", 2_000), ("doubts", 1_000), ("obstacles", 1_000)])
def test_no_part_of_a_preview_is_longer_than_a_reader_bears(where: str, most: int) -> None:
    words = "y" * 5_000
    given = {where: words if where in ("summary", "undo") else (words,)}
    plan = Plan(**{"summary": "x", "steps": (ApiCall("DELETE", ("storage", "a")),), "risk": Risk.CHANGE, "targets": (), **given})  # type: ignore[arg-type]
    (line,) = [line for line in preview.preview(plan) if "yyy" in line]
    assert line.count("y") <= most < line.count("y") + 20


def test_a_plan_without_steps_needs_nothing_and_undoes_nothing() -> None:
    plan = Plan("no snapshot may go", (), Risk.DATA_LOSS, (), undo="none", notes=("young: a@b",), doubts=("whether a backup runs",))
    assert preview.preview(plan) == ["Nothing to do: no snapshot may go", "note: young: a@b", "not checked: whether a backup runs"]
    assert preview.preview(Plan("x", (), Risk.CHANGE, (), obstacles=("why",)))[-2:] == ["Stands in the way:", "- why"]


def test_the_record_of_a_step_is_whole_and_masked() -> None:
    step = ApiCall("POST", ("nodes", "pve1", "lxc"), {"vmid": 300, "password": "geheim", "hostname": None})
    assert preview.record(step) == {"method": "POST", "path": "/nodes/pve1/lxc", "params": {"vmid": 300, "password": "***"}}
    command = HostCommand(HostTarget(node="pve1"), ("mysql", "--password=geheim", "-e", "x"))
    assert preview.record(command) == {"target": "node pve1", "argv": ["mysql", "--password=***", "-e", "x"]}


def test_our_own_script_is_named_by_its_digest_for_everyone() -> None:
    script = OwnScript("echo one\necho two")
    step = HostCommand(NODE, ("sh", "-c", script, "name", "--password=geheim22"))
    digest = hashlib.sha256(b"echo one\necho two").hexdigest()
    mark = f"[own script, sha256 {digest}]"
    assert preview.step_line(step) == f"on node pve1: sh -c '{mark}' name '--password=***'"
    assert preview.step_line(step, whole=True) == f"on node pve1: sh -c '{mark}' name --password=geheim22"
    assert preview.record(step)["argv"] == ["sh", "-c", mark, "name", "--password=***"]


@pytest.mark.parametrize("count", [39, 40, 41])
def test_steps_beyond_the_fortieth_are_counted(count: int) -> None:
    shown = preview.steps(Plan("do it", (HostCommand(NODE, ("true",)),) * count, Risk.CHANGE, ()))
    assert len(shown) == min(count, 40) + (count > 40)
    assert (shown[-1] == "... and 1 more steps") is (count > 40)


def test_a_question_is_no_longer_than_a_reader_bears() -> None:
    asked = preview.question(Plan("s" * 3_000, (), Risk.CHANGE, (), doubts=("d" * 3_000,)))
    summary, _, doubt, _ = asked.split("\n")
    assert summary == f"{'s' * 2_000}…(+1000)"
    assert doubt == f"Not checked: {'d' * 1_000}…(+2000)"


def test_a_preview_masks_what_a_person_sees_whole() -> None:
    plan = Plan("do it", (HostCommand(NODE, ("curl", "--password=geheim22")),), Risk.CHANGE, ())
    assert preview.steps(plan) == ["1. on node pve1: curl '--password=***'"]
    assert preview.steps(plan, whole=True) == ["1. on node pve1: curl --password=geheim22"]


def test_a_path_reads_as_people_write_it() -> None:
    step = ApiCall("POST", ("access", "users", "root@pam!mcp:x", "a b"))
    assert preview.step_line(step) == "POST /access/users/root@pam!mcp:x/a%20b"
