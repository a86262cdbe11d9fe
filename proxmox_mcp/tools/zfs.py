"""ZFS pools of the nodes, and the health of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Listing, NodeName, Record, StorageId
from proxmox_mcp.errors import InvalidArgument, NotFound
from proxmox_mcp.inventory import read_object, read_rows, share
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool
from proxmox_mcp.storages import zpools


class ListZfs(Listing):
    node: NodeName | None = None


_POOLS = (
    *(Column("node"), Column("name"), Column("size", Kind.BYTES), Column("alloc_fraction", Kind.PERCENT, head="used%")),
    *(Column("free", Kind.BYTES), Column("frag", Kind.NUMBER, head="frag%"), Column("health")),
    *(Column("alloc", Kind.BYTES, default=False), Column("dedup", Kind.NUMBER, default=False)),
)


@tool("proxmox_list_zfs", "ZFS pools, of a node or all.", title="List ZFS pools", group="zfs", model=ListZfs)
async def list_zfs(args: ListZfs, call: Call) -> Answer:
    """GET /nodes/{node}/disks/zfs, troubled pools first. Sizes in bytes, frag in percent, dedup as ratio.

    2 ZFS pools; node=pve1
    name size used% free frag% health
    bulk 7.3T 61 2.8T 12 DEGRADED
    tank 3.6T 40 2.2T 5 ONLINE
    """
    found = await call.inventory.from_nodes(args.node, lambda node: read_rows(call.api, "nodes", node, "disks", "zfs"))
    rows = [_pool_row(pool, node) for node, pools in found.items() for pool in pools]
    notes = [*call.inventory.notes]
    if rows:
        notes.append("ONLINE says nothing of damaged data: proxmox_get_zfs_pool does")
    filters = {"node": next(iter(found)) if args.node is not None else None}
    return Answer("ZFS pools", rows=rows, columns=_POOLS, order=("rank", "node", "name"), filters=filters, notes=tuple(notes))


def _pool_row(pool: Mapping[str, Any], node: str) -> dict[str, Any]:
    used = share(pool.get("alloc"), pool.get("size"))
    return {**pool, "node": node, "alloc_fraction": used, "rank": 1 if pool.get("health") == "ONLINE" else 0}


class ZfsPool(Record):
    node: NodeName | None = None
    name: StorageId


_HEALTH = (
    *(Column(name) for name in ("problems", "status", "action", "scan")),
    *(Column(name, Kind.BYTES) for name in ("size", "alloc", "free")),
)


@tool("proxmox_get_zfs_pool", "Health of a ZFS pool: state, scan, errors, devices.", title="ZFS pool", group="zfs", model=ZfsPool)
async def get_zfs_pool(args: ZfsPool, call: Call) -> Answer:
    """GET /nodes/{node}/disks/zfs/{name}. `problems` is our verdict; the counters are what Proxmox reads from `zpool status`.

    ZFS pool tank on pve1: not healthy
    problems:
    - state DEGRADED
    - sdb FAULTED, read 3, write 12, too many errors
    state: DEGRADED
    status: One or more devices are faulted ...
    devices:
    name vdev state read write cksum msg
    ...
    """
    node, listed = await _where(args, call)
    pool = await read_object(call.api, "nodes", node, "disks", "zfs", args.name)
    problems = zpools.findings(pool)
    tree = zpools.devices(pool)
    record: dict[str, Any] = {"problems": problems} if problems else {}
    record |= {"state": pool.get("state")}
    record |= {name: text.clean(str(pool[name])) for name in ("status", "action", "scan") if pool.get(name)}
    record |= {"errors": pool.get("errors"), **{name: listed.get(name) for name in ("size", "alloc", "free")}}
    record |= {"devices": [_device_row(device) for device in tree]}
    notes = [*call.inventory.notes]
    if any(count for device in tree for count in device.counters.values()):
        notes.append("Proxmox cuts counters of a thousand and more to their first digits (1.2K becomes 1.2): zpool status shows them whole")
    verdict = "not healthy" if problems else "healthy"
    return Answer(f"ZFS pool {args.name} on {node}: {verdict}", record=record, columns=_HEALTH, notes=tuple(notes))


async def _where(args: ZfsPool, call: Call) -> tuple[str, Mapping[str, Any]]:
    """The node that has the pool, and the pool's entry in its list; many nodes have an rpool."""
    found = await call.inventory.from_nodes(args.node, lambda node: read_rows(call.api, "nodes", node, "disks", "zfs"))
    places = {node: pool for node, pools in found.items() for pool in pools if pool.get("name") == args.name}
    if not places:
        known = [f"{pool.get('name')} on {node}" for node, pools in found.items() for pool in pools]
        unseen = f" (not seen: {'; '.join(call.inventory.gaps)})" if call.inventory.gaps else ""
        there = "no ZFS pool {} is seen" if unseen else "there is no ZFS pool {}"
        raise NotFound(f"{there.format(args.name)}; there are: {', '.join(known[:20]) or 'none'}{unseen}", status=0)
    if len(places) > 1:
        raise InvalidArgument("node", f"pool {args.name} is on {', '.join(places)}: say which")
    return next(iter(places.items()))


def _device_row(device: zpools.Device) -> dict[str, Any]:
    shown = {"name": device.name, "vdev": device.vdev, "state": device.state, **device.counters}
    return shown | ({"msg": device.msg} if device.msg else {})
