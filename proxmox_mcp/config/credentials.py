"""Whose token: user, token name and secret, however they were pasted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from proxmox_mcp import secrets
from proxmox_mcp.config import files, values
from proxmox_mcp.config.reader import TOKEN_SECRET, Reader

_USER, _NAME, _VALUE, _FILE = "PROXMOX_USER", "PROXMOX_TOKEN_NAME", "PROXMOX_TOKEN_VALUE", "PROXMOX_TOKEN_FILE"


def read(reader: Reader) -> dict[str, Any]:
    """`user`, `token_name` and `token_value`.

    The web interface shows a token as user@realm!name, and the whole header is `PVEAPIToken=user@realm!name=secret`: each variable may
    hold any of these, as long as nothing contradicts. Contradictions and missing pieces are noted; the secret is never shown.
    """
    users: dict[str, str] = {}  # which variable said what
    names: dict[str, str] = {}
    secret: dict[str, str] = {}
    pasted = {name: reader.text(name) for name in (_USER, _NAME, _VALUE)} | {_FILE: _from_file(reader)}
    for variable, text in pasted.items():
        owner, name, value = _taken_apart(text, variable)
        users |= {variable: owner} if owner else {}
        names |= {variable: name} if name else {}
        secret |= {variable: value} if value else {}
        secrets.register(value)
    changed = [variable for variable, name in names.items() if TOKEN_SECRET.fullmatch(name)]
    if any(TOKEN_SECRET.fullmatch(value) for value in secret.values()):
        changed = []  # whoever has a secret may call the token what they like
    for variable in changed:
        secrets.register(names.pop(variable))
        reader.wrong(variable, "a secret stands where the token's name belongs (changed places?)", shown="")
    if not users:
        reader.missing(_USER, "the user of the token with its realm, such as root@pam")
    if not names and not changed:
        reader.missing(_NAME, "the name of the API token (Datacenter, Permissions, API Tokens)")
    if not secret and not reader.given(_FILE):
        reader.missing(_VALUE, f"the secret of the API token, or {_FILE} with a file that holds it")
    if len(set(secret.values())) > 1:
        reader.wrong(_VALUE, f"{' and '.join(secret)} hold different secrets; leave one of them out")
    return {
        "user": _agreed(reader, users, values.user),
        "token_name": _agreed(reader, names, values.token_name),
        "token_value": _agreed(reader, secret, values.token_value),
    }


def _taken_apart(pasted: str, variable: str) -> tuple[str, str, str]:
    """User, token name and secret in what one variable holds; "" for what it does not."""
    rest = re.sub(r"(?i)^(?:authorization\s*:\s*)?pveapitoken(?:=|\s+)", "", pasted)
    if re.search(r"(?i)%(?:40|21|3d)", rest):
        rest = unquote(rest)
    owner, bang, tail = rest.rpartition("!")
    if variable == _USER and not bang:
        return rest, "", ""
    name, equals, value = (values.bare(part) for part in tail.partition("="))
    if variable in (_VALUE, _FILE) and not bang and not equals:
        return "", "", name
    return values.bare(owner), name, value


def _agreed(reader: Reader, said: dict[str, str], check: Callable[[str], str]) -> str:
    """The one value that all variables name, checked; "" (and a problem) for a wrong one."""
    if not said:
        return ""
    (variable, value), *others = said.items()
    is_secret = check is values.token_value
    for other, different in others:
        if different != value and not is_secret:
            reader.wrong(other, f"it says {different}, and {variable} says {value}; leave one of them out", shown="")
    try:
        return check(value)
    except ValueError as e:
        reader.wrong(_VALUE if is_secret else variable, str(e), shown=value)
        return ""


def _from_file(reader: Reader) -> str:
    path = reader.path(_FILE)
    if path is None:
        return ""
    try:
        found = files.read_token(path)
    except (OSError, ValueError) as e:
        reader.wrong(_FILE, f"it cannot be read: {getattr(e, 'strerror', None) or e}")
        return ""
    reader.warn_if_exposed(path, _FILE)
    return values.bare(found)
