"""Clusters of any size: nodes, guests, storages, task lines and snapshots by number; a node whose `zfs` lists any number of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxmox_mcp.ssh import Outcome
from tests.cluster import ServedCluster, served_cluster
from tests.cluster.world import DAY, TIB
from tests.served_api import Reply, Request

NOW = 1_796_091_400


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is; `snapshots` on a node's pool, `of_guest` of guest 100."""

    nodes: int
    guests: int
    storages: int
    tasks: int
    snapshots: int
    of_guest: int

    def times(self, factor: int) -> Size:
        """The same nodes with this many times as much on them."""
        return Size(self.nodes, self.guests * factor, self.storages, self.tasks * factor, self.snapshots * factor, self.of_guest * factor)


SMALL = Size(nodes=4, guests=300, storages=20, tasks=2_000, snapshots=1_000, of_guest=200)
FULL = Size(nodes=32, guests=10_000, storages=200, tasks=100_000, snapshots=50_000, of_guest=5_000)


def cluster(size: Size) -> ServedCluster:
    """Not served yet: enter it for that."""
    api = served_cluster(nodes=size.nodes, guests=size.guests, now=NOW)
    world = api.world
    for number in range(len(world.storages), size.storages):
        home = world.nodes[number % len(world.nodes)]
        shared: dict[str, Any] = {"shared": 1} if number % 4 else {"nodes": home}
        row = {
            "storage": f"store{number:03}",
            "type": "nfs" if number % 4 else "dir",
            "path": f"/mnt/store{number:03}",
            "content": "iso,backup",
        }
        world.storages[row["storage"]] = row | shared
    known = world.usage
    world.usage = lambda storage: (TIB, 4 * TIB) if storage.startswith("store") else known(storage)  # type: ignore[method-assign]
    kinds = ("vzdump", "qmstart", "qmstop", "aptupdate", "imgcopy")
    for number in range(size.tasks - len(world.tasks)):
        vmid = 100 + number % max(1, size.guests)
        status = "OK" if number % 50 else "job errors"
        world.task(
            world.nodes[number % size.nodes], kinds[number % 5], str(vmid), age=60 + number * 30, took=20 + number % 100, status=status
        )
    world.guests[100].snapshots = [
        {"name": f"auto{number:05}", "snaptime": NOW - 600 * DAY + number * 3600, "description": "nightly", "vmstate": 0}
        for number in range(size.of_guest)
    ]
    _tasks_by_node(api)
    return api


def _tasks_by_node(api: ServedCluster) -> None:
    """The answer of the served cluster, without sorting all tasks for each request."""
    by_node: dict[str, list[Any]] = {node: [] for node in api.world.nodes}
    for task in sorted(api.world.tasks.values(), key=lambda task: -(task.ended or 1 << 40)):
        by_node[task.node].append(task)

    def answer(request: Request) -> Any:
        asked = request.params
        rows = [task for task in by_node[request.vars["node"]] if task.started <= int(asked.get("until", 1 << 40))]
        rows = [task for task in rows if "statusfilter" not in asked or task.status != "OK"]
        start, limit = int(asked.get("start", 0)), int(asked.get("limit", 50))
        return Reply(data=[task.item for task in rows[start : start + limit]], total=len(rows))

    api.on("GET", "/nodes/{node}/tasks", answer)


def snapshot_list(snapshots: int) -> str:
    """What `zfs list -Hp -t snapshot` prints with the columns of proxmox_mcp.zfs.snapshots: name guid creation used referenced ..."""
    lines = []
    for number in range(snapshots):
        dataset = f"tank/data/vm-{100 + number // 100}-disk-0"
        taken = NOW - 900 * DAY + number * 900
        lines.append(f"{dataset}@autosnap_{number:06}_hourly\t{10**18 + number}\t{taken}\t{number * 4096}\t{number * 8192}\t0\t-\toff\n")
    return "".join(lines)


class NodeOfPool:
    """Stands for the SSH pool: one node with one pool and a prepared list of snapshots."""

    def __init__(self, snapshots: int) -> None:
        self._list = snapshot_list(snapshots)
        self.ran: list[tuple[str, ...]] = []

    def known_hostname(self, target: Any) -> str:
        return "pve1"

    async def run(self, target: Any, argv: Any, **more: Any) -> Outcome:
        self.ran.append(tuple(argv))
        said = "tank\tONLINE\n" if argv[0] == "zpool" else self._list
        return Outcome(0, None, False, False, False, said, "", 0, 0, False, 0.01, len(said), "")

    async def close(self) -> None:
        return None
