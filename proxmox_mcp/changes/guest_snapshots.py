"""Snapshots of a guest: the rule for their names, the list, which of them are newer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxmox_mcp.inventory import GuestKind, Reader, flag, number, read_rows, word

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,39}")
_RULE = "a snapshot's name begins with a letter, then letters, digits, _ and -, 2 to 40 characters in all"
_RESERVED = {"qemu": ("current", "pending"), "lxc": ("current", "vzdump")}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot. `taken` in Unix seconds; `state` is set (prepare, delete) while it is unfinished or after it failed."""

    name: str
    taken: int | None
    parent: str | None
    with_ram: bool
    state: str


def check_name(name: str) -> str:
    """The name, when it follows the rule and is not the entry for the present. Raises ValueError with a proposal."""
    if name.lower() == "current":
        raise ValueError(f"'current' is the present state, not a snapshot; e.g. {proposal(name)}")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{_RULE}; e.g. {proposal(name)}")
    return name


def reserved(name: str, kind: GuestKind) -> str:
    """Why a new snapshot of this kind of guest must not be called so; "" when it may."""
    if name.lower() not in _RESERVED[kind]:
        return ""
    return f"'{name}' is a reserved name for {'VMs' if kind == 'qemu' else 'containers'}; e.g. {proposal(name)}"


def proposal(name: str) -> str:
    """A name by the rule that is like this one: 2026-03-01 -> s2026-03-01, "pre upgrade" -> pre_upgrade, güncelleme -> guncelleme."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")
    if plain.lower() in {word for words in _RESERVED.values() for word in words}:
        plain = f"s_{plain}"
    if len(plain) < 2 or not plain[0].isalpha():
        plain = f"s{plain}" if plain else "snap"
    return plain[:40]


async def listed(api: Reader, base: Sequence[str | int]) -> list[Snapshot]:
    """The snapshots of the guest below this path, oldest first (GET .../snapshot); the entry for the present is no snapshot."""
    rows = await read_rows(api, *base, "snapshot")
    found = [_snapshot(row) for row in rows if row.get("name") not in (None, "current")]
    return sorted(found, key=lambda snapshot: (snapshot.taken or 0, snapshot.name))


def _snapshot(row: Mapping[str, Any]) -> Snapshot:
    taken = number(row.get("snaptime"))
    return Snapshot(
        str(row["name"]),
        int(taken) if taken is not None else None,
        word(row.get("parent")),
        flag(row.get("vmstate")),
        str(row.get("snapstate") or ""),
    )


def newer_than(snapshot: Snapshot, known: Sequence[Snapshot]) -> list[Snapshot]:
    """The snapshots taken after this one, in whatever branch; of one of unknown age its descendants."""
    if snapshot.taken is not None:
        return [other for other in known if other.name != snapshot.name and (other.taken or 0) > snapshot.taken]
    below: set[str] = {snapshot.name}
    found: list[Snapshot] = []
    for _ in known:
        fresh = [other for other in known if other.parent in below and other.name not in below]
        below |= {other.name for other in fresh}
        found += fresh
    return found


def fingerprint(known: Sequence[Snapshot]) -> str:
    """What makes a changed list of snapshots another list."""
    return ",".join(f"{snapshot.name}@{snapshot.taken}{snapshot.state}" for snapshot in known)
