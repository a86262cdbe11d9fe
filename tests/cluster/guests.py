"""Virtual machines and containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.cluster.replies import NodeHandler, failure, usage
from tests.cluster.world import GIB, Guest, Row
from tests.served_api import Request

if TYPE_CHECKING:
    from tests.cluster import ServedCluster


class Guests:
    def __init__(self, api: ServedCluster) -> None:
        self.api, self.world = api, api.world
        for kind in ("qemu", "lxc"):
            self.api.get_node(f"/{kind}", self._guest_list(kind))
            for path, answer in (
                ("config", self._config),
                ("status/current", self._current),
                ("snapshot", self._snapshots),
                ("pending", lambda r, g: [{"key": key, "value": value} for key, value in self._config(r, g).items()]),
                ("feature", lambda r, g: {"hasFeature": 1, "nodes": [g.node]}),
                ("rrddata", lambda r, g: []),
            ):
                self._get_guest(kind, path, answer)
        self._get_guest(
            "qemu", "migrate", lambda r, g: {"running": int(g.running), "local_disks": [], "local_resources": [], "allowed_nodes": []}
        )
        self._get_guest("lxc", "interfaces", lambda r, g: [{"name": "eth0", "hwaddr": "bc:24:11:15:13:94", "inet": "10.77.0.51/24"}])

    def _guest_list(self, kind: str) -> NodeHandler:
        def rows(request: Request, node: str) -> list[Row]:
            mine = [
                g for g in self.world.guests.values() if g.node == node and g.kind == kind and self.api.can(f"/vms/{g.vmid}", "VM.Audit")
            ]
            return [{"vmid": g.vmid, "cpus": g.cores, **usage(g), **({"template": 1} if g.template else {})} for g in mine]

        return rows

    def _get_guest(self, kind: str, path: str, answer: Callable[[Request, Guest], Any]) -> None:
        def handler(request: Request, node: str) -> Any:
            guest = self.world.guests.get(int(request.vars["vmid"]))
            if guest is None or guest.node != node or guest.kind != kind:
                folder = {"qemu": "qemu-server", "lxc": "lxc"}[kind]
                return failure(f"Configuration file 'nodes/{node}/{folder}/{request.vars['vmid']}.conf' does not exist")
            return answer(request, guest)

        self.api.get_node(f"/{kind}/{{vmid}}/{path}", handler, lambda request: (f"/vms/{request.vars['vmid']}", ("VM.Audit",)))

    def _current(self, request: Request, guest: Guest) -> Row:
        row = {
            "vmid": guest.vmid,
            "cpus": guest.cores,
            **usage(guest),
            "ha": {"managed": 1, "state": guest.ha} if guest.ha else {"managed": 0},
        }
        if guest.running:
            row["pid"] = 1000 + guest.vmid
        if guest.kind == "qemu":
            return {**row, "qmpstatus": guest.status, **({"agent": 1} if guest.running else {})}
        return {**row, "type": "lxc", "swap": 0, "maxswap": GIB // 2}

    def _config(self, request: Request, guest: Guest) -> Row:
        size = f"{guest.disk // GIB}G"
        digest = "42225a9bd4188db3870afad2c51c3f010157dbe9"
        mac = f"BC:24:11:00:{guest.vmid // 256 % 256:02X}:{guest.vmid % 256:02X}"
        if guest.kind == "lxc":
            row: Row = {
                "hostname": guest.name,
                "arch": "amd64",
                "ostype": "debian",
                "cores": guest.cores,
                "memory": guest.memory // 1024**2,
            }
            row |= {"swap": 512, "unprivileged": 1, "rootfs": f"{guest.storage}:vm-{guest.vmid}-disk-0,size={size}"}
            row |= {"net0": f"name=eth0,bridge=vmbr0,hwaddr={mac},ip=dhcp,type=veth", "digest": digest}
        else:
            row = {"name": guest.name, "cores": guest.cores, "sockets": 1, "memory": str(guest.memory // 1024**2), "ostype": "l26"}
            row |= {
                "scsihw": "virtio-scsi-single",
                "scsi0": f"{guest.storage}:{'base' if guest.template else 'vm'}-{guest.vmid}-disk-0,size={size}",
            }
            row |= {"net0": f"virtio={mac},bridge=vmbr0", "boot": "order=scsi0;net0", "agent": "enabled=1", "digest": digest}
            row |= {"template": 1} if guest.template else {}
        if guest.snapshots:
            row["parent"] = guest.snapshots[-1]["name"]
        row |= {key: value for key, value in (("tags", guest.tags), ("description", guest.description), ("lock", guest.lock)) if value}
        return {**row, **guest.config}

    def _snapshots(self, request: Request, guest: Guest) -> list[Row]:
        current: Row = {"name": "current", "description": "You are here!", "digest": "9d086981e79f3aee", "running": int(guest.running)}
        if guest.snapshots:
            current["parent"] = guest.snapshots[-1]["name"]
        return [*guest.snapshots, current]
