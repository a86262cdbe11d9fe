"""One read through the REST client over TLS, warm, against a bare httpx keep-alive request to the same served API.

python -m benchmarks.http_bench
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from typing import Any

import httpx

from benchmarks.rows import Row
from proxmox_mcp.http_client import HttpClient, tls
from tests.served_api import SECRET, TOKEN_ID, Reply, ServedApi, settings

GUESTS = 10_000


def measure() -> list[Row]:
    """Medians in ms."""
    with ServedApi() as api:
        api.on("GET", "/version", {"version": "9.2.11", "release": "9.2"})
        api.on("GET", "/cluster/resources", Reply(body=json.dumps({"data": guests()}, separators=(",", ":")).encode()))
        return asyncio.run(_measure(api))


def guests() -> list[dict[str, Any]]:
    """What /cluster/resources says about guests: the fields and widths of a real answer."""
    return [
        {
            "id": f"qemu/{vmid}", "type": "qemu", "vmid": vmid, "name": f"web-{vmid}", "node": f"pve{vmid % 7}", "status": "running",
            "cpu": vmid % 97 / 997, "maxcpu": 4, "mem": 2_040_109_466 + vmid, "maxmem": 4_294_967_296, "disk": 0, "maxdisk": 34_359_738_368,
            "uptime": 86_400 + vmid, "netin": vmid * 4096, "netout": vmid * 2048, "diskread": vmid * 512, "diskwrite": vmid * 1024,
            "template": 0, "tags": "prod;web",
        }
        for vmid in range(100, 100 + GUESTS)
    ]  # fmt: skip


async def _measure(api: ServedApi) -> list[Row]:
    given = settings(api)
    ours = HttpClient(given)
    async with httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{api.port}/api2/json",
        headers={"Authorization": f"PVEAPIToken={TOKEN_ID}={SECRET}"},
        verify=tls.client_context(given),
        trust_env=False,
    ) as bare:
        rows = [
            await _row("one warm read over TLS", ours, bare, "version", rounds=400),
            await _row(f"a warm read of {GUESTS:,} guests over TLS", ours, bare, "cluster/resources", rounds=15),
        ]
    await ours.close()
    return rows


async def _row(name: str, ours: HttpClient, bare: httpx.AsyncClient, path: str, *, rounds: int) -> Row:
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):  # in turns, so that both meet the same machine
        start = time.perf_counter()
        found = await ours.get(*path.split("/"))
        middle = time.perf_counter()
        expected = (await bare.get(path)).json()["data"]
        end = time.perf_counter()
        assert found == expected
        spent[0].append((middle - start) * 1000)
        spent[1].append((end - middle) * 1000)
    mine, reference = (statistics.median(times) for times in spent)
    return Row(
        name,
        f"{mine:.1f} ms",
        f"bare httpx, kept alive: {reference:.1f} ms",
        f"{mine / reference:.2f}x",
        "<= 1.5x + 2 ms",
        mine <= 1.5 * reference + 2,
    )


if __name__ == "__main__":
    for row in measure():
        print(row)
