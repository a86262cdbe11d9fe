"""Getting in: host keys, keys, passwords, agents, jump hosts; and every way not to, with what the answer then says."""

from __future__ import annotations

import asyncio
import base64
import hmac
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from proxmox_mcp.errors import ConfigError, HostKeyChanged, HostKeyUnknown, SshAuthFailed, SshUnreachable
from proxmox_mcp.ssh import SshPool, SshTarget
from tests.ssh.servers import Process, scripted
from tests.sshd import Sshd, account, free_port, needs_root, private_key, start_sshd

pytestmark = pytest.mark.anyio


async def say(pool: SshPool, target: SshTarget) -> str:
    return (await pool.run(target, ["echo", "in"])).stdout


def fingerprint(sshd: Sshd) -> str:
    return asyncssh.read_private_key(sshd.host_key).get_fingerprint()


# --- host keys


async def test_g59_an_unknown_host_key_is_shown_with_the_line_to_add(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    empty = tmp_path / "known_hosts"
    with pytest.raises(HostKeyUnknown) as failed:
        await pool.run(sshd.target(known_hosts=empty), ["true"])
    text = str(failed.value)
    for part in ("node test", "127.0.0.1", str(sshd.port), str(empty), "ssh-ed25519", fingerprint(sshd), sshd.host_key_line, "ssh-keyscan"):
        assert part in text
    assert sshd.connections == 0
    empty.write_text(sshd.host_key_line + "\n")
    assert await say(pool, sshd.target(known_hosts=empty)) == "in\n"


async def test_g59_without_a_path_the_users_own_file_is_used(
    sshd: Sshd, pool: SshPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(HostKeyUnknown, match=r"\.ssh/known_hosts"):
        await pool.run(sshd.target(known_hosts=None), ["true"])
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/known_hosts").write_text(sshd.host_key_line + "\n")
    assert await say(pool, sshd.target(known_hosts=None)) == "in\n"


async def test_ignore_is_the_only_way_around(sshd: Sshd, pool: SshPool) -> None:
    assert await say(pool, sshd.target(known_hosts="ignore")) == "in\n"


async def test_an_unknown_host_gets_no_password(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    with pytest.raises(HostKeyUnknown):
        await pool.run(sshd.target(known_hosts=tmp_path / "none", key_file=None, password="secret"), ["true"])
    assert "Failed" not in sshd.log.read_text()
    assert "Postponed" not in sshd.log.read_text()


async def test_a_changed_host_key_is_refused_loudly(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.port} {other.export_public_key().decode()}")
    with pytest.raises(HostKeyChanged) as failed:
        await pool.run(sshd.target(known_hosts=known), ["true"])
    text = str(failed.value)
    assert "HAS CHANGED" in text
    for part in (fingerprint(sshd), other.get_fingerprint(), str(known), "ssh-keygen -R"):
        assert part in text
    assert sshd.connections == 0


async def test_a_record_of_another_key_type_is_a_change_too(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.port} {other.export_public_key().decode()}")
    with pytest.raises(HostKeyChanged, match="ecdsa"):
        await pool.run(sshd.target(known_hosts=known), ["true"])


async def test_a_host_with_several_keys_is_asked_for_the_one_on_record(tmp_path: Path, pool: SshPool) -> None:
    with start_sshd(tmp_path, host_keys=["ecdsa-sha2-nistp256", "ssh-ed25519", "ssh-rsa"]) as sshd:
        for host_key in sorted(sshd.host_key.parent.glob("host_*")):
            public = asyncssh.read_private_key(host_key).export_public_key().decode()
            known = tmp_path / f"known-{host_key.name}"
            known.write_text(f"[127.0.0.1]:{sshd.port} {public}")
            assert await say(pool, sshd.target(known_hosts=known)) == "in\n"


async def test_hashed_entries_comments_and_broken_lines(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    name, key = sshd.host_key_line.split(" ", 1)
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), "sha1").digest()
    hashed = f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()} {key}"
    known.write_text(f"# mine\n\nbroken\n|1|x|y ssh-ed25519 AAAA\n{hashed}\n@strange x y z\n")
    assert await say(pool, sshd.target(known_hosts=known)) == "in\n"


async def test_a_key_under_the_plain_name_serves_every_port_but_is_no_alarm(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    key = sshd.host_key_line.partition(" ")[2]
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    known.write_text(f"127.0.0.1 {other}")
    with pytest.raises(HostKeyUnknown):
        await pool.run(sshd.target(known_hosts=known), ["true"])
    known.write_text(f"127.0.0.1 {key}\n")
    assert await say(pool, sshd.target(known_hosts=known)) == "in\n"


async def test_a_name_that_leads_to_another_known_machine_is_not_that_machine(sshd: Sshd, pool: SshPool) -> None:
    """known_hosts has the key for the address; the name that was configured is not in it."""
    with pytest.raises(HostKeyUnknown, match="localhost"):
        await pool.run(sshd.target(host="localhost"), ["true"])


async def test_a_certificate_authority_vouches_for_a_host(tmp_path: Path, pool: SshPool) -> None:
    authority = private_key(tmp_path / "authority")
    with start_sshd(tmp_path) as sshd:
        certificate = asyncssh.read_private_key(authority).generate_host_certificate(
            asyncssh.read_private_key(sshd.host_key), "pve", principals=["127.0.0.1"]
        )
        certificate.write_certificate(f"{sshd.host_key}-cert.pub")
        sshd.stop()
        sshd.config.write_text(f"HostCertificate {sshd.host_key}-cert.pub\n{sshd.config.read_text()}")
        sshd.start()
        known = tmp_path / "by-authority"
        public = asyncssh.read_private_key(authority).export_public_key().decode()
        known.write_text(f"@cert-authority 127.0.0.1,[127.0.0.1]:* {public}")
        assert await say(pool, sshd.target(known_hosts=known)) == "in\n"
        # the same host, known by its plain key
        assert await say(pool, sshd.target()) == "in\n"


async def test_a_revoked_key_is_refused(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"{sshd.host_key_line}\n@revoked * {sshd.host_key_line.partition(' ')[2]}\n")
    with pytest.raises(HostKeyChanged, match="revoked"):
        await pool.run(sshd.target(known_hosts=known), ["true"])


async def test_a_known_hosts_that_cannot_be_read_is_named(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        await pool.run(sshd.target(known_hosts=tmp_path), ["true"])


# --- credentials


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp384"])
async def test_keys_of_each_kind(sshd: Sshd, pool: SshPool, tmp_path: Path, kind: str) -> None:
    key = private_key(tmp_path / "key", kind)
    with accepted(sshd, key):
        assert await say(pool, sshd.target(key_file=key)) == "in\n"


async def test_an_encrypted_key_with_its_passphrase(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    key = private_key(tmp_path / "key", passphrase="correct horse")
    with accepted(sshd, key, "correct horse"):
        assert await say(pool, sshd.target(key_file=key, key_passphrase="correct horse")) == "in\n"


class accepted:
    """The server accepts the key meanwhile."""

    def __init__(self, sshd: Sshd, key: Path, passphrase: str | None = None) -> None:
        self._file, self._before = sshd.authorized_keys, sshd.authorized_keys.read_bytes()
        self._key = asyncssh.read_private_key(key, passphrase).export_public_key()

    def __enter__(self) -> None:
        self._file.write_bytes(self._before + self._key)

    def __exit__(self, *_: object) -> None:
        self._file.write_bytes(self._before)


@pytest.mark.parametrize(
    ("passphrase", "expected"), [(None, "PROXMOX_SSH_KEY_PASSPHRASE"), ("wrong", "does not open"), ("", "PROXMOX_SSH_KEY_PASSPHRASE")]
)
async def test_an_encrypted_key_without_it_is_named(
    sshd: Sshd, pool: SshPool, tmp_path: Path, passphrase: str | None, expected: str
) -> None:
    key = private_key(tmp_path / "key", passphrase="correct horse")
    with pytest.raises(ConfigError) as failed:
        await pool.run(sshd.target(key_file=key, key_passphrase=passphrase), ["true"])
    assert str(key) in str(failed.value)
    assert expected in str(failed.value)
    assert "correct horse" not in str(failed.value)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not shutil.which("ssh-agent"):
        pytest.skip("ssh-agent is not installed")
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline().startswith("SSH_AUTH_SOCK=")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    yield
    process.terminate()
    process.wait()
    process.stdout.close()


def add_to_agent(key: Path, passphrase: str = "") -> None:
    ask = key.parent / "ask"
    ask.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
    ask.chmod(0o700)
    env = {**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["ssh-add", key], check=True, capture_output=True, env=env)


async def test_the_agent_logs_in(sshd: Sshd, pool: SshPool, agent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # no default keys there
    target = sshd.target(key_file=None, use_agent=True)
    with pytest.raises(SshAuthFailed, match="agent"):
        await pool.run(target, ["true"])
    add_to_agent(sshd.client_key)
    assert await say(pool, target) == "in\n"
    with pytest.raises(SshAuthFailed):
        await pool.run(sshd.target(key_file=None, use_agent=False), ["true"])


async def test_an_encrypted_key_that_the_agent_holds(sshd: Sshd, pool: SshPool, agent: None, tmp_path: Path) -> None:
    key = private_key(tmp_path / "key", passphrase="correct horse")
    asyncssh.read_private_key(key, "correct horse").write_public_key(f"{key}.pub")
    add_to_agent(key, "correct horse")
    with accepted(sshd, key, "correct horse"):
        assert await say(pool, sshd.target(key_file=key, use_agent=True)) == "in\n"


async def test_a_named_key_goes_before_all_the_agent_has(tmp_path: Path, pool: SshPool, agent: None) -> None:
    for number in range(8):
        add_to_agent(private_key(tmp_path / f"other{number}"))
    with start_sshd(tmp_path, options=["MaxAuthTries 3"]) as sshd:
        assert await say(pool, sshd.target(use_agent=True)) == "in\n"


async def test_default_keys_are_tried_when_nothing_is_named(
    sshd: Sshd, pool: SshPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    key = private_key(tmp_path / ".ssh/id_ed25519")
    with accepted(sshd, key):
        assert await say(pool, sshd.target(key_file=None)) == "in\n"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="POSIX permissions")
async def test_a_key_that_others_can_read_is_refused_as_openssh_does(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    key = private_key(tmp_path / "key")
    os.chmod(key, 0o640)
    with pytest.raises(ConfigError) as failed:
        await pool.run(sshd.target(key_file=key), ["true"])
    assert f"chmod 600 {key}" in str(failed.value)
    assert "0640" in str(failed.value)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("missing", None, "cannot be read"),
        ("junk", "hello", "is not a private key"),
        ("id.pub", "ssh-ed25519 AAAA x", "name the private key"),
    ],
)
async def test_a_wrong_key_file_is_named(sshd: Sshd, pool: SshPool, tmp_path: Path, name: str, content: str | None, expected: str) -> None:
    key = tmp_path / name
    if content is not None:
        key.touch(mode=0o600)
        key.write_text(content)
    with pytest.raises(ConfigError) as failed:
        await pool.run(sshd.target(key_file=key), ["true"])
    assert str(key) in str(failed.value)
    assert expected in str(failed.value)


async def test_a_key_that_the_server_refuses(sshd: Sshd, pool: SshPool, tmp_path: Path) -> None:
    key = private_key(tmp_path / "key")
    with pytest.raises(SshAuthFailed) as failed:
        await pool.run(sshd.target(key_file=key), ["true"])
    assert str(key) in str(failed.value)
    assert "authorized_keys" in failed.value.hint
    assert "Nothing was run" in str(failed.value)


@needs_root
async def test_password(sshd: Sshd, pool: SshPool) -> None:
    with account("/bin/sh", sshd, password="s3cret ü") as user:
        target = sshd.target(user=user.name, key_file=None, password="s3cret ü")
        assert await say(pool, target) == "in\n"
        with pytest.raises(SshAuthFailed) as failed:
            await pool.run(sshd.target(user=user.name, key_file=None, password="nope-nope"), ["true"])
        assert "password" in str(failed.value)
        assert "nope-nope" not in str(failed.value)
        assert sshd.log.read_text().count("Failed password") == 1


async def hello(process: Process) -> None:
    process.stdout.write(b"unmarked")
    process.exit(0)


async def test_keyboard_interactive_gets_the_password_in_any_language(tmp_path: Path, pool: SshPool) -> None:
    async with scripted(tmp_path, hello, password="s3cret", interactive=True) as target:
        with pytest.raises(Exception, match="did not start the command"):  # logged in: this server runs nothing
            await pool.run(replace(target, password="s3cret"), ["true"])
        with pytest.raises(SshAuthFailed):
            await pool.run(replace(target, password="wrong"), ["true"])


async def test_password_over_the_stand_in(tmp_path: Path, pool: SshPool) -> None:
    async with scripted(tmp_path, hello, password="s3cret") as target:
        with pytest.raises(Exception, match="did not start the command"):
            await pool.run(replace(target, password="s3cret"), ["true"])
        with pytest.raises(SshAuthFailed):
            await pool.run(replace(target, password="wrong"), ["true"])


# --- the way there


async def test_a_jump_host(tmp_path: Path, pool: SshPool) -> None:
    with start_sshd(tmp_path, name="jump") as jump, start_sshd(tmp_path, name="inner") as inner:
        target = inner.target(jump=jump.target(label="jump host"))
        assert await say(pool, target) == "in\n"
        assert await say(pool, target) == "in\n"
        assert (jump.connections, inner.connections) == (1, 1)
        # the jump host dies: both connections are made again
        jump.drop_connections()
        assert await say(pool, target) == "in\n"
        assert (jump.connections, inner.connections) == (2, 2)


async def test_what_is_wrong_on_the_way_says_which_machine(tmp_path: Path, pool: SshPool) -> None:
    with start_sshd(tmp_path, name="jump") as jump, start_sshd(tmp_path, name="inner") as inner:
        known = tmp_path / "none"
        with pytest.raises(HostKeyUnknown, match="the bastion"):
            await pool.run(inner.target(jump=jump.target(label="the bastion", known_hosts=known)), ["true"])
        with pytest.raises(HostKeyUnknown, match="node test"):
            await pool.run(inner.target(known_hosts=known, jump=jump.target(label="the bastion")), ["true"])
        with pytest.raises(SshUnreachable, match="the bastion") as failed:
            await pool.run(inner.target(port=free_port(), jump=jump.target(label="the bastion")), ["true"])
        assert "AllowTcpForwarding" in failed.value.hint


async def test_a_closed_port(sshd: Sshd, pool: SshPool) -> None:
    with pytest.raises(SshUnreachable, match="cannot be reached") as failed:
        await pool.run(sshd.target(port=free_port()), ["true"])
    assert "nothing was run" in str(failed.value)


async def test_a_name_that_does_not_resolve(sshd: Sshd, pool: SshPool) -> None:
    with pytest.raises(SshUnreachable):
        await pool.run(sshd.target(host="no-such-host.invalid"), ["true"])


async def test_a_mute_port_costs_the_connect_timeout_and_no_more(sshd: Sshd, pool: SshPool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        loop = asyncio.get_running_loop()
        began = loop.time()
        target = sshd.target(port=mute.getsockname()[1], connect_timeout=0.4)
        results = await asyncio.gather(*(pool.run(target, ["true"]) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(result, SshUnreachable) for result in results)
        assert "did not finish the SSH login within 0.4 s" in str(results[0])
        assert loop.time() - began < 3


async def test_a_port_that_speaks_something_else(sshd: Sshd, pool: SshPool) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        with pytest.raises(SshUnreachable, match="before the login"):
            await pool.run(sshd.target(port=server.sockets[0].getsockname()[1]), ["true"])


async def test_the_users_configuration_only_when_asked(sshd: Sshd, pool: SshPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / ".ssh/config"
    config.parent.mkdir()
    config.write_text(
        f"Host pve-alias\n HostName 127.0.0.1\n Port {sshd.port}\n IdentityFile {sshd.client_key}\n UserKnownHostsFile {sshd.known_hosts}\n"
    )
    target = SshTarget("pve-alias", user=sshd.target().user, use_agent=False, connect_timeout=5)
    with pytest.raises(SshUnreachable):
        await pool.run(target, ["true"])
    assert await say(pool, replace(target, config_file=config)) == "in\n"


async def test_no_secret_in_repr() -> None:
    target = SshTarget("h", password="p4ss", key_passphrase="phr4se", jump=SshTarget("j", password="p4ss"))
    assert "p4ss" not in repr(target)
    assert "phr4se" not in repr(target)
