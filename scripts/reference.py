"""docs/tools.md, from the registry and the table of privileges; the rooms of docs/development.md, from their docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from proxmox_mcp import arguments, privileges, registry
from proxmox_mcp.arguments import Changing, Destroying, Listing, Waiting
from proxmox_mcp.plan import Risk
from proxmox_mcp.registry import Tool
from scripts.readme import cell, render

_GENERATED = "<!-- written by python -m scripts.generate: do not edit -->\n"

_TOOLS_HEAD = """\
# Tools

Every tool with its arguments, its gates and what it needs. `pve-mcp --help` prints the short list; the client sees the same schemas.

## Arguments that many tools share

| argument | of | meaning |
| --- | --- | --- |
| `vmid`, `vm_type` | tools for one guest | the guest's id; `qemu` (a VM) or `lxc` (a container), which may be left out |
| `node` | most tools | name of a node; may be left out wherever the guest's id says it, or where there is only one |
| `response_format` | reading tools | `markdown` (compact text, the default) or `json` (raw numbers: bytes, seconds, fractions) |
| `fields` | lists and single objects | only these columns or fields |
| `limit`, `cursor` | lists | rows a page; the cursor that an answer gave brings the next page |
| `confirm` | tools that change | `true`: carry it out. Without it the answer says what would happen |
| `i_understand_data_loss` | tools that can destroy data | `true` besides, where the call really can |
| `dry_run` | tools that change | `true`: show the exact steps, send nothing |
| `reason` | tools that change | a sentence for the audit log |
| `wait_seconds` | tools that start a task | wait so long for its end (at most `PROXMOX_MAX_WAIT`) |

Unknown arguments are refused. Flags take `true` and `false`, nothing else.
"""
_GATES = {
    Risk.READ: "reads: no flag",
    Risk.CHANGE: "changes: `confirm`",
    Risk.DATA_LOSS: "can destroy data: `confirm`, and `i_understand_data_loss` where the call really can",
}
_LIMITS = {
    "guest": "the guest of the call must be inside",
    "node": "the node of the call must be inside",
    "none": "not offered under a limit, unless `PROXMOX_TOOLS` names it",
}
_SHARED: tuple[tuple[type, tuple[str, ...]], ...] = (
    (arguments.Reading, ("response_format",)),
    (arguments.Record, ("fields",)),
    (Listing, ("fields", "limit", "cursor")),
    (Changing, ("confirm", "dry_run", "reason")),
    (Destroying, ("i_understand_data_loss",)),
    (Waiting, ("wait_seconds",)),
)


def tools() -> str:
    """The whole page."""
    records = registry.all_tools()
    parts = [_GENERATED + "\n" + _TOOLS_HEAD]
    for group in registry.GROUPS:
        parts.append(f"## {group}\n")
        parts += [_tool(record) for record in records if record.group == group]
    return "\n".join(parts)


def _tool(tool: Tool) -> str:
    lines = [f"### `{tool.name}`", "", tool.summary, "", f"- {_GATES[tool.risk]}"]
    if tool.read_only:
        pass
    elif tool.reads:
        kept = "; ".join(f"`{name}`={', '.join(values)}" for name, values in tool.reads.items())
        lines.append(f"- in read-only mode: {kept} alone (these need no flag)")
    else:
        lines.append("- in read-only mode: not offered")
    if not tool.read_only or tool.limit == "none":
        lines.append(f"- `PROXMOX_ALLOW_VMIDS`, `PROXMOX_ALLOW_NODES`: {_limit(tool)}")
    lines.append(f"- privileges: {_privileges(tool.name)}")
    if tool.name in privileges.SSH_NODE:
        lines.append("- SSH: to the node")
    if tool.name in privileges.SSH_GUEST:
        lines.append("- SSH: to guests of `vm_ssh_hosts.json`")
    return "\n".join([*lines, "", *_arguments(tool)]) + "\n"


def _limit(tool: Tool) -> str:
    if tool.limit == "node" and not tool.read_only:
        return "the node must be inside; not offered where guests are limited"
    return _LIMITS[tool.limit]


def _privileges(name: str) -> str:
    needs = privileges.NEEDS[name]
    vital = [f"{_one(need)}" for need in needs if not need.part]
    partial = [f"{_one(need)} (for: {need.part})" for need in needs if need.part]
    return "; ".join(vital + partial) or "none of the API"


def _one(need: privileges.Need) -> str:
    return f"{' or '.join(f'`{privilege}`' for privilege in need.any_of)} on `{need.path}`"


def _arguments(tool: Tool) -> Iterable[str]:
    schema = arguments.schema(tool.model)
    shared = {name for model, names in _SHARED if issubclass(tool.model, model) for name in names}
    own = {name: value for name, value in schema["properties"].items() if name not in shared}
    if own:
        yield from ("| argument | type | meaning |", "| --- | --- | --- |")
        required = schema.get("required", ())
        yield from (_argument(name, value, name in required) for name, value in own.items())
        yield ""
    also = [f"`{name}`" for name in schema["properties"] if name in shared]
    if also:
        yield f"{'Also' if own else 'Arguments'}: {', '.join(also)}."


def _argument(name: str, value: Mapping[str, Any], required: bool) -> str:
    meaning = [str(value["description"])] if "description" in value else []
    if "default" in value:
        meaning.append(f"default: `{str(value['default']).lower() if isinstance(value['default'], bool) else value['default']}`")
    return f"| `{name}`{', required' if required else ''} | {cell(_type(value))} | {cell('; '.join(meaning))} |"


def _type(value: Mapping[str, Any]) -> str:
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if "anyOf" in value:
        return " or ".join(_type(one) for one in value["anyOf"])
    if value.get("type") == "array":
        return f"list of {_type(value.get('items', {}))}"
    return str(value.get("type", "any"))


def development(page: Path) -> str:
    """docs/development.md with its table of rooms made anew."""
    return render(page.read_text(encoding="utf-8"), {"rooms": rooms})


def rooms() -> str:
    """Each room of the package with the first line of its docstring."""
    package = Path(arguments.__file__).parent
    found = [path for path in package.iterdir() if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()]
    lines = ["| room | what it is |", "| --- | --- |"]
    for path in sorted(found, key=lambda path: path.stem):
        source = path / "__init__.py" if path.is_dir() else path
        said = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
        lines.append(f"| `{path.name}{'/' if path.is_dir() else ''}` | {cell(said.partition(chr(10) * 2)[0])} |")
    return "\n".join(lines)
