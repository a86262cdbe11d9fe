"""Every tool called: reads, dry runs and real runs with as many arguments as fit, against a served cluster and a node's shell.

with rig(tmp_path, hostile=True) as world, serving(tmp_path, world.environment) as server:
    for tool, arguments in world.calls(): ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxmox_mcp import registry
from tests.cluster import ServedCluster, disks, hostile, served_cluster
from tests.cluster.world import GIB
from tests.protocol.node_shell import PASSWORD, NodeShell, node_shell
from tests.served_api import SECRET, environment
from tests.zfs.node import Node

Call = tuple[str, dict[str, Any]]
HMAC_KEY = "9f2c6d1e8b7a4c3d5e6f708192a3b4c5"
NEW_PASSWORD = "tr0ub4dor-and-3"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUBLICPUBLICPUBLICPUBLICPUBLICPUBLICPUBL ops@lab"
SECRETS = (SECRET, PASSWORD, HMAC_KEY, NEW_PASSWORD, hostile.SECRET_WORD, hostile.KEY_BODY)
_FLAGS = {"confirm": True, "i_understand_data_loss": True, "reason": "every call"}


@dataclass
class Rig:
    """The served cluster, the node's shell, and the variables of a server that reaches both."""

    api: ServedCluster
    shell: NodeShell
    environment: dict[str, str]
    file: Path  # on the node, on the guest and in containers
    upid: str
    send_dir: Path

    def archive_of(self, vmid: int) -> str:
        """A backup of this guest."""
        return next(str(row["volid"]) for row in self.api.world.volumes["nas", None] if row.get("vmid") == vmid)

    def reads(self) -> list[Call]:
        """Every reading tool and action; those that can, once more as JSON."""
        path = str(self.file)
        found: list[Call] = [
            ("health_overview", {}),
            ("health_overview", {"node": "pve1"}),
            ("list_nodes", {}),
            ("list_nodes", {"fields": ["node", "cpu"], "limit": 2}),
            ("get_node_status", {"node": "pve1"}),
            ("list_vms", {}),
            ("list_vms", {"node": "pve1", "status": "running", "guest_type": "qemu", "name": "w", "limit": 1}),
            ("list_vms", {"vmid": 100, "fields": ["vmid", "name", "tags", "lock", "pool", "hastate"]}),
            ("get_vm_status", {"vmid": 100}),
            ("get_vm_status", {"vmid": 103, "node": "pve1", "vm_type": "lxc"}),
            ("list_snapshots", {"vmid": 100}),
            ("list_snapshots", {"vmid": 103, "node": "pve1", "vm_type": "lxc", "fields": ["name", "description"]}),
            ("list_tasks", {}),
            ("list_tasks", {"node": "pve1", "typefilter": "vzdump", "vmid": 100, "errors_only": True, "limit": 3}),
            ("get_task_log", {"upid": self.upid}),
            ("get_task_log", {"upid": self.upid, "node": "pve1", "start": 1, "limit": 50}),
            ("list_backups", {}),
            ("list_backups", {"storage": "nas", "node": "pve1", "vmid": 100, "fields": ["vmid", "volid", "notes"], "limit": 1}),
            ("list_backup_jobs", {}),
            ("list_storage", {}),
            ("list_storage", {"node": "pve1"}),
            ("storage_usage_detail", {"storage": "nas"}),
            ("storage_usage_detail", {"storage": "local-lvm", "node": "pve1", "content_filter": "images,rootdir", "top_n": 2}),
            ("list_cluster_storage", {}),
            ("list_isos", {}),
            ("list_isos", {"node": "pve1", "storage": "local", "content": "vztmpl"}),
            ("list_disks", {}),
            ("list_disks", {"node": "pve1", "include_partitions": True}),
            ("get_disk_smart", {"node": "pve1", "disk": "/dev/nvme0n1"}),
            ("get_disk_smart", {"node": "pve1", "disk": "sda"}),
            ("get_disk_smart", {"node": "pve1", "disk": "sda", "healthonly": True}),
            ("list_lvm", {}),
            ("list_lvm", {"node": "pve1"}),
            ("list_lvm_thin", {}),
            ("list_lvm_thin", {"node": "pve1"}),
            ("list_zfs", {}),
            ("list_zfs", {"node": "pve3"}),
            ("get_zfs_pool", {"node": "pve3", "name": "tank"}),
            ("audit_verify", {"tail": 100}),
            ("audit_verify", {"which": "host", "tail": 5}),
            ("vm_list_hosts", {}),
            ("vm_read_file", {"alias": "web", "path": path}),
            ("vm_read_file", {"alias": "web", "path": path, "max_bytes": 300}),
            ("host_read_exec", {"command": "journalctl -n 50 --no-pager", "node": "pve1", "reason": "look"}),
            ("host_read_exec", {"command": f"cat {path}", "max_chars": 5_000, "timeout": 20}),
            ("ct_log_tail", {"vmid": 103, "service": "nginx", "lines": 50, "grep": "x", "node": "pve1"}),
            ("ct_log_tail", {"vmid": 103, "mode": "file", "path": path}),
            ("ct_service_action", {"vmid": 103, "service": "nginx", "action": "status"}),
            ("zfs_list_datasets", {"node": "pve1", "include_snapshots": True}),
            ("zfs_list_datasets", {"pool": "tank"}),
            ("zfs_list_snapshots", {}),
            ("zfs_list_snapshots", {"dataset": "tank/data", "contains": "autosnap", "limit": 1}),
            ("zfs_pool_status", {}),
            ("zfs_pool_status", {"pool": "tank", "verbose": True, "node": "pve1"}),
            ("zfs_property", {"name": "tank/data"}),
            ("zfs_property", {"name": "tank/data", "action": "get", "property": "quota,compression", "node": "pve1"}),
        ]
        as_json = [(name, {**given, "response_format": "json"}) for name, given in found if _knows(name, "response_format")]
        return [*found, *as_json]

    def changes(self) -> list[Call]:
        """Every changing tool and action, without flags, in an order in which the modelled node can follow."""
        template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
        iso = "nas:iso/debian-13.1.0-amd64-netinst.iso"
        path = str(self.file)
        return [
            ("vm_power", {"vmid": 100, "action": "stop", "node": "pve1", "vm_type": "qemu"}),
            ("vm_power", {"vmid": 100, "action": "shutdown", "timeout": 30}),
            ("vm_power", {"vmid": 103, "action": "reboot", "vm_type": "lxc"}),
            ("vm_power", {"vmid": 104, "action": "start"}),
            ("vm_power", {"vmid": 111, "action": "start"}),
            ("vm_power", {"vmid": 107, "action": "shutdown", "timeout": 30}),
            ("vm_power", {"vmid": 103, "action": "stop"}),
            ("resize_vm", {"vmid": 104, "memory_mb": 4096, "cores": 4, "node": "pve2", "vm_type": "qemu"}),
            ("resize_vm", {"vmid": 103, "memory_mb": 1024, "cores": 2}),
            ("snapshot", {"vmid": 100, "action": "create", "snapname": "s1", "description": "first line\nsecond", "vmstate": True}),
            ("snapshot", {"vmid": 103, "action": "create", "snapname": "s1", "node": "pve1", "vm_type": "lxc"}),
            ("snapshot", {"vmid": 100, "action": "rollback", "snapname": "nightly"}),
            ("snapshot", {"vmid": 100, "action": "delete", "snapname": "nightly", "force": True}),
            (
                "create_backup",
                {"vmid": 100, "storage": "nas", "mode": "snapshot", "compress": "zstd", "notes": "by hand", "protected": True},
            ),
            ("create_backup", {"vmid": 103, "storage": "nas", "mode": "stop", "compress": "none", "prune": True, "node": "pve1"}),
            (
                "restore_backup",
                {"vmid": 104, "archive": self.archive_of(104), "vm_type": "qemu", "storage": "local-lvm", "force": True, "node": "pve2"},
            ),
            ("restore_backup", {"vmid": 311, "archive": self.archive_of(103), "vm_type": "lxc", "storage": "local-lvm", "node": "pve1"}),
            ("restore_backup", {"vmid": 310, "archive": self.archive_of(104), "unique": True, "start_after_restore": True, "node": "pve1"}),
            (
                "create_vm",
                {
                    "vmid": 300,
                    "node": "pve1",
                    "name": "new-vm",
                    "cores": 2,
                    "sockets": 1,
                    "memory_mb": 1024,
                    "ostype": "l26",
                    "disk_storage": "local-lvm",
                    "disk_gb": 8,
                    "bridge": "vmbr0",
                    "iso": iso,
                    "start": True,
                },
            ),
            (
                "create_container",
                {
                    "node": "pve1",
                    "vmid": 301,
                    "ostemplate": template,
                    "hostname": "new-ct",
                    "cores": 1,
                    "memory_mb": 512,
                    "swap_mb": 256,
                    "disk_storage": "local-lvm",
                    "disk_gb": 4,
                    "bridge": "vmbr0",
                    "ip": "10.77.0.50/24",
                    "gateway": "10.77.0.1",
                    "password": NEW_PASSWORD,
                    "ssh_public_key": PUBLIC_KEY,
                    "unprivileged": True,
                    "nesting": True,
                    "start": True,
                },
            ),
            (
                "clone_vm",
                {
                    "vmid": 100,
                    "newid": 302,
                    "name": "copy",
                    "target_storage": "local-lvm",
                    "full": True,
                    "description": "a copy",
                    "node": "pve1",
                    "vm_type": "qemu",
                },
            ),
            ("clone_vm", {"vmid": 103, "newid": 303, "full": True, "snapname": "nightly"}),
            ("clone_vm", {"vmid": 108, "full": False}),
            ("move_disk", {"vmid": 102, "disk": "scsi0", "target_storage": "fast", "delete_source": False, "node": "pve3"}),
            (
                "storage_config",
                {"action": "add_zfs", "storage": "bulk", "pool": "tank/bulk", "content": "images,rootdir", "sparse": True, "nodes": "pve3"},
            ),
            ("move_disk", {"vmid": 111, "disk": "rootfs", "target_storage": "fast", "vm_type": "lxc"}),
            ("storage_config", {"action": "add_dir", "storage": "dump", "path": "/srv/dump", "content": "backup", "nodes": "pve1,pve2"}),
            ("storage_config", {"action": "remove", "storage": "oldnas"}),
            ("disk_prepare", {"action": "init_gpt", "disk": "/dev/sdc", "node": "pve1", "uuid": "1b6adfab-a1e5-4627-a32a-6b2548fe0df3"}),
            ("disk_prepare", {"action": "wipe", "disk": "sdc", "node": "pve1", "via": "ssh"}),
            ("lvm_manage", {"action": "create_vg", "name": "vg1", "device": "/dev/sdc", "node": "pve1", "add_storage": False}),
            ("lvm_manage", {"action": "create_thin", "name": "thin1", "device": "/dev/sdc", "node": "pve2"}),
            ("lvm_manage", {"action": "destroy_vg", "name": "spare", "node": "pve2", "cleanup_disks": True}),
            ("lvm_manage", {"action": "destroy_thin", "name": "idle", "volume_group": "spare", "node": "pve3", "cleanup_config": False}),
            ("lvm_manage", {"action": "destroy_vg", "name": "pve", "node": "pve1", "cleanup_disks": True, "cleanup_config": True}),
            ("lvm_manage", {"action": "destroy_thin", "name": "data", "volume_group": "pve", "node": "pve1"}),
            (
                "zfs_pool_manage",
                {
                    "action": "create",
                    "name": "bulk",
                    "devices": ["/dev/sdc"],
                    "raidlevel": "single",
                    "ashift": 13,
                    "compression": "zstd",
                    "add_storage": True,
                    "node": "pve1",
                },
            ),
            ("zfs_pool_manage", {"action": "destroy", "name": "tank", "node": "pve3", "cleanup_disks": True}),
            ("zfs_dataset", {"action": "create", "name": "tank/new/deep", "parents": True, "properties": {"compression": "lz4"}}),
            ("zfs_property", {"action": "set", "name": "tank/data", "property": "quota", "value": "10G", "node": "pve1"}),
            ("zfs_create_snapshot", {"dataset": "tank/data", "snapname": "byhand", "recursive": True, "node": "pve1"}),
            ("zfs_scrub", {"pool": "tank", "node": "pve1"}),
            ("zfs_scrub", {"pool": "tank", "stop": True}),
            ("zfs_send", {"source": "tank/data@before", "target_dataset": "tank/backup/copy", "raw": True, "node": "pve1"}),
            ("zfs_send", {"source": "tank/data@before", "target_file": str(self.send_dir / "data.zfs"), "replication": True}),
            ("zfs_destroy_snapshots_by_pattern", {"dataset": "tank/data", "pattern": "autosnap_*", "recursive": True, "max_delete": 10}),
            ("cleanup_vzdump_snapshots", {"dataset": "tank/data", "min_age_minutes": 0, "node": "pve1"}),
            ("zfs_dataset", {"action": "destroy", "name": "tank/share-clone", "recursive": True, "node": "pve1"}),
            ("host_exec", {"command": f"cat {path}; cat {path} >&2; exit 3", "node": "pve1", "timeout": 30}),
            ("vm_exec", {"alias": "web", "command": f"cat {path}; export password={NEW_PASSWORD}"}),
            ("lxc_exec", {"vmid": 103, "command": f"cat {path}", "node": "pve1"}),
            ("ct_service_action", {"vmid": 103, "service": "nginx", "action": "restart", "node": "pve1"}),
        ]

    def calls(self) -> list[Call]:
        """All of them: reads, dry runs, real runs, and the log of it all."""
        logs: list[Call] = [("audit_verify", {"tail": 200}), ("audit_verify", {"tail": 200, "response_format": "json"}), ("list_tasks", {})]
        return [*self.reads(), *map(preview, self.changes()), *map(flagged, self.changes()), *logs]


def preview(call: Call) -> Call:
    return call[0], {**call[1], "dry_run": True}


def flagged(call: Call) -> Call:
    """With every flag that the tool knows, and waiting for the task."""
    name, given = call
    more = {flag: value for flag, value in {**_FLAGS, "wait_seconds": 5, "dry_run": False}.items() if _knows(name, flag)}
    return name, {**given, **more}


def _knows(name: str, argument: str) -> bool:
    return argument in next(tool.model.model_fields for tool in registry.all_tools() if tool.name == f"proxmox_{name}")


@contextmanager
def rig(tmp_path: Path, *, hostile_texts: bool, version: str = "9.2.11") -> Iterator[Rig]:
    """A cluster of three nodes with troubles; pve1 has a shell with ZFS, a registered guest and a container that answer in it."""
    said = hostile.block("log", huge=True) if hostile_texts else "one line\nanother line\n"
    file = tmp_path / "said.txt"
    file.write_bytes(said.encode("utf-8", "surrogateescape"))
    send_dir = tmp_path / "dumps"
    send_dir.mkdir()
    show = f"cat {file}"
    programs = dict.fromkeys(("journalctl", "systemctl"), show)
    programs |= dict.fromkeys(("wipefs", "sgdisk"), f"{show} | head -c 3000")
    programs["udevadm"] = 'case "$*" in *ID_SERIAL_SHORT*) echo 58D0A00ATEST;; esac'
    node = Node.sample()
    if hostile_texts:
        _speaks(node, said)
    with (
        served_cluster(troubles=True, hostile=hostile_texts, version=version) as api,
        node_shell(tmp_path, node=node, programs=programs) as shell,
    ):
        if hostile_texts:
            api.changes_log = said.split("\n")
        _spare(api)
        api.world.guests[111].status = "stopped"
        upid = next(task.upid for task in api.world.tasks.values() if task.type == "vzdump" and task.node == "pve1")
        guest = {"host": "127.0.0.1", "port": shell.port, "user": "root", "password": PASSWORD, "known_hosts": str(shell.known_hosts)}
        hosts = tmp_path / "vm_ssh_hosts.json"
        hosts.write_text(json.dumps({"web": {**guest, "description": said[:2_000]}, "wrong": {"user": said[:200]}}))
        hosts.chmod(0o600)
        more = {
            "PROXMOX_VM_SSH_HOSTS": str(hosts),
            "PROXMOX_AUDIT_DIR": str(tmp_path / "audit"),
            "PROXMOX_AUDIT_HMAC_KEY": HMAC_KEY,
            "PROXMOX_ZFS_SEND_DIRS": str(send_dir),
        }
        yield Rig(api, shell, {**environment(api), **shell.environment, **more}, file, upid, send_dir)


def _speaks(node: Node, said: str) -> None:
    """What the node's pool and a property of a dataset say is `said`."""
    node.datasets["tank/data"]["local"]["org.lab:note"] = said.partition("\n")[0].replace("\t", " ")
    words = f"status: {said[:5_000]}\n  scan: none requested\nconfig:\n\nerrors: {said[:2_000]}"
    node.pools["tank"]["status"] = f"  pool: tank\n state: ONLINE\n{words}\n"


def _spare(api: ServedCluster) -> None:
    """A volume group and a thin pool that nobody uses, besides those of the cluster."""
    group = {"name": "spare", "size": GIB, "free": GIB, "lvcount": 0, "leaf": 0, "children": [{"name": "/dev/sdd", "size": GIB, "leaf": 1}]}
    thin = {"lv": "idle", "vg": "spare", "lv_size": GIB, "used": 0, "metadata_size": 4_000_000, "metadata_used": 0, "lv_type": "t"}
    api.on("GET", "/nodes/{node}/disks/lvm", {"leaf": 0, "children": [disks.volume_group(), group]})
    api.on("GET", "/nodes/{node}/disks/lvmthin", [disks.thin_pool(), thin])
