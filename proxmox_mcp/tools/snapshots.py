"""Snapshots of a guest, as Proxmox keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Kind as GuestType
from proxmox_mcp.arguments import Listing, NodeName, Vmid
from proxmox_mcp.inventory import flag, number, read_rows
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool

CURRENT = "current"  # Proxmox ends each list with this entry for the state of now; it is no snapshot


class ListSnapshots(Listing):
    node: NodeName | None = None
    vmid: Vmid
    vm_type: GuestType | None = None


_SNAPSHOTS = (
    Column("name"),
    Column("snaptime", Kind.TIME, head="taken"),
    Column("parent"),
    Column("vmstate", Kind.FLAG, head="ram"),
    Column("description"),
)


@tool("proxmox_list_snapshots", "Snapshots of a guest.", title="List snapshots", group="snapshots", model=ListSnapshots)
async def list_snapshots(args: ListSnapshots, call: Call) -> Answer:
    """GET /nodes/{node}/{qemu|lxc}/{vmid}/snapshot. `vmstate` (head ram): memory is part of it; `snapstate`: it was never finished.

    2 snapshots; guest=101; node=pve1
    current: on top of nightly
    name taken parent ram description snapstate
    pre_upgrade 2026-03-01 01:00Z - no "" -
    nightly 2026-03-02 01:00Z pre_upgrade - - prepare
    """
    guest = await call.inventory.guest(args.vmid, node=args.node, kind=args.vm_type, live=True)
    found = await read_rows(call.api, "nodes", guest.node, guest.kind, guest.vmid, "snapshot")
    rows = [
        {**row, "snaptime": number(row.get("snaptime")), "vmstate": flag(row["vmstate"]) if "vmstate" in row else None}
        for row in found
        if row.get("name") != CURRENT
    ]
    now: Mapping[str, Any] = next((row for row in found if row.get("name") == CURRENT), {})
    unfinished = [str(row.get("name")) for row in rows if row.get("snapstate")]
    notes = [*call.inventory.notes]
    if unfinished:
        notes.append(f"not complete, left by a task that was cut off or still runs: {', '.join(unfinished)}; see proxmox_list_tasks")
    return Answer(
        "snapshots",
        rows=rows,
        columns=(*_SNAPSHOTS, Column("snapstate", default=bool(unfinished))),
        order=("snaptime", "name"),
        filters={"guest": guest.vmid, "node": guest.node},
        record={"current": f"on top of {now['parent']}" if now.get("parent") else "on no snapshot"},
        notes=tuple(notes),
    )
