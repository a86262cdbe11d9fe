"""The properties that may be set, and what each one's value looks like. Raises ValueError.

Left out on purpose: what opens data to the network (sharenfs, sharesmb), keys and encryption, what hides or hands a dataset over (zoned,
mlslabel, contexts), and volsize of an existing volume, which Proxmox changes together with the guest's configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.zfs import names

Check = Callable[[str], bool]
LONGEST = 1024

_SIZE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,6})?(?:[KMGTPEkmgtpe](?:i?[Bb])?|[Bb])?", re.ASCII)
_COMPRESSION = re.compile(r"on|off|lz4|lzjb|zle|gzip(?:-[1-9])?|zstd(?:-(?:[1-9]|1[0-9]))?|zstd-fast(?:-(?:[1-9]|[1-9]0|100|500|1000))?")
_COUNT = re.compile(r"none|[0-9]{1,18}", re.ASCII)
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}
# Where a file system may be mounted: not over what the node itself lives on.
_SYSTEM = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "lost+found"}
    | {"proc", "root", "run", "sbin", "sys", "tmp", "usr", "var"}
)
_IN_VAR = ("/var/lib/vz",)


def _one_of(*values: str) -> tuple[Check, str]:
    return values.__contains__, " | ".join(values)


def _power_of_two(low: int, high: int) -> tuple[Check, str]:
    def check(value: str) -> bool:
        found = re.fullmatch(r"([0-9]{1,10})([KMGkmg]?)[Bb]?", value, re.ASCII)
        size = int(found[1]) << _UNITS[found[2].upper()] if found else 0
        return low <= size <= high and size & (size - 1) == 0

    return check, f"a power of two from {low} to {high} bytes, e.g. 128K"


def over_the_system(place: str) -> bool:
    """Whether what is mounted there hides something that the node itself lives on."""
    parts = place.split("/")
    return place.startswith("/") and (parts[1] in {"", *_SYSTEM}) and not any(names.within(place, top) for top in _IN_VAR)


def _mountpoint(value: str) -> bool:
    if value in ("none", "legacy"):
        return True
    parts = value.split("/")
    plain = re.fullmatch(r"/[A-Za-z0-9_.:@+ /-]{1,200}", value, re.ASCII) is not None and not set(parts[1:]) & {"", ".", ".."}
    return plain and not over_the_system(value)


def _matching(pattern: re.Pattern[str]) -> Check:
    return lambda value: pattern.fullmatch(value) is not None


_ON_OFF = _one_of("on", "off")
_LIMIT = (lambda value: value == "none" or _SIZE.fullmatch(value) is not None, "none or a size, e.g. 10G")
_HOW_MANY = (_matching(_COUNT), "none or a number")
_CACHE = _one_of("all", "none", "metadata")

_SETTABLE: Mapping[str, tuple[Check, str]] = {
    **dict.fromkeys(("atime", "relatime", "exec", "setuid", "devices", "readonly"), _ON_OFF),
    **dict.fromkeys(("quota", "refquota", "reservation", "refreservation"), _LIMIT),
    **dict.fromkeys(("filesystem_limit", "snapshot_limit"), _HOW_MANY),
    **dict.fromkeys(("primarycache", "secondarycache"), _CACHE),
    "compression": (_matching(_COMPRESSION), "on | off | lz4 | zstd | zstd-1..19 | zstd-fast | gzip | gzip-1..9 | zle | lzjb"),
    "recordsize": _power_of_two(512, 16 << 20),
    "special_small_blocks": (lambda value: value == "0" or _power_of_two(512, 1 << 20)[0](value), "0 or a power of two up to 1M"),
    "logbias": _one_of("latency", "throughput"),
    "sync": _one_of("standard", "always", "disabled"),
    "snapdir": _one_of("hidden", "visible"),
    "snapdev": _one_of("hidden", "visible"),
    "copies": _one_of("1", "2", "3"),
    "checksum": _one_of("on", "fletcher2", "fletcher4", "sha256", "sha512", "skein", "edonr", "blake3"),
    "dedup": _one_of("on", "off", "verify", "sha256", "sha512", "skein", "blake3"),
    "xattr": _one_of("on", "off", "sa", "dir"),
    "acltype": _one_of("off", "nfsv4", "posix", "posixacl", "noacl"),
    "aclinherit": _one_of("discard", "noallow", "restricted", "passthrough", "passthrough-x"),
    "dnodesize": _one_of("legacy", "auto", "1k", "2k", "4k", "8k", "16k"),
    "redundant_metadata": _one_of("all", "most", "some", "none"),
    "canmount": _one_of("on", "off", "noauto"),
    "mountpoint": (_mountpoint, "none, legacy, or an absolute path outside the system's own directories"),
}
_AT_CREATION: Mapping[str, tuple[Check, str]] = {
    "volsize": (lambda value: _SIZE.fullmatch(value) is not None, "a size, e.g. 10G"),
    "volblocksize": _power_of_two(512, 128 << 10),
    "casesensitivity": _one_of("sensitive", "insensitive", "mixed"),
    "normalization": _one_of("none", "formC", "formD", "formKC", "formKD"),
    "utf8only": _ON_OFF,
}
# What a node does not survive on the file system that it lives on, from the moment it is set or from its next boot.
_DEADLY: Mapping[str, frozenset[str] | None] = {
    "readonly": frozenset({"on"}),
    "exec": frozenset({"off"}),
    "canmount": frozenset({"off", "noauto"}),
    "mountpoint": None,  # whatever the value
}
# What a person should know before saying yes.
_WARNINGS: Mapping[tuple[str, str | None], str] = {
    ("sync", "disabled"): "sync=disabled: what programs believe to be on disk is lost when the power fails, the last seconds of it",
    ("readonly", "on"): "readonly=on: everything that writes there fails from now on",
    ("canmount", "off"): "canmount=off: it is not mounted any more after the next unmount or boot",
    ("mountpoint", None): "a new mountpoint moves it at once, and the children that inherit it; what is open there makes it fail",
    ("exec", "off"): "exec=off: programs that lie there do not start any more",
}
_NEW_DATA = frozenset({"compression", "recordsize", "checksum", "copies", "dedup", "special_small_blocks"})


def check_set(name: str, value: str) -> None:
    """Whether this property of an existing dataset may be set to this value."""
    if name in _AT_CREATION:
        grows = "a guest's disk grows with `qm resize` or in the web interface"
        raise ValueError(grows if name == "volsize" else f"{name} is fixed when the dataset is made")
    _check(name, value, _SETTABLE)


def is_deadly(name: str, value: str) -> bool:
    """Whether a node would not survive this on the file system that it lives on."""
    values = _DEADLY.get(name, frozenset())
    return values is None or value in values


def check_create(given: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a dataset to be made, as texts; `volsize` makes it a volume."""
    found: dict[str, str] = {}
    for name, value in given.items():
        if isinstance(value, bool):
            value = "on" if value else "off"
        if not isinstance(value, str | int):
            raise ValueError(f"{name}: a text or a number is meant")
        _check(name, str(value), {**_SETTABLE, **_AT_CREATION})
        found[name] = str(value)
    if "volblocksize" in found and "volsize" not in found:
        raise ValueError("volblocksize is for a volume: give volsize too")
    return found


_OF_BYTES = frozenset(
    {"used", "available", "referenced", "logicalused", "logicalreferenced", "written", "volsize", "recordsize", "volblocksize"}
    | {"quota", "refquota", "reservation", "refreservation", "special_small_blocks"}
    | {f"usedby{what}" for what in ("snapshots", "dataset", "children", "refreservation")}
)
_NO_LIMIT = frozenset({"quota", "refquota", "reservation", "refreservation"})


def readable(name: str, value: str) -> str:
    """An exact value as `zfs get -p` gives it, its meaning behind it: "98304 (96.0K)", "0 (none)", "1772326800 (2026-03-01 01:00Z)"."""
    if not value.isdecimal() or len(value) > 18:
        return value
    number = int(value)
    if name in _NO_LIMIT and number == 0:
        return f"{value} (none)"
    if name in _OF_BYTES:
        return f"{value} ({text.size(number)})"
    return f"{value} ({text.when(number)})" if name == "creation" else value


def warnings(name: str, value: str, *, new: bool = False) -> tuple[str, ...]:
    """What to know before it is set, on a dataset that exists or on a new one."""
    found = [_WARNINGS[key] for key in ((name, value), (name, None)) if key in _WARNINGS and not (new and key[1] is None)]
    if name == "dedup" and value != "off":
        found.append("dedup needs memory for every block that is written from now on, and switching it off later does not undo it")
    if name in _NEW_DATA and not new:
        found.append(f"{name} applies to data written from now on")
    return tuple(found)


def _check(name: str, value: str, table: Mapping[str, tuple[Check, str]]) -> None:
    if len(value.encode()) > LONGEST or not (value.isprintable() or value == ""):
        raise ValueError(f"{name}: one printable line of at most {LONGEST} bytes")
    if names.is_user_property(name):
        return
    if name not in table:
        raise ValueError(f"{name} is not one that may be set; these are: {', '.join(sorted(table))}, and a user's own (with a colon)")
    check, rule = table[name]
    if not check(value):
        raise ValueError(f"{name} is {rule}")
