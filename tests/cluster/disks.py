"""Disks, LVM and ZFS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cluster import hostile
from tests.cluster.replies import Need, failure
from tests.cluster.world import GIB, TIB, Row
from tests.served_api import Request

if TYPE_CHECKING:
    from tests.cluster import ServedCluster


class Disks:
    def __init__(self, api: ServedCluster) -> None:
        self.api, self.world = api, api.world

        def root(request: Request) -> Need:
            return "/", ("Sys.Audit",)

        self.api.get_node("/disks/list", self._disk_list, root)
        self.api.get_node("/disks/smart", self._smart, root)
        self.api.get_node("/disks/lvm", lambda r, n: {"leaf": 0, "children": [volume_group()]}, root)
        self.api.get_node("/disks/lvmthin", lambda r, n: [thin_pool()], root)
        self.api.get_node("/disks/zfs", lambda r, n: [self._pool(name, n) for name in self._pools(n)], root)
        self.api.get_node("/disks/zfs/{name}", self._pool_detail, root)
        self.api.get_node("/disks/directory", lambda r, n: [], root)

    def _failing(self, node: str) -> bool:
        return self.world.troubles and node == self.world.nodes[0]

    def disks(self, node: str) -> list[Row]:
        common = {"osdid": -1, "osdid-list": None, "gpt": 1, "wearout": "N/A", "health": "PASSED"}
        sdb_health = "FAILED!" if self._failing(node) else "PASSED"
        return [
            {
                **common,
                "devpath": "/dev/nvme0n1",
                "size": TIB,
                "model": "Samsung SSD 980 PRO 1TB",
                "vendor": "unknown",
                "type": "nvme",
                "rpm": 0,
                "serial": "S5GXNX0R654321B",
                "wearout": 97,
                "used": "LVM",
                "by_id_link": "/dev/disk/by-id/nvme-Samsung_SSD_980_PRO_1TB_S5GXNX0R654321B",
            },
            {
                **common,
                "devpath": "/dev/sda",
                "size": 4 * TIB,
                "model": "WDC_WD40EFRX-68N32N0",
                "vendor": "ATA",
                "type": "hdd",
                "rpm": "5400",
                "serial": "WD-WCC7K1234567",
                "used": "ZFS",
                "by_id_link": "/dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K1234567",
            },
            {
                **common,
                "devpath": "/dev/sdb",
                "size": 4 * TIB,
                "model": "WDC_WD40EFRX-68N32N0",
                "vendor": "ATA",
                "type": "hdd",
                "rpm": "5400",
                "serial": "WD-WCC7K7654321",
                "used": "ZFS",
                "health": sdb_health,
                "by_id_link": "/dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K7654321",
            },
            {
                **common,
                "devpath": "/dev/sdc",
                "size": 960_197_124_096,
                "model": "KPM5XRUG960G",
                "vendor": "TOSHIBA",
                "type": "ssd",
                "rpm": 0,
                "serial": "58D0A00ATEST",
                "health": "OK",
                "wearout": 88,
                "gpt": 0,
                "by_id_link": "/dev/disk/by-id/scsi-358ce38ee20d1c0a1",
            },
        ]

    def _disk_list(self, request: Request, node: str) -> list[Row]:
        rows = self.disks(node)
        if self.world.hostile:
            rows = [{**row, "model": hostile.line("disk"), "vendor": hostile.line("ATA")} for row in rows]
        if request.params.get("include-partitions") == "1":
            part = {
                "devpath": "/dev/nvme0n1p3",
                "parent": "/dev/nvme0n1",
                "size": TIB - 2 * GIB,
                "used": "LVM",
                "gpt": 1,
                "type": "partition",
                "osdid": -1,
            }
            rows.append(part)
        return [row for row in rows if "used" not in row] if request.params.get("type") == "unused" else rows

    def _smart(self, request: Request, node: str) -> Any:
        disk = next((row for row in self.disks(node) if row["devpath"] == request.params.get("disk")), None)
        if disk is None:
            return failure(f"unable to get device path for '{request.params.get('disk')}'")
        if request.params.get("healthonly") == "1":
            return {"health": disk["health"]}
        if disk["type"] != "hdd":
            text = "\nSMART/Health Information\nCritical Warning:                   0x00\nTemperature:                        38 Celsius\n"
            text += hostile.block("SMART", huge=True) if self.world.hostile else ""
            return {"health": disk["health"], "type": "text", "text": text, "wearout": disk["wearout"]}
        names = (("  5", "Reallocated_Sector_Ct", "0"), ("  9", "Power_On_Hours", "33124"), ("194", "Temperature_Celsius", "32"))
        levels = {"value": 200, "normalized": 200, "worst": 200, "threshold": 51, "fail": "-", "flags": "PO--CK"}
        return {
            "health": disk["health"],
            "type": "ata",
            "attributes": [{"id": i, "name": name, "raw": raw, **levels} for i, name, raw in names],
        }

    def _pools(self, node: str) -> list[str]:
        return ["rpool", "tank"] if node == self.world.nodes[-1] else ["rpool"]

    def _pool(self, name: str, node: str) -> Row:
        health = "DEGRADED" if self.world.troubles and name == "tank" else "ONLINE"
        return {"name": name, "size": 4 * TIB, "alloc": TIB, "free": 3 * TIB, "frag": 7, "dedup": 1, "health": health}

    def _pool_detail(self, request: Request, node: str) -> Any:
        name = request.vars["name"]
        if name not in self._pools(node):
            return failure(f"command 'zpool status -P {name}' failed: exit code 1")
        state = self._pool(name, node)["health"]
        quiet = {"read": 0, "write": 0, "cksum": 0, "msg": "", "leaf": 1, "state": "ONLINE"}
        bad = quiet if state == "ONLINE" else {**quiet, "state": "FAULTED", "read": 3, "write": 12, "msg": "too many errors"}
        leaves = [{**quiet, "name": "/dev/sda"}, {**bad, "name": "/dev/sdb"}]
        mirror = {**quiet, "leaf": 0, "name": "mirror-0", "state": state, "children": leaves}
        top = {**quiet, "leaf": 0, "name": name, "state": state, "children": [mirror]}
        found: Row = {"name": name, "state": state, "leaf": 0, "children": [top], "errors": "No known data errors"}
        found["scan"] = "scrub repaired 0B in 05:11:09 with 0 errors on Sun Nov  8 05:35:11 2026"
        if self.world.hostile:
            found |= {"scan": hostile.block("scrub"), "errors": hostile.block("files"), "status": hostile.block("status", huge=True)}
        elif state != "ONLINE":
            found |= {
                "status": "One or more devices are faulted in response to persistent errors.",
                "action": "Replace the faulted device.",
            }
        return found


def volume_group() -> Row:
    physical = {"name": "/dev/nvme0n1p3", "size": TIB - 2 * GIB, "free": 16 * GIB, "leaf": 1}
    return {"name": "pve", "size": TIB - 2 * GIB, "free": 16 * GIB, "lvcount": 3, "leaf": 0, "children": [physical]}


def thin_pool() -> Row:
    sizes = {"lv_size": 800 * GIB, "used": 400 * GIB, "metadata_size": 8 * GIB, "metadata_used": 200 * 1024**2}
    return {"lv": "data", "vg": "pve", **sizes, "lv_state": "a", "lv_type": "t", "ctime": "1796091580"}
