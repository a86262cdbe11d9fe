"""Reads all variables into Settings. Nothing raises: what is wrong is collected with its mending step, and a gate set wrong is closed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proxmox_mcp import secrets
from proxmox_mcp.config import credentials, files, values
from proxmox_mcp.config.reader import Reader
from proxmox_mcp.config.settings import Member, Settings

_NOTHING = ((0, 0),)  # a limit that no guest satisfies


def load(environ: Mapping[str, str] | None = None, *, base: Path | None = None) -> Settings:
    """Settings from `environ` (default: the process's) and the first .env found; the environment wins, empty counts as not set.

    A .env is PROXMOX_ENV_FILE, else beside the package (`base`; the repository's root when run from a checkout), in the user's
    configuration directory, or in the working directory (unless the environment gives credentials). Secrets are registered with
    `proxmox_mcp.secrets`.
    """
    base = base or files.beside_package()
    reader, env_file, searched = _sources(os.environ if environ is None else environ, base)
    found: dict[str, Any] = {"env_file": env_file, "searched": searched}
    found |= _connection(reader)
    found |= credentials.read(reader)
    found |= _gates(reader)
    found |= _audit(reader)
    found |= _ssh(reader, found["members"])
    found["vm_ssh_hosts"] = _hosts_file(reader, env_file, base)
    reader.look_for_misspellings()
    return Settings(
        **found, problems=tuple(reader.problems), ssh_problems=tuple(reader.ssh_problems), warnings=tuple(dict.fromkeys(reader.warnings))
    )


def _sources(environ: Mapping[str, str], base: Path | None) -> tuple[Reader, Path | None, tuple[Path, ...]]:
    reader = Reader(environ)
    named = reader.path("PROXMOX_ENV_FILE")
    if named is not None:
        searched = [named]
        if not files.is_file(named):
            reader.wrong("PROXMOX_ENV_FILE", f"{files.absent(named)}; name the .env file")
    elif reader.given("PROXMOX_ENV_FILE"):
        searched = []
    else:
        searched = files.places(base)
    env_file = next((path for path in searched if files.is_file(path)), None)
    if env_file is not None and named is None and env_file not in files.owned(base) and (given := _credentials(reader)):
        # clients start the server in the project that is open: its .env must not lead credentials elsewhere (proxy, verification, gates)
        reader.warnings.append(
            f"{env_file} was not read: {given} comes from the environment, and a file of the working directory must not change "
            "where it goes. If the file is yours, name it with PROXMOX_ENV_FILE."
        )
        env_file = None
    if env_file is not None:
        reader.add_file(env_file)
    elif named is None:
        reader.warnings += [f"{other} was not read: rename it to .env" for other in files.misnamed(searched)]
    reader.ssh_problems += reader.problems  # what could not be read may hold gates, and shells have the same ones
    return reader, env_file, tuple(searched)


def _credentials(reader: Reader) -> str:
    """The first credential that the environment itself gives, by name; "" for none."""
    names = ("PROXMOX_TOKEN_VALUE", "PROXMOX_TOKEN_FILE", "PROXMOX_SSH_PASSWORD", "PROXMOX_SSH_KEY_PATH")
    return next((name for name in names if reader.given(name)), "")


def _connection(reader: Reader) -> dict[str, Any]:
    verify, ca_file = _verification(reader)
    pins = reader.parsed("PROXMOX_TLS_FINGERPRINT", values.fingerprints, "")
    if not verify and not pins:
        reader.warnings.append(
            "TLS verification is off (PROXMOX_VERIFY_SSL=false): whoever answers at this address gets the token. "
            "PROXMOX_TLS_FINGERPRINT or PROXMOX_CA_FILE make it safe; `pve-mcp doctor` prints the fingerprint."
        )
    return {
        "members": _members(reader),
        "verify_tls": verify,
        "ca_file": ca_file,
        "tls_fingerprint": pins,
        "timeout": reader.parsed("PROXMOX_TIMEOUT", values.seconds(0.1, 3600), 30.0),
        "max_concurrency": reader.parsed("PROXMOX_MAX_CONCURRENCY", values.whole(1, 64), 8),
        "proxy": _proxy(reader),
    }


def _proxy(reader: Reader) -> str:
    proxy = reader.parsed("PROXMOX_PROXY", values.proxy, "")
    user_info = proxy.rpartition("@")[0].rpartition("//")[2]
    secrets.register(user_info.partition(":")[2])
    return proxy


def _members(reader: Reader) -> tuple[Member, ...]:
    stated = reader.parsed("PROXMOX_PORT", values.whole(1, 65535), None)
    given = reader.text("PROXMOX_HOST")
    if not given:
        reader.missing("PROXMOX_HOST", "the address of a node, such as pve.lan")
        return ()
    members: dict[tuple[str, int], Member] = {}
    for item in values.items(given):
        try:
            member, named_port = values.member(item, stated or 8006)
        except ValueError as e:
            reader.wrong("PROXMOX_HOST", str(e), shown=item.rpartition("@")[2])
            continue
        if named_port and stated not in (None, member.port):
            reader.wrong(
                "PROXMOX_HOST", f"it names port {member.port}, and PROXMOX_PORT={stated} another one; leave one of them out", shown=item
            )
        members.setdefault((member.host.lower(), member.port), member)
    return tuple(members.values())


def _verification(reader: Reader) -> tuple[bool, Path | None]:
    """Whether to verify, and against which authority. PROXMOX_VERIFY_SSL may be a flag or, as elsewhere, the path of a CA file."""
    name, verify, ca_file = "PROXMOX_VERIFY_SSL", True, None
    given = reader.text(name)
    if given:
        try:
            verify = values.flag(given)
        except ValueError:
            path = reader.path(name)
            if path is not None and files.is_file(path):
                ca_file = _authority(reader, name, path)
            elif path is not None:
                reader.wrong(name, "write true or false, or the path of a CA file that exists")
    named = reader.path("PROXMOX_CA_FILE")
    if named is None:
        return verify, ca_file
    if not verify:
        reader.warnings.append("PROXMOX_CA_FILE is not used, because PROXMOX_VERIFY_SSL=false switches verification off.")
    if not files.is_file(named):
        reader.wrong("PROXMOX_CA_FILE", f"{files.absent(named)}; copy /etc/pve/pve-root-ca.pem from a node")
        return verify, ca_file
    return verify, _authority(reader, "PROXMOX_CA_FILE", named)


def _authority(reader: Reader, name: str, path: Path) -> Path | None:
    try:
        content = files.read_text(path)
    except (OSError, ValueError):
        content = ""
    if "-----BEGIN CERTIFICATE-----" in content or "-----BEGIN TRUSTED CERTIFICATE-----" in content:
        return path
    reader.wrong(name, "it holds no certificate in PEM form that can be read; copy /etc/pve/pve-root-ca.pem from a node")
    return None


def _gates(reader: Reader) -> dict[str, Any]:
    return {
        "read_only": reader.parsed("PROXMOX_READ_ONLY", values.flag, False, wrong=True),
        "approval": reader.parsed("PROXMOX_APPROVAL", values.choice("off", "data_loss", "all"), "data_loss", wrong="all"),
        "approval_fallback": reader.parsed("PROXMOX_APPROVAL_FALLBACK", values.choice("allow", "deny"), "allow", wrong="deny"),
        "max_wait": reader.parsed("PROXMOX_MAX_WAIT", values.seconds(0, 86_400), 50.0),
        "toolsets": reader.parsed("PROXMOX_TOOLSETS", values.names, ()),
        "tools": reader.parsed("PROXMOX_TOOLS", values.names, ()),
        "exclude_tools": reader.parsed("PROXMOX_EXCLUDE_TOOLS", values.names, ()),
        "allow_vmids": reader.parsed("PROXMOX_ALLOW_VMIDS", values.vmids, (), wrong=_NOTHING),
        "allow_nodes": reader.parsed("PROXMOX_ALLOW_NODES", values.nodes, (), wrong=("-",)),
        "limit_reads": reader.parsed("PROXMOX_LIMIT_READS", values.flag, False, wrong=True),
        "allow_secret_reads": reader.parsed("PROXMOX_ALLOW_SECRET_READS", values.flag, False),
    }


def _audit(reader: Reader) -> dict[str, Any]:
    before = len(reader.problems)
    key = reader.raw("PROXMOX_AUDIT_HMAC_KEY").strip()
    secrets.register(key)
    key_file = reader.path("PROXMOX_AUDIT_HMAC_KEY_FILE")
    if key_file is not None:
        try:
            for line in files.read_text(key_file).splitlines():
                secrets.register(line.strip())
            reader.warn_if_exposed(key_file, "PROXMOX_AUDIT_HMAC_KEY_FILE")
        except (OSError, ValueError) as e:
            reader.wrong("PROXMOX_AUDIT_HMAC_KEY_FILE", f"it cannot be read ({_reason(e)}); name an existing file")
    directory = reader.path("PROXMOX_AUDIT_DIR")
    reader.ssh_problems += reader.problems[before:]  # commands are not to be recorded elsewhere than the owner said
    return {"audit_dir": directory, "audit_hmac_key": key, "audit_hmac_key_file": key_file}


def _ssh(reader: Reader, members: tuple[Member, ...]) -> dict[str, Any]:
    stated = reader.parsed("PROXMOX_SSH_PORT", values.whole(1, 65535), None, ssh=True)
    port = stated or 22
    host = members[0].host if members else ""
    if reader.text("PROXMOX_SSH_HOST"):
        target, named_port = reader.parsed(
            "PROXMOX_SSH_HOST", lambda value: values.member(value, port), (Member("", port), False), ssh=True
        )
        if named_port and stated not in (None, target.port):
            reader.wrong("PROXMOX_SSH_HOST", f"it names port {target.port}, and PROXMOX_SSH_PORT={stated} another one", ssh=True)
        host, port = target.host, target.port
    known_hosts = reader.text("PROXMOX_SSH_KNOWN_HOSTS")
    if known_hosts.lower() == "ignore":
        known_hosts = "ignore"
        reader.warnings.append("SSH host keys are not checked (PROXMOX_SSH_KNOWN_HOSTS=ignore): whoever answers gets the commands.")
    elif known_hosts:
        known_hosts = str(reader.path("PROXMOX_SSH_KNOWN_HOSTS", ssh=True) or "")
    password, passphrase = reader.raw("PROXMOX_SSH_PASSWORD"), reader.raw("PROXMOX_SSH_KEY_PASSPHRASE")
    secrets.register(password)
    secrets.register(passphrase)
    return {
        "ssh_host": host,
        "ssh_port": port,
        "ssh_user": reader.parsed("PROXMOX_SSH_USER", values.ssh_user, "root", ssh=True),
        "ssh_key_path": _private_key(reader),
        "ssh_key_passphrase": passphrase,
        "ssh_password": password,
        "ssh_known_hosts": known_hosts,
        "ssh_nodes": reader.parsed("PROXMOX_SSH_NODES", values.ssh_nodes, "", ssh=True),
        "ssh_jump": reader.parsed("PROXMOX_SSH_JUMP", values.jump, "", ssh=True),
        "ssh_sudo": reader.parsed("PROXMOX_SSH_SUDO", values.flag, False, ssh=True),
        "ssh_timeout": reader.parsed("PROXMOX_SSH_TIMEOUT", values.seconds(0.1, 600), 30.0, ssh=True),
        "ssh_config": _ssh_config(reader),
        "zfs_send_dirs": reader.parsed("PROXMOX_ZFS_SEND_DIRS", values.remote_dirs, (), ssh=True),
    }


def _private_key(reader: Reader) -> Path | None:
    name = "PROXMOX_SSH_KEY_PATH"
    path = reader.path(name, ssh=True)
    if path is None:
        return None
    if not files.is_file(path):
        reader.wrong(name, f"{files.absent(path)}; name the private key", ssh=True)
    elif path.suffix == ".pub":
        reader.wrong(name, "that is the public key; name the private one beside it, without .pub", ssh=True)
    else:
        reader.warn_if_exposed(path, name)
    return path


def _ssh_config(reader: Reader) -> Path | None:
    name = "PROXMOX_SSH_CONFIG"
    given = reader.text(name)
    try:
        path = Path(os.path.expanduser("~/.ssh/config")) if given and values.flag(given) else None
    except ValueError:
        path = reader.path(name, ssh=True)
    if path is not None and not files.is_file(path):
        reader.wrong(name, f"there is no file {path}", ssh=True)
    return path


def _hosts_file(reader: Reader, env_file: Path | None, base: Path | None) -> Path | None:
    name = "PROXMOX_VM_SSH_HOSTS"
    named = reader.path(name, ssh=True)
    if named is not None:
        if not files.is_file(named):
            reader.wrong(name, f"{files.absent(named)}; vm_ssh_hosts.example.json shows what it holds", ssh=True)
        return named
    for directory in (env_file.parent if env_file else None, base, files.user_directory()):
        if directory is not None and files.is_file(directory / files.HOSTS_FILE):
            return directory / files.HOSTS_FILE
    return None


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
