"""Rows: Proxmox VE's own commands, corosync and Ceph; and the API paths that `pvesh get` may read."""

from __future__ import annotations

from proxmox_mcp.read_commands.grammar import Row

_OUT = "--output-format=json|json-pretty|text|yaml --noborder[=BOOL]? --noheader[=BOOL]? --human-readable[=BOOL]? --quiet[=BOOL]?"
_PVESH = (
    f"{_OUT} --noproxy[=BOOL]? --type=WORD --node=NAME --vmid=VMID --storage=STORAGE --content=LIST --format=WORD --limit=SMALL"
    f" --start=NUMBER"
    " --lastentries=SMALL --since=DATE --until=DATE --service=SERVICE --source=WORD --errors[=BOOL]? --statusfilter=LIST --typefilter=WORD"
    " --userfilter=PVEID --full[=BOOL]? --enabled[=BOOL]? --current[=BOOL]? --snapshot=SNAPNAME --timeframe=hour|day|week|month|year|decade"
    " --cf=AVERAGE|MAX --disk=DEVICE --healthonly[=BOOL]? --skipsmart[=BOOL]? --include-partitions[=BOOL]? --feature=snapshot|clone|copy"
    " --guest=VMID --max=SMALL --verbose[=BOOL]?"
)
_CEPH = "-f,--format=plain|json|json-pretty|xml|xml-pretty --connect-timeout=SMALL"
_CEPH_WHY = "no -w: it never ends; no auth, config-key and config: they show keys"
_NODE_LIST = f"--enabled[=BOOL]? --target=NAME --content=LIST --format[=BOOL]? --storage=STORAGE {_OUT}"

ROWS = (
    Row("/usr/bin/pveversion", "", "--verbose -v"),
    Row("/usr/bin/pvecm", "", verb="status"),
    Row("/usr/bin/pvecm", "", verb="nodes"),
    Row("/usr/sbin/pvesm", "", _NODE_LIST, verb="status", style="perl"),
    Row("/usr/sbin/pvesm", "STORAGE", f"--content=LIST --vmid=VMID {_OUT}", verb="list", style="perl"),
    Row("/usr/sbin/pvesm", "VOLUME", verb="path", style="perl"),
    Row("/usr/sbin/pvesm", verb="apiinfo", style="perl"),
    Row("/usr/sbin/qm", "", "--full[=BOOL]?", verb="list", style="perl"),
    Row(
        "/usr/sbin/qm",
        "VMID",
        f"--current[=BOOL]? --snapshot=SNAPNAME {_OUT}",
        verb="config",
        style="perl",
        why="Proxmox masks cipassword; so do we",
    ),
    Row("/usr/sbin/qm", "VMID", f"--verbose[=BOOL]? {_OUT}", verb="status", style="perl"),
    Row("/usr/sbin/qm", "VMID", _OUT, verb="pending", style="perl"),
    Row("/usr/sbin/qm", "VMID", _OUT, verb="listsnapshot", style="perl"),
    Row("/usr/sbin/qm", "VMID", "--pretty[=BOOL]? --snapshot=SNAPNAME", verb="showcmd", style="perl"),
    Row("/usr/sbin/pct", verb="list", style="perl"),
    Row("/usr/sbin/pct", "VMID", f"--current[=BOOL]? --snapshot=SNAPNAME {_OUT}", verb="config", style="perl"),
    Row("/usr/sbin/pct", "VMID", f"--verbose[=BOOL]? {_OUT}", verb="status", style="perl", why="not df: on a stopped container it mounts"),
    Row("/usr/sbin/pct", "VMID", _OUT, verb="pending", style="perl"),
    Row("/usr/sbin/pct", "VMID", _OUT, verb="listsnapshot", style="perl"),
    Row("/usr/sbin/pct", verb="cpusets", style="perl"),
    Row("/usr/bin/pvesh", "APIREAD", _PVESH, verb="get", style="perl", why="the paths of API_READS: no secret, no side effect"),
    Row("/usr/bin/pvesh", "APIINDEX", _OUT, verb="ls", style="perl", why="names of children"),
    Row(
        "/usr/bin/pvesh",
        "APIPATH",
        "--verbose[=BOOL]? --command=get|set|create|delete --returns[=BOOL]?",
        verb="usage",
        style="perl",
        why="prints documentation",
    ),
    Row("/usr/sbin/ha-manager", "", "--verbose[=BOOL]?", verb="status", style="perl"),
    Row("/usr/sbin/ha-manager", "", "--type=ct|vm", verb="config", style="perl"),
    Row("/usr/sbin/ha-manager", verb="groupconfig", style="perl"),
    Row("/usr/sbin/ha-manager", "", f"--type=WORD {_OUT}", verb="rules list", style="perl"),
    Row("/usr/sbin/ha-manager", "", f"--type=WORD {_OUT}", verb="rules config", style="perl"),
    Row("/usr/bin/pvesr", "", "--guest=VMID", verb="status", style="perl"),
    Row("/usr/bin/pvesr", verb="list", style="perl"),
    Row("/usr/bin/pvesr", "REPLICATION", _OUT, verb="read", style="perl"),
    Row("/usr/sbin/pve-firewall", verb="status", style="perl"),
    Row("/usr/sbin/pve-firewall", verb="localnet", style="perl"),
    Row("/usr/sbin/pveum", "", f"--full[=BOOL]? --enabled[=BOOL]? {_OUT}", verb="user list", style="perl"),
    Row("/usr/sbin/pveum", "PVEID?", f"--path=APIPATH {_OUT}", verb="user permissions", style="perl"),
    Row("/usr/sbin/pveum", "PVEID", _OUT, verb="user token list", style="perl", why="ids only: Proxmox never shows a token's secret again"),
    Row("/usr/sbin/pveum", "", _OUT, verb="role list", style="perl"),
    Row("/usr/sbin/pveum", "", _OUT, verb="group list", style="perl"),
    Row("/usr/sbin/pveum", "", _OUT, verb="acl list", style="perl"),
    Row("/usr/sbin/pveum", "", _OUT, verb="pool list", style="perl"),
    Row("/usr/sbin/pveum", "", _OUT, verb="realm list", style="perl"),
    Row("/usr/bin/pvenode", "", f"--property=WORD {_OUT}", verb="config get", style="perl"),
    Row("/usr/bin/pvenode", "", _OUT, verb="cert info", style="perl"),
    Row(
        "/usr/bin/pvenode",
        "",
        f"--errors[=BOOL]? --limit=SMALL --start=NUMBER --vmid=VMID --typefilter=WORD --source=WORD --since=NUMBER --until=NUMBER {_OUT}",
        verb="task list",
        style="perl",
    ),
    Row("/usr/bin/pvenode", "UPID", f"--start=NUMBER {_OUT}", verb="task log", style="perl"),
    Row("/usr/bin/pvenode", "UPID", _OUT, verb="task status", style="perl"),
    Row("/usr/bin/pveam", "STORAGE", verb="list", style="perl"),
    Row(
        "/usr/bin/pveam",
        "",
        "--section=system|turnkeylinux|mail",
        verb="available",
        style="perl",
        why="reads the local index; `pveam update` fetches it",
    ),
    Row("/usr/sbin/corosync-cfgtool", "", "!-s !-n -b", why="no -R, -r, -k, -H, -a"),
    Row("/usr/sbin/corosync-quorumtool", "", "!-s !-l -i -p", why="no -e, -v, -f: they change votes; no -m: it never ends"),
    # Ceph
    Row("/usr/bin/ceph", "", f"!-s,--status {_CEPH}", why=_CEPH_WHY),
    Row("/usr/bin/ceph", "", "!-v,--version"),
    Row("/usr/bin/ceph", "status|versions|quorum_status|time-sync-status|features", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "health|df detail?", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "osd stat|tree|df|dump|perf|lspools|utilization|blocked-by|ls", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "osd df tree|plain", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "osd tree up|down|in|out", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "osd find|metadata NUMBER", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "osd pool ls detail?", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "osd pool stats|autoscale-status NAME?", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "osd crush tree|dump|class|rule [ ls ]", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "mon|mgr|mds|pg stat", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "fs ls|status|dump", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/ceph", "crash|device ls", _CEPH, why=_CEPH_WHY),
    Row("/usr/bin/pveceph", verb="status", style="perl"),
    Row("/usr/bin/pveceph", "", _OUT, verb="pool ls", style="perl"),
)
