"""What a token may do, in the shape of GET /access/permissions."""

from __future__ import annotations

_AUDIT = ("Datastore.Audit", "Mapping.Audit", "Pool.Audit", "SDN.Audit", "Sys.Audit", "VM.Audit", "VM.GuestAgent.Audit")
_ALL = (
    *_AUDIT, "Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Group.Allocate", "Mapping.Modify",
    "Mapping.Use", "Permissions.Modify", "Pool.Allocate", "Realm.Allocate", "Realm.AllocateUser", "SDN.Allocate", "SDN.Use",
    "Sys.AccessNetwork", "Sys.Console", "Sys.Incoming", "Sys.Modify", "Sys.PowerMgmt", "Sys.Syslog", "User.Modify", "VM.Allocate",
    "VM.Backup", "VM.Clone", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk", "VM.Config.HWType",
    "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.Console", "VM.GuestAgent.FileRead",
    "VM.GuestAgent.FileSystemMgmt", "VM.GuestAgent.FileWrite", "VM.GuestAgent.Unrestricted", "VM.Migrate", "VM.PowerMgmt",
    "VM.Replicate", "VM.Snapshot", "VM.Snapshot.Rollback",
)  # fmt: skip
_PATHS = ("/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")
Rights = dict[str, dict[str, int]]

ADMIN: Rights = {path: dict.fromkeys(_ALL, 1) for path in _PATHS}
AUDITOR: Rights = {path: dict.fromkeys(_AUDIT, 1) for path in _PATHS}
NO_RIGHTS: Rights = {}
ONE_GUEST: Rights = {"/vms/101": dict.fromkeys(("VM.Audit", "VM.PowerMgmt", "VM.Backup", "VM.Console"), 1)}
