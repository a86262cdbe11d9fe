"""Guests, virtual machines and containers alike: the list, and the state of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from proxmox_mcp import secrets
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Kind as GuestType
from proxmox_mcp.arguments import Listing, NodeName, Record, Vmid, plain_text
from proxmox_mcp.errors import ApiError, ProxmoxMcpError, RequestTimeout
from proxmox_mcp.inventory import Guest, called, flag, gap, gather, number, part, read_object, read_rows, share, word
from proxmox_mcp.plan import Answer, Column, Kind
from proxmox_mcp.registry import tool


class ListVms(Listing):
    node: NodeName | None = None
    vmid: Vmid | None = None
    status: Literal["running", "stopped", "unknown"] | None = None
    guest_type: GuestType | None = None
    name: Annotated[str, AfterValidator(plain_text(64))] | None = None


_GUESTS = (
    Column("vmid", Kind.NUMBER),
    Column("name"),
    Column("type"),
    Column("node"),
    Column("status"),
    Column("cpu", Kind.PERCENT, head="cpu%"),
    Column("mem_fraction", Kind.PERCENT, head="mem%"),
    Column("mem", Kind.BYTES, default=False),
    Column("maxmem", Kind.BYTES, default=False),
    Column("memhost", Kind.BYTES, default=False),
    Column("maxcpu", Kind.NUMBER, default=False),
    Column("disk", Kind.BYTES, default=False),
    Column("maxdisk", Kind.BYTES, default=False),
    Column("uptime", Kind.DURATION, default=False),
    Column("template", Kind.FLAG, default=False),
    Column("tags", default=False),
    Column("lock", default=False),
    Column("pool", default=False),
    Column("hastate", default=False),
    *(Column(name, Kind.BYTES, default=False) for name in ("netin", "netout", "diskread", "diskwrite")),
)


@tool("proxmox_list_vms", "VMs and containers of the cluster. name: part of it.", title="List guests", group="guests", model=ListVms)
async def list_vms(args: ListVms, call: Call) -> Answer:
    """GET /cluster/resources?type=vm, up to 10 s old, and /nodes. cpu is a fraction of the guest's cores, sizes are bytes, uptime seconds.

    3 guests; node=pve1
    1 running, 1 stopped, 1 unknown
    vmid name type status cpu% mem%
    101 web qemu running 3 45
    102 db qemu stopped 0 0
    205 - lxc unknown - -
    """
    node = (await call.inventory.node(args.node)).name if args.node is not None else None
    filters = {"node": node, "vmid": args.vmid, "status": args.status, "type": args.guest_type, "name": args.name}
    everyone = [_complete(row) for row in await _rows(call)]
    fitting = [row for row in everyone if _wanted(row, args, node)]
    rows = [row for row in fitting if args.status is None or row["status"] == args.status]
    unknown = [str(row["vmid"]) for row in fitting if row["status"] == "unknown"]
    notes = call.inventory.notes
    if unknown and args.status not in (None, "unknown"):
        more = " ..." if len(unknown) > 20 else ""
        notes += (f"not in the list, their status is not known: {', '.join(unknown[:20])}{more}",)
    if not everyone and not any(line.startswith("guests:") for line in call.inventory.gaps):
        notes += tuple(filter(None, [(await call.inventory.permissions()).explains_empty("guests", "/vms", "VM.Audit")]))
    elif everyone and not rows:
        notes += (f"none of the {len(everyone)} guests that this token sees match",)
    counts = Counter(row["status"] for row in rows)
    said = ", ".join(f"{counts[status]} {status}" for status in sorted({"running", "stopped", *counts}))
    return Answer(
        "guests", rows=rows, columns=_GUESTS, order=("vmid",), filters=filters, lines=(said,) if rows else (), notes=notes, finish=_finished
    )


async def _rows(call: Call) -> list[dict[str, Any]]:
    """The guests, and the nodes beside them: what Proxmox says of guests can be minutes old, of a node that is gone it is true no more."""
    sources: dict[str, Callable[[], Awaitable[list[Any]]]] = {"guests": call.inventory.guest_rows, "nodes": call.inventory.live_nodes}
    found = await gather(sources)
    rows, live = found["guests"], found["nodes"]
    if isinstance(rows, ProxmoxMcpError):
        raise rows
    if isinstance(live, ProxmoxMcpError):
        call.inventory.gaps.append(gap("nodes", live))
        return rows
    away = {node.name for node in await call.inventory.nodes()} - set(live)
    for row in rows if away else ():
        if row["node"] in away:
            row |= {"status": "unknown", **dict.fromkeys(("cpu", "mem", "memhost", "uptime"))}
    return rows


def _wanted(row: Mapping[str, Any], args: ListVms, node: str | None) -> bool:
    return (
        (node is None or row["node"] == node)
        and (args.vmid is None or row["vmid"] == args.vmid)
        and (args.guest_type is None or row["type"] == args.guest_type)
        and (args.name is None or args.name.casefold() in str(row["name"] or "").casefold())
    )


def _complete(row: dict[str, Any]) -> dict[str, Any]:
    """The row itself with what order, filters and counts need. Runs ten thousand times in a large cluster."""
    row["vmid"] = int(row["vmid"])
    row["name"] = row.get("name") or None
    row["status"] = word(row.get("status")) or "unknown"
    return row


def _finished(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """With what is computed, and None for what Proxmox does not know."""
    disk = number(row.get("disk")) or None  # 0 is what stands there for every VM, and for a container that is stopped
    return {**row, "template": flag(row.get("template")), "mem_fraction": share(row.get("mem"), row.get("maxmem")), "disk": disk}


class VmStatus(Record):
    node: NodeName | None = None
    vmid: Vmid
    vm_type: GuestType | None = None


# shown where the guest has them; notes of the owner are left out: they are long and not ours to pass on
_FACTS = (
    *("uptime", "cpu", "cpus", "mem", "maxmem", "mem_fraction", "memhost", "swap", "maxswap", "disk", "maxdisk"),
    *("netin", "netout", "diskread", "diskwrite", "running-qemu", "running-machine", "tags", "lock", "pid"),
)
_KINDS = tuple(
    Column(name, kind)
    for kind, names in {
        Kind.PERCENT: ("cpu", "mem_fraction"),
        Kind.DURATION: ("uptime",),
        Kind.FLAG: ("template", "agent", "onboot", "protection"),
        Kind.BYTES: ("mem", "maxmem", "memhost", "swap", "maxswap", "disk", "maxdisk", "netin", "netout", "diskread", "diskwrite"),
    }.items()
    for name in names
)
_STATUS = (*_KINDS, *(Column(name) for name in (*_FACTS, "qmpstatus", "pending") if name not in {column.name for column in _KINDS}))


@tool(
    "proxmox_get_vm_status", "Live state of a guest: load, lock, HA, pending changes.", title="Guest status", group="guests", model=VmStatus
)
async def get_vm_status(args: VmStatus, call: Call) -> Answer:
    """GET /nodes/{node}/{qemu|lxc}/{vmid}/status/current, and .../pending. Bytes, seconds, cpu and memory as fractions.

    VM 101 (web) on pve1: running
    uptime: 12d4h
    cpu: 3%
    ...
    ha: managed, started
    agent: yes
    pending:
    key value pending
    memory 2048 4096
    note: the agent is enabled in the configuration; whether it answers is not told here
    """
    guest = await call.inventory.guest(args.vmid, node=args.node, kind=args.vm_type, live=True)
    path = ("nodes", guest.node, guest.kind, guest.vmid)
    now = await read_object(call.api, *path, "status", "current")
    notes: list[str] = []
    try:
        config = {str(item.get("key")): item for item in await read_rows(call.api, *path, "pending")}
    except (ApiError, RequestTimeout) as error:
        config = {}
        notes.append(gap("pending changes", error))
    record = _state(guest, now, config)
    if record.get("agent"):
        notes.append("agent: enabled in the configuration; whether it answers is not told here")
    if record.get("lock"):
        notes.append(f"locked ({record['lock']}): a task holds it, or was cut off while it did; see proxmox_list_tasks vmid={guest.vmid}")
    if "pending" in record:
        notes.append("pending changes take effect when the guest is stopped and started, or rebooted through Proxmox")
    name = called(now.get("name") or guest.name)
    kind = "VM" if guest.kind == "qemu" else "container"
    title = f"{kind} {guest.vmid}{name} on {guest.node}: {record.get('qmpstatus', record['status'])}"
    return Answer(title, record=record, columns=_STATUS, notes=(*call.inventory.notes, *notes))


def _state(guest: Guest, now: Mapping[str, Any], config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    qmp = word(now.get("qmpstatus"))
    status = word(now.get("status")) or "unknown"
    record: dict[str, Any] = {"vmid": guest.vmid, "name": now.get("name") or guest.name, "type": guest.kind, "node": guest.node}
    record |= {"status": status} | ({"qmpstatus": qmp} if qmp and qmp != status else {})
    facts = {**now, "mem_fraction": share(now.get("mem"), now.get("maxmem"))}
    facts["disk"] = number(facts.get("disk")) or None  # always 0 for a VM, and for a container that is stopped: not known
    record |= {name: facts[name] for name in _FACTS if facts.get(name) is not None}
    record |= {name: True for name in ("template",) if flag(now.get(name)) or guest.template}
    record |= {"ha": _ha(part(now.get("ha")))}
    if guest.kind == "qemu":
        record["agent"] = flag(now.get("agent"))
    record |= {name: flag(config[name].get("value")) for name in ("onboot", "protection") if name in config}
    pending = [_pending(key, item) for key, item in config.items() if "pending" in item or item.get("delete")]
    return record | ({"pending": sorted(pending, key=lambda change: str(change["key"]))} if pending else {})


def _ha(ha: Mapping[str, Any]) -> str:
    if not flag(ha.get("managed")):
        return "not managed"
    state = ha.get("state") or "state not known"
    return f"managed, {state}" + (f", group {ha['group']}" if ha.get("group") else "")


def _pending(key: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """One change that waits: secrets masked, texts of the owner not repeated."""
    if key == "description":
        return {"key": key, "value": None, "pending": "new notes"}
    old, new = (secrets.mask_params({key: item.get(name)})[key] for name in ("value", "pending"))
    return {"key": key, "value": _known(old), "pending": "(deleted)" if item.get("delete") else _known(new)}


def _known(value: Any) -> Any:
    as_number = number(value)
    return value if as_number is None else as_number
