"""Which privileges each tool needs, what a token holds, and the `pveum` lines that close the gap.

A privilege is held on a path of the access control tree and, unless an entry says otherwise, on everything below it. The table names the
highest path that makes a tool work everywhere; held further down it works there.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Permissions = Mapping[str, Mapping[str, int]]  # GET /access/permissions: path -> privilege -> 1 when it also holds below


@dataclass(frozen=True, slots=True)
class Need:
    """One of `any_of` on `path`. `part` says what a tool cannot do without it; empty: it cannot do anything."""

    path: str
    any_of: tuple[str, ...]
    part: str = ""

    def __str__(self) -> str:
        return f"{' or '.join(self.any_of)} on {self.path}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a tool works with a token: `lacking` are the needs that are not met everywhere, `only` the paths where they are."""

    state: Literal["works", "partly", "no"]
    lacking: tuple[Need, ...] = ()
    only: tuple[str, ...] = ()


def _need(path: str, *any_of: str, part: str = "") -> Need:
    return Need(path, any_of, part)


_GUESTS = _need("/vms", "VM.Audit")
_NODES = _need("/nodes", "Sys.Audit")
_HOST = _need("/", "Sys.Audit")
_STORES = _need("/storage", "Datastore.Audit", "Datastore.AllocateSpace")
_SPACE = _need("/storage", "Datastore.AllocateSpace")
_ALLOCATE = _need("/vms", "VM.Allocate")
_BRIDGE = _need("/sdn/zones", "SDN.Use")
_MODIFY = _need("/", "Sys.Modify")
# each backup in a listing is left out by Proxmox without these two
_BACKUP_SPACE = _need("/storage", "Datastore.AllocateSpace", "Datastore.Allocate")
_BACKUP_GUEST = _need("/vms", "VM.Backup")
_NEW_GUEST = (_ALLOCATE, _SPACE, _BRIDGE, *(_need("/vms", f"VM.Config.{kind}") for kind in ("CPU", "Memory", "Disk", "Network", "Options")))
_POOLS = (_HOST, _MODIFY, _need("/storage", "Datastore.Allocate", part="storage entries made or removed together with a pool"))
_PRIVILEGED = _need("/", "Sys.Modify", part="privileged containers")
# what stands on a dataset is told by the API
_TENANTS = (
    _need("/vms", "VM.Audit", part="seeing which guests use a dataset"),
    _need("/storage", "Datastore.Audit", "Datastore.AllocateSpace", part="seeing which storages use a dataset"),
)

NEEDS: dict[str, tuple[Need, ...]] = {
    "proxmox_health_overview": (
        _need("/vms", "VM.Audit", part="guests"),
        _need("/nodes", "Sys.Audit", part="load of nodes, tasks of others"),
        _need("/", "Sys.Audit", part="quorum, disks and ZFS pools, backup jobs"),
        _need("/storage", "Datastore.Audit", "Datastore.AllocateSpace", part="storages"),
        _need("/storage", "Datastore.AllocateSpace", "Datastore.Allocate", part="age of backups"),
        _need("/vms", "VM.Backup", part="age of backups"),
    ),
    "proxmox_list_nodes": (_need("/nodes", "Sys.Audit", part="load and memory"),),
    "proxmox_get_node_status": (_NODES,),
    "proxmox_list_vms": (_GUESTS,),
    "proxmox_get_vm_status": (_GUESTS,),
    "proxmox_vm_power": (_GUESTS, _need("/vms", "VM.PowerMgmt")),
    "proxmox_resize_vm": (
        _GUESTS,
        _need("/vms", "VM.Config.CPU", "VM.Config.Memory"),
        _need("/vms", "VM.Config.CPU", part="cores"),
        _need("/vms", "VM.Config.Memory", part="memory"),
    ),
    "proxmox_create_vm": (
        *_NEW_GUEST,
        _need("/vms", "VM.Config.HWType"),
        _need("/vms", "VM.Config.CDROM", part="an ISO image"),
        _need("/vms", "VM.PowerMgmt", part="start afterwards"),
    ),
    "proxmox_create_container": (
        *_NEW_GUEST,
        _need("/vms", "VM.PowerMgmt", part="start afterwards"),
        _PRIVILEGED,
    ),
    "proxmox_list_snapshots": (_GUESTS,),
    "proxmox_snapshot": (_GUESTS, _need("/vms", "VM.Snapshot")),
    "proxmox_list_backups": (_STORES, _BACKUP_SPACE, _BACKUP_GUEST),
    "proxmox_create_backup": (_GUESTS, _SPACE, _BACKUP_GUEST),
    "proxmox_restore_backup": (
        _GUESTS,
        _ALLOCATE,
        _SPACE,
        _BACKUP_GUEST,
        _need("/sdn/zones", "SDN.Use", part="guests with a network card"),
        _need("/vms", "VM.PowerMgmt", part="start afterwards"),
        _PRIVILEGED,
    ),
    "proxmox_list_backup_jobs": (_HOST,),
    "proxmox_list_storage": (_STORES,),
    "proxmox_storage_usage_detail": (
        _STORES,
        _need("/vms", "VM.Config.Disk", part="disks of guests"),
        _need("/storage", "Datastore.AllocateSpace", "Datastore.Allocate", part="backups"),
        _need("/vms", "VM.Backup", part="backups"),
    ),
    "proxmox_list_cluster_storage": (_STORES,),
    "proxmox_list_isos": (_STORES,),
    "proxmox_storage_config": (_need("/storage", "Datastore.Allocate"),),
    "proxmox_list_disks": (_NODES,),
    "proxmox_get_disk_smart": (_HOST,),
    "proxmox_list_lvm": (_HOST,),
    "proxmox_list_lvm_thin": (_HOST,),
    "proxmox_list_zfs": (_HOST,),
    "proxmox_get_zfs_pool": (_HOST,),
    "proxmox_disk_prepare": (_HOST, _need("/", "Sys.Modify", part="a new partition table without SSH")),
    "proxmox_lvm_manage": _POOLS,
    "proxmox_zfs_pool_manage": _POOLS,
    "proxmox_move_disk": (_GUESTS, _need("/vms", "VM.Config.Disk"), _SPACE),
    "proxmox_clone_vm": (
        _GUESTS,
        _need("/vms", "VM.Clone"),
        _ALLOCATE,
        _SPACE,
        _need("/sdn/zones", "SDN.Use", part="guests with a network card"),
    ),
    "proxmox_list_tasks": (_need("/nodes", "Sys.Audit", part="tasks that this token did not start"),),
    "proxmox_get_task_log": (_need("/nodes", "Sys.Audit", part="tasks that this token did not start"),),
    "proxmox_zfs_pool_status": (),
    "proxmox_zfs_list_datasets": (),
    "proxmox_zfs_list_snapshots": (),
    "proxmox_zfs_create_snapshot": (),
    "proxmox_zfs_property": (),
    "proxmox_zfs_dataset": _TENANTS,
    "proxmox_zfs_destroy_snapshots_by_pattern": (
        _need("/vms", "VM.Audit", part="snapshots of guests' disks"),
        _need("/nodes", "Sys.Audit", part="snapshots that a backup may be using"),
    ),
    "proxmox_zfs_scrub": (),
    "proxmox_zfs_send": _TENANTS,
    "proxmox_cleanup_vzdump_snapshots": (_GUESTS, _NODES),
    "proxmox_host_read_exec": (),
    "proxmox_host_exec": (),
    "proxmox_lxc_exec": (_GUESTS,),
    "proxmox_ct_service_action": (_GUESTS,),
    "proxmox_ct_log_tail": (_GUESTS,),
    "proxmox_vm_list_hosts": (),
    "proxmox_vm_exec": (),
    "proxmox_vm_read_file": (),
    "proxmox_audit_verify": (),
}

# tools that go to a node over SSH for some or all of what they do, whatever the token holds
SSH_NODE = frozenset(
    {
        "proxmox_disk_prepare",
        "proxmox_zfs_dataset",
        "proxmox_zfs_property",
        "proxmox_zfs_create_snapshot",
        "proxmox_zfs_list_datasets",
        "proxmox_zfs_list_snapshots",
        "proxmox_zfs_destroy_snapshots_by_pattern",
        "proxmox_zfs_pool_status",
        "proxmox_zfs_scrub",
        "proxmox_zfs_send",
        "proxmox_host_exec",
        "proxmox_host_read_exec",
        "proxmox_lxc_exec",
        "proxmox_ct_service_action",
        "proxmox_ct_log_tail",
        "proxmox_cleanup_vzdump_snapshots",
    }
)
# tools that go to a registered guest over SSH
SSH_GUEST = frozenset({"proxmox_vm_list_hosts", "proxmox_vm_exec", "proxmox_vm_read_file"})
# what a role for reading holds: PVEAuditor, of which versions differ in names
AUDITOR = ("Datastore.Audit", "Mapping.Audit", "Pool.Audit", "SDN.Audit", "Sys.Audit", "VM.Audit")
# listing backups takes two privileges that also allow making and deleting them
BACKUP_LISTING = ("Datastore.AllocateSpace", "VM.Backup")


def judge(needs: Iterable[Need], permissions: Permissions) -> Verdict:
    """Whether these needs are met with these permissions."""
    lacking = [need for need in needs if not _effective(permissions, need.path) & set(need.any_of)]
    if not lacking:
        return Verdict("works")
    vital = [need for need in lacking if not need.part]
    places = [_places(permissions, need) for need in vital]
    if not all(places):
        return Verdict("no", tuple(lacking))
    return Verdict("partly", tuple(lacking), tuple(sorted({path for held in places for path in held})))


def _effective(permissions: Permissions, path: str) -> set[str]:
    """The privileges held on a path: those of the nearest entry, itself or above; from above only what is passed down."""
    place = path
    while place not in permissions:
        if place == "/":
            return set()
        place = place.rpartition("/")[0] or "/"
    return {privilege for privilege, below in permissions[place].items() if place == path or below}


def _places(permissions: Permissions, need: Need) -> list[str]:
    below = need.path.rstrip("/") + "/"
    return [path for path, held in permissions.items() if path.startswith(below) and path != need.path and held.keys() & set(need.any_of)]


def unlock(lacking: Iterable[Need], permissions: Permissions, user: str, token_name: str) -> list[str]:
    """The `pveum` lines that give a token what it lacks, the same on Proxmox VE 8 and 9.

    They go to `/`, where a further role adds to what is there: an entry further down would replace, on its path, all that is passed down
    to it. Only where such an entry exists already do they go to its path. A token with privilege separation holds what both it and
    its user are given, one without what its user is given, so both are named; root@pam holds everything already.
    """
    wanted: dict[str, set[str]] = {}
    for need in lacking:
        wanted.setdefault("/" if _inherits(permissions, need.path) else need.path, set()).add(need.any_of[0])
    token = f"{user}!{token_name}"
    lines = []
    for path, privileges in sorted(wanted.items()):
        role = "McpExtra" + path.replace("/", "-").rstrip("-")
        lines.append(shlex.join(["pveum", "role", "add", role, "--privs", ",".join(sorted(privileges))]))
        if path == "/" and user != "root@pam":
            lines.append(shlex.join(["pveum", "acl", "modify", path, "--users", user, "--tokens", token, "--roles", role]))
            continue
        lines.append(shlex.join(["pveum", "acl", "modify", path, "--tokens", token, "--roles", role]))
        if user != "root@pam":
            lines.append(
                f"# {user} must hold them on {path} too, see: {shlex.join(['pveum', 'user', 'permissions', user, '--path', path])}"
            )
    return lines


def _inherits(permissions: Permissions, path: str) -> bool:
    """True when what is held on a path is just what `/` passes down."""
    passed = {privilege for privilege, below in permissions.get("/", {}).items() if below}
    return path == "/" or _effective(permissions, path) == passed
