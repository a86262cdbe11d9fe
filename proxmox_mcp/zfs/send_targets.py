"""Where a ZFS stream goes: a new file in an allowed directory, a new dataset, or over an existing one; what stands in the way of each."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from proxmox_mcp import text
from proxmox_mcp.errors import Refused
from proxmox_mcp.plan import Risk
from proxmox_mcp.storages import zpools
from proxmox_mcp.zfs import datasets, destroying, names, pool_status, properties, sending, snapshots, tables, tenants
from proxmox_mcp.zfs.datasets import Tree
from proxmox_mcp.zfs.failures import said
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.sending import Stream
from proxmox_mcp.zfs.snapshots import Snapshot

SETTING = "PROXMOX_ZFS_SEND_DIRS"
# Parameters: the allowed directory, the file's directory, its name. Only looks.
_LOOK = """
cd -P -- "$1" 2>/dev/null && top=$(pwd -P) && cd -P -- "$2" 2>/dev/null || { echo missing; exit; }
case $(pwd -P)/ in "$top"/*) ;; *) echo outside; exit;; esac
if [ -e "./$3" ] || [ -L "./$3" ]; then echo exists; fi
echo "free $(df -B1 --output=avail . | tail -n 1)"
"""


@dataclass(frozen=True)
class Check:
    """What is there afterwards."""

    ok: bool
    record: dict[str, Any]


@dataclass(frozen=True)
class Target:
    """One end of a stream. `script` with `words` before zfs send's own options carries it there."""

    what: str
    end: str  # as in a shell line: "> /mnt/backup/x", "| zfs receive -u bulk/copy"
    script: str
    words: tuple[str, ...]
    risk: Risk
    targets: tuple[str, ...]
    check: Callable[[], Awaitable[Check]]
    undo: str = ""
    fingerprint: str = ""
    obstacles: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Findings:
    obstacles: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def human(size: int) -> str:
    """Bytes for a person."""
    return text.size(size)


async def estimated(zfs: Zfs, stream: Stream) -> tuple[int | None, list[str]]:
    """(bytes that would be sent, why nothing can be sent) by `zfs send -nvP` and the state of the key."""
    found = await zfs.outcome(*sending.estimate(stream), timeout=300.0, ok=(0, 1, 2, 255))
    if found.exit_status != 0:
        return None, [f"ZFS says: {said(found.stderr)}"]
    place = names.dataset_of(stream.source)
    key = tables.properties(await zfs.read("zfs", "get", "-Hp", "-o", "name,property,value,source", "keystatus", place), place)
    locked = any(value == "unavailable" for _, value, _ in key)
    return tables.estimate(found.stdout), [
        f"the key of {place} is not loaded: raw=true sends it encrypted"
    ] if locked and not stream.raw else []


async def file(zfs: Zfs, stream: Stream, path: str, size: int | None) -> Target:
    """A new file. Raises Refused outside the allowed directories."""
    allowed = zfs.call.settings.zfs_send_dirs
    if not allowed:
        raise Refused("no directory is allowed for streams of zfs send", hint=f"the owner of the server sets {SETTING}=/mnt/backup")
    top = next((top for top in allowed if path.startswith(f"{top}/")), None)
    if top is None:
        raise Refused(f"{path} is in none of the allowed directories: {', '.join(allowed)}", hint=f"they are set with {SETTING}")
    place, name = posixpath.split(path)
    found = _Findings(notes=await _damage(zfs, stream.source))
    from proxmox_mcp.ssh import OwnScript

    look = (await zfs.read("sh", "-c", OwnScript(_LOOK), "look", top, place, name)).splitlines()
    if "missing" in look:
        found.obstacles.append(f"there is no directory {place} on {zfs.node}")
    if "outside" in look:
        found.obstacles.append(f"{place} leads outside of {top} through a link")
    if "exists" in look:
        found.obstacles.append(f"{path} exists, and a file is never overwritten")
    free = next((tables.integer(line.removeprefix("free ").strip()) for line in look if line.startswith("free ")), None)
    if size is not None and free is not None and size > free:
        found.obstacles.append(f"about {human(size)} are sent, and {human(free)} are free in {place}")

    async def check() -> Check:
        there = (await zfs.outcome("stat", "-c", "%s", "--", path, ok=(0, 1))).stdout.strip()
        return Check(bool(there), {"file": path if there else f"{path} does not exist", "size": human(int(there)) if there else "-"})

    return Target(
        stream.source,
        f"> {shlex.quote(path)}",
        sending.TO_FILE,
        (top, place, name),
        Risk.CHANGE,
        destroying.targets(zfs.node, names.dataset_of(stream.source)),
        check,
        undo=f"rm {shlex.quote(path)} (proxmox_host_exec)",
        obstacles=tuple(found.obstacles),
        notes=tuple(found.notes),
    )


async def dataset(zfs: Zfs, stream: Stream, target: str, size: int | None, *, force: bool) -> Target:
    """A new dataset, or one that exists: then it is data loss, and `force` lets ZFS roll it back or replace it."""
    await zfs.must_answer(target)
    before = await datasets.exists(zfs, target)
    source = await snapshots.one(zfs, stream.source)
    found = _Findings(notes=await _damage(zfs, stream.source))
    if stream.replication:
        await _mountpoints_go_along(zfs, stream, found)
    vmids: tuple[int, ...] = ()
    if before is None:
        await _may_be_made(zfs, stream, target, size, found)
    else:
        vmids = await _may_be_overwritten(zfs, stream, before, force, found)
    part = stream.source.partition("@")[2]

    async def check() -> Check:
        now = await datasets.exists(zfs, target)
        if now is None:
            return Check(False, {"target": f"there is no dataset {target}"})
        got = next((snapshot for snapshot in now.snapshots if snapshot.name == f"{target}@{part}"), None)
        whole = got is not None and source is not None and got.guid == source.guid
        kept = "received whole" if whole else "not there" if got is None else "there, but not the one that was sent"
        token = await _resume_token(zfs, target)
        left = {"half received": _leftover(target)} if token else {}
        mounted = {"mounted": now.top.mountpoint or "no; `zfs mount` mounts it"} if whole and not now.top.volume else {}
        return Check(whole, {"snapshot": f"{target}@{part}: {kept}", **mounted, **left})

    options = "-uF" if force and before is not None else "-u"
    onto = "over the existing dataset" if before is not None else "into the new dataset"
    return Target(
        f"{stream.source} {onto} {target}",
        f"| zfs receive {options} {shlex.quote(target)}",
        sending.TO_DATASET,
        (options, target),
        Risk.CHANGE if before is None else Risk.DATA_LOSS,
        destroying.targets(zfs.node, names.dataset_of(stream.source), target, vmids=vmids),
        check,
        undo=f"proxmox_zfs_dataset action=destroy name={target} recursive=true" if before is None else "",
        fingerprint=f"{source.guid if source else ''}/{before.fingerprint if before else ''}",
        obstacles=tuple(found.obstacles),
        doubts=tuple(found.doubts),
        notes=tuple(found.notes),
    )


async def _mountpoints_go_along(zfs: Zfs, stream: Stream, found: _Findings) -> None:
    """`receive -u` mounts nothing now; the next boot does, where the received properties say."""
    source = await datasets.exists(zfs, names.dataset_of(stream.source))
    for dataset in source.all if source is not None else ():
        if dataset.mountpoint and properties.over_the_system(dataset.mountpoint):
            found.obstacles.append(
                f"{dataset.name} is mounted at {dataset.mountpoint}, and with replication the copy would want that place too, at the next "
                "boot: send it without replication, or into a file"
            )
            return
    found.notes.append("mountpoints that were set on the source go along: at the next boot both want the same places")


async def _may_be_made(zfs: Zfs, stream: Stream, target: str, size: int | None, found: _Findings) -> None:
    parent = target.rpartition("/")[0]
    above = await datasets.one(zfs, parent)
    if above is None:
        found.obstacles.append(f"its parent {parent} does not exist: proxmox_zfs_dataset action=create name={parent} makes it")
        return
    if above.volume:
        found.obstacles.append(f"its parent {parent} is a volume, and a volume has no children")
    if stream.base is not None:
        found.obstacles.append(f"{target} does not exist: an incremental stream needs it, with {stream.base}")
    room = tables.properties(await zfs.read("zfs", "get", "-Hp", "-o", "name,property,value,source", "available", parent), parent)
    free = tables.integer(room[0][1]) if room else None
    if size is not None and free is not None and size > free:
        found.notes.append(f"about {human(size)} are sent and {human(free)} are free there: it fails unless compression makes up for it")


async def _may_be_overwritten(zfs: Zfs, stream: Stream, before: Tree, force: bool, found: _Findings) -> tuple[int, ...]:
    """Adds what stands in the way and what would be lost; returns the guests whose volumes it concerns."""
    target = before.top.name
    if await _resume_token(zfs, target):
        found.obstacles.append(_leftover(target))
    there = await tenants.of(zfs.call, zfs.node, before.mountpoints)
    if force:
        obstacles, doubts = await destroying.in_the_way(zfs, before, there)
        found.obstacles += obstacles
        found.doubts += doubts
    else:
        found.obstacles += [f"a guest that may be running uses it: {guest}; stop it first" for guest in there.running]
        found.doubts += there.doubts
    if there.stopped:
        found.notes.append(f"it is used by {'; '.join(there.stopped)}")
    own = [snapshot for snapshot in before.snapshots if snapshot.dataset == target]
    if stream.base is not None:
        await _on_top(zfs, stream.base, own, force, found)
    elif not force:
        found.obstacles.append(f"{target} exists: a whole stream goes into a new dataset, or over it with force=true and its data is lost")
    elif own and not stream.replication:
        found.obstacles.append(f"{target} has {len(own)} snapshots, and ZFS does not replace a dataset that has some: destroy them first")
    else:
        found.notes.append(f"everything in {target} is lost: {before.extent or 'its data'}")
    if force and stream.replication:
        found.notes.append("with replication, children and snapshots of the target that the source does not have are destroyed")
    return there.vmids


async def _on_top(zfs: Zfs, base: str, own: list[Snapshot], force: bool, found: _Findings) -> None:
    """An incremental stream goes on top of its base, which must be the newest one there, or become it."""
    begin = await snapshots.one(zfs, base) if "@" in base else None
    if begin is None:
        found.doubts.append(f"whether {base} is the newest snapshot of the target")
        return
    place = next((number for number, snapshot in enumerate(own) if snapshot.guid == begin.guid), None)
    if place is None:
        found.obstacles.append(f"the target does not have {base}, so nothing can be put on top of it")
        return
    newer = own[place + 1 :]
    names_of_newer = "; ".join(snapshots.named(newer, 1_000))
    if newer and not force:
        found.obstacles.append(f"the target has newer snapshots than {base} ({names_of_newer}): force=true destroys them")
    elif force:
        lost = f" and with the snapshots {names_of_newer}" if newer else ""
        found.notes.append(f"what was written to the target after {base} is lost{lost}")


async def _resume_token(zfs: Zfs, target: str) -> bool:
    words = ("zfs", "get", "-Hp", "-o", "name,property,value,source", "receive_resume_token", target)
    return any(value not in ("-", "") for _, value, _ in tables.properties(await zfs.read(*words), target))


def _leftover(target: str) -> str:
    return f"{target} holds a half-received stream of before: `zfs receive -A {shlex.quote(target)}` drops it (proxmox_host_exec)"


async def _damage(zfs: Zfs, source: str) -> list[str]:
    """A stream from a pool with damaged data stops midway; the estimate does not tell."""
    pool = names.pool_of(source)
    found = pool_status.from_text(await zfs.read("zpool", "status", "-x", pool))
    bad = [problem for entry in found for problem in zpools.findings(entry) if problem.startswith("data errors")]
    return [f"pool {pool} has {problem}: the stream may stop midway with an input/output error" for problem in bad]
