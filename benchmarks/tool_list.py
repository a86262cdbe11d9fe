"""What the tool list costs: o200k tokens, and the time from the start of the process to the list.

python -m benchmarks.tool_list
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import quicktok

from benchmarks.rows import Row

ROUNDS = 15
ROOT = Path(__file__).resolve().parent.parent
# one tool on the same SDK, nothing else
ONE_TOOL = """
from mcp.server.mcpserver import MCPServer
mcp = MCPServer("one", log_level="WARNING")
@mcp.tool(structured_output=False)
async def ping(text: str) -> str:
    return text
mcp.run()
"""


def measure() -> list[Row]:
    """Tokens of the whole list and of the read-only set, and the cold start."""
    with tempfile.TemporaryDirectory() as place:
        ours = [sys.executable, "-m", "proxmox_mcp"]
        one = Path(place) / "one.py"
        one.write_text(ONE_TOOL)
        tools, _ = listed(ours, place)
        reading, _ = listed([*ours, "--read-only"], place)
        ratio, mine, reference = cold_start(ours, [sys.executable, str(one)], place)
    wire, model = tokens(tools)
    small, _ = tokens(reading)
    return [
        Row(
            f"tools/list of the {len(tools)} tools, o200k tokens on the wire",
            f"{wire:,}",
            "pve-mcp 1.2.0: 25,700",
            f"{wire / 25_700:.2f}x",
            "<= 8,000",
            wire <= 8_000,
        ),
        Row("the same as the model sees it", f"{model:,}", "pve-mcp 1.2.0: 21,900", f"{model / 21_900:.2f}x", "<= 6,500", model <= 6_500),
        Row(f"the read-only set ({len(reading)} tools) on the wire", f"{small:,}", "-", "-", "<= 3,500", small <= 3_500),
        Row(
            "cold start to tools/list",
            f"{mine * 1000:.0f} ms",
            f"one-tool server, same SDK: {reference * 1000:.0f} ms",
            f"{ratio:.2f}x",
            "<= 1.20x",
            ratio <= 1.20,
        ),
    ]


def tokens(tools: list[dict[str, Any]]) -> tuple[int, int]:
    """(on the wire, as the model sees them)."""
    encode = quicktok.get_encoding("o200k_base").encode
    seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    return tuple(len(encode(json.dumps(part, separators=(",", ":")))) for part in (tools, seen))  # type: ignore[return-value]


def cold_start(ours: list[str], reference: list[str], place: str) -> tuple[float, float, float]:
    """Median of the ratios pair by pair, and the medians in seconds."""
    pairs = [(listed(ours, place)[1], listed(reference, place)[1]) for _ in range(ROUNDS + 1)][1:]
    return (
        statistics.median(a / b for a, b in pairs),
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
    )


def listed(argv: list[str], place: str) -> tuple[list[dict[str, Any]], float]:
    """The tools of a server and the seconds from its start to them."""
    began = time.perf_counter()
    env = {"PATH": os.environ["PATH"], "HOME": place, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place, env=env)
    assert server.stdin
    assert server.stdout
    client = {"name": "benchmark", "version": "1"}
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    server.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages))
    server.stdin.flush()
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == 2:
            break
    spent = time.perf_counter() - began
    server.stdin.close()
    server.wait(10)
    server.stdout.close()
    tools: list[dict[str, Any]] = answer["result"]["tools"]
    return tools, spent


if __name__ == "__main__":
    for row in measure():
        print(row)
