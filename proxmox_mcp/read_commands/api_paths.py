"""The API paths that `pvesh get` and `pvesh ls` may read: no secret in the answer, no side effect, no request to elsewhere.

pvesh is root@pam: no token's limits apply. Left out on purpose: tokens, second factors, tickets, realms (client keys), ACME accounts and
plugins, notification endpoints, metric servers, SDN's DNS and IPAM (API keys), the join information, subscription, cloud-init, the agent's
file-read and exec-status, file-restore, scans and URL queries (they connect elsewhere), extractconfig, Ceph's configuration, reports, rrd
(it draws a file) and everything that opens a console.
"""

from __future__ import annotations

import re

_FIREWALL = (
    "firewall/rules firewall/rules/* firewall/options firewall/aliases firewall/aliases/* firewall/ipset firewall/ipset/* firewall/refs"
)
_GUEST = f"config pending status status/current snapshot snapshot/* snapshot/*/config feature migrate rrddata firewall/log {_FIREWALL}"
_AGENT = (
    "agent/info agent/get-fsinfo agent/get-host-name agent/get-memory-block-info agent/get-memory-blocks agent/get-osinfo agent/get-time"
    " agent/get-timezone agent/get-users agent/get-vcpus agent/network-get-interfaces"
)
# below each base: paths, `*` is one part
READS = {
    "": "version cluster nodes pools pools/* storage storage/* access",
    "/access": "acl domains groups groups/* permissions roles roles/* users",
    "/cluster": (
        "resources status tasks log nextid options backup backup/* backup/*/included_volumes backup-info backup-info/not-backed-up"
        " replication"
        " replication/* ceph ceph/flags ceph/flags/* ceph/metadata ceph/status config config/apiversion config/nodes config/totem"
        " config/qdevice"
        " firewall firewall/groups firewall/groups/* firewall/groups/*/* firewall/macros ha ha/groups ha/groups/* ha/resources"
        " ha/resources/*"
        " ha/rules ha/rules/* ha/status ha/status/current ha/status/manager_status jobs jobs/realm-sync jobs/realm-sync/*"
        " jobs/schedule-analyze"
        " mapping mapping/dir mapping/dir/* mapping/pci mapping/pci/* mapping/usb mapping/usb/* notifications notifications/matchers"
        " notifications/matchers/* notifications/matcher-fields notifications/matcher-field-values notifications/targets qemu"
        " qemu/cpu-flags"
        " qemu/custom-cpu-models qemu/custom-cpu-models/* sdn sdn/vnets sdn/vnets/* sdn/vnets/*/subnets sdn/vnets/*/subnets/* sdn/zones"
        f" sdn/zones/* sdn/fabrics sdn/fabrics/all bulk-action {_FIREWALL}"
    ),
    "/nodes/*": (
        "status version time dns hosts netstat config network network/* services services/* services/*/state syslog journal tasks tasks/*"
        " tasks/*/log tasks/*/status rrddata aplinfo apt apt/repositories apt/update apt/versions capabilities capabilities/qemu"
        " capabilities/qemu/cpu capabilities/qemu/cpu-flags capabilities/qemu/machines capabilities/qemu/migration certificates"
        " certificates/info"
        " disks disks/directory disks/list disks/lvm disks/lvmthin disks/smart disks/zfs disks/zfs/* hardware hardware/pci hardware/pci/*"
        " hardware/pci/*/mdev hardware/usb qemu lxc replication replication/* replication/*/log replication/*/status storage storage/*"
        " storage/*/content storage/*/status storage/*/rrddata storage/*/prunebackups sdn sdn/zones sdn/zones/* sdn/zones/*/content"
        " sdn/zones/*/bridges vzdump/defaults ceph ceph/cmd-safety ceph/crush ceph/fs ceph/log ceph/mds ceph/mgr ceph/mon ceph/osd"
        " ceph/osd/*"
        " ceph/osd/*/lv-info ceph/osd/*/metadata ceph/pool ceph/pool/* ceph/pool/*/status ceph/releases ceph/rules ceph/status firewall"
        f" firewall/log {_FIREWALL}"
    ),
    "/nodes/*/qemu/[0-9]+": f"{_GUEST} {_AGENT}",
    "/nodes/*/lxc/[0-9]+": f"{_GUEST} interfaces",
}
# `ls` shows the names of children; these have nothing else to read.
INDEXES = (
    "/ /nodes/* /nodes/*/qemu/[0-9]+ /nodes/*/lxc/[0-9]+ /nodes/*/qemu/[0-9]+/agent /nodes/*/qemu/[0-9]+/firewall"
    " /nodes/*/lxc/[0-9]+/firewall"
)
_PART = r"[A-Za-z0-9][A-Za-z0-9_.:@!%+,-]*"


def _pattern(paths: list[str]) -> str:
    return "|".join(re.sub(r"(?<=/)\*", lambda _: _PART, path.replace(".", r"\.")) for path in paths)


_READ_PATHS = [f"{base}/{path}" for base, paths in READS.items() for path in paths.split()]
READ = _pattern(_READ_PATHS)
INDEX = _pattern([*_READ_PATHS, *INDEXES.split()])
