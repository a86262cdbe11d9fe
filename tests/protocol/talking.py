"""The official client on the real server, in both protocol eras: in memory, and over stdio with the server as a process."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from proxmox_mcp import config
from proxmox_mcp.app import App
from proxmox_mcp.mcp_instance import build
from proxmox_mcp.server import tools_for
from tests.served_api import ServedApi, environment

ROOT = Path(__file__).resolve().parents[2]
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])  # revisions 2025-11-25 and 2026-07-28


@asynccontextmanager
async def in_memory(api: ServedApi | None, home: Path, era: str = "auto", *, clock: Any = None, **variables: str) -> AsyncIterator[Client]:
    """A client of the server that these variables make; nothing else of the environment counts."""
    given = environment(api) if api else {}
    settings = config.load({"HOME": str(home), "PROXMOX_AUDIT_DIR": str(home / "audit"), **given, **variables})
    app = App(settings, **({"clock": clock} if clock else {}))
    async with Client(build(app, tools_for(settings)), mode=era, raise_exceptions=False) as client:
        yield client


@asynccontextmanager
async def over_stdio(
    home: Path, env: Mapping[str, str], *args: str, era: str = "auto", module: str = "proxmox_mcp", **client: Any
) -> AsyncIterator[Client]:
    """A client of `python -m proxmox_mcp`, started as clients start it; its standard error goes to home/stderr."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", module, *args],
        cwd=home,
        env={"PATH": os.defpath, "HOME": str(home), "XDG_STATE_HOME": str(home), "PYTHONPATH": str(ROOT), **env},
    )
    with (home / "stderr").open("a+") as errors:
        async with Client(stdio_client(server, errlog=errors), mode=era, **client) as connected:
            yield connected


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """The text of an answer that is no failure."""
    failed, text = await ask(client, tool, **arguments)
    assert not failed, text
    return text


async def ask(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Whether it failed, and its text."""
    found = await client.call_tool(tool, arguments)
    assert found.structured_content is None
    return bool(found.is_error), "\n".join(part.text for part in found.content if part.type == "text")


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]
