"""What the overview asks: every source at once, 3 s for each, 10 s in all; what does not answer becomes a gap."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from proxmox_mcp import tasks
from proxmox_mcp.errors import AuthenticationError, ConfigError, ConnectionFailed, ProxmoxMcpError, RequestTimeout
from proxmox_mcp.inventory import (
    Guest,
    Inventory,
    Node,
    Permissions,
    StorageRef,
    flag,
    gap,
    gather,
    number,
    per_node,
    read_object,
    read_rows,
)
from proxmox_mcp.storages import disks, volumes
from proxmox_mcp.storages.volumes import Place

_FATAL = (AuthenticationError, ConfigError, ConnectionFailed)

SOURCE_SECONDS = 3.0
FIRST_SECONDS = 3.0  # for the lists of the cluster
REST_SECONDS = 6.5  # for what the nodes are asked after that; together they stay below 10
DAY = 86_400
_TASKS = 200  # failed ones of a node

Row = Mapping[str, Any]


@dataclass
class Seen:
    """What answered. None, or a node that is missing in a mapping: it was not to be had, and `gaps` says why."""

    now: float
    nodes: list[Node] = field(default_factory=list)
    guests: list[Guest] | None = None
    storages: list[StorageRef] | None = None  # the configuration
    last_known: list[Row] | None = None  # storage entries of the cluster's statistics
    members: list[Row] | None = None  # /cluster/status
    jobs: list[Row] | None = None
    uncovered: frozenset[int] | None = None  # guests that no job covers, as Proxmox says
    permissions: Permissions = Permissions(None)  # noqa: RUF009 - it is frozen
    storage_lists: dict[str, list[Row]] = field(default_factory=dict)  # by node, from here on
    pools: dict[str, list[Row]] = field(default_factory=dict)
    disks: dict[str, list[Row]] = field(default_factory=dict)
    failed_tasks: dict[str, tasks.Page] = field(default_factory=dict)
    backups: dict[Place, Sequence[Row]] = field(default_factory=dict)
    unread: set[Place] = field(default_factory=set)  # where backups may lie that could not be listed
    intervals: dict[str, float] = field(default_factory=dict)  # seconds between runs, by schedule
    gaps: list[str] = field(default_factory=list)


async def look(inventory: Inventory, now: float, node: str | None = None) -> Seen:
    """Asks for everything, or for what concerns one node. Raises when not even the nodes and the guests can be had."""
    seen = Seen(now)
    await _cluster(inventory, seen)
    if node is not None:
        name = (await inventory.node(node)).name
        seen.nodes = [each for each in seen.nodes if each.name == name]
        seen.guests = [guest for guest in seen.guests if guest.node == name] if seen.guests is not None else None
    await _rest(inventory, seen, only=seen.nodes[0].name if node is not None and seen.nodes else None)
    offline = {f"{each.name}: not reachable (offline)" for each in seen.nodes}  # said already
    seen.gaps += [line for line in dict.fromkeys(inventory.gaps) if line not in offline and line not in seen.gaps]
    return seen


async def _cluster(inventory: Inventory, seen: Seen) -> None:
    api = inventory.api
    sources: dict[str, Callable[[], Awaitable[Any]]] = {
        "nodes": inventory.nodes,
        "guests": inventory.guests,
        "storages": inventory.storages,
        "storage statistics": lambda: read_rows(api, "cluster", "resources", params={"type": "storage"}),
        "quorum": lambda: read_rows(api, "cluster", "status"),
        "backup jobs": lambda: read_rows(api, "cluster", "backup"),
        "guests without a job": lambda: read_rows(api, "cluster", "backup-info", "not-backed-up"),
        "permissions": inventory.permissions,
    }
    found = await gather(sources, each=SOURCE_SECONDS, total=FIRST_SECONDS, at_once=len(sources))
    failed = [error for error in (found["nodes"], found["guests"]) if isinstance(error, ProxmoxMcpError)]
    for error in failed:
        # without both there is no overview; a refused token or certificate is the one thing to say
        if isinstance(error, _FATAL) or len(failed) == 2:
            raise error
    good = {name: result for name, result in found.items() if not isinstance(result, ProxmoxMcpError)}
    seen.gaps += [gap(name, result) for name, result in found.items() if isinstance(result, ProxmoxMcpError)]
    seen.nodes = good.get("nodes", [])
    seen.guests = good.get("guests")
    seen.storages = good.get("storages")
    seen.last_known = good.get("storage statistics")
    seen.members = good.get("quorum")
    seen.jobs = good.get("backup jobs")
    uncovered = good.get("guests without a job")
    seen.uncovered = frozenset(int(vmid) for row in uncovered if (vmid := number(row.get("vmid")))) if uncovered is not None else None
    seen.permissions = good.get("permissions", seen.permissions)


async def _rest(inventory: Inventory, seen: Seen, only: str | None) -> None:
    """What the nodes and storages are asked. What hangs most often comes last, so that it keeps nothing else from its turn."""
    api = inventory.api
    live = [node.name for node in seen.nodes if node.online is not False]
    away = [node.name for node in seen.nodes if node.online is False]
    if away:
        seen.gaps.append(f"{', '.join(away)}: offline, so not asked about disks, pools, tasks and local storages")
    sources: dict[tuple[str, Any], Callable[[], Awaitable[Any]]] = {}
    wanted = tasks.Wanted(errors_only=True, since=int(seen.now) - 2 * DAY)
    for node in live:
        sources["failed tasks", node] = _bound(lambda name: tasks.page_of(api, name, wanted, _TASKS), node)
    for node in live:
        sources["ZFS pools", node] = _bound(lambda name: _pools(inventory, name), node)
    for schedule in _schedules(seen.jobs):
        sources["interval", schedule] = _bound(lambda text: _interval(inventory, text), schedule)
    for node in live:
        sources["disks", node] = _bound(lambda name: disks.rows(api, name), node)
    for node in live:
        sources["storages", node] = _bound(lambda name: read_rows(api, "nodes", name, "storage"), node)
    everyone = await inventory.nodes() if seen.nodes else []
    for ref in seen.storages or ():
        if ref.enabled and "backup" in ref.content:
            places = await volumes.places(inventory, ref, "backup", node=only) if everyone else {}
            sources |= {("backups", place): read for place, read in places.items()}
            seen.unread |= _places(ref, everyone) - places.keys()
    found = await gather(sources, each=SOURCE_SECONDS, total=REST_SECONDS)
    into: dict[str, dict[Any, Any]] = {
        "failed tasks": seen.failed_tasks,
        "ZFS pools": seen.pools,
        "disks": seen.disks,
        "storages": seen.storage_lists,
        "backups": seen.backups,
        "interval": seen.intervals,
    }
    missing: dict[str, list[str]] = {}
    for (what, where), result in found.items():
        if not isinstance(result, ProxmoxMcpError):
            into[what][where] = result
            continue
        if what == "backups":
            seen.unread.add(where)
        if what != "interval":
            why = gap(what, result)
            if isinstance(result, RequestTimeout) and what in ("storages", "backups"):
                why += " (often an unreachable network storage)"
            missing.setdefault(why, []).append(str(where))
    seen.gaps += [f"{pool['unread']}" for pools in seen.pools.values() for pool in pools if "unread" in pool]
    # one line for all the places that failed alike
    seen.gaps += [f"{line.partition(': ')[0]} of {', '.join(where)}: {line.partition(': ')[2]}" for line, where in missing.items()]


def _bound(read: Callable[[str], Awaitable[Any]], name: str) -> Callable[[], Awaitable[Any]]:
    return lambda: read(name)


def _places(ref: StorageRef, nodes: Sequence[Node]) -> set[Place]:
    """Where a storage has something of its own, also on nodes that are offline or not asked."""
    serving = {node.name for node in nodes if ref.nodes is None or node.name in ref.nodes}
    return {Place(ref.name, None if ref.shared else name) for name in serving}


def _schedules(jobs: Sequence[Row] | None) -> list[str]:
    enabled = (job for job in jobs or () if "enabled" not in job or flag(job["enabled"]))
    return sorted({str(job["schedule"]) for job in enabled if job.get("schedule")})


async def _interval(inventory: Inventory, schedule: str) -> float:
    """The longest time between two runs of a schedule, as Proxmox itself reads it (GET /cluster/jobs/schedule-analyze); 0: not known."""
    found = await read_rows(inventory.api, "cluster", "jobs", "schedule-analyze", params={"schedule": schedule, "iterations": 10})
    times = sorted(time for row in found if (time := number(row.get("timestamp"))) is not None)
    return float(max((later - earlier for earlier, later in pairwise(times)), default=0))


async def _pools(inventory: Inventory, node: str) -> list[Row]:
    """The ZFS pools of a node with what `zpool status` says of each: ONLINE alone does not mean that the data is whole."""
    api = inventory.api
    listed = {str(pool.get("name")): pool for pool in await read_rows(api, "nodes", node, "disks", "zfs")}
    details = await per_node(listed, lambda name: read_object(api, "nodes", node, "disks", "zfs", name), each=SOURCE_SECONDS / 2)
    found: list[Row] = []
    for name, pool in listed.items():
        detail = details[name]
        more = {"unread": gap(f"ZFS pool {name} of {node}", detail)} if isinstance(detail, ProxmoxMcpError) else detail
        found.append({**pool, "state": pool.get("health"), **more})
    return found
