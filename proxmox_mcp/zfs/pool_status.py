"""What `zpool status` says, as JSON (ZFS 2.3 and later) or as text, in the shape of Proxmox's own answer, so that zpools judges both. Pure.

A pool is {"name", "state", "status", "action", "see", "scan", "errors", "files", "children"}; a device of its tree {"name", "state",
"read", "write", "cksum", "msg", "children"}. What is not told is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from proxmox_mcp import text
from proxmox_mcp.inventory import number, share

Pool = dict[str, Any]

_KEYS = "pool|state|status|action|see|scan|scrub|config|errors|remove|expand|checkpoint|comment|dedup"
_KEY = re.compile(rf"[ ]*({_KEYS}):(?: (.*))?")
_FILES = "Permanent errors have been detected in the following files"
_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTPE]?)")
_UNITS = " KMGTPE"
_MOST_FILES = 1_000
_CLASSES = ("special", "dedup", "logs", "l2cache", "spares")
_HEADINGS = {"l2cache": "cache"}


@dataclass(frozen=True, slots=True)
class Scan:
    """The last scrub or resilver; `percent` while it runs, when told."""

    kind: Literal["scrub", "resilver", "none"]
    state: Literal["running", "paused", "ended"]
    percent: float | None = None


def scan_of(pool: Mapping[str, Any]) -> Scan:
    """What the scan line means."""
    line = str(pool.get("scan") or "")
    kind: Literal["scrub", "resilver"] = "resilver" if line.startswith("resilver") else "scrub"
    done = re.search(r"([0-9.]+)% done", line)
    percent = float(done[1]) if done else None
    if " in progress" in line:
        return Scan(kind, "running", percent)
    if " paused" in line:
        return Scan(kind, "paused", percent)
    return Scan(kind if line and "none requested" not in line else "none", "ended")


# --- JSON


def from_json(stdout: str) -> list[Pool] | None:
    """The pools of `zpool status -j --json-int`; None when this is not such an answer."""
    try:
        found = json.loads(stdout)["pools"]
        return [_json_pool(str(name), entry) for name, entry in found.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _json_pool(name: str, entry: Mapping[str, Any]) -> Pool:
    pool: Pool = {"name": name, "state": str(entry["state"])}
    for key, source in (("status", "status"), ("action", "action"), ("see", "moreinfo")):
        if entry.get(source):
            pool[key] = _joined(str(entry[source]))
    if isinstance(stats := entry.get("scan_stats"), Mapping):
        pool["scan"] = _json_scan(stats)
    files = [str(path) for path in entry.get("errlist") or ()]
    count = number(entry.get("error_count"))
    if count is not None or files:
        many = int(count or len(files))
        pool["errors"] = f"{many} data errors" if many else "No known data errors"
    if files:
        pool["files"] = files[:_MOST_FILES]
    groups = [(_HEADINGS.get(group, group), entry[group]) for group in _CLASSES if entry.get(group)]
    pool["children"] = [
        *_json_devices(entry["vdevs"]),
        *({"name": heading, "children": list(_json_devices(devices))} for heading, devices in groups),
    ]
    return pool


def _json_devices(devices: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, device in devices.items():
        found: dict[str, Any] = {"name": str(device.get("name") or name), "state": device.get("state")}
        for key, source in (("read", "read_errors"), ("write", "write_errors"), ("cksum", "checksum_errors")):
            found[key] = number(device.get(source))
        remark = device.get("aux") or device.get("was") or ""
        if remark:
            found["msg"] = str(remark) if device.get("aux") else f"was {remark}"
        found["children"] = list(_json_devices(device.get("vdevs") or {}))
        yield found


def _json_scan(stats: Mapping[str, Any]) -> str:
    kind = "resilver" if "RESILVER" in str(stats.get("function")) else "scrub"
    state, errors = stats.get("state"), int(number(stats.get("errors")) or 0)
    began, ended = number(stats.get("start_time")), number(stats.get("end_time"))
    repaired = text.size(number(stats.get("processed")))
    if state == "FINISHED":
        verb = "resilvered" if kind == "resilver" else "scrub repaired"
        return f"{verb} {repaired} with {errors} errors on {text.when(ended)}"
    if state == "CANCELED":
        return f"{kind} canceled on {text.when(ended)}"
    if state != "SCANNING":
        return "none requested"
    issued = stats.get("issued") if stats.get("issued") is not None else stats.get("examined")
    whole = (number(stats.get("to_examine")) or 0) - (number(stats.get("skipped")) or 0)
    done = share(issued, whole)
    progress = "" if done is None else f", {min(done, 1) * 100:.2f}% done"
    how = "paused" if number(stats.get("scrub_pause")) else "in progress"
    return f"{kind} {how} since {text.when(began)}{progress}, {repaired} repaired, with {errors} errors so far"


# --- text


def from_text(stdout: str) -> list[Pool]:
    """The pools of `zpool status`, with or without -v, -p, -P; of a name that appears twice the first."""
    pools: dict[str, Pool] = {}
    for block in _blocks(stdout.expandtabs(8).splitlines()):
        pool = _text_pool(block)
        pools.setdefault(pool["name"], pool)
    return list(pools.values())


def _blocks(lines: list[str]) -> Iterator[list[tuple[str, list[str]]]]:
    """For each pool its (key, lines)."""
    block: list[tuple[str, list[str]]] = []
    for line in lines:
        key = _KEY.fullmatch(line)
        if key and key[1] == "pool":
            if block:
                yield block
            block = []
        if key and (block or key[1] == "pool"):
            block.append((key[1], [key[2] or ""]))
        elif block:
            block[-1][1].append(line)
    if block:
        yield block


def _text_pool(block: list[tuple[str, list[str]]]) -> Pool:
    pool: Pool = {}
    for key, lines in block:
        if key == "pool":
            pool["name"] = lines[0].strip()
        elif key == "config":
            pool["children"] = _tree(lines)
        elif key == "errors" and lines[0].startswith(_FILES):
            files = [line.strip() for line in lines[1:] if line.strip()]
            pool |= {"errors": f"{len(files)} data errors", "files": files[:_MOST_FILES]}
        elif key in ("state", "status", "action", "see", "scan", "errors"):
            pool[key] = _joined("\n".join(lines))
    return pool


def _tree(lines: list[str]) -> list[dict[str, Any]]:
    """The devices of a config block by their indentation, two blanks a level."""
    rows = [line for line in lines if line.strip()]
    if not rows or rows[0].split()[:2] != ["NAME", "STATE"]:
        return []
    edge = len(rows[0]) - len(rows[0].lstrip())
    top: list[dict[str, Any]] = []
    open_levels: list[tuple[int, list[dict[str, Any]]]] = [(-1, top)]
    for row in rows[1:]:
        level = (len(row) - len(row.lstrip()) - edge) // 2
        device = _text_device(row)
        while len(open_levels) > 1 and open_levels[-1][0] >= level:
            open_levels.pop()
        # "logs", "cache", "spares" stand beside the pool, their devices below them
        open_levels[-1][1].append(device)
        open_levels.append((level, device["children"]))
    return top


def _text_device(row: str) -> dict[str, Any]:
    words = row.split(None, 5)
    device: dict[str, Any] = {"name": words[0], "state": words[1] if len(words) > 1 else None}
    counters = [_count(word) for word in words[2:5]]
    if len(counters) == 3 and None not in counters:
        device |= dict(zip(("read", "write", "cksum"), counters, strict=True))
        remark = words[5] if len(words) > 5 else ""
    else:
        remark = " ".join(words[2:])
    if remark:
        device["msg"] = remark.strip()
    device["children"] = []
    return device


def _count(word: str) -> float | int | None:
    """A counter: exact with -p, else with a unit of 1024 (26.4K)."""
    found = _COUNT.fullmatch(word)
    if not found:
        return None
    return int(found[1]) if not found[2] and found[1].isdigit() else float(found[1]) * 1024 ** _UNITS.index(found[2] or " ")


def _joined(words: str) -> str:
    return " ".join(words.split())
