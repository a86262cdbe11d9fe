"""Exchanges on the wire as files for reading, and the comparison with them.

One message after the other, `-->` to the server, `<--` to the client, texts of several lines as lists of lines, the list of tools shortened
to its first (tests/snapshots has each). To record anew: UPDATE_SNAPSHOTS=1 pytest tests/protocol.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from proxmox_mcp import __version__
from tests.protocol import relay

PLACE = Path(__file__).parent / "exchanges"
NOW = 1_796_091_400  # of the served cluster


def relayed(record: Path) -> list[str]:
    """The command that serves and writes every line to `record`."""
    return [sys.executable, str(Path(relay.__file__)), str(record), sys.executable, "-m", "proxmox_mcp"]


def held(name: str, record: Path) -> None:
    """The record is the one on file; a message may hold more than it did then, a newer SDK adds fields of its own."""
    path = PLACE / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(readable(record), encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; record it with UPDATE_SNAPSHOTS=1"
    kept, found = messages(path.read_text(encoding="utf-8")), messages(readable(record))
    assert [arrow for arrow, _ in found] == [arrow for arrow, _ in kept]
    for number, (one, other) in enumerate(zip(kept, found, strict=True), 1):
        assert within(one[1], other[1]), f"{path.name}: message {number} differs; record it with UPDATE_SNAPSHOTS=1 if that is meant"


def messages(text: str) -> list[tuple[str, Any]]:
    """A file as (arrow, message)."""
    return [(block[:3], json.loads(block[4:])) for block in text.split("\n\n") if block.strip()]


def within(kept: Any, found: Any) -> bool:
    """Whether everything that was recorded is there."""
    if isinstance(kept, dict) and isinstance(found, dict):
        return all(key in found and within(value, found[key]) for key, value in kept.items())
    if isinstance(kept, list) and isinstance(found, list):
        return len(kept) == len(found) and all(map(within, kept, found))
    return bool(kept == found)


def readable(record: Path) -> str:
    blocks = []
    for line in record.read_text(encoding="utf-8").splitlines():
        arrow, _, message = line.partition(" ")
        blocks.append(f"{arrow} {json.dumps(plain(json.loads(message)), indent=1, ensure_ascii=False, sort_keys=True)}\n")
    return "\n".join(blocks)


def plain(value: Any, name: str = "") -> Any:
    """Without what differs from run to run; long lists short, long texts as lines."""
    if isinstance(value, dict):
        if value.get("name") == "pve-mcp" and "version" in value:
            assert value["version"] == __version__
            value = {**value, "version": "(ours)"}
        return {key: plain(inner, key) for key, inner in value.items()}
    if name == "tools" and isinstance(value, list):
        return [plain(value[0]), f"... {len(value) - 1} more, each in tests/snapshots"]
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str) and "\n" in value:
        return value.splitlines()
    return value
