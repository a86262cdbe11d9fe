"""ZFS datasets over SSH: the list, made and destroyed, their properties."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Changing, Destroying, Flag, JsonObject, Listing, NodeName, Reading
from proxmox_mcp.changes import conclusions
from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.plan import Answer, Column, Kind, Plan, Risk, StepResult
from proxmox_mcp.registry import tool
from proxmox_mcp.zfs import destroying, names, properties, tables
from proxmox_mcp.zfs.datasets import one
from proxmox_mcp.zfs.failures import said
from proxmox_mcp.zfs.host import Zfs, missing_pools


class ListDatasets(Listing):
    node: NodeName | None = None
    pool: Annotated[names.DatasetName, Field(description="pool or dataset to begin at")] | None = None
    include_snapshots: Flag = False


_BYTES = ("used", "available", "referenced", "quota", "refquota", "reservation", "refreservation", "volsize")
_COLUMNS = (
    *(Column("name"), Column("type"), Column("used", Kind.BYTES), Column("available", Kind.BYTES, head="avail")),
    *(Column("referenced", Kind.BYTES, head="refer"), Column("mountpoint")),
    *(Column(name, Kind.BYTES, default=False) for name in _BYTES[3:]),
    *(Column("compressratio", Kind.NUMBER, default=False), Column("creation", Kind.TIME, default=False)),
    *(Column(name, default=False) for name in ("mounted", "compression", "encryption", "keystatus", "origin")),
)


@tool(
    "proxmox_zfs_list_datasets",
    "ZFS file systems and volumes of a node, over SSH.",
    title="List ZFS datasets",
    group="zfs",
    limit="none",
    model=ListDatasets,
)
async def zfs_list_datasets(args: ListDatasets, call: Call) -> Answer:
    """`zfs list -Hp`. Sizes in bytes, creation in Unix seconds; a pool that is suspended is missing from it, and that is said.

    3 datasets; node=pve1; pool=tank
    name type used avail refer mountpoint
    tank filesystem 269M 5.1G 104K /tank
    tank/data filesystem 268M 5.1G 8.1M /tank/data
    tank/data/vm-200-disk-0 volume 56K 5.1G 56K -
    """
    zfs = await Zfs.on(call, args.node)
    pools = await zfs.pools() if args.pool is None else await zfs.must_answer(args.pool)
    kinds = "filesystem,volume,snapshot" if args.include_snapshots else "filesystem,volume"
    place = ("-r", args.pool) if args.pool is not None else ()
    columns = tuple(column.name for column in _COLUMNS)
    table = await zfs.table("zfs", "list", "-t", kinds, *place, columns=columns)
    notes = list(missing_pools(pools)) if args.pool is None else []
    if table.cut:
        notes.append(f"the list is too long: {table.cut} bytes of it were left out; give a pool or dataset")
    rows = [_row(row) for row in table.rows]
    filters = {"node": zfs.node, "pool": args.pool}
    return Answer("datasets", rows=rows, columns=_COLUMNS, order=("name",), filters=filters, notes=tuple(notes))


def _row(row: tables.Row) -> dict[str, Any]:
    sizes = {name: tables.integer(row[name]) for name in (*_BYTES, "creation")}
    return {**row, **sizes, "compressratio": tables.ratio(row["compressratio"])}


class ZfsDataset(Destroying):
    action: Literal["create", "destroy"]
    name: names.DatasetName
    node: NodeName | None = None
    parents: Flag = False
    properties: Annotated[JsonObject, Field(description="create: compression, quota ...; volsize makes a volume")] | None = None
    recursive: Flag = False
    used_by: ClassVar = {"parents": ("create",), "properties": ("create",), "recursive": ("destroy",)}

    @model_validator(mode="after")
    def _properties_that_may_be_set(self) -> Self:
        if self.action == "create":
            properties.check_create(self.properties or {})
        return self


@tool(
    "proxmox_zfs_dataset",
    "Create or destroy a ZFS dataset, over SSH; what is in use, held or cloned is not destroyed.",
    title="ZFS dataset: create, destroy",
    group="zfs",
    limit="none",
    model=ZfsDataset,
    risk=Risk.DATA_LOSS,
)
async def zfs_dataset(args: ZfsDataset, call: Call) -> Plan:
    """`zfs create`, `zfs destroy`. What goes with it is listed first; after a failure it is listed again, for half of it may be gone."""
    if "/" not in args.name:
        raise InvalidArgument("name", f"{args.name} is a pool: proxmox_zfs_pool_manage makes and destroys pools")
    zfs = await Zfs.on(call, args.node)
    await zfs.must_answer(args.name)
    if args.action == "destroy":
        return await destroying.plan(zfs, args.name, recursive=args.recursive)
    return await _create(args, zfs)


async def _create(args: ZfsDataset, zfs: Zfs) -> Plan:
    given = properties.check_create(args.properties or {})
    size = given.pop("volsize", None)
    options = [word for name, value in given.items() for word in ("-o", f"{name}={value}")]
    words = (*(("-p",) if args.parents else ()), *options, *(("-V", size) if size is not None else ()), args.name)
    obstacles = await _no_room_for(args, zfs)
    doubts: list[str] = []
    if not obstacles:
        tried = await zfs.outcome("zfs", "create", "-n", *words, ok=(0, 1, 2, 255))
        if tried.exit_status == 2:
            doubts.append("whether ZFS takes these properties: this version cannot try it")
        elif tried.exit_status != 0:
            obstacles.append(f"ZFS says: {said(tried.stderr)}")
    what = f"a volume of {size}" if size is not None else "a file system"
    told = ", ".join(f"{name}={value}" for name, value in given.items())
    summary = f"create {args.name} on node {zfs.node}: {what}{f' with {told}' if told else ''}"

    async def found(results: Sequence[StepResult]) -> Answer:
        made = await one(zfs, args.name)
        if made is None:
            return Answer("", record={"now": f"there is no {args.name}"})
        where = {"mounted": made.mountpoint or "no"} if not made.volume else {"device": f"/dev/zvol/{made.name}"}
        return conclusions.done(summary, results, {"now": f"{args.name} exists", **where})

    return Plan(
        summary,
        (zfs.command("zfs", "create", *words),),
        Risk.CHANGE,
        destroying.targets(zfs.node, args.name),
        undo=f"proxmox_zfs_dataset action=destroy name={args.name}",
        obstacles=tuple(obstacles),
        doubts=tuple(doubts),
        notes=tuple(warning for name, value in given.items() for warning in properties.warnings(name, value, new=True)),
        conclude=found,
        after_failure=found,
    )


async def _no_room_for(args: ZfsDataset, zfs: Zfs) -> list[str]:
    """Why it cannot be made where it is to be."""
    if await one(zfs, args.name) is not None:
        return [f"{args.name} exists already"]
    parent = args.name.rpartition("/")[0]
    above = await one(zfs, parent)
    if above is None and not args.parents:
        return [f"its parent {parent} does not exist; parents=true makes it too"]
    while above is None and "/" in parent:
        parent = parent.rpartition("/")[0]
        above = await one(zfs, parent)
    if above is None:
        return []
    if above.volume:
        return [f"its parent {parent} is a volume, and a volume has no children"]
    given = args.properties or {}
    place = f"{(above.place or '').rstrip('/')}{args.name.removeprefix(parent)}"
    if "mountpoint" in given or "volsize" in given or given.get("canmount") in ("off", "noauto", False):
        return []
    if (above.place or "").startswith("/") and properties.over_the_system(place):
        return [f"it would be mounted at {place}, over what the node itself lives on: give a mountpoint of its own, or canmount=noauto"]
    return []


def _property_list(value: str) -> str:
    for name in value.split(","):
        names.property_name(name)
    return value


class ZfsProperty(Changing, Reading):
    action: Literal["get", "set"] = "get"
    name: names.AnyName
    property: Annotated[str, AfterValidator(_property_list)] = "all"
    value: str | None = None
    node: NodeName | None = None

    @model_validator(mode="after")
    def _may_be_set(self) -> Self:
        if self.action == "get":
            if self.value is not None:
                raise ValueError("value is for action=set")
            return self
        if self.value is None:
            raise ValueError("action=set needs a value")
        properties.check_set(self.property, self.value)
        if names.dataset_of(self.name) != self.name and not names.is_user_property(self.property):
            raise ValueError("a snapshot's properties are fixed, but for a user's own (with a colon)")
        return self


@tool(
    "proxmox_zfs_property",
    "Read ZFS properties of a dataset or snapshot, or set one that is safe to set.",
    title="ZFS properties",
    group="zfs",
    limit="none",
    model=ZfsProperty,
    risk=Risk.CHANGE,
    destructive=True,
    reads={"action": ("get",)},
)
async def zfs_property(args: ZfsProperty, call: Call) -> Answer | Plan:
    """`zfs get -Hp`, `zfs set`. Values are ZFS's own: bytes, Unix seconds, ratios; as text with their meaning behind them.

    2 properties; name=tank/data; node=pve1
    property value source
    quota "0 (none)" default
    org.lab:note "a user property, with = and : in it" local
    """
    zfs = await Zfs.on(call, args.node)
    await zfs.must_answer(args.name)
    found = await _properties(zfs, args.name, args.property)
    if args.action == "set":
        return _set(args, zfs, await _on_the_system(args, zfs), *(found[0][1:] if found else ("-", "-")))
    tell = (lambda _, value: value) if args.response_format == "json" else properties.readable
    rows = [{"property": name, "value": _told(tell(name, value)), "source": _told(source)} for name, value, source in found]
    columns = (Column("property"), Column("value"), Column("source"))
    return Answer("properties", rows=rows, columns=columns, order=("property",), filters={"name": args.name, "node": zfs.node})


def _told(value: str) -> str | None:
    return None if value == "-" else value


async def _properties(zfs: Zfs, name: str, wanted: str) -> list[tuple[str, str, str]]:
    out = await zfs.outcome("zfs", "get", "-Hp", "-o", "name,property,value,source", wanted, name, max_bytes=4_000_000)
    return tables.properties(out.stdout, name)


async def _on_the_system(args: ZfsProperty, zfs: Zfs) -> list[str]:
    """The file systems that the node lives on, where this would be its end: they, and what they inherit from."""
    if not properties.is_deadly(args.property, args.value or ""):
        return []
    below = await zfs.table("zfs", "list", "-r", "-t", "filesystem", args.name, columns=("name", "mounted", "mountpoint"))
    return [
        f"{row['name']} is mounted at {row['mountpoint']}: the node lives on it, and {args.property}={args.value} would reach it"
        for row in below.rows
        if row["mounted"] == "yes" and properties.over_the_system(row["mountpoint"] or "")
    ]


def _set(args: ZfsProperty, zfs: Zfs, obstacles: Sequence[str], now: str, source: str) -> Plan:
    before = properties.readable(args.property, now) + (f", {source}" if source != "-" else "")
    summary = f"set {args.property}={args.value} on {args.name} of node {zfs.node} (now {before})"
    targets = destroying.targets(zfs.node, args.name)
    if (now, source) == (args.value, "local"):
        return Plan(f"{args.property} of {args.name} is {now} already", (), Risk.CHANGE, targets)
    back = f"{shlex.join(['zfs', 'inherit', args.property, args.name])} (proxmox_host_exec)"
    if source == "local":
        back = f"proxmox_zfs_property action=set name={args.name} property={args.property} value={now}"
    notes = list(properties.warnings(args.property, args.value or ""))
    vmid = names.guest_of(args.name)
    if vmid is not None and args.property.endswith(("quota", "reservation")):
        notes.append(
            f"it is a disk of guest {vmid}, whose configuration does not learn of this; `pct resize` or the web interface changes both"
        )

    async def conclude(results: Sequence[StepResult]) -> Answer:
        after = await _properties(zfs, args.name, args.property)
        return conclusions.done(summary, results, {name: f"{value} ({origin})" for name, value, origin in after})

    return Plan(
        summary,
        (zfs.command("zfs", "set", f"{args.property}={args.value}", args.name),),
        Risk.CHANGE,
        targets,
        undo=back,
        fingerprint=f"{now}/{source}",
        obstacles=tuple(destroying.few(list(obstacles), "of the node's own")),
        notes=tuple(notes),
        conclude=conclude,
    )
