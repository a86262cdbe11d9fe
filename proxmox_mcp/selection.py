"""Which tools this server offers: read-only mode, toolsets, single tools, exclusions, limits to some guests and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proxmox_mcp.config import Settings
from proxmox_mcp.errors import ConfigError
from proxmox_mcp.registry import GROUPS, Tool


def select(tools: Sequence[Tool], settings: Settings) -> tuple[Tool, ...]:
    """The chosen tools in their order. Read-only wins over all; ConfigError names unknown toolsets and tools with the valid ones."""
    names = [tool.name for tool in tools]
    _known("PROXMOX_TOOLSETS", settings.toolsets, GROUPS)
    _known("PROXMOX_TOOLS", settings.tools, names)
    _known("PROXMOX_EXCLUDE_TOOLS", settings.exclude_tools, names)
    limited = bool(settings.allow_vmids or settings.allow_nodes)
    chosen = []
    for tool in tools:
        named = tool.name in settings.tools
        wanted = named or tool.group in settings.toolsets or not (settings.toolsets or settings.tools)
        if limited and tool.limit == "none" and not named:
            wanted = False  # a shell or a disk tool cannot be held to some guests
        if settings.read_only and not tool.read_only and not tool.reads:
            wanted = False
        if wanted and tool.name not in settings.exclude_tools:
            chosen.append(tool)
    return tuple(chosen)


def _known(variable: str, asked: Iterable[str], valid: Sequence[str]) -> None:
    unknown = [name for name in asked if name not in valid]
    if unknown:
        raise ConfigError(f"{variable} names what does not exist: {', '.join(unknown)}", hint=f"valid: {', '.join(valid)}")
