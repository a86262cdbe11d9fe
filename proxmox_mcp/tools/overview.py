"""How the cluster is, in one call and a few hundred tokens."""

from __future__ import annotations

from typing import Any

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import NodeName, Reading
from proxmox_mcp.plan import Answer
from proxmox_mcp.registry import tool


class HealthOverview(Reading):
    node: NodeName | None = None


@tool(
    "proxmox_health_overview",
    "Start here: problems first, then nodes, quorum, guests, storages, ZFS, disks, failed tasks, backups.",
    title="Health overview",
    group="overview",
    model=HealthOverview,
)
async def health_overview(args: HealthOverview, call: Call) -> Answer:
    """Every source of proxmox_mcp.health at once, 10 s at most. Gaps are notes; a subject that nobody answered for is "unknown".

    health of the cluster: 2 problems
    problems:
    - node pve3 is offline
    - storage nas: 91% full (3.3T of 3.6T)
    nodes: 2 of 3 online (pve1 cpu 7% mem 25%, pve2 cpu 12% mem 60%)
    quorum: yes, cluster lab of 3 nodes
    guests: 41: 30 running, 9 stopped, 2 unknown; 3 templates
    ...
    note: disks of pve2: no answer in 3 s
    """
    from proxmox_mcp import health

    seen = await health.look(call.inventory, call.now(), args.node)
    report = health.report(seen)
    where = f"node {seen.nodes[0].name}" if args.node is not None and seen.nodes else "the cluster"
    count = f"{len(report.problems)} problem{'s' if len(report.problems) > 1 else ''}" if report.problems else "no problem found"
    partial = (", not everything answered" if seen.gaps else "") + (", not all is visible to this token" if report.limits else "")
    record: dict[str, Any] = {"problems": report.problems} if report.problems else {}
    notes = (*seen.gaps, *call.inventory.remarks, *report.limits)
    return Answer(f"health of {where}: {count}{partial}", record=record | report.facts, notes=notes)
