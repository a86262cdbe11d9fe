"""What is shipped: declared once, complete, and able to start in an empty environment (G01)."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from proxmox_mcp import __version__, registry

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source archive, built by the tools of this environment."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_requirements_are_the_declared_dependencies() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == PROJECT["dependencies"]


def test_every_dependency_has_a_ceiling() -> None:
    assert [name for name in PROJECT["dependencies"] if "<" not in name] == []


def test_the_demo_extra_is_part_of_dev() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(extras["demo"]) <= set(extras["dev"])


def test_the_wheel_holds_the_package_the_licence_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"pve_mcp-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"pve_mcp-{__version__}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        scripts = archive.read(f"{info}/entry_points.txt").decode()
    assert {name.split("/")[0] for name in names} == {"proxmox_mcp", info}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "proxmox_mcp").rglob("*.py")}
    assert sources <= set(names)
    assert f"{info}/licenses/LICENSE" in names
    assert "proxmox_mcp/py.typed" in names
    assert "License-Expression: GPL-3.0-or-later" in metadata
    assert "pve-mcp = proxmox_mcp.cli:main" in scripts


def test_the_source_archive_can_be_tested_and_holds_no_secret(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "requirements.txt", "proxmox_mcp.py", "proxmox_mcp/cli.py"} <= names
    assert {"tests/test_packaging.py", ".env.example", "vm_ssh_hosts.example.json", ".ci/run"} <= names
    assert {"README.tr.md", "CONTRIBUTING.md", "SECURITY.md", "scripts/generate.py"} <= names
    shipped = [
        path.relative_to(ROOT).as_posix() for folder in ("docs", "packaging") for path in (ROOT / folder).rglob("*") if path.is_file()
    ]
    assert set(shipped) <= names
    assert not {name for name in names if Path(name).name in (".env", "vm_ssh_hosts.json") or "__pycache__" in name}


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment that holds the wheel and what it depends on, nothing else."""
    (wheel,) = built.glob("*.whl")
    home = tmp_path_factory.mktemp("empty")
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    install = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300)
    if done.returncode and "NewConnectionError" in done.stderr:
        pytest.skip("no package index can be reached to install the dependencies from")
    assert done.returncode == 0, done.stderr
    return scripts


def test_g01_help_works_in_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run([str(installed / "pve-mcp"), "--help"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "proxmox_health_overview" in done.stdout


@pytest.mark.anyio
async def test_g01_the_installed_server_lists_its_tools(installed: Path, tmp_path: Path) -> None:
    server = StdioServerParameters(command=str(installed / "pve-mcp"), env={"HOME": str(tmp_path)}, cwd=tmp_path)
    async with Client(server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {tool.name for tool in registry.all_tools()}


def test_without_the_extra_the_demo_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run([str(installed / "pve-mcp"), "try"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert "pve-mcp[demo]" in done.stderr
