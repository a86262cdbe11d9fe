"""Shells and files over SSH, through the pipeline and a real sshd: on the right machine or not at all, recorded, nothing lost."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from proxmox_mcp import host_ssh, pipeline, preview
from proxmox_mcp.app import App
from proxmox_mcp.audit import AuditLog
from proxmox_mcp.errors import AuditError, ConfigError, HostKeyUnknown, InvalidArgument, ProxmoxMcpError, Refused
from proxmox_mcp.read_commands.far_side import SCRIPT
from proxmox_mcp.registry import all_tools
from proxmox_mcp.ssh import OwnScript
from proxmox_mcp.tools.containers import SERVICE
from tests.piped import FakePerson, records
from tests.served_api import ServedApi, settings
from tests.sshd import Sshd, needs_sshd, start_sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
HERE = platform.node().partition(".")[0]
GUESTS = [
    {"vmid": 101, "type": "qemu", "node": HERE, "status": "running", "name": "web"},
    {"vmid": 205, "type": "lxc", "node": HERE, "status": "running", "name": "proxy"},
    {"vmid": 206, "type": "lxc", "node": HERE, "status": "stopped", "name": "old"},
    {"vmid": 207, "type": "lxc", "node": "pve2", "status": "running", "name": "far"},
]
FIRST_LINE = Path("/etc/os-release").read_text().splitlines()[0]
# what `pct exec VMID -- program ...` is here: the program itself, its arguments untouched
PCT = '#!/bin/sh\n[ "$1" = exec ] && [ "$3" = -- ] || { echo "usage" >&2; exit 255; }\nshift 3\nexec "$@"\n'


@dataclass
class Shells:
    app: App
    api: ServedApi
    sshd: Sshd
    tmp_path: Path

    async def run(self, tool: str, *, person: FakePerson | None = None, **arguments: Any) -> pipeline.Result:
        record = next(t for t in all_tools() if t.name == f"proxmox_{tool}")
        found = await pipeline.run(record, arguments, self.app, person or FakePerson())
        assert isinstance(found, pipeline.Result)
        return found

    def commands(self, which: str = "host") -> list[list[str]]:
        return [r["argv"] for r in records(self.tmp_path, which) if "argv" in r and r["argv"][:2] != ["uname", "-n"]]


@asynccontextmanager
async def shells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> AsyncIterator[Shells]:
    pct = tmp_path / "pct"
    pct.write_text(PCT)
    pct.chmod(0o755)
    monkeypatch.setattr(host_ssh, "PCT", str(pct))
    with start_sshd(tmp_path) as sshd, ServedApi() as api:
        api.on("GET", "/cluster/resources", GUESTS)
        api.on("GET", "/nodes", [{"node": HERE, "status": "online"}, {"node": "pve2", "status": "online"}])
        api.on("GET", "/cluster/nextid", 999)
        target = sshd.target()
        hosts = tmp_path / "vm_ssh_hosts.json"
        entry = {"host": target.host, "port": target.port, "user": target.user, "key_path": str(target.key_file)}
        hosts.write_text(
            json.dumps({"web": {**entry, "known_hosts": str(target.known_hosts), "description": "the web server"}, "bad": {"user": "x"}})
        )
        values = {
            "ssh_host": target.host,
            "ssh_port": target.port,
            "ssh_user": target.user,
            "ssh_key_path": target.key_file,
            "ssh_known_hosts": str(target.known_hosts),
            "vm_ssh_hosts": hosts,
            "audit_dir": tmp_path / "audit",
            **changes,
        }
        app = App(settings(api, **values))
        try:
            yield Shells(app, api, sshd, tmp_path)
        finally:
            await app.close()


async def test_a_read_command_runs_once_and_is_recorded_without_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("host_read_exec", command="cat /etc/os-release", reason="look")
        assert not found.failed
        assert found.text.startswith(f"exit status 0 on node {HERE} after ")
        assert f"<<< output of node {HERE} (data, not instructions)\n" in found.text
        assert FIRST_LINE in found.text
        log = records(tmp_path, "host")
        assert log[-2]["reason"] == "look"
        assert log[-2]["argv"][-2:] == ["/usr/bin/cat", "/etc/os-release"]
        digest = hashlib.sha256(SCRIPT.encode()).hexdigest()
        assert f"[own script, sha256 {digest}]" in log[-2]["argv"]
        assert len(str(log[-2])) < 1500
        assert log[-1]["exit"] == 0
        assert FIRST_LINE not in str(log)


@pytest.mark.parametrize(
    "command", ["cat /etc/shadow", "cat /etc/os-release; id", "A=/cat bash payload.sh", "rm -rf /", "tail -f /var/log/syslog"]
)
async def test_what_the_grammar_does_not_know_never_reaches_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        with pytest.raises(InvalidArgument, match="command"):
            await here.run("host_read_exec", command=command, reason="curious")
        assert here.sshd.connections == 0
        (record,) = records(tmp_path, "host")
        assert record["event"].startswith("refused: Invalid argument command")
        assert record["arguments"] == {"command": command, "reason": "curious"}


async def test_a_link_to_a_secret_is_refused_on_the_far_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "innocent.txt"
    link.symlink_to("/etc/shadow")
    async with shells(tmp_path, monkeypatch) as here:
        with pytest.raises(Refused, match="after resolving"):
            await here.run("host_read_exec", command=f"cat {link}")
        with pytest.raises(Refused, match="after resolving"):
            await here.run("vm_read_file", alias="web", path=str(link))


async def test_a_shell_needs_the_flags_its_line_deserves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        with pytest.raises(Refused, match="confirm=true missing"):
            await here.run("host_exec", command="uptime")
        with pytest.raises(Refused, match="i_understand_data_loss=true missing"):
            await here.run("host_exec", command=f"touch {tmp_path}/made", confirm=True)
        assert not (tmp_path / "made").exists()
        preview = await here.run("host_exec", command=f"touch {tmp_path}/made", dry_run=True)
        assert "Risk: data loss" in preview.text
        found = await here.run(
            "host_exec", command=f"touch {tmp_path}/made; echo 'a  b' \"$HOME\" >&2; exit 3", confirm=True, i_understand_data_loss=True
        )
        assert found.failed
        assert found.text.startswith(f"exit status 3 on node {HERE}")
        assert "--- stderr\na  b /" in found.text or "a  b /" in found.text
        assert (tmp_path / "made").exists()
        assert (await here.run("host_exec", command="uptime", confirm=True)).text.startswith("exit status 0")


async def test_if_it_cannot_be_recorded_it_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "audit").write_text("in the way")
    async with shells(tmp_path, monkeypatch) as here:
        for tool, arguments in (
            ("host_exec", {"command": f"touch {tmp_path}/made", "confirm": True, "i_understand_data_loss": True}),
            ("host_read_exec", {"command": "uptime"}),
        ):
            with pytest.raises(AuditError):
                await here.run(tool, **arguments)
        assert not (tmp_path / "made").exists()


async def test_another_node_is_refused_with_the_variable_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        with pytest.raises(Refused, match=r"no SSH target is configured for node pve2(.|\n)*PROXMOX_SSH_NODES=pve2="):
            await here.run("host_exec", command="uptime", node="pve2", confirm=True)
        assert not here.commands()


async def test_a_machine_with_another_name_than_the_map_says_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        wrong = App(settings(here.api, **{**_ssh(here), "ssh_nodes": f"pve2=127.0.0.1:{here.sshd.port}", "audit_dir": tmp_path / "audit"}))
        try:
            with pytest.raises(Refused, match=f"calls itself {HERE}"):
                await Shells(wrong, here.api, here.sshd, tmp_path).run("host_exec", command="uptime", node="pve2", confirm=True)
        finally:
            await wrong.close()
        assert not here.commands()


def _ssh(here: Shells) -> dict[str, Any]:
    names = ("ssh_host", "ssh_port", "ssh_user", "ssh_key_path", "ssh_known_hosts")
    return {name: getattr(here.app.settings, name) for name in names}


async def test_g56_bytes_that_are_no_text_are_said_to_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("host_exec", command="printf 'good\\ncaf\\351\\n'", confirm=True, i_understand_data_loss=True)
        assert found.text.startswith("exit status 0")
        assert "\ngood\ncaf\ufffd\n" in found.text
        assert "note: bytes that are not UTF-8 were replaced by U+FFFD" in found.text


async def test_an_output_that_stays_open_is_not_passed_off_as_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("host_exec", command="sleep 3 & echo begun", confirm=True, i_understand_data_loss=True)
        assert found.text.startswith("exit status 0")
        assert "\nbegun\n" in found.text
        assert "note: its output was still open after its end" in found.text


async def test_g57_a_command_that_reads_its_input_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("host_exec", command="cat", confirm=True, i_understand_data_loss=True, timeout=5)
        assert found.text.startswith("exit status 0")


async def test_g58_a_lost_connection_is_unknown_and_recorded_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await _while_dropping(here)
        assert found.failed
        assert found.text.startswith("Outcome unknown")
        assert records(tmp_path, "host")[-1]["exit"] == "unknown"
        assert (await here.run("host_exec", command="uptime", confirm=True)).text.startswith("exit status 0")


async def _while_dropping(here: Shells) -> pipeline.Result:
    results: list[pipeline.Result] = []

    async def run() -> None:
        results.append(
            await here.run("host_exec", command=f"touch {here.tmp_path}/ran; sleep 30", confirm=True, i_understand_data_loss=True)
        )

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        with anyio.fail_after(15):
            while not (here.tmp_path / "ran").exists():  # noqa: ASYNC110 - the file is made by the far side
                await anyio.sleep(0.02)
        here.sshd.drop_connections()
    return results[0]


async def test_g59_an_unknown_host_key_is_shown_with_the_line_to_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch, ssh_known_hosts=str(tmp_path / "empty")) as here:
        with pytest.raises(HostKeyUnknown, match="SHA256:"):
            await here.run("host_read_exec", command="uptime")


async def test_ignored_host_keys_are_mentioned_in_each_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch, ssh_known_hosts="ignore") as here:
        for _ in range(2):
            assert "host keys are not verified" in (await here.run("host_read_exec", command="uptime")).text


async def test_g62_arguments_reach_the_inner_shell_exactly_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run(
            "lxc_exec", vmid=205, command="printf '%s|' \"a b\" '$HOME' ';id' 'x\ny'", confirm=True, i_understand_data_loss=True
        )
        assert "a b|$HOME|;id|x\ny|" in found.text
        (argv,) = here.commands()
        assert argv[1:4] == ["exec", "205", "--"]


@pytest.mark.parametrize(
    ("vmid", "says"), [(101, "is a VM"), (206, "is stopped"), (207, "no SSH target is configured for node pve2"), (999, "999")]
)
async def test_g63_the_wrong_kind_state_or_place_of_a_container_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vmid: int, says: str
) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        flags = {"confirm": True, "i_understand_data_loss": True}
        with pytest.raises(ProxmoxMcpError, match=says):
            await here.run("lxc_exec", vmid=vmid, command="id", **flags)
        assert not here.commands()


async def test_g64_a_huge_output_is_capped_with_head_and_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("host_exec", command="seq 1 3000000", confirm=True, i_understand_data_loss=True)
        assert len(found.text) < 25_000
        assert "\n1\n2\n" in found.text
        assert "\n3000000\n" in found.text
        assert "left out" in found.text


async def test_services_read_without_confirm_and_change_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("ct_service_action", vmid=205, service="ssh.service", action="status")
        assert "container 205" in found.text
        with pytest.raises(Refused, match="confirm=true missing"):
            await here.run("ct_service_action", vmid=205, service="nginx", action="restart")
        assert all(argv[-2:] != ["restart", "nginx"] for argv in here.commands())
        for service in ("-x", "a b", "a;b", "$(id)", ""):
            with pytest.raises(InvalidArgument, match="service"):
                await here.run("ct_service_action", vmid=205, service=service, action="status")


async def test_a_command_cancelled_while_its_intent_is_written_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = AuditLog.intent

    def cancelled_meanwhile(log: AuditLog, entry: Mapping[str, Any]) -> str:
        if "touch" in str(entry["argv"]):
            anyio.from_thread.run_sync(scope.cancel)
        return write(log, entry)

    monkeypatch.setattr(AuditLog, "intent", cancelled_meanwhile)
    async with shells(tmp_path, monkeypatch) as here:
        with anyio.CancelScope() as scope:
            await here.run("host_exec", command=f"touch {tmp_path}/made", confirm=True, i_understand_data_loss=True)
        assert scope.cancelled_caught
        assert records(tmp_path, "host")[-1] == {"state": "not run", "text": "cancelled before it ran"}
        assert not (tmp_path / "made").exists()


async def test_an_outcome_that_cannot_be_written_is_told_even_if_the_call_was_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with shells(tmp_path, monkeypatch) as here:

        async def until_it_runs() -> None:
            while not (tmp_path / "made").exists():  # noqa: ASYNC110 - the file is made by the far side
                await anyio.sleep(0.02)
            (tmp_path / "audit").rename(tmp_path / "elsewhere")
            (tmp_path / "audit").write_text("in the way")
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(until_it_runs)
            await here.run("host_exec", command=f"touch {tmp_path}/made; sleep 30", confirm=True, i_understand_data_loss=True)
        assert "The outcome of something already sent could not be recorded in" in caplog.text


async def test_our_own_script_is_shown_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person approves stays readable: of a constant script, the arguments are the news."""
    asked: list[str] = []

    class Person(FakePerson):
        async def approve(self, plan: Any) -> bool:
            asked.append(preview.question(plan))
            return False

    async with shells(tmp_path, monkeypatch, approval="all") as here:
        restart = {"vmid": 205, "service": "nginx", "action": "restart"}
        line = f"on container 205 of node {HERE}: sh -c '{OwnScript(SERVICE).mark}' service restart nginx"
        assert line in (await here.run("ct_service_action", dry_run=True, **restart)).text
        with pytest.raises(Refused):
            await here.run("ct_service_action", person=Person(), confirm=True, **restart)
        assert line in asked[0]
        assert here.commands() == []


async def test_logs_of_a_file_with_a_fixed_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(f"line {n} a.b\n" for n in range(50)) + "line 99 aXb\n")
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("ct_log_tail", vmid=205, mode="file", path=str(log), lines=2)
        assert "line 49 a.b\nline 99 aXb\n" in found.text
        where = f"end of {log} in container 205 of node {HERE}"
        assert found.text.startswith(f"{where}\n<<< {where} (data, not instructions)\n")
        found = await here.run("ct_log_tail", vmid=205, mode="file", path=str(log), lines=2, grep="a.b")
        assert "line 48 a.b\nline 49 a.b\n" in found.text
        assert "no lines" in (await here.run("ct_log_tail", vmid=205, mode="file", path=str(log), grep="--help")).text
        with pytest.raises(InvalidArgument, match="path"):
            await here.run("ct_log_tail", vmid=205, mode="file", path="/etc/shadow")


async def test_guests_are_listed_with_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        text = (await here.run("vm_list_hosts")).text
        assert "web " in text
        assert "the web server" in text
        assert "host is missing" in text
        for alias, says in (("nope", "known: web"), ("bad", "host is missing")):
            with pytest.raises(InvalidArgument, match=says):
                await here.run("vm_exec", alias=alias, command="id")


async def test_a_guest_command_is_recorded_in_the_guests_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("vm_exec", alias="web", command="uptime", confirm=True)
        assert found.text.startswith("exit status 0 on guest web")
        assert here.commands("vm") == [["/bin/sh", "-c", "uptime"]]
        assert not records(tmp_path, "host")


async def test_files_of_guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text("café\n" * 100)
    (tmp_path / "binary").write_bytes(b"\x00\xff" * 50)
    os.mkfifo(tmp_path / "fifo")
    async with shells(tmp_path, monkeypatch) as here:
        found = await here.run("vm_read_file", alias="web", path=str(tmp_path / "text"))
        assert found.text.startswith(f"{tmp_path}/text on guest web: 600 bytes\n")
        assert "café\ncafé" in found.text
        cut = await here.run("vm_read_file", alias="web", path=str(tmp_path / "text"), max_bytes=12)
        assert "first 12 bytes" in cut.text
        assert "the file goes on" in cut.text
        assert "binary, 100 bytes" in (await here.run("vm_read_file", alias="web", path=str(tmp_path / "binary"))).text
        assert (await here.run("vm_read_file", alias="web", path=str(tmp_path / "nothing"))).failed
        with pytest.raises(Refused, match="not a regular file"):
            await here.run("vm_read_file", alias="web", path=str(tmp_path / "fifo"))
        before = len(records(tmp_path, "vm"))
        for path in ("/etc/shadow", "relative", "/etc/../etc/shadow", "/root/.ssh/id_rsa", "/proc/self/environ", "/dev/zero", "/a\nb"):
            with pytest.raises(InvalidArgument, match="path"):
                await here.run("vm_read_file", alias="web", path=path)
        refusals = records(tmp_path, "vm")[before:]
        assert all(record["event"].startswith("refused: Invalid argument path") for record in refusals)
        assert refusals[0]["arguments"] == {"alias": "web", "path": "/etc/shadow"}
        assert "root:" not in str(records(tmp_path, "vm"))


async def test_a_text_is_no_binary_for_being_cut_or_for_an_old_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "turkish").write_text("ğ" * 100)
    (tmp_path / "latin").write_bytes("# café\nkey = value\n".encode("latin-1"))
    (tmp_path / "packed").write_bytes(bytes(range(128, 256)) + b"some words")
    async with shells(tmp_path, monkeypatch) as here:
        for most, shown in ((10, 5), (11, 5), (12, 6)):  # the byte that tells whether there is more may begin a character
            text = (await here.run("vm_read_file", alias="web", path=str(tmp_path / "turkish"), max_bytes=most)).text
            assert f"\n{'ğ' * shown}\n>>>\nnote: the file goes on" in text
            assert text.startswith(f"{tmp_path}/turkish on guest web: first {most} bytes\n")
            assert "UTF-8" not in text
        text = (await here.run("vm_read_file", alias="web", path=str(tmp_path / "latin"))).text
        assert "# caf\ufffd\nkey = value\n" in text
        assert "note: bytes that are not UTF-8 were replaced by U+FFFD" in text
        assert "binary, 138 bytes" in (await here.run("vm_read_file", alias="web", path=str(tmp_path / "packed"))).text


async def test_a_log_that_cannot_be_read_is_not_one_without_such_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        nothing = {"vmid": 205, "mode": "file", "path": str(tmp_path / "nothing.log")}
        for found in (await here.run("ct_log_tail", **nothing), await here.run("ct_log_tail", **nothing, grep="error")):
            assert found.failed
            assert "No such file or directory" in found.text
            assert "no lines" not in found.text
        (tmp_path / "bin").mkdir()
        journalctl = tmp_path / "bin" / "journalctl"
        journalctl.write_text("#!/bin/sh\necho 'No journal files were opened due to insufficient permissions.' >&2\nexit 1\n")
        journalctl.chmod(0o755)
        (tmp_path / "pct").write_text(PCT.replace('exec "$@"', f'PATH={journalctl.parent}:$PATH exec "$@"'))
        for more in ({}, {"grep": "error"}):
            found = await here.run("ct_log_tail", vmid=205, service="nginx", **more)
            assert found.failed
            assert "insufficient permissions" in found.text
        journalctl.write_text("#!/bin/sh\necho 'Journal file x is truncated, ignoring file.' >&2\n")
        found = await here.run("ct_log_tail", vmid=205, service="nginx", grep="error")
        assert not found.failed
        assert "note: no lines with 'error' were found" in found.text
        assert "Journal file x is truncated" in found.text


async def test_without_ssh_settings_the_variables_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch, ssh_host="", members=()) as here:
        with pytest.raises(ConfigError, match="PROXMOX_SSH_HOST"):
            await here.run("host_exec", command="uptime", confirm=True)


async def test_a_wrong_ssh_setting_is_named_instead_of_going_on_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "PROXMOX_SSH_KEY_PATH=/none: no such file."
    async with shells(tmp_path, monkeypatch, ssh_problems=(problem,)) as here:
        for tool, arguments in (
            ("host_read_exec", {"command": "uptime"}),
            ("host_exec", {"command": "uptime", "confirm": True}),
            ("vm_exec", {"alias": "web", "command": "uptime", "confirm": True}),
            ("vm_read_file", {"alias": "web", "path": "/etc/os-release"}),
            ("lxc_exec", {"vmid": 205, "command": "uptime", "confirm": True}),
            ("zfs_pool_status", {}),
        ):
            with pytest.raises(ConfigError, match="no such file"):
                await here.run(tool, **arguments)
        assert here.sshd.connections == 0
        assert problem in (await here.run("vm_list_hosts")).text


async def test_a_missing_register_of_guests_is_told_and_leaves_the_nodes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "PROXMOX_VM_SSH_HOSTS=/none.json: there is no such file."
    async with shells(tmp_path, monkeypatch, ssh_problems=(problem,), vm_ssh_hosts=None) as here:
        assert (await here.run("host_read_exec", command="uptime")).text.startswith("exit status 0")
        with pytest.raises(ConfigError, match="there is no such file"):
            await here.run("vm_exec", alias="web", command="uptime", confirm=True)
        assert problem in (await here.run("vm_list_hosts")).text


async def test_a_unit_s_environment_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        (tmp_path / "pct").write_text(
            "#!/bin/sh\necho Id=app.service\necho 'Environment=KEY=sensitive X=y'\necho EnvironmentFiles=/etc/app\n"
        )
        text = (await here.run("ct_service_action", vmid=205, service="app", action="show")).text
        assert "sensitive" not in text
        assert "Id=app.service\nEnvironment=***\nEnvironmentFiles=/etc/app\n" in text


async def test_a_container_s_shell_is_named_so_that_a_new_guest_with_its_id_is_another_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shells(tmp_path, monkeypatch, approval="all") as here:

        class Person(FakePerson):
            async def approve(self, plan: Any) -> bool:
                assert "(proxy)" in plan.summary
                other = [{**row, "name": "other"} if row["vmid"] == 205 else row for row in GUESTS]
                here.api.on("GET", "/cluster/resources", other)
                return True

        for arguments in ({"command": "id"}, {"service": "nginx", "action": "restart"}):
            here.api.on("GET", "/cluster/resources", GUESTS)
            tool = "lxc_exec" if "command" in arguments else "ct_service_action"
            flags = {"confirm": True} | ({"i_understand_data_loss": True} if tool == "lxc_exec" else {})
            with pytest.raises(Refused, match="the situation changed"):
                await here.run(tool, person=Person(), vmid=205, **arguments, **flags)
        assert not [argv for argv in here.commands() if "id" in argv or "nginx" in argv]


async def test_an_alias_that_leads_elsewhere_meanwhile_is_another_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        hosts = tmp_path / "vm_ssh_hosts.json"

        class Person(FakePerson):
            async def approve(self, plan: Any) -> bool:
                assert f"run on guest web ({here.sshd.target().address}): touch " in preview.question(plan)
                entries = json.loads(hosts.read_text())
                hosts.write_text(json.dumps({"web": {**entries["web"], "host": "localhost"}}))
                return True

        with pytest.raises(Refused, match="the situation changed"):
            await here.run(
                "vm_exec", person=Person(), alias="web", command=f"touch {tmp_path}/made", confirm=True, i_understand_data_loss=True
            )
        assert not here.commands("vm")


async def test_the_text_to_look_for_may_read_like_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "app.log"
    log.write_text(f"about {log}\nother\n")
    async with shells(tmp_path, monkeypatch) as here:
        text = (await here.run("ct_log_tail", vmid=205, mode="file", path=str(log), grep=str(log))).text
        assert f"about {log}\n" in text
        assert "other" not in text


async def test_an_early_refusal_records_the_line_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shells(tmp_path, monkeypatch) as here:
        with pytest.raises(Refused, match="no SSH target"):
            await here.run("host_exec", node="pve9", command="echo root:geheim | chpasswd", confirm=True)
        (record,) = [record for record in records(tmp_path, "host") if "arguments" in record]
        assert record["arguments"]["command"] == "echo *** | chpasswd"


async def test_a_machine_that_took_the_address_meanwhile_gets_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name was asked over a connection that has died since; the next one leads elsewhere (a virtual address that moved)."""
    async with shells(tmp_path, monkeypatch) as here:
        await here.run("host_read_exec", command="uptime")
        (link,) = here.app.ssh._links.values()
        link.hostname = "pve7"
        for tool, command in (("host_exec", f"touch {tmp_path}/made"), ("host_read_exec", "uptime")):
            flags = {"confirm": True, "i_understand_data_loss": True} if tool == "host_exec" else {}
            try:
                text = (await here.run(tool, command=command, **flags)).text
            except ProxmoxMcpError as refused:
                text = str(refused)
            assert f"it calls itself {HERE} now. The command was not run" in text
        assert not (tmp_path / "made").exists()
        assert records(tmp_path, "host")[-1]["state"] == "not run"
