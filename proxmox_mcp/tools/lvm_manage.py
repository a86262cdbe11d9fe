"""Volume groups and thin pools made and destroyed: proxmox_lvm_manage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Destroying, DiskName, Flag, NodeName, StorageId, Waiting
from proxmox_mcp.changes import conclusions, disk_use, node_pools, storage_users
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.inventory import read_object, read_rows, rows_of
from proxmox_mcp.plan import Answer, ApiCall, Plan, Risk, StepResult
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool


class LvmManage(Destroying, Waiting):
    action: Literal["create_vg", "create_thin", "destroy_vg", "destroy_thin"]
    name: StorageId
    node: NodeName | None = None
    device: Annotated[DiskName, Field(description="create: /dev/sdb")] | None = None
    volume_group: Annotated[StorageId, Field(description="destroy_thin: where it is")] | None = None
    add_storage: Flag = True
    cleanup_config: Flag = True
    cleanup_disks: Annotated[Flag, Field(description="destroy: wipe the disks")] = False
    used_by: ClassVar = {
        **dict.fromkeys(("device", "add_storage"), ("create_vg", "create_thin")),
        **dict.fromkeys(("cleanup_config", "cleanup_disks"), ("destroy_vg", "destroy_thin")),
        "volume_group": ("destroy_thin",),
    }

    @model_validator(mode="after")
    def _device_for_new(self) -> Self:
        if self.action.startswith("create") and self.device is None:
            raise ValueError(f"action={self.action} needs device")
        return self


@tool(
    "proxmox_lvm_manage",
    "Make a volume group or thin pool on an unused disk, or destroy one.",
    title="LVM: create, destroy",
    group="disks",
    model=LvmManage,
    risk=Risk.DATA_LOSS,
    destructive=True,
    limit="none",
)
async def lvm_manage(args: LvmManage, call: Call) -> Plan:
    """POST and DELETE /nodes/{node}/disks/{lvm|lvmthin}; create_thin makes a volume group of the same name with the pool in it."""
    checks = Checks(call.inventory)
    node = await checks.node(args.node)
    await checks.privileges(Need("/", ("Sys.Modify",)))
    if args.action.startswith("create"):
        return await _create(args, call, checks, node)
    return await _destroy(args, call, checks, node)


async def _create(args: LvmManage, call: Call, checks: Checks, node: str) -> Plan:
    assert args.device is not None
    thin = args.action == "create_thin"
    disk = await disk_use.find(call.api, node, args.device)
    await disk_use.must_be_free(checks, node, disk)
    checks.refuse(f"there is a volume group {args.name} on {node} already", when=args.name in await _groups(call, node))
    if args.add_storage:
        await node_pools.storage_id_is_free(checks, args.name, node, "lvmthin" if thin else "lvm")
    entry = f", as storage {args.name}" if args.add_storage else ""
    what = f"volume group and thin pool {args.name}" if thin else f"volume group {args.name}"
    summary = f"make {what} on {disk} of node {node}{entry}"
    params = {"name": args.name, "device": disk.path, "add_storage": int(args.add_storage)}
    step = ApiCall("POST", _path(node, thin), params)
    return _plan(args, call, checks, node, summary, step, (f"volume group {args.name}", f"disk {disk.path}"), disk.fingerprint)


async def _destroy(args: LvmManage, call: Call, checks: Checks, node: str) -> Plan:
    thin = args.action == "destroy_thin"
    groups = await _groups(call, node)
    group = await _group_of(args, call, checks, node) if thin else args.name
    if not thin and args.name not in groups:
        checks.refuse(f"there is no volume group {args.name} on {node}; there are: {', '.join(groups) or 'none'}")
    refs = storage_users.on_volume_group(await checks.inventory.storages(), group, node, thinpool=args.name if thin else None)
    there = await storage_users.tenants(checks, refs, node)
    physical = [str(volume.get("name")) for volume in rows_of(groups.get(group, {}).get("children", []), *_path(node, False))]
    await disk_use.must_not_be_the_system(checks, node, f"volume group {group}", physical)
    await node_pools.may_destroy(checks, there, cleanup_config=args.cleanup_config)
    what = f"thin pool {args.name} of volume group {group}" if thin else f"volume group {args.name}"
    count = None if thin else groups.get(args.name, {}).get("lvcount")
    counted = f" with its {count} logical volumes" if count else ""
    own = [ref for ref in refs if ref.type == ("lvmthin" if thin else "lvm")]
    fate = await node_pools.fate(checks, there, own, node, cleanup_config=args.cleanup_config, cleanup_disks=args.cleanup_disks)
    params = {
        "volume-group": group if thin else None,
        "cleanup-config": int(args.cleanup_config),
        "cleanup-disks": int(args.cleanup_disks),
    }
    step = ApiCall("DELETE", (*_path(node, thin), args.name), params)
    checks.doubt("logical volumes that no storage of Proxmox uses: the API does not list them")
    summary = f"destroy {what} of node {node}{counted}{fate}"
    return _plan(args, call, checks, node, summary, step, (f"volume group {group}",), f"{count}/{there.fingerprint}")


def _plan(
    args: LvmManage, call: Call, checks: Checks, node: str, summary: str, step: ApiCall, targets: tuple[str, ...], fingerprint: str
) -> Plan:
    async def conclude(results: Sequence[StepResult]) -> Answer:
        groups = await _groups(call, node)
        pools = [f"{pool['vg']}/{pool['lv']}" for pool in await _thin_pools(call, node)]
        facts = {"volume groups": ", ".join(groups) or "none", "thin pools": ", ".join(pools) or "none"}
        return conclusions.done(summary, results, facts)

    return Plan(
        summary,
        (step,),
        Risk.DATA_LOSS if args.action.startswith("destroy") else Risk.CHANGE,
        (f"node {node}", *targets),
        fingerprint=fingerprint,
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        conclude=conclude,
        after_failure=conclude,
    )


def _path(node: str, thin: bool) -> tuple[str, ...]:
    return ("nodes", node, "disks", "lvmthin" if thin else "lvm")


async def _groups(call: Call, node: str) -> dict[str, Mapping[str, Any]]:
    """Volume groups of the node by name (GET /nodes/{node}/disks/lvm)."""
    path = _path(node, False)
    tree = await read_object(call.api, *path)
    return {str(group["name"]): group for group in rows_of(tree.get("children", []), *path) if group.get("name")}


async def _thin_pools(call: Call, node: str) -> list[Mapping[str, Any]]:
    return [pool for pool in await read_rows(call.api, *_path(node, True)) if pool.get("lv") and pool.get("vg")]


async def _group_of(args: LvmManage, call: Call, checks: Checks, node: str) -> str:
    """The volume group of the thin pool: the one named, else the only one that has a pool of this name."""
    pools = await _thin_pools(call, node)
    mine = [str(pool["vg"]) for pool in pools if pool["lv"] == args.name and args.volume_group in (None, pool["vg"])]
    if not mine:
        known = ", ".join(f"{pool['vg']}/{pool['lv']}" for pool in pools) or "none"
        checks.refuse(f"there is no thin pool {args.name} on {node}; there are: {known}")
        return args.volume_group or args.name
    if len(mine) > 1:
        raise InvalidArgument("volume_group", f"{args.name} is in {', '.join(mine)}: say which")
    return mine[0]
