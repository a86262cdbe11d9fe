"""What was seen, in words: problems first, the worst at the top; then the figures, a line for each subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proxmox_mcp import tasks, text
from proxmox_mcp.health.coverage import Coverage, Lacking, cover
from proxmox_mcp.health.sources import DAY, Row, Seen
from proxmox_mcp.inventory import Guest, flag, number, share, storage_state
from proxmox_mcp.storages import disks, zpools

FULL = 0.85  # of a storage
TIGHT = 0.95  # of a node's memory
_NAMED = 8  # objects named in one line


@dataclass(frozen=True, slots=True)
class Report:
    """`problems` want somebody's attention; `facts` has a line for each subject; `limits` say what this token is not shown."""

    problems: list[str]
    facts: dict[str, str]
    limits: list[str]


def report(seen: Seen) -> Report:
    """What was seen, judged."""
    covered = cover(seen)
    return Report(_problems(seen, covered), _facts(seen, covered), _limits(seen, covered))


def _problems(seen: Seen, covered: Coverage) -> list[str]:
    return [
        *_quorum_problems(seen),
        *_node_problems(seen),
        *_pool_problems(seen),
        *_disk_problems(seen),
        *_storage_problems(seen),
        *_guest_problems(seen),
        *_backup_problems(covered),
        *_task_problems(seen),
    ]


def _facts(seen: Seen, covered: Coverage) -> dict[str, str]:
    """Well or not; "unknown" where nothing answered."""
    return {
        "nodes": _nodes(seen),
        "quorum": _quorum(seen),
        "guests": _guests(seen),
        "storages": _storages(seen),
        "zfs_pools": _pools(seen),
        "disks": _disks(seen),
        "tasks": _tasks(seen),
        "backups": _backups(seen, covered),
    }


def _limits(seen: Seen, covered: Coverage) -> list[str]:
    """What this token is not shown."""
    said = []
    if seen.guests is not None and (not seen.guests or not seen.permissions.has("/vms", "VM.Audit")):
        said.append(seen.permissions.explains_empty("guests", "/vms", "VM.Audit"))
    hidden = seen.permissions.explains_no_backups(*sorted({place.storage for place in seen.backups})) if seen.backups else ""
    if hidden and covered.unknown:
        said.append(f"backups: {hidden}")
    return [line for line in said if line]


def _some(names: Iterable[str], most: int = _NAMED) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _label(guest: Guest) -> str:
    return f"{guest.vmid} {text.clean(guest.name, 30)}" if guest.name else str(guest.vmid)


# --- nodes and quorum


def _cluster_row(seen: Seen) -> Row | None:
    return next((row for row in seen.members or () if row.get("type") == "cluster"), None)


def _quorum_problems(seen: Seen) -> Iterator[str]:
    cluster = _cluster_row(seen)
    if cluster is not None and not flag(cluster.get("quorate")):
        yield f"cluster {cluster.get('name')} has no quorum: guests go on, every change is refused until enough nodes are back"


def _quorum(seen: Seen) -> str:
    if seen.members is None:
        return "unknown"
    cluster = _cluster_row(seen)
    if cluster is None:
        return "not a cluster, one node"
    return f"{'yes' if flag(cluster.get('quorate')) else 'NO'}, cluster {cluster.get('name')} of {cluster.get('nodes', '?')} nodes"


def _node_problems(seen: Seen) -> Iterator[str]:
    for node in seen.nodes:
        if node.online is not True:
            yield f"node {node.name} is {'offline' if node.online is False else 'in an unknown state'}"
            continue
        memory, root = share(node.row.get("mem"), node.row.get("maxmem")), share(node.row.get("disk"), node.row.get("maxdisk"))
        if memory is not None and memory > TIGHT:
            yield f"node {node.name}: memory {text.percent(memory)}% used"
        if root is not None and root > FULL:
            yield f"node {node.name}: root file system {text.percent(root)}% full"


def _nodes(seen: Seen) -> str:
    online = [node for node in seen.nodes if node.online]
    known = [node for node in online if number(node.row.get("cpu")) is not None]
    loads = [f"{node.name} cpu {text.percent(node.row['cpu'])}% mem {_percent(node.row, 'mem', 'maxmem')}%" for node in known]
    return f"{len(online)} of {len(seen.nodes)} online" + (f" ({_some(loads, 6)})" if loads else "")


def _percent(row: Row, part: str, whole: str) -> str:
    return text.percent(share(row.get(part), row.get(whole)))


# --- guests


def _guest_problems(seen: Seen) -> Iterator[str]:
    troubled = [guest for guest in seen.guests or () if guest.row.get("hastate") in ("error", "fence")]
    if troubled:
        yield f"HA state error: {_some(_label(guest) for guest in troubled)}"


def _guests(seen: Seen) -> str:
    if seen.guests is None:
        return "unknown"
    real = [guest for guest in seen.guests if not guest.template]
    # what Proxmox says of guests can be some minutes old; of a node that is gone it is not the truth any more
    away = {node.name for node in seen.nodes if node.online is False}
    counts = Counter("unknown" if guest.node in away else guest.status for guest in real)
    said = ", ".join(f"{counts[state]} {text.clean(state, 20)}" for state in sorted({"running", "stopped", *counts}))
    templates = len(seen.guests) - len(real)
    return f"{len(real)}: {said}" + (f"; {text.counted(templates, 'templates')}" if templates else "")


# --- storages


def _fill(seen: Seen) -> list[tuple[str, str, float | None, Row]]:
    """(name, state, fill level, row) of each storage, a shared one once; from the statistics for nodes whose own list did not come."""
    found: dict[tuple[str, str], tuple[str, str, float | None, Row]] = {}
    shared = {ref.name for ref in seen.storages or () if ref.shared}
    for node, rows in seen.storage_lists.items():
        for row in rows:
            name = str(row.get("storage"))
            apart = not (flag(row.get("shared")) or name in shared)
            key, state = (name, node if apart else ""), str(storage_state(row))
            if key in found and (found[key][1] != "active" or state == "active"):
                continue  # of a shared storage, a node where it is not active counts
            level = share(row.get("used"), row.get("total")) if state == "active" else None
            found[key] = (f"{name} on {node}" if apart or state != "active" else name, state, level, row)
    silent = {node.name for node in seen.nodes if node.online is not False} - seen.storage_lists.keys()
    for row in seen.last_known or ():
        node, name = str(row.get("node")), str(row.get("storage"))
        apart = not (flag(row.get("shared")) or name in shared)
        key = (name, node if apart else "")
        if node in silent and key not in found:
            state = "last known" if row.get("status") == "available" else "unknown"
            level = share(row.get("disk"), row.get("maxdisk")) if state == "last known" else None
            found[key] = (f"{name} on {node}" if apart else name, state, level, row)
    return sorted(found.values(), key=lambda each: (-(each[2] or 0), each[0]))


def _storage_problems(seen: Seen) -> Iterator[str]:
    for name, state, level, row in _fill(seen):
        if state == "inactive":
            yield f"storage {name}: enabled but not active"
        elif level is not None and level > FULL:
            used, total = (number(row.get(own)) or number(row.get(other)) for own, other in (("used", "disk"), ("total", "maxdisk")))
            when = ", as last known" if state == "last known" else ""
            yield f"storage {name}: {text.percent(level)}% full ({text.size(used)} of {text.size(total)}){when}"


def _storages(seen: Seen) -> str:
    levels = _fill(seen)
    if not levels:
        return "none visible" if seen.storage_lists else "unknown"
    counts = Counter(state for _, state, _, _ in levels)
    fullest = [f"{name} {text.percent(level)}%" for name, _, level, _ in levels[:3] if level is not None]
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) + (f"; fullest {', '.join(fullest)}" if fullest else "")


# --- pools and disks


def _pool_problems(seen: Seen) -> Iterator[str]:
    for node, pools in seen.pools.items():
        for pool in pools:
            wrong = zpools.findings(pool)
            if wrong:
                yield f"ZFS pool {pool.get('name')} on {node}: {'; '.join(wrong[:4])}"
            level = share(pool.get("alloc"), pool.get("size"))
            if level is not None and level > zpools.FULL:
                yield f"ZFS pool {pool.get('name')} on {node}: {text.percent(level)}% full"


def _pools(seen: Seen) -> str:
    pools = [pool for found in seen.pools.values() for pool in found]
    if not seen.pools:
        return "unknown"
    sick = sum(bool(zpools.findings(pool)) for pool in pools)
    return f"{len(pools)}" + (f", {sick} not healthy" if sick else ", all healthy" if pools else "")


def _disk_problems(seen: Seen) -> Iterator[str]:
    for node, listed in seen.disks.items():
        for disk in listed:
            state, name = disks.state(disk), f"disk {disk.get('devpath')} on {node} ({disk.get('model') or 'model unknown'})"
            if state == "failing":
                yield f"{name}: SMART says {disk.get('health')}"
            elif state == "worn":
                yield f"{name}: {number(disk.get('wearout')):g}% of its life left"


def _disks(seen: Seen) -> str:
    if not seen.disks:
        return "unknown"
    counts = Counter(disks.state(disk) for listed in seen.disks.values() for disk in listed)
    return f"{counts.total()}" + "".join(f", {counts[state]} {state}" for state in ("failing", "worn", "ok", "unknown") if counts[state])


# --- tasks


def _failed(seen: Seen) -> list[Row]:
    """Tasks that ended badly within the last day, the latest first."""
    rows = [row for page in seen.failed_tasks.values() for row in page.rows if (number(row.get("endtime")) or 0) >= seen.now - DAY]
    return sorted(rows, key=lambda row: -(number(row.get("endtime")) or 0))


def _task_problems(seen: Seen) -> Iterator[str]:
    failed = _failed(seen)
    if not failed:
        return
    groups: dict[str, list[Row]] = {}
    for row in failed:
        groups.setdefault(" ".join(filter(None, (str(row["type"]), str(row["id"]), f"on {row['node']}"))), []).append(row)
    said = [
        f"{what}{f' {len(rows)}x' if len(rows) > 1 else ''} ({text.clean(str(tasks.verdict_of_list_item(rows[0])), 80)})"
        for what, rows in groups.items()
    ]
    least = "at least " if any(page.beyond for page in seen.failed_tasks.values()) else ""
    yield f"{least}{len(failed)} task{'s' if len(failed) > 1 else ''} failed in the last day: {_some(said, 5)}"


def _tasks(seen: Seen) -> str:
    if not seen.failed_tasks:
        return "unknown"
    least = "at least " if any(page.beyond for page in seen.failed_tasks.values()) else ""
    own = "" if all(seen.permissions.has(f"/nodes/{node}", "Sys.Audit") for node in seen.failed_tasks) else ", of those that are visible"
    return f"{least}{len(_failed(seen))} failed in the last day{own}"


# --- backups


def _backup_problems(found: Coverage) -> Iterator[str]:
    if found.missing:
        guests = "guest" if len(found.missing) == 1 else "guests"
        yield f"{len(found.missing)} {guests} without a recent good backup: {_some(_lacking(each) for each in found.missing)}"


def _lacking(each: Lacking) -> str:
    newest = "none" if each.newest is None else f"last {text.duration(each.newest)} ago"
    return f"{_label(each.guest)} ({newest}{', in no job' if each.without_job else ''})"


def _backups(seen: Seen, found: Coverage) -> str:
    if seen.guests is None:
        return "unknown"
    if not seen.guests:
        return "no guest is seen that needs one"
    parts = []
    if found.recent or found.missing or not found.unknown:
        parts.append(f"{text.counted(found.recent, 'guests')} with a recent one, {len(found.missing)} without")
    if found.unknown:
        few = f" ({_some(_label(each.guest) for each in found.unknown)})" if len(found.unknown) <= _NAMED else ""
        parts.append(f"unknown for {len(found.unknown)}{few}")
    if found.without_job:
        parts.append(f"in no job: {_some(_label(guest) for guest in found.without_job)}")
    if found.templates:
        parts.append("templates not counted")
    return "; ".join(parts)
