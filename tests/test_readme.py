"""README tells the truth: commands exist, lines install the right thing, the transcript is a real one."""

from __future__ import annotations

import base64
import json
import re
import shlex
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from proxmox_mcp import clients, demo, privileges, registry
from proxmox_mcp.config import VARIABLES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def part(name: str) -> str:
    return README.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0]


def test_every_tool_and_every_variable_has_a_row() -> None:
    assert [name for tool in registry.all_tools() if (name := f"| `{tool.name}` |") not in part("tools")] == []
    assert [name for variable in VARIABLES if (name := f"| `{variable.name}` |") not in part("variables")] == []


def test_whatever_it_names_exists() -> None:
    assert set(re.findall(r"\bproxmox_[a-z_]+", README)) - {tool.name for tool in registry.all_tools()} - {"proxmox_mcp"} == set()
    assert set(re.findall(r"\bPROXMOX_[A-Z_]+", README)) - {variable.name for variable in VARIABLES} == set()
    assert {group for found in re.findall(r"--toolsets ([a-z,]+)", README) for group in found.split(",")} <= set(registry.GROUPS)


def test_its_two_commands_need_only_python_and_a_checkout() -> None:
    first, second = [line for block in fenced("sh") for line in block.splitlines() if line.startswith("python3 -m venv .venv")]
    assert first.endswith("pip install '.[demo]' && .venv/bin/pve-mcp try")
    assert second.endswith("pip install -e '.[dev]' && .venv/bin/pytest")


def test_lines_that_install_from_an_index_name_the_major_version() -> None:
    lines = [line for block in fenced("sh") + fenced("powershell") for line in block.splitlines() if re.search(r"\b(uvx?|pipx|pip) ", line)]
    lines += [unquote(line) for line in README.splitlines() if "uvx" in line]
    wanted = [line for line in lines if "'.[" not in line]
    assert wanted
    assert [line for line in wanted if "pve-mcp>=2" not in line] == []


def test_the_full_role_unlocks_every_tool_and_exists_in_proxmox_8_and_9() -> None:
    (line,) = part("full role").strip().splitlines()[1:-1]
    held = shlex.split(line)[-1].split(",")
    assert all(privileges.judge(needs, {"/": dict.fromkeys(held, 1)}).state == "works" for needs in privileges.NEEDS.values())
    shapes = pytest.importorskip("fakepve.shapes")
    assert set(held) <= set(shapes.PRIVILEGES)
    # these came with 9
    assert [privilege for privilege in held if privilege.startswith("VM.GuestAgent") or privilege == "VM.Replicate"] == []


def test_the_lines_for_backups_are_those_of_the_table() -> None:
    assert f"pveum role add McpBackups --privs {','.join(privileges.BACKUP_LISTING)}\n" in README
    reading = {"/": dict.fromkeys((*privileges.AUDITOR, *privileges.BACKUP_LISTING), 1)}
    assert privileges.judge(privileges.NEEDS["proxmox_list_backups"], reading).state == "works"


def test_the_client_blocks_have_the_shape_that_config_prints() -> None:
    env = {"PROXMOX_ENV_FILE": "/home/anna/.config/pve-mcp/.env"}
    command = clients.starting("/home/anna/.local/share/pve-mcp/bin/python", installed=True)
    code = clients.block("claude-code", env, command=command, platform="linux").text
    assert code in README
    shown = [json.loads(block) for block in fenced("json")]
    assert json.loads(clients.block("claude-desktop", env, command=command).text) in shown
    assert json.loads(clients.block("vscode", clients.PLACEHOLDERS, command=command).text) in shown


def test_the_install_links_decode_to_what_starts_this_server_with_uv() -> None:
    found = {urlsplit(link).netloc: parse_qs(urlsplit(link).query) for link in re.findall(r"\]\((https://[^)]+install[^)]+)\)", README)}
    assert set(found) == {"insiders.vscode.dev", "cursor.com"}
    vscode = json.loads(found["insiders.vscode.dev"]["config"][0])
    cursor = json.loads(base64.b64decode(found["cursor.com"]["config"][0], validate=True))
    for config in (vscode, cursor):
        assert [config["command"], *config["args"]] == ["uvx", "--from", "pve-mcp>=2", "pve-mcp"]
        assert set(config["env"]) == {variable.name for variable in VARIABLES if variable.default == "required"}
    asked = {question["id"]: question for question in json.loads(found["insiders.vscode.dev"]["inputs"][0])}
    assert {value.removeprefix("${input:").removesuffix("}") for value in vscode["env"].values()} == set(asked)
    assert asked[vscode["env"]["PROXMOX_TOKEN_VALUE"][8:-1]]["password"] is True


def test_ownership_is_declared_as_in_server_json() -> None:
    (declared,) = re.findall(r"<!-- mcp-name: (\S+) -->", README)
    assert declared == json.loads((ROOT / "packaging" / "server.json").read_text())["name"]


def test_every_file_it_names_is_there() -> None:
    named = set(
        re.findall(
            r"`((?:docs|packaging|scripts|benchmarks|\.ci)/[\w./-]+|[A-Z]+(?:\.tr)?\.md|LICENSE|vm_ssh_hosts\.example\.json)`", README
        )
    )
    assert {"docs/audit.md", "packaging/Dockerfile", "SECURITY.md"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    modules = set(re.findall(r"python -m (scripts\.\w+|benchmarks)", README))
    assert [name for name in modules if not list(ROOT.glob(f"{name.replace('.', '/')}*"))] == []


def test_the_transcript_shows_both_calls() -> None:
    assert [line[2:] for line in part("transcript").splitlines() if line.startswith("> ")] == list(demo.CALLS)
    assert "Unknown tool" not in part("transcript")
