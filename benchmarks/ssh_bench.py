"""SSH: the second command on a node against the first, and memory while a command prints 1 GB. Needs OpenSSH's sshd on this machine.

python -m benchmarks.ssh_bench
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import Row
from proxmox_mcp.ssh import SshPool, SshTarget
from tests.sshd import start_sshd

ROUNDS = 15
GIGABYTE = 1_000_000_000
MEGABYTE = 1_000_000


def measure() -> list[Row]:
    """Latency and memory against a real sshd on loopback."""
    with tempfile.TemporaryDirectory() as place, start_sshd(Path(place)) as sshd:
        first, second = asyncio.run(_latencies(sshd.target()))
        seconds, peak = asyncio.run(_memory(sshd.target()))
    return [
        Row(
            "second SSH command on a node, against the first",
            f"{second * 1000:.1f} ms",
            f"{first * 1000:.1f} ms with the handshake",
            f"{second / first:.2f}x",
            "<= 0.2x",
            second <= 0.2 * first,
        ),
        Row(
            "peak memory over idle while an SSH command prints 1 GB",
            f"{peak / MEGABYTE:.1f} MB",
            f"1000 MB read in {seconds:.1f} s",
            "-",
            "<= 40 MB",
            peak <= 40 * MEGABYTE,
        ),
    ]


async def _latencies(target: SshTarget) -> tuple[float, float]:
    """Medians in seconds; every round is a new connection, so the two are interleaved."""
    first, second = [], []
    for number in range(ROUNDS + 1):
        pool = SshPool()
        times = []
        for _ in range(2):
            began = time.perf_counter()
            assert (await pool.run(target, ["true"])).ok
            times.append(time.perf_counter() - began)
        await pool.close()
        if number:  # the very first round also imports the library
            first.append(times[0])
            second.append(times[1])
    return statistics.median(first), statistics.median(second)


async def _memory(target: SshTarget) -> tuple[float, int]:
    """(seconds, peak bytes over idle). The pool's own read limit, which would end the command early, is lifted."""
    pool = SshPool(read_limit=2 * GIGABYTE)
    await pool.run(target, ["true"])
    idle = _forget_peak()
    began = time.perf_counter()
    outcome = await pool.run(target, ["head", "-c", str(GIGABYTE), "/dev/zero"], timeout=600)
    seconds = time.perf_counter() - began
    peak = _status("VmHWM")
    await pool.close()
    assert outcome.ok
    assert outcome.stdout_bytes == GIGABYTE
    return seconds, peak - idle


def _forget_peak() -> int:
    """Start the peak anew (Linux) and return what is in memory now, bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


if __name__ == "__main__":
    rows = measure()
    print("\n".join(map(str, rows)))
    sys.exit(not all(row.holds for row in rows))
