"""A ZFS snapshot sent into a file or another dataset of the same node: proxmox_zfs_send."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Destroying, Flag, NodeName
from proxmox_mcp.plan import Answer, Plan, Risk, StepResult
from proxmox_mcp.registry import tool
from proxmox_mcp.zfs import names, send_targets, sending
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.sending import Stream


def _file(path: str) -> str:
    parts = path.split("/")
    if not re.fullmatch(r"/[A-Za-z0-9_.:@+=,/ -]{2,511}", path, re.ASCII) or set(parts[1:]) & {"", ".", ".."} or len(parts[-1]) > 200:
        raise ValueError("an absolute path without .. and without a trailing /; letters, digits, blanks and _ . : @ + = , -")
    return path


def _base(name: str) -> str:
    """@snapshot, #bookmark, or the whole name of one; a bare name is a snapshot's."""
    mark = next((mark for mark in "@#" if mark in name), "")
    place, _, part = name.rpartition(mark) if mark else ("", "", name)
    if place:
        names.dataset(place)
    names.snapshot_part(part)
    return name if mark else f"@{name}"


class ZfsSend(Destroying):
    source: Annotated[names.SnapshotName, Field(description="dataset@snapshot")]
    target_file: Annotated[str, AfterValidator(_file)] | None = None
    target_dataset: names.DatasetName | None = None
    incremental_from: Annotated[str, AfterValidator(_base), Field(description="@earlier")] | None = None
    replication: Annotated[Flag, Field(description="-R")] = False
    raw: Annotated[Flag, Field(description="-w")] = False
    force: Annotated[Flag, Field(description="recv -F: the target's data is lost")] = False
    node: NodeName | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.target_file is None) == (self.target_dataset is None):
            raise ValueError("give target_file or target_dataset, one of them")
        if self.force and self.target_dataset is None:
            raise ValueError("force is for target_dataset: a file is never overwritten")
        if self.target_dataset is not None and "/" not in self.target_dataset:
            raise ValueError("target_dataset is pool/name: a whole pool is not received into")
        if self.target_dataset == names.dataset_of(self.source):
            raise ValueError("target_dataset is the source itself")
        return self

    @property
    def stream(self) -> Stream:
        base = self.incremental_from
        if base is not None and base[0] in "@#":
            base = f"{names.dataset_of(self.source)}{base}"
        return Stream(self.source, base, self.replication, self.raw)


@tool(
    "proxmox_zfs_send",
    "Send a ZFS snapshot into a new file (in PROXMOX_ZFS_SEND_DIRS) or a dataset of the same node, over SSH.",
    title="ZFS send",
    group="zfs",
    limit="none",
    model=ZfsSend,
    risk=Risk.DATA_LOSS,
)
async def zfs_send(args: ZfsSend, call: Call) -> Plan:
    """`zfs send | zfs receive -u`, or into a file, as a unit of the node: followed for PROXMOX_MAX_WAIT seconds, then it goes on alone."""
    zfs = await Zfs.on(call, args.node)
    await zfs.must_answer(args.source)
    stream = args.stream
    size, refusal = await send_targets.estimated(zfs, stream)
    target = await (
        send_targets.file(zfs, stream, args.target_file, size)
        if args.target_file is not None
        else send_targets.dataset(zfs, stream, args.target_dataset or "", size, force=args.force)
    )
    unit = sending.unit(stream, args.target_file or args.target_dataset or "")
    active = await zfs.outcome("systemctl", "is-active", unit, ok=tuple(range(256)))
    busy = [f"it runs already as {unit}: {_look(unit)}"] if active.stdout.strip() in ("active", "activating", "deactivating") else []
    argv, script = sending.follow(target.script, unit, int(call.settings.max_wait), (*target.words, *stream.options))
    step = zfs.command(*argv, timeout=call.settings.max_wait + 30, ok=(0, sending.GOES_ON), stdin=script, progress=True)
    summary = f"send {target.what} on node {zfs.node}: {stream.words} {target.end}"
    notes = [f"about {send_targets.human(size)}"] if size is not None else []
    notes.append(f"it runs as unit {unit} of {zfs.node}; after {int(call.settings.max_wait)} s it goes on without this call")

    async def conclude(results: Sequence[StepResult]) -> Answer:
        outcome = results[0].data
        if outcome.exit_status == sending.GOES_ON:
            record = {"unit": unit, "look": _look(unit), "stop": f"proxmox_host_exec command='systemctl stop {unit}'"}
            return Answer(f"Started, still running: {summary}", record=record, notes=("do not start it again while the unit runs",))
        found = await target.check()
        return Answer(f"Done: {summary}" if found.ok else f"Sent, but not as expected: {summary}", record=found.record, failed=not found.ok)

    async def after_failure(results: Sequence[StepResult]) -> Answer:
        outcome = results[0].data
        said = outcome.stdout if outcome is not None else ""
        result = sending.result(said)
        state = await zfs.outcome("systemctl", "is-active", unit, ok=tuple(range(256)))
        record: dict[str, Any] = {"result": result or "not known: the unit said nothing of its end"}
        record |= {"unit": f"{unit} is {text.clean(state.stdout, 40) or 'unknown'}", "look": _look(unit)}
        if words := sending.messages(said):
            record["messages"] = words[-20:]
        if why := sending.explained(result):
            record["which means"] = why
        return Answer("", record=record | (await target.check()).record)

    return Plan(
        summary,
        (step,),
        target.risk,
        target.targets,
        undo=target.undo,
        fingerprint=target.fingerprint,
        obstacles=(*refusal, *target.obstacles, *busy),
        doubts=target.doubts,
        notes=(*notes, *target.notes),
        conclude=conclude,
        after_failure=after_failure,
    )


def _look(unit: str) -> str:
    return f"proxmox_host_read_exec command='journalctl -u {unit} -n 5 -o cat' (or systemctl status {unit})"
