"""The doctor's look at SSH: each configured node and registered guest is reached the way the tools reach it, and the record is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio

from proxmox_mcp import host_ssh, privileges
from proxmox_mcp.app import App, Call, Stamp
from proxmox_mcp.config import Settings
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.plan import HostCommand, HostTarget
from proxmox_mcp.registry import Tool
from proxmox_mcp.ssh_targets import SshTarget, parse_nodes

if TYPE_CHECKING:
    from proxmox_mcp.ssh import Outcome

_AT_ONCE = 8  # connections
_CONNECT, _COMMAND = 10.0, 15.0  # seconds
# who a command runs as, then the programs that are missing, one a line
_PROBE = 'id -u; for p in pct zfs zpool pvesh; do command -v "$p" >/dev/null 2>&1 || echo "$p"; done'
_WITHOUT = {
    "pct": "commands in containers do not work",
    "pvesh": "it is no Proxmox VE node",
    "zfs": "the ZFS tools do not work there",
    "zpool": "the ZFS tools do not work there",
}


class Row(NamedTuple):
    """One line of the doctor: state, what it is about, what was found, what to do."""

    state: Literal["ok", "note", "problem"]
    subject: str
    text: str
    steps: tuple[str, ...] = ()


async def check_ssh(settings: Settings, tools: Sequence[Tool], nodes: Sequence[str] = ()) -> list[Row]:
    """What SSH can do for these tools; `nodes` are the cluster's, as far as they are known.

    Nothing is connected where no offered tool needs it, nor to nodes while no SSH setting says that it is wanted.
    """
    on_nodes = [tool.name for tool in tools if tool.name in privileges.SSH_NODE]
    on_guests = [tool.name for tool in tools if tool.name in privileges.SSH_GUEST]
    rows: list[Row] = []
    app = App(replace(settings, ssh_timeout=min(settings.ssh_timeout, _CONNECT)))
    try:
        if on_nodes and not wanted(settings):
            steps = ("README, SSH; or leave them out: PROXMOX_EXCLUDE_TOOLS, PROXMOX_TOOLSETS",)
            tried = f"{settings.ssh_host or 'the first host'} as {settings.ssh_user}, with your SSH agent and the keys in ~/.ssh"
            text = f"no SSH setting is given, so {tried}, is what these tools try when they are called: {', '.join(on_nodes)}"
            rows.append(Row("note", "ssh", text, steps))
        elif on_nodes:
            rows.append(Row("ok", "ssh", f"used on nodes by {', '.join(on_nodes)}"))
            rows += await _nodes(Call(app, Stamp("doctor")), nodes)
        if on_guests:
            rows += await _guests(Call(app, Stamp("doctor")), on_guests)
    finally:
        await app.close()
    return rows


def wanted(settings: Settings) -> bool:
    """Whether any setting says that SSH to nodes is meant to work."""
    first = settings.members[0].host if settings.members else ""
    plain = settings.ssh_user == "root" and settings.ssh_port == 22 and settings.ssh_host in ("", first)
    given = (settings.ssh_key_path, settings.ssh_password, settings.ssh_nodes, settings.ssh_jump, settings.ssh_sudo, settings.ssh_config)
    return not plain or any(given) or bool(settings.ssh_known_hosts)


async def _nodes(call: Call, cluster: Sequence[str]) -> list[Row]:
    try:
        mapped = parse_nodes(call.settings.ssh_nodes)
        default = host_ssh.default_target(call.settings)
    except ProxmoxMcpError as exc:
        return [_failure("ssh", exc)]
    names: list[str | None] = [*mapped]
    if default.address not in {endpoint.on(default, label="").address for endpoint in mapped.values()}:
        names.append(None)
    found: dict[str, SshTarget] = {}

    async def one(name: str | None) -> list[Row]:
        subject = f"node {name}" if name else f"ssh {default.host}"
        try:
            place = await call.door.node(name)
            found[place.name] = place.target
            command = HostCommand(HostTarget(node=place.name), ("sh", "-c", _PROBE), timeout=_COMMAND)
            return _probed(subject, place, await call.door.run(command))
        except ProxmoxMcpError as exc:
            return [_failure(subject, exc)]

    rows = await _all(one, names)
    missing = [name for name in cluster if name not in found and name not in mapped]
    if missing:
        setting = ",".join((*filter(None, [call.settings.ssh_nodes]), *(f"{name}=<its address>" for name in missing)))
        rows.append(Row("note", "ssh", f"no SSH target is known for {', '.join(missing)}", (f"set PROXMOX_SSH_NODES={setting}",)))
    return rows + _remarks(call)


def _probed(subject: str, place: host_ssh.Place, outcome: Outcome) -> list[Row]:
    target = place.target
    uid, *absent = outcome.stdout.split() or [""]
    if not outcome.ok or not uid.isdecimal():
        said = (outcome.stderr or outcome.stdout).strip()[:200] or "nothing"
        return [Row("problem", subject, f"{target.address} is reached, but runs no commands as expected; it said: {said}")]
    how = "as root" + (" through sudo" if target.sudo else "") if uid == "0" else f"as user id {uid}"
    rows = [Row("ok", subject, f"{target.address} is {place.name}; commands run {how}")]
    if uid != "0":
        steps = (f"log in as root, or allow {target.user} sudo without a password and set PROXMOX_SSH_SUDO=true",)
        rows.append(Row("problem", subject, f"commands run as {target.user}, not as root: pct, most of ZFS and many logs need root", steps))
    gone = [program for program in absent if program in _WITHOUT]
    if gone:
        lacks = dict.fromkeys(_WITHOUT[program] for program in gone)
        rows.append(Row("note", subject, f"{place.name} has no {', '.join(gone)}: {'; '.join(lacks)}"))
    return rows


async def _guests(call: Call, tools: Iterable[str]) -> list[Row]:
    if call.settings.vm_ssh_hosts is None:
        text = f"no guest is registered for {', '.join(tools)}"
        return [Row("note", "ssh guests", text, (f"add them to {host_ssh.guests_file(call.settings)}, or leave those tools out",))]
    try:
        targets, problems = host_ssh.registered_guests(call.settings)
    except ProxmoxMcpError as exc:
        return [_failure("ssh guests", exc)]
    file = call.settings.vm_ssh_hosts
    wrong = [Row("problem", f"guest {alias}", f"its entry: {what}", (f"correct it in {file}",)) for alias, what in problems.items()]

    async def one(alias: str) -> list[Row]:
        try:
            outcome = await call.door.run(HostCommand(HostTarget(alias=alias), ("true",), timeout=_COMMAND))
        except ProxmoxMcpError as exc:
            return [_failure(f"guest {alias}", exc)]
        if not outcome.ok:
            return [Row("problem", f"guest {alias}", f"{targets[alias].address} is reached, but runs no command: {outcome.stderr[:200]}")]
        return [Row("ok", f"guest {alias}", f"{targets[alias].address} answers")]

    return wrong + await _all(one, list(targets)) + _remarks(call)


async def _all(one: Callable[[Any], Awaitable[list[Row]]], items: Sequence[Any]) -> list[Row]:
    """The rows of all items, in their order, some of them side by side."""
    found: dict[int, list[Row]] = {}
    room = anyio.CapacityLimiter(_AT_ONCE)

    async def run(place: int, item: Any) -> None:
        async with room:
            found[place] = await one(item)

    async with anyio.create_task_group() as group:
        for place, item in enumerate(items):
            group.start_soon(run, place, item)
    return [row for place in sorted(found) for row in found[place]]


def _failure(subject: str, exc: ProxmoxMcpError) -> Row:
    what = exc.what.removeprefix("Nothing was changed: ")
    return Row("problem", subject, f"{what} ({exc.said})" if exc.said else what, (exc.hint,) if exc.hint else ())


def _remarks(call: Call) -> list[Row]:
    return [Row("note", "ssh", remark) for remark in call.remarks]
