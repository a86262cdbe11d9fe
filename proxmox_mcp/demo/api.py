"""The API of the demo cluster: fakepve where it keeps state, believable answers where it would say "fake" or 0."""

from __future__ import annotations

import json
import time
from typing import Any

from aiohttp import web
from fakepve.model import FakeVm, PveError
from fakepve.server import USER, params

from proxmox_mcp.demo import hardware, history, world
from proxmox_mcp.demo.storage import DemoStorage, first_disk
from proxmox_mcp.demo.world import MIB, Guest

Values = dict[str, Any]


class DemoCluster(DemoStorage):
    """Three nodes, one of them offline. Every number is computed from the guests, so that the answers agree with each other."""

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(host="127.0.0.1", port=port)
        now = time.time()
        self.cluster_name, self.version, self.release_version = world.CLUSTER, world.VERSION, world.RELEASE
        self.time_scale = 1.0
        self.booted = now
        self.nodes = {node.name: {"online": node.online} for node in world.NODES}
        self.storages = {name: {"files": set(), "volumes": {}, **options} for name, options in world.STORAGES.items()}
        for name, storage, node, size in world.FILES:
            volume = {
                "content": name.split("/")[0],
                "format": "iso" if name.startswith("iso") else "t" + name.split(".t")[-1],
                "size": size,
            }
            self.storages[storage]["volumes"][name] = {**volume, "ctime": int(now) - 90 * 86400, "node": node}
        for storage, volumes in history.backups(now).items():
            self.storages[storage]["volumes"].update(volumes)
        for guest in world.GUESTS:
            self._seed_guest(guest, now)
        for record in history.tasks(now):
            self.tasks[record["upid"]] = record
            self.tasklog.append(record)

    def _seed_guest(self, guest: Guest, now: float) -> None:
        status = "running" if guest.running else "stopped"
        config = world.config(guest)
        common = {"node": guest.node, "status": status, "template": guest.template, "pool": guest.pool or None}
        made = (
            self.add_vm(guest.vmid, guest.name, config=config, **common)
            if guest.kind == "qemu"
            else self.add_ct(guest.vmid, config=config, **common)
        )
        if guest.pool:
            self._pool_join(guest.pool, guest.vmid)
        if guest.running:
            made.started_at = now - guest.up
            made.pid = 1000 + guest.vmid
        made.start_secs, made.stop_secs, made.shutdown_secs = 1, 1, 3
        if config.get("agent"):
            made.agent = {"get-fsinfo": hardware.filesystems(guest), "interfaces": hardware.interfaces(guest)}
        parent = ""
        for name, age, description, memory in guest.snapshots:
            snapshot = {**config, "snaptime": int(now - age), "description": description}
            if parent:
                snapshot["parent"] = parent
            if memory:
                snapshot["vmstate"] = f"local-lvm:vm-{guest.vmid}-state-{name}"
            made.snapshots[name] = snapshot
            parent = made.config["parent"] = name

    # ---------------------------------------------------------------- use of guests

    def _usage(self, guest: Any) -> Values:
        """What a guest uses now; a guest made while the demo runs gets average values."""
        config = guest.config
        profile = world.PROFILES.get(guest.vmid)
        cpu, mem, fill = (profile.cpu, profile.mem, profile.fill) if profile else (0.03, 0.35, 0.3)
        is_vm = isinstance(guest, FakeVm)
        maxmem = int(str(config.get("memory", 512)).split("=")[-1]) * MIB
        maxdisk = first_disk(config)
        usage: Values = {"maxcpu": int(config.get("cores") or 1) * int(config.get("sockets") or 1), "maxmem": maxmem, "maxdisk": maxdisk}
        usage |= dict.fromkeys(("cpu", "mem", "disk", "uptime", "netin", "netout", "diskread", "diskwrite"), 0)
        if guest.status == "running":
            uptime = int(time.time() - (guest.started_at or time.time()))
            used = min(mem, 0.05 + uptime / 120)  # a guest fills its memory in its first minute
            usage |= {"cpu": cpu, "mem": int(maxmem * used), "uptime": uptime, "disk": 0 if is_vm else int(maxdisk * fill)}
            usage |= {"netin": uptime * (3_100 + guest.vmid * 7), "netout": uptime * (1_900 + guest.vmid * 11)}
            usage |= {"diskread": uptime * 2_700, "diskwrite": uptime * 9_300}
        if is_vm:
            usage["memhost"] = int(usage["mem"] * 1.02)
        return usage

    def _vm_usage(self, vm: Any) -> Values:
        return self._usage(vm)

    def _vm_status(self, vm: Any, listing: bool = False) -> Values:
        data: Values = super()._vm_status(vm, listing)
        if vm.status == "running" and not listing:
            data["nics"] = {f"tap{vm.vmid}i0": {"netin": data["netin"], "netout": data["netout"]}}
        return data

    def _status(self, ct: Any) -> Values:
        usage = self._usage(ct)
        usage["cpus"] = usage.pop("maxcpu")
        return {**super()._status(ct), **usage}

    def ct_resources(self, user: str, kind: str | None = None) -> list[Values]:
        return [{**item, **self._usage(self.ct(item["vmid"]))} for item in super().ct_resources(user, kind)]

    # ---------------------------------------------------------------- nodes and cluster

    def node_usage(self, name: str) -> Values:
        """The load of a node: its own, and that of its guests."""
        node = world.BY_NAME[name]
        if not node.online:
            return {"maxcpu": node.cpus, "maxmem": node.memory}
        running = [self._usage(guest) for guest in self.guests_on(name)]
        cpu = node.load + sum(use["cpu"] * use["maxcpu"] for use in running) / node.cpus
        memory = node.mem_own + sum(use["mem"] for use in running)
        uptime = node.up + int(time.time() - self.booted)
        usage = {"cpu": round(cpu, 6), "maxcpu": node.cpus, "mem": memory, "maxmem": node.memory, "uptime": uptime}
        return {**usage, "disk": node.root_used, "maxdisk": node.root_total}

    async def _nodes(self, request: web.Request) -> web.Response:
        rows = []
        for node in world.NODES:
            row = {
                "node": node.name,
                "id": f"node/{node.name}",
                "type": "node",
                "status": "online" if node.online else "offline",
                "level": "",
            }
            rows.append({**row, "ssl_fingerprint": hardware.fingerprint(node.name), **self.node_usage(node.name)})
        return web.json_response({"data": rows})

    async def _resources(self, request: web.Request) -> web.Response:
        rows = []
        for row in json.loads((await super()._resources(request)).text)["data"]:
            online = world.BY_NAME[row["node"]].online
            if row["type"] == "node":
                row = (
                    {key: row[key] for key in ("id", "type", "node", "status", "level")} | {"cgroup-mode": 2} | self.node_usage(row["node"])
                )
            elif row["type"] in ("qemu", "lxc") and not online:
                # nothing is known of a guest whose node is silent, not even its name
                row = {key: row[key] for key in ("id", "type", "node", "vmid")} | {"status": "unknown"}
            rows.append(row)
        if request.query.get("type") in (None, "sdn"):
            rows += [
                {
                    "id": f"network/{n.name}/zone/localnetwork",
                    "type": "network",
                    "node": n.name,
                    "network": "localnetwork",
                    "network-type": "zone",
                    "status": "ok" if n.online else "unknown",
                }
                for n in world.NODES
            ]
        return web.json_response({"data": rows})

    async def _cluster_status(self, request: web.Request) -> web.Response:
        rows: list[Values] = [
            {"type": "cluster", "id": "cluster", "name": world.CLUSTER, "nodes": len(world.NODES), "quorate": 1, "version": 7}
        ]
        for number, node in enumerate(world.NODES, 1):
            row = {"type": "node", "id": f"node/{node.name}", "name": node.name, "nodeid": number, "ip": node.ip, "level": ""}
            rows.append({**row, "online": int(node.online), "local": int(number == 1)})
        return web.json_response({"data": rows})

    def _routes_demo(self) -> list[tuple[str, str, Any]]:
        node = "/nodes/{node}"
        return [
            ("GET", f"{node}/status", self._of_node(lambda n, v: hardware.node_status(n, self.node_usage(n.name)))),
            (
                "GET",
                f"{node}/version",
                self._of_node(lambda n, v: {"version": world.VERSION, "release": world.RELEASE, "repoid": hardware.REPO}),
            ),
            (
                "GET",
                f"{node}/time",
                self._of_node(lambda n, v: {"time": int(time.time()), "localtime": int(time.time()), "timezone": "UTC"}),
            ),
            ("GET", f"{node}/network", self._of_node(lambda n, v: hardware.network(n))),
            ("GET", f"{node}/disks/list", self._of_node(lambda n, v: hardware.disk_list(n, bool(v.get("include-partitions"))))),
            ("GET", f"{node}/disks/smart", self._of_node(lambda n, v: hardware.smart(n, v["disk"], bool(v.get("healthonly"))))),
            ("GET", f"{node}/disks/lvm", self._of_node(lambda n, v: hardware.lvm(n))),
            ("GET", f"{node}/disks/lvmthin", self._of_node(lambda n, v: hardware.lvm_thin(n, self.stored(n.name, "local-lvm")))),
            ("GET", f"{node}/disks/zfs", self._of_node(lambda n, v: hardware.zfs_list(n, self.stored(n.name, "tank")))),
            ("GET", f"{node}/disks/zfs/{{name}}", self._of_node(lambda n, v: hardware.zfs_pool(n, v["name"]))),
            ("PUT", f"{node}/disks/wipedisk", self._root_only),
            ("POST", f"{node}/vzdump", self.vzdump),
            ("GET", f"{node}/vzdump/extractconfig", self._of_node(lambda n, v: history.inside(str(v["volume"])))),
            *(("GET", f"{node}/{kind}/{{vmid}}/feature", self._feature) for kind in ("qemu", "lxc")),
            ("GET", f"{node}/replication", self._of_node(lambda n, v: [])),
            ("GET", f"{node}/apt/update", self._of_node(lambda n, v: [])),
            ("GET", "/cluster/jobs/schedule-analyze", self._schedule),
            ("GET", "/cluster/backup", self._of_cluster(lambda: history.jobs(time.time()))),
            ("GET", "/cluster/backup-info/not-backed-up", self._of_cluster(self._not_backed_up)),
            ("GET", "/cluster/tasks", self._of_cluster(lambda: [self._task_view(task, True) for task in self.tasklog[-60:][::-1]])),
            (
                "GET",
                "/cluster/ha/status/current",
                self._of_cluster(lambda: [{"id": "quorum", "type": "quorum", "node": "pve1", "status": "OK", "quorate": 1}]),
            ),
            ("GET", "/cluster/ha/resources", self._of_cluster(list)),
            ("GET", "/cluster/replication", self._of_cluster(list)),
        ]

    @staticmethod
    def _of_node(answer: Any) -> Any:
        async def handle(values: Values, user: str) -> Any:
            return answer(world.BY_NAME[values["node"]], values)

        return handle

    @staticmethod
    def _of_cluster(answer: Any) -> Any:
        async def handle(values: Values, user: str) -> Any:
            return answer()

        return handle

    async def _schedule(self, values: Values, user: str) -> Any:
        return history.runs(str(values["schedule"]), time.time(), int(values.get("iterations", 10)))

    async def _feature(self, values: Values, user: str) -> Any:
        """All storages of the demo take snapshots and copies; a linked clone needs a template or a snapshot."""
        vmid = int(values["vmid"])
        guest = next((one for one in [*self.vms, *self.cts] if one.vmid == vmid), None)
        linked = values.get("feature") == "clone" and not values.get("snapname") and not (guest is not None and guest.template)
        return {"hasFeature": int(not linked), "nodes": [node.name for node in world.NODES if node.online]}

    async def _root_only(self, values: Values, user: str) -> Any:
        raise PveError(403, "Permission check failed (user != root@pam)")

    def _not_backed_up(self) -> list[Values]:
        kinds = {guest.vmid: ("qemu" if isinstance(guest, FakeVm) else "lxc", guest.name) for guest in [*self.vms, *self.cts]}
        return history.not_backed_up(kinds)

    # ---------------------------------------------------------------- tasks

    def _task_view(self, task: Values, listing: bool = False) -> Values:
        view: Values = super()._task_view(task, listing)
        view["user"], _, tokenid = task["user"].partition("!")
        if tokenid:
            view["tokenid"] = tokenid
        if listing and task["status"] == "running":
            view["status"] = "RUNNING"
        return view

    async def _task_list(self, request: web.Request) -> web.Response:
        """GET /nodes/{node}/tasks with its filters; finished ones only, unless `source` says otherwise."""
        asked = self._verify(request, await params(request))
        node, user, source = request.match_info["node"], request[USER], asked.get("source", "archive")
        audit = self.allowed(user, f"/nodes/{node}", "Sys.Audit")
        rows = []
        for task in sorted(self.tasklog, key=lambda task: -task["starttime"]):
            running, verdict = task["status"] == "running", str(task.get("exitstatus", ""))
            wanted = (
                task["node"] == node
                and (audit or self._task_owner(user, task))
                and (source == "all" or running == (source == "active"))
                and asked.get("vmid") in (None, task["id"], int(task["id"]) if task["id"].isdigit() else None)
                and asked.get("typefilter") in (None, task["type"])
                and (asked.get("userfilter") or "") in task["user"]
                and asked.get("since", 0) <= task["starttime"] <= asked.get("until", 2**40)
                and not (asked.get("errors") and verdict == "OK")
            )
            if wanted:
                rows.append(self._task_view(task, True))
        start = asked.get("start", 0)
        return web.json_response({"data": rows[start : start + asked.get("limit", 50)], "total": len(rows)})

    async def _task_log(self, request: web.Request) -> web.Response:
        asked = self._verify(request, await params(request))
        lines = self._get_task(request)["log"] or ["no content"]
        start, limit = asked.get("start", 0), asked.get("limit", 50)
        rows = [{"n": number, "t": text} for number, text in enumerate(lines, 1)]
        return web.json_response({"data": rows[start : start + limit] if limit else rows[start:], "total": len(rows)})
