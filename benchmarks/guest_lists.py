"""Lists of guests: tokens a guest, and time and memory from the API's bytes to the first page of 10,000.

python -m benchmarks.guest_lists
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import quicktok

from benchmarks.http_bench import guests
from benchmarks.rows import Row, interleaved
from proxmox_mcp.app import App, Call, Stamp
from proxmox_mcp.arguments import parse
from proxmox_mcp.inventory import Inventory
from proxmox_mcp.pipeline import view_of
from proxmox_mcp.plan import Answer
from proxmox_mcp.registry import Tool, all_tools
from proxmox_mcp.render import render
from tests.cluster import served_cluster
from tests.served_api import settings

FLOOR = 15.7  # tokens a guest of these columns and widths when nothing but the rows is counted


def measure() -> list[Row]:
    """Tokens a guest for a complete list of 500; time and memory for 10,000."""
    each = asyncio.run(_tokens_a_guest())
    data = json.dumps({"data": guests()}, separators=(",", ":")).encode()
    mine, bare = interleaved(lambda: _first_page(data), lambda: json.loads(data), 15)
    peak = int(
        subprocess.run([sys.executable, "-m", "benchmarks.guest_lists", "memory"], capture_output=True, text=True, check=True).stdout
    )
    return [
        Row(
            "a complete list of 500 guests, o200k tokens a guest",
            f"{each:.1f}",
            f"floor of these columns: {FLOOR}; pve-mcp 1.2.0: 47, sent twice",
            f"{each / FLOOR:.2f}x",
            "<= 16",
            each <= 16,
        ),
        Row(
            "10,000 guests: from the API's bytes to the first page",
            f"{mine * 1000:.0f} ms",
            f"json.loads alone: {bare * 1000:.0f} ms",
            f"{mine / bare:.2f}x",
            "<= 2x",
            mine <= 2 * bare,
        ),
        Row("10,000 guests: peak memory over idle", f"{peak / 1e6:.0f} MB", "-", "-", "<= 60 MB", peak <= 60e6),
    ]


def _list_vms() -> Tool:
    return next(tool for tool in all_tools() if tool.name == "proxmox_list_vms")


async def _tokens_a_guest() -> float:
    tool = _list_vms()
    encode = quicktok.get_encoding("o200k_base").encode
    with served_cluster(nodes=3, guests=500) as served:
        app = App(settings(served))
        spent, cursor = 0, None
        while True:
            args = parse(tool.model, {"cursor": cursor} if cursor else {})
            text = render(await tool.function(args, Call(app, Stamp(tool.name), cursor=cursor)), view_of(tool, args))  # type: ignore[arg-type]
            spent += len(encode(text))
            _, found, rest = text.partition("cursor=")
            if not found:
                break
            cursor = rest.split()[0]
        await app.close()
    return spent / 500


class _Bytes:
    """What the REST client gives for these bytes, without the network."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def get(self, *path: Any, **more: Any) -> Any:
        if path == ("nodes",):
            return [{"node": "pve1", "status": "online"}]
        return json.loads(self._data)["data"]


def _first_page(data: bytes) -> str:
    return asyncio.run(_page(data))


async def _page(data: bytes) -> str:
    tool = _list_vms()
    args = parse(tool.model, {})
    call = Call(App(settings()), Stamp(tool.name))
    call.__dict__["inventory"] = Inventory(_Bytes(data))  # type: ignore[arg-type]
    answer = await tool.function(args, call)
    assert isinstance(answer, Answer)
    return render(answer, view_of(tool, args))


def _memory() -> None:
    """Prints the peak over idle in bytes: the bytes of the answer are counted, the tools are loaded before."""
    _first_page(json.dumps({"data": guests()[:10]}).encode())
    file = Path("/proc/self/clear_refs")
    data = json.dumps({"data": guests()}, separators=(",", ":")).encode()
    file.write_text("5")
    idle = _status("VmRSS") - len(data)
    _first_page(data)
    print(_status("VmHWM") - idle)


def _status(name: str) -> int:
    return next(int(line.split()[1]) * 1024 for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        _memory()
    else:
        for row in measure():
            print(row)
