"""The block for each client: valid, complete, with the right interpreter and the right place."""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from proxmox_mcp import __version__, clients

WINDOWS_PYTHON = r"C:\Users\Anna Arbor\venv\Scripts\python.exe"
HOME = Path("/home/anna")


@pytest.mark.parametrize("client", ["claude-desktop", "cursor"])
def test_json_clients_get_a_server_entry_that_starts_this_interpreter(client: str) -> None:
    entry = json.loads(clients.block(client, clients.environment(None)).text)["mcpServers"]["proxmox"]
    assert entry["command"] == sys.executable
    assert Path(entry["command"]).is_absolute()
    assert [entry["command"], *entry["args"]] == clients.starting()
    assert entry["env"] == clients.PLACEHOLDERS


@pytest.mark.parametrize("client", clients.NAMES)
def test_windows_paths_survive_the_clients_own_parser(client: str) -> None:
    command = clients.starting(WINDOWS_PYTHON, installed=True)
    text = clients.block(client, {}, command=command, platform="win32", home=HOME).text
    if client == "claude-code":
        assert f'-- "{WINDOWS_PYTHON}" -P -m proxmox_mcp' in text
        return
    body = json.loads(text)
    servers = body["servers"] if client == "vscode" else body["mcpServers"]
    assert servers["proxmox"]["command"] == WINDOWS_PYTHON


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("win32", r"%APPDATA%\Claude\claude_desktop_config.json"),
        ("darwin", "/home/anna/Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", "/home/anna/.config/Claude/claude_desktop_config.json"),
    ],
)
def test_claude_desktop_names_its_file_on_each_system(platform: str, place: str) -> None:
    assert place in " ".join(clients.block("claude-desktop", {}, platform=platform, home=HOME).where)


@pytest.mark.parametrize(("platform", "place"), [("win32", r"%USERPROFILE%\.cursor\mcp.json"), ("linux", "/home/anna/.cursor/mcp.json")])
def test_cursor_names_its_file(platform: str, place: str) -> None:
    assert place in " ".join(clients.block("cursor", {}, platform=platform, home=HOME).where)


def test_vscode_asks_for_the_secret_instead_of_storing_it() -> None:
    body = json.loads(clients.block("vscode", clients.environment(None)).text)
    (question,) = body["inputs"]
    assert question["password"] is True
    server = body["servers"]["proxmox"]
    assert server["type"] == "stdio"
    assert server["env"]["PROXMOX_TOKEN_VALUE"] == f"${{input:{question['id']}}}"
    assert server["env"]["PROXMOX_HOST"] == clients.PLACEHOLDERS["PROXMOX_HOST"]


def test_claude_code_is_one_command_line_that_a_shell_reads_back() -> None:
    line = shlex.split(
        clients.block("claude-code", {"PROXMOX_HOST": "pve one"}, command=["/opt/a b/python", "x.py"], platform="linux").text
    )
    assert line[:5] == ["claude", "mcp", "add", "--scope", "user"]
    assert line[line.index("-e") + 1] == "PROXMOX_HOST=pve one"
    assert line[line.index("--") + 1 :] == ["/opt/a b/python", "x.py"]
    # the name comes before -e, which takes as many values as it can get
    assert line.index("proxmox") < line.index("-e")


def test_with_an_env_file_in_use_no_value_is_copied(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("PROXMOX_TOKEN_VALUE=5ecret\n")
    env = clients.environment(env_file)
    assert env == {"PROXMOX_ENV_FILE": str(env_file.resolve())}
    body = json.loads(clients.block("vscode", env).text)
    assert "inputs" not in body


@pytest.mark.parametrize("installed", [True, False])
def test_the_server_starts_in_a_directory_that_tries_to_pass_for_it(tmp_path: Path, installed: bool) -> None:
    for name in ("proxmox_mcp", "mcp", "pydantic"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the working directory')")
    env = {**os.environ, "PYTHONPATH": str(Path(clients.__file__).parent.parent) if installed else ""}
    command = [*clients.starting(installed=installed), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=60)
    assert done.stdout == f"pve-mcp {__version__}\n", done.stderr


def test_an_interpreter_in_uvs_cache_is_recognised() -> None:
    assert clients.temporary("/home/anna/.cache/uv/archive-v0/Xyz/bin/python")
    assert not clients.temporary("/home/anna/.local/share/uv/tools/pve-mcp/bin/python")


def test_the_vscode_link_asks_for_everything_and_hides_the_secret() -> None:
    link = urlsplit(clients.install_link("vscode"))
    query = {name: values[0] for name, values in parse_qs(link.query, strict_parsing=True).items()}
    config, inputs = json.loads(query["config"]), json.loads(query["inputs"])
    assert query["name"] == clients.SERVER
    assert [config["command"], *config["args"]] == clients.FROM_INDEX
    assert config["env"] == {name: f"${{input:{name.lower()}}}" for name in clients.PLACEHOLDERS}
    assert {question["id"] for question in inputs} == {name.lower() for name in clients.PLACEHOLDERS}
    assert [question["id"] for question in inputs if question.get("password")] == ["proxmox_token_value"]


def test_the_cursor_link_holds_the_block_for_uv() -> None:
    link = urlsplit(clients.install_link("cursor"))
    query = {name: values[0] for name, values in parse_qs(link.query, strict_parsing=True).items()}
    block = json.loads(clients.block("cursor", clients.PLACEHOLDERS, command=clients.FROM_INDEX).text)
    assert json.loads(base64.b64decode(query["config"], validate=True)) == block["mcpServers"][query["name"]]


def test_an_unknown_client_is_refused() -> None:
    with pytest.raises(ValueError, match="one of vscode"):
        clients.install_link("notepad")
    with pytest.raises(ValueError, match="one of claude-desktop"):
        clients.block("notepad", {})
