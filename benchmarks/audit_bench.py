"""The audit log: an append that is on disk, against write and fsync of the same bytes; verify of a million lines, and its memory.

python -m benchmarks.audit_bench
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from benchmarks.rows import Row, interleaved
from proxmox_mcp.audit import AuditLog, Keys, verify
from proxmox_mcp.audit.files import segments

KEY = "3f1c9a527de84b60a1c2e3d4f5061728394a5b6c7d8e9fa0b1c2d3e4f5061728"
INTENT = {
    "tool": "proxmox_vm_power",
    "target": "guest 101",
    "request": {"method": "POST", "path": "/nodes/pve1/qemu/101/status/shutdown", "params": {"timeout": 180}},
    "reason": "kernel update, maintenance window of Sunday",
    "risk": "change",
    "flags": ["confirm"],
    "approved_by": "alice",
}
OUTCOME = {"state": "ok", "upid": "UPID:pve1:0003B6A5:01B1A2C3:69A4B000:qmshutdown:101:root@pam!mcp:", "verdict": "OK", "seconds": 12.5}
APPENDS = 10  # in a run: short ones, so that both sides meet the same moods of a disk
RUNS = 301
LINES = 1_000_000
FEW = 10_000


def measure() -> list[Row]:
    """Medians of interleaved runs, without a key and with one."""
    with tempfile.TemporaryDirectory() as place:
        rows = [_append(Path(place) / f"append{bool(key)}", key) for key in ("", KEY)]
        for key in ("", KEY):
            rows += _verify(Path(place), key)
    return rows


def _append(directory: Path, key: str) -> Row:
    log = AuditLog(directory, "api", keys=Keys.load(key, None))
    log.intent(INTENT)
    same = segments(directory, "api")[0].path.read_bytes().splitlines(keepends=True)[-1]
    file = os.open(directory / "reference", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def ours() -> None:
        for _ in range(APPENDS):
            log.intent(INTENT)

    def reference() -> None:
        for _ in range(APPENDS):
            os.write(file, same)
            os.fsync(file)

    mine, bare = (seconds / APPENDS for seconds in interleaved(ours, reference, RUNS))
    log.close()
    os.close(file)
    return Row(
        f"audit append, flushed to disk{_with(key)}",
        f"{mine * 1e6:.0f} us",
        f"write + fsync of the same {len(same)} bytes: {bare * 1e6:.0f} us",
        f"{mine / bare:.2f}x",
        "<= 1.3x",
        mine <= 1.3 * bare,
    )


def _verify(place: Path, key: str) -> list[Row]:
    many, few = place / f"many{bool(key)}", place / "few"
    _write(many, key, LINES)
    if not key:
        _write(few, key, FEW)
    keys = Keys.load(key, None)
    paths = [segment.path for segment in segments(many, "api")]
    mine, bare = interleaved(lambda: _intact(many, keys), lambda: _parse_and_hash(paths, _digest(key)), 3)
    rows = [
        Row(
            f"audit verify of {LINES:,} lines{_with(key)}",
            f"{mine:.1f} s",
            f"json.loads + {'HMAC' if key else 'sha256'} of each line: {bare:.1f} s",
            f"{mine / bare:.2f}x",
            "<= 1.5x",
            mine <= 1.5 * bare,
        )
    ]
    if not key:
        more = _peak(many) - _peak(few)
        size = sum(path.stat().st_size for path in paths) / 1e6
        rows.append(
            Row(
                f"audit verify of {LINES:,} lines: peak memory over that of {FEW:,} lines",
                f"{more / 1e6:.1f} MB",
                f"{size:.0f} MB of log",
                "-",
                "<= 4 MB",
                more <= 4e6,
            )
        )
    return rows


def _with(key: str) -> str:
    return ", with an HMAC key" if key else ""


def _write(directory: Path, key: str, count: int) -> None:
    """Intents with their outcomes; not flushed, for only their content counts here."""
    with patch("proxmox_mcp.audit.log.flush"):
        log = AuditLog(directory, "api", keys=Keys.load(key, None))
        for _ in range(count // 2):
            log.outcome(log.intent(INTENT), OUTCOME)
        log.close()


def _intact(directory: Path, keys: Keys) -> None:
    assert verify(directory, "api", keys).verdict == "INTACT"


def _digest(key: str) -> Callable[[bytes], str]:
    secret = key.encode()
    return (lambda line: hmac.digest(secret, line, "sha256").hex()) if key else (lambda line: hashlib.sha256(line).hexdigest())


def _parse_and_hash(paths: list[Path], digest: Callable[[bytes], str]) -> None:
    for path in paths:
        with open(path, "rb") as file:
            for line in file:
                json.loads(line)
                digest(line)


def _peak(directory: Path) -> int:
    """Bytes at the highest, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.audit_bench", "memory", str(directory)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _memory(directory: str) -> None:
    _intact(Path(directory), Keys.none())
    status = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        _memory(sys.argv[2])
    else:
        for row in measure():
            print(row)
