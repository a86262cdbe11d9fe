"""What the inventory speaks of: guests, nodes, storages; and the reading half of the API client that it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

from proxmox_mcp import text
from proxmox_mcp.errors import NotTheApi

GuestKind = Literal["qemu", "lxc"]

# storages of these types are shared without saying so
_SHARED_TYPES = frozenset({"nfs", "cifs", "pbs", "cephfs", "rbd", "iscsi", "iscsidirect", "zfs", "glusterfs", "drbd", "esxi"})


class Reader(Protocol):
    """The reading half of the REST client. `path` holds the parts below /api2/json."""

    @property
    def limited_to(self) -> str:
        """Which guests and nodes alone it shows, in words; "" where it shows all that the token sees."""

    async def get(self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None) -> Any:
        """The `data` of the answer."""

    async def get_with_total(
        self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> tuple[Any, int | None]:
        """The `data` and the `total` beside it (logs, task lists)."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A virtual machine or container; `row` is its entry of /cluster/resources (or of its node's list)."""

    vmid: int
    node: str
    kind: GuestKind
    row: Mapping[str, Any] = field(compare=False, repr=False)

    @property
    def name(self) -> str | None:
        return word(self.row.get("name"))

    @property
    def status(self) -> str:
        """running, stopped, or unknown when its node or that node's statistics are silent."""
        return word(self.row.get("status")) or "unknown"

    @property
    def template(self) -> bool:
        return flag(self.row.get("template"))

    @property
    def lock(self) -> str | None:
        return word(self.row.get("lock"))

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(tag for tag in re.split(r"[;, ]+", word(self.row.get("tags")) or "") if tag)


@dataclass(frozen=True, slots=True)
class Node:
    """A member of the cluster; `online` is None when the cluster itself does not know. `row` is its entry of /nodes."""

    name: str
    online: bool | None
    row: Mapping[str, Any] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StorageRef:
    """A storage as the cluster's configuration has it (GET /storage); `nodes` None: every node."""

    name: str
    type: str
    content: frozenset[str]
    nodes: frozenset[str] | None
    shared: bool
    enabled: bool
    row: Mapping[str, Any] = field(compare=False, repr=False)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """From an entry of GET /storage."""
        return cls(
            name=row["storage"],
            type=word(row.get("type")) or "",
            content=_words(row.get("content")),
            nodes=_words(row.get("nodes")) or None,
            shared=flag(row.get("shared")) or word(row.get("type")) in _SHARED_TYPES,
            enabled=not flag(row.get("disable")),
            row=row,
        )


def flag(value: object) -> bool:
    """A boolean of the API: 1 or 0, as number or text; missing is false."""
    return value in (1, "1")


async def read_rows(
    api: Reader, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None
) -> list[dict[str, Any]]:
    """A list of objects. Raises NotTheApi for an answer that is no list: that is not the same as an empty one."""
    return rows_of(await api.get(*path, params=params, timeout=timeout), *path)


async def read_object(
    api: Reader, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None
) -> dict[str, Any]:
    """One object. Raises NotTheApi for an answer that is none."""
    found = await api.get(*path, params=params, timeout=timeout)
    if not isinstance(found, dict):
        raise _of_another_form("an object", path)
    return found


def rows_of(found: object, *path: str | int) -> list[dict[str, Any]]:
    """The objects in a list that `path` answered; see `read_rows`. A list that holds anything else cannot be counted on."""
    if not isinstance(found, list):
        raise _of_another_form("a list", path)
    if not all(isinstance(row, dict) for row in found):
        raise _of_another_form("a list of objects", path)
    return found


def _of_another_form(wanted: str, path: tuple[str | int, ...]) -> NotTheApi:
    return NotTheApi(f"the answer is not {wanted}", status=200, tried=f"GET /{'/'.join(map(str, path))}")


def part(value: object) -> Mapping[str, Any]:
    """An object within an answer; nothing in it when it is missing or something else."""
    return value if isinstance(value, dict) else {}


_GUEST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,126}[A-Za-z0-9])?")


def called(name: object) -> str:
    """A guest's name behind its id, for a sentence: " (web)", "" without one. What Proxmox allows as no name is quoted and cut: it must
    not pass for words of ours, in a question to a person above all."""
    if not isinstance(name, str) or not name:
        return ""
    return f" ({name})" if _GUEST_NAME.fullmatch(name) else f" ({json.dumps(text.clean(name, 60), ensure_ascii=False)})"


def word(value: object) -> str | None:
    """A name or state within an answer; None when it is missing, empty or something else."""
    return value if isinstance(value, str) and value else None


def storage_state(entry: Mapping[str, Any]) -> Literal["active", "disabled", "inactive"]:
    """How a node sees a storage (an entry of its storage list, or a storage's status); a missing `enabled` means enabled."""
    if "enabled" in entry and not flag(entry["enabled"]):
        return "disabled"
    return "active" if flag(entry.get("active")) else "inactive"


def number(value: object) -> float | int | None:
    """A number of the API, which often comes as text ("5400", "0.31"); None for anything else."""
    if isinstance(value, str):
        try:
            value = int(value) if re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value) else float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 2**64 else None  # not-a-number is not below anything either


def share(part: object, whole: object) -> float | None:
    """What fraction of `whole` a `part` is; unknown when either is, or when there is nothing to share."""
    if type(part) is int and type(whole) is int and 0 <= part < 2**64 and 0 < whole < 2**64:
        return part / whole
    some, all_of_it = number(part), number(whole)
    return some / all_of_it if some is not None and all_of_it else None


def _words(value: object) -> frozenset[str]:
    return frozenset(word for word in re.split(r"[,; ]+", value) if word) if isinstance(value, str) else frozenset()
