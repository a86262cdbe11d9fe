"""The page docs/read-only-commands.md, from the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from proxmox_mcp.read_commands.grammar import Row
from proxmox_mcp.read_commands.shell_lines import CHANGES, FILTERS
from proxmox_mcp.read_commands.tables import TABLES
from proxmox_mcp.read_commands.types import TYPES, ValueType

_HEAD = """# Read-only host commands

What `proxmox_host_read_exec` accepts. No shell reads the line: words are split as a shell would split them, and one row below must
account for every word. Everything else is refused before anything is sent.

- `-n,--lines=AMOUNT` are the spellings of an option and the type of its value; `[=x]` is a value that may be left out; one of the options
  marked `!`, and each marked `&`, must be given. Abbreviated long options are refused.
- `A+`, `A*`, `A?` are one or more, any number, and at most one word of type A; `( a | b )` is a choice.
- An interval needs a count, and interval times count stays below the timeout. Paths are absolute and canonical. Secrets, devices and files
  without end are refused, here and, after links are resolved, on the node.
"""


_SHELL = """## Lines for a shell

`proxmox_host_exec`, `proxmox_vm_exec` and `proxmox_lxc_exec` count a line as harmless when every command in it (joined by `;`, `&&`, `||`,
`|` or a newline) is one of the above, or one of these, or, after a pipe, one of the filters. Whatever a shell would expand, redirect, group
or run in the background makes the line data loss.
"""


def document() -> str:
    """The page, as Markdown."""
    lines = [_HEAD]
    for title, rows in TABLES.items():
        lines += [f"## {title}", "", *_table(rows, "read-only because"), ""]
    lines += [_SHELL, *_table(CHANGES.rows, "harmless because"), "", "Filters:", "", *_table(FILTERS.rows, "remark"), ""]
    return "\n".join((*lines, "## Types of values", "", "| type | is |", "| --- | --- |", *map(_type, TYPES.values()), ""))


def _table(rows: Iterable[Row], last: str) -> Iterator[str]:
    yield from (f"| command | options | {last} |", "| --- | --- | --- |")
    for row in rows:
        yield f"| {_code(row.usage)} | {_code(row.options)} | {_plain(row.why)} |"


def _type(value_type: ValueType) -> str:
    return f"| {value_type.name} | {_plain(value_type.says)} |"


def _code(text: str) -> str:
    return f"`{_plain(text)}`" if text else ""


def _plain(text: str) -> str:
    return text.replace("|", "\\|")
