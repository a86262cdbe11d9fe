"""The command line: arguments first, heavy imports after."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proxmox_mcp import __version__, clients
from proxmox_mcp.errors import ProxmoxMcpError

if TYPE_CHECKING:
    from proxmox_mcp.config import Settings

# flags that stand for a variable; the flag wins
_FLAGS = {
    "env_file": "PROXMOX_ENV_FILE",
    "read_only": "PROXMOX_READ_ONLY",
    "toolsets": "PROXMOX_TOOLSETS",
    "tools": "PROXMOX_TOOLS",
    "exclude_tools": "PROXMOX_EXCLUDE_TOOLS",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `pve-mcp` with these arguments; returns the exit status (0 done, 1 problems found, 2 cannot start, 130 interrupted)."""
    parser = _parser()
    options, rest = parser.parse_known_args(argv)
    if rest and options.command != "audit":  # which parses its own
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    try:
        return _COMMANDS[options.command](options)
    except ProxmoxMcpError as exc:
        print(f"pve-mcp: {exc}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


class _Parser(argparse.ArgumentParser):
    """Adds the list of tools to the help, and reads the registry only then."""

    def format_help(self) -> str:
        return f"{super().format_help()}\n{tool_list()}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pve-mcp",
        description="An MCP server that runs a Proxmox VE cluster. Without a command it serves over standard input and output.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pve-mcp {__version__}")
    parser.add_argument("--demo", action="store_true", help="serve the embedded demo cluster instead of a real one (extra: demo)")
    parser.add_argument("--read-only", action="store_true", help="offer only tools and actions that read")
    parser.add_argument("--toolsets", metavar="LIST", help="offer only these groups of tools, separated by commas")
    parser.add_argument("--tools", metavar="LIST", help="offer these tools besides the groups, or only these when no groups are named")
    parser.add_argument("--exclude-tools", metavar="LIST", help="never offer these tools")
    parser.add_argument("--env-file", metavar="PATH", type=_file, help="read settings from this file instead of searching for .env")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=argparse.ArgumentParser)
    commands.add_parser("try", help="show the server at work on the embedded demo cluster (extra: demo)")
    commands.add_parser("doctor", help="check configuration, connection, certificate, token and privileges")
    config = commands.add_parser("config", help="print the block to paste into a client's configuration")
    config.add_argument("client", choices=clients.NAMES, metavar="CLIENT", help=", ".join(clients.NAMES))
    commands.add_parser("audit", help="verify, show or export the audit record; verify one of version 1.x (audit --help)", add_help=False)
    return parser


def _file(text: str) -> Path:
    path = Path(os.path.expanduser(text))
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"no such file: {path}")
    return path.resolve()


def tool_list() -> str:
    """Every tool with one line, under the name of its toolset."""
    from proxmox_mcp import registry

    tools = registry.all_tools()
    width = max((len(tool.name) for tool in tools), default=0)
    lines = [f"tools ({len(tools)}), by toolset:"]
    for group in registry.GROUPS:
        members = [tool for tool in tools if tool.group == group]
        if members:
            lines += ["", f"  {group}"]
            lines += [f"    {tool.name:<{width}}  {tool.summary.splitlines()[0]}" for tool in members]
    return "\n".join(lines) + "\n"


def _settings(options: argparse.Namespace) -> Settings:
    from proxmox_mcp import config

    environment = dict(os.environ)
    for flag, name in _FLAGS.items():
        value = getattr(options, flag)
        if value:
            environment[name] = "true" if value is True else str(value)
    return config.load(environment)


def _serve(options: argparse.Namespace) -> int:
    settings = _settings(options)
    if options.demo:
        from proxmox_mcp import demo

        with demo.running(settings) as demo_settings:
            return _serve_until_end(demo_settings)
    return _serve_until_end(settings)


def _serve_until_end(settings: Settings) -> int:
    # nothing that a start makes is garbage: looking for it costs a tenth of the time; server.py switches the collector on again
    gc.disable()
    from proxmox_mcp import server

    server.serve(settings)
    return 0


def _try(options: argparse.Namespace) -> int:
    from proxmox_mcp import demo

    return demo.show()


def _doctor(options: argparse.Namespace) -> int:
    from proxmox_mcp import doctor

    return doctor.run(_settings(options))


def _given(options: argparse.Namespace) -> list[str]:
    """The flags for serving that were given, which a block must keep: what was asked to be read-only is not to start without it."""
    given = [f"--{flag}" for flag in ("demo", "read-only") if getattr(options, flag.replace("-", "_"))]
    for flag in ("toolsets", "tools", "exclude-tools"):
        if value := getattr(options, flag.replace("-", "_")):
            given += [f"--{flag}", value]
    return given


def _config(options: argparse.Namespace) -> int:
    from proxmox_mcp import registry
    from proxmox_mcp.selection import select

    settings = _settings(options)
    select(registry.all_tools(), settings)  # a server that would not start is not worth pasting
    env_file = settings.env_file
    env = {} if options.demo else clients.environment(env_file)
    block = clients.block(options.client, env, command=[*clients.starting(), *_given(options)])
    # the block alone goes to standard output, so that it can be piped
    print(*block.where, sep="\n", file=sys.stderr)
    if env_file is None and not options.demo:
        print("Fill in the four values, or put them into a .env file and run this again.", file=sys.stderr)
    if clients.temporary():
        print(
            "This interpreter is in uv's cache and may vanish: `uv tool install 'pve-mcp>=2'`, then run `pve-mcp config` again.",
            file=sys.stderr,
        )
    print(file=sys.stderr)
    sys.stderr.flush()
    print(block.text)
    return 0


def _audit(options: argparse.Namespace) -> int:
    from proxmox_mcp.app import App
    from proxmox_mcp.audit import command

    app = App(_settings(options))
    return command.main(options.rest, app.audit_dir, app.audit_keys)


_COMMANDS: dict[str | None, Callable[[argparse.Namespace], int]] = {
    None: _serve,
    "try": _try,
    "doctor": _doctor,
    "config": _config,
    "audit": _audit,
}
