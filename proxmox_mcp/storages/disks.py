"""A node's disks: how one is named, and whether it is well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from proxmox_mcp.errors import NotFound
from proxmox_mcp.inventory import Reader, number, read_rows

WORN_OUT = 10  # percent of life left, from which on a disk is a problem

# what smartmontools says of a disk that is well: ATA and NVMe, SAS
_WELL = frozenset({"PASSED", "OK"})
# what stands where nothing could be asked: a virtual disk, a controller in between, no SMART
_SILENT = frozenset({"", "UNKNOWN", "N/A", "NOT AVAILABLE"})


def state(row: Mapping[str, Any]) -> Literal["ok", "worn", "failing", "unknown"]:
    """What a disk's SMART verdict and wear come to; `row` has `health` and `wearout` (percent of life left, or "N/A")."""
    said = str(row.get("health") or "").strip().upper()
    if said not in _WELL and said not in _SILENT:
        return "failing"
    left = number(row.get("wearout"))
    if left is not None and left <= WORN_OUT:
        return "worn"
    return "ok" if said in _WELL else "unknown"


async def rows(api: Reader, node: str, *, partitions: bool = False, smart: bool = True) -> list[dict[str, Any]]:
    """GET /nodes/{node}/disks/list; without `smart` no disk is asked, or woken, for its health."""
    params = {"include-partitions": 1 if partitions else None, "skipsmart": None if smart else 1}
    return await read_rows(api, "nodes", node, "disks", "list", params=params)


async def device(api: Reader, node: str, name: str) -> str:
    """The device path that the API takes for `sda`, `/dev/sda` or a name below /dev/disk (it takes letters, digits and slashes alone).

    Raises NotFound with the paths there are.
    """
    path = name if name.startswith("/dev/") else f"/dev/{name}"
    if path.removeprefix("/dev/").replace("/", "").isalnum() and not path.startswith("/dev/disk/"):
        return path
    known = await rows(api, node, smart=False)
    last = path.rpartition("/")[2]
    for row in known:
        link = str(row.get("by_id_link") or "")
        if path in (row.get("devpath"), link) or (link and link.rpartition("/")[2] == last):
            return str(row["devpath"])
    paths = ", ".join(str(row.get("devpath")) for row in known) or "none are visible"
    raise NotFound(f"no disk of node {node} is called {name}; there are: {paths}", status=0)
