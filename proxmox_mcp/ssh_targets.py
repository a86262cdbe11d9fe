"""Where a command can go: settings and vm_ssh_hosts.json -> frozen SSH targets. Pure: nothing is connected here."""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

from proxmox_mcp.errors import ConfigError

KnownHosts = Path | Literal["ignore"] | None

_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_BRACKETED = re.compile(r"\[([^\]]+)\](?::([0-9]{1,5}))?")
_PLAIN = re.compile(r"([^:]+)(?::([0-9]{1,5}))?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?")


@dataclass(frozen=True, slots=True)
class SshTarget:
    """One account on one machine, and how to get there. Secrets stay out of repr.

    known_hosts: None is the user's own file (and the system's), "ignore" switches verification off. Without key_file and password the
    agent and the user's default keys are tried. With `sudo` the argv runs as `sudo -n -- argv`. `config_file` is an OpenSSH client
    configuration; what it says about the host holds where this target has a default. connect_timeout: seconds, TCP and login together.
    """

    host: str
    port: int = 22
    user: str = "root"
    key_file: Path | None = None
    key_passphrase: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    use_agent: bool = True
    known_hosts: KnownHosts = None
    jump: SshTarget | None = None
    sudo: bool = False
    config_file: Path | None = None
    connect_timeout: float = 10.0
    label: str = ""  # for messages: "node pve2", "guest web"

    @property
    def name(self) -> str:
        """What messages call it: the label, else the host."""
        return self.label or self.host

    @property
    def address(self) -> str:
        """user@host:port, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a setting says about a machine; None is "as everywhere else"."""

    host: str
    port: int | None = None
    user: str | None = None

    def on(self, defaults: SshTarget, *, label: str) -> SshTarget:
        """The target with this address and the defaults' credentials."""
        return replace(defaults, host=self.host, port=self.port or defaults.port, user=self.user or defaults.user, label=label)


def parse_endpoint(text: str, setting: str) -> Endpoint:
    """`[user@]host[:port]`; an IPv6 address with a port stands in brackets.

    Raises ConfigError, which names the setting.
    """
    user, at, place = text.strip().rpartition("@")
    parts = _BRACKETED.fullmatch(place) or _PLAIN.fullmatch(place)
    host, port = parts.groups() if parts else (place, None)
    problem = ""
    if not _is_host(host):
        problem = f"{place!r} is not a host name or address"
    elif at and not _USER.fullmatch(user):
        problem = f"{_shown(user + '@')} is not a user name"
    elif port is not None and not 1 <= int(port) <= 65535:
        problem = f"{port} is not a port from 1 to 65535"
    if problem:
        raise ConfigError(f"{setting}: {problem}.", hint=f"Write {setting} as [user@]host[:port], an IPv6 address as [2001:db8::1]:22.")
    return Endpoint(host, int(port) if port else None, user or None)


def _shown(wrong: str) -> str:
    """What may be shown of a wrong user or address: people write user:password and user:password@host."""
    return repr(re.sub(r":[^@]*(?=@)", ":***", wrong))


def parse_nodes(text: str, setting: str = "PROXMOX_SSH_NODES") -> dict[str, Endpoint]:
    """`pve2=10.0.0.2,pve3=root@pve3.lan:2222` -> node name -> Endpoint.

    Raises ConfigError for an entry without a name, a wrong address, or a node that is named twice.
    """
    nodes: dict[str, Endpoint] = {}
    for entry in filter(None, (part.strip() for part in re.split(r"[,\n]", text))):
        node, equals, address = (part.strip() for part in entry.partition("="))
        hint = f"Write {setting} as node=[user@]host[:port],node=..., for example pve2=10.0.0.2,pve3=pve3.lan:2222."
        if not equals or not _NODE.fullmatch(node):
            raise ConfigError(f"{setting}: {_shown(entry)} does not begin with a node's name and '='.", hint=hint)
        if node in nodes:
            raise ConfigError(f"{setting}: node {node} is named twice.", hint=hint)
        nodes[node] = parse_endpoint(address, f"{setting} ({node})")
    return nodes


def parse_known_hosts(text: str, base: Path | None = None) -> KnownHosts:
    """Nothing is the user's own file, "ignore" switches verification off, anything else is a path (relative ones start at `base`)."""
    text = text.strip()
    if not text:
        return None
    return "ignore" if text.lower() == "ignore" else _path(text, base)


_SYNONYMS = {
    "hostname": "host",
    "username": "user",
    "key_file": "key_path",
    "identity_file": "key_path",
    "key_passphrase": "passphrase",
}
_KEYS = ("host", "port", "user", "key_path", "passphrase", "password", "known_hosts", "jump", "sudo", "use_agent", "description")


def read_vm_hosts(path: Path, defaults: SshTarget | None = None) -> tuple[dict[str, SshTarget], dict[str, str]]:
    """vm_ssh_hosts.json -> (alias -> target, alias -> what is wrong with its entry).

    The file is an object, alias -> {"host", "port", "user", "key_path", "passphrase", "password", "known_hosts": path or "ignore", "jump",
    "sudo", "use_agent", "description"}; only host and user are needed. `defaults` (the configured node) lends key, agent, known_hosts and
    timeout to entries without their own, and is the jump host of `"jump": "host"`; any other jump is [user@]host[:port]. An entry with a
    fault is only in the second dict; one with keys that mean nothing is in both. A missing file is two empty dicts; keys that begin
    with "_" are comments. Raises ConfigError when the file cannot be read or is no JSON object.
    """
    targets: dict[str, SshTarget] = {}
    problems: dict[str, str] = {}
    for alias, entry in _entries(path):
        if alias in targets or alias in problems:
            targets.pop(alias, None)
            problems[alias] = "the alias stands in the file twice"
            continue
        try:
            values, unknown = _normal(entry)
            targets[alias] = _vm_target(alias, values, path.parent, defaults)
        except ValueError as wrong:
            problems[alias] = str(wrong)
        except ConfigError as wrong:
            problems[alias] = wrong.what
        else:
            if unknown:
                problems[alias] = f"unknown keys, not used: {', '.join(unknown)}"
    return targets, problems


def read_vm_descriptions(path: Path) -> dict[str, str]:
    """alias -> description, for the entries of vm_ssh_hosts.json that have one."""
    return {
        alias: entry["description"]
        for alias, entry in _entries(path)
        if isinstance(entry, Mapping) and isinstance(entry.get("description"), str) and entry["description"]
    }


def _entries(path: Path) -> Sequence[tuple[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as wrong:
        raise ConfigError(
            f"{path} cannot be read: {wrong}.", hint="Make it readable for the user that runs the server, as UTF-8."
        ) from wrong
    try:
        # objects as pairs: a plain dict would drop the first of two entries with one alias unseen
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as wrong:
        raise ConfigError(
            f"{path} is not valid JSON: {wrong.msg} in line {wrong.lineno}, column {wrong.colno}.", hint="Mend that place."
        ) from wrong
    if not isinstance(pairs, _Pairs):
        raise ConfigError(f"{path} must hold one JSON object.", hint='Write {"alias": {"host": "...", "user": "..."}}.')
    return [(alias, dict(entry) if isinstance(entry, _Pairs) else entry) for alias, entry in pairs if not alias.startswith("_")]


class _Pairs(list[tuple[str, Any]]):
    """A JSON object whose members keep their order and their repetitions."""


def _normal(entry: Any) -> tuple[dict[str, Any], list[str]]:
    """Published key -> value, and the keys that are none."""
    if not isinstance(entry, Mapping):
        raise ValueError('the entry must be an object such as {"host": "10.0.0.5", "user": "admin"}')
    values: dict[str, Any] = {}
    unknown = []
    for key, value in entry.items():
        known = _SYNONYMS.get(key, key)
        if known in values:
            raise ValueError(f"{key} says again what another key says ({known})")
        if known in _KEYS:
            values[known] = value
        elif not key.startswith("_"):
            close = difflib.get_close_matches(key, [*_KEYS, *_SYNONYMS], 1)
            unknown.append(f"{key} (is {close[0]} meant?)" if close else key)
    return values, unknown


def _vm_target(alias: str, values: Mapping[str, Any], base: Path, defaults: SshTarget | None) -> SshTarget:
    if not re.fullmatch(r"[^\s\x00-\x1f\x7f]{1,64}", alias):
        raise ValueError("the alias must be 1 to 64 characters without spaces")
    place = _text(values, "host")
    if not place:
        raise ValueError("host is missing")
    if not _is_host(place):
        raise ValueError(f"host {_shown(place)} is not a host name or address")
    user = _text(values, "user")
    if not user:
        raise ValueError("user is missing")
    if not _USER.fullmatch(user):
        raise ValueError(f"user {_shown(user + '@')} is not a user name")
    port = values.get("port")
    if isinstance(port, str) and port.isascii() and port.isdigit():
        port = int(port)
    if port is None:
        port = 22
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
        raise ValueError(f"port {port!r} is not a number from 1 to 65535")
    template = defaults or SshTarget("")
    own_key, password = _text(values, "key_path"), _text(values, "password")
    own_credentials = bool(own_key or password)
    known_hosts = _text(values, "known_hosts")
    return SshTarget(
        host=place,
        port=port,
        user=user,
        key_file=_path(own_key, base) if own_key else None if own_credentials else template.key_file,
        key_passphrase=_text(values, "passphrase") or (None if own_credentials else template.key_passphrase),
        password=password or None,
        use_agent=_flag(values, "use_agent", template.use_agent),
        known_hosts=parse_known_hosts(known_hosts, base) if known_hosts else template.known_hosts,
        jump=_jump(values.get("jump"), defaults),
        sudo=_flag(values, "sudo", False),
        config_file=template.config_file,
        connect_timeout=template.connect_timeout if math.isfinite(template.connect_timeout) else 10.0,
        label=f"guest {alias}",
    )


def _jump(value: Any, defaults: SshTarget | None) -> SshTarget | None:
    if value is None or value is False or value == "":
        return None
    if value is True or value == "host":
        if not defaults or not defaults.host:
            raise ValueError("jump is the Proxmox host, but PROXMOX_SSH_HOST is not set")
        return defaults
    if not isinstance(value, str):
        raise ValueError('jump must be "host" (the configured Proxmox host) or [user@]host[:port]')
    return parse_endpoint(value, "jump").on(replace(defaults or SshTarget(""), sudo=False), label=f"jump host {value}")


def _is_host(text: str) -> bool:
    with suppress(ValueError):
        return bool(ip_address(text))
    return bool(_HOST.fullmatch(text))


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{key} must be text, not {type(value).__name__}")
    if "\0" in value or "\n" in value:
        raise ValueError(f"{key} holds a line break or a NUL")
    return value if key in ("password", "passphrase") else value.strip()


def _flag(values: Mapping[str, Any], key: str, default: bool) -> bool:
    value = values.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false")
    return value


def _path(text: str, base: Path | None) -> Path:
    path = Path(os.path.expanduser(text))
    return base / path if base and not path.is_absolute() else path
