"""The list tools on a big cluster: their first pages, all their pages, and what they should hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proxmox_mcp import pipeline
from proxmox_mcp.app import App
from proxmox_mcp.registry import Tool, all_tools
from tests.cluster import ServedCluster
from tests.faults.direct import reaching
from tests.scale.world import NOW, NodeOfPool, Size, cluster
from tests.tools.asking import NoPerson

TOOLS = {tool.name.removeprefix("proxmox_"): tool for tool in all_tools()}
# each list tool, its arguments, the fields that make a row one of its kind, and how many rows a cluster of this size has
LISTS: dict[str, tuple[dict[str, Any], list[str], Callable[[Size, ServedCluster], int]]] = {
    "list_nodes": ({}, ["node"], lambda size, api: size.nodes),
    "list_vms": ({}, ["vmid"], lambda size, api: size.guests),
    "list_snapshots": ({"vmid": 100}, ["name"], lambda size, api: size.of_guest),
    "list_tasks": ({"limit": 100}, ["upid"], lambda size, api: len(api.world.tasks)),
    "list_storage": ({}, ["storage", "node"], lambda size, api: _entries(api)),
    "list_cluster_storage": ({}, ["storage"], lambda size, api: len(api.world.storages)),
    "list_backups": ({}, ["volid"], lambda size, api: _volumes(api, "backup")),
    "list_isos": ({}, ["volid", "node"], lambda size, api: _volumes(api, "iso")),
    "list_disks": ({}, ["node", "devpath"], lambda size, api: sum(1 for node in api.world.nodes for _ in _disks(api, node))),
    "list_lvm": ({}, ["node", "vg"], lambda size, api: size.nodes),
    "list_lvm_thin": ({}, ["node", "vg", "lv"], lambda size, api: size.nodes),
    "zfs_list_snapshots": ({"limit": 10_000}, ["name"], lambda size, api: size.snapshots),
}


def _entries(api: ServedCluster) -> int:
    """Storages as proxmox_list_storage shows them: shared ones once, others once a node."""
    shared = sum(1 for row in api.world.storages.values() if row.get("shared"))
    own = sum(
        1 for name, row in api.world.storages.items() if not row.get("shared") for node in api.world.nodes if api.world.on_node(name, node)
    )
    return shared + own


def _volumes(api: ServedCluster, content: str) -> int:
    rows = [row for (name, _), rows in api.world.volumes.items() if not api.world.storages[name].get("disable") for row in rows]
    return sum(row["content"] == content for row in rows)


def _disks(api: ServedCluster, node: str) -> Iterator[Any]:
    from tests.cluster.disks import Disks

    yield from Disks(api).disks(node)


class Lists:
    """A cluster of one size, asked without a wire."""

    def __init__(self, size: Size, audit: Path) -> None:
        self.size, self.api = size, cluster(size)
        self._audit = audit

    def open(self) -> App:
        app, _ = reaching(self.api, clock=NOW, keep=False, audit_dir=self._audit, timeout=120.0, ssh_host="127.0.0.1")
        app.__dict__["ssh"] = NodeOfPool(self.size.snapshots)
        return app

    async def page(self, app: App, name: str, cursor: str | None = None, **more: Any) -> dict[str, Any]:
        """One page as JSON."""
        given = {**LISTS[name][0], **more, "response_format": "json", **({"cursor": cursor} if cursor else {})}
        found = await pipeline.run(tool(name), given, app, NoPerson())
        assert isinstance(found, pipeline.Result)
        told: dict[str, Any] = json.loads(found.text)
        return told

    def rows(self, name: str) -> int:
        return LISTS[name][2](self.size, self.api)


def tool(name: str) -> Tool:
    return TOOLS[name]


class Counted:
    """Counts calls of Python and C functions while it is entered: the same every time, whatever else the machine does."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> Counted:
        def count(frame: Any, event: str, arg: Any) -> None:
            if event in ("call", "c_call"):
                self.calls += 1

        sys.setprofile(count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
