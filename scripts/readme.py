"""Writes the generated parts of README.md: roles, variables, tools. With --check, says whether they are up to date.

A generated part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import re
import sys
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


def render(text: str) -> str:
    """README with its generated parts made anew."""
    for name, make in {"full role": full_role, "variables": variables, "tools": tools}.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, found, rest = text.partition(begin)
        old, ended, tail = rest.partition(end)
        if not (found and ended) or re.search(r"<!-- (begin|end) ", old):
            raise SystemExit(f"README.md needs one part between {begin} and {end}")
        text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


def main() -> int:
    before = README.read_text(encoding="utf-8")
    after = render(before)
    if "--check" in sys.argv[1:]:
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
