"""What goes into a request line or body: checked, percent-encoded paths and parameters in the form the API takes."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from proxmox_mcp import text
from proxmox_mcp.errors import InvalidArgument

MAX_PART = 512
# What stands before a value says what the value is, for the error's sake.
_ARGUMENT_AFTER = {
    "nodes": "node", "qemu": "vmid", "lxc": "vmid", "storage": "storage", "tasks": "upid", "snapshot": "snapname", "content": "volume",
    "zfs": "pool", "backup": "job id", "pools": "pool", "resources": "resource id", "rules": "rule", "users": "user", "ipset": "ipset",
}  # fmt: skip
_FORBIDDEN = re.compile(r"[/?#%\s]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")
_LIST_SEPARATORS = re.compile(r"[,;\s\0]")


@dataclass(frozen=True, slots=True)
class Repeat:
    """An array parameter: sent as the same key again for each item (a plain list becomes comma text, as `-list` formats want it)."""

    items: Sequence[str | int]


def path_of(parts: Sequence[str | int]) -> str:
    """The path below /api2/json, "/nodes/pve1/qemu/101/config", from parts that are checked and percent-encoded each.

    Refused: empty parts, "." and "..", "/", "?", "#", "%", blanks, control and invisible characters, other scripts than ASCII, more
    than 512 characters. Two values may hold slashes, as in the API: a volume id as the last part after "content" (its segments are
    checked, other scripts are allowed) and the CIDR as the last part of an IP set. Raises InvalidArgument; nothing was sent.
    """
    if not parts:
        raise InvalidArgument("path", "no path was given")
    last = len(parts) - 1
    encoded = []
    for i, part in enumerate(parts):
        argument = _ARGUMENT_AFTER.get(str(parts[i - 1]), "path") if i else "path"
        if isinstance(part, int) and not isinstance(part, bool):
            if part < 0:
                raise InvalidArgument(argument, "a negative number")
            encoded.append(str(part))
            continue
        if not isinstance(part, str) or not part:
            raise InvalidArgument(argument, "it is empty" if part == "" else f"text is expected, not {type(part).__name__}")
        if len(part) > MAX_PART:
            raise InvalidArgument(argument, f"it has {len(part)} characters, {MAX_PART} are allowed")
        if i == last and i and parts[i - 1] == "content":
            _check_volume(part)
        elif not (i == last and i > 1 and parts[i - 2] == "ipset" and _is_cidr(part)):
            _check_part(argument, part)
        encoded.append(quote(part, safe=":@!"))
    return "/" + "/".join(encoded)


def _check_part(argument: str, part: str) -> None:
    if not (part.isascii() and part.isprintable()):
        raise InvalidArgument(argument, f"{_shown(part)} has characters that no such name can have")
    found = _FORBIDDEN.search(part)
    if found:
        raise InvalidArgument(argument, f"{_shown(part)} contains {found[0]!r}, which no such name can have")
    if ".." in part or part == ".":
        raise InvalidArgument(argument, f"{_shown(part)} looks like a way through directories")


def _check_volume(volume: str) -> None:
    if text.clean(volume) != volume or not volume.isprintable():
        raise InvalidArgument("volume", f"{_shown(volume)} has invisible or control characters")
    if any(character in volume for character in "?#%\\"):
        raise InvalidArgument("volume", f"{_shown(volume)} contains a character that no volume id has")
    if any(segment in ("", ".", "..") for segment in re.split("[/:]", volume)):
        raise InvalidArgument("volume", f"{_shown(volume)} has an empty or relative segment")


def _is_cidr(part: str) -> bool:
    try:
        return bool(ipaddress.ip_interface(part)) and "%" not in part
    except ValueError:
        return False


def _shown(value: str) -> str:
    return repr(text.clean(value, 60))


def encode(params: Mapping[str, Any]) -> str:
    """Parameters as form or query text: None and empty lists dropped, booleans 1/0, numbers in decimal, lists as comma text.

    Text is sent as UTF-8 with everything but letters, digits and "_.-~" percent-encoded: the API splits at ";" too. Raises InvalidArgument
    for what it could not carry unchanged: NUL, lone surrogates, not-a-number, a separator inside a list item.
    """
    pairs = []
    for name, value in params.items():
        if not _NAME.fullmatch(name):
            raise InvalidArgument(text.clean(name, 40), "no parameter has such a name")
        if value is None:
            continue
        if isinstance(value, Repeat):
            pairs += [(name, _scalar(name, item)) for item in value.items]
        elif isinstance(value, (list, tuple, set, frozenset)):
            items = [_item(name, item) for item in (sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)]
            if items:
                pairs.append((name, ",".join(items)))
        else:
            pairs.append((name, _scalar(name, value)))
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs)


def _item(name: str, value: Any) -> str:
    item = _scalar(name, value)
    if not item or _LIST_SEPARATORS.search(item):
        raise InvalidArgument(name, f"the list item {_shown(item)} is empty or contains a separator")
    return item


def _scalar(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(name, f"{value} is not a number that can be sent")
        return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidArgument(name, "it contains a NUL character")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgument(name, "it is not valid Unicode text") from None
        return str(value)
    raise InvalidArgument(name, f"a {type(value).__name__} cannot be sent")
