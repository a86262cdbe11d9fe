"""What happened on the demo cluster before it was started: backups, jobs and tasks with their logs, counted back from now."""

from __future__ import annotations

import re
import time
from typing import Any

from proxmox_mcp.demo import world
from proxmox_mcp.demo.world import GIB, GUESTS, PROFILES, Guest

DAY = 86400
NIGHTS = 16  # that the record of tasks goes back
KEPT = 7  # backups a guest, as the job prunes them
_ERROR = "job failed with err -5 - Input/output error"


def last_night(now: float) -> int:
    """When the nightly job last started: a full hour, six to seven hours ago, so that it always lies within the last day."""
    return int(now - 6 * 3600) // 3600 * 3600


def last_sunday(now: float) -> int:
    """When the weekly job last started: the last Sunday, 03:00 UTC, at least an hour ago."""
    passed = int(now - 3600)
    midnight = passed // DAY * DAY
    weekday = (midnight // DAY + 3) % 7  # the epoch began on a Thursday; Monday is 0
    start = midnight - (weekday + 1) % 7 * DAY + 3 * 3600
    return start if start <= passed else start - 7 * DAY


def jobs(now: float) -> list[dict[str, Any]]:
    """GET /cluster/backup."""
    night, sunday = last_night(now), last_sunday(now)
    common = {"type": "vzdump", "mode": "snapshot", "notes-template": "{{guestname}}"}
    return [
        {
            **common,
            "id": "backup-nightly",
            "enabled": 1,
            "schedule": time.strftime("%H:%M", time.gmtime(night)),
            "storage": "pbs",
            "all": 1,
            "exclude": ",".join(map(str, world.NOT_IN_NIGHTLY)),
            "prune-backups": {"keep-daily": "7", "keep-weekly": "4"},
            "next-run": night + DAY,
            "comment": "everything that matters",
        },
        {
            **common,
            "id": "backup-weekly",
            "enabled": 1,
            "schedule": "sun 03:00",
            "storage": "nas",
            "compress": "zstd",
            "vmid": ",".join(map(str, world.WEEKLY)),
            "next-run": sunday + 7 * DAY,
        },
        {**common, "id": "backup-lab", "enabled": 0, "schedule": "sat 05:00", "storage": "nas", "compress": "zstd", "pool": "lab"},
    ]


def runs(schedule: str, now: float, count: int) -> list[dict[str, Any]]:
    """GET /cluster/jobs/schedule-analyze: when a daily (21:00) or weekly (sun 03:00) schedule comes next."""
    day, _, clock = schedule.rpartition(" ")
    hour, minute = map(int, clock.split(":"))
    start = int(now) // DAY * DAY + hour * 3600 + minute * 60
    if day:
        # the epoch began on a Thursday
        start += ("thu", "fri", "sat", "sun", "mon", "tue", "wed").index(day) * DAY - start // DAY % 7 * DAY
    step = 7 * DAY if day else DAY
    times = [start + step * number for number in range(count + 2) if start + step * number > now][:count]
    return [{"timestamp": when, "utc": time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(when))} for when in times]


def inside(volume: str) -> str:
    """GET /nodes/{node}/vzdump/extractconfig: the configuration in a backup, that of its guest today."""
    vmid = re.search(r"(?:/(?:vm|ct)/|-(?:qemu|lxc)-)(\d+)", volume)
    guest = next((guest for guest in world.GUESTS if vmid and guest.vmid == int(vmid[1])), None)
    return "".join(f"{key}: {value}\n" for key, value in world.config(guest).items()) if guest else ""


def not_backed_up(guests: dict[int, tuple[str, str]]) -> list[dict[str, Any]]:
    """GET /cluster/backup-info/not-backed-up, of the guests there are: vmid -> kind, name. The nightly job takes new guests with it."""
    return [{"vmid": vmid, "type": guests[vmid][0], "name": guests[vmid][1]} for vmid in world.NOT_IN_NIGHTLY if vmid in guests]


def _stored(guest: Guest) -> int:
    return int(sum(gib for _, _, gib in guest.disks) * GIB * guest.fill)


def _missed(guest: Guest, start: int, now: float) -> bool:
    """True when the job could not save the guest that night."""
    if guest.vmid == world.FAILING_BACKUP:
        return start > now - world.FAILING_FOR * DAY
    return not world.BY_NAME[guest.node].online and start > now - world.OFFLINE_FOR


def _course(node: str, start: int, now: float) -> list[tuple[Guest, int, int, bool]]:
    """What the nightly job does on a node: each guest, when its turn comes, for how many seconds, and whether it fails."""
    steps, at = [], start + 5
    for guest in GUESTS:
        if guest.node == node and guest.vmid not in world.NOT_IN_NIGHTLY:
            missed = _missed(guest, start, now)
            seconds = 95 if missed else 20 + _stored(guest) // GIB
            steps.append((guest, at, seconds, missed))
            at += seconds + 4
    return steps


def backups(now: float) -> dict[str, dict[str, dict[str, Any]]]:
    """Storage -> volume name -> volume, as they lie on the backup server and the NAS."""
    night, sunday = last_night(now), last_sunday(now)
    server: dict[str, dict[str, Any]] = {}
    kept: dict[int, int] = {}
    for back in range(NIGHTS):
        start = night - back * DAY
        for node in world.NODES:
            for guest, at, _, missed in _course(node.name, start, now):
                if missed or kept.get(guest.vmid, 0) == KEPT:
                    continue
                kept[guest.vmid] = kept.get(guest.vmid, 0) + 1
                kind = "vm" if guest.kind == "qemu" else "ct"
                volume = {
                    "content": "backup",
                    "format": f"pbs-{kind}",
                    "subtype": guest.kind,
                    "vmid": guest.vmid,
                    "ctime": at,
                    "size": _stored(guest),
                    "notes": guest.name,
                    "protected": guest.vmid == world.PROTECTED_BACKUP and kept[guest.vmid] == KEPT,
                }
                if back:
                    volume["verification"] = {"state": "ok", "upid": _upid("pbs", 9000 + back, at + 3600, "verify", "main", "root@pam")}
                server[f"backup/{kind}/{guest.vmid}/{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))}"] = volume
    nas: dict[str, dict[str, Any]] = {}
    for number, vmid in enumerate(world.WEEKLY):
        guest = PROFILES[vmid]
        for week in range(4):
            ctime = sunday - week * 7 * DAY + number * 400
            form = "vma.zst" if guest.kind == "qemu" else "tar.zst"
            stamp = time.strftime("%Y_%m_%d-%H_%M_%S", time.gmtime(ctime))
            volume = {"content": "backup", "format": form, "subtype": guest.kind, "vmid": vmid, "ctime": ctime, "notes": guest.name}
            nas[f"backup/vzdump-{guest.kind}-{vmid}-{stamp}.{form}"] = {**volume, "size": int(_stored(guest) * 0.55)}
    return {"pbs": server, "nas": nas}


def tasks(now: float) -> list[dict[str, Any]]:
    """Finished tasks, oldest first, as the fake keeps them: `status` stopped, `exitstatus`, `log` without line numbers."""
    night = last_night(now)
    made = []
    for back in reversed(range(NIGHTS)):
        start = night - back * DAY
        for node in world.NODES:
            if not node.online and start > now - world.OFFLINE_FOR:
                continue
            made.append(_nightly(node.name, start, now))
            made.append(
                _task(
                    node.name,
                    start + 2 * 3600 + 900,
                    9,
                    "aptupdate",
                    "",
                    "root@pam",
                    "OK",
                    ("starting apt-get update", "Reading package lists..."),
                )
            )
    made += [
        _task(
            "pve1",
            now - 12 * DAY - 700,
            2,
            "qmsnapshot",
            "101",
            "root@pam",
            "OK",
            ("snapshotting 'drive-scsi0' (local-lvm:vm-101-disk-0)",),
        ),
        _task("pve2", now - 6 * DAY - 7 * 3600, 4, "qmstart", "110", "anna@pve", "OK", ()),
        _task("pve2", now - 3 * DAY, 3, "vzstart", "203", "root@pam!ansible", "OK", ()),
        _task("pve1", now - 2 * DAY, 2, "vzstart", "206", "root@pam", "OK", ()),
        _task(
            "pve2",
            now - 21 * 3600,
            3,
            "qmstart",
            "104",
            "anna@pve",
            "WARNINGS: 1",
            ("swtpm_setup: Not overwriting existing state file.", "WARN: EFI disk without 'ms-cert=2023' option"),
        ),
        _task("pve2", now - 18 * 3600, 21, "qmshutdown", "104", "anna@pve", "OK", ()),
    ]
    return sorted(made, key=lambda task: int(task["starttime"]))


def _nightly(node: str, start: int, now: float) -> dict[str, Any]:
    lines = [
        f"INFO: starting new backup job: vzdump --storage pbs --all 1 --mode snapshot --exclude {','.join(map(str, world.NOT_IN_NIGHTLY))}"
    ]
    course = _course(node, start, now)
    for guest, _, seconds, missed in course:
        label = "VM" if guest.kind == "qemu" else "CT"
        lines += [
            f"INFO: Starting Backup of {label} {guest.vmid} ({guest.kind})",
            f"INFO: {label} Name: {guest.name}",
            "INFO: backup mode: snapshot",
        ]
        if missed:
            size = sum(gib for _, _, gib in guest.disks)
            read = size * 0.08
            lines.append(f"INFO:   8% ({read:.1f} GiB of {size:.1f} GiB) in 1m 31s, read: {read * 1024 / 91:.1f} MiB/s, write: 3.1 MiB/s")
            lines += [f"ERROR: {_ERROR}", "INFO: aborting backup job", f"ERROR: Backup of {label} {guest.vmid} failed - {_ERROR}"]
        else:
            lines.append(f"INFO: transferred {_stored(guest) / GIB:.2f} GiB in {seconds} seconds")
            lines.append(f"INFO: Finished Backup of {label} {guest.vmid} (00:{seconds // 60:02d}:{seconds % 60:02d})")
    failed = any(missed for *_, missed in course)
    lines.append(f"INFO: Backup job finished {'with errors' if failed else 'successfully'}")
    _, at, seconds, _ = course[-1]
    return _task(node, start, at + seconds + 1 - start, "vzdump", "", "root@pam", "job errors" if failed else "OK", tuple(lines))


def _task(
    node: str, start: float, seconds: int, kind: str, subject: str, user: str, exitstatus: str, log: tuple[str, ...]
) -> dict[str, Any]:
    start = int(start)
    pid = 1000 + start % 900_000
    good = exitstatus == "OK" or exitstatus.startswith("WARNINGS")
    ending = f"TASK {exitstatus}" if good else f"TASK ERROR: {exitstatus}"
    return {
        "upid": _upid(node, pid, start, kind, subject, user),
        "node": node,
        "pid": pid,
        "pstart": pid * 7,
        "starttime": start,
        "endtime": start + seconds,
        "type": kind,
        "id": subject,
        "user": user,
        "status": "stopped",
        "exitstatus": exitstatus,
        "log": [*log, ending],
    }


def _upid(node: str, pid: int, start: int, kind: str, subject: str, user: str) -> str:
    return f"UPID:{node}:{pid:08X}:{pid * 7:08X}:{start:08X}:{kind}:{subject}:{user}:"
