"""ZFS snapshots over SSH: the list, made, destroyed by pattern, and the leftovers of backups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Changing, Count, Destroying, Flag, Listing, NodeName, Vmid, between, plain_text
from proxmox_mcp.changes import conclusions
from proxmox_mcp.plan import Answer, Column, Kind, Plan, Risk, StepResult
from proxmox_mcp.registry import tool
from proxmox_mcp.zfs import backups, destroying, names, removing, snapshots, staying
from proxmox_mcp.zfs.datasets import one
from proxmox_mcp.zfs.host import Zfs, missing_pools
from proxmox_mcp.zfs.removing import Removal
from proxmox_mcp.zfs.snapshots import Found, Snapshot


class ListSnapshots(Listing):
    node: NodeName | None = None
    dataset: names.DatasetName | None = None
    contains: Annotated[str, AfterValidator(plain_text(64))] | None = None
    limit: Count | None = 300


_COLUMNS = (
    *(
        Column("name"),
        Column("used", Kind.BYTES),
        Column("referenced", Kind.BYTES, head="refer"),
        Column("creation", Kind.TIME, head="taken"),
    ),
    *(Column("holds", Kind.NUMBER, default=False), Column("clones", default=False), Column("guid", default=False)),
)


@tool(
    "proxmox_zfs_list_snapshots",
    "ZFS snapshots of a node (or of a dataset and below), over SSH; Proxmox lists only its own.",
    title="List ZFS snapshots",
    group="zfs",
    limit="none",
    model=ListSnapshots,
)
async def zfs_list_snapshots(args: ListSnapshots, call: Call) -> Answer:
    """`zfs list -Hp -t snapshot`, by dataset and age. Sizes in bytes, creation in Unix seconds; `used` is what each alone would free.

    2 snapshots; node=pve1; dataset=tank/data
    name used refer taken
    tank/data@before 0B 104K 2026-12-01 01:31Z
    tank/data@manual-1 0B 8.1M 2026-12-01 01:31Z
    """
    zfs = await Zfs.on(call, args.node)
    pools = await zfs.pools() if args.dataset is None else await zfs.must_answer(args.dataset)
    found = await snapshots.listed(zfs, args.dataset)
    notes = list(missing_pools(pools)) if args.dataset is None else []
    if found.cut:
        notes.append(f"the list is too long: {found.cut} bytes of it were left out; give a dataset")
    rows = [_row(snapshot) for snapshot in found.snapshots if args.contains is None or args.contains in snapshot.name]
    filters = {"node": zfs.node, "dataset": args.dataset, "contains": args.contains}
    order = ("dataset", "creation", "name")
    return Answer("snapshots", rows=rows, columns=_COLUMNS, order=order, filters=filters, notes=tuple(notes))


def _row(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "name": snapshot.name,
        "dataset": snapshot.dataset,
        "used": snapshot.used,
        "referenced": snapshot.referenced,
        "creation": snapshot.created,
        "holds": snapshot.holds or None,
        "clones": ",".join(snapshot.clones) or None,
        "guid": snapshot.guid,
    }


class CreateSnapshot(Changing):
    dataset: names.DatasetName
    snapname: names.SnapshotPart
    node: NodeName | None = None
    recursive: Flag = False


@tool(
    "proxmox_zfs_create_snapshot",
    "Take a ZFS snapshot of a dataset, over SSH; of a guest's disks use proxmox_snapshot.",
    title="ZFS snapshot",
    group="zfs",
    limit="none",
    model=CreateSnapshot,
    risk=Risk.CHANGE,
)
async def zfs_create_snapshot(args: CreateSnapshot, call: Call) -> Plan:
    """`zfs snapshot [-r] dataset@name`: all or none."""
    zfs = await Zfs.on(call, args.node)
    await zfs.must_answer(args.dataset)
    name = f"{args.dataset}@{args.snapname}"
    obstacles = [] if await one(zfs, args.dataset) is not None else [f"there is no dataset {args.dataset}"]
    if not obstacles:
        known = (await snapshots.listed(zfs, args.dataset, below=args.recursive)).snapshots
        obstacles += [f"{snapshot.name} exists already" for snapshot in known if snapshot.part == args.snapname][:20]
    if args.snapname == backups.SCRATCH:
        obstacles.append("backups of containers make and need a snapshot of this name: while one exists, they fail")
    if args.snapname.startswith("__"):
        obstacles.append("names that begin with __ are Proxmox's own (linked clones, replication)")
    if len(name) > names.LONGEST:
        obstacles.append(f"{name} is longer than {names.LONGEST} characters")
    vmid = names.guest_of(args.dataset)
    notes = [] if vmid is None else [_NOT_PROXMOX.format(vmid=vmid)]
    below = " and of all datasets below it" if args.recursive else ""
    summary = f"take snapshot {name}{below} on node {zfs.node}"

    async def found(results: Sequence[StepResult]) -> Answer:
        there = (await snapshots.listed(zfs, args.dataset, below=args.recursive)).snapshots
        made = [snapshot for snapshot in there if snapshot.part == args.snapname]
        taken = text.when(made[0].created) if made else None
        return conclusions.done(summary, results, {"snapshots": len(made), "taken": taken})

    return Plan(
        summary,
        (zfs.command("zfs", "snapshot", *(("-r",) if args.recursive else ()), name),),
        Risk.CHANGE,
        destroying.targets(zfs.node, args.dataset),
        undo=_undo(args),
        obstacles=tuple(obstacles),
        notes=tuple(notes),
        conclude=found,
        after_failure=found,
    )


_NOT_PROXMOX = (
    "it is a disk of guest {vmid}: Proxmox does not list this snapshot, and refuses to roll the guest back past it; "
    "proxmox_snapshot takes one of the whole guest"
)


def _undo(args: CreateSnapshot) -> str:
    below = " recursive=true" if args.recursive else ""
    return f"proxmox_zfs_destroy_snapshots_by_pattern dataset={args.dataset} pattern={args.snapname}{below}"


class DestroyByPattern(Destroying):
    dataset: names.DatasetName
    pattern: Annotated[names.Pattern, Field(description="glob for the part behind @: autosnap_*_hourly")]
    node: NodeName | None = None
    recursive: Flag = False
    dry_run: Flag = True
    max_delete: Annotated[int, AfterValidator(between(1, 10_000))] = 1_000


@tool(
    "proxmox_zfs_destroy_snapshots_by_pattern",
    "Destroy ZFS snapshots by name, in two calls: the first lists them, the second (dry_run=false) destroys just those.",
    title="Destroy ZFS snapshots",
    group="zfs",
    limit="none",
    model=DestroyByPattern,
    risk=Risk.DATA_LOSS,
)
async def zfs_destroy_snapshots_by_pattern(args: DestroyByPattern, call: Call) -> Plan:
    """`zfs destroy dataset@a,b,c`, exact names. Held, cloned and Proxmox's own snapshots stay and are named; results are read back."""
    zfs = await Zfs.on(call, args.node)
    await zfs.must_answer(args.dataset)

    async def again() -> Found:
        return await snapshots.listed(zfs, args.dataset, below=args.recursive)

    found = await again()
    matching = snapshots.matching(found.snapshots, args.pattern)
    why = await staying.of(zfs, matching, args.pattern)
    going = [snapshot for snapshot in matching if snapshot.name not in why.reasons]
    below = " and below" if args.recursive else ""
    removal = Removal(
        what=f"of {args.dataset}{below} that match {args.pattern}",
        question=("pattern", zfs.node, args.dataset, args.pattern, args.recursive),
        going=going,
        staying=_by_reason(matching, why.reasons),
        again=again,
        risk=Risk.DATA_LOSS,
        most=args.max_delete,
        obstacles=_cut(found),
        doubts=why.doubts,
    )
    # its first call is the published dry run: what that showed is what the second may destroy
    return removing.plan(zfs, removal, looking=args.dry_run)


class CleanupVzdump(Changing):
    vmid: Vmid | None = None
    dataset: names.DatasetName | None = None
    node: NodeName | None = None
    min_age_minutes: Annotated[int, AfterValidator(between(0, 10_080))] = 30
    dry_run: Flag = True


@tool(
    "proxmox_cleanup_vzdump_snapshots",
    "Remove @vzdump snapshots that an aborted backup left and that block the next one; lists first, then dry_run=false.",
    title="Clean up after backups",
    group="zfs",
    limit="none",
    model=CleanupVzdump,
    risk=Risk.CHANGE,
    destructive=True,
)
async def cleanup_vzdump_snapshots(args: CleanupVzdump, call: Call) -> Plan:
    """`zfs destroy dataset@vzdump`: exactly that name, old enough by the node's clock, and no backup of its guest under way or possible."""
    zfs = await Zfs.on(call, args.node)
    pools = await zfs.pools() if args.dataset is None else await zfs.must_answer(args.dataset)

    async def again() -> Found:
        return await snapshots.listed(zfs, args.dataset)

    found = await again()
    scratch = [snapshot for snapshot in found.snapshots if snapshot.part == backups.SCRATCH]
    scratch = [snapshot for snapshot in scratch if args.vmid is None or names.guest_of(snapshot.name) == args.vmid]
    running = await backups.under_way(call, zfs.node, (vmid for s in scratch if (vmid := names.guest_of(s.name)) is not None))
    now = await zfs.clock() if scratch else 0
    reasons: dict[str, str] = {}
    for snapshot in scratch:
        too_young = snapshot.created is None or now - snapshot.created < args.min_age_minutes * 60
        why = snapshots.cannot_go(snapshot) or running.must_stay(names.guest_of(snapshot.name))
        why = why or (f"younger than {args.min_age_minutes} minutes" if too_young else "")
        if why:
            reasons[snapshot.name] = why
    whose = f" of guest {args.vmid}" if args.vmid is not None else ""
    removal = Removal(
        what=f"called @vzdump{whose}{f' below {args.dataset}' if args.dataset else ''}, left by aborted backups,",
        question=("vzdump", zfs.node, args.dataset, args.vmid, args.min_age_minutes),
        going=[snapshot for snapshot in scratch if snapshot.name not in reasons],
        staying=_by_reason(scratch, reasons),
        again=again,
        risk=Risk.CHANGE,
        asks=True,
        obstacles=(*_cut(found), *([running.unknown] if running.unknown else [])),
        notes=missing_pools(pools) if args.dataset is None else (),
    )
    return removing.plan(zfs, removal, looking=args.dry_run)


def _by_reason(found: Sequence[Snapshot], reasons: Mapping[str, str]) -> dict[str, list[Snapshot]]:
    sorted_out: dict[str, list[Snapshot]] = {}
    for snapshot in found:
        if snapshot.name in reasons:
            sorted_out.setdefault(reasons[snapshot.name], []).append(snapshot)
    return sorted_out


def _cut(found: Found) -> list[str]:
    return [f"the list of snapshots is too long to be complete ({found.cut} bytes were left out): narrow it"] if found.cut else []
