"""Storages, their state and what is on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cluster.replies import Need, failure
from tests.cluster.world import Row
from tests.served_api import Reply, Request

if TYPE_CHECKING:
    from tests.cluster import ServedCluster


class Storages:
    def __init__(self, api: ServedCluster) -> None:
        self.api, self.world = api, api.world

        def audit(request: Request) -> Need:
            return f"/storage/{request.vars['storage']}", ("Datastore.Audit", "Datastore.AllocateSpace")

        self.api.get("/storage", lambda _: [row for name, row in self.world.storages.items() if self.api.sees_storage(name)])
        self.api.get("/storage/{storage}", self._storage_config)
        self.api.get_node("/storage", self._node_storages)
        self.api.get_node("/storage/{storage}/status", self._storage_status, audit)
        self.api.get_node("/storage/{storage}/content", self._content, audit)
        self.api.get_node("/storage/{storage}/content/{volume}", self._volume, audit)

    def _storage_config(self, request: Request) -> Any:
        name = request.vars["storage"]
        if (refused := self.api.refused((f"/storage/{name}", ("Datastore.Allocate",)))) is not None:
            return refused
        return self.world.storages.get(name) or failure(f"storage '{name}' does not exist")

    def _state(self, name: str) -> Row:
        config = self.world.storages[name]
        used, total = self.world.usage(name)
        enabled, active = int(not config.get("disable")), int(total > 0)
        row: Row = {
            "type": config["type"],
            "content": config["content"],
            "shared": config.get("shared", 0),
            "enabled": enabled,
            "active": active,
        }
        row |= {"total": total, "used": used, "avail": total - used}
        return row

    def _node_storages(self, request: Request, node: str) -> Any:
        if self.api.hanging_storage is not None and self.world.on_node(self.api.hanging_storage, node):
            return Reply(hang=True)
        p = request.params
        rows = []
        for name, config in self.world.storages.items():
            if not self.world.on_node(name, node) or not self.api.sees_storage(name) or p.get("storage", name) != name:
                continue
            if (p.get("enabled") == "1" and config.get("disable")) or ("content" in p and p["content"] not in config["content"].split(",")):
                continue
            row = {"storage": name, **self._state(name)}
            rows.append({**row, "used_fraction": row["used"] / row["total"]} if row["active"] else row)
        return rows

    def _unserved(self, name: str, node: str) -> Reply | None:
        if name not in self.world.storages:
            return failure(f"storage '{name}' does not exist")
        if self.world.storages[name].get("disable"):
            return failure(f"storage '{name}' is disabled")
        if not self.world.on_node(name, node):
            return failure(f"storage '{name}' is not available on node '{node}'")
        return Reply(hang=True) if name == self.api.hanging_storage else None

    def _storage_status(self, request: Request, node: str) -> Any:
        name = request.vars["storage"]
        if name not in self.world.storages:
            return Reply(400, errors={"storage": "No such storage."}, message="Parameter verification failed.")
        return self._unserved(name, node) or self._state(name)

    def _content(self, request: Request, node: str) -> Any:
        name, p = request.vars["storage"], request.params
        if (unserved := self._unserved(name, node)) is not None:
            return unserved
        rows = [row for row in self.world.volumes_of(name, node) if p.get("content", row["content"]) == row["content"]]
        return [row for row in rows if p.get("vmid", str(row.get("vmid"))) == str(row.get("vmid")) and self._sees_volume(name, row)]

    def _sees_volume(self, storage: str, row: Row) -> bool:
        place, guest = f"/storage/{storage}", f"/vms/{row.get('vmid')}"
        if self.api.can(place, "Datastore.Allocate") or row["content"] in ("iso", "vztmpl", "snippets", "import"):
            return True
        if row["content"] == "backup":
            return self.api.can(place, "Datastore.AllocateSpace") and self.api.can(guest, "VM.Backup")
        return self.api.can(place, "Datastore.Audit") and self.api.can(guest, "VM.Config.Disk")

    def _volume(self, request: Request, node: str) -> Any:
        name, volume = request.vars["storage"], request.vars["volume"]
        if (unserved := self._unserved(name, node)) is not None:
            return unserved
        for row in self.world.volumes_of(name, node):
            if row["volid"] == volume:
                kept = {key: row[key] for key in ("notes", "protected") if key in row}
                return {"size": row["size"], "used": row["size"], "format": "raw", "path": f"/mnt/pve/{name}/{volume}", **kept}
        return failure(f"volume_size_info on '{volume}' failed - no format")
