"""Changes: answered as the real API answers them (a task, null, an object); the cluster itself stays as it is.

Every task of a change has ended as `api.changes_end_as` says, with `api.changes_log` before its last line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cluster.replies import failure, refusal
from tests.served_api import TOKEN_ID, Reply, Request

if TYPE_CHECKING:
    from tests.cluster import ServedCluster

# what the answer is when it is no task
_NULL = (
    ("PUT", "/nodes/{node}/{kind}/{vmid}/config"),
    ("PUT", "/nodes/{node}/{kind}/{vmid}/snapshot/{name}/config"),
    ("POST", "/nodes/{node}/lxc/{vmid}/template"),
    ("PUT", "/nodes/{node}/storage/{storage}/content/{volume}"),
    ("DELETE", "/nodes/{node}/tasks/{upid}"),
    ("DELETE", "/storage/{storage}"),
    ("POST", "/cluster/backup"),
    ("PUT", "/cluster/backup/{id}"),
    ("DELETE", "/cluster/backup/{id}"),
)
# task types below /nodes/{node}: of a VM and of a container where they differ
_TASKS = {
    ("POST", "/{kind}"): ("qmcreate", "vzcreate"),
    ("DELETE", "/{kind}/{vmid}"): ("qmdestroy", "vzdestroy"),
    ("POST", "/{kind}/{vmid}/config"): ("qmconfig", ""),
    ("PUT", "/{kind}/{vmid}/resize"): ("resize", "resize"),
    ("POST", "/{kind}/{vmid}/snapshot"): ("qmsnapshot", "vzsnapshot"),
    ("POST", "/{kind}/{vmid}/snapshot/{name}/rollback"): ("qmrollback", "vzrollback"),
    ("DELETE", "/{kind}/{vmid}/snapshot/{name}"): ("qmdelsnapshot", "vzdelsnapshot"),
    ("POST", "/{kind}/{vmid}/clone"): ("qmclone", "vzclone"),
    ("POST", "/{kind}/{vmid}/migrate"): ("qmigrate", "vzmigrate"),
    ("POST", "/qemu/{vmid}/move_disk"): ("qmmove", ""),
    ("POST", "/lxc/{vmid}/move_volume"): ("", "move_volume"),
    ("POST", "/qemu/{vmid}/template"): ("qmtemplate", ""),
    ("DELETE", "/storage/{storage}/content/{volume}"): ("imgdel", "imgdel"),
    ("POST", "/disks/initgpt"): ("diskinit", "diskinit"),
    ("POST", "/disks/zfs"): ("zfscreate", "zfscreate"),
    ("DELETE", "/disks/zfs/{name}"): ("zfsremove", "zfsremove"),
    ("POST", "/disks/lvm"): ("lvmcreate", "lvmcreate"),
    ("DELETE", "/disks/lvm/{name}"): ("lvmremove", "lvmremove"),
    ("POST", "/disks/lvmthin"): ("lvmthincreate", "lvmthincreate"),
    ("DELETE", "/disks/lvmthin/{name}"): ("lvmthinremove", "lvmthinremove"),
    ("POST", "/disks/directory"): ("dircreate", "dircreate"),
    ("DELETE", "/disks/directory/{name}"): ("dirremove", "dirremove"),
}


class Changes:
    def __init__(self, api: ServedCluster) -> None:
        self.api, self.world = api, api.world
        for method, path in _NULL:
            api.on(method, path, None)
        for (method, path), kinds in _TASKS.items():
            api.on(method, f"/nodes/{{node}}{path}", self._task_of(*kinds))
        api.on("POST", "/nodes/{node}/{kind}/{vmid}/status/{action}", self._power)
        api.on("POST", "/nodes/{node}/vzdump", self._vzdump)
        api.on("POST", "/storage", lambda r: {"storage": r.params["storage"], "type": r.params["type"]})
        api.on("PUT", "/storage/{storage}", lambda r: {"storage": r.vars["storage"], "type": "dir"})
        api.on("PUT", "/nodes/{node}/disks/wipedisk", refusal("Permission check failed (user != root@pam)"))

    def _begun(self, request: Request, kind: str, ident: str) -> Any:
        node = request.vars["node"]
        if node in self.world.offline:
            return Reply(595, "No route to host")
        user, _, token = TOKEN_ID.partition("!")
        ended = self.api.changes_end_as
        log = list(self.api.changes_log)
        return self.world.task(node, kind, ident, age=1, took=1, status=ended, log=log, user=user, token=token).upid

    def _task_of(self, vm: str, container: str) -> Any:
        def answer(request: Request) -> Any:
            lxc = request.vars.get("kind") == "lxc" or "/lxc/" in request.path
            kind = container if lxc else vm
            if request.params.get("archive") or request.params.get("restore") == "1":
                kind = "vzrestore" if lxc else "qmrestore"
            ident = request.vars.get("vmid") or request.params.get("vmid") or request.vars.get("name") or request.params.get("name") or ""
            return self._begun(request, kind, str(ident)) if kind else failure("no such call")

        return answer

    def _power(self, request: Request) -> Any:
        vmid, action = int(request.vars["vmid"]), request.vars["action"]
        guest = self.world.guests.get(vmid)
        if guest is not None and guest.ha and action in ("start", "stop", "shutdown"):
            return self._begun(request, "hastart" if action == "start" else "hastop", str(vmid))
        return self._begun(request, {"qemu": "qm", "lxc": "vz"}[request.vars["kind"]] + action, str(vmid))

    def _vzdump(self, request: Request) -> Any:
        wanted = {int(vmid) for vmid in str(request.params.get("vmid", "")).split(",") if vmid}
        here = [vmid for vmid in wanted if self.world.guests[vmid].node == request.vars["node"]]
        if wanted and not here:
            return "OK"  # none of them lives on this node: nothing was done
        return self._begun(request, "vzdump", str(here[0]) if len(here) == 1 else "")
