"""The generated parts of README.md and README.tr.md: the role, variables, tools, install links; what `pve-mcp try` prints.

A generated part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proxmox_mcp import clients, privileges, registry
from proxmox_mcp.config import VARIABLES
from proxmox_mcp.plan import Risk
from scripts import turkish

ROOT = Path(__file__).resolve().parent.parent
Parts = Mapping[str, Callable[[], str]]


@dataclass(frozen=True, slots=True)
class Language:
    """The words of the tables, and how the table's own sentences are said."""

    variable: str
    tool: str
    what: str
    default: str
    count: str
    risks: Mapping[Risk, str]
    install: str  # the text of an install link
    said: Callable[[str, str], str]  # name, English sentence -> sentence
    group: Callable[[str], str]
    value: Callable[[str], str]  # a default

    def parts(self) -> Parts:
        """The parts that are always made anew."""
        return {
            "links": partial(links, self),
            "full role": full_role,
            "variables": partial(variables, self),
            "tools": partial(tools, self),
        }


ENGLISH = Language(
    "variable",
    "tool",
    "what it does",
    "default",
    "{} tools, by toolset (the names that `--toolsets` takes).",
    {Risk.READ: "reads", Risk.CHANGE: "changes", Risk.DATA_LOSS: "can destroy data"},
    "Install in {}",
    lambda name, sentence: sentence,
    lambda group: group,
    lambda default: default,
)
TURKISH = Language(
    "değişken",
    "araç",
    "ne yapar",
    "varsayılan",
    "Araç kümelerine göre {} araç (küme adları `--toolsets` ile verilir).",
    {Risk.READ: "okur", Risk.CHANGE: "değiştirir", Risk.DATA_LOSS: "veri silebilir"},
    "{} içine kur",
    turkish.sentence,
    turkish.group,
    turkish.default,
)


def links(language: Language) -> str:
    """One install link a client."""
    names = {"vscode": "VS Code", "cursor": "Cursor"}
    return "\n".join(f"- [{language.install.format(name)}]({clients.install_link(client)})" for client, name in names.items())


def full_role() -> str:
    """The line that makes the role with everything that the tools can use over the API; the same on Proxmox VE 8 and 9."""
    needed = {need.any_of[0] for needs in privileges.NEEDS.values() for need in needs}
    held = sorted(needed | set(privileges.AUDITOR) | set(privileges.BACKUP_LISTING))
    return f"```sh\npveum role add McpFull --privs {','.join(held)}\n```"


def variables(language: Language) -> str:
    """One table a group."""
    lines: list[str] = []
    group = None
    for variable in VARIABLES:
        if variable.group != group:
            group = variable.group
            lines += ["", f"**{language.group(group)}**", ""]
            lines += [f"| {language.variable} | {language.what} | {language.default} |", "| --- | --- | --- |"]
        what = language.said(variable.name, variable.what)
        lines.append(f"| `{variable.name}` | {cell(what)} | {cell(language.value(variable.default))} |")
    return "\n".join(lines[1:])


def tools(language: Language) -> str:
    """One table a toolset."""
    records = registry.all_tools()
    lines = [language.count.format(len(records))]
    for group in registry.GROUPS:
        members = [record for record in records if record.group == group]
        if members:
            lines += ["", f"**{group}**", "", f"| {language.tool} | {language.what} | |", "| --- | --- | --- |"]
            lines += [
                f"| `{record.name}` | {cell(language.said(record.name, record.summary))} | {language.risks[record.risk]} |"
                for record in members
            ]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Text as it may stand in a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def transcript() -> str:
    """The two answers of a real `pve-mcp try`."""
    done = subprocess.run([sys.executable, "-m", "proxmox_mcp", "try"], capture_output=True, text=True, check=True, cwd=ROOT)
    answers = done.stdout[done.stdout.index("\n> ") :].partition("\nNone of these machines")[0]
    return f"```text{answers.rstrip()}\n```"


def render(text: str, parts: Parts) -> str:
    """A page with these generated parts made anew."""
    for name, make in parts.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, found, rest = text.partition(begin)
        old, ended, tail = rest.partition(end)
        if not (found and ended) or re.search(r"<!-- (begin|end) ", old):
            raise SystemExit(f"there must be one part between {begin} and {end}")
        text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


def part(text: str, name: str) -> str:
    """What stands in a generated part."""
    return text.partition(f"<!-- begin {name} -->\n")[2].partition(f"\n<!-- end {name} -->")[0]


def rendered(path: Path, language: Language, source: Path | None = None) -> str:
    """What the file must be; `source` is the README whose transcript and figures it shows too."""
    shown: dict[str, Callable[[], str]] = {}
    if source is not None:
        original = source.read_text(encoding="utf-8")
        shown = {name: partial(part, original, name) for name in ("transcript", "figures")}
    return render(path.read_text(encoding="utf-8"), {**language.parts(), **shown})
