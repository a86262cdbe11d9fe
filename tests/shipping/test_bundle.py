"""The .mcpb bundle: the official packer accepts it, it holds what it needs and no more, it starts with what its user filled in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from proxmox_mcp import __version__, config, registry
from scripts import bundle

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = json.loads((ROOT / "packaging" / "mcpb" / "manifest.json").read_text(encoding="utf-8"))
FILLED = {"host": "pve.lan", "user": "mcp@pve", "token_name": "mcp", "token_value": "00000000-1111-4222-8333-444444444444"}
# prints the command that a client would run, by the packer's own rules
CLIENT = """
const bin = process.env.PATH.split(require("path").delimiter).find((place) => /node_modules[\\\\/].bin$/.test(place));
const at = require("path").join(bin, "..", "@anthropic-ai", "mcpb", "dist", "index.js");
import(require("url").pathToFileURL(at)).then(async ({ getMcpConfigForManifest }) => {
  const [manifest, extensionPath, userConfig] = process.argv.slice(1).map((text) => JSON.parse(text));
  const found = await getMcpConfigForManifest({ manifest, extensionPath, userConfig, systemDirs: {}, pathSeparator: "/" });
  console.log(JSON.stringify(found));
});
"""
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "network", "ENOTCACHED", "E404")


def npx(*arguments: str, cwd: Path) -> str:
    """What the packer prints. Skips where it cannot be had."""
    program = shutil.which("npx")
    if program is None:
        pytest.skip("npx is not here: the official packer needs Node.js")
    command = [program, "--yes", "--package", bundle.PACKER, "--", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
    if done.returncode and "npm error" in done.stderr and any(sign in done.stderr for sign in UNREACHABLE):
        pytest.skip("the official packer is not installed and no index can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bundle")
    bundle.stage(directory)
    return directory


@pytest.fixture(scope="module")
def packed(staged: Path) -> Path:
    """The bundle as the official packer makes it, unpacked again."""
    assert "validation passes" in npx("mcpb", "validate", "manifest.json", cwd=staged)
    out = staged.parent / bundle.NAME
    npx("mcpb", "pack", str(staged), str(out), cwd=staged)
    place = staged.parent / "unpacked"
    with zipfile.ZipFile(out) as archive:
        archive.extractall(place)
    return place


def test_the_manifest_names_every_tool_and_hides_the_secret() -> None:
    assert [tool["name"] for tool in MANIFEST["tools"]] == [tool.name for tool in registry.all_tools()]
    asked = MANIFEST["user_config"]
    assert [name for name, field in asked.items() if field.get("sensitive")] == ["token_value"]
    assert {name for name, field in asked.items() if field.get("required")} == set(FILLED)
    assert MANIFEST["version"] == __version__
    assert MANIFEST["server"]["type"] == "uv"


def test_each_field_is_a_variable_and_every_optional_one_has_a_default() -> None:
    known = {variable.name for variable in config.VARIABLES}
    environment = MANIFEST["server"]["mcp_config"]["env"]
    assert set(environment) <= known
    assert {value[len("${user_config.") : -1] for value in environment.values()} == set(MANIFEST["user_config"])
    # without one a client hands the placeholder itself to the server
    assert [name for name, field in MANIFEST["user_config"].items() if not field.get("required") and "default" not in field] == []


def test_the_packer_accepts_it_and_it_holds_the_source_and_no_more(packed: Path) -> None:
    found = {path.relative_to(packed).as_posix() for path in packed.rglob("*") if path.is_file()}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "proxmox_mcp").rglob("*.py")}
    assert found == sources | {"manifest.json", "pyproject.toml", "proxmox_mcp.py", "proxmox_mcp/py.typed", "README.md", "LICENSE"}
    assert json.loads((packed / "manifest.json").read_text()) == MANIFEST


def test_with_the_required_fields_alone_the_settings_hold_and_only_reading_is_offered(packed: Path) -> None:
    given = [json.dumps(value) for value in (MANIFEST, str(packed), FILLED)]
    found = json.loads(npx("node", "-e", CLIENT, *given, cwd=packed))
    assert [found["command"], *found["args"]] == ["uv", "run", "--directory", str(packed), "proxmox_mcp.py"]
    settings = config.load(found["env"], base=packed)
    assert (settings.problems, settings.ssh_problems) == ((), ())
    assert settings.read_only
    assert settings.token_value == FILLED["token_value"]
    changing = config.load({**found["env"], "PROXMOX_READ_ONLY": "false"}, base=packed)
    assert not changing.read_only


@pytest.fixture(scope="module")
def uv_server(staged: Path, tmp_path_factory: pytest.TempPathFactory) -> StdioServerParameters:
    """The bundle as a client starts it: nothing installed, uv reads the bundle's own pyproject.toml."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("uv is not here")
    home = tmp_path_factory.mktemp("home")
    place = home / "bundle"
    shutil.copytree(staged, place)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PROXMOX_", "PYTHON", "VIRTUAL_ENV"))}
    cache = environment.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))
    environment |= {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "UV_CACHE_DIR": cache, "HOME": str(home)}
    command = [uv, "run", "--directory", str(place), "proxmox_mcp.py"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=180, env=environment, cwd=home)
    if done.returncode and any(sign in done.stderr for sign in ("error sending request", "Failed to fetch", "dns error")):
        pytest.skip("no package index can be reached to install the dependencies from")
    assert done.stdout == f"pve-mcp {__version__}\n", done.stderr
    return StdioServerParameters(command=uv, args=command[1:], env={**environment, "PROXMOX_READ_ONLY": "true"}, cwd=home)


@pytest.mark.anyio
async def test_uv_starts_it(uv_server: StdioServerParameters) -> None:
    async with Client(uv_server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {tool.name for tool in registry.all_tools() if tool.read_only or tool.reads}
