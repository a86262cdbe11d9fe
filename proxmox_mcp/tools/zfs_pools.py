"""ZFS pools over SSH: their health as `zpool status` has it, and scrubs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Changing, Flag, NodeName, Record
from proxmox_mcp.changes import conclusions
from proxmox_mcp.plan import Answer, Kind, Plan, Risk, StepResult
from proxmox_mcp.registry import tool
from proxmox_mcp.storages import zpools
from proxmox_mcp.zfs import names, pool_status, tables
from proxmox_mcp.zfs.host import SUSPENDED, Zfs, suspended
from proxmox_mcp.zfs.pool_status import Pool, scan_of

_FILES = 50  # damaged files that are named
_LIST = ("name", "size", "allocated", "free", "fragmentation", "capacity", "health")


class PoolStatus(Record):
    node: NodeName | None = None
    pool: names.PoolName | None = None
    verbose: Flag = True


@tool(
    "proxmox_zfs_pool_status",
    "zpool status of a node, over SSH: verdict, scrub, damaged files, devices with counters.",
    title="ZFS pool status",
    group="zfs",
    limit="none",
    model=PoolStatus,
)
async def zfs_pool_status(args: PoolStatus, call: Call) -> Answer:
    """`zpool status`, as JSON where the version has it, else its text. `verbose` false leaves out healthy devices and file names.

    ZFS pools on pve1: 1 of 2 not healthy
    problems:
    - bulk: state DEGRADED
    - bulk: sdc OFFLINE
    pools:
    name state size alloc free frag% scan errors
    ...
    devices:
    pool name vdev state read write cksum
    ...
    """
    zfs = await Zfs.on(call, args.node)
    sizes = {row["name"]: row for row in (await zfs.table("zpool", "list", columns=_LIST)).rows}
    pools = await _status(zfs, args.pool)
    problems = {str(pool.get("name")): zpools.findings(pool) for pool in pools}
    pools = sorted(pools, key=lambda pool: (not problems[str(pool.get("name"))], str(pool.get("name"))))
    record: dict[str, Any] = {}
    wrong = [f"{name}: {problem}" for name, found in problems.items() for problem in found]
    if wrong:
        record["problems"] = wrong
    record["pools"] = [_pool_row(pool, sizes.get(pool.get("name"), {})) for pool in pools]
    advice = [f"{pool['name']}: {pool[key]}" for pool in pools for key in ("status", "action", "see") if pool.get(key)]
    if advice:
        record["advice"] = advice
    files = [path for pool in pools for path in pool.get("files", ())]
    if files and args.verbose:
        record["damaged_files"] = [*files[:_FILES], *([f"... and {len(files) - _FILES} more"] if len(files) > _FILES else [])]
    devices = [_device_row(pool, device) for pool in pools for device in zpools.devices(pool) if args.verbose or device.bad]
    if devices:
        record["devices"] = devices
    sick = sum(1 for found in problems.values() if found)
    verdict = "no pools" if not pools else f"{sick} of {len(pools)} not healthy" if sick else "healthy"
    kinds = dict.fromkeys(("size", "alloc", "free"), Kind.BYTES)
    return Answer(f"ZFS pools on {zfs.node}: {verdict}", record=record, kinds=kinds, notes=_notes(pools))


def _notes(pools: Sequence[Pool]) -> tuple[str, ...]:
    frozen = [str(pool.get("name")) for pool in pools if pool.get("state") == SUSPENDED]
    return tuple(f"{name} is SUSPENDED: what touches it hangs; connect its disks, then `zpool clear {name}`" for name in frozen)


def _pool_row(pool: Pool, sizes: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "name": pool.get("name"),
        "state": pool.get("state"),
        "size": tables.integer(sizes.get("size")),
        "alloc": tables.integer(sizes.get("allocated")),
        "free": tables.integer(sizes.get("free")),
        "frag%": tables.integer((sizes.get("fragmentation") or "").removesuffix("%")),
        "scan": pool.get("scan") or "none",
        "errors": pool.get("errors"),
    }


def _device_row(pool: Pool, device: zpools.Device) -> dict[str, Any]:
    shown = {"pool": pool.get("name"), "name": device.name, "vdev": device.vdev, "state": device.state, **device.counters}
    return shown | ({"msg": text.clean(device.msg, 120)} if device.msg else {})


async def _status(zfs: Zfs, pool: str | None) -> list[Pool]:
    """The pools, or the one. Raises NotFound for one that does not exist."""
    place = () if pool is None else (pool,)
    words = ("zpool", "status", "-j", "--json-int", "-v", *place)
    # before ZFS 2.3 the option is a usage error
    found = await zfs.outcome(*words, max_bytes=8_000_000, ok=(0, 2))
    pools = pool_status.from_json(found.stdout) if found.exit_status == 0 else None
    if pools is None:
        pools = pool_status.from_text((await zfs.outcome("zpool", "status", "-v", "-p", *place, max_bytes=8_000_000)).stdout)
    return pools


class Scrub(Changing):
    pool: names.PoolName
    node: NodeName | None = None
    stop: Flag = False


@tool(
    "proxmox_zfs_scrub",
    "Start a scrub of a ZFS pool, or stop the one that runs, over SSH.",
    title="ZFS scrub",
    group="zfs",
    limit="none",
    model=Scrub,
    risk=Risk.CHANGE,
)
async def zfs_scrub(args: Scrub, call: Call) -> Plan:
    """`zpool scrub [-s] pool`: it returns at once, the scrub goes on. On a suspended pool the command would hang: refused."""
    zfs = await Zfs.on(call, args.node)
    await zfs.must_answer(args.pool)
    pool = await _one(zfs, args.pool)
    if pool.get("state") == SUSPENDED:
        raise suspended(args.pool, zfs.node)
    scan = scan_of(pool)
    done = f" ({scan.percent:g}% done)" if scan.percent is not None else ""
    obstacles = []
    if scan.kind == "resilver" and scan.state == "running":
        obstacles.append(f"{args.pool} is resilvering{done}: let it end first")
    elif args.stop and scan.state == "ended":
        obstacles.append(f"no scrub of {args.pool} runs")
    elif not args.stop and scan.state == "running":
        obstacles.append(f"a scrub of {args.pool} runs already{done}")
    if args.stop:
        summary, undo = f"stop the scrub of pool {args.pool} on node {zfs.node}: what it has checked counts for nothing", ""
    else:
        again = "go on with the paused scrub" if scan.state == "paused" else "start a scrub"
        summary, undo = f"{again} of pool {args.pool} on node {zfs.node}", f"proxmox_zfs_scrub pool={args.pool} stop=true"

    async def found(results: Sequence[StepResult]) -> Answer:
        now = await _one(zfs, args.pool)
        return conclusions.done(summary, results, {"scan": now.get("scan") or "none", "state": now.get("state")})

    return Plan(
        summary,
        (zfs.command("zpool", "scrub", *(("-s",) if args.stop else ()), args.pool),),
        Risk.CHANGE,
        (f"node {zfs.node}", f"pool {args.pool}"),
        undo=undo,
        fingerprint=f"{scan.kind} {scan.state}",
        obstacles=tuple(obstacles),
        notes=() if args.stop else ("it goes on by itself for hours on a large pool; proxmox_zfs_pool_status shows how far it is",),
        conclude=found,
        after_failure=found,
    )


async def _one(zfs: Zfs, name: str) -> Pool:
    pools = await _status(zfs, name)
    return next((pool for pool in pools if pool.get("name") == name), {})
