"""The members of the cluster and the state of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Listing, NodeName, Record
from proxmox_mcp.inventory import number, part, read_object, share
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool


class ListNodes(Listing):
    pass


_NODES = (
    Column("node"),
    Column("status"),
    Column("cpu", Kind.PERCENT, head="cpu%"),
    Column("mem_fraction", Kind.PERCENT, head="mem%"),
    Column("disk_fraction", Kind.PERCENT, head="disk%"),
    Column("uptime", Kind.DURATION),
    Column("maxcpu", Kind.NUMBER, default=False),
    Column("mem", Kind.BYTES, default=False),
    Column("maxmem", Kind.BYTES, default=False),
    Column("disk", Kind.BYTES, default=False),
    Column("maxdisk", Kind.BYTES, default=False),
    Column("level", default=False),
    Column("ssl_fingerprint", default=False),
)


@tool("proxmox_list_nodes", "Nodes of the cluster with load.", title="List nodes", group="overview", model=ListNodes)
async def list_nodes(args: ListNodes, call: Call) -> Answer:
    """GET /nodes. cpu is a fraction of all cores, mem and disk are bytes; `disk` is the root file system. Offline nodes have no numbers.

    3 nodes
    node status cpu% mem% disk% uptime
    pve1 online 7 25 13 1d
    pve2 offline - - - -
    """
    rows = [_node_row(node.row) for node in await call.inventory.nodes()]
    notes = call.inventory.notes
    if any(row["status"] == "online" and row.get("maxcpu") is None for row in rows):
        why = (await call.inventory.permissions()).explains_empty("node figures", "/nodes", "Sys.Audit")
        notes += (why or "some nodes are online and give no figures: their statistics are silent",)
    return Answer("nodes", rows=rows, columns=_NODES, order=("node",), notes=notes)


def _node_row(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {**row, "status": row.get("status") or "unknown"}
    if shown["status"] != "online":
        # sizes that are left from before say nothing about now
        shown |= dict.fromkeys(("cpu", "mem", "disk", "uptime"))
    return shown | {f"{name}_fraction": share(shown.get(name), row.get(f"max{name}")) for name in ("mem", "disk")}


class NodeStatus(Record):
    node: NodeName | None = None


_STATUS = tuple(
    Column(name, kind)
    for kind, names in {
        Kind.PERCENT: ("cpu", "wait"),
        Kind.DURATION: ("uptime",),
        Kind.FLAG: ("secure_boot",),
        Kind.BYTES: (
            *("memory_used", "memory_free", "memory_available", "memory_total", "swap_used", "swap_total"),
            *("rootfs_used", "rootfs_avail", "rootfs_total", "ksm_shared"),
        ),
    }.items()
    for name in names
) + tuple(Column(name) for name in ("boot", "cpu_sockets", "cpu_mhz", "swap"))


@tool("proxmox_get_node_status", "Load, memory, versions of a node.", title="Node status", group="overview", model=NodeStatus)
async def get_node_status(args: NodeStatus, call: Call) -> Answer:
    """GET /nodes/{node}/status. Sizes in bytes, uptime in seconds, cpu and wait fractions of all cores, load as it is (per 1, 5, 15 min).

    status of node pve1
    version: pve-manager/9.2.11/14a22df3
    uptime: 12d4h
    load: 0.31,0.4,0.52
    cpus: 16
    ...
    """
    node = await call.inventory.node_or_only(args.node)
    found = await read_object(call.api, "nodes", node.name, "status")
    return Answer(f"status of node {node.name}", record=_status(found), columns=_STATUS, notes=call.inventory.notes)


def _status(found: dict[str, Any]) -> dict[str, Any]:
    cpu, memory, swap, root = (part(found.get(name)) for name in ("cpuinfo", "memory", "swap", "rootfs"))
    kernel, boot, ksm = (part(found.get(name)) for name in ("current-kernel", "boot-info", "ksm"))
    record: dict[str, Any] = {
        "version": found.get("pveversion"),
        "kernel": kernel.get("release") or found.get("kversion"),
        "uptime": found.get("uptime"),
        "cpu": found.get("cpu"),
        "wait": found.get("wait"),
        "load": [number(value) for value in load] or None if isinstance(load := found.get("loadavg"), list) else None,
        "cpus": cpu.get("cpus"),
        "cpu_model": cpu.get("model"),
        "cpu_sockets": cpu.get("sockets"),
        "cpu_mhz": number(cpu.get("mhz")),
        **{f"memory_{name}": memory.get(name) for name in ("used", "available", "free", "total")},
        **({"swap": "none"} if number(swap.get("total")) == 0 else {f"swap_{name}": swap.get(name) for name in ("used", "total")}),
        **{f"rootfs_{name}": root.get(name) for name in ("used", "avail", "total")},
        "ksm_shared": ksm.get("shared"),
        "boot": boot.get("mode"),
        "secure_boot": boot.get("secureboot"),
    }
    optional = ("memory_available", "ksm_shared", "boot", "secure_boot", "cpu_sockets", "cpu_mhz", "wait")
    return {name: value for name, value in record.items() if value is not None or name not in optional}
