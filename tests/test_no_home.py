"""A user without a home, as containers have them: everything that needs none works, and what does says so."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from proxmox_mcp import clients, server
from proxmox_mcp.app import App
from proxmox_mcp.config import load
from proxmox_mcp.doctor import examine
from proxmox_mcp.errors import AuditError, ConfigError, HostKeyUnknown
from proxmox_mcp.pipeline import run
from proxmox_mcp.ssh import SshPool
from proxmox_mcp.ssh_targets import SshTarget, parse_known_hosts
from tests.piped import POWER, FakePerson, piped
from tests.sshd import needs_sshd, start_sshd

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="homes are another matter there")]
STOP = {"vmid": 101, "action": "shutdown", "confirm": True}


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("nobody")
async def test_settings_are_read_and_the_client_s_block_is_printed(tmp_path: Path) -> None:
    found = load({"PROXMOX_SSH_CONFIG": "true", "PROXMOX_HOST": "pve.lab"}, base=tmp_path)
    assert found.vm_ssh_hosts is None
    assert str(tmp_path / ".env") in map(str, found.searched)
    assert clients.block("claude-desktop", clients.environment(None)).text
    assert parse_known_hosts("~/hosts") == Path("~/hosts")


@pytest.mark.usefixtures("nobody")
async def test_reads_work_and_changes_want_a_place_for_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with piped(tmp_path, timeout=2.0) as (api, app):
        homeless = App(replace(app.settings, audit_dir=None))
        assert (await run(POWER, {"vmid": 101, "action": "look"}, homeless, FakePerson())).text  # type: ignore[union-attr]
        with pytest.raises(AuditError, match="PROXMOX_AUDIT_DIR"):
            await run(POWER, STOP, homeless, FakePerson())
        assert not api.writes
        findings = await examine(homeless.settings)
        assert [finding.state for finding in findings if finding.subject == "audit log"] == ["problem"]
        monkeypatch.setattr(server, "SETTLED", 0.0)
        await server._tell_unfinished(homeless)
        assert "no home directory" in capsys.readouterr().err
        await homeless.close()


@needs_sshd
async def test_ssh_says_that_the_host_is_not_known(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_sshd(tmp_path) as sshd:
        made = sshd.target()
        pool = SshPool()
        request.getfixturevalue("nobody")
        for name, why in (("LOGNAME", "local username"), ("HOME", "home directory")):  # asyncssh wants both
            with pytest.raises(ConfigError, match=why):
                await pool.run(SshTarget(made.host, made.port, made.user, key_file=made.key_file), ["true"])
            monkeypatch.setenv(name, "/nonexistent")
        with pytest.raises(HostKeyUnknown):
            await pool.run(SshTarget(made.host, made.port, made.user, key_file=made.key_file), ["true"])
        await pool.close()
