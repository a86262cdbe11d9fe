"""Configuration blocks for MCP clients: what to paste, and where; links that install the server without pasting."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

NAMES = ("claude-desktop", "claude-code", "cursor", "vscode")
SERVER = "proxmox"  # the name under which a client lists the server

PLACEHOLDERS = {
    "PROXMOX_HOST": "pve.lan",
    "PROXMOX_USER": "mcp@pve",
    "PROXMOX_TOKEN_NAME": "mcp",
    "PROXMOX_TOKEN_VALUE": "put-the-token-secret-here",
}
_SECRET = "PROXMOX_TOKEN_VALUE"
# Works with nothing installed but uv; --from, because versions below 2 are another program.
FROM_INDEX = ["uvx", "--from", "pve-mcp>=2", "pve-mcp"]
_ASKED = {
    "PROXMOX_HOST": "Address of a Proxmox VE node",
    "PROXMOX_USER": "User of the API token, with realm",
    "PROXMOX_TOKEN_NAME": "Name of the API token",
    "PROXMOX_TOKEN_VALUE": "Secret of the API token",
}


@dataclass(frozen=True, slots=True)
class Block:
    """`text` is what to paste, `where` the lines that say where and what then."""

    text: str
    where: tuple[str, ...]


def environment(env_file: Path | None) -> dict[str, str]:
    """The variables of a block: the .env file in use, so that no secret is copied; without one, placeholders to fill in."""
    return {"PROXMOX_ENV_FILE": str(env_file.resolve())} if env_file else dict(PLACEHOLDERS)


def starting(python: str = "", *, installed: bool | None = None) -> list[str]:
    """The command that starts this server in any directory, without ever importing from that directory: editors start it in a project's."""
    python = python or sys.executable
    if _installed() if installed is None else installed:
        return [python, "-P", "-m", "proxmox_mcp"]
    return [python, str(Path(__file__).resolve().parent.parent / "proxmox_mcp.py")]


def _installed() -> bool:
    from importlib import metadata

    try:
        metadata.distribution("pve-mcp")
    except metadata.PackageNotFoundError:
        return False
    return True


def block(client: str, env: Mapping[str, str], *, command: list[str] | None = None, platform: str = "", home: Path | None = None) -> Block:
    """The block for one of NAMES.

    `command` starts the server, by default `starting()`; `platform` as in sys.platform; `home` the home directory.
    """
    command, platform, home = command or starting(), platform or sys.platform, home or Path(os.path.expanduser("~"))
    if client == "claude-desktop":
        where = (f"Paste into {_claude_desktop(platform, home)}", "(merge with what is there), then quit and start Claude Desktop again.")
        return Block(_json({"mcpServers": {SERVER: _entry(command, env)}}), where)
    if client == "cursor":
        where = (
            f"Paste into {_path(platform, home, '.cursor', 'mcp.json')} (merge with what is there);",
            "for one project only: .cursor/mcp.json in it.",
        )
        return Block(_json({"mcpServers": {SERVER: _entry(command, env)}}), where)
    if client == "vscode":
        return _vscode(command, env)
    if client == "claude-code":
        options = [part for name, value in env.items() for part in ("-e", f"{name}={value}")]
        line = ["claude", "mcp", "add", "--scope", "user", SERVER, *options, "--", *command]
        return Block(_shell(line, platform), ("Run in a terminal. `claude mcp list` then shows whether it connects.",))
    raise ValueError(f"no such client: {client}; one of {', '.join(NAMES)}")


def install_link(client: str) -> str:
    """A link that installs the server with uv, for vscode (which asks for the four values) or cursor (which shows them to be filled in)."""
    if client == "vscode":
        inputs = [
            {"type": "promptString", "id": name.lower(), "description": asked} | ({"password": True} if name == _SECRET else {})
            for name, asked in _ASKED.items()
        ]
        config = {"type": "stdio", **_entry(FROM_INDEX, {name: f"${{input:{name.lower()}}}" for name in _ASKED})}
        query = {"name": SERVER, "inputs": _compact(inputs), "config": _compact(config)}
        return f"https://insiders.vscode.dev/redirect/mcp/install?{urlencode(query, quote_via=quote)}"
    if client == "cursor":
        packed = base64.b64encode(_compact(_entry(FROM_INDEX, PLACEHOLDERS)).encode()).decode()
        return f"https://cursor.com/en/install-mcp?{urlencode({'name': SERVER, 'config': packed}, quote_via=quote)}"
    raise ValueError(f"no such link: {client}; one of vscode, cursor")


def temporary(python: str = "") -> bool:
    """True when the interpreter lives in a cache of uv (`uvx`), where it can vanish: a block should not name it."""
    parts = Path(python or sys.executable).parts
    return "uv" in parts and any(part.startswith(("archive-v", "environments-v")) for part in parts)


def _entry(command: list[str], env: Mapping[str, str]) -> dict[str, object]:
    return {"command": command[0], "args": command[1:], "env": dict(env)}


def _vscode(command: list[str], env: Mapping[str, str]) -> Block:
    body: dict[str, object] = {}
    values = dict(env)
    if _SECRET in values:
        # VS Code asks once and keeps the answer in the system's keychain
        values[_SECRET] = "${input:proxmox-token}"
        body["inputs"] = [
            {"type": "promptString", "id": "proxmox-token", "description": "Secret of the Proxmox API token", "password": True}
        ]
    body["servers"] = {SERVER: {"type": "stdio", **_entry(command, values)}}
    where = (
        "Paste into .vscode/mcp.json of a folder, or into the file that the command",
        '"MCP: Open User Configuration" opens (for all folders).',
    )
    return Block(_json(body), where)


def _claude_desktop(platform: str, home: Path) -> str:
    name = "claude_desktop_config.json"
    if platform == "win32":
        return rf"%APPDATA%\Claude\{name}"
    if platform == "darwin":
        return _path(platform, home, "Library", "Application Support", "Claude", name)
    return _path(platform, home, ".config", "Claude", name)


def _path(platform: str, home: Path, *parts: str) -> str:
    return "\\".join(("%USERPROFILE%", *parts)) if platform == "win32" else str(home.joinpath(*parts))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _shell(line: list[str], platform: str) -> str:
    import shlex

    return subprocess.list2cmdline(line) if platform == "win32" else shlex.join(line)
