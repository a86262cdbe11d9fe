"""Entry point of serving: the chosen tools, stdio, signals, and an end within two seconds that loses nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading

import anyio

from proxmox_mcp import secrets, text
from proxmox_mcp.app import App
from proxmox_mcp.config import Settings
from proxmox_mcp.errors import AuditError
from proxmox_mcp.registry import Tool, all_tools
from proxmox_mcp.selection import select

FAREWELL = 1.7  # seconds for calls under way to write their outcomes
SETTLED = 1.0  # seconds after the start when clients have asked their first questions
TOLD = 5  # unfinished changes that are named at the start


def tools_for(settings: Settings) -> tuple[Tool, ...]:
    """The tools this server offers; ConfigError when the choice names what does not exist."""
    return select(all_tools(), settings)


def serve(settings: Settings) -> None:
    """Serves over stdio until the input ends or a signal comes. Raises ConfigError before anything is read when the choice is wrong."""
    tools = tools_for(settings)
    log_to_stderr()
    for warning in settings.warnings:
        sys.stderr.write(f"pve-mcp: {warning}\n")
    anyio.run(_serve, App(settings), tools)


class _Harmless(logging.Formatter):
    """A line of the log, a traceback included, without secrets, controls and endless texts."""

    def format(self, record: logging.LogRecord) -> str:
        return secrets.mask_text(text.clean_block(super().format(record), 8_000))


def log_to_stderr() -> None:
    """Set up before the SDK sets up its own: what goes wrong inside is told on standard error, and never with a secret."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Harmless("pve-mcp: %(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


async def _serve(app: App, tools: tuple[Tool, ...]) -> None:
    from proxmox_mcp.mcp_instance import build

    server = build(app, tools)
    server.at_end_of_input = lambda: _input_ended(app)
    leave = anyio.Event()
    _listen(leave)
    gc.freeze()  # what stands now stands until the end
    gc.enable()
    async with anyio.create_task_group() as group:
        group.start_soon(_farewell, app, leave)
        group.start_soon(_tell_unfinished, app)
        await server.run_stdio_async()
        group.cancel_scope.cancel()


async def _tell_unfinished(app: App) -> None:
    """Says on standard error what an earlier run left without an outcome; late enough to delay nobody's list of tools."""
    await anyio.sleep(SETTLED)
    from proxmox_mcp import audit

    try:
        found = await anyio.to_thread.run_sync(audit.unfinished, app.audit_dir)
    except AuditError as exc:  # changes will be refused; whoever only reads need not mind
        sys.stderr.write(f"pve-mcp: {exc}\n")
        return
    lines = [f"{one}; whether it was made is not known: look before it is repeated" for one in found[:TOLD]]
    if len(found) > TOLD:
        lines.append(f"{len(found) - TOLD} more changes have no recorded outcome: `pve-mcp audit verify` lists them")
    for line in lines:
        sys.stderr.write(f"pve-mcp: {secrets.mask_text(line)}\n")


def _listen(leave: anyio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, leave.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(leave.set))


def _input_ended(app: App) -> None:
    """The SDK cancels the calls now; what cannot be cancelled (a wait for the lock on the log) gets no longer than a signal gives."""
    app.hurry()
    last_resort = threading.Timer(FAREWELL, _exit)
    last_resort.daemon = True
    last_resort.start()


def _exit() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # the SDK's reader thread blocks in stdin and would hold the interpreter until the client writes again
    os._exit(0)


async def _farewell(app: App, leave: anyio.Event) -> None:
    await leave.wait()
    with anyio.move_on_after(FAREWELL):
        await app.cancel_calls()
        await app.close()
    _exit()
