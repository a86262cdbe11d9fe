"""A Plan in words: the exact steps with secrets masked, for the model's dry run and a person's approval."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from proxmox_mcp import command_secrets, secrets, text
from proxmox_mcp.plan import ApiCall, HostTarget, Plan, Risk, Step

LONGEST = 1_000  # characters of one step among many
ROOM = 20_000  # characters of all steps: a shell command of any length is seen whole by the one who approves it
MOST = 40  # steps shown one by one


def step_line(step: Step, longest: int = LONGEST, *, whole: bool = False) -> str:
    """One step on one line: `POST /nodes/pve1/qemu/101/status/stop timeout=60`, `on node pve1: zfs destroy tank/x`.

    `whole`: of a command only this server's own secrets are masked, for behind a mask there could be code.
    """
    if isinstance(step, ApiCall):
        path = "/".join(quote(str(part), safe=":@!") for part in step.path)
        params = " ".join(f"{name}={_value(value)}" for name, value in secrets.mask_params(given(step.params)).items())
        line = f"{step.method} /{path} {params}".rstrip()
    else:
        line = f"on {where(step.target)}: {shlex.join(_marked(step.argv) if whole else words(step.argv))}"
        if step.stdin is not None:
            line += f" < {len(step.stdin)} bytes"
        if whole:
            return text.cut(text.visible(secrets.mask_known(line)), longest)
    return one_line(line, longest)


def one_line(words: str, longest: int) -> str:
    """Masked, and on one line that shows all of it: to a shell a line break is not a blank, and an invisible character is one."""
    return text.cut(text.visible(secrets.mask_text(words)), longest)


def words(argv: Sequence[str]) -> list[str]:
    """A command as previews and records show it: whole, secrets masked, our own constant scripts by their digest."""
    return command_secrets.mask_argv(_marked(argv))


def _marked(argv: Sequence[str]) -> list[str]:
    from proxmox_mcp.ssh import OwnScript

    return [word.mark if isinstance(word, OwnScript) else word for word in argv]


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are sent: None is not."""
    return {name: value for name, value in params.items() if value is not None}


def where(target: HostTarget) -> str:
    """The place of a command."""
    if target.alias is not None:
        return f"guest {target.alias}"
    place = f"node {target.node}" if target.node else "the SSH host"
    return f"container {target.vmid} of {place}" if target.vmid is not None else place


def steps(plan: Plan, *, whole: bool = False) -> list[str]:
    """The numbered steps, a line each; `whole` as in `step_line`."""
    longest = max(LONGEST, ROOM // max(1, len(plan.steps)))
    lines = [f"{number}. {step_line(step, longest, whole=whole)}" for number, step in enumerate(plan.steps[:MOST], 1)]
    if len(plan.steps) > MOST:
        lines.append(f"... and {len(plan.steps) - MOST} more steps")
    return lines


def preview(plan: Plan) -> list[str]:
    """What a dry run answers: summary, steps, needed flags, undo, and "Would work." or what stands in the way; or that nothing is to do."""
    idle = not plan.steps and not plan.obstacles
    summary = text.clean(plan.summary, 2_000)
    if idle:
        out = [f"Nothing to do: {summary}"]
    else:
        out = [summary, "Steps:", *steps(plan), f"Risk: {plan.risk}; needs {' and '.join(needed(plan))}"]
    if plan.undo and not idle:
        out.append(f"Undo: {text.clean(plan.undo, 500)}")
    out += [f"note: {text.clean(note, 2_000)}" for note in (*plan.notes, *plan.otherwise)]
    out += [f"not checked: {text.clean(doubt, 1_000)}" for doubt in plan.doubts]
    if plan.obstacles:
        out += ["Stands in the way:", *(f"- {text.clean(obstacle, 1_000)}" for obstacle in plan.obstacles)]
    elif not idle:
        out.append("Would work." if not plan.doubts else "Nothing found that stands in the way.")
    return out


def question(plan: Plan) -> str:
    """What a person is asked: the commands as they will run. Names from guests are cleaned; nothing else of a guest's text is in a plan."""
    consequence = "This can destroy data." if plan.risk is Risk.DATA_LOSS else "This changes your cluster."
    doubts = [f"Not checked: {text.clean(doubt, 1_000)}" for doubt in plan.doubts]
    with secrets.none_passed():
        return "\n".join([text.clean(plan.summary, 2_000), consequence, *steps(plan, whole=True), *doubts, "Carry it out?"])


def needed(plan: Plan) -> list[str]:
    """The arguments this plan wants."""
    return ["confirm=true", "i_understand_data_loss=true"] if plan.risk is Risk.DATA_LOSS else ["confirm=true"]


def record(step: Step) -> dict[str, Any]:
    """One step as the audit log keeps it: whole, secrets masked."""
    if isinstance(step, ApiCall):
        path = "/" + "/".join(str(part) for part in step.path)
        return {"method": step.method, "path": path, "params": secrets.mask_params(given(step.params))}
    return {"target": where(step.target), "argv": words(step.argv)}


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return shlex.quote(",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
