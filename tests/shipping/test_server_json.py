"""server.json against the rules of the registry of MCP servers (schema of 2025-12-11, its facts written down here)."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from proxmox_mcp import __version__
from proxmox_mcp.config import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
SERVER = json.loads((ROOT / "packaging" / "server.json").read_text(encoding="utf-8"))

TEXT = {"type": "string"}
INPUT = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": TEXT,
        "description": TEXT,
        "isRequired": {"type": "boolean"},
        "isSecret": {"type": "boolean"},
        "format": {"enum": ["string", "number", "boolean", "filepath"]},
        "default": TEXT,
        "value": TEXT,
        "placeholder": TEXT,
        "choices": {"type": "array", "items": TEXT},
    },
}
PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "transport"],
    "properties": {
        "registryType": {"enum": ["npm", "pypi", "cargo", "oci", "nuget", "mcpb"]},
        "identifier": TEXT,
        "version": {"type": "string", "minLength": 1, "maxLength": 255, "not": {"const": "latest"}},
        "fileSha256": {"type": "string", "pattern": "^[a-f0-9]{64}$"},
        "runtimeHint": TEXT,
        "transport": {"type": "object", "required": ["type"], "properties": {"type": {"const": "stdio"}}},
        "environmentVariables": {"type": "array", "items": INPUT},
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "description", "version"],
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255},
        "websiteUrl": TEXT,
        "repository": {"type": "object", "required": ["url", "source"], "properties": {"url": TEXT, "source": TEXT, "subfolder": TEXT}},
        "packages": {"type": "array", "items": PACKAGE},
    },
    "additionalProperties": False,
}


def test_it_fits_the_schema() -> None:
    jsonschema.validate(SERVER, SCHEMA)


@pytest.mark.parametrize(
    ("path", "value"),
    [(("name",), "pve-mcp"), (("description",), "x" * 101), (("packages", 0, "version"), "latest"), (("packages", 0, "transport"), {})],
)
def test_the_schema_here_refuses_what_the_registry_would(path: tuple[str | int, ...], value: Any) -> None:
    broken: Any = json.loads(json.dumps(SERVER))
    place = broken
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


def test_versions_are_this_one_and_no_range() -> None:
    assert [SERVER["version"], *(package["version"] for package in SERVER["packages"])] == [__version__] * 2
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_the_package_is_this_one_and_its_page_declares_the_name() -> None:
    """The registry fetches the package's description and looks for the name in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [package["identifier"] for package in SERVER["packages"]] == [project["name"]]
    assert f"mcp-name: {SERVER['name']} " in (ROOT / project["readme"]).read_text(encoding="utf-8")
    assert SERVER["name"].partition("/")[0] == f"io.github.{SERVER['repository']['url'].split('/')[3]}"
    assert project["urls"]["Repository"] == SERVER["repository"]["url"]


def test_every_variable_is_there_and_the_secret_ones_are_marked() -> None:
    found = {variable["name"]: variable for variable in SERVER["packages"][0]["environmentVariables"]}
    assert set(found) == {variable.name for variable in VARIABLES}
    secret, required = ({name for name, variable in found.items() if variable.get(mark)} for mark in ("isSecret", "isRequired"))
    assert secret == {variable.name for variable in VARIABLES if variable.secret}
    assert required == {variable.name for variable in VARIABLES if variable.default == "required"}
