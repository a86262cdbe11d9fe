"""@tool collects plain records (name, summary, group, risk, input model, function); imports no SDK, so --help is instant."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from proxmox_mcp.arguments import Arguments
from proxmox_mcp.plan import Answer, Plan, Risk

if TYPE_CHECKING:
    from proxmox_mcp.app import Call

Group = Literal["overview", "guests", "create", "snapshots", "backups", "storage", "disks", "zfs", "shell", "tasks", "audit"]
GROUPS: tuple[str, ...] = get_args(Group)
Function = Callable[[Any, "Call"], Awaitable[Answer | Plan]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One published tool.

    `risk` is the highest risk of any of its actions. `reads` names, for a tool that also changes things, the argument values that only
    read: read-only mode keeps the tool with those alone. `limit` says how a limit to some guests and nodes is held:
    by the guest that the call or its plan names ("guest"), by the node alone ("node": a change leaves the list where guests are
    limited), or not at all ("none": the tool leaves the list under any limit).
    """

    name: str
    title: str
    summary: str
    group: Group
    risk: Risk
    model: type[Arguments]
    function: Function
    destructive: bool
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: Literal["guest", "node", "none"] = "node"

    @property
    def read_only(self) -> bool:
        return self.risk is Risk.READ


_TOOLS: dict[str, Tool] = {}


def tool(
    name: str,
    summary: str,
    *,
    title: str,
    group: Group,
    model: type[Arguments],
    risk: Risk = Risk.READ,
    destructive: bool | None = None,
    reads: Mapping[str, tuple[str, ...]] | None = None,
    limit: Literal["guest", "node", "none"] = "node",
) -> Callable[[Function], Function]:
    """Registers a function as a tool. `destructive` is the hint for clients; without it, whether the risk is data loss."""

    def register(function: Function) -> Function:
        if name in _TOOLS:
            raise ValueError(f"{name} is registered twice")
        hint = risk is Risk.DATA_LOSS if destructive is None else destructive
        _TOOLS[name] = Tool(name, title, summary, group, risk, model, function, hint, reads or {}, limit)
        return function

    return register


def all_tools() -> tuple[Tool, ...]:
    """Every tool, the most used first; the order is the one of tools.ORDER and stable."""
    from proxmox_mcp import tools

    for module in tools.MODULES:
        importlib.import_module(f"proxmox_mcp.tools.{module}")
    rank = {name: place for place, name in enumerate(tools.ORDER)}
    return tuple(sorted(_TOOLS.values(), key=lambda record: rank.get(record.name, len(rank))))
