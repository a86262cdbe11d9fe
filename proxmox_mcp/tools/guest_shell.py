"""Guests registered in vm_ssh_hosts.json: which there are, a shell, a file."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Destroying, Listing, Reading, between, plain_text
from proxmox_mcp.far_files import reading, refused
from proxmox_mcp.host_ssh import guests_file, registered_guests
from proxmox_mcp.plan import Answer, Column, HostCommand, HostTarget, Plan, Risk
from proxmox_mcp.registry import tool
from proxmox_mcp.ssh_targets import read_vm_descriptions
from proxmox_mcp.terminal import OPEN_END, REPLACED, shell_plan, shown
from proxmox_mcp.tools.host_shell import Command

_STRANGE = 10  # a text in an old encoding has fewer bytes that are no UTF-8 than one in so many characters

Alias = Annotated[str, AfterValidator(plain_text(64)), Field(description="from proxmox_vm_list_hosts")]


class VmListHosts(Listing):
    pass


@tool(
    "proxmox_vm_list_hosts",
    "List the guests that can be reached over SSH (vm_ssh_hosts.json).",
    title="List SSH guests",
    group="shell",
    model=VmListHosts,
    limit="none",
)
async def vm_list_hosts(args: VmListHosts, call: Call) -> Answer:
    """Rows: alias, address, host key checks, description; entries that are wrong, with what is wrong."""
    targets, problems = registered_guests(call.settings)
    path = call.settings.vm_ssh_hosts
    described = read_vm_descriptions(path) if path else {}
    rows = [
        {
            "alias": alias,
            "address": target.address,
            "host_key": "not verified" if target.known_hosts == "ignore" else "verified",
            "jump": target.jump.address if target.jump else None,
            "description": described.get(alias),
            "problem": problems.get(alias),
        }
        for alias, target in targets.items()
    ]
    rows += [{"alias": alias, "problem": problem} for alias, problem in problems.items() if alias not in targets]
    columns = [Column("alias"), Column("address"), Column("host_key"), Column("description")]
    columns += [Column("problem", default=bool(problems)), Column("jump", default=False)]
    none = () if rows else (f"no guest is registered; add entries to {guests_file(call.settings)}",)
    return Answer("SSH guests", rows=rows, columns=tuple(columns), order=("alias",), notes=(*call.settings.ssh_problems, *none))


class VmExec(Destroying):
    alias: Alias
    command: Command
    timeout: Annotated[float, AfterValidator(between(1, 900))] = 60


@tool(
    "proxmox_vm_exec",
    "Run a shell command on a registered guest over SSH.",
    title="Shell on a guest",
    group="shell",
    model=VmExec,
    risk=Risk.DATA_LOSS,
    limit="none",
)
async def vm_exec(args: VmExec, call: Call) -> Plan:
    """`/bin/sh -c command` on the guest."""
    place = call.door.guest(args.alias)
    return shell_plan(HostTarget(alias=args.alias), args.command, timeout=args.timeout, name=f" ({place.address})")


class VmReadFile(Reading):
    alias: Alias
    path: Annotated[str, AfterValidator(plain_text(512)), Field(description="absolute")]
    max_bytes: Annotated[int, AfterValidator(between(1, 1_048_576))] = 65_536


@tool(
    "proxmox_vm_read_file",
    "Read a text file from a registered guest.",
    title="Read a guest's file",
    group="shell",
    model=VmReadFile,
    limit="none",
)
async def vm_read_file(args: VmReadFile, call: Call) -> Answer:
    """The first max_bytes of a regular file, as text; secret paths, links to them included, are refused unless PROXMOX_ALLOW_SECRET_READS.

    A binary file is named as such with its digest instead of shown.
    """
    argv = reading(args.path, ("head", "-c", str(args.max_bytes + 1), args.path), secrets_too=call.settings.allow_secret_reads)
    command = HostCommand(HostTarget(alias=args.alias), argv, timeout=60, max_bytes=args.max_bytes + 1)
    outcome = await call.door.run(command)
    refused(outcome, args.path)
    if not outcome.ok:
        return shown(outcome, f"guest {args.alias}")
    whole = outcome.stdout_bytes <= args.max_bytes
    # the byte more that was read may be a whole character or the beginning of one: both are one here
    body = outcome.stdout if whole else outcome.stdout[:-1]
    size = f"{outcome.stdout_bytes} bytes" if whole else f"first {args.max_bytes} bytes"
    strange = body.count("\ufffd") if outcome.replaced else 0
    if "\0" in body or strange * _STRANGE > len(body):
        digest = f"SHA-256 of what was read: {outcome.stdout_sha256}"
        return Answer(f"{args.path} on guest {args.alias}: binary, {size}", notes=(f"not shown; {digest}",))
    notes: tuple[str, ...] = () if whole else ("the file goes on; raise max_bytes (at most 1048576)",)
    notes += (*((REPLACED,) if strange else ()), *((OPEN_END,) if outcome.open_end else ()))
    return Answer(
        f"{args.path} on guest {args.alias}: {size}", text=body, text_source=f"file {args.path}", text_limit=args.max_bytes, notes=notes
    )
