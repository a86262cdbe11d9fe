"""Everything that is written by a program is what that program would write now, and the Turkish README says what the English one says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxmox_mcp import registry
from proxmox_mcp.config import VARIABLES
from scripts import generate, turkish

ROOT = Path(__file__).resolve().parent.parent
ENGLISH, TURKISH = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.tr.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", generate.FILES)
def test_generated_files_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == generate.FILES[name](), "run: python -m scripts.generate"


def test_checking_says_so_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: (ROOT / name).stat().st_mtime_ns for name in generate.FILES}
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr().out == ""
    assert {name: (ROOT / name).stat().st_mtime_ns for name in generate.FILES} == before


def test_every_row_has_been_said_in_turkish() -> None:
    assert turkish.stale() == [], "say these anew in scripts/turkish.py, then run: python -m scripts.generate"


def sections(text: str) -> list[int]:
    """The levels of the headings, in their order; what stands in code is no heading."""
    return [len(found) for found in re.findall(r"^(#+) ", FENCE.sub("", text), re.MULTILINE)]


def tables(text: str) -> list[list[str]]:
    """Each table as the first cells of its rows; a first cell in words (not code) as its place only."""
    found: list[list[str]] = []
    inside = False
    for line in FENCE.sub("", text).splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
        inside = True
        first = line.split("|")[1].strip()
        found[-1].append(first if first.startswith("`") else "-")
    return found


def test_the_turkish_readme_has_the_same_sections() -> None:
    assert sections(TURKISH) == sections(ENGLISH)


def test_the_turkish_readme_has_the_same_commands() -> None:
    assert FENCE.findall(TURKISH) == FENCE.findall(ENGLISH)


def test_the_turkish_readme_has_the_same_tables() -> None:
    assert [len(table) for table in tables(TURKISH)] == [len(table) for table in tables(ENGLISH)]
    assert tables(TURKISH) == tables(ENGLISH)


def test_the_turkish_readme_names_the_same_things() -> None:
    """Variables, tools, options, files and quoted errors stand in both, as often in lists and steps as in tables."""
    code = re.compile(r"`([^`\n]+)`")
    kinds = (code, re.compile(r"https?://[^\s)`]+"), re.compile(r"\bPROXMOX_[A-Z_]+"))
    for kind in kinds:
        assert set(kind.findall(FENCE.sub("", TURKISH))) == set(kind.findall(FENCE.sub("", ENGLISH)))
    marks = re.compile(r"<!-- .+ -->")
    assert marks.findall(TURKISH) == marks.findall(ENGLISH)
    numbered = re.compile(r"^\d\. |^- ", re.MULTILINE)
    assert len(numbered.findall(TURKISH)) == len(numbered.findall(ENGLISH))


def test_every_tool_is_described_with_all_its_arguments() -> None:
    page = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    parts = {found.split("`")[1]: found for found in page.split("\n### ")[1:]}
    assert set(parts) == {tool.name for tool in registry.all_tools()}
    for tool in registry.all_tools():
        assert [name for name in tool.model.model_fields if f"`{name}`" not in parts[tool.name]] == []


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_whatever_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    known = {tool.name for tool in registry.all_tools()} | {"proxmox_mcp", "proxmox_list_things"}
    assert set(re.findall(r"\bproxmox_[a-z_]+", text)) - known == set()
    assert set(re.findall(r"\bPROXMOX_[A-Z_]*[A-Z]", text)) - {variable.name for variable in VARIABLES} == set()
    places = r"(?:docs|packaging|scripts|benchmarks|tests|proxmox_mcp|\.ci)/[\w./-]+|[A-Z]+(?:\.tr)?\.md"
    named = set(re.findall(rf"`({places})`", text)) - {"proxmox_mcp/tools/"}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
