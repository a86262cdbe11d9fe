"""A target -> an authenticated connection, or an error that says what was tried, what the other side said and what to do."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path
from typing import Any, cast

import asyncssh

from proxmox_mcp.errors import ConfigError, SshAuthFailed, SshError, SshUnreachable
from proxmox_mcp.ssh import host_keys
from proxmox_mcp.ssh_targets import SshTarget
from proxmox_mcp.text import os_reason

# A connection that gives no sign for KEEPALIVE * (MISSED + 1) seconds is dead.
KEEPALIVE = 10
MISSED = 2


async def connect(target: SshTarget, tunnel: asyncssh.SSHClientConnection | None = None) -> asyncssh.SSHClientConnection:
    """Connect and log in; `tunnel` is the connection to the jump host.

    Raises ConfigError (key or known_hosts file), HostKeyUnknown, HostKeyChanged, SshAuthFailed, SshUnreachable. Nothing was run then.
    """
    credentials = await asyncio.to_thread(_credentials, target)
    place, configured = _configured(target)
    known = None if target.known_hosts == "ignore" else host_keys.expected(target, place[0], place[1], configured)
    client = _Client(target)
    options: dict[str, Any] = {
        "tunnel": tunnel or (),
        "config": [str(target.config_file)] if target.config_file else None,
        "username": place[2],
        "client_factory": lambda: client,
        "known_hosts": known.for_asyncssh if known else None,
        "server_host_key_algs": known.algorithms if known else (),
        "x509_trusted_certs": None,
        "gss_kex": False,
        "gss_auth": False,
        "host_based_auth": False,
        "agent_forwarding": False,
        "compression_algs": None,
        "keepalive_interval": KEEPALIVE,
        "keepalive_count_max": MISSED,
        "login_timeout": None,
        **credentials,
    }
    try:
        async with asyncio.timeout(target.connect_timeout):
            return await asyncssh.connect(target.host, place[1], **options)
    except (asyncssh.Error, OSError, ValueError, RuntimeError) as wrong:  # RuntimeError: asyncssh looks for a home directory
        raise _explained(target, wrong, client, known) from wrong


class _Client(asyncssh.SSHClient):
    """Notes how far the connection came; answers for the password, once."""

    def __init__(self, target: SshTarget) -> None:
        self._password = target.password
        self.reached = False
        self.shown: asyncssh.SSHKey | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.reached = True

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key
        return False

    def password_auth_requested(self) -> str | None:
        password, self._password = self._password, None
        return password

    def kbdint_auth_requested(self) -> str | None:
        return None if self._password is None else ""

    def kbdint_challenge_received(self, name: str, instructions: str, lang: str, prompts: Any) -> list[str] | None:
        if not prompts:
            return []
        # one question whose answer is not echoed is the password, in whatever language it is asked
        password = self.password_auth_requested() if len(prompts) == 1 and not prompts[0][1] else None
        return None if password is None else [password]


def _credentials(target: SshTarget) -> dict[str, Any]:
    """What to log in with, the named credential first: servers hang up after a few wrong ones."""
    agent: Any = () if target.use_agent else None
    if target.key_file:
        order = "publickey,password,keyboard-interactive"
        try:
            keys = _load(target, target.key_file)
        except _Encrypted:
            public = _public_half(target.key_file)
            if not (target.use_agent and os.environ.get("SSH_AUTH_SOCK") and public):
                raise ConfigError(
                    f"The key file of {target.name} is encrypted: {target.key_file}.",
                    hint="Set its passphrase (PROXMOX_SSH_KEY_PASSPHRASE, or passphrase of the entry), or load it into the SSH agent: "
                    f"ssh-add {target.key_file}",
                ) from None
            return {"client_keys": [], "agent_identities": [public], "agent_path": (), "preferred_auth": order}
        return {"client_keys": keys, "agent_path": None, "preferred_auth": order}
    if target.password is not None:
        order = "password,keyboard-interactive,publickey"
        return {"client_keys": () if target.use_agent else None, "agent_path": agent, "preferred_auth": order}
    return {"client_keys": (), "agent_path": agent, "preferred_auth": "publickey"}


class _Encrypted(Exception):
    """The key needs a passphrase and none is set."""


def _load(target: SshTarget, path: Path) -> Any:
    try:
        status = path.stat()
        if sys.platform != "win32" and status.st_uid == os.getuid() and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(
                f"The key file of {target.name} can be read by others: {path} (mode {stat.S_IMODE(status.st_mode):04o}). "
                "It is not used, as OpenSSH would not use it.",
                hint=f"chmod 600 {path}",
            )
        return asyncssh.load_keypairs(str(path), target.key_passphrase or None)
    except OSError as wrong:
        raise ConfigError(
            f"The key file of {target.name} cannot be read: {path}: {wrong.strerror}.",
            hint="Name the private key's file (PROXMOX_SSH_KEY_PATH, or key_path of the entry).",
        ) from wrong
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as wrong:
        text = str(wrong)
        if not target.key_passphrase and "assphrase" in text:
            raise _Encrypted from wrong
        if "bcrypt" in text:
            raise ConfigError(f"{path} is encrypted, and reading it needs the package bcrypt.", hint="pip install bcrypt") from wrong
        if target.key_passphrase and ("passphrase" in text or "decrypt" in text):
            raise ConfigError(
                f"The passphrase does not open the key file of {target.name}: {path}.",
                hint="Check PROXMOX_SSH_KEY_PASSPHRASE (or passphrase of the entry).",
            ) from wrong
        hint = "Name a private key in OpenSSH or PEM format."
        if path.suffix == ".pub":
            hint = f"That is the public half; name the private key: {path.with_suffix('')}"
        raise ConfigError(f"The key file of {target.name} is not a private key: {path}.", hint=hint) from wrong


def _public_half(path: Path) -> asyncssh.SSHKey | None:
    for place in (Path(f"{path}.pub"), path):
        try:
            return asyncssh.read_public_key(str(place))
        except (OSError, asyncssh.KeyImportError):
            continue
    return None


def _configured(target: SshTarget) -> tuple[tuple[str, int, str], list[Path]]:
    """(host, port, user) as an OpenSSH configuration changes them, and the known_hosts files that it names."""
    if not target.config_file:
        return (target.host, target.port, target.user), []
    try:
        options = asyncssh.SSHClientConnectionOptions(
            config=[str(target.config_file)], host=target.host, username=target.user, client_keys=None, agent_path=None
        )
    except (OSError, ValueError, RuntimeError) as wrong:
        raise ConfigError(
            f"The SSH configuration cannot be used: {target.config_file}: {wrong}.", hint="Check PROXMOX_SSH_CONFIG."
        ) from wrong
    said = options.config
    port = target.port if target.port != 22 else int(str(said.get("Port", 22)))
    user = target.user if target.user != "root" else str(said.get("User", "root"))
    files = [Path(os.path.expanduser(name)) for name in cast(list[str], said.get("UserKnownHostsFile", []))]
    return (options.host_key_alias or options.host, port, user), files


def _explained(target: SshTarget, wrong: Exception, client: _Client, known: host_keys.Expected | None) -> SshError | ConfigError:
    where = f"{target.name} ({target.address}{f', via {target.jump.name}' if target.jump else ''})"
    said = wrong.reason if isinstance(wrong, asyncssh.Error) else str(wrong)
    tried = f"SSH connection to {target.address}"
    if isinstance(wrong, asyncssh.HostKeyNotVerifiable) and known:
        return host_keys.refusal(target, known, client.shown, said)
    if isinstance(wrong, asyncssh.PermissionDenied) or "oo many authentication failures" in said:
        return SshAuthFailed(
            f"{where} refused the login: {_tried(target)}. Nothing was run.", tried=tried, said=said, hint=_login_hint(target)
        )
    if isinstance(wrong, TimeoutError):
        stage = "accepted the connection, but did not finish the SSH login" if client.reached else "did not answer"
        return SshUnreachable(
            f"{where} {stage} within {target.connect_timeout:g} s; nothing was run.",
            tried=tried,
            hint="Check address and port (is it an SSH server?), the network and the firewall.",
        )
    if isinstance(wrong, asyncssh.ChannelOpenError):
        return SshUnreachable(
            f"The jump host {target.jump.name if target.jump else ''} could not open a connection to {target.host}:{target.port}.",
            tried=tried,
            said=said,
            hint="Check the address as the jump host sees it, and that its sshd has AllowTcpForwarding.",
        )
    if isinstance(wrong, asyncssh.KeyExchangeFailed):
        return SshUnreachable(
            f"{where} shares no algorithm with us; nothing was run.", tried=tried, said=said, hint="Update its SSH server."
        )
    if isinstance(wrong, asyncssh.Error) or (isinstance(wrong, OSError) and client.reached):
        return SshUnreachable(
            f"{where} ended the connection before the login; nothing was run.",
            tried=tried,
            said=said,
            hint="Is it an SSH server? Its log (journalctl -u ssh) says why it hung up (MaxStartups, a ban, an address filter).",
        )
    if isinstance(wrong, OSError):
        return SshUnreachable(
            f"{where} cannot be reached; nothing was run.",
            tried=tried,
            said=os_reason(wrong),
            hint="Check the address, the port, the network and the firewall.",
        )
    return ConfigError(f"The SSH settings of {target.name} cannot be used: {said}.", hint="Check user, key and PROXMOX_SSH_CONFIG.")


def _tried(target: SshTarget) -> str:
    means = []
    if target.key_file:
        means.append(f"key {target.key_file}")
    if target.password is not None:
        means.append("password")
    if not means:
        means.append("the SSH agent and the default keys" if target.use_agent else "the default keys")
    return f"user {target.user}, {' and '.join(means)}"


def _login_hint(target: SshTarget) -> str:
    if target.key_file:
        return f"Is the public half of {target.key_file} in ~{target.user}/.ssh/authorized_keys there, and is {target.user} the right user?"
    if target.password is not None:
        return f"Check the password, and whether the server takes one from {target.user} (PasswordAuthentication, PermitRootLogin)."
    return "Name a key (PROXMOX_SSH_KEY_PATH) or a password (PROXMOX_SSH_PASSWORD), or load the key into the SSH agent."
