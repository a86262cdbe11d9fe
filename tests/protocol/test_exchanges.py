"""A recorded exchange of the official Python client in both protocol eras: every line on the wire. Those of the Inspector lie beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Implementation

from tests.cluster import served_cluster
from tests.protocol.recording import NOW, PLACE, held, relayed
from tests.protocol.talking import ROOT
from tests.served_api import environment


@pytest.mark.anyio
@pytest.mark.parametrize(("era", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_the_python_client(tmp_path: Path, era: str, revision: str) -> None:
    with served_cluster(now=NOW) as api:
        record = tmp_path / "record"
        server = StdioServerParameters(
            command=relayed(record)[0],
            args=relayed(record)[1:],
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


@pytest.mark.parametrize("path", sorted(PLACE.glob("*.txt")), ids=lambda path: path.stem)
def test_they_hold_no_address_path_or_secret(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(?:tmp|home|root|work)/|127\.0\.0\.1:\d|PVEAPIToken|5eed5eed", text)
