"""Asks a read tool the way the server does: raw arguments through the pipeline, against a served API."""

from __future__ import annotations

import importlib
import json
from typing import Any

from proxmox_mcp import pipeline
from proxmox_mcp.app import App
from proxmox_mcp.registry import _TOOLS, Tool
from tests.served_api import ServedApi, settings

READ_MODULES = ("overview", "nodes", "vms", "snapshots", "backups", "storage", "disks", "lvm", "zfs", "tasks")


class NoPerson:
    """A peer that a read never needs."""

    async def progress(self, elapsed: float, message: str) -> None:
        raise AssertionError("a read waits for nothing")

    async def approve(self, plan: Any) -> Any:
        raise AssertionError("a read asks nobody")


def read_tools() -> dict[str, Tool]:
    """The 20 read tools, by name without the prefix."""
    for module in READ_MODULES:
        importlib.import_module(f"proxmox_mcp.tools.{module}")
    modules = {f"proxmox_mcp.tools.{module}" for module in READ_MODULES}
    return {name.removeprefix("proxmox_"): tool for name, tool in _TOOLS.items() if tool.function.__module__ in modules}


async def ask(api: ServedApi, called: str, *, clock: float | None = None, timeout: float = 5.0, **arguments: Any) -> str:
    """The text of an answer. Raises ProxmoxMcpError as the pipeline does."""
    tool = read_tools()[called]
    app = App(settings(api, timeout=timeout), **({} if clock is None else {"clock": lambda: clock}))
    try:
        found = await pipeline.run(tool, arguments, app, NoPerson())
    finally:
        await app.close()
    assert isinstance(found, pipeline.Result)
    assert not found.failed
    return found.text


async def ask_json(api: ServedApi, called: str, **arguments: Any) -> dict[str, Any]:
    """The same as a parsed JSON answer."""
    found: dict[str, Any] = json.loads(await ask(api, called, response_format="json", **arguments))
    return found


async def every_page(api: ServedApi, called: str, **arguments: Any) -> list[dict[str, Any]]:
    """All rows of a list, page by page."""
    rows: list[dict[str, Any]] = []
    cursor = None
    for _ in range(10_000):
        page = await ask_json(api, called, **arguments, **({} if cursor is None else {"cursor": cursor}))
        rows += page["items"]
        cursor = page.get("cursor")
        if cursor is None:
            return rows
    raise AssertionError("the pages never end")
