"""The house rules that a machine can hold: imports point down, heavy libraries have one door, modules stay small and say what they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "proxmox_mcp"
# From the ground up. A module may import from its own line and from those before it.
FLOORS = (
    {"errors", "text"},
    {"secrets", "command_secrets", "plan", "config", "cursor", "ssh_targets", "read_commands", "privileges", "limits"},
    {"arguments", "questions", "looks", "preview", "render", "http_client", "ssh", "audit"},
    {"gates", "tasks", "inventory", "storages", "health"},
    {"limited_reads", "terminal", "far_files"},
    {"app", "host_ssh", "registry"},
    {"carry_out", "changes", "pipeline", "zfs"},
    {"tools"},
    {"selection", "approval", "instructions", "prompts", "resources", "wire", "mcp_instance"},
    {"server", "clients"},
    {"demo", "ssh_check", "doctor", "document"},
    {"cli"},
    {"__main__"},
)
DOORS = {"httpx": "http_client", "asyncssh": "ssh", "dotenv": "config", "fakepve": "demo"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path, *, also_late: bool) -> Iterator[tuple[str, int]]:
    """What a module imports, `TYPE_CHECKING` blocks left out; with also_late inside functions too."""

    def walk(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in nodes:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                continue
            yield node
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not also_late:
                continue
            for name in ("body", "orelse", "finalbody", "handlers"):
                yield from walk(getattr(node, name, []))

    for node in walk(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "proxmox_mcp":
                yield from ((f"proxmox_mcp.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module, node.lineno


def floor(name: str) -> int:
    found = [number for number, rooms in enumerate(FLOORS) if name in rooms]
    assert found, f"the room {name} has no floor: give it one in tests/test_house.py and in the picture of the house"
    return found[0]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    here = room(path)
    if here == "__init__":
        return
    for name, line in imports(path, also_late=False):
        parts = name.split(".")
        if parts[0] == "proxmox_mcp" and len(parts) > 1 and parts[1] not in (here, "__version__"):
            assert floor(parts[1]) <= floor(here), f"{path.name}:{line} imports {name}, which lives above it"


@pytest.mark.parametrize(("library", "owner"), DOORS.items())
def test_each_heavy_library_has_one_door(library: str, owner: str) -> None:
    users = {room(path) for path in modules() for name, _ in imports(path, also_late=True) if name.split(".")[0] == library}
    assert users == {owner}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_is_small_and_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "says nothing about itself"
    assert len(text.splitlines()) <= 320


def test_no_room_is_called_after_nothing() -> None:
    assert not {room(path) for path in modules()} & {"utils", "helpers", "common", "misc"}
