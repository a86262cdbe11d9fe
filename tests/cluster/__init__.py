"""Serves the cluster of tests/cluster/world.py: every read that the tools send, with the refusals, gaps and delays of the real API.

    with served_cluster(nodes=3, guests=500, offline={"pve3"}, hanging_storage="nas") as api:
        http = HttpClient(settings(api))

Members are pve1, pve2, ...; guests 100, 101, ... (every fourth a container, every fifth stopped), one after the other on the nodes.
Changes are recorded and answered as the real API answers them, but change nothing: see tests/cluster/changes.py.
`rights` is what GET /access/permissions tells the token: ADMIN, AUDITOR, ONE_GUEST, NO_RIGHTS or any table of that shape.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.cluster.changes import Changes
from tests.cluster.disks import Disks
from tests.cluster.guests import Guests
from tests.cluster.nodes import Nodes
from tests.cluster.replies import Need, NodeHandler, failure, refusal, usage
from tests.cluster.rights import ADMIN, AUDITOR, NO_RIGHTS, ONE_GUEST, Rights
from tests.cluster.storages import Storages
from tests.cluster.world import GIB, Guest, Row, World
from tests.served_api import Reply, Request, ServedApi

__all__ = ["ADMIN", "AUDITOR", "NO_RIGHTS", "ONE_GUEST", "ServedCluster", "World", "served_cluster"]


def served_cluster(
    nodes: int = 3,
    guests: int = 12,
    *,
    offline: Iterable[str] = (),
    hanging_storage: str | None = None,
    rights: Rights = ADMIN,
    troubles: bool = False,
    hostile: bool = False,
    version: str = "9.2.11",
    clustered: bool | None = None,
    now: float | None = None,
) -> ServedCluster:
    """A context manager; see the module's docstring. `clustered` None: a cluster when there is more than one node."""
    more = {} if now is None else {"now": now}
    world = World(nodes, guests, frozenset(offline), troubles, hostile, **more)
    return ServedCluster(world, hanging_storage=hanging_storage, rights=rights, version=version, clustered=clustered)


class ServedCluster(ServedApi):
    """`world` may be changed before and while it serves; `on` still adds and replaces single answers."""

    def __init__(self, world: World, *, hanging_storage: str | None, rights: Rights, version: str, clustered: bool | None) -> None:
        super().__init__()
        self.world = world
        self.hanging_storage = hanging_storage
        self.rights = rights
        self.version = version
        self.clustered = len(world.nodes) > 1 if clustered is None else clustered
        self.changes_end_as = "OK"
        self.changes_log: Sequence[str] = ()
        self._cluster_wide()
        for part in (Nodes, Storages, Disks, Guests, Changes):
            part(self)

    # --- permissions, as GET /access/permissions would have them

    def can(self, path: str, *any_of: str) -> bool:
        place = path
        while place not in self.rights:
            if place == "/":
                return False
            place = place.rpartition("/")[0] or "/"
        return any(self.rights[place].get(privilege) is not None for privilege in any_of)

    def refused(self, need: Need | None) -> Reply | None:
        if need is None or self.can(need[0], *need[1]):
            return None
        return refusal(f"Permission check failed ({need[0]}, {'|'.join(need[1])})")

    def get(self, path: str, answer: Callable[[Request], Any], need: Need | None = None) -> None:
        self.on("GET", path, lambda request: self.refused(need) or answer(request))

    def get_node(self, path: str, answer: NodeHandler, need: Callable[[Request], Need] | None = None) -> None:
        """A path below /nodes/{node}: the permission comes first, then whether the node is there, then whether it answers."""

        def handler(request: Request) -> Any:
            node = request.vars["node"]
            refused = self.refused(need(request)) if need is not None else None
            if refused is not None:
                return refused
            if node not in self.world.nodes:
                text = f"hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service not known"
                return Reply(500, text, message=text)
            if node in self.world.offline:
                return Reply(595, "No route to host")
            return answer(request, node)

        self.on("GET", f"/nodes/{{node}}{path}", handler)

    # --- cluster

    def _cluster_wide(self) -> None:
        audit: Need = ("/", ("Sys.Audit",))
        release = ".".join(self.version.split(".")[:2])
        self.get("/version", lambda _: {"version": self.version, "release": release, "repoid": "14a22df3aaaaaaaa"})
        self.get("/access/permissions", self._permissions)
        self.get("/nodes", lambda _: [self._node_row(node, "node") for node in self.world.nodes])
        self.get("/cluster/resources", self._resources)
        self.get("/cluster/status", lambda _: self._status(), audit)
        self.get("/cluster/nextid", self._nextid)
        self.get("/cluster/backup", lambda _: self.world.jobs, audit)
        self.get("/cluster/backup/{id}", self._job, audit)
        self.get("/cluster/backup-info/not-backed-up", lambda _: [])
        self.get("/cluster/ha/resources", lambda _: self._ha(), audit)
        self.get("/cluster/ha/status/current", lambda _: self._ha_status(), audit)
        self.get("/cluster/ha/rules", lambda _: [], audit)
        self.get("/cluster/options", lambda _: {"mac_prefix": "BC:24:11", "allowed-tags": []})
        self.get("/cluster/config/nodes", lambda _: [{"node": n, "name": n, "quorum_votes": "1"} for n in self.world.nodes], audit)
        self.get("/cluster/replication", lambda _: [])
        self.get("/pools", lambda _: [{"poolid": "prod"}] if self.can("/pool/prod", "Pool.Audit") else [])

    def _permissions(self, request: Request) -> Rights:
        path = request.params.get("path")
        if path is None:
            return self.rights
        nearest = path
        while nearest not in self.rights and nearest != "/":
            nearest = nearest.rpartition("/")[0] or "/"
        return {path: self.rights.get(nearest, {})}

    def _node_row(self, node: str, kind: str) -> Row:
        offline = node in self.world.offline
        row: Row = {"node": node, "id": f"node/{node}", "type": "node", "status": "offline" if offline else "online", "level": ""}
        if kind == "node":
            row["ssl_fingerprint"] = ":".join(["AB"] * 32)
        if self.can(f"/nodes/{node}", "Sys.Audit"):
            row |= {"maxcpu": 16, "maxmem": 64 * GIB, "maxdisk": 96 * GIB}
            if not offline:
                row |= {"cpu": 0.07, "mem": 24 * GIB, "disk": 33 * GIB, "uptime": 40 * 86_400}
        return row

    def _status(self) -> list[Row]:
        world = self.world
        rows: list[Row] = []
        if self.clustered:
            online = len(world.nodes) - len(world.offline)
            quorate = int(online > len(world.nodes) // 2)
            rows.append({"type": "cluster", "id": "cluster", "name": "lab", "nodes": len(world.nodes), "quorate": quorate, "version": 7})
        for number, node in enumerate(world.nodes, 1):
            ident = {"type": "node", "id": f"node/{node}", "name": node, "nodeid": number if self.clustered else 0, "level": ""}
            rows.append({**ident, "online": int(node not in world.offline), "local": int(number == 1), "ip": f"10.77.0.{9 + number}"})
        return rows

    def _resources(self, request: Request) -> Any:
        wanted = request.params.get("type")
        if wanted not in (None, "vm", "storage", "node", "sdn"):
            text = f"value '{wanted}' does not have a value in the enumeration 'vm, storage, node, sdn'"
            return Reply(400, errors={"type": text}, message="Parameter verification failed.")
        rows: list[Row] = []
        if wanted in (None, "vm"):
            rows += [self._guest_row(guest) for guest in self.world.guests.values() if self.can(f"/vms/{guest.vmid}", "VM.Audit")]
        if wanted in (None, "node"):
            rows += [{**self._node_row(node, "resource"), "cgroup-mode": 2} for node in self.world.nodes]
        if wanted in (None, "storage"):
            rows += self._storage_resources()
        if wanted is None:
            zone = {"type": "network", "network": "localnetwork", "network-type": "zone", "status": "ok"}
            rows += [{"id": f"network/{node}/zone/localnetwork", "node": node, **zone} for node in self.world.nodes]
        return rows

    def _guest_row(self, guest: Guest) -> Row:
        row: Row = {"id": f"{guest.kind}/{guest.vmid}", "type": guest.kind, "vmid": guest.vmid, "node": guest.node}
        if guest.node in self.world.offline:
            return {**row, "status": "unknown"}
        row |= usage(guest) | {"template": int(guest.template), "maxcpu": guest.cores}
        if guest.pool and self.can(f"/pool/{guest.pool}", "Pool.Audit"):
            row["pool"] = guest.pool
        return {**row, **({"hastate": guest.ha} if guest.ha else {})}

    def _storage_resources(self) -> list[Row]:
        rows = []
        for node, (name, config) in itertools.product(self.world.nodes, self.world.storages.items()):
            if config.get("disable") or not self.world.on_node(name, node) or not self.sees_storage(name):
                continue
            row: Row = {"id": f"storage/{node}/{name}", "type": "storage", "storage": name, "node": node, "plugintype": config["type"]}
            row |= {"content": config["content"], "shared": config.get("shared", 0)}
            used, total = self.world.usage(name)
            silent = node in self.world.offline or total == 0
            rows.append({**row, "status": "unknown"} if silent else {**row, "status": "available", "disk": used, "maxdisk": total})
        return rows

    def _nextid(self, request: Request) -> Any:
        wanted = request.params.get("vmid")
        if wanted is None:
            return str(next(vmid for vmid in itertools.count(100) if vmid not in self.world.guests))
        if int(wanted) in self.world.guests:
            return Reply(400, errors={"vmid": f"VM {wanted} already exists"}, message="Parameter verification failed.")
        return wanted

    def _job(self, request: Request) -> Any:
        found = [job for job in self.world.jobs if job["id"] == request.vars["id"]]
        return found[0] if found else failure(f"No such job '{request.vars['id']}'")

    def _ha(self) -> list[Row]:
        prefix = {"qemu": "vm", "lxc": "ct"}
        managed = [guest for guest in self.world.guests.values() if guest.ha]
        return [{"sid": f"{prefix[g.kind]}:{g.vmid}", "type": prefix[g.kind], "state": g.ha, "max_restart": 1} for g in managed]

    def _ha_status(self) -> list[Row]:
        node = self.world.nodes[0]
        return [{"id": "quorum", "type": "quorum", "status": "OK", "quorate": 1, "node": node}]

    # --- storages

    def sees_storage(self, name: str) -> bool:
        return self.can(f"/storage/{name}", "Datastore.Audit", "Datastore.AllocateSpace")
