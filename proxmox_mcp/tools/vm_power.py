"""Power and size of guests: proxmox_vm_power, proxmox_resize_vm."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Changing, Kind, NodeName, Vmid, Waiting, between
from proxmox_mcp.changes import conclusions, guest_config
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.changes.subject import Subject, reread, subject
from proxmox_mcp.inventory import number, read_rows
from proxmox_mcp.plan import Answer, ApiCall, GuestState, Plan, Risk, StepResult, Wait
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool


class VmPower(Changing, Waiting):
    vmid: Vmid
    action: Literal["start", "shutdown", "stop", "reboot"]
    node: NodeName | None = None
    vm_type: Kind | None = None
    timeout: Annotated[int, AfterValidator(between(1, 86_400)), Field(description="seconds for shutdown, reboot")] | None = None

    @model_validator(mode="after")
    def _timeout_where_it_counts(self) -> Self:
        if self.timeout is not None and self.action not in ("shutdown", "reboot"):
            raise ValueError("timeout is for shutdown and reboot")
        return self


_WORDS = {
    "start": "start {guest}",
    "shutdown": "shut down {guest}",
    "stop": "power off {guest} at once, like pulling its plug: what it has not written to disk is lost",
    "reboot": "reboot {guest}: shut it down and start it again, with its pending configuration",
}


@tool(
    "proxmox_vm_power",
    "Start, shut down, power off (stop) or reboot a VM or container; shutdown never turns into stop.",
    title="Power of a guest",
    group="guests",
    model=VmPower,
    risk=Risk.CHANGE,
    destructive=True,
    limit="guest",
)
async def vm_power(args: VmPower, call: Call) -> Answer | Plan:
    """POST /nodes/{node}/{qemu|lxc}/{vmid}/status/{action}; a guest that is in the wanted state already is said to be, nothing is sent.

    HA-managed guests are waited for themselves: their task only files a request with the HA manager.
    """
    checks = Checks(call.inventory)
    guest = await subject(call.inventory, args.vmid, node=args.node, kind=args.vm_type)
    if _is_there_already(guest, args.action):
        now = str(guest.state.get("status"))
        closer = f" (QEMU: {guest.qmpstatus})" if guest.qmpstatus not in ("", now) else ""
        return Answer(f"Nothing to do, no request was sent: {guest.name} on {guest.node} is {now}{closer} already.")
    await _may(checks, guest, args.action)
    summary = _WORDS[args.action].format(guest=f"{guest.name} on {guest.node}")
    wanted: Literal["running", "stopped"] = "running" if args.action in ("start", "reboot") else "stopped"
    # a reboot is carried out on the spot even where the HA manager looks after the guest
    ha = guest.ha_managed and args.action != "reboot"
    lame = "its HA service is in state error: the HA manager does nothing before that is cleared (its HA state set to disabled, then anew)"
    checks.refuse(lame, when=ha and guest.state["ha"].get("state") == "error")
    params: dict[str, Any] = {"timeout": args.timeout}
    if args.action == "stop" and not ha and await _shutdown_is_under_way(checks, guest):
        params["overrule-shutdown"] = 1

    async def conclude(results: Sequence[StepResult]) -> Answer:
        now = (await reread(call.api, guest)).state
        status = str(now.get("qmpstatus") or now.get("status") or "unknown")
        odd = now.get("status") not in (wanted, None) and all(result.state in ("ok", "warnings") for result in results)
        notes = (f"when it was looked at afterwards it was {status}: look again with proxmox_get_vm_status vmid={guest.vmid}",)
        return conclusions.done(summary, results, {"status": status}, notes=notes if odd else ())

    return Plan(
        summary,
        (
            ApiCall(
                "POST",
                guest.path("status", args.action),
                params,
                wait=GuestState(guest.node, guest.guest.kind, guest.vmid, wanted) if ha else Wait.TASK,
            ),
        ),
        Risk.CHANGE,
        guest.targets,
        asks=args.action == "stop",
        undo={"start": _call(guest, "shutdown"), "shutdown": _call(guest, "start"), "stop": _call(guest, "start")}.get(args.action, ""),
        fingerprint=f"{guest.state.get('status')}/{guest.qmpstatus}/{guest.lock}",
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=tuple(_ha_notes(guest, args.action)) if ha else (),
        otherwise=(_unheard(guest, args.timeout),) if args.action in ("shutdown", "reboot") else (),
        conclude=conclude,
        after_failure=conclude,
    )


def _call(guest: Subject, action: str) -> str:
    return f"proxmox_vm_power vmid={guest.vmid} action={action}"


def _is_there_already(guest: Subject, action: str) -> bool:
    if guest.ha_managed:
        # what the HA manager means to do next counts, not only what the guest does now
        ha = str(guest.state["ha"].get("state") or "")
        return (guest.running and action == "start" and ha == "started") or (
            not guest.running and action in ("stop", "shutdown") and ha in ("stopped", "disabled")
        )
    if action == "start":
        # a stopped VM that is being backed up shows as running, in prelaunch; starting it is possible
        return guest.running and guest.qmpstatus not in ("paused", "prelaunch", "suspended")
    return action in ("stop", "shutdown") and guest.state.get("status") == "stopped"


async def _may(checks: Checks, guest: Subject, action: str) -> None:
    await checks.privileges(Need(f"/vms/{guest.vmid}", ("VM.PowerMgmt",)))
    # a start wakes a VM that was suspended to disk, or goes on in the QEMU that a backup has started
    passes = {"start": ("suspended", "backup") if guest.qmpstatus == "prelaunch" else ("suspended",), "stop": ("mounted",)}
    await checks.unlocked(guest, but=passes.get(action, ()))
    checks.refuse(f"{guest.name} is a template, and templates cannot be started", when=action == "start" and guest.template)
    paused = guest.qmpstatus in ("paused", "suspended") and guest.running
    checks.refuse(f"{guest.name} is paused: resume it first, or power it off with action=stop", when=paused and action != "stop")
    checks.refuse(f"{guest.name} is not running", when=action == "reboot" and not guest.running)


async def _shutdown_is_under_way(checks: Checks, guest: Subject) -> bool:
    """A shutdown that hangs holds the guest's lock; since 8.2 a stop can end it."""
    version = await checks.inventory.version()
    if version is not None and version < (8, 2):
        return False
    path, params = ("nodes", guest.node, "tasks"), {"source": "active", "vmid": guest.vmid}
    tasks = await checks.attempt(read_rows(checks.inventory.api, *path, params=params), f"tasks that hold the lock of {guest.name}")
    return any(task.get("type") in ("qmshutdown", "vzshutdown") for task in tasks or ())


def _unheard(guest: Subject, timeout: int | None) -> str:
    patience = f"{timeout} s" if timeout is not None else "time (60 s by default)"
    return (
        f"if the guest does not react in {patience}, the task fails and the guest runs on; "
        f"a hard power-off is a call of its own that a person should want: {_call(guest, 'stop')}"
    )


def _ha_notes(guest: Subject, action: str) -> list[str]:
    keeps = "running" if action == "start" else "stopped"
    return [f"HA-managed: the HA manager carries it out and keeps the guest {keeps} from then on"]


class ResizeVm(Changing):
    vmid: Vmid
    memory_mb: Annotated[int, AfterValidator(between(16, 1_048_576))] | None = None
    cores: Annotated[int, AfterValidator(between(1, 256)), Field(description="per socket")] | None = None
    node: NodeName | None = None
    vm_type: Kind | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.memory_mb is None and self.cores is None:
            raise ValueError("give memory_mb, cores or both")
        return self


@tool(
    "proxmox_resize_vm",
    "Change memory or cores of a VM or container; says what takes effect at once and what waits for a restart.",
    title="Memory and cores",
    group="guests",
    model=ResizeVm,
    risk=Risk.CHANGE,
    destructive=True,
    limit="guest",
)
async def resize_vm(args: ResizeVm, call: Call) -> Answer | Plan:
    """PUT /nodes/{node}/{qemu|lxc}/{vmid}/config {memory MiB, cores, digest}; then GET .../pending tells hot-plugged from pending."""
    checks = Checks(call.inventory)
    guest = await subject(call.inventory, args.vmid, node=args.node, kind=args.vm_type)
    before = {"memory": _memory(guest), "cores": guest.config.get("cores", 1 if guest.is_vm else None)}
    wanted = {name: value for name, value in (("memory", args.memory_mb), ("cores", args.cores)) if value is not None}
    if all(number(before[name]) == value for name, value in wanted.items()):
        rows = await _options(call, guest)
        waiting = [name for name in sorted(wanted) if "pending" in rows.get(name, {})]
        late = f" ({', '.join(waiting)} from the next start on)" if waiting else ""
        return Answer(f"Nothing to do, no request was sent: {guest.name} has {_told(wanted)} already{late}.")
    await checks.privileges(
        *(
            Need(f"/vms/{guest.vmid}", (privilege,))
            for name, privilege in (("memory", "VM.Config.Memory"), ("cores", "VM.Config.CPU"))
            if name in wanted
        )
    )
    await checks.unlocked(guest)
    balloon = number(guest.config.get("balloon"))
    if guest.is_vm and args.memory_mb is not None and balloon is not None:
        checks.refuse(f"its balloon minimum is {balloon} MiB, more than {args.memory_mb} MiB", when=balloon > args.memory_mb)
    summary = f"change {guest.name} on {guest.node} from {_told({name: before[name] for name in wanted})} to {_told(wanted)}"

    async def conclude(results: Sequence[StepResult]) -> Answer:
        now = await reread(call.api, guest)
        rows = await _options(call, guest)
        facts = {name: _stands(name, rows.get(name, {}), now) for name in wanted}
        late = any("pending" in rows.get(name, {}) for name in wanted)
        notes = ["pending changes take effect with a stop and start, or proxmox_vm_power action=reboot; a reboot from inside is not enough"]
        return conclusions.done(summary, results, facts, notes=notes if late else ())

    known = {name: before[name] for name in wanted if number(before[name]) is not None}
    return Plan(
        summary,
        (ApiCall("PUT", guest.path("config"), {**wanted, "digest": guest.digest or None}, wait=Wait.NOTHING),),
        Risk.CHANGE,
        guest.targets,
        undo=f"proxmox_resize_vm vmid={guest.vmid} "
        + " ".join(f"{'memory_mb' if name == 'memory' else name}={value}" for name, value in known.items())
        if known
        else "",
        fingerprint=guest.digest,
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=tuple(await _size_notes(checks, guest, wanted)),
        conclude=conclude,
        after_failure=conclude,
    )


def _memory(guest: Subject) -> object:
    """MiB, or the option as it is when it cannot be read as a number."""
    found = guest_config.memory_mib(guest.config.get("memory"))
    return guest.config.get("memory") if found is None else found


def _told(sizes: Mapping[str, object]) -> str:
    told = []
    for name, value in sizes.items():
        known = number(value)
        if name == "memory":
            told.append(f"{value} MiB of memory")
        else:
            told.append("all cores" if value is None else f"{value} cores" if known is None else text.counted(int(known), "cores"))
    return " and ".join(told)


def _stands(name: str, row: Mapping[str, Any], guest: Subject) -> str:
    """What holds now, and what comes with the next start."""
    unit = " MiB" if name == "memory" else ""
    if "pending" in row:
        return f"{_plain(name, row['pending'])}{unit}, pending; {_plain(name, row.get('value'))}{unit} until then"
    return f"{_plain(name, row.get('value'))}{unit}, " + ("in effect" if guest.running else "from the next start on")


def _plain(name: str, value: object) -> object:
    found = guest_config.memory_mib(value) if name == "memory" else number(value)
    return value if found is None else found


async def _options(call: Call, guest: Subject) -> dict[str, Mapping[str, Any]]:
    """Each option with its value, and with its pending one where that is not in effect yet (GET .../pending)."""
    return {str(row["key"]): row for row in await read_rows(call.api, *guest.path("pending")) if "key" in row}


async def _size_notes(checks: Checks, guest: Subject, wanted: Mapping[str, int]) -> list[str]:
    notes = []
    sockets = int(number(guest.config.get("sockets")) or 1) if guest.is_vm else 1
    cores = wanted.get("cores")
    if cores is not None:
        vcpus = cores * sockets
        if sockets > 1:
            notes.append(f"{sockets} sockets x {cores} cores = {vcpus} vCPUs")
        notes += await checks.cpus(guest.node, vcpus) if guest.is_vm else ()
        apart = number(guest.config.get("vcpus")) if guest.is_vm else None
        if apart is not None and apart > vcpus:
            notes.append(f"vcpus={apart:g} in its configuration is more than {vcpus}: with that it does not start")
        elif apart is not None and apart < vcpus:
            notes.append(
                f"vcpus={apart:g} in its configuration: so many of the {vcpus} are plugged in, more cores alone do not change that"
            )
    return [*notes, *_when_it_counts(guest, wanted)] if guest.is_vm and guest.running else notes


def _when_it_counts(guest: Subject, wanted: Mapping[str, int]) -> list[str]:
    """Of a running VM memory can be hot-plugged; `cores` never is, whatever `hotplug` says (it is `vcpus` that are)."""
    plugged = "memory" in re.split(r"[,; ]+", str(guest.config.get("hotplug", "")))
    notes = []
    if "memory" in wanted and plugged:
        notes.append("hot-plugging is on: if it fails, the change is kept all the same and takes effect with the next start")
    elif "memory" in wanted:
        notes.append("the VM runs without hot-plugging of memory: the change waits for a stop and start")
    if "cores" in wanted:
        notes.append("cores are not hot-plugged: the change waits for a stop and start")
    return notes
