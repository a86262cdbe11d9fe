"""Physical disks of the nodes and what SMART says of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import DiskName, Flag, Listing, NodeName, Record
from proxmox_mcp.inventory import flag, number, read_object, word
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool
from proxmox_mcp.storages import disks


class ListDisks(Listing):
    node: NodeName | None = None
    include_partitions: Flag = False


_DISKS = (
    *(Column("node"), Column("devpath"), Column("model"), Column("type"), Column("size", Kind.BYTES)),
    *(Column("health"), Column("wearout", Kind.NUMBER, head="life%"), Column("used"), Column("state")),
    *(Column("serial", default=False), Column("vendor", default=False), Column("rpm", Kind.NUMBER, default=False)),
    *(Column("wwn", default=False), Column("by_id_link", default=False), Column("parent", default=False)),
    *(Column("gpt", Kind.FLAG, default=False), Column("mounted", Kind.FLAG, default=False), Column("osdid", Kind.NUMBER, default=False)),
    Column("osdid-list", default=False),
)


@tool("proxmox_list_disks", "Disks with SMART health, of a node or all.", title="List disks", group="disks", model=ListDisks)
async def list_disks(args: ListDisks, call: Call) -> Answer:
    """GET /nodes/{node}/disks/list, failing and worn first. Bytes; `wearout` (head life%) is percent of life left.

    3 disks; node=pve1
    devpath model type size health life% used state
    /dev/sdc WDC_WD40 hdd 3.6T FAILED! - ZFS failing
    /dev/sda WDC_WD40 hdd 3.6T PASSED - ZFS ok
    /dev/sdb 870_EVO ssd 894G OK 97 free ok
    """
    found = await call.inventory.from_nodes(args.node, lambda node: disks.rows(call.api, node, partitions=args.include_partitions))
    rows = [_disk_row(row, node) for node, listed in found.items() for row in listed]
    notes = list(call.inventory.notes)
    if any(row["state"] == "worn" for row in rows):
        notes.append(f"worn: at most {disks.WORN_OUT} % of life left")
    filters = {"node": next(iter(found)) if args.node is not None else None}
    return Answer("disks", rows=rows, columns=_DISKS, order=("rank", "node", "devpath"), filters=filters, notes=tuple(notes))


def _disk_row(row: Mapping[str, Any], node: str) -> dict[str, Any]:
    part = row.get("type") == "partition" or bool(row.get("parent"))
    state = None if part else disks.state(row)
    spin = number(row.get("rpm"))
    shown = {**row, "node": node, "state": state, "rank": {"failing": 0, "worn": 1}.get(state or "", 2)}
    shown |= {"wearout": number(row.get("wearout")), "rpm": spin if spin is not None and spin >= 0 else None}
    if not part:
        shown["used"] = row.get("used") or "free"  # Proxmox leaves it out for a disk that nothing uses
    return shown | {name: flag(row[name]) for name in ("gpt", "mounted") if name in row}


class DiskSmart(Record):
    node: NodeName | None = None
    disk: Annotated[DiskName, Field(description="/dev/sda")]
    healthonly: Flag = False


_SMART = (Column("life%", Kind.NUMBER), Column("attributes"))


@tool("proxmox_get_disk_smart", "SMART values of a disk.", title="Disk SMART", group="disks", model=DiskSmart)
async def get_disk_smart(args: DiskSmart, call: Call) -> Answer:
    """GET /nodes/{node}/disks/smart?disk=. ATA disks give attributes, NVMe and SAS a text; `life%` is percent of life left.

    SMART of /dev/sda on pve1: ok
    health: PASSED
    type: ata
    attributes:
    id name value worst threshold fail raw
    5 Reallocated_Sector_Ct 200 200 140 - 0
    """
    node = await call.inventory.node_or_only(args.node)
    device = await disks.device(call.api, node.name, args.disk)
    params = {"disk": device, "healthonly": 1 if args.healthonly else None}
    found = await read_object(call.api, "nodes", node.name, "disks", "smart", params=params)
    state = disks.state(found)
    record: dict[str, Any] = {"health": found.get("health"), "state": state}
    if found.get("type") is not None:
        record["type"] = found["type"]
    if number(found.get("wearout")) is not None:
        record["life%"] = number(found["wearout"])
    listed = found.get("attributes")
    attributes = [_attribute(row) for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    if attributes:
        record["attributes"] = sorted(attributes, key=lambda row: row["fail"] is None)
    notes = [*call.inventory.notes]
    failing = [str(row["name"]) for row in attributes if row["fail"] is not None]
    if failing:
        notes.append(f"beyond their threshold, now or once: {', '.join(failing)}")
    if state == "unknown":
        notes.append("the disk gave no SMART verdict: a virtual disk, a RAID controller in between, or SMART is off")
    title = f"SMART of {device} on {node.name}: {state}"
    text = word(found.get("text"))
    return Answer(title, record=record, columns=_SMART, text=text, text_source=f"smartctl {device}", notes=tuple(notes))


def _attribute(row: Mapping[str, Any]) -> dict[str, Any]:
    named = {"id": number(row.get("id")), "name": row.get("name")}
    values = {name: number(row.get(name)) for name in ("value", "worst", "threshold")}
    fail = str(row.get("fail") or "-").strip()
    return named | values | {"fail": None if fail == "-" else fail, "raw": row.get("raw")}
