"""The storages of the demo cluster: sizes that follow from what lies on them, contents per node, and backups that leave a volume."""

from __future__ import annotations

import re
import time
from typing import Any

from fakepve.model import FakeVm, PveError
from fakepve.server import FakePve

from proxmox_mcp.demo import world
from proxmox_mcp.demo.world import GIB, MIB

Values = dict[str, Any]
_PBS_NAME = re.compile(r"backup/(?:vm|ct)/(\d+)/\S+")


def first_disk(config: Values) -> int:
    """Bytes of a guest's first disk."""
    for key in ("rootfs", "scsi0", "virtio0", "sata0", "ide0"):
        found = re.search(r"size=(\d+(?:\.\d+)?)([MGT])", str(config.get(key, "")))
        if found:
            return int(float(found[1]) * {"M": MIB, "G": GIB, "T": world.TIB}[found[2]])
    return 0


class DemoStorage(FakePve):
    """FakePve with the storages of `world`."""

    booted: float  # when the demo was started, Unix seconds

    def guests_on(self, node: str) -> list[Any]:
        return [guest for guest in [*self.vms, *self.cts] if guest.node == node]

    def stored(self, node: str, storage: str) -> int:
        """Bytes that guests' disks really take on a node's own storage."""
        taken = 0.0
        for guest in self.guests_on(node):
            profile = world.PROFILES.get(guest.vmid)
            for value in guest.config.values():
                found = re.match(rf"{storage}:\S+?,(?:\S+,)?size=(\d+)G", str(value))
                if found:
                    taken += int(found[1]) * GIB * (profile.fill if profile else 0.3)
        return int(taken)

    def capacity(self, name: str, node: str) -> tuple[int, int]:
        """Size and use of a storage on a node, in bytes."""
        host = world.BY_NAME[node]
        if name in world.SHARED_SIZE:
            total, other = world.SHARED_SIZE[name]
            listed = sum(int(volume["size"]) for volume in self.storages[name]["volumes"].values())
            # what a backup server stores is a fraction of what its backups hold
            return total, other + (listed // 12 if name == "pbs" else listed)
        if name == "local-lvm":
            return host.thin_size, self.stored(node, name)
        if name == "tank" and host.pool:
            taken = host.pool.other + self.stored(node, name)
            return int(host.pool.size * host.pool.usable), taken
        return host.root_total, host.root_used

    def _status_item(self, name: str, node: str, formats: bool = False) -> Values:
        item: Values = super()._status_item(name, node, formats)
        if item["active"]:
            total, used = self.capacity(name, node)
            item |= {"total": total, "used": used, "avail": total - used}
        return item

    def _storage_resource(self, node: str, name: str) -> Values | None:
        item: Values | None = super()._storage_resource(node, name)
        if item is None:
            return None
        item["status"] = "available"
        if not world.BY_NAME[node].online:
            item["status"] = "unknown"
            del item["disk"], item["maxdisk"]
            return item
        item["maxdisk"], item["disk"] = self.capacity(name, node)
        return item

    async def _content_list(self, v: Values, user: str) -> list[Values]:
        """A storage that is not shared shows on a node what lies on that node."""
        items: list[Values] = await super()._content_list(v, user)
        if self.storages[v["storage"]].get("shared"):
            return items
        homes = {guest.vmid: guest.node for guest in [*self.vms, *self.cts]}
        volumes = self._volumes(v["storage"])

        def home(item: Values) -> str:
            volume = volumes[item["volid"].partition(":")[2]]
            return str(volume.get("node") or homes.get(item.get("vmid"), v["node"]))

        return [item for item in items if home(item) == v["node"]]

    def _item(self, name: str, volname: str, vol: Values) -> Values:
        item: Values = super()._item(name, volname, vol)
        item |= {key: vol[key] for key in ("subtype", "verification") if key in vol}
        if volname.startswith("subvol-"):
            item |= {"format": "subvol", "content": "rootdir"}
        if not item["ctime"]:
            item["ctime"] = int(self.booted) - 200 * 86400
        if not item.get("protected"):
            item.pop("protected", None)
        return item

    def _parse_volname(self, store: Values, volname: str) -> Any:
        found = _PBS_NAME.fullmatch(volname)
        return ("backup", int(found[1]), "raw") if found else super()._parse_volname(store, volname)

    async def vzdump(self, v: Values, user: str) -> str:
        """A backup of guests on this node; "OK" without a task when none of them is here."""
        here = {guest.vmid: guest for guest in self.guests_on(v["node"])}
        asked = [int(part) for part in str(v.get("vmid", "")).replace(",", " ").split()] or (list(here) if v.get("all") else [])
        guests = [here[vmid] for vmid in asked if vmid in here]
        if not guests:
            return "OK"
        storage = v.get("storage") or "local"
        if "backup" not in str(self._check_enabled(storage, v["node"]).get("content")).split(","):
            raise PveError(500, f"storage '{storage}' does not support backups")

        async def body() -> None:
            for guest in guests:
                self._check_lock(guest)
                await self.pause(2)
                now = int(time.time())
                kind, profile = ("qemu" if isinstance(guest, FakeVm) else "lxc"), world.PROFILES.get(guest.vmid)
                volume = {"content": "backup", "subtype": kind, "vmid": guest.vmid, "ctime": now, "notes": guest.name, "node": v["node"]}
                volume["size"] = int(first_disk(guest.config) * (profile.fill if profile else 0.3))
                if self.storages[storage]["type"] == "pbs":
                    short = "vm" if kind == "qemu" else "ct"
                    volname = f"backup/{short}/{guest.vmid}/{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(now))}"
                    volume["format"] = f"pbs-{short}"
                else:
                    form = "vma.zst" if kind == "qemu" else "tar.zst"
                    volname = f"backup/vzdump-{kind}-{guest.vmid}-{time.strftime('%Y_%m_%d-%H_%M_%S', time.gmtime(now))}.{form}"
                    volume["format"] = form
                self.storages[storage]["volumes"][volname] = volume

        subject = str(guests[0].vmid) if len(guests) == 1 else ""
        log = [
            f"INFO: starting new backup job: vzdump {' '.join(str(g.vmid) for g in guests)} --storage {storage}",
            "INFO: Backup job finished successfully",
        ]
        return str(await self.task(v["node"], "vzdump", subject, user, body, log=log))
