"""A command's end as an Answer, and the two shapes in which shells are asked for: a plan for a full shell, its risk by the grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proxmox_mcp.plan import Answer, HostCommand, HostTarget, Plan, Risk, StepResult
from proxmox_mcp.preview import one_line, where

if TYPE_CHECKING:
    from proxmox_mcp.ssh import Outcome

REPLACED = "bytes that are not UTF-8 were replaced by U+FFFD"
OPEN_END = "its output was still open after its end (something in the background?): what came later than that is not here"
ANY_STATUS = tuple(range(256))  # a shell command with a non-zero status has run all the same: its output is the answer


def shown(outcome: Outcome, source: str, *, most: int = 20_000) -> Answer:
    """What a command printed and how it ended; failed unless it is known to have ended with exit status 0. `most`: characters of output."""
    stderr = outcome.stderr.strip("\n")
    both = outcome.stdout if not stderr else f"{outcome.stdout.rstrip(chr(10))}\n--- stderr\n{stderr}".lstrip("\n")
    return Answer(
        f"{ending(outcome)} on {source} after {outcome.duration:.1f} s",
        text=both,
        text_source=f"output of {source}",
        text_limit=most,
        notes=_remarks(outcome),
        failed=not outcome.ok,
    )


def ending(outcome: Outcome) -> str:
    """How it ended, in a few words; never "done" when that is not known."""
    if outcome.lost:
        return "outcome unknown: the connection was lost"
    if outcome.timed_out:
        return "ended: its time was up"
    if outcome.capped:
        return "ended: it printed too much"
    if outcome.signal is not None:
        return f"ended by signal {outcome.signal}"
    return f"exit status {outcome.exit_status}" if outcome.exit_status is not None else "outcome unknown"


def _remarks(outcome: Outcome) -> tuple[str, ...]:
    remarks = []
    if outcome.omitted_bytes or outcome.omitted_stderr:
        remarks.append(f"{outcome.omitted_bytes + outcome.omitted_stderr} bytes of output were left out; head and tail are shown")
    if outcome.open_end:
        remarks.append(OPEN_END)
    if outcome.replaced:
        remarks.append(REPLACED)
    if outcome.timed_out or outcome.capped:
        remarks.append("what it had done until then stays done")
    if outcome.may_run_on:
        remarks.append("the far side did not confirm that it ended: it may still run")
    if outcome.lost:
        remarks.append("it may have run to its end or not at all; look before you repeat it")
    if outcome.exit_status == 127:
        remarks.append("127: the program is not installed or not on the fixed PATH")
    return tuple(remarks)


def shell_plan(target: HostTarget, line: str, *, timeout: float, shell: Sequence[str] = ("/bin/sh", "-c"), name: str = "") -> Plan:
    """A line for a full shell. Data loss unless every command in it is known to read or to be harmless. `name`: whose shell it is, for
    the summary: an id that a new guest has got meanwhile, an alias that leads elsewhere now, must not pass for the old one."""
    from proxmox_mcp.read_commands import harmless
    from proxmox_mcp.ssh import ShellText

    place = where(target)

    async def conclude(results: Sequence[StepResult]) -> Answer:
        return shown(results[0].data, place)

    safe = harmless(line)
    return Plan(
        summary=f"run on {place}{name}: {one_line(line, 200)}",
        steps=(HostCommand(target, (*shell, ShellText(line)), timeout=timeout, ok=ANY_STATUS),),
        risk=Risk.CHANGE if safe else Risk.DATA_LOSS,
        targets=targets(target),
        doubts=("what the command itself does: nothing of it was tried",),
        otherwise=() if safe else ("a full shell can do anything: it counts as data loss unless each command is known to be harmless",),
        conclude=conclude,
    )


def targets(target: HostTarget) -> tuple[str, ...]:
    """The objects a command touches."""
    found = [f"guest {target.vmid}"] if target.vmid is not None else []
    found += [f"node {target.node}"] if target.node is not None else []
    return (*found, f"alias {target.alias}") if target.alias is not None else tuple(found)
