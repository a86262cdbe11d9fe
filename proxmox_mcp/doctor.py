"""`pve-mcp doctor`: checks configuration, connection, certificate, clock, token and privileges, each with the step that mends it.

ok       configuration  mcp@pve!assistant at pve1:8006, from /home/anna/.env
ok       pve1:8006      answers in 12 ms; certificate verified; its SHA-256 is 9A:1F:...
ok       clock          this machine and pve1:8006 agree
ok       token          accepted by Proxmox VE 9.2.4
problem  proxmox_vm_power  cannot work: lacks VM.PowerMgmt on /vms
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import shlex
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from proxmox_mcp import privileges
from proxmox_mcp.errors import AuditError, ConfigError, ProxmoxMcpError
from proxmox_mcp.privileges import Need, Permissions
from proxmox_mcp.text import os_reason

if TYPE_CHECKING:
    from proxmox_mcp.config import Member, Settings
    from proxmox_mcp.http_client import HttpClient
    from proxmox_mcp.registry import Tool

_PATIENCE = 5.0  # seconds for one connection
_CLOCK_NOTE, _CLOCK_PROBLEM = 5, 120  # seconds apart
_NODE_SIDE = "openssl x509 -noout -fingerprint -sha256 -in /etc/pve/local/pve-ssl.pem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: `ok`, `note` (works, worth knowing) or `problem`; `steps` say what to do, `paste` are lines for a node's shell."""

    state: Literal["ok", "note", "problem"]
    subject: str
    text: str
    steps: tuple[str, ...] = ()
    paste: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((f"{self.state:<8} {self.subject:<16} {self.text}", *(f"{'':<25} -> {step}" for step in self.steps)))


def run(settings: Settings) -> int:
    """Prints the findings; 0 when there is no problem, else 1."""
    findings = asyncio.run(examine(settings, show=print))
    problems = sum(finding.state == "problem" for finding in findings)
    print(f"\n{problems or 'no'} problem{'' if problems == 1 else 's'} found")
    for finding in findings:
        if finding.paste:
            print(f"\n{finding.text}\n", *finding.paste, sep="\n")
    return int(problems > 0)


async def examine(settings: Settings, *, show: Any = lambda finding: None) -> list[Finding]:
    """All findings; `show` is called with each when it is there."""
    from proxmox_mcp.http_client import HttpClient

    findings: list[Finding] = []

    def add(new: Iterable[Finding]) -> bool:
        fresh = list(new)
        findings.extend(fresh)
        for finding in fresh:
            if not finding.paste:
                show(finding)
        return all(finding.state != "problem" for finding in fresh)

    if not add(_configuration(settings)):
        return findings
    add(_audit(settings))
    reached = False
    for member in settings.members:
        found = await _member(settings, member)
        add(found)
        reached = reached or found[0].state != "problem"  # a clock that is off keeps nothing from being asked
    nodes: list[str] = []
    if reached or settings.proxy:
        http = HttpClient(settings)
        try:
            add(await _token(settings, http))
            nodes = await _node_names(http)
            add(_limits(settings, nodes))
        finally:
            await http.close()
    add(await _ssh(settings, nodes))
    return findings


def _configuration(settings: Settings) -> Iterable[Finding]:
    if settings.problems:
        places = ", ".join(str(path) for path in settings.searched)
        yield from (Finding("problem", "configuration", problem) for problem in settings.problems)
        if not settings.env_file and places:
            yield Finding("note", "configuration", f"no .env file was found; looked in: {places}")
        yield from (Finding("note", "configuration", warning) for warning in settings.warnings)
        return
    try:
        _offered(settings)
    except ConfigError as exc:  # the server would not start
        yield Finding("problem", "configuration", exc.what, (exc.hint,))
        return
    members = ", ".join(str(member) for member in settings.members)
    source = f"from {settings.env_file}" if settings.env_file else "from environment variables"
    yield Finding("ok", "configuration", f"{settings.user}!{settings.token_name} at {members}, {source}")
    yield from (Finding("note", "configuration", warning) for warning in settings.warnings)


def _offered(settings: Settings) -> tuple[Tool, ...]:
    from proxmox_mcp import registry
    from proxmox_mcp.selection import select

    return select(registry.all_tools(), settings)


def _limits(settings: Settings, nodes: list[str]) -> Iterable[Finding]:
    unknown = [name for name in settings.allow_nodes if name not in nodes]
    if nodes and unknown:
        text = f"PROXMOX_ALLOW_NODES names {', '.join(unknown)}, and the cluster has no such node; it has: {', '.join(nodes)}"
        yield Finding("note", "configuration", text, ("write the names as Proxmox spells them",))


def _audit(settings: Settings) -> Iterable[Finding]:
    """Whether the record can be written, and changes that an earlier run began and of which nobody knows what became."""
    from proxmox_mcp import audit
    from proxmox_mcp.app import App

    app = App(settings)
    state: Literal["note", "problem"] = "note" if settings.read_only else "problem"
    try:
        directory, _ = app.audit_dir, app.audit_keys
    except (AuditError, ConfigError) as exc:
        yield Finding(state, "audit log", f"{exc.what} ({exc.said})" if exc.said else exc.what, (exc.hint,))
        return
    if why := audit.unwritable(directory):
        step = "mend that, or name another PROXMOX_AUDIT_DIR: without a record nothing is changed, and no command runs over SSH"
        yield Finding(state, "audit log", f"{directory} cannot hold it: {why}", (step,))
        return
    for one in audit.unfinished(directory):
        yield Finding("note", "audit log", str(one), (_LOOK,))


_LOOK = "look at the object itself and at the task list; `pve-mcp audit verify` lists every record without an outcome"


async def _member(settings: Settings, member: Member) -> list[Finding]:
    """Connection, certificate and clock of one member, without sending the token."""
    from proxmox_mcp.http_client import tls

    name = str(member)
    if settings.proxy:
        return [Finding("note", name, "is reached through PROXMOX_PROXY; its certificate is not examined here")]
    context = tls.client_context(settings)
    started = time.monotonic()
    try:
        fingerprint, date = await _greet(member, context)
    except ssl.SSLCertVerificationError as exc:
        presented = await tls.fetch_fingerprint(member, _PATIENCE)
        error = tls.certificate_error(exc, member, presented, "TLS handshake")
        return [Finding("problem", name, error.what.removeprefix(f"Cannot connect to {name}: "), (error.hint,))]
    except ssl.SSLError as exc:
        step = "Proxmox speaks TLS on port 8006: check PROXMOX_HOST and PROXMOX_PORT"
        return [Finding("problem", name, f"something answers, but no TLS: {exc.reason or exc}", (step,))]
    except (OSError, TimeoutError) as exc:
        why = f"no answer in {_PATIENCE:g} s" if isinstance(exc, TimeoutError) else os_reason(exc)
        steps = ("check PROXMOX_HOST and PROXMOX_PORT, that the node is up, and that no firewall stands between",)
        return [Finding("problem", name, f"cannot connect: {why}", steps)]
    took = f"answers in {(time.monotonic() - started) * 1000:.0f} ms"
    if tls.pins(settings):
        found = [Finding("ok", name, f"{took}; certificate is the pinned one, SHA-256 {fingerprint}")]
    elif settings.verify_tls:
        found = [Finding("ok", name, f"{took}; certificate verified, SHA-256 {fingerprint}")]
    else:
        found = [
            Finding("note", name, f"{took}; its certificate is NOT verified, SHA-256 {fingerprint}", _pin_steps(settings, fingerprint))
        ]
    return [*found, *_clock(name, date)]


async def _greet(member: Member, context: ssl.SSLContext) -> tuple[str, str]:
    """The certificate's fingerprint and the Date header of an answer."""
    from proxmox_mcp.http_client import tls

    async with asyncio.timeout(_PATIENCE):
        reader, writer = await asyncio.open_connection(member.host, member.port, ssl=context, server_hostname=member.host)
        try:
            fingerprint = tls.fingerprint_of(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
            writer.write(
                f"GET /api2/json/access/domains HTTP/1.1\r\nHost: {member}\r\nConnection: close\r\n\r\n".encode("ascii", "replace")
            )
            date = ""
            with contextlib.suppress(ValueError):  # a header line over the limit: not a clock to go by
                while line := (await reader.readline()).strip():
                    head, _, value = line.decode("latin-1").partition(":")
                    date = value.strip() if head.lower() == "date" else date
            return fingerprint, date
        finally:
            writer.transport.abort()


def _pin_steps(settings: Settings, fingerprint: str) -> tuple[str, ...]:
    several = " (one a member, separated by commas)" if len(settings.members) > 1 else ""
    return (
        "remove PROXMOX_VERIFY_SSL and copy /etc/pve/pve-root-ca.pem from a node and set PROXMOX_CA_FILE to it;",
        f"or compare with what the node prints for `{_NODE_SIDE}` and set PROXMOX_TLS_FINGERPRINT={fingerprint}{several}",
    )


def _clock(name: str, date: str) -> Iterable[Finding]:
    try:
        theirs = email.utils.parsedate_to_datetime(date).timestamp()
    except ValueError:
        return
    apart = abs(time.time() - theirs)
    if apart <= _CLOCK_NOTE:
        yield Finding("ok", "clock", f"this machine and {name} agree")
        return
    state: Literal["note", "problem"] = "problem" if apart > _CLOCK_PROBLEM else "note"
    step = "let both take their time from the network (chrony); ages of backups and tasks are wrong until then"
    yield Finding(state, "clock", f"this machine and {name} are {apart:.0f} s apart", (step,))


async def _token(settings: Settings, http: HttpClient) -> list[Finding]:
    try:
        version = await http.get("version")
        permissions = await http.get("access", "permissions")
    except ProxmoxMcpError as exc:
        said = f" ({exc.said})" if exc.said else ""
        return [Finding("problem", "token", f"{exc.what}{said}", (exc.hint,) if exc.hint else ())]
    release = str(version.get("version", "?")) if isinstance(version, dict) else "?"
    found = [Finding("ok", "token", f"accepted by Proxmox VE {release}")]
    if not isinstance(permissions, dict) or not permissions:
        permissions = {}
        found.append(Finding("problem", "privileges", "this token may do nothing at all: every list will be empty", (_rights(settings),)))
    return [*found, *_tools(settings, permissions)]


def _rights(settings: Settings) -> str:
    own = "give it a role (lines below, or README: the token); under privilege separation it has only what is given to itself"
    if settings.user == "root@pam":
        return own
    line = shlex.join(["pveum", "user", "token", "modify", settings.user, settings.token_name, "--privsep", "0"])
    return f"{own}: `{line}` gives it all that {settings.user} may"


def _tools(settings: Settings, permissions: Permissions) -> Iterable[Finding]:
    """What the offered tools can do with these permissions, and the lines that unlock the rest."""
    verdicts = [(tool, privileges.judge(_needs(tool), permissions)) for tool in _offered(settings)]
    counts = {state: sum(verdict.state == state for _, verdict in verdicts) for state in ("works", "partly", "no")}
    yield Finding(
        "ok",
        "tools",
        f"{counts['works']} of {len(verdicts)} have every privilege they need, {counts['partly']} work in part, {counts['no']} not",
    )
    lacking: dict[Need, None] = {}
    for tool, verdict in verdicts:
        if verdict.state == "works":
            continue
        lacking.update(dict.fromkeys(verdict.lacking))
        missing = "; ".join(f"{need}{f' (for: {need.part})' if need.part else ''}" for need in verdict.lacking)
        where = f" elsewhere than {', '.join(verdict.only[:6])}{' ...' if len(verdict.only) > 6 else ''}" if verdict.only else ""
        if verdict.state == "partly":
            yield Finding("note", tool.name, f"works in part: lacks{where} {missing}")
        else:
            yield Finding("problem", tool.name, f"cannot work: lacks {missing}")
    if lacking:
        say = "to unlock the rest, in a shell of a node as root (or leave it out: PROXMOX_READ_ONLY, PROXMOX_EXCLUDE_TOOLS):"
        lines = privileges.unlock(lacking, permissions, settings.user, settings.token_name)
        yield Finding("note", "privileges", say, paste=tuple(lines))


def _needs(tool: Tool) -> tuple[Need, ...]:
    return privileges.NEEDS.get(tool.name, ())


async def _node_names(http: HttpClient) -> list[str]:
    with contextlib.suppress(ProxmoxMcpError):
        rows = await http.get("nodes")
        return sorted(str(row["node"]) for row in rows if isinstance(row, dict) and "node" in row) if isinstance(rows, list) else []
    return []


async def _ssh(settings: Settings, nodes: list[str]) -> list[Finding]:
    if settings.ssh_problems:
        return [Finding("problem", "ssh", problem) for problem in settings.ssh_problems]
    from proxmox_mcp.ssh_check import check_ssh

    return [Finding(*row) for row in await check_ssh(settings, _offered(settings), nodes)]
