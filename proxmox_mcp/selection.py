"""Which tools this server offers: read-only mode, toolsets, single tools, exclusions, limits to some guests and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proxmox_mcp import limits, text
from proxmox_mcp.config import Settings
from proxmox_mcp.errors import ConfigError
from proxmox_mcp.registry import GROUPS, Tool


def select(tools: Sequence[Tool], settings: Settings) -> tuple[Tool, ...]:
    """The chosen tools in their order. Read-only wins over all, then exclusions.

    Raises ConfigError for unknown toolsets and tools, with the valid ones, and for a choice that leaves none.
    """
    names = [tool.name for tool in tools]
    _known("PROXMOX_TOOLSETS", settings.toolsets, GROUPS)
    _known("PROXMOX_TOOLS", settings.tools, names)
    _known("PROXMOX_EXCLUDE_TOOLS", settings.exclude_tools, names)
    chosen = tuple(tool for tool in tools if _wanted(tool, settings))
    if tools and not chosen:
        raise ConfigError(
            "The choice of tools leaves none", hint="see PROXMOX_READ_ONLY, PROXMOX_TOOLSETS, PROXMOX_TOOLS and PROXMOX_EXCLUDE_TOOLS"
        )
    return chosen


def _wanted(tool: Tool, settings: Settings) -> bool:
    if tool.name in settings.exclude_tools or (settings.read_only and not tool.read_only and not tool.reads):
        return False
    if tool.name in settings.tools:
        return True
    if beyond_limits(tool, settings):
        return False
    return tool.group in settings.toolsets or not (settings.toolsets or settings.tools)


def beyond_limits(tool: Tool, settings: Settings) -> bool:
    """Whether the limit to some guests and nodes cannot be held by this tool: a shell, or a change to a node where guests are limited."""
    if tool.limit == "none":
        return limits.is_set(settings)
    return tool.limit == "node" and not tool.read_only and bool(settings.allow_vmids)


def _known(variable: str, asked: Iterable[str], valid: Sequence[str]) -> None:
    unknown = [name for name in asked if name not in valid]
    if unknown:
        shown = ", ".join(text.clean(name, 60) for name in unknown[:10])
        raise ConfigError(f"{variable} names what does not exist: {shown}", hint=f"valid: {', '.join(valid)}")
