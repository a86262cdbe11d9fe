"""The doctor's look at SSH, against a real OpenSSH server: what works, what does not, and the step that mends it."""

from __future__ import annotations

import errno
import getpass
import json
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import doctor, privileges
from proxmox_mcp.config import Member, Settings
from proxmox_mcp.registry import Tool, all_tools
from proxmox_mcp.ssh_check import Row, check_ssh
from tests import served_api
from tests.piped import records
from tests.served_api import ServedApi
from tests.sshd import Sshd, account, free_port, needs_root, needs_sshd, private_key, start_sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
HERE = platform.node().partition(".")[0]
ROOT = os.geteuid() == 0
GROUPS = (privileges.SSH_NODE, privileges.SSH_GUEST)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with start_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def on_nodes() -> tuple[Tool, ...]:
    return tuple(tool for tool in all_tools() if tool.name in privileges.SSH_NODE)


def on_guests() -> tuple[Tool, ...]:
    return tuple(tool for tool in all_tools() if tool.name in privileges.SSH_GUEST)


def settings(sshd: Sshd, tmp_path: Path, **changes: Any) -> Settings:
    target = sshd.target()
    values = {
        "ssh_host": target.host,
        "ssh_port": target.port,
        "ssh_user": target.user,
        "ssh_key_path": target.key_file,
        "ssh_known_hosts": str(sshd.known_hosts),
        "audit_dir": tmp_path / "audit",
    }
    return served_api.settings(**{**values, **changes})


def problems(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.state == "problem" and not (not ROOT and "not as root" in row.text)]


async def test_a_node_that_answers_is_named_and_what_it_lacks_is_told(sshd: Sshd, tmp_path: Path) -> None:
    rows = await check_ssh(settings(sshd, tmp_path), on_nodes())
    assert problems(rows) == []
    assert "proxmox_host_exec" in rows[0].text
    (reached,) = [row for row in rows if f"is {HERE}" in row.text]
    assert ("as root" in reached.text) is ROOT
    told = " ".join(row.text for row in rows if row.state == "note")
    assert all((shutil.which(program) is None) == (program in told) for program in ("pct", "zpool", "pvesh"))
    # what the doctor runs is recorded as what the tools run
    assert {record["tool"] for record in records(tmp_path, "host") if "tool" in record} == {"doctor"}


async def test_nodes_are_checked_by_name(sshd: Sshd, tmp_path: Path) -> None:
    here = f"127.0.0.1:{sshd.port}"
    configured = settings(sshd, tmp_path, ssh_nodes=f"{HERE}={here},pve9={here}")
    rows = await check_ssh(configured, on_nodes(), [HERE, "pve9", "pve3"])
    assert next(row.state for row in rows if row.subject == f"node {HERE}") == "ok"
    (wrong,) = problems(rows)
    assert wrong.subject == "node pve9"
    assert f"calls itself {HERE}" in wrong.text
    assert wrong.steps == ("correct PROXMOX_SSH_NODES",)
    (missing,) = [row for row in rows if "no SSH target" in row.text]
    assert missing.steps == (f"set PROXMOX_SSH_NODES={configured.ssh_nodes},pve3=<its address>",)


async def test_an_unknown_host_key_comes_with_the_line_to_add(sshd: Sshd, tmp_path: Path) -> None:
    empty = tmp_path / "known_hosts"
    empty.touch()
    configured = settings(sshd, tmp_path, ssh_known_hosts=str(empty))
    (problem,) = problems(await check_ssh(configured, on_nodes()))
    assert sshd.host_key_line in problem.steps[0]
    empty.write_text(sshd.host_key_line + "\n")
    assert problems(await check_ssh(configured, on_nodes())) == []


async def test_a_changed_host_key_is_a_problem_before_anything_is_run(sshd: Sshd, tmp_path: Path) -> None:
    import asyncssh

    other = asyncssh.read_private_key(private_key(tmp_path / "other")).export_public_key().decode().split()
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.port} {other[0]} {other[1]}\n")
    logins = sshd.connections
    (problem,) = problems(await check_ssh(settings(sshd, tmp_path, ssh_known_hosts=str(known)), on_nodes()))
    assert "HAS CHANGED" in problem.text
    assert sshd.connections == logins


async def test_a_refused_key_and_a_dead_address(sshd: Sshd, tmp_path: Path) -> None:
    key = private_key(tmp_path / "stranger")
    dead = f"pve8=127.0.0.1:{free_port()}"
    configured = settings(sshd, tmp_path, ssh_key_path=key, ssh_nodes=f"pve7=127.0.0.1:{sshd.port},{dead}")
    refused, unreachable = problems(await check_ssh(configured, on_nodes()))
    assert (refused.subject, unreachable.subject) == ("node pve7", "node pve8")
    assert "refused the login" in refused.text
    assert "authorized_keys" in refused.steps[0]
    assert "cannot be reached" in unreachable.text
    assert unreachable.text.endswith(f"({os.strerror(errno.ECONNREFUSED)})")


@needs_root
async def test_a_user_who_is_not_root_is_a_problem(sshd: Sshd, tmp_path: Path) -> None:
    with account("/bin/sh", sshd) as user:
        (problem,) = problems(await check_ssh(settings(sshd, tmp_path, ssh_user=user.name), on_nodes()))
    assert f"run as {user.name}, not as root" in problem.text
    assert "PROXMOX_SSH_SUDO=true" in problem.steps[0]


@needs_root
async def test_sudo_that_does_not_work_is_a_problem(sshd: Sshd, tmp_path: Path) -> None:
    with account("/bin/sh", sshd) as user:
        (problem,) = problems(await check_ssh(settings(sshd, tmp_path, ssh_user=user.name, ssh_sudo=True), on_nodes()))
    assert "sudo" in f"{problem.text} {problem.steps}"


async def test_guests_are_reached_one_by_one_and_wrong_entries_named(sshd: Sshd, tmp_path: Path) -> None:
    target = sshd.target()
    entry = {"host": target.host, "port": target.port, "user": target.user, "key_path": str(target.key_file)}
    hosts = tmp_path / "vm_ssh_hosts.json"
    good = {**entry, "known_hosts": str(sshd.known_hosts)}
    hosts.write_text(json.dumps({"web": good, "down": {**good, "port": free_port()}, "bad": {"user": "x"}}))
    rows = await check_ssh(settings(sshd, tmp_path, vm_ssh_hosts=hosts), on_guests())
    states = {row.subject: row.state for row in rows}
    assert states == {"guest bad": "problem", "guest web": "ok", "guest down": "problem"}
    assert f"{getpass.getuser()}@127.0.0.1:{sshd.port}" in next(row.text for row in rows if row.subject == "guest web")
    assert records(tmp_path, "vm")


async def test_without_any_setting_nothing_is_connected(sshd: Sshd, tmp_path: Path) -> None:
    plain = served_api.settings(members=(Member("127.0.0.1", 8006),), ssh_host="127.0.0.1", audit_dir=tmp_path / "audit")
    (row,) = await check_ssh(plain, on_nodes())
    assert row.state == "note"
    assert "no SSH setting is given, so 127.0.0.1 as root, with your SSH agent and the keys in ~/.ssh" in row.text
    assert "proxmox_host_exec" in row.text
    assert not (tmp_path / "audit").exists()


async def test_without_a_tool_that_needs_it_nothing_is_said(sshd: Sshd, tmp_path: Path) -> None:
    logins = sshd.connections
    others = tuple(tool for tool in all_tools() if not any(tool.name in group for group in GROUPS))
    assert await check_ssh(settings(sshd, tmp_path), others) == []
    assert sshd.connections == logins


async def test_a_record_that_cannot_be_written_is_a_problem(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("in the way")
    (problem,) = problems(await check_ssh(settings(sshd, tmp_path), on_nodes()))
    assert "audit" in problem.text.lower()


async def test_the_doctor_shows_it_and_names_the_cluster_s_other_nodes(sshd: Sshd, tmp_path: Path) -> None:
    with ServedApi() as api:
        api.on("GET", "/version", {"version": "9.2.4", "release": "9.2"})
        api.on("GET", "/access/permissions", {"/": {}})
        api.on("GET", "/nodes", [{"node": HERE, "status": "online"}, {"node": "pve3", "status": "offline"}])
        configured = settings(sshd, tmp_path)
        reached = replace(served_api.settings(api), **{name: getattr(configured, name) for name in SSH}, audit_dir=configured.audit_dir)
        found = await doctor.examine(reached)
    about = [finding for finding in found if finding.subject.startswith("ssh")]
    assert any(finding.state == "ok" and f"is {HERE}" in finding.text for finding in about)
    assert any("pve3=<its address>" in step for finding in about for step in finding.steps)


SSH = ("ssh_host", "ssh_port", "ssh_user", "ssh_key_path", "ssh_known_hosts")
