"""The doctor against served APIs: each thing that can be wrong is named, with the step that mends it."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import doctor
from proxmox_mcp.config import Member, Settings, load, require_api
from proxmox_mcp.errors import ConfigError
from proxmox_mcp.privileges import AUDITOR, NEEDS
from tests import served_api
from tests.served_api import Reply, ServedApi
from tests.stdio import measuring

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parent.parent
EVERYTHING = dict.fromkeys((privilege for needs in NEEDS.values() for need in needs for privilege in need.any_of), 1)


@pytest.fixture
def api() -> Iterator[ServedApi]:
    with ServedApi() as served:
        served.on("GET", "/version", {"version": "9.2.4", "release": "9.2", "repoid": "14a22df3"})
        served.on("GET", "/access/permissions", {"/": EVERYTHING})
        yield served


async def examine(settings: Settings) -> dict[str, list[doctor.Finding]]:
    found: dict[str, list[doctor.Finding]] = {}
    for finding in await doctor.examine(settings):
        found.setdefault(finding.subject, []).append(finding)
    return found


def problems(found: dict[str, list[doctor.Finding]]) -> list[str]:
    return [str(finding) for findings in found.values() for finding in findings if finding.state == "problem"]


async def test_all_well(api: ServedApi) -> None:
    settings = served_api.settings(api)
    found = await examine(settings)
    assert problems(found) == []
    (member,) = found[str(settings.members[0])]
    assert member.state == "ok"
    assert re.search(r"SHA-256 ([0-9A-F]{2}:){31}[0-9A-F]{2}", member.text)
    assert "9.2.4" in found["token"][0].text


async def test_what_is_missing_is_named_and_nothing_is_sent(api: ServedApi) -> None:
    settings = replace(served_api.settings(api), problems=("PROXMOX_TOKEN_VALUE is not set.", "PROXMOX_USER is not set."))
    found = await examine(settings)
    assert [finding.text for finding in found["configuration"]][:2] == list(settings.problems)
    assert api.requests == []


async def test_what_explains_what_is_missing_is_told_with_it(api: ServedApi, tmp_path: Path) -> None:
    settings = load({"PROXMOX_HOST": "pve.lan", "PROXMOX_TOKENNAME": "mcp"}, base=tmp_path)
    found = await examine(settings)
    misspelt = "PROXMOX_TOKENNAME is not a variable of this server; is PROXMOX_TOKEN_NAME meant?"
    assert misspelt in [finding.text for finding in found["configuration"]]
    with pytest.raises(ConfigError, match=re.escape(misspelt)):
        require_api(settings)


@pytest.mark.parametrize(
    ("choice", "wrong"),
    [({"toolsets": ("gests",)}, "PROXMOX_TOOLSETS"), ({"tools": ("list_vms",)}, "PROXMOX_TOOLS"), ({"toolsets": ("audit",)}, "")],
)
async def test_a_choice_of_tools_that_stops_the_start_is_a_problem_of_the_configuration(
    api: ServedApi, choice: dict[str, tuple[str, ...]], wrong: str
) -> None:
    found = await examine(replace(served_api.settings(api), **choice))
    assert [line.partition("names")[0].split()[-1] for line in problems(found)] == ([wrong] if wrong else [])


async def test_nodes_that_may_be_changed_and_are_none_are_named(api: ServedApi) -> None:
    api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
    found = await examine(replace(served_api.settings(api), allow_nodes=("pve1", "pve7")))
    (finding,) = (finding for finding in found["configuration"] if finding.state == "note")
    assert finding.text == "PROXMOX_ALLOW_NODES names pve7, and the cluster has no such node; it has: pve1"


@pytest.mark.parametrize("below", ["", "deep/er"])
async def test_an_audit_log_that_cannot_be_written_is_a_problem(api: ServedApi, tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    settings = replace(served_api.settings(api), audit_dir=tmp_path / "file" / below)
    (finding,) = (await examine(settings))["audit log"]
    assert (finding.state, finding.text) == ("problem", f"{tmp_path / 'file' / below} cannot hold it: {tmp_path / 'file'} is no directory")
    (finding,) = (await examine(replace(settings, read_only=True)))["audit log"]
    assert finding.state == "note"


async def test_a_key_file_without_a_key_is_a_problem(api: ServedApi, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("\n")
    (finding,) = (await examine(replace(served_api.settings(api), audit_hmac_key_file=tmp_path / "keys")))["audit log"]
    assert finding.state == "problem"
    assert "holds no key" in finding.text


async def test_an_audit_log_that_can_be_written_is_nothing_to_tell_of(api: ServedApi, tmp_path: Path) -> None:
    assert "audit log" not in await examine(replace(served_api.settings(api), audit_dir=tmp_path / "not/there/yet"))
    assert os.listdir(tmp_path) == []


async def test_a_member_that_does_not_answer_is_named_and_the_next_is_used(api: ServedApi) -> None:
    settings = served_api.settings(api)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    dead = Member("127.0.0.1", port)
    found = await examine(replace(settings, members=(dead, *settings.members)))
    assert found[str(dead)][0].state == "problem"
    assert "cannot connect" in found[str(dead)][0].text
    assert found["token"][0].state == "ok"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refused_connection_is_told_in_words(api: ServedApi, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = Member(host, closed.getsockname()[1])
    (finding,) = (await examine(replace(served_api.settings(api), members=(dead,))))[str(dead)]
    assert finding.text == f"cannot connect: {os.strerror(errno.ECONNREFUSED)}"


async def test_what_answers_without_tls_is_named(api: ServedApi) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    member = Member("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        (finding,) = (await examine(replace(served_api.settings(api), members=(member,))))[str(member)]
    finally:
        server.close()
    assert finding.state == "problem"
    assert "no TLS" in finding.text


async def test_behind_a_proxy_only_the_api_is_asked(api: ServedApi) -> None:
    settings = replace(served_api.settings(api), proxy="http://127.0.0.1:9")
    found = await examine(settings)
    assert found[str(settings.members[0])][0].state == "note"
    assert found["token"][0].state == "problem"
    assert api.requests == []


async def test_a_certificate_that_is_not_trusted_comes_with_its_fingerprint_to_pin(api: ServedApi) -> None:
    plain = replace(served_api.settings(api), tls_fingerprint="", ca_file=None, verify_tls=True)
    found = await examine(plain)
    (finding,) = found[str(plain.members[0])]
    assert finding.state == "problem"
    (pin,) = re.findall(r"PROXMOX_TLS_FINGERPRINT=([0-9A-F:]+)", " ".join(finding.steps))
    assert "token" not in found
    assert problems(await examine(replace(plain, tls_fingerprint=pin))) == []


async def test_a_wrong_pin_is_a_problem(api: ServedApi) -> None:
    settings = replace(served_api.settings(api), ca_file=None, tls_fingerprint=":".join(["AB"] * 32))
    found = await examine(settings)
    (finding,) = found[str(settings.members[0])]
    assert finding.state == "problem"
    assert "not the pinned one" in finding.text
    assert api.requests == []


async def test_verification_switched_off_is_noted_with_the_pin(api: ServedApi) -> None:
    settings = replace(served_api.settings(api), tls_fingerprint="", ca_file=None, verify_tls=False)
    (finding, *_) = (await examine(settings))[str(settings.members[0])]
    assert finding.state == "note"
    assert "NOT verified" in finding.text
    assert any("PROXMOX_TLS_FINGERPRINT=" in step for step in finding.steps)


@pytest.mark.parametrize(("apart", "state"), [(0, "ok"), (30, "note"), (4000, "problem"), (-4000, "problem")])
async def test_clocks(api: ServedApi, apart: int, state: str) -> None:
    api.on("GET", "/access/domains", Reply(data=[], headers={"Date": formatdate(time.time() + apart, usegmt=True)}))
    found = await examine(served_api.settings(api))
    (finding,) = found["clock"]
    assert finding.state == state
    assert found["token"][0].state == "ok"


@pytest.mark.parametrize(
    "reason", ["no such token 'mcp' for user 'root@pam'", "token 'mcp' access expired", "invalid token value!", "Authentication failed!"]
)
async def test_a_refused_token_in_proxmoxs_words(api: ServedApi, reason: str) -> None:
    api.on("GET", "/version", Reply(401, reason, body=""))
    (finding,) = (await examine(served_api.settings(api)))["token"]
    assert finding.state == "problem"
    assert reason in finding.text
    assert finding.steps
    assert served_api.SECRET not in str(finding)


async def test_the_token_is_only_sent_to_the_api_never_in_the_first_look(api: ServedApi) -> None:
    await examine(served_api.settings(api))
    first = next(request for request in api.requests if request.path == "/access/domains")
    assert "authorization" not in first.headers


async def test_an_auditor_learns_which_tools_do_not_work_and_what_unlocks_them(api: ServedApi) -> None:
    api.on("GET", "/access/permissions", {"/": dict.fromkeys(AUDITOR, 1)})
    api.tokens["mcp@pve!assistant"] = served_api.SECRET
    settings = replace(served_api.settings(api), user="mcp@pve", token_name="assistant")
    found = await examine(settings)
    (finding,) = found["proxmox_list_backups"]
    assert finding.state == "problem"
    assert "Datastore.AllocateSpace" in finding.text
    assert "VM.Backup on /vms" in finding.text
    assert "proxmox_list_vms" not in found
    (unlock,) = found["privileges"]
    assert unlock.paste[0].startswith("pveum role add McpExtra --privs ")
    assert unlock.paste[1] == "pveum acl modify / --users mcp@pve --tokens 'mcp@pve!assistant' --roles McpExtra"


async def test_the_lines_really_unlock_every_tool(api: ServedApi) -> None:
    api.on("GET", "/access/permissions", {"/": dict.fromkeys(AUDITOR, 1)})
    (unlock,) = (await examine(served_api.settings(api)))["privileges"]
    granted = unlock.paste[0].split("--privs ")[1].split(",")
    api.on("GET", "/access/permissions", {"/": dict.fromkeys((*AUDITOR, *granted), 1)})
    found = await examine(served_api.settings(api))
    assert problems(found) == []
    assert "privileges" not in found


async def test_read_only_leaves_changing_tools_out(api: ServedApi) -> None:
    api.on("GET", "/access/permissions", {"/": dict.fromkeys((*AUDITOR, "Datastore.AllocateSpace", "VM.Backup", "VM.Config.Disk"), 1)})
    found = await examine(replace(served_api.settings(api), read_only=True))
    assert problems(found) == []
    assert "proxmox_vm_power" not in found


async def test_a_token_without_any_right(api: ServedApi) -> None:
    api.on("GET", "/access/permissions", {})
    found = await examine(served_api.settings(api))
    assert found["privileges"][0].state == "problem"
    assert "nothing at all" in found["privileges"][0].text
    (step,) = found["privileges"][0].steps
    assert "privilege separation" in step
    assert "--privsep" not in step  # root's own rights are too much to give away
    api.tokens["mcp@pve!assistant"] = served_api.SECRET
    found = await examine(replace(served_api.settings(api), user="mcp@pve", token_name="assistant"))
    (step,) = found["privileges"][0].steps
    assert "`pveum user token modify mcp@pve assistant --privsep 0`" in step


def doctor_process(tmp_path: Path, **env: Any) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **measuring(), **env}
    command = [sys.executable, "-m", "proxmox_mcp", "doctor"]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=clean, timeout=60)


def test_the_exit_code_tells(api: ServedApi, tmp_path: Path) -> None:
    settings = served_api.settings(api)
    user, _, name = served_api.TOKEN_ID.partition("!")
    env = {"PROXMOX_HOST": str(settings.members[0]), "PROXMOX_USER": user, "PROXMOX_TOKEN_NAME": name}
    env["PROXMOX_TOKEN_VALUE"] = served_api.SECRET
    trusted = {"PROXMOX_CA_FILE": str(settings.ca_file)} if settings.ca_file else {"PROXMOX_TLS_FINGERPRINT": settings.tls_fingerprint}
    good = doctor_process(tmp_path, **env, **trusted)
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.endswith("no problems found\n")
    bad = doctor_process(tmp_path, **env)
    assert bad.returncode == 1
    assert "PROXMOX_TLS_FINGERPRINT=" in bad.stdout
    assert doctor_process(tmp_path).returncode == 1
    api.on("GET", "/access/permissions", {"/": dict.fromkeys(AUDITOR, 1)})
    narrow = doctor_process(tmp_path, **env, **trusted)
    assert narrow.returncode == 1
    # the end is what one pastes, and nothing else
    assert [line.split()[:2] for line in narrow.stdout.splitlines()[-2:]] == [["pveum", "role"], ["pveum", "acl"]]
    assert served_api.SECRET not in good.stdout + bad.stdout + good.stderr + bad.stderr
