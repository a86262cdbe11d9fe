"""Writes every generated file and every generated part of one: `python -m scripts.generate`.

--check      writes nothing; the exit status says whether all are up to date, the output which are not
--transcript also runs `pve-mcp try` and writes what it prints into the READMEs
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from proxmox_mcp.read_commands import document
from scripts import bundle, env_example, readme, reference

ROOT = Path(__file__).resolve().parent.parent
FILES: Mapping[str, Callable[[], str]] = {
    ".env.example": env_example.text,
    "docs/tools.md": reference.tools,
    "docs/development.md": lambda: reference.development(ROOT / "docs" / "development.md"),
    "docs/read-only-commands.md": document.document,
    "packaging/server.json": bundle.server_json,
    "packaging/mcpb/manifest.json": bundle.manifest,
    "packaging/mcpb/pyproject.toml": bundle.project,
    "README.md": lambda: readme.rendered(ROOT / "README.md", readme.ENGLISH),
    "README.tr.md": lambda: readme.rendered(ROOT / "README.tr.md", readme.TURKISH, ROOT / "README.md"),
}


def stale() -> list[str]:
    """The files that are not what they would be if they were written now."""
    return [name for name, make in FILES.items() if _read(ROOT / name) != make()]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        found = stale()
        print("".join(f"{name} is out of date: run python -m scripts.generate\n" for name in found), end="")
        return int(bool(found))
    if "--transcript" in arguments:
        path = ROOT / "README.md"
        path.write_text(readme.render(_read(path), {"transcript": readme.transcript}), encoding="utf-8", newline="\n")
    for name, make in FILES.items():
        path, text = ROOT / name, make()
        if _read(path) != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
