"""Nodes and their tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.cluster import hostile
from tests.cluster.replies import Need
from tests.cluster.world import GIB, Row
from tests.served_api import Reply, Request

if TYPE_CHECKING:
    from tests.cluster import ServedCluster


class Nodes:
    def __init__(self, api: ServedCluster) -> None:
        self.api, self.world = api, api.world

        def audit(request: Request) -> Need:
            return f"/nodes/{request.vars['node']}", ("Sys.Audit",)

        self.api.get_node("/status", self._node_status, audit)
        self.api.get_node("/time", lambda r, n: {"time": int(self.world.now), "timezone": "UTC", "localtime": int(self.world.now)}, audit)
        self.api.get_node(
            "/version", lambda r, n: {"version": self.api.version, "release": self.api.version[:3], "repoid": "14a22df3aaaaaaaa"}
        )
        self.api.get_node("/network", lambda r, n: [{"iface": "vmbr0", "type": "bridge", "active": 1, "cidr": "10.77.0.10/24"}])
        self.api.get_node("/subscription", lambda r, n: {"status": "notfound", "message": "There is no subscription key"}, audit)
        self.api.get_node("/vzdump/defaults", lambda r, n: {"mode": "snapshot", "compress": "0", "storage": "local", "remove": 1})
        self.api.get_node(
            "/vzdump/extractconfig", lambda r, n: "cores: 1\nmemory: 256\nname: db1\nscsi0: local-lvm:vm-310-disk-0,size=1G\n"
        )
        self.api.get_node("/aplinfo", lambda r, n: [])
        self.api.get_node("/replication", lambda r, n: [])
        self.api.get("/cluster/tasks", lambda _: self._cluster_tasks())
        self.api.get_node("/tasks", self._tasks)
        self.api.get_node("/tasks/{upid}/status", lambda r, n: self._task(r, n, lambda task: task.state))
        self.api.get_node("/tasks/{upid}/log", self._log)

    def _node_status(self, request: Request, node: str) -> Row:
        return {
            "uptime": 40 * 86_400,
            "cpu": 0.07,
            "wait": 0.002,
            "idle": 0,
            "loadavg": ["1.17", "1.18", "1.22"],
            "cpuinfo": {
                "model": hostile.line("AMD") if self.world.hostile else "AMD EPYC 7313P",
                "cpus": 16,
                "cores": 16,
                "sockets": 1,
                "mhz": "2994.400",
                "hvm": "1",
                "user_hz": 100,
                "flags": "fpu vme",
            },
            "memory": {"total": 64 * GIB, "used": 24 * GIB, "free": 36 * GIB, "available": 40 * GIB},
            "swap": {"total": 0, "used": 0, "free": 0},
            "rootfs": {"total": 96 * GIB, "used": 33 * GIB, "avail": 58 * GIB, "free": 63 * GIB},
            "ksm": {"shared": 0},
            "kversion": "Linux 6.17.2-1-pve #1 SMP PREEMPT_DYNAMIC",
            "boot-info": {"mode": "efi", "secureboot": 0},
            "current-kernel": {"sysname": "Linux", "release": "6.17.2-1-pve", "machine": "x86_64", "version": "#1 SMP PREEMPT_DYNAMIC"},
            "pveversion": f"pve-manager/{self.api.version}/14a22df3aaaaaaaa",
        }

    def _sees_task(self, node: str, user: str) -> bool:
        return self.api.can(f"/nodes/{node}", "Sys.Audit") or user in self.api.tokens

    def _tasks(self, request: Request, node: str) -> Any:
        p = request.params
        sources = {"archive": (False,), "active": (True,), "all": (True, False)}[p.get("source", "archive")]
        rows = []
        for task in sorted(self.world.tasks.values(), key=lambda task: -task.started):
            who = f"{task.user}!{task.token}" if task.token else task.user
            if task.node != node or (task.ended is None) not in sources or not self._sees_task(node, who):
                continue
            if p.get("typefilter", task.type) != task.type or p.get("vmid", task.id) != task.id or p.get("userfilter", "") not in who:
                continue
            if (p.get("errors") == "1" and task.status == "OK") or not int(p.get("since", 0)) <= task.started <= int(
                p.get("until", 1 << 40)
            ):
                continue
            if "statusfilter" in p and _status_type(task.status) not in p["statusfilter"].split(","):
                continue
            rows.append(task.item)
        start, limit = int(p.get("start", 0)), int(p.get("limit", 50))
        return Reply(data=rows[start : start + limit], total=len(rows))

    def _task(self, request: Request, node: str, answer: Callable[[Any], Any]) -> Any:
        task = self.world.tasks.get(request.vars["upid"])
        if task is None or task.node != node:
            return Reply(400, errors={"upid": "no such task"}, message="Parameter verification failed.")
        who = f"{task.user}!{task.token}" if task.token else task.user
        return answer(task) if self._sees_task(node, who) else self.api.refused((f"/nodes/{node}", ("Sys.Audit",)))

    def _log(self, request: Request, node: str) -> Any:
        def lines(task: Any) -> Reply:
            start, limit = int(request.params.get("start", 0)), int(request.params.get("limit", 50))
            rows = [{"n": n, "t": text} for n, text in enumerate(task.log, 1)]
            return Reply(data=rows[start : start + limit] if limit else rows[start:], total=len(rows))

        if request.vars["upid"] not in self.world.tasks:
            return Reply(data=[{"n": 1, "t": "unable to open file - No such file or directory"}], total=1)
        return self._task(request, node, lines)

    def _cluster_tasks(self) -> list[Row]:
        """About 25 a node; a running one has no status here."""
        rows = []
        for node in self.world.nodes:
            mine = sorted((task for task in self.world.tasks.values() if task.node == node), key=lambda task: -task.started)[:25]
            if self.api.can("/", "Sys.Audit"):
                rows += [{key: value for key, value in task.item.items() if value != "RUNNING"} for task in mine]
        return rows


def _status_type(status: str) -> str:
    if status == "OK":
        return "ok"
    if status.startswith("WARNINGS"):
        return "warning"
    return "unknown" if status == "unexpected status" else "error"
