"""Writes commands of the grammar's language from its rows, in every spelling their programs understand, and breaks them again."""

from __future__ import annotations

import shlex
from random import Random

from proxmox_mcp.read_commands import notation
from proxmox_mcp.read_commands.grammar import Row
from proxmox_mcp.read_commands.notation import Node, Option, Value
from proxmox_mcp.read_commands.types import TYPES

# At least one value of each type; a type without samples fails the test that all have some.
SAMPLES: dict[str, tuple[str, ...]] = {
    "FILE": ("/etc/os-release", "/etc/pve/storage.cfg", "/proc/meminfo", "/sys/class/net/eno1/mtu", "/var/log/a b.log"),
    "SUM": ("/etc/hosts", "/var/lib/vz/template/iso/debian.iso", "/var/lib/vz/images/101/vm-101-disk-0.qcow2"),
    "META": ("/", "/var/log", "/etc/pve/", "/dev/sda", "/var/lib/vz/dump"),
    "TREE": ("/var/lib/vz", "/usr/share/doc/", "/etc/network"),
    "GREPTREE": ("/etc/network", "/var/log", "/etc/apt/"),
    "DEVICE": ("/dev/sda", "/dev/nvme0n1", "/dev/disk/by-id/ata-X_1", "/dev/pve/root", "/dev/mapper/pve-root", "/dev/sdb2"),
    "SMALL": ("0", "7", "100000"),
    "NUMBER": ("0", "123456"),
    "PID": ("1", "4242"),
    "VMID": ("100", "101", "999999999"),
    "AMOUNT": ("5", "+3", "4K", "-2"),
    "JOURNALLINES": ("1", "50"),
    "INTERVAL": ("1", "2"),
    "COUNT": ("1", "3"),
    "BLOCKSIZE": ("M", "1K", "4096", "MiB"),
    "SIZE": ("10M", "-5K"),
    "WORD": ("abc", "x86_64", "a=b"),
    "NAME": ("sda", "pve1", "a.b"),
    "FIELDS": ("name,size", "+x_y", "a"),
    "LIST": ("a", "a,b", "^1,2"),
    "TEXT": ("%n %s", "", "${Package} ${Version}\\n", "a'b"),
    "CHAR": (",", ":", "|"),
    "PATTERN": ("error", "a|b", "-x", "", "^vm[0-9]+$"),
    "GLOB": ("*.conf", "vm-?", "[a-z]*"),
    "PLUS": ("+",),
    "SOURCE": ("/dev/sda1", "rpool/ROOT", "LABEL=x"),
    "LSTIME": ("long-iso", "+%F %T"),
    "FINDTYPE": ("f", "d,l"),
    "FINDNUMBER": ("+7", "-100M", "3"),
    "FINDMODE": ("644", "-4000", "/u+w"),
    "DATE": ("2026-03-01", "1 hour ago", "-15min", "@1772326800"),
    "DATEFORMAT": ("+%s", "+%F %T"),
    "BOOL": ("1", "no"),
    "SYSSTATJSON": ("JSON",),
    "CPULIST": ("ALL", "0,2-3"),
    "SYSCTL": ("vm.swappiness", "net/ipv4/ip_forward"),
    "GETCONF": ("PAGESIZE",),
    "USER": ("root", "www-data"),
    "DISKNAME": ("sda", "nvme0n1"),
    "POOL": ("tank", "rpool-2"),
    "DATASET": ("tank", "tank/data/vm-101-disk-0", "tank/a b@snap", "tank/x#mark"),
    "SNAPSHOT": ("tank/data@a", "tank@autosnap_2026-01-01_00:00:01_daily"),
    "PROPS": ("all", "used,available", "org.lab:note"),
    "ZFSTYPES": ("snapshot", "filesystem,volume", "all"),
    "ZFSSOURCES": ("local", "local,received"),
    "VG": ("pve", "@tag"),
    "LV": ("pve", "pve/data", "/dev/pve/root"),
    "LVMSELECT": ("lv_size>1g", 'vg_name=~"^pve"'),
    "LVMUNITS": ("b", "g"),
    "TAG": ("UUID", "TYPE"),
    "TAGVALUE": ("LABEL=root", "UUID=12-34"),
    "SMARTDEVICE": ("sat", "megaraid,4", "nvme"),
    "SMARTLOG": ("error", "selftest"),
    "SMARTPOWER": ("standby", "never", "idle,3"),
    "SMARTJSON": ("c", "cv"),
    "HEXORNUMBER": ("1", "0x4"),
    "PCISLOT": ("01:00.0", "0000:01:00", "00:1f"),
    "PCIID": ("8086:1521", "8086:"),
    "DMITYPE": ("memory", "16,17"),
    "LEVELS": ("err,warn", "kern"),
    "UNIT": ("pveproxy",),
    "UNITS": ("pveproxy.service", "pve*", "ssh"),
    "PROPERTIES": ("ActiveState", "Id,MainPID,MemoryCurrent"),
    "JOURNALMATCH": ("_PID=1", "_SYSTEMD_UNIT=pveproxy.service"),
    "FIELD": ("_SYSTEMD_UNIT",),
    "JOURNALFIELDS": ("MESSAGE", "MESSAGE,_PID"),
    "JOURNALFORM": ("short-iso", "json", "cat"),
    "PRIORITY": ("err", "0..4"),
    "BOOT": ("-1", "0", "0123456789abcdef0123456789abcdef"),
    "CURSOR": ("s=d3;i=b6;b=ff",),
    "PSBSD": ("aux", "axf"),
    "PSBSDLIST": ("axo",),
    "PSCOLUMNS": ("pid,args", "pid=,user=Who"),
    "PSSORT": ("-rss", "pid,+user"),
    "PIDS": ("1", "1,4242"),
    "PSUSER": ("root", "0,www-data"),
    "LSOFINET": (":8006", "4TCP@10.0.0.1:22"),
    "LSOFSTATE": ("TCP:LISTEN",),
    "REGEX": ("ssh", "^pve"),
    "IFNAME": ("vmbr0", "eno1.100"),
    "ADDRESS": ("10.0.0.0/8", "fe80::1"),
    "TABLE": ("filter", "nat"),
    "CHAIN": ("INPUT", "PVEFW-HOST-IN"),
    "SSFILTER": ("established", "sport = :22", "10.0.0.1"),
    "NFNAME": ("filter", "proxmox-firewall"),
    "PACKAGE": ("bash", "pve-manager", "libc6:amd64"),
    "PACKAGES": ("pve-*", "bash"),
    "PACKAGEFILE": ("/usr/bin/qm", "*bin/qm"),
    "STORAGE": ("local", "local-lvm"),
    "VOLUME": ("local:iso/debian-13.iso", "local-lvm:vm-101-disk-0"),
    "SNAPNAME": ("before_upgrade",),
    "PVEID": ("root@pam", "admins"),
    "REPLICATION": ("101-0",),
    "UPID": ("UPID:pve1:000A:0B:65F0:vzdump:101:root@pam:",),
    "SERVICE": ("pveproxy",),
    "APIREAD": ("/version", "/nodes/pve1/status", "/nodes/pve1/qemu/101/config"),
    "APIINDEX": ("/", "/nodes", "/nodes/pve1/qemu"),
    "APIPATH": ("/nodes/{node}/qemu",),
}
NOT_IN_ROWS = {"RESTARTABLE"}


def samples_missing() -> set[str]:
    """Types without a sample, and samples without a type."""
    return set(TYPES).symmetric_difference(SAMPLES) - NOT_IN_ROWS


def _value(value: Value, rnd: Random) -> str:
    return rnd.choice(SAMPLES[value.type.name] if value.type is not None else value.words)


def _operands(node: Node, rnd: Random) -> list[list[str]]:
    """Words by unit: what must stay together, in order."""
    if node.value is not None:
        return [[_value(node.value, rnd)]]
    if node.choice:
        return _operands(rnd.choice(node.parts), rnd)
    most = min(node.most, max(node.least, 2))
    return [[word for part in node.parts for unit in _operands(part, rnd) for word in unit] for _ in range(rnd.randint(node.least, most))]


def _spelled(option: Option, row: Row, rnd: Random) -> list[str]:
    spelling = rnd.choice(option.spellings)
    if row.style == "perl" and rnd.random() < 0.3:
        spelling = spelling.removeprefix("-")
    value = _value(option.value, rnd) if option.takes != "nothing" else ""
    if spelling == "-#":
        return ["-" + value.strip("+-KM")]
    if option.takes == "nothing" or (option.takes in {"attached", "fitting"} and rnd.random() < 0.3):
        return [spelling]
    if spelling.startswith("--") or row.style == "perl":
        joined = [f"{spelling}={value}"]
    else:
        joined = [spelling + value] if value else [spelling, value]
    if row.style == "apart" and not spelling.startswith("--"):
        return [spelling, value]
    apart = option.takes == "value" or (option.takes in {"fitting", "next"} and value[:1] not in {"", "-", "+"})
    return [spelling, value] if apart and rnd.random() < 0.5 else joined


def _clustered(groups: list[list[str]], row: Row, rnd: Random) -> list[list[str]]:
    """Put some short options into one word: -a -l -> -al."""
    out: list[list[str]] = []
    for group in groups:
        first = group[0]
        short = first[:1] in {"-", "+"} and first[1:2] not in {"", "-"} and not first[1:].isdigit()
        clusters = short and row.style in {"gnu", "apart", "first"}
        if out and clusters and rnd.random() < 0.5 and _is_flag(out[-1], row) and out[-1][0][0] == first[0]:
            out[-1] = [out[-1][0] + first[1:], *group[1:]]
        else:
            out.append(group)
    return out


def _is_flag(group: list[str], row: Row) -> bool:
    options = notation.options(row.options)
    return (
        len(group) == 1
        and len(group[0]) >= 2
        and all((option := options.get(group[0][0] + letter)) is not None and option.takes == "nothing" for letter in group[0][1:])
    )


def command(row: Row, rnd: Random) -> list[str]:
    """One command of this row as words, the program by its short name."""
    options = list({id(option): option for option in notation.options(row.options).values()}.values())
    one_of = [option for option in options if option.must == "!"]
    chosen = [option for option in options if option.must == "&" or (not option.must and rnd.random() < 3 / (len(options) + 3))]
    chosen += [rnd.choice(one_of)] if one_of else []
    if any(_is(option, "INTERVAL") for option in chosen):
        chosen += [option for option in options if _is(option, "COUNT") and option not in chosen]
    rnd.shuffle(chosen)
    groups = _clustered([_spelled(option, row, rnd) for option in chosen], row, rnd)
    node = notation.operands(row.operands)
    units = [unit for part in node.parts for unit in _operands(part, rnd)] if not node.choice else _operands(node, rnd)
    words = [[word] for unit in units for word in unit]
    if any(word[0].startswith("-") for word in words) and row.style != "words":
        return [row.command, *row.verb.split(), *_flat(groups), "--", *_flat(words)]
    if row.style not in {"first", "words"}:
        groups = _merged(groups, words, rnd)
        words = []
    return [row.command, *row.verb.split(), *_flat(groups), *_flat(words)]


def _is(option: Option, name: str) -> bool:
    return option.value.type is not None and option.value.type.name == name


def _flat(groups: list[list[str]]) -> list[str]:
    return [word for group in groups for word in group]


def _merged(options: list[list[str]], operands: list[list[str]], rnd: Random) -> list[list[str]]:
    """Options and operands mixed, operands in their order."""
    places = sorted(rnd.sample(range(len(options) + len(operands)), len(operands)))
    rest, words = iter(options), iter(operands)
    return [next(words) if place in places else next(rest) for place in range(len(options) + len(operands))]


def line(words: list[str], rnd: Random) -> str:
    """The words as one line, quoted where needed and sometimes where not."""
    return " ".join(
        shlex.quote(word) if rnd.random() < 0.9 or not word else '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for word in words
    )
