"""The command line as a person uses it: real processes, no configuration, any directory."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from proxmox_mcp import __version__, clients, registry
from tests.stdio import measuring

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("mcp", "httpx", "asyncssh", "fakepve", "aiohttp")


def run(
    *args: str, cwd: Path, env: dict[str, str] | None = None, entry: tuple[str, ...] = ("-m", "proxmox_mcp")
) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.defpath, "HOME": str(cwd), "PYTHONPATH": str(ROOT), **measuring(), **(env or {})}
    return subprocess.run([sys.executable, *entry, *args], capture_output=True, text=True, cwd=cwd, env=clean, timeout=60)


def test_help_lists_every_tool_with_one_line_and_needs_no_configuration(tmp_path: Path) -> None:
    done = run("--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("    proxmox_")]
    assert dict(lines) == {tool.name: tool.summary.splitlines()[0] for tool in registry.all_tools()}
    assert {"proxmox_health_overview", "proxmox_list_vms"} <= {name for name, _ in lines}
    for command in ("try", "doctor", "config", "audit"):
        assert f"    {command} " in done.stdout


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["config", "cursor"]])
def test_what_does_not_serve_imports_nothing_heavy(tmp_path: Path, args: list[str]) -> None:
    program = f"""
import sys
from proxmox_mcp.cli import main
try:
    main({args!r})
except SystemExit:
    pass
sys.stderr.write(repr([name for name in {HEAVY!r} if name in sys.modules]))
"""
    done = run("-c", program, cwd=tmp_path, entry=())
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("[]")


@pytest.mark.parametrize("entry", [("-m", "proxmox_mcp"), (str(ROOT / "proxmox_mcp.py"),)])
def test_each_way_to_start_tells_its_version(tmp_path: Path, entry: tuple[str, ...]) -> None:
    env = {"PYTHONPATH": ""} if entry[0].endswith(".py") else {}
    done = run("--version", cwd=tmp_path, entry=entry, env=env)
    assert (done.stdout, done.returncode) == (f"pve-mcp {__version__}\n", 0), done.stderr


@pytest.mark.parametrize("client", clients.NAMES)
def test_config_prints_the_block_alone_on_standard_output(tmp_path: Path, client: str) -> None:
    done = run("config", client, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == clients.block(client, clients.PLACEHOLDERS).text + "\n"
    assert "put them into a .env file" in done.stderr


def test_config_names_the_env_file_instead_of_its_values(tmp_path: Path) -> None:
    env_file = tmp_path / "pve.env"
    env_file.write_text("PROXMOX_HOST=pve.lan\nPROXMOX_USER=mcp@pve\nPROXMOX_TOKEN_NAME=mcp\nPROXMOX_TOKEN_VALUE=5ecret-5ecret\n")
    done = run("--env-file", "pve.env", "config", "cursor", cwd=tmp_path)
    assert json.loads(done.stdout)["mcpServers"]["proxmox"]["env"] == {"PROXMOX_ENV_FILE": str(env_file)}
    assert "5ecret" not in done.stdout + done.stderr


def test_config_keeps_what_the_server_was_to_be_started_with(tmp_path: Path) -> None:
    flags = ["--read-only", "--toolsets", "overview,guests", "--exclude-tools", "proxmox_list_vms"]
    made = json.loads(run(*flags, "config", "claude-desktop", cwd=tmp_path).stdout)["mcpServers"]["proxmox"]
    assert made["args"] == [*clients.starting()[1:], *flags]
    line = shlex.split(run(*flags, "config", "claude-code", cwd=tmp_path).stdout)
    assert line[line.index("--") + 1 :] == [*clients.starting(), *flags]
    wrong = run("--toolsets", "gests", "config", "claude-code", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_config_of_the_demo_needs_no_values(tmp_path: Path) -> None:
    done = run("--demo", "config", "cursor", cwd=tmp_path)
    made = json.loads(done.stdout)["mcpServers"]["proxmox"]
    assert (made["args"], made["env"]) == ([*clients.starting()[1:], "--demo"], {})
    assert "four values" not in done.stderr


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--env-file", "missing.env"], "no such file: missing.env"),
        (["config", "notepad"], "claude-desktop"),
        (["--toolsets", "everything"], "valid: overview"),
        (["--tools", "proxmox_make_coffee"], "proxmox_make_coffee"),
        (["serve"], "invalid choice"),
    ],
)
def test_what_is_asked_wrong_ends_with_2_and_the_valid_choices(tmp_path: Path, args: list[str], complaint: str) -> None:
    done = run(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.anyio
async def test_flags_choose_tools_and_win_over_the_environment(tmp_path: Path) -> None:
    args = ["-m", "proxmox_mcp", "--read-only", "--toolsets", "storage", "--exclude-tools", "proxmox_list_isos"]
    env = {"PROXMOX_TOOLSETS": "zfs", "PYTHONPATH": str(ROOT), **measuring()}
    async with Client(StdioServerParameters(command=sys.executable, args=args, env=env, cwd=tmp_path)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    wanted = {tool.name for tool in registry.all_tools() if tool.group == "storage" and (tool.read_only or tool.reads)}
    assert names == wanted - {"proxmox_list_isos"}


def test_audit_takes_its_own_arguments(tmp_path: Path) -> None:
    done = run("audit", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "verify" in done.stdout
