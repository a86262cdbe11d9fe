"""The path of a call: tool -> Answer, or Plan -> gates -> a person's word -> intent on disk -> the steps -> outcome on disk -> Answer.

Nothing here knows MCP: a `Peer` stands for the client at the other end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from proxmox_mcp import gates, limits, preview, privileges, secrets, text
from proxmox_mcp.app import App, Call, Stamp
from proxmox_mcp.arguments import Arguments, Changing, flat, parse
from proxmox_mcp.carry_out import carry_out
from proxmox_mcp.command_secrets import mask_line
from proxmox_mcp.errors import AuditError, InvalidArgument, ProxmoxMcpError, Refused
from proxmox_mcp.plan import Answer, HostCommand, Plan
from proxmox_mcp.registry import Tool
from proxmox_mcp.render import View, render

if TYPE_CHECKING:
    from proxmox_mcp.audit import Which

_LONGEST, _NAMED = 200_000, 20  # characters of arguments that are recorded whole; names of those that are not
CHANGED = "the situation changed after it was shown; look again"


@dataclass(frozen=True, slots=True)
class Question:
    """The person must be asked first: what goes back to the client instead of an answer."""

    result: Any


class Peer(Protocol):
    """The client at the other end of a call."""

    async def progress(self, elapsed: float, message: str) -> None:
        """Tells that a wait goes on; `elapsed` in seconds."""

    @property
    def asks_now(self) -> bool:
        """Whether `approve` puts a question to a person; not where this client cannot, nor where the answer came with the call."""

    async def approve(self, plan: Plan) -> bool | Question | None:
        """A person's word on exactly this plan; None when this client cannot ask."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the model reads."""

    text: str
    failed: bool = False


async def run(tool: Tool, raw: Mapping[str, Any], app: App, peer: Peer) -> Result | Question:
    """One call from raw arguments to text. Raises ProxmoxMcpError for every anticipated failure."""
    try:
        args = parse(tool.model, raw)
    except InvalidArgument as refusal:
        given = flat(tool.model, raw)
        await _note_early(tool, given if isinstance(given, dict) else raw, app, refusal)
        raise
    call = Call(app, Stamp(tool.name, reason=getattr(args, "reason", None) or ""), cursor=getattr(args, "cursor", None))
    if isinstance(args, Changing):
        for remark in args.unused():
            call.remark(remark)
    with secrets.passed(value for name, value in args if secrets.is_secret_name(name) and isinstance(value, str)):
        try:
            return await _answered(tool, args, call, peer)
        except ProxmoxMcpError as exc:
            for part in ("what", "tried", "said", "hint"):
                setattr(exc, part, secrets.mask_text(getattr(exc, part)))
            raise


async def _answered(tool: Tool, args: Arguments, call: Call, peer: Peer) -> Result | Question:
    try:
        check_reads(tool, args, call.app)
        limits.check_read(call.settings, getattr(args, "vmid", None), getattr(args, "node", None))
        found = await tool.function(args, call)
    except (Refused, InvalidArgument) as refusal:
        await _note_early(tool, args.model_dump(exclude_unset=True), call.app, refusal)
        raise
    if isinstance(found, Plan):
        if not isinstance(args, Changing):
            raise TypeError(f"{tool.name} made a plan without the gates' arguments")
        outcome = await change(tool, args, found, call.app, peer)
        if isinstance(outcome, Question):
            return outcome
        found = outcome
    elif _sums_up(tool, args) and limits.limits_reads(call.settings):
        call.remark(f"only {limits.words(call.settings)} are shown (PROXMOX_LIMIT_READS)")
    answer = replace(found, notes=tuple(dict.fromkeys((*found.notes, *call.remarks))))
    return Result(render(answer, view_of(tool, args)), answer.failed)


def _sums_up(tool: Tool, args: Arguments) -> bool:
    """Whether it reads the cluster at large, so that a limit leaves something out; what is asked of one guest or task is whole."""
    return bool(privileges.NEEDS.get(tool.name)) and not any(getattr(args, name, None) is not None for name in ("vmid", "upid"))


def view_of(tool: Tool, args: Arguments) -> View:
    """How the caller wants to see the answer."""
    return View(
        tool=tool.name,
        json=getattr(args, "response_format", "markdown") == "json",
        fields=getattr(args, "fields", None) or None,  # an empty list of columns asks for none in particular
        limit=getattr(args, "limit", None),
        cursor=getattr(args, "cursor", None),
    )


def check_reads(tool: Tool, args: Arguments, app: App) -> None:
    """In read-only mode a tool that also changes things keeps its reading actions alone."""
    if not app.settings.read_only or tool.read_only:
        return
    for name, values in tool.reads.items():
        if getattr(args, name) in values:
            return
        raise InvalidArgument(name, f"the server runs in read-only mode; only {', '.join(values)} can be used")
    gates.check_mode(app.settings)


async def change(tool: Tool, args: Changing, plan: Plan, app: App, peer: Peer) -> Answer | Question:
    """A plan through the gates, past a person where the policy wants one, into the world and the record."""
    if args.dry_run:
        gates.check_mode(app.settings)
        gates.check_limits(plan, app.settings)
        return Answer("Dry run, nothing was changed.", lines=tuple(preview.preview(plan)))
    try:
        gates.check_mode(app.settings)
        if not plan.steps and not plan.obstacles:
            return Answer(f"Nothing to do: {plan.summary}", notes=(*plan.notes, *(f"not checked: {doubt}" for doubt in plan.doubts)))
        gates.check_limits(plan, app.settings)
        gates.check_flags(plan, args)
        approved = await _approval(tool, args, plan, app, peer)
    except Refused as refusal:
        await _note(app, tool, args, plan, f"refused: {refusal.what.splitlines()[0]}", refusal)
        raise
    if isinstance(approved, Question):
        return approved
    stamp = Stamp(tool.name, str(plan.risk), secrets.mask_text(args.reason or ""), gates.given_flags(dict(args)), approved)
    return await carry_out(Call(app, stamp), plan, getattr(args, "wait_seconds", 0), peer.progress)


async def _approval(tool: Tool, args: Changing, plan: Plan, app: App, peer: Peer) -> str | Question:
    """Who said yes: "person", or "flags" with the reason why nobody was asked."""
    if not gates.wants_person(plan, app.settings):
        return "flags"
    if peer.asks_now:
        await _note(app, tool, args, plan, "a person is asked")
    said = await peer.approve(plan)
    if isinstance(said, Question):
        return said
    if said is None:
        if app.settings.approval_fallback == "deny":
            raise Refused(
                "a person must approve this and this client cannot ask (PROXMOX_APPROVAL_FALLBACK=deny)",
                hint="use a client with MCP elicitation, or change the policy",
            )
        return "flags (the client cannot ask a person)"
    if not said:
        raise Refused("the person did not approve it", hint="do not try again unless the person asks for it")
    # the last look before acting: what runs is what was shown
    try:
        again = await tool.function(args, Call(app, Stamp(tool.name)))
    except ProxmoxMcpError as exc:
        why = exc.what.removeprefix("Nothing was changed: ")
        raise Refused(
            f"it was approved, and could not be looked at again before it was sent: {why}", tried=exc.tried, said=exc.said, hint=exc.hint
        ) from exc
    if again != plan:
        raise Refused(CHANGED)
    return "person"


async def _note(app: App, tool: Tool, args: Changing, plan: Plan, event: str, refusal: Refused | None = None) -> None:
    """Records a refusal or a question in the log of what would have run; a refusal stands even if it cannot be recorded."""
    reason = secrets.mask_text(args.reason or "")
    with secrets.none_passed():
        entry = {
            "event": event,
            **Stamp(tool.name, str(plan.risk), reason, gates.given_flags(dict(args))).entry(),
            "summary": plan.summary,
            "targets": list(plan.targets),
            "steps": [preview.record(step) for step in plan.steps],
            **({"obstacles": [secrets.mask_text(obstacle) for obstacle in plan.obstacles]} if plan.obstacles else {}),
        }
        await _write(app, log_of(plan), entry, refusal)


async def _note_early(tool: Tool, given: Mapping[str, Any], app: App, refusal: Refused | InvalidArgument) -> None:
    """Records that a change or a command was refused before there was a plan: for its arguments, object, machine or line."""
    which: Which = "vm" if tool.name in privileges.SSH_GUEST else "host" if tool.name in privileges.SSH_NODE else "api"
    if given.get("dry_run") is True or (tool.read_only and which == "api"):
        return
    reason = given.get("reason")
    said = secrets.mask_text(reason) if isinstance(reason, str) else ""
    entry = {
        "event": f"refused: {secrets.mask_text(refusal.what.partition(chr(10))[0])}",
        **Stamp(tool.name, str(tool.risk), said, gates.given_flags(given)).entry(),
        "arguments": _as_given(given),
    }
    await _write(app, which, entry, refusal)


def _as_given(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments as the record keeps them: secrets masked; they may be of any shape, and longer than anything that is carried out."""
    if (size := len(json.dumps(arguments))) > _LONGEST:
        return {"left out": f"{size} characters; {', '.join(text.clean(name, 64) for name in list(arguments)[:_NAMED])}"}
    lines = {name: mask_line(line) for name in ("command", "params") if isinstance(line := arguments.get(name), str)}
    return secrets.mask_params(arguments) | lines


async def _write(app: App, which: Which, entry: Mapping[str, Any], refusal: ProxmoxMcpError | None) -> None:
    from proxmox_mcp.audit import aside

    try:
        await aside(lambda: app.log(which).note(entry))
    except AuditError as exc:
        if refusal is None:
            raise
        refusal.hint = f"{refusal.hint} (This refusal could not be recorded: {exc.what})".strip()


def log_of(plan: Plan) -> Which:
    """The log a plan belongs to: that of its first step."""
    first = plan.steps[0] if plan.steps else None
    if isinstance(first, HostCommand):
        return "vm" if first.target.alias is not None else "host"
    return "api"
