"""Rows: addresses, routes, bridges, sockets and packet filters.

iproute2 takes any prefix of any word ("ip l s vmbr0 up" is `link set`), so its rows list the words that are understood, whole.
"""

from __future__ import annotations

from proxmox_mcp.read_commands.grammar import Row

_IP_LOOK = (
    "( -4|-6|-0|-s|-stats|-statistics|-d|-details|-j|-json|-p|-pretty|-br|-brief|-o|-oneline|-h|-human|-human-readable|-iec|-N|-Numeric"
    "|-r|-resolve|-c|-color|-c=auto|-c=always|-c=never|-color=auto|-color=always|-color=never | -f|-family inet|inet6|link|bridge|mpls )*"
)
_SHOW = "show|sh|list|lst|ls"
_IP_WHY = "no -b, -batch, -n, -force, -a; no monitor, no netns exec"
_BRIDGE = "( -s|-stats|-statistics|-d|-details|-j|-json|-p|-pretty|-o|-oneline|-c|-color|-compressvlans )*"
_TC = "( -s|-stats|-statistics|-d|-details|-j|-json|-p|-pretty|-g|-graph )*"
_SS = (
    "-n,--numeric -r,--resolve -a,--all -l,--listening -o,--options -e,--extended -m,--memory -p,--processes -T,--threads -i,--info --tos"
    " --cgroup"
    " --inet-sockopt -s,--summary -t,--tcp -u,--udp -d,--dccp -w,--raw -x,--unix -S,--sctp -M,--mptcp --vsock --tipc --xdp -4,--ipv4"
    " -6,--ipv6 -0,--packet"
    " -H,--no-header -O,--oneline -Z,--context -z,--contexts -b,--bpf -V,--version"
    " -f,--family=inet|inet6|unix|link|netlink|vsock|tipc|xdp -A,--query,--socket=LIST"
)
_TABLES = "-n,--numeric -v,--verbose -x,--exact -t,--table=TABLE --line-numbers -w,--wait[=SMALL]? -4,--ipv4 -6,--ipv6"
_TABLES_WHY = "-L and -S list; -A, -D, -F, -Z and the like are not here"
_NFT = "( -a|-j|-n|-nn|-s|-t|-y|-S|-u|-p|--handle|--json|--numeric|--stateless|--terse|--numeric-priority|--service|--numeric-protocol )*"
_FAMILY = "[ ip|ip6|inet|arp|bridge|netdev ]"
_ETHTOOL = (
    "-i|--driver|-S|--statistics|-k|--show-features|--show-offload|-g|--show-ring|-c|--show-coalesce|-a|--show-pause|-l|--show-channels|-T"
    "|--show-time-stamping|--show-eee|--show-fec|-P|--show-permaddr|--show-priv-flags|-x|--show-rxfh-indir|--show-rxfh|-n|-u|--show-nfc|--show-ntuple"
    "|-m|--dump-module-eeprom|--module-info|--show-module|--show-phys|--show-tunnels|--show-cable|--phy-statistics"
)

ROWS = (
    Row(
        "/usr/sbin/ip",
        f"{_IP_LOOK} a|addr|address [ s|{_SHOW} ( up|permanent|dynamic|secondary|primary|tentative|deprecated|temporary"
        " | dev|master|label|vrf|type IFNAME | scope TABLE | to ADDRESS )* IFNAME? ]",
        style="words",
        why=_IP_WHY,
    ),
    Row(
        "/usr/sbin/ip",
        f"{_IP_LOOK} l|link [ {_SHOW} ( up|nomaster | dev|master|vrf|type|group IFNAME )* IFNAME? ]",
        style="words",
        why=f"{_IP_WHY}; `ip link s` is set, so it is not here",
    ),
    Row(
        "/usr/sbin/ip",
        f"{_IP_LOOK} r|ro|route [ s|{_SHOW} ( default|cache | table|dev|vrf|proto|protocol|scope|type|realm IFNAME"
        " | via|src|from|root|match|exact|to ADDRESS | root|match|exact|to default )* ADDRESS? ]",
        style="words",
        why=_IP_WHY,
    ),
    Row(
        "/usr/sbin/ip",
        f"{_IP_LOOK} r|ro|route get ADDRESS ( from ADDRESS | iif|oif|vrf IFNAME | mark|uid HEXORNUMBER )*",
        style="words",
        why=_IP_WHY,
    ),
    Row(
        "/usr/sbin/ip",
        f"{_IP_LOOK} n|neigh|neighbor|neighbour [ {_SHOW} ( proxy|unused | dev|master|vrf IFNAME | nud TABLE | to ADDRESS )* ADDRESS? ]",
        style="words",
        why=_IP_WHY,
    ),
    Row("/usr/sbin/ip", f"{_IP_LOOK} rule|ru [ {_SHOW} ( table|iif|oif|dev IFNAME | from|to ADDRESS )* ]", style="words", why=_IP_WHY),
    Row(
        "/usr/sbin/ip",
        f"{_IP_LOOK} maddr|maddress|mroute|tunnel|tuntap|netconf|ntable|vrf [ {_SHOW} [ dev IFNAME ] ]",
        style="words",
        why=_IP_WHY,
    ),
    Row("/usr/sbin/ip", f"{_IP_LOOK} netns [ list|list-id ]", style="words", why=_IP_WHY),
    Row("/usr/sbin/ip", f"{_IP_LOOK} nexthop {_SHOW}", style="words", why=_IP_WHY),
    Row("/usr/sbin/ip", "-V|-Version", style="words"),
    Row("/usr/sbin/bridge", f"{_BRIDGE} link|vlan|vni|mdb [ show|list [ dev IFNAME ] ]", style="words", why="no -b, no monitor"),
    Row(
        "/usr/sbin/bridge",
        f"{_BRIDGE} fdb [ show|list ( br|brport|dev|state|vlan|dynamic IFNAME | dynamic )* ]",
        style="words",
        why="no -b, no monitor",
    ),
    Row("/usr/sbin/tc", f"{_TC} qdisc|class|filter {_SHOW} ( dev IFNAME | root|ingress|egress )*", style="words", why="no -b, no monitor"),
    Row("/usr/bin/ss", "SSFILTER*", _SS, why="no -K: it kills connections; no -D, -F: files; no -E: it never ends; no -N"),
    Row("/usr/sbin/ethtool", "( --json|-j|-I|--include-statistics )* IFNAME", style="words"),
    Row(
        "/usr/sbin/ethtool",
        f"( --json|-j|-I|--include-statistics )* {_ETHTOOL} IFNAME",
        style="words",
        why="no -s, -K, -E, -f, -p, -r, -t, -d, -w",
    ),
    Row("/usr/sbin/iptables", "", f"!-L,--list[=CHAIN]+ !-S,--list-rules[=CHAIN]+ {_TABLES}", why=_TABLES_WHY),
    Row("/usr/sbin/ip6tables", "", f"!-L,--list[=CHAIN]+ !-S,--list-rules[=CHAIN]+ {_TABLES}", why=_TABLES_WHY),
    Row("/usr/sbin/iptables-save", "", "-c,--counters -t,--table=TABLE", why="no -f and -M: it writes to stdout only"),
    Row("/usr/sbin/ip6tables-save", "", "-c,--counters -t,--table=TABLE", why="no -f and -M: it writes to stdout only"),
    Row("/usr/sbin/ebtables", "", "!-L,--list[=CHAIN]+ -t,--table=TABLE --Ln --Lc --Lx --Lmac2", why=_TABLES_WHY),
    Row(
        "/usr/sbin/nft",
        f"{_NFT} list ( ruleset {_FAMILY} | tables|chains|sets|maps|flowtables|counters|quotas|limits {_FAMILY}"
        f" | table {_FAMILY} NFNAME | chain|set|map|flowtable|counter|quota|limit {_FAMILY} NFNAME NFNAME )",
        style="words",
        why="nft joins its words into one script, so only names may stand here: no ; and no second command",
    ),
)
