"""Disks emptied or given a partition table: proxmox_disk_prepare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Destroying, DiskName, NodeName, Waiting, matching
from proxmox_mcp.changes import conclusions, disk_use
from proxmox_mcp.changes.disk_use import Disk
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.errors import ConfigError, InvalidArgument, Refused, SshError
from proxmox_mcp.plan import Answer, ApiCall, HostCommand, HostTarget, Plan, Risk, Step, StepResult
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool

_UUID = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"


class DiskPrepare(Destroying, Waiting):
    action: Literal["wipe", "init_gpt"]
    disk: Annotated[DiskName, Field(description="/dev/sdb")]
    node: NodeName | None = None
    via: Literal["auto", "api", "ssh"] = "auto"
    uuid: (
        Annotated[
            str,
            AfterValidator(matching(_UUID, "a GUID like 1b6adfab-a1e5-4627-a32a-6b2548fe0df3", longest=36)),
            Field(description="init_gpt: GUID of the disk"),
        ]
        | None
    ) = None
    used_by: ClassVar = {"uuid": ("init_gpt",)}


@tool(
    "proxmox_disk_prepare",
    "Wipe an unused disk (over SSH: no API token may) or give it an empty GPT; refuses disks in use.",
    title="Wipe a disk, or a new GPT",
    group="disks",
    model=DiskPrepare,
    risk=Risk.DATA_LOSS,
    destructive=True,
    limit="none",
)
async def disk_prepare(args: DiskPrepare, call: Call) -> Plan:
    """init_gpt: POST /nodes/{node}/disks/initgpt. wipe: `wipefs` on the node over SSH, for wipedisk is closed to every token.

    Which way is decided here, before anything is sent; a refusal of the API never leads to a root shell.
    """
    checks = Checks(call.inventory)
    node = await checks.node(args.node)
    disk = await disk_use.find(call.api, node, args.disk)
    if disk.parent:
        raise InvalidArgument("disk", f"{disk.path} is a partition; name the whole disk, {disk.parent}")
    over_ssh = args.via == "ssh" or (args.via == "auto" and args.action == "wipe")
    if args.action == "wipe":
        for claim in await disk_use.claims(checks, node, disk):
            checks.refuse(f"{disk} is in use: {claim}")
    else:
        await disk_use.must_be_free(checks, node, disk)
    steps: tuple[Step, ...]
    if over_ssh:
        await _ssh_reaches(call, checks, node)
        steps = (_same_disk(node, disk), *_commands(args, node, disk))
    else:
        steps = (_request(args, node, disk),)
        if args.action == "wipe":
            checks.refuse("no API token may wipe a disk, only root@pam itself with a ticket: via=ssh does it over SSH")
        else:
            await checks.privileges(Need("/", ("Sys.Modify",)))
    way = "over SSH" if over_ssh else "over the API"
    holds = f" (now: {disk.used})" if disk.used else ""
    what = "erase every signature and partition table" if args.action == "wipe" else "write a new, empty GPT"
    summary = f"{what} on {disk}{holds} of node {node}, {way}: whatever is on it is lost"

    async def conclude(results: Sequence[StepResult]) -> Answer:
        now = await disk_use.find(call.api, node, disk.path)
        return conclusions.done(summary, results, {"disk": str(now), "used": now.used or "unused"})

    return Plan(
        summary,
        steps,
        Risk.DATA_LOSS,
        (f"node {node}", f"disk {disk.by_id or disk.path}"),
        fingerprint=disk.fingerprint,
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        conclude=conclude,
        after_failure=conclude,
    )


def _request(args: DiskPrepare, node: str, disk: Disk) -> ApiCall:
    if args.action == "wipe":
        return ApiCall("PUT", ("nodes", node, "disks", "wipedisk"), {"disk": disk.path})
    return ApiCall("POST", ("nodes", node, "disks", "initgpt"), {"disk": disk.path, "uuid": args.uuid})


async def _ssh_reaches(call: Call, checks: Checks, node: str) -> None:
    """Whether the node's shell can be reached at all, known beforehand."""
    try:
        await call.door.node(node)
    except (ConfigError, Refused, SshError) as error:
        checks.refuse(" ".join(filter(None, (error.what.removeprefix("Nothing was changed: "), error.hint and f"({error.hint})"))))


def _same_disk(node: str, disk: Disk) -> HostCommand:
    """A check that runs right before: kernel names change with a reboot, so the disk must still say who it is."""
    mark, ask = (
        (disk.serial, "udevadm info --query=property --property=ID_SERIAL_SHORT --value --name")
        if disk.serial
        else (str(disk.size), "blockdev --getsize64")
    )
    proof = f'test "$({ask} "$1")" = "$2" || {{ echo "$1 is not the disk it was: $2 is not what it says" >&2; exit 1; }}'
    return HostCommand(HostTarget(node=node), ("sh", "-c", proof, "sh", disk.by_id or disk.path, mark))


def _commands(args: DiskPrepare, node: str, disk: Disk) -> tuple[HostCommand, ...]:
    name = disk.by_id or disk.path
    if args.action == "init_gpt":
        return (HostCommand(HostTarget(node=node), ("sgdisk", name, "-U", args.uuid or "R")),)
    # wipefs opens each one exclusively and refuses what is mounted, in a pool or in a volume group
    parts = [_partition(disk, part) for part in disk.partitions]
    return (
        HostCommand(HostTarget(node=node), ("wipefs", "--all", *parts, name), timeout=120.0),
        HostCommand(HostTarget(node=node), ("udevadm", "settle", "--timeout=30")),
    )


def _partition(disk: Disk, part: Disk) -> str:
    number = re.search(r"\d+$", part.path)
    return f"{disk.by_id}-part{number[0]}" if disk.by_id and number else part.path
