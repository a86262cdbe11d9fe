"""The big cluster served over TLS to the real server: what the first page of each list costs in time and in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.protocol.node_shell import node_shell
from tests.scale.lists import LISTS
from tests.scale.world import Size, cluster, snapshot_list
from tests.served_api import environment
from tests.stdio import Server, serving

MORE = ("health_overview",)  # no list, and asks for everything


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one first page: seconds on the wall and of the server's processor, MB of memory over the idle server, rows on the page."""

    name: str
    seconds: float
    cpu: float
    memory: float
    failed: bool
    text: str


@contextmanager
def running(size: Size, tmp_path: Path) -> Iterator[Server]:
    """The server on a cluster of this size, everything loaded that a first call loads."""
    listed = tmp_path / "snapshots"
    listed.write_text(snapshot_list(size.snapshots))
    programs = {"zfs": f"cat {listed}", "zpool": "printf 'tank\\tONLINE\\n'", "uname": "echo pve1"}
    with cluster(size) as api, node_shell(tmp_path, programs=programs) as shell:
        env = environment(api, PROXMOX_TIMEOUT="60", PROXMOX_AUDIT_DIR=str(tmp_path / "audit"), **shell.environment)
        with serving(tmp_path, env) as server:
            server.call("proxmox_list_nodes")
            server.call("proxmox_zfs_pool_status")
            yield server


def first_page(server: Server, name: str) -> Cost:
    """Calls the list once with its defaults."""
    given = {"vmid": 100} if name == "list_snapshots" else {}
    proc = Path(f"/proc/{server.process.pid}")
    (proc / "clear_refs").write_text("5")  # the peak begins anew
    idle, spent, began = _memory(proc, "VmRSS"), _cpu(proc), time.perf_counter()
    failed, text = server.call(f"proxmox_{name}", **given)
    seconds = time.perf_counter() - began
    return Cost(name, seconds, _cpu(proc) - spent, _memory(proc, "VmHWM") - idle, failed, text)


def costs(server: Server) -> Iterator[Cost]:
    """Of each list, one after the other."""
    for name in (*LISTS, *MORE):
        yield first_page(server, name)


def _memory(proc: Path, name: str) -> float:
    line = next(line for line in (proc / "status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / 1e6


def _cpu(proc: Path) -> float:
    user, system = (proc / "stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / 100
