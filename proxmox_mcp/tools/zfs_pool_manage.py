"""ZFS pools made and destroyed over the API: proxmox_zfs_pool_manage."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Destroying, DiskName, Flag, NodeName, StorageId, Waiting, between, json_text
from proxmox_mcp.changes import conclusions, disk_use, node_pools, storage_users
from proxmox_mcp.changes.disk_use import Disk
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.inventory import read_rows
from proxmox_mcp.plan import Answer, ApiCall, Plan, Risk, StepResult
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool

# the fewest disks of each level
_FEWEST = {"single": 1, "mirror": 2, "raid10": 4, "raidz": 3, "raidz2": 4, "raidz3": 5, "draid": 3, "draid2": 4, "draid3": 5}
_MOST = 256
_RESERVED = re.compile(r"(?:mirror|raidz|draid|spare).*|log|c[0-9].*", re.IGNORECASE)


class ZfsPoolManage(Destroying, Waiting):
    action: Literal["create", "destroy"]
    name: StorageId
    node: NodeName | None = None
    devices: Annotated[list[DiskName], BeforeValidator(json_text)] | None = None
    raidlevel: Literal["single", "mirror", "raid10", "raidz", "raidz2", "raidz3", "draid", "draid2", "draid3"] = "single"
    ashift: Annotated[int, AfterValidator(between(9, 16))] = 12
    compression: Annotated[Literal["on", "off", "lzjb", "lz4", "zle", "gzip", "zstd"], WithJsonSchema({"type": "string"})] = "lz4"
    add_storage: Flag = True
    cleanup_config: Flag = True
    cleanup_disks: Annotated[Flag, Field(description="destroy: wipe the disks")] = False
    used_by: ClassVar = {
        **dict.fromkeys(("devices", "raidlevel", "ashift", "compression", "add_storage"), ("create",)),
        **dict.fromkeys(("cleanup_config", "cleanup_disks"), ("destroy",)),
    }

    @model_validator(mode="after")
    def _enough_devices(self) -> Self:
        if self.action == "destroy":
            return self
        if _RESERVED.fullmatch(self.name):
            raise ValueError("ZFS keeps names that begin with mirror, raidz, draid, spare, or c and a digit, and log, for itself")
        given = self.devices or []
        if len(given) > _MOST:
            raise ValueError(f"at most {_MOST} devices")
        fewest = _FEWEST[self.raidlevel]
        if len(given) < fewest or (self.raidlevel == "single" and len(given) != 1):
            raise ValueError(f"raidlevel {self.raidlevel} needs {'exactly one device' if fewest == 1 else f'at least {fewest} devices'}")
        if self.raidlevel == "raid10" and len(given) % 2:
            raise ValueError("raid10 needs an even number of devices")
        return self


@tool(
    "proxmox_zfs_pool_manage",
    "Make a ZFS pool of unused disks, or destroy one with all that is on it.",
    title="ZFS pools: create, destroy",
    group="disks",
    model=ZfsPoolManage,
    risk=Risk.DATA_LOSS,
    destructive=True,
    limit="none",
)
async def zfs_pool_manage(args: ZfsPoolManage, call: Call) -> Plan:
    """POST /nodes/{node}/disks/zfs; DELETE /nodes/{node}/disks/zfs/{name}?cleanup-config&cleanup-disks."""
    checks = Checks(call.inventory)
    node = await checks.node(args.node)
    await checks.privileges(Need("/", ("Sys.Modify",)))
    members = await disk_use.pool_members(checks, node)
    if args.action == "create":
        return await _create(args, call, checks, node, members)
    return await _destroy(args, call, checks, node, members)


async def _create(args: ZfsPoolManage, call: Call, checks: Checks, node: str, members: dict[str, list[str]] | None) -> Plan:
    checks.refuse(f"there is a pool {args.name} on {node} already", when=args.name in (members or {}))
    found = [await disk_use.find(call.api, node, name) for name in args.devices or ()]
    for disk in found:
        await disk_use.must_be_free(checks, node, disk)
    twice = [path for path, count in Counter(disk.path for disk in found).items() if count > 1]
    checks.refuse(f"{', '.join(twice)} is named twice", when=bool(twice))
    if args.add_storage:
        await node_pools.storage_id_is_free(checks, args.name, node, "zfspool")
    summary = f"make ZFS pool {args.name} ({args.raidlevel}) of {', '.join(map(str, found))} on node {node}" + (
        f", as storage {args.name}" if args.add_storage else ""
    )
    params = {
        "name": args.name,
        "devices": ",".join(disk.path for disk in found),
        "raidlevel": args.raidlevel,
        "ashift": args.ashift,
        "compression": args.compression,
        "add_storage": int(args.add_storage),
    }
    step = ApiCall("POST", ("nodes", node, "disks", "zfs"), params)
    prints = ";".join(disk.fingerprint for disk in found)
    return _plan(args, call, checks, node, summary, step, tuple(f"disk {disk.path}" for disk in found), prints, _layout_notes(args, found))


def _layout_notes(args: ZfsPoolManage, found: Sequence[Disk]) -> tuple[str, ...]:
    notes = []
    if len({disk.size for disk in found}) > 1 and args.raidlevel != "single":
        notes.append("the disks differ in size: of each only as much is used as the smallest has")
    if args.raidlevel == "mirror" and len(found) > 2:
        notes.append(f"one mirror of {len(found)} disks: each holds everything; raid10 stripes over pairs")
    if args.raidlevel == "single":
        notes.append("no redundancy: the pool is lost with its disk")
    return tuple(notes)


async def _destroy(args: ZfsPoolManage, call: Call, checks: Checks, node: str, members: dict[str, list[str]] | None) -> Plan:
    if members is not None and args.name not in members:
        checks.refuse(f"there is no pool {args.name} on {node}; there are: {', '.join(members) or 'none'}")
    refs = storage_users.on_pool(await checks.inventory.storages(), args.name, node)
    there = await storage_users.tenants(checks, refs, node)
    await node_pools.may_destroy(checks, there, cleanup_config=args.cleanup_config)
    await disk_use.must_not_be_the_system(checks, node, f"pool {args.name}", (members or {}).get(args.name, []))
    own = [ref for ref in refs if ref.row.get("pool") == args.name]
    fate = await node_pools.fate(checks, there, own, node, cleanup_config=args.cleanup_config, cleanup_disks=args.cleanup_disks)
    summary = f"destroy ZFS pool {args.name} of node {node} with all its datasets and snapshots{fate}"
    params = {"cleanup-config": int(args.cleanup_config), "cleanup-disks": int(args.cleanup_disks)}
    checks.doubt("datasets that no storage of Proxmox uses: proxmox_zfs_list_datasets shows them over SSH")
    step = ApiCall("DELETE", ("nodes", node, "disks", "zfs", args.name), params)
    prints = f"{','.join((members or {}).get(args.name, []))}/{there.fingerprint}"
    return _plan(args, call, checks, node, summary, step, (), prints, ())


def _plan(
    args: ZfsPoolManage,
    call: Call,
    checks: Checks,
    node: str,
    summary: str,
    step: ApiCall,
    more: tuple[str, ...],
    fingerprint: str,
    notes: tuple[str, ...],
) -> Plan:
    async def conclude(results: Sequence[StepResult]) -> Answer:
        pools = await read_rows(call.api, "nodes", node, "disks", "zfs")
        names = [f"{pool.get('name')} {pool.get('health')}" for pool in pools]
        return conclusions.done(summary, results, {"pools": ", ".join(names) or "none"})

    return Plan(
        summary,
        (step,),
        Risk.DATA_LOSS if args.action == "destroy" else Risk.CHANGE,
        (f"node {node}", f"pool {args.name}", *more),
        fingerprint=fingerprint,
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=notes,
        conclude=conclude,
        after_failure=conclude,
    )
