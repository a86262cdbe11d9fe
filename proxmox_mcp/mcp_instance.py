"""Turns the chosen records into SDK tools (lean schema, hints from the risk) and builds the one shared MCPServer, once."""

from __future__ import annotations

import difflib
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import ConfigDict

from proxmox_mcp import __version__, pipeline, secrets, text
from proxmox_mcp.app import App
from proxmox_mcp.approval import SdkPeer
from proxmox_mcp.arguments import schema
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.instructions import instructions
from proxmox_mcp.prompts import add_prompts
from proxmox_mcp.registry import Tool, all_tools
from proxmox_mcp.resources import add_resources
from proxmox_mcp.wire import Answering

_PREFIX = "proxmox_"
LONGEST_ERROR = 16_000  # characters
# Our own models check the arguments and the answers are text alone: the SDK's view of a tool stays empty.
_NO_METADATA = FuncMetadata(arg_model=ArgModelBase)


class PublishedTool(SdkTool):
    """One tool as the SDK serves it. `run` replaces the SDK's: flat arguments, our error texts, nothing of an unexpected exception."""

    record: Any  # a Tool; pydantic would want to look into it
    app: App
    model_config = ConfigDict(arbitrary_types_allowed=True)

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        with self.app.tracked() as scope:
            try:
                found = await pipeline.run(self.record, arguments, self.app, SdkPeer(context, self.app.questions))
            except ProxmoxMcpError as exc:
                raise ToolError(secrets.mask_text(text.clean_block(str(exc), LONGEST_ERROR))) from None
            except Exception as exc:  # without this the SDK would send str(exc) to the model
                raise UnexpectedToolError(f"{self.name} failed inside the server; its log (stderr) has the details") from exc
        if scope.cancelled_caught:
            raise ToolError("The server was ended during this call; the audit log says how far it came.")
        if isinstance(found, pipeline.Question):
            return found.result
        return CallToolResult(content=[TextContent(text=found.text)], is_error=found.failed)


def published(record: Tool, app: App) -> PublishedTool:
    """The SDK's tool for a record; in read-only mode a mixed tool shows its reading actions alone."""
    parameters = schema(record.model)
    read_only = record.read_only
    if app.settings.read_only and record.reads:
        read_only = True
        parameters = reading_schema(parameters, record)
    hints: dict[str, Any] = {"read_only_hint": True} if read_only else {"read_only_hint": False, "destructive_hint": record.destructive}
    return PublishedTool(
        record=record,
        app=app,
        fn=record.function,
        name=record.name,
        title=record.title,
        description=record.summary,
        parameters=parameters,
        fn_metadata=_NO_METADATA,
        is_async=True,
        context_kwarg=None,
        annotations=ToolAnnotations(**hints, open_world_hint=False),
    )


_GATES = ("confirm", "dry_run", "i_understand_data_loss", "wait_seconds")


def reading_schema(parameters: dict[str, Any], record: Tool) -> dict[str, Any]:
    """The schema of a mixed tool in read-only mode: reading values alone, no gates."""
    properties = {name: spec for name, spec in parameters["properties"].items() if name not in _GATES}
    for name, values in record.reads.items():
        kept = {key: value for key, value in properties[name].items() if key != "default" or value in values}
        properties[name] = {**kept, "enum": list(values)}
    return {**parameters, "properties": properties}


class Server(MCPServer[App]):
    """The SDK's server, with our words for an unknown tool, and an error for a prompt that cannot be made where the SDK has a crash."""

    offered: frozenset[str] = frozenset()
    at_end_of_input: Callable[[], None] = staticmethod(lambda: None)

    async def run_stdio_async(self) -> None:
        async with stdio_server() as (messages, answers):
            server = self._lowlevel_server
            await server.run(Answering(messages, answers, self.at_end_of_input), answers, server.create_initialization_options())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[App, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        if name not in self.offered:
            raise ToolError(_unknown(name, self.offered))
        return await super().call_tool(name, arguments, context)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[App, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as exc:  # an unknown prompt, a missing argument
            raise MCPError(INVALID_PARAMS, secrets.mask_text(text.clean(str(exc), 500))) from None


def _unknown(name: str, offered: frozenset[str]) -> str:
    if any(record.name == name for record in all_tools()):
        return f"This server does not offer {name}: its owner chose its tools (read-only mode, toolsets, exclusions or limits)"
    # compared without the prefix that all share: with it nothing is unlike, and a shell might be suggested for a slip
    stems = {known.removeprefix(_PREFIX): known for known in offered}
    near = difflib.get_close_matches(name[:100].removeprefix(_PREFIX), stems, n=1)
    return f"Unknown tool: {secrets.mask_text(text.clean(name, 100))}" + (f"; did you mean {stems[near[0]]}?" if near else "")


def build(app: App, tools: Sequence[Tool]) -> Server:
    """The server with exactly these tools."""

    @asynccontextmanager
    async def lifespan(_: MCPServer[App]) -> AsyncIterator[App]:
        try:
            yield app
        finally:
            with anyio.CancelScope(shield=True):
                await app.close()
            # a print() buffered while fd 1 was diverted would land on the wire when the interpreter flushes it at exit
            sys.stdout.flush()

    hour = CacheHint(ttl_ms=3_600_000, scope="private")
    server = Server(
        "pve-mcp",
        title="Proxmox VE",
        version=__version__,
        instructions=instructions(tools, app.settings),
        tools=[published(record, app) for record in tools],
        lifespan=lifespan,
        log_level="WARNING",
        subscriptions=False,  # nothing to tell: the lists never change, and what is read has no events
        # what a server offers is fixed when it starts; what it reads is not
        cache_hints=dict.fromkeys(("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"), hour),
    )
    server.offered = frozenset(record.name for record in tools)
    add_resources(server, app, tools)
    add_prompts(server, server.offered)
    return server
