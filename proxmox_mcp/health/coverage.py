"""Which guests have a recent good backup, which have none, and of which it cannot be told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from proxmox_mcp.health.sources import DAY, Row, Seen
from proxmox_mcp.inventory import Guest, flag, number, part
from proxmox_mcp.storages.volumes import Place, size

_SEES_STORAGES = ("Datastore.Audit", "Datastore.AllocateSpace", "Datastore.Allocate")
RECENT = 8 * DAY  # seconds; longer where a guest's job runs more seldom than every four days


@dataclass(frozen=True, slots=True)
class Lacking:
    """A guest without a recent good backup in what could be read; `newest` is the age in seconds of the last one, None: none at all."""

    guest: Guest
    newest: float | None
    without_job: bool


@dataclass
class Coverage:
    """Guests by what is known of their backups. Templates are left out: they do not change, and what is cloned from them is counted."""

    recent: int = 0
    missing: list[Lacking] = field(default_factory=list)
    unknown: list[Lacking] = field(default_factory=list)  # a place where theirs would be could not be read
    without_job: list[Guest] = field(default_factory=list)
    templates: int = 0


def cover(seen: Seen) -> Coverage:
    """Judges every guest that is seen."""
    found = Coverage()
    newest = _newest(seen)
    for guest in seen.guests or ():
        if guest.template:
            found.templates += 1
            continue
        jobs = [job for job in seen.jobs or () if _enabled(job) and _selects(job, guest)]
        without_job = seen.jobs is not None and not jobs and _without_job(seen, guest)
        if without_job:
            found.without_job.append(guest)
        age = seen.now - newest[guest.vmid] if guest.vmid in newest else None
        if age is not None and age <= _limit(seen, jobs):
            found.recent += 1
            continue
        lacking = Lacking(guest, age, without_job)
        (found.missing if _can_tell(seen, guest, jobs) else found.unknown).append(lacking)
    return found


def _newest(seen: Seen) -> dict[int, float]:
    """The time of the last backup of each guest that is not known to be bad."""
    newest: dict[int, float] = {}
    for volume in (volume for volumes in seen.backups.values() for volume in volumes):
        vmid, time = number(volume.get("vmid")), number(volume.get("ctime"))
        verified = part(volume.get("verification")).get("state")
        # a backup server gives no size where there is no index to read: the backup is not finished, or broken
        bad = verified == "failed" or (verified != "ok" and str(volume.get("format")).startswith("pbs-") and size(volume) is None)
        if vmid is not None and time is not None and not bad:
            newest[int(vmid)] = max(time, newest.get(int(vmid), time))
    return newest


def _limit(seen: Seen, jobs: Iterable[Row]) -> float:
    intervals = [seconds for job in jobs if (seconds := seen.intervals.get(str(job.get("schedule"))))]
    return max(RECENT, 2 * min(intervals)) if intervals else RECENT


def _can_tell(seen: Seen, guest: Guest, jobs: Iterable[Row]) -> bool:
    """Whether all places were read where this guest's backups would be: those of its jobs, else every one; and with eyes to see them."""
    if seen.storages is None:
        return False
    storages = {ref.name: ref for ref in seen.storages}
    targets = {str(job.get("storage") or "local") for job in jobs}
    if targets and targets <= storages.keys():
        places = {Place(name, None if storages[name].shared else guest.node) for name in targets}
        return places <= seen.backups.keys() and all(_visible(seen, name, guest) for name in targets)
    everywhere = any(seen.permissions.has("/storage", privilege) for privilege in _SEES_STORAGES)
    return everywhere and not seen.unread and all(_visible(seen, place.storage, guest) for place in seen.backups)


def _visible(seen: Seen, storage: str, guest: Guest) -> bool:
    """Whether Proxmox would show this token the guest's backups on a storage: it leaves out others without a word."""
    permissions, place = seen.permissions, f"/storage/{storage}"
    if permissions.has(place, "Datastore.Allocate"):
        return True
    return bool(permissions.has(place, "Datastore.AllocateSpace") and permissions.has(f"/vms/{guest.vmid}", "VM.Backup"))


def _enabled(job: Row) -> bool:
    return "enabled" not in job or flag(job["enabled"])


def _selects(job: Row, guest: Guest) -> bool:
    if job.get("node") and job["node"] != guest.node:
        return False
    if flag(job.get("all")):
        return str(guest.vmid) not in _ids(job.get("exclude"))
    if job.get("pool"):
        return bool(guest.row.get("pool") == job["pool"])
    return str(guest.vmid) in _ids(job.get("vmid"))


def _without_job(seen: Seen, guest: Guest) -> bool:
    """Who is in a pool is not always visible; where it is not, Proxmox's own list decides."""
    if guest.row.get("pool") or not any(job.get("pool") and _enabled(job) for job in seen.jobs or ()):
        return True
    return seen.uncovered is not None and guest.vmid in seen.uncovered


def _ids(value: object) -> frozenset[str]:
    return frozenset(re.split(r"[,; ]+", str(value or "")))
