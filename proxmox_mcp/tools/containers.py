"""Inside containers, through `pct exec` on the node that holds them: a shell, services, logs. No SSH in the container is needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Arguments, Changing, Destroying, NodeName, Vmid, between, matching, plain_text
from proxmox_mcp.errors import InvalidArgument, Refused
from proxmox_mcp.far_files import reading, refused
from proxmox_mcp.inventory import called
from proxmox_mcp.plan import Answer, HostCommand, HostTarget, Plan, Risk, StepResult
from proxmox_mcp.preview import where
from proxmox_mcp.registry import tool
from proxmox_mcp.secrets import MARK
from proxmox_mcp.terminal import ANY_STATUS, shell_plan, shown, targets
from proxmox_mcp.tools.host_shell import Command

Service = Annotated[
    str, AfterValidator(matching(r"[A-Za-z0-9_][A-Za-z0-9:_.\\@-]*", "a unit name has letters, digits and : _ . \\ @ -", longest=128))
]


async def running_container(call: Call, vmid: int, node: str | None, *, change: bool) -> tuple[HostTarget, str]:
    """Where a container runs, and its name. Raises Refused for a VM, a stopped one, or one on another node than the named one."""
    guest = await call.inventory.guest(vmid, node=node, change=change)
    if guest.kind != "lxc":
        raise Refused(f"{vmid} is a VM, not a container", hint="use proxmox_vm_exec for a guest registered in vm_ssh_hosts.json")
    if guest.status != "running":
        state = "is stopped" if guest.status == "stopped" else f"has the state {guest.status}"
        raise Refused(
            f"container {vmid} on {guest.node} {state}; commands run in running containers alone", hint="start it with proxmox_vm_power"
        )
    await call.door.node(guest.node)  # no way to its node: said now, not when the plan is carried out
    return HostTarget(node=guest.node, vmid=vmid), called(guest.name)


class LxcExec(Destroying):
    vmid: Vmid
    command: Command
    node: NodeName | None = None
    timeout: Annotated[float, AfterValidator(between(1, 900))] = 60


@tool(
    "proxmox_lxc_exec",
    "Run a shell command as root inside a running container.",
    title="Shell in a container",
    group="shell",
    model=LxcExec,
    risk=Risk.DATA_LOSS,
    limit="guest",
)
async def lxc_exec(args: LxcExec, call: Call) -> Plan:
    """`pct exec VMID -- sh -c command` on the container's node; every word reaches the inner shell exactly once."""
    target, name = await running_container(call, args.vmid, args.node, change=True)
    return shell_plan(target, args.command, timeout=args.timeout, shell=("sh", "-c"), name=name)


# what a unit's programs are given, passwords as a rule
_ENVIRONMENT = re.compile(r"^((?:Environment|SetCredential\w*)=).+$", re.MULTILINE)
READS = ("status", "is-active", "is-enabled", "show")
# $1: action, $2: unit. Containers without systemd (Alpine ...) have OpenRC or plain init scripts.
SERVICE = """\
if command -v systemctl >/dev/null 2>&1; then exec systemctl --no-pager "$1" -- "$2"; fi
name=${2%.service}
case $1 in
  enable|disable) command -v rc-update >/dev/null 2>&1 || { echo "neither systemd nor OpenRC here" >&2; exit 96; }
    case $1 in enable) exec rc-update add "$name";; *) exec rc-update del "$name";; esac;;
  start|stop|restart|reload|status) ;;
  is-active) set -- status "$2";;
  *) echo "$1 needs systemd, which this container has not" >&2; exit 96;;
esac
if command -v rc-service >/dev/null 2>&1; then exec rc-service "$name" "$1"; fi
[ -x "/etc/init.d/$name" ] && exec "/etc/init.d/$name" "$1"
echo "neither systemd nor OpenRC here, and no /etc/init.d/$name" >&2
exit 96
"""


class CtService(Changing):
    vmid: Vmid
    service: Service
    action: Literal[
        "status", "is-active", "is-enabled", "show", "start", "stop", "restart", "reload", "enable", "disable", "mask", "unmask"
    ]
    node: NodeName | None = None


@tool(
    "proxmox_ct_service_action",
    "Look at or change one service inside a running container; only changes need confirm.",
    title="Service in a container",
    group="shell",
    model=CtService,
    risk=Risk.CHANGE,
    destructive=True,
    reads={"action": READS},
    limit="guest",
)
async def ct_service_action(args: CtService, call: Call) -> Answer | Plan:
    """`systemctl ACTION UNIT` in the container; OpenRC's commands where there is no systemd."""
    from proxmox_mcp.ssh import OwnScript

    reads = args.action in READS
    target, name = await running_container(call, args.vmid, args.node, change=not reads)
    argv = ("sh", "-c", OwnScript(SERVICE), "service", args.action, args.service)
    place = where(target)
    if reads:
        outcome = await call.door.run(HostCommand(target, argv, timeout=30))
        answer = shown(replace(outcome, stdout=_ENVIRONMENT.sub(rf"\1{MARK}", outcome.stdout)), place)
        # systemctl's statuses 1 (disabled) and 3 (not running) are answers, not failures
        return replace(answer, failed=False) if outcome.exit_status in (1, 3) and outcome.stdout else answer

    async def conclude(results: Sequence[StepResult]) -> Answer:
        return shown(results[0].data, place)

    return Plan(
        summary=f"{args.action} {args.service} in {place}{name}",
        steps=(HostCommand(target, argv, timeout=120, ok=ANY_STATUS),),
        risk=Risk.CHANGE,
        targets=targets(target),
        conclude=conclude,
    )


# $1: unit, $2: lines, $3: fixed text to look for (may be empty). journald, else the files that a program of this name usually writes.
JOURNAL = """\
pick() { if [ -n "$3" ]; then grep -F -e "$3" | tail -n "$2"; else tail -n "$2"; fi; }
if command -v journalctl >/dev/null 2>&1; then
  [ -n "$3" ] || exec journalctl --no-pager -q -o short-iso -u "$1" -n "$2"
  exec 4>&1
  status=$( { { journalctl --no-pager -q -o short-iso -u "$1" 3>&- 4>&-; echo $? >&3; } | pick "$@" 3>&- >&4; } 3>&1 )
  exit "$status"
fi
name=${1%.service}
for file in "/var/log/$name.log" "/var/log/$name/$name.log" "/var/log/$name/error.log"; do
  if [ -f "$file" ]; then echo "no journald here; from $file:" >&2; pick "$@" <"$file"; exit; fi
done
for file in /var/log/syslog /var/log/messages; do
  if [ -f "$file" ]; then echo "no journald here; lines of $file with $name:" >&2; grep -F -e "$name" -- "$file" | pick "$@"; exit; fi
done
echo "no journald and no log file of $name here" >&2
exit 96
"""
# $1: fixed text, $2: file, $3: lines. A pipeline's own status is tail's: whether grep could read is asked of grep (1: no such lines).
FILTERED = """\
exec 4>&1
status=$( { { grep -F -e "$1" -- "$2" 3>&- 4>&-; echo $? >&3; } | tail -n "$3" 3>&- >&4; } 3>&1 )
[ "$status" -le 1 ] || exit "$status"
"""


class CtLog(Arguments):
    vmid: Vmid
    mode: Literal["service", "file"] = "service"
    service: Service | None = None
    path: Annotated[str, AfterValidator(plain_text(512)), Field(description="absolute, for mode=file")] | None = None
    lines: Annotated[int, AfterValidator(between(1, 10_000))] = 100
    grep: Annotated[str, AfterValidator(plain_text(200)), Field(description="fixed text, no pattern")] | None = None
    node: NodeName | None = None


@tool(
    "proxmox_ct_log_tail",
    "Show the last log lines of a service or of a file inside a running container.",
    title="Logs in a container",
    group="shell",
    model=CtLog,
    limit="guest",
)
async def ct_log_tail(args: CtLog, call: Call) -> Answer:
    """journald where it is, else the usual files; mode=file: the end of a regular file that holds no secrets."""
    if "\n" in (args.grep or ""):
        raise InvalidArgument("grep", "must be one line")
    argv, source = _log_command(args, call.settings.allow_secret_reads)
    target, _ = await running_container(call, args.vmid, args.node, change=False)
    outcome = await call.door.run(HostCommand(target, argv, timeout=60, max_bytes=2_000_000))
    refused(outcome, args.path or "")
    place = where(target)
    answer = shown(outcome, place, most=24_000)
    if not outcome.ok:
        return answer
    answer = replace(answer, title=f"{source} in {place}", text_source=f"{source} in {place}")
    if not outcome.stdout.strip():
        answer = answer if outcome.stderr.strip() else replace(answer, text=None)
        return replace(answer, notes=(*answer.notes, "no lines" + (f" with {args.grep!r}" if args.grep else "") + " were found"))
    return answer


def _log_command(args: CtLog, secrets_too: bool) -> tuple[tuple[str, ...], str]:
    from proxmox_mcp.ssh import OwnScript

    if args.mode == "service":
        if args.service is None:
            raise InvalidArgument("service", "is needed with mode=service")
        return ("sh", "-c", OwnScript(JOURNAL), "log", args.service, str(args.lines), args.grep or ""), f"log of {args.service}"
    if args.path is None:
        raise InvalidArgument("path", "is needed with mode=file")
    tail: tuple[str, ...] = ("tail", "-n", str(args.lines), args.path)
    if args.grep:
        tail = ("sh", "-c", OwnScript(FILTERED), "log", args.grep, args.path, str(args.lines))
    return reading(args.path, tail, secrets_too=secrets_too), f"end of {args.path}"
