"""Recorded exchanges of two clients, the Inspector and the official Python client, in both protocol eras: every line on the wire.

The files in exchanges/ are for reading: one message after the other, `-->` to the server, `<--` to the client, texts of several lines as
lists of lines, the list of tools shortened to its first (tests/snapshots has each). To record anew: UPDATE_SNAPSHOTS=1 pytest this-file.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Implementation

from proxmox_mcp import __version__
from tests.cluster import served_cluster
from tests.protocol import inspector, relay
from tests.protocol.talking import ROOT
from tests.served_api import environment

PLACE = Path(__file__).parent / "exchanges"
NOW = 1_796_091_400
RELAY = str(Path(relay.__file__))


def held(name: str, record: Path) -> None:
    """The record is the one on file."""
    found = readable(record)
    path = PLACE / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; record it with UPDATE_SNAPSHOTS=1"
    assert found == path.read_text(encoding="utf-8"), f"{path.name} differs; record it with UPDATE_SNAPSHOTS=1 if that is meant"


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


@pytest.mark.anyio
@pytest.mark.parametrize(("era", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_the_python_client(tmp_path: Path, era: str, revision: str) -> None:
    with served_cluster(now=NOW) as api:
        record = tmp_path / "record"
        server = StdioServerParameters(
            command=sys.executable,
            args=[RELAY, str(record), sys.executable, "-m", "proxmox_mcp"],
            cwd=tmp_path,
            env={"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **environment(api)},
        )
        me = Implementation(name="exchange", version="1")
        async with Client(stdio_client(server), mode=era, client_info=me) as client:
            await client.list_tools()
            await client.list_resource_templates()
            await client.get_prompt("safe_upgrade", {"vmid": "101"})
            await client.call_tool("proxmox_list_vms", {"node": "pve1"})
            await client.call_tool("proxmox_vm_power", {"vmid": 100, "action": "stop"})
            await client.read_resource("proxmox://node/pve1")
        held(f"python-{revision}", record)


@pytest.mark.parametrize(("era", "revision"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
def test_the_inspector(tmp_path: Path, era: str, revision: str) -> None:
    inspector.installed()
    with served_cluster(now=NOW) as api:
        record = tmp_path / "record"
        server = (sys.executable, RELAY, str(record), sys.executable, "-m", "proxmox_mcp")
        for arguments in (
            ("--method", "tools/list"),
            ("--method", "tools/call", "--tool-name", "proxmox_list_vms", "--tool-arg", "node=pve1"),
        ):
            assert inspector.inspect(tmp_path, era, environment(api), *arguments, server=server).status == 0
        held(f"inspector-{revision}", record)


@pytest.mark.parametrize("path", sorted(PLACE.glob("*.txt")), ids=lambda path: path.stem)
def test_they_hold_no_address_path_or_secret(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(?:tmp|home|root|work)/|127\.0\.0\.1:\d|PVEAPIToken|5eed5eed", text)
