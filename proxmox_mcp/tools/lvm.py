"""LVM of the nodes: volume groups with their physical volumes, thin pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Listing, NodeName
from proxmox_mcp.inventory import number, read_object, read_rows, rows_of, share
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool

METADATA_FULL = 80  # percent of a thin pool's metadata; when it is full the pool stops, whatever room the data has
DATA_FULL = 90  # percent of its data


class ListLvm(Listing):
    node: NodeName | None = None


class ListLvmThin(Listing):
    node: NodeName | None = None


_GROUPS = (
    *(Column("node"), Column("vg"), Column("size", Kind.BYTES), Column("free", Kind.BYTES)),
    *(Column("lvcount", Kind.NUMBER, head="lvs"), Column("pvs")),
    *(Column("pv_sizes", default=False), Column("pv_free", default=False)),
)


@tool("proxmox_list_lvm", "LVM volume groups with their disks.", title="List volume groups", group="disks", model=ListLvm)
async def list_lvm(args: ListLvm, call: Call) -> Answer:
    """GET /nodes/{node}/disks/lvm: a tree of volume groups and physical volumes (no logical ones). Sizes in bytes.

    1 volume groups; node=pve1
    vg size free lvs pvs
    pve 466G 16.0G 3 /dev/sda3
    """
    found = await call.inventory.from_nodes(args.node, lambda node: _groups(call, node))
    rows = [_group_row(group, node) for node, groups in found.items() for group in groups]
    filters = {"node": next(iter(found)) if args.node is not None else None}
    return Answer("volume groups", rows=rows, columns=_GROUPS, order=("node", "vg"), filters=filters, notes=call.inventory.notes)


async def _groups(call: Call, node: str) -> list[dict[str, Any]]:
    """The volume groups, each with a list of its physical volumes in `children`."""
    path = ("nodes", node, "disks", "lvm")
    groups = rows_of((await read_object(call.api, *path)).get("children", []), *path)
    return [{**group, "children": rows_of(group.get("children", []), *path)} for group in groups]


def _group_row(group: Mapping[str, Any], node: str) -> dict[str, Any]:
    physical = group["children"]
    return {
        **{name: group.get(name) for name in ("size", "free", "lvcount")},
        "node": node,
        "vg": group.get("name"),
        "pvs": [str(volume.get("name")) for volume in physical],
        "pv_sizes": [volume.get("size") for volume in physical],
        "pv_free": [volume.get("free") for volume in physical],
    }


_POOLS = (
    *(Column("node"), Column("vg"), Column("lv"), Column("lv_size", Kind.BYTES, head="size")),
    *(Column("data_percent", Kind.NUMBER, head="data%"), Column("metadata_percent", Kind.NUMBER, head="meta%")),
    *(Column("used", Kind.BYTES, default=False), Column("metadata_size", Kind.BYTES, default=False)),
    *(Column("metadata_used", Kind.BYTES, default=False), Column("lv_state", default=False), Column("ctime", Kind.TIME, default=False)),
)


@tool("proxmox_list_lvm_thin", "LVM thin pools with data and metadata use.", title="List thin pools", group="disks", model=ListLvmThin)
async def list_lvm_thin(args: ListLvmThin, call: Call) -> Answer:
    """GET /nodes/{node}/disks/lvmthin. Sizes in bytes; data% and meta% of the pool, computed with one decimal.

    1 thin pools; node=pve1
    vg lv size data% meta%
    pve data 340G 54.8 2.6
    """
    found = await call.inventory.from_nodes(args.node, lambda node: read_rows(call.api, "nodes", node, "disks", "lvmthin"))
    rows = [_pool_row(pool, node) for node, pools in found.items() for pool in pools]
    warnings = [warning for row in rows for warning in _warnings(row)]
    filters = {"node": next(iter(found)) if args.node is not None else None}
    notes = (*warnings, *call.inventory.notes)
    return Answer("thin pools", rows=rows, columns=_POOLS, order=("node", "vg", "lv"), filters=filters, notes=notes)


def _pool_row(pool: Mapping[str, Any], node: str) -> dict[str, Any]:
    data, metadata = share(pool.get("used"), pool.get("lv_size")), share(pool.get("metadata_used"), pool.get("metadata_size"))
    return {
        **pool,
        "node": node,
        "ctime": number(pool.get("ctime")),
        "data_percent": _percent(data),
        "metadata_percent": _percent(metadata),
    }


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else round(fraction * 100, 1)


def _warnings(row: Mapping[str, Any]) -> list[str]:
    pool = f"{row.get('vg')}/{row.get('lv')} on {row['node']}"
    data, metadata = row["data_percent"], row["metadata_percent"]
    found = []
    if metadata is not None and metadata > METADATA_FULL:
        found.append(f"{pool}: metadata {metadata} % full; at 100 % the pool stops: extend it (lvextend --poolmetadatasize)")
    if data is not None and data > DATA_FULL:
        found.append(f"{pool}: data {data} % full; at 100 % the guests on it stop")
    return found
