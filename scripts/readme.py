"""Writes the generated parts of README.md: the role, variables, tools; with --transcript also what `pve-mcp try` prints.

A generated part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`. With --check nothing is written: the exit status says whether
the parts are up to date.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from proxmox_mcp import privileges, registry
from proxmox_mcp.config import VARIABLES
from proxmox_mcp.plan import Risk

README = Path(__file__).resolve().parent.parent / "README.md"
_RISKS = {Risk.READ: "reads", Risk.CHANGE: "changes", Risk.DATA_LOSS: "can destroy data"}


def full_role() -> str:
    """The line that makes the role with everything that the tools can use over the API; the same on Proxmox VE 8 and 9."""
    needed = {need.any_of[0] for needs in privileges.NEEDS.values() for need in needs}
    held = sorted(needed | set(privileges.AUDITOR) | set(privileges.BACKUP_LISTING))
    return f"```sh\npveum role add McpFull --privs {','.join(held)}\n```"


def variables() -> str:
    """One table a group."""
    lines: list[str] = []
    group = None
    for variable in VARIABLES:
        if variable.group != group:
            group = variable.group
            lines += ["", f"**{group}**", "", "| variable | what it does | default |", "| --- | --- | --- |"]
        lines.append(f"| `{variable.name}` | {_cell(variable.what)} | {_cell(variable.default)} |")
    return "\n".join(lines[1:])


def tools() -> str:
    """One table a toolset."""
    records = registry.all_tools()
    lines = [f"{len(records)} tools, by toolset (the names that `--toolsets` takes)."]
    for group in registry.GROUPS:
        members = [record for record in records if record.group == group]
        if members:
            lines += ["", f"**{group}**", "", "| tool | what it does | |", "| --- | --- | --- |"]
            lines += [f"| `{record.name}` | {_cell(record.summary)} | {_RISKS[record.risk]} |" for record in members]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def transcript() -> str:
    """The two answers of a real `pve-mcp try`."""
    done = subprocess.run([sys.executable, "-m", "proxmox_mcp", "try"], capture_output=True, text=True, check=True, cwd=README.parent)
    answers = done.stdout[done.stdout.index("\n> ") :].partition("\nNone of these machines")[0]
    return f"```text{answers.rstrip()}\n```"


ALWAYS: dict[str, Callable[[], str]] = {"full role": full_role, "variables": variables, "tools": tools}


def render(text: str, parts: Mapping[str, Callable[[], str]] = ALWAYS) -> str:
    """README with these generated parts made anew."""
    for name, make in parts.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, found, rest = text.partition(begin)
        old, ended, tail = rest.partition(end)
        if not (found and ended) or re.search(r"<!-- (begin|end) ", old):
            raise SystemExit(f"README.md needs one part between {begin} and {end}")
        text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


def main() -> int:
    before = README.read_text(encoding="utf-8")
    after = render(before, {**ALWAYS, "transcript": transcript} if "--transcript" in sys.argv[1:] else ALWAYS)
    if "--check" in sys.argv[1:]:
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
