"""Resources: the same truths as the reading tools, by address (proxmox://guest/101), and completion of their parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import Completion, PromptReference, ResourceTemplateReference

from proxmox_mcp import pipeline, secrets, text
from proxmox_mcp.app import App, Call, Stamp
from proxmox_mcp.errors import InvalidArgument, NotFound, ProxmoxMcpError
from proxmox_mcp.inventory import read_object
from proxmox_mcp.plan import Answer, Plan
from proxmox_mcp.registry import Tool
from proxmox_mcp.render import View, render

CAP = 48_000  # characters of one resource
MOST = 100  # values of one completion, the protocol's own limit


class _NoPeer:
    """Reading a resource asks nobody and reports no progress."""

    async def progress(self, elapsed: float, message: str) -> None:
        return None

    @property
    def asks_now(self) -> bool:
        return False

    async def approve(self, plan: Plan) -> bool:
        return False


def add_resources(server: MCPServer[Any], app: App, tools: Sequence[Tool]) -> None:
    """Registers each resource whose tool is on offer."""
    by_name = {tool.name: tool for tool in tools}

    async def read(name: str, **arguments: Any) -> str:
        return await _told(lambda: _through(by_name[name], arguments, app))

    def offered(name: str, uri: str, title: str) -> Callable[[Callable[..., Awaitable[str]]], Any]:
        if name not in by_name:
            return lambda function: function
        return server.resource(uri, title=title, mime_type="text/plain")

    @offered("proxmox_health_overview", "proxmox://overview", "Cluster overview")
    async def overview() -> str:
        """Nodes, guests, storages, backups and problems."""
        return await read("proxmox_health_overview")

    @offered("proxmox_get_node_status", "proxmox://node/{node}", "Node")
    async def node(node: str) -> str:
        """Status of one node."""
        return await read("proxmox_get_node_status", node=node)

    @offered("proxmox_get_vm_status", "proxmox://guest/{vmid}", "Guest")
    async def guest(vmid: str) -> str:
        """State and configuration of one VM or container, secrets masked."""
        number = _number(vmid)
        state = await read("proxmox_get_vm_status", vmid=number)
        return _capped(state + "\n" + await _told(lambda: _configuration(number, app)))

    @offered("proxmox_get_task_log", "proxmox://task/{upid}", "Task log")
    async def task(upid: str) -> str:
        """Verdict and last log lines of one task."""
        return await read("proxmox_get_task_log", upid=upid)

    @offered("proxmox_storage_usage_detail", "proxmox://storage/{storage}", "Storage")
    async def storage(storage: str) -> str:
        """What fills one storage."""
        return await read("proxmox_storage_usage_detail", storage=storage)

    @offered("proxmox_audit_verify", "proxmox://audit/{which}", "Audit log")
    async def audit(which: str) -> str:
        """Verdict on the audit log host, vm, api or all, and its last records."""
        return await read("proxmox_audit_verify", which=which, tail=20)

    async def complete(ref: PromptReference | ResourceTemplateReference, argument: Any, context: Any) -> Completion | None:
        known = _COMPLETIONS.get(argument.name)
        if known is None:
            return None
        try:
            values = await known(Call(app, Stamp("completion")))
        except ProxmoxMcpError:  # no completion is no error: the call itself will say what is wrong
            return None
        found = _fitting(values, argument.value.lower())
        return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)

    server.completion()(complete)  # type: ignore[no-untyped-call]  # the SDK's decorator is untyped


async def _through(tool: Tool, arguments: Mapping[str, Any], app: App) -> str:
    found = await pipeline.run(tool, arguments, app, _NoPeer())
    assert isinstance(found, pipeline.Result)
    return _capped(found.text)


async def _configuration(vmid: int, app: App) -> str:
    """GET /nodes/{node}/{qemu|lxc}/{vmid}/config, secrets masked; the owner's notes are a text of their own."""
    call = Call(app, Stamp("resource"))
    guest = await call.inventory.guest(vmid, live=True)
    config = await read_object(call.api, "nodes", guest.node, guest.kind, vmid, "config")
    shown = {name: value for name, value in secrets.mask_params(config).items() if name != "description"}
    notes = str(config["description"]) if config.get("description") else None
    return render(Answer("configuration", record=shown, text=notes, text_source=f"notes of guest {vmid}", text_limit=4_000), View())


async def _told(read: Callable[[], Awaitable[str]]) -> str:
    try:
        return await read()
    except ProxmoxMcpError as exc:
        words = secrets.mask_text(text.clean_block(str(exc), CAP))
        raise (ResourceNotFoundError if isinstance(exc, InvalidArgument | NotFound) else ResourceError)(words) from None


def _capped(whole: str) -> str:
    return whole if len(whole) <= CAP else f"{whole[:CAP]}\nnote: {len(whole) - CAP} characters left out; the tools show them page by page"


def _number(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) < 12):
        raise ResourceNotFoundError("Invalid argument vmid: a guest's id is a number such as 101")
    return int(digits)


# --- completion: (what a person types, the value)

Values = list[tuple[str, str]]


def _fitting(values: Values, typed: str) -> list[str]:
    """The values whose own text or name begins with what was typed, each once; none that would have to be cleaned."""
    fit = (value for name, value in values if value.lower().startswith(typed) or name.lower().startswith(typed))
    return [value for value in dict.fromkeys(fit) if text.clean(value, 512) == value]


async def _nodes(call: Call) -> Values:
    return [("", node.name) for node in await call.inventory.nodes()]


async def _vmids(call: Call) -> Values:
    return [(guest.name or "", str(guest.vmid)) for guest in await call.inventory.guests()]


async def _storages(call: Call) -> Values:
    return [("", storage.name) for storage in await call.inventory.storages()]


async def _upids(call: Call) -> Values:
    rows = await call.api.get("cluster", "tasks")
    return [(str(row.get("type", "")), str(row["upid"])) for row in rows if isinstance(row, Mapping) and row.get("upid")]


async def _logs(call: Call) -> Values:
    return [("", which) for which in ("host", "vm", "api", "all")]


_COMPLETIONS: dict[str, Callable[[Call], Awaitable[Values]]] = {
    "node": _nodes,
    "vmid": _vmids,
    "storage": _storages,
    "upid": _upids,
    "which": _logs,
}
