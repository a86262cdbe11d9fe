"""The .mcpb bundle and server.json: `python -m scripts.bundle [DIRECTORY]` checks and packs the bundle with the official packer (npx).

A bundle of type uv holds the source and names the dependencies; the client brings uv, which brings Python and installs them on the first
start.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from proxmox_mcp import __version__, registry
from proxmox_mcp.config import VARIABLES

ROOT = Path(__file__).resolve().parent.parent
PACKER = "@anthropic-ai/mcpb@2.1.2"
NAME = f"pve-mcp-{__version__}.mcpb"
# The registry of MCP servers asks for a name below one's own account; the package's page must show the same (README: mcp-name).
SERVER_NAME = "io.github.ahmetem/pve-mcp"
REPOSITORY = "https://github.com/ahmetem/homelab-proxmox-mcp"
SHORT = "Runs a Proxmox VE cluster, carefully: complete short answers, every change planned and recorded"

_LONG = """\
Ask about your Proxmox VE cluster in plain words, and let the assistant act where you allow it: guests, snapshots, backups, storages, \
disks, LVM and ZFS. Every change is planned and shown first, needs a flag, and is written into a log that shows tampering.

You need an API token of your cluster. Reading only is switched on at first."""


def _project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def _asked() -> dict[str, dict[str, Any]]:
    """What the client asks the user for: the key is the variable without PROXMOX_, in small letters."""
    empty = {"type": "string", "required": False, "default": ""}
    return {
        "host": {"type": "string", "title": "Host", "description": "Address of a node, or several, separated by commas", "required": True},
        "user": {"type": "string", "title": "User", "description": "User of the API token, such as mcp@pve", "required": True},
        "token_name": {"type": "string", "title": "Token name", "description": "Name of the API token, such as mcp", "required": True},
        "token_value": {
            "type": "string",
            "title": "Token secret",
            "description": "Secret of the API token, a UUID that Proxmox shows once",
            "required": True,
            "sensitive": True,
        },
        "tls_fingerprint": {**empty, "title": "Certificate's fingerprint", "description": "SHA-256 of the certificate to accept"},
        "ca_file": {**empty, "type": "file", "title": "CA file", "description": "A copy of a node's /etc/pve/pve-root-ca.pem instead"},
        "read_only": {
            "type": "boolean",
            "title": "Reading only",
            "description": "Offer only what reads; switch it off to let the assistant change things",
            "required": False,
            "default": True,
        },
        "toolsets": {**empty, "title": "Toolsets", "description": f"Only these groups of tools: {', '.join(registry.GROUPS)}"},
        "allow_vmids": {**empty, "title": "Guests", "description": "Only these guests may be changed, such as 100-199,205"},
        "ssh_key_path": {**empty, "type": "file", "title": "SSH key", "description": "For ZFS and commands on nodes: private key"},
        "ssh_nodes": {**empty, "title": "SSH addresses", "description": "Of the nodes, such as pve1=10.0.0.1,pve2=10.0.0.2"},
    }


def manifest() -> str:
    """manifest.json of the bundle."""
    project, asked = _project(), _asked()
    body = {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": "Proxmox VE",
        "version": __version__,
        "description": SHORT,
        "long_description": _LONG,
        "author": {"name": "pve-mcp maintainers", "url": REPOSITORY},
        "repository": {"type": "git", "url": REPOSITORY},
        "documentation": f"{REPOSITORY}#readme",
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "proxmox_mcp.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "proxmox_mcp.py"],
                "env": {f"PROXMOX_{key.upper()}": f"${{user_config.{key}}}" for key in asked},
            },
        },
        "tools": [{"name": tool.name, "description": tool.summary} for tool in registry.all_tools()],
        "prompts_generated": True,
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": project["requires-python"]}},
        "user_config": asked,
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def project() -> str:
    """pyproject.toml of the bundle: nothing to build, the same dependencies."""
    found = _project()
    dependencies = "".join(f'    "{line}",\n' for line in found["dependencies"])
    return (
        "# written by python -m scripts.generate: do not edit\n"
        f'[project]\nname = "pve-mcp-bundle"\nversion = "{__version__}"\nrequires-python = "{found["requires-python"]}"\n'
        f"dependencies = [\n{dependencies}]\n\n[tool.uv]\npackage = false\n"
    )


def server_json() -> str:
    """server.json for the registry of MCP servers (publishing it is the owner's act)."""
    body = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": SERVER_NAME,
        "title": "Proxmox VE",
        "description": SHORT,
        "version": __version__,
        "repository": {"url": REPOSITORY, "source": "github"},
        "packages": [
            {
                "registryType": "pypi",
                "identifier": _project()["name"],
                "version": __version__,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "environmentVariables": [_variable(variable.name) for variable in VARIABLES],
            }
        ],
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _variable(name: str) -> dict[str, Any]:
    variable = next(variable for variable in VARIABLES if variable.name == name)
    required = variable.default == "required"
    what = variable.what if required or variable.default == "none" else f"{variable.what} Default: {variable.default}."
    marks = {"isRequired": required, "isSecret": variable.secret}
    return {"name": name, "description": what} | {mark: True for mark, holds in marks.items() if holds}


def stage(directory: Path) -> None:
    """Lay the bundle's files into an empty directory."""
    for name in ("manifest.json", "pyproject.toml"):
        shutil.copyfile(ROOT / "packaging" / "mcpb" / name, directory / name)
    for name in ("proxmox_mcp.py", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, directory / name)
    shutil.copytree(ROOT / "proxmox_mcp", directory / "proxmox_mcp", ignore=shutil.ignore_patterns("__pycache__"))


def pack(out: Path) -> Path:
    """Check and pack; the bundle's path. Raises CalledProcessError when the packer refuses, FileNotFoundError without npx."""
    npx = shutil.which("npx")
    if npx is None:
        raise FileNotFoundError("npx is needed (it comes with Node.js)")
    out.mkdir(parents=True, exist_ok=True)
    bundle = (out / NAME).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        stage(Path(temporary))
        for command in (["validate", "manifest.json"], ["pack", ".", str(bundle)]):
            subprocess.run([npx, "--yes", PACKER, *command], cwd=temporary, check=True, stdin=subprocess.DEVNULL)
    return bundle


if __name__ == "__main__":
    print(pack(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")))
