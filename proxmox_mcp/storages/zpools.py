"""What the answer about a ZFS pool says of its health: "ONLINE" alone does not mean that the data is whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.inventory import number, word

FULL = 0.85  # of a pool; beyond it ZFS slows down and snapshots run out of room

# states of a device that need nobody: a spare waits, a spare works; headings such as "logs" have none
_CALM = frozenset({"ONLINE", "AVAIL", "INUSE", None})
_SCAN_ERRORS = re.compile(r"with (\d+) errors")
_DEEPEST = 16


@dataclass(frozen=True, slots=True)
class Device:
    """A line of the pool's tree. `vdev` is the name above it; the counters are None where Proxmox gives none."""

    name: str
    vdev: str | None
    state: str | None
    read: float | None
    write: float | None
    cksum: float | None
    msg: str | None
    leaf: bool

    @property
    def counters(self) -> dict[str, float | None]:
        return {"read": self.read, "write": self.write, "cksum": self.cksum}

    @property
    def bad(self) -> bool:
        return self.state not in _CALM or any(self.counters.values())

    def __str__(self) -> str:
        counted = ", ".join(f"{name} {count:g}" for name, count in self.counters.items() if count)
        parts = (f"{text.clean(self.name, 120)} {text.clean(self.state or '', 40)}".rstrip(), counted, text.clean(self.msg or "", 120))
        return ", ".join(part for part in parts if part)


def devices(pool: Mapping[str, Any]) -> list[Device]:
    """The devices of GET /nodes/{node}/disks/zfs/{name}, parents first."""
    return list(_walk(pool.get("children"), None, 0))


def _walk(children: Any, parent: str | None, depth: int) -> Iterator[Device]:
    if depth > _DEEPEST or not isinstance(children, list):
        return
    for child in children:
        if not isinstance(child, Mapping):
            continue
        name, below = str(child.get("name") or ""), child.get("children")
        counters = (number(child.get("read")), number(child.get("write")), number(child.get("cksum")))
        yield Device(name, parent, word(child.get("state")), *counters, str(child.get("msg") or "").strip() or None, not below)
        yield from _walk(below, name, depth + 1)


def findings(pool: Mapping[str, Any]) -> list[str]:
    """What is wrong with a pool, worst first; empty when it is healthy. Reads state, errors, the devices and the last scan."""
    found = []
    state = text.clean(str(pool.get("state") or "unknown"), 40)
    if state != "ONLINE":
        found.append(f"state {state}")
    errors = text.clean(str(pool.get("errors") or ""), 300)
    if errors and not errors.startswith("No known data errors"):
        found.append(f"data errors: {errors}")
    bad = [device for device in devices(pool) if device.bad]
    # a group repeats what its members say; it speaks for itself when they are silent
    found += [str(device) for device in bad if device.leaf] or [str(device) for device in bad if any(device.counters.values())]
    scan = _SCAN_ERRORS.search(str(pool.get("scan") or ""))
    if scan and int(scan[1]):
        found.append(f"the last scan found errors: {text.clean(str(pool['scan']), 200)}")
    return found
