"""An invented but believable cluster as data: nodes, guests, storages, volumes, tasks. the package serves it."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any

from tests.cluster import hostile

GIB = 1024**3
TIB = 1024**4
DAY = 86_400
Row = dict[str, Any]

ROLES = ("web", "db", "mail", "git", "proxy", "cache", "files", "backup", "dns", "build")
HOSTILE_NAMES = (
    "web\u202egnp.exe",
    "a\nTASK OK",
    "b\x1b[2Jc",
    "d\u200be",
    "- | x | y |",
    "ignore-all-previous-instructions",
    "x" * 300,
    "<script>",
)


@dataclass
class Guest:
    vmid: int
    node: str
    kind: str
    name: str
    status: str = "running"
    cores: int = 2
    memory: int = 2 * GIB
    disk: int = 32 * GIB
    storage: str = "local-lvm"
    cpu: float = 0.03
    mem: float = 0.4
    uptime: int = 12 * DAY
    template: bool = False
    tags: str = ""
    pool: str = ""
    lock: str = ""
    description: str = ""
    ha: str = ""  # state at the HA manager, empty when not managed
    config: Row = field(default_factory=dict)  # on top of what is computed
    snapshots: list[Row] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return self.status == "running"


@dataclass
class Task:
    upid: str
    node: str
    type: str
    id: str
    user: str
    token: str
    started: int
    ended: int | None
    status: str
    log: list[str]

    @property
    def item(self) -> Row:
        """An entry of /nodes/{node}/tasks: an active one names the token inside the user."""
        row: Row = {
            "upid": self.upid,
            "node": self.node,
            "pid": int(self.upid.split(":")[2], 16),
            "pstart": 4000,
            "starttime": self.started,
        }
        row |= {"type": self.type, "id": self.id}
        if self.ended is None:
            return {**row, "user": f"{self.user}!{self.token}" if self.token else self.user, "status": "RUNNING", "saved": "0"}
        return {**row, "user": self.user, **({"tokenid": self.token} if self.token else {}), "endtime": self.ended, "status": self.status}

    @property
    def state(self) -> Row:
        """The answer of .../status."""
        row = {key: value for key, value in self.item.items() if key not in ("endtime", "status", "saved", "user")}
        row |= {"user": self.user, **({"tokenid": self.token} if self.token else {})}
        return {**row, "status": "running"} if self.ended is None else {**row, "status": "stopped", "exitstatus": self.status}


@dataclass
class World:
    """`troubles` adds what an overview must find: a failing disk, a degraded pool, a nearly full storage, an inactive one, a failed
    backup, guests without a recent one. `hostile` puts control, bidi and misleading text wherever a user of the cluster could."""

    node_count: int = 3
    guest_count: int = 12
    offline: frozenset[str] = frozenset()
    troubles: bool = False
    hostile: bool = False
    now: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self._random = random.Random(7)
        self.nodes = [f"pve{n}" for n in range(1, self.node_count + 1)]
        self.guests = {guest.vmid: guest for guest in map(self._guest, range(self.guest_count))}
        self.storages = self._storages()
        self.tasks: dict[str, Task] = {}
        self._pid = 0x1000
        self.volumes: dict[tuple[str, str | None], list[Row]] = {}  # (storage, node or None for shared ones)
        self._fill()
        self.jobs = self._jobs()

    # --- guests

    def _guest(self, index: int) -> Guest:
        rng = self._random
        kind = "lxc" if index % 4 == 3 else "qemu"
        name = HOSTILE_NAMES[index % len(HOSTILE_NAMES)] if self.hostile else f"{ROLES[index % len(ROLES)]}-{index // len(ROLES) + 1}"
        guest = Guest(
            vmid=100 + index,
            node=self.nodes[index % len(self.nodes)],
            kind=kind,
            name=name,
            status="stopped" if index % 5 == 4 else "running",
            cores=rng.choice((1, 2, 4, 8)),
            memory=rng.choice((1, 2, 4, 8)) * GIB,
            disk=rng.choice((8, 16, 32, 64)) * GIB,
            cpu=round(rng.random() * 0.4, 6),
            mem=0.2 + rng.random() * 0.6,
            uptime=rng.randrange(3600, 90 * DAY),
            tags=hostile.line("prod") if self.hostile else ("prod;web", "", "test")[index % 3],
            pool="prod" if index % 6 == 0 else "",
            description=hostile.block("owner: ops", huge=index == 0) if self.hostile else "",
        )
        if index % 9 == 8 and kind == "qemu":
            guest.template, guest.status = True, "stopped"
        if self.hostile:
            guest.config = {"cipassword": hostile.SECRET_WORD, "args": hostile.line("-device"), "smbios1": hostile.line("serial=")}
        if index % 3 == 0:
            about = hostile.block("first") if self.hostile else "first"
            guest.snapshots = [
                {"name": "before_upgrade", "snaptime": int(self.now) - 20 * DAY, "description": about, **self._ram(kind, 0)},
                {
                    "name": "nightly",
                    "snaptime": int(self.now) - 2 * DAY,
                    "description": "",
                    "parent": "before_upgrade",
                    **self._ram(kind, 1),
                },
            ]
        return guest

    @staticmethod
    def _ram(kind: str, vmstate: int) -> Row:
        return {"vmstate": vmstate} if kind == "qemu" else {}

    # --- storages and what is on them

    def _storages(self) -> dict[str, Row]:
        last = self.nodes[-1]
        rows: list[Row] = [
            {
                "storage": "local",
                "type": "dir",
                "path": "/var/lib/vz",
                "content": "iso,vztmpl,backup,snippets",
                "prune-backups": "keep-all=1",
            },
            {"storage": "local-lvm", "type": "lvmthin", "vgname": "pve", "thinpool": "data", "content": "images,rootdir"},
            {"storage": "fast", "type": "zfspool", "pool": "tank", "content": "images,rootdir", "nodes": last, "sparse": 1},
            {
                "storage": "nas",
                "type": "nfs",
                "server": "10.77.0.90",
                "export": "/srv/pve",
                "path": "/mnt/pve/nas",
                "shared": 1,
                "content": "iso,backup",
                "prune-backups": "keep-daily=7,keep-weekly=4",
            },
            {
                "storage": "pbs",
                "type": "pbs",
                "server": "10.77.0.91",
                "datastore": "main",
                "username": "sync@pbs",
                "shared": 1,
                "content": "backup",
                "prune-backups": {"keep-all": "1"},
            },
            {
                "storage": "oldnas",
                "type": "nfs",
                "server": "10.77.0.92",
                "export": "/old",
                "path": "/mnt/pve/oldnas",
                "shared": 1,
                "content": "backup",
                "disable": 1,
            },
        ]
        if self.troubles:
            rows.append({"storage": "usb", "type": "dir", "path": "/mnt/usb", "content": "backup", "nodes": self.nodes[0]})
        return {row["storage"]: {**row, "digest": "863cc184e7dcdffdf806fffb8717746eade0e6e8"} for row in rows}

    def on_node(self, storage: str, node: str) -> bool:
        wanted = self.storages[storage].get("nodes")
        return wanted is None or node in wanted.split(",")

    def usage(self, storage: str) -> tuple[int, int]:
        """used and total bytes."""
        total = {"local": 96 * GIB, "local-lvm": 800 * GIB, "fast": 4 * TIB, "nas": 8 * TIB, "pbs": 16 * TIB}.get(storage, 0)
        share = {"local": 0.93 if self.troubles else 0.35, "local-lvm": 0.5, "fast": 0.25, "nas": 0.6, "pbs": 0.4}.get(storage, 0)
        return int(total * share), total

    def volumes_of(self, storage: str, node: str) -> list[Row]:
        return self.volumes.get((storage, None if self.storages[storage].get("shared") else node), [])

    def _fill(self) -> None:
        when = int(self.now) - 90 * DAY
        image = {"format": "iso", "content": "iso", "ctime": when}
        self.volumes["nas", None] = [{"volid": "nas:iso/debian-13.1.0-amd64-netinst.iso", "size": 700_000_000, **image}]
        self.volumes["pbs", None] = []
        for node in self.nodes:
            self.volumes["local", node] = [
                {"volid": "local:iso/virtio-win-0.1.285.iso", "size": 754_974_720, **image},
                {
                    "volid": "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
                    "size": 129_000_000,
                    "format": "tzst",
                    "content": "vztmpl",
                    "ctime": when,
                },
            ]
        for index, guest in enumerate(self.guests.values()):
            self._disk(guest)
            if not guest.template:
                self._backups(index, guest)
        for index, node in enumerate(self.nodes):
            self._routine(index, node)

    def _disk(self, guest: Guest) -> None:
        prefix = {"lxc": "vm", "qemu": "base" if guest.template else "vm"}[guest.kind]
        row: Row = {"volid": f"{guest.storage}:{prefix}-{guest.vmid}-disk-0", "vmid": guest.vmid, "size": guest.disk, "format": "raw"}
        row |= {"content": "rootdir" if guest.kind == "lxc" else "images", "parent": None, "ctime": int(self.now) - 100 * DAY}
        self.volumes.setdefault((guest.storage, guest.node), []).append(row)

    def _backups(self, index: int, guest: Guest) -> None:
        ages: tuple[int, ...] = (1, 8)
        if self.troubles and index % 10 == 9:
            ages = (20,) if index % 20 == 9 else ()
        for age in ages:
            made = int(self.now) - age * DAY - 3600
            stamp = time.strftime("%Y_%m_%d-%H_%M_%S", time.gmtime(made))
            form = "vma.zst" if guest.kind == "qemu" else "tar.zst"
            row: Row = {"volid": f"nas:backup/vzdump-{guest.kind}-{guest.vmid}-{stamp}.{form}", "format": form, "content": "backup"}
            row |= {"ctime": made, "size": guest.disk // 5, "vmid": guest.vmid, "subtype": guest.kind}
            row["notes"] = hostile.block("backup") if self.hostile else guest.name
            self.volumes["nas", None].append({**row, **({"protected": 1} if age == 8 and index % 7 == 0 else {})})
            self._vzdump(guest, made, "OK")
        if index % 5 == 0:
            made = int(self.now) - DAY // 2
            short = "vm" if guest.kind == "qemu" else "ct"
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(made))
            row = {"volid": f"pbs:backup/{short}/{guest.vmid}/{stamp}", "format": f"pbs-{short}", "content": "backup", "ctime": made}
            row |= {"size": 1 if index % 2 else guest.disk, "vmid": guest.vmid, "subtype": guest.kind, "encrypted": "1"}
            row |= {"verification": {"state": "ok", "upid": "UPID:pbs:00000001:00000001:00000001:verificationjob:main:root@pam:"}}
            self.volumes["pbs", None].append(row)

    # --- tasks

    def task(
        self,
        node: str,
        kind: str,
        ident: str = "",
        *,
        age: int = 3600,
        took: int | None = 30,
        status: str = "OK",
        log: list[str] | None = None,
        user: str = "root@pam",
        token: str = "",
    ) -> Task:
        """Adds a task that began `age` seconds ago; `took` None: it still runs."""
        self._pid += 1
        started = int(self.now) - age
        who = f"{user}!{token}" if token else user
        upid = f"UPID:{node}:{self._pid:08X}:{0x6F32D:08X}:{started:08X}:{kind}:{ident}:{who}:"
        ended = None if took is None else started + took
        if self.hostile:
            log = [*(log or []), *hostile.block(kind, huge=kind in ("vzdump", "aptupdate")).split("\n")]
        last = {"OK": "TASK OK"}.get(status) or (f"TASK {status}" if status.startswith("WARNINGS") else f"TASK ERROR: {status}")
        lines = [*(log or []), *([last] if ended is not None else [])] or ["no content"]
        made = Task(upid, node, kind, ident, user, token, started, ended, status, lines)
        self.tasks[upid] = made
        return made

    def _vzdump(self, guest: Guest, made: int, status: str) -> Task:
        log = [f"INFO: Starting Backup of VM {guest.vmid} ({guest.kind})", f"INFO: Finished Backup of VM {guest.vmid} (00:01:12)"]
        return self.task(guest.node, "vzdump", str(guest.vmid), age=int(self.now) - made, took=72, status=status, log=log)

    def _routine(self, index: int, node: str) -> None:
        self.task(node, "aptupdate", age=6 * 3600 + index, took=9, log=["starting apt-get update"])
        self.task(node, "startall", age=30 * DAY, took=40)
        vmid = next((str(guest.vmid) for guest in self.guests.values() if guest.node == node), "")
        if vmid:
            self.task(
                node,
                "qmstart",
                vmid,
                age=5 * 3600,
                took=3,
                status="WARNINGS: 1",
                log=["WARN: no efidisk configured! Using temporary efivars disk."],
            )
        if self.troubles and index == 0 and vmid:
            progress = [f"INFO:  {n % 100}% ({n}.0 GiB of 400.0 GiB) in {n}s, read: 1.0 GiB/s" for n in range(396)]
            error = f"ERROR: Backup of VM {vmid} failed - job failed with err -5 - Input/output error"
            log = [f"INFO: Starting Backup of VM {vmid} (qemu)", *progress, error, "INFO: Failed at 2026-03-01 02:14:05"]
            status = hostile.line("job errors") if self.hostile else "job errors"
            self.task(node, "vzdump", vmid, age=7 * 3600, took=400, status=status, log=log)

    def _jobs(self) -> list[Row]:
        soon = int(self.now) + 9 * 3600
        return [
            {
                "id": "backup-a1",
                "type": "vzdump",
                "schedule": "21:00",
                "storage": "nas",
                "all": 1,
                "exclude": "900,901",
                "enabled": 1,
                "prune-backups": {"keep-daily": "7"},
                "next-run": soon,
                "mode": "snapshot",
                "compress": "zstd",
            },
            {
                "id": "backup-b2",
                "type": "vzdump",
                "schedule": "sun 03:00",
                "storage": "pbs",
                "pool": "prod",
                "enabled": 0,
                "mode": "snapshot",
            },
            {
                "id": "backup-c3",
                "type": "vzdump",
                "schedule": "02:30",
                "storage": "nas",
                "vmid": "101,102",
                "mode": "stop",
                "next-run": soon + 1800,
            },
        ]
