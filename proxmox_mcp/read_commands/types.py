"""The types of values in the tables, each a pattern or a range, and what a matched command is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from proxmox_mcp.read_commands import api_paths, paths
from proxmox_mcp.read_commands.paths import Kind
from proxmox_mcp.read_commands.words import Word

Bound = Literal["", "amount", "interval", "count"]


@dataclass(frozen=True, slots=True)
class PathCheck:
    """One path operand, what the far side must check after resolving its symlinks, and which word of argv it is (0: none of its own)."""

    path: str
    kind: Kind
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ReadCommand:
    """An accepted command: `argv[0]` is the absolute program, the rest the user's words; `row` names the row of the grammar."""

    argv: tuple[str, ...]
    paths: tuple[PathCheck, ...]
    row: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may cost: seconds, and bytes of output."""

    timeout: float = 30.0
    max_bytes: int = 200_000


@dataclass(frozen=True, slots=True)
class ValueType:
    """One type of value. `says` is for people; a value must match `pattern` whole, in ASCII.

    `glob`: unquoted wildcards are text of the pattern. `dash`: may begin with `-`. `path`: checked as a path of that kind instead.
    `most`: highest number. `bound`: how the call's limits apply.
    """

    name: str
    says: str
    pattern: str = ""
    glob: bool = False
    dash: bool = False
    path: Kind | None = None
    most: int | None = None
    bound: Bound = ""

    def fault(self, word: Word, limits: Limits) -> str | None:
        """Why this word is no such value, or None."""
        if word.glob and not self.glob:
            return f"an unquoted wildcard is not expanded here: {self.says} is expected"
        if word.text.startswith("-") and not self.dash:
            return f"{self.says} is expected, not an option"
        if self.path is not None and (fault := paths.fault(word.text, self.path)):
            return fault
        if self.pattern and not re.fullmatch(self.pattern, word.text, re.ASCII):
            return f"{self.says} is expected"
        if self.most is not None and int(word.text) > self.most:
            return f"{self.says} is expected, at most {self.most}"
        if self.bound == "amount" and not word.text.startswith("+") and amount(word.text) > limits.max_bytes:
            return f"more than the {limits.max_bytes} bytes that one answer holds"
        return None


_UNITS = {"": 1, "b": 512, "K": 1024, "KiB": 1024, "kB": 1000, "KB": 1000, "M": 1024**2, "MiB": 1024**2, "MB": 1000**2}
_AMOUNT = r"[+-]?[0-9]{1,12}(b|kB|KB|K|KiB|M|MB|MiB)?"


def amount(text: str) -> int:
    """Bytes or lines: "4K" -> 4096; the sign does not count."""
    digits = re.match(r"[+-]?([0-9]+)", text)
    return int(digits[1]) * _UNITS[text[digits.end() :]] if digits else 0


def _name(name: str, says: str, pattern: str, *, glob: bool = False) -> ValueType:
    return ValueType(name, says, pattern, glob)


_NAME = r"[A-Za-z0-9][A-Za-z0-9_.:@-]*"
_DATASET = r"[A-Za-z][A-Za-z0-9_.: -]*(/[A-Za-z0-9_.: -]+)*"
_PVE_ID = r"[A-Za-z][A-Za-z0-9._-]{0,60}"
_DISK = (
    r"(?:sd|hd|vd|xvd)[a-z]{1,3}[0-9]{0,3}|nvme[0-9]{1,3}(?:c[0-9]+)?(?:n[0-9]{1,3}(?:p[0-9]{1,3})?)?|mmcblk[0-9]+(?:p[0-9]+)?"
    r"|(?:loop|zd|nbd|rbd|md|bcache)[0-9]{1,4}(?:p[0-9]{1,3})?|(?:dm-|sr|sg|ng)[0-9]{1,4}|ng[0-9]+n[0-9]+|drbd[0-9]+|bus/[0-9]{1,3}"
    r"|md/[A-Za-z0-9_.:+-]+|disk/by-[a-z]+/[A-Za-z0-9_.:+=@%~#-]+|mapper/[A-Za-z0-9_.+-]+|zvol(?:/[A-Za-z0-9_.:-]+){2,12}"
    # a logical volume by its group; the far side insists on a block device
    r"|(?!(?:char|cpu|dri|fd|hugepages|input|mqueue|net|pts|shm|snd|usb|vfio|watchdog)/)[A-Za-z0-9+_][A-Za-z0-9+_.-]*/[A-Za-z0-9+_.][A-Za-z0-9+_.-]*"
)
# Values of `ps -o`: none of them shows an environment.
_PS_COLUMN = (
    r"(?:%cpu|%mem|args|blocked|bsdstart|bsdtime|c|caught|cgname|cgroup|cgroupns|class|cls|cmd|comm|command|cp|cputime|cputimes|cuc|cuu|drs"
    r"|egid|egroup|eip|esp|etime|etimes|euid|euser|exe|f|fgid|fgroup|flag|flags|fname|fuid|fuser|gid|group|ignored|ipcns|label|lstart|lsession"
    r"|lwp|lxc|machine|maj_flt|min_flt|mntns|netns|ni|nice|nlwp|numa|nwchan|oom|oomadj|ouid|pcpu|pending|pgid|pgrp|pid|pidns|pmem|policy|ppid"
    r"|pri|priority|pss|psr|rbytes|rgid|rgroup|rops|rss|rssize|rsz|rtprio|ruid|ruser|s|sched|seat|sess|session|sgi_p|sid|sig|size|slice|spid"
    r"|stackp|start|start_time|stat|state|stime|suid|suser|svgid|svuid|sz|tgid|thcount|tid|time|times|tname|tpgid|trs|tt|tty|ucmd|ucomm|uid"
    r"|uname|unit|userns|uss|user|uunit|utsns|vsize|vsz|wbytes|wchan|wops)"
)
_PS_ITEM = rf"{_PS_COLUMN}(:[0-9]{{1,3}})?(=[A-Za-z0-9_% -]{{0,30}})?"
# `systemctl show` prints a unit's Environment= and credentials unless the properties are named.
_PROPERTY = (
    r"(?:Id|Names|Description|Documentation|LoadState|LoadError|ActiveState|SubState|FreezerState|UnitFileState|UnitFilePreset|Result|StatusText"
    r"|StatusErrno|MainPID|ControlPID|ExecMainPID|ExecMainStatus|ExecMainCode|ExecMain(?:Start|Exit|Handoff)Timestamp(?:Monotonic)?|NRestarts"
    r"|(?:Active|Inactive)(?:Enter|Exit)Timestamp(?:Monotonic)?|(?:StateChange|Condition|Assert)Timestamp(?:Monotonic)?|ConditionResult"
    r"|AssertResult|InvocationID|FragmentPath|SourcePath|DropInPaths|NeedDaemonReload|Job|Type|User|Group|UID|GID|Slice|ControlGroup|Restart"
    r"|Restart(?:Max)?USec(?:Next)?|Timeout(?:Start|Stop|Abort)USec|Runtime(?:Max)?USec|Watchdog(?:USec|Timestamp|TimestampMonotonic)"
    r"|(?:Memory|Tasks|CPU|IO|IP|Limit|OOM|Kill|Start|Can|Refuse|Default|Allow|Private|Protect)[A-Z][A-Za-z]{0,40}|Delegate|Nice|Requires|Requisite"
    r"|Wants|WantedBy|RequiredBy|RequisiteOf|UpheldBy|BindsTo|BoundBy|PartOf|ConsistsOf|Conflicts|ConflictedBy|Before|After|OnFailure|OnSuccess"
    r"|Triggers|TriggeredBy|PropagatesReloadTo|JoinsNamespaceOf|RequiresMountsFor|Perpetual|StopWhenUnneeded|Transient|Unit|Where|What|Listen|Exec(?:Start|Stop|Reload|Condition)(?:Pre|Post)?"
    r"|NextElapseUSec(?:Realtime|Monotonic)|LastTriggerUSec(?:Monotonic)?|TimersCalendar|TimersMonotonic|Persistent|AccuracyUSec|Version)"
)

_TYPES = (
    # paths
    ValueType("FILE", "an absolute path of a file to read", path=Kind.FILE),
    ValueType("SUM", "an absolute path of a file to measure", path=Kind.SUM),
    ValueType("META", "an absolute path", path=Kind.META),
    ValueType("TREE", "an absolute path of a directory to walk", path=Kind.TREE),
    ValueType("GREPTREE", "an absolute path of a directory to search", path=Kind.GREP),
    ValueType("DEVICE", "a disk such as /dev/sda or /dev/disk/by-id/...", rf"/dev/(?:{_DISK})", path=Kind.DEVICE),
    # numbers
    ValueType("SMALL", "a number", r"[0-9]{1,6}", most=100_000),
    ValueType("NUMBER", "a number", r"[0-9]{1,12}"),
    ValueType("PID", "a process id", r"[1-9][0-9]{0,9}"),
    ValueType("VMID", "a guest's id such as 101", r"[1-9][0-9]{2,8}"),
    ValueType("AMOUNT", "a number, with K or M if wanted", _AMOUNT, dash=True, bound="amount"),
    ValueType("JOURNALLINES", "a number of lines", r"\+?[0-9]{1,6}", bound="amount"),
    ValueType(
        "INTERVAL", "seconds between two samples", r"0*[1-9][0-9]{0,3}(\.[0-9]{1,3})?|0*\.[0-9]{1,3}|0\.[0-9]{1,3}", bound="interval"
    ),
    ValueType("COUNT", "a number of samples", r"[1-9][0-9]{0,4}", bound="count"),
    ValueType("BLOCKSIZE", "a unit such as M or 4096", r"([0-9]{1,9})?[KMGTPEkb]?(i?B)?"),
    ValueType("SIZE", "a size such as 10M", r"-?[0-9]{1,12}[KMGTPEk]?(i?B)?", dash=True),
    # words
    _name("WORD", "a plain word", r"[A-Za-z0-9_][A-Za-z0-9_.:@%+,/=-]{0,200}"),
    _name("NAME", "a name", r"[A-Za-z0-9_.][A-Za-z0-9_.:@+-]{0,100}"),
    _name("FIELDS", "a list of columns", r"[=+]?[A-Za-z0-9_:%.,+-]{1,500}"),
    _name("LIST", "a list of words", r"\^?[A-Za-z0-9_.:+-]{1,100}(,\^?[A-Za-z0-9_.:+-]{1,100}){0,50}"),
    _name("TEXT", "text", r"[ -~]{0,1000}"),
    _name("CHAR", "a separator", r"[ -~]{1,4}"),
    ValueType("PATTERN", "a regular expression", r"[ -~]{0,1000}", dash=True),
    _name("GLOB", "a pattern such as *.conf", r"[A-Za-z0-9_.:@+,~^!\[\]*?{}() =-]{1,200}", glob=True),
    _name("PLUS", "+", r"\+"),
    _name("SOURCE", "a mount's source", r"/?[A-Za-z0-9_][A-Za-z0-9_.:@/=+-]{0,200}"),
    _name("LSTIME", "long-iso, full-iso, iso or +FORMAT", r"(posix-)?(full-iso|long-iso|iso|locale)|\+[ -~]{0,100}"),
    _name("FINDTYPE", "one of f d l b c p s", r"[fdlbcpsD](,[fdlbcpsD]){0,7}"),
    ValueType("FINDNUMBER", "a number such as +7 or -100M", r"[+-]?[0-9]{1,15}[bcwkMG]?", dash=True),
    ValueType("FINDMODE", "a mode such as 644 or -4000", r"[-/]?([0-7]{1,5}|[ugoarwxXst+=,-]{1,40})", dash=True),
    ValueType("DATE", 'a time such as "2026-03-01 12:00" or "1 hour ago"', r"(?!/)[A-Za-z0-9 :@.,+/-]{1,60}", dash=True),
    _name("DATEFORMAT", "+FORMAT", r"\+[ -~]{0,200}"),
    _name("DISKNAME", "a disk's name such as sda", r"[A-Za-z][A-Za-z0-9_/-]{0,60}"),
    _name("BOOL", "yes or no", r"0|1|yes|no|true|false|on|off"),
    _name("SYSSTATJSON", "JSON", r"JSON"),
    _name("CPULIST", "ALL or CPU numbers", r"ALL|all|on|[0-9]{1,4}([,-][0-9]{1,4}){0,50}"),
    _name(  # of a directory every key is shown: not of those that hold a secret one
        "SYSCTL",
        "a key such as vm.swappiness",
        r"(?!.*(?:secret|fastopen_key))(?!net(?:[./]ipv[46](?:[./]conf(?:[./][^./]+)?)?)?$)[a-z][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)*",
    ),
    _name("GETCONF", "a variable such as PAGESIZE", r"[A-Z_][A-Z0-9_]{1,60}"),
    _name("USER", "a user name", r"[A-Za-z_][A-Za-z0-9_.-]{0,40}\$?|[0-9]{1,10}"),
    # storage
    _name("POOL", "a pool", r"[A-Za-z][A-Za-z0-9_.:-]{0,200}"),
    _name("DATASET", "a dataset, snapshot or bookmark", _DATASET + r"([@#][A-Za-z0-9_.: -]+)?"),
    _name("SNAPSHOT", "a snapshot such as tank/data@name", _DATASET + r"@[A-Za-z0-9_.: -]+"),
    _name("PROPS", "a list of properties", r"[a-z0-9][a-z0-9:._@,#-]{0,500}"),
    _name("ZFSTYPES", "filesystem, volume, snapshot, bookmark, all", r"[a-z]{2,10}(,[a-z]{2,10}){0,5}"),
    _name(
        "ZFSSOURCES",
        "local, default, inherited, temporary, received, none",
        r"(local|default|inherited|temporary|received|none)(,[a-z]+){0,5}",
    ),
    _name("VG", "a volume group", r"@?[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}"),
    _name(
        "LV", "a volume group or logical volume", r"(/dev/)?@?[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}(/[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126})?"
    ),
    _name("LVMSELECT", "a selection such as lv_size>1g", r"[A-Za-z0-9_ =<>!~&|()\"'{}\[\],./+^$*?-]{1,300}"),
    _name("LVMUNITS", "one of b s k m g t p e h r", r"[rRhHbBsSkKmMgGtTpPeE]"),
    _name("TAG", "a tag such as UUID", r"[A-Z_][A-Z0-9_]{1,40}"),
    _name("TAGVALUE", "TAG=value", r"[A-Z_][A-Z0-9_]{1,40}=[A-Za-z0-9_.:@ -]{1,100}"),
    # smartctl; jmb39x and intelliprop are left out: they write to the disk to talk through it
    _name(
        "SMARTDEVICE",
        "a device type such as sat or megaraid,4",
        r"auto|ata|scsi|nvme(,(0x)?[0-9a-f]+)?|sat(,auto)?(,(12|16))?|(sat\+)?megaraid,[0-9]{1,3}|3ware,[0-9]{1,3}|cciss,[0-9]{1,3}"
        r"|areca,[0-9]{1,3}(/[0-9]{1,3})?|aacraid,[0-9]+,[0-9]+,[0-9]+|hpt,[0-9]+/[0-9]+(/[0-9]+)?|marvell|snt(asmedia|jmicron|realtek)",
    ),
    _name(
        "SMARTLOG",
        "a log such as error or selftest",
        r"error|selftest|xerror|xselftest|selective|directory|background|devstat|defects|envrep|farm|genstats|sasphy|sataphy|scterc|scttemp"
        r"|scttempsts|scttemphist|ssd|tapealert|zdevstat",
    ),
    _name("SMARTPOWER", "never, sleep, standby or idle", r"(never|sleep|standby|idle)(,[0-9]{1,3}){0,2}"),
    _name("SMARTJSON", "JSON flags", r"[cgiosuvy]{1,8}"),
    _name("HEXORNUMBER", "a number", r"0x[0-9a-fA-F]{1,8}|[0-9]{1,9}"),
    # system
    _name("PCISLOT", "a slot such as 01:00.0", r"([0-9a-f]{1,8}:)?([0-9a-f]{1,2}:)?([0-9a-f]{1,2})?(\.[0-7*]?)?", glob=True),
    _name("PCIID", "an id such as 8086:1521", r"([0-9a-f]{1,4}|\*)?:([0-9a-f]{1,4}|\*)?(:[0-9a-fx*]{1,10}){0,2}", glob=True),
    _name("DMITYPE", "memory, processor ... or numbers", r"[a-z]{2,12}|[0-9]{1,3}(,[0-9]{1,3}){0,40}"),
    _name("LEVELS", "levels such as err,warn", r"[a-z]{2,8}(,[a-z]{2,8}){0,7}(\+)?|\+?[a-z]{2,8}\+?"),
    _name("UNIT", "a unit", r"[A-Za-z0-9@:_.\\-]{1,200}"),
    _name("UNITS", "a unit or a pattern of units", r"[A-Za-z0-9@:_.\\*?\[\]-]{1,200}", glob=True),
    _name("PROPERTIES", "properties by name, none that holds an environment", rf"{_PROPERTY}(,{_PROPERTY}){{0,60}}"),
    _name("JOURNALMATCH", "FIELD=value", r"[A-Z_][A-Z0-9_]{0,60}=[ -~]{1,300}"),
    # COREDUMP_ENVIRON is the environment of a process that dumped core
    _name("FIELD", "a journal field", r"(?!COREDUMP_ENVIRON$)[A-Z_][A-Z0-9_]{0,60}"),
    _name("JOURNALFIELDS", "journal fields", r"(?!.*COREDUMP_ENVIRON)[A-Z_][A-Z0-9_]*(,[A-Z_][A-Z0-9_]*){0,30}"),
    _name(
        "JOURNALFORM",
        "short, cat, json ...",
        r"short(-(full|iso|iso-precise|precise|monotonic|delta|unix))?|cat|with-unit|json(-(pretty|sse|seq))?",
    ),
    _name("PRIORITY", "a priority such as err or 0..4", r"([0-7]|[a-z]{3,7})(\.\.([0-7]|[a-z]{3,7}))?"),
    ValueType("BOOT", "a boot such as -1 or its id", r"[+-]?[0-9]{1,5}|[0-9a-f]{32}([+-][0-9]{1,5})?|all", dash=True),
    _name("CURSOR", "a cursor", r"[a-z0-9=;]{1,300}"),
    # processes
    _name("PSBSD", "letters such as aux (without e: it shows environments)", r"[acfhjlrSTuvwxXm]{1,12}"),
    ValueType("PSBSDLIST", "letters such as axo", r"[afrTuwx]{0,6}o"),
    _name(
        "PSCOLUMNS",
        "columns such as pid,args",
        rf"{_PS_ITEM}(,{_PS_ITEM}){{0,40}}",
    ),
    ValueType("PSSORT", "columns, - for descending", rf"[+-]?{_PS_COLUMN}(,[+-]?{_PS_COLUMN}){{0,10}}", dash=True),
    _name("PIDS", "process ids", r"[1-9][0-9]{0,9}(,[1-9][0-9]{0,9}){0,100}"),
    # an unknown name would make ps read the whole line again in BSD style, where -e shows environments
    _name("PSUSER", "root, www-data, nobody or a number", r"(root|www-data|nobody|[0-9]{1,9})(,(root|www-data|nobody|[0-9]{1,9})){0,10}"),
    _name("LSOFINET", "[46][protocol][@host][:port]", r"[46]?([A-Za-z]{2,5})?(@[A-Za-z0-9_.:\[\]-]{1,100})?(:[A-Za-z0-9_,-]{1,100})?"),
    _name("LSOFSTATE", "protocol:states", r"(TCP|UDP|tcp|udp):\^?[A-Z_a-z0-9-]+(,\^?[A-Z_a-z0-9-]+){0,10}"),
    _name("REGEX", "a name or regular expression", r"[A-Za-z0-9_.^$|()\[\]*+?/: -]{1,200}"),
    # network
    _name("IFNAME", "an interface", r"[A-Za-z0-9][A-Za-z0-9_.@:-]{0,40}"),
    _name("ADDRESS", "an address or prefix", r"[0-9A-Fa-f:.]{1,45}(/[0-9]{1,3})?"),
    _name("TABLE", "a table", r"[a-z][a-z_]{1,30}|[0-9]{1,10}"),
    _name("CHAIN", "a chain", r"[A-Za-z0-9_+:.][A-Za-z0-9_+:.-]{2,60}"),
    _name("SSFILTER", "a filter such as state established, sport = :22", r"[A-Za-z0-9_.:/*%=<>!()\[\]&|@ -]{1,300}"),
    _name("NFNAME", "a name", r"[A-Za-z_][A-Za-z0-9_./-]{0,100}"),
    # packages
    _name("PACKAGE", "a package", r"[a-z0-9][A-Za-z0-9+.:_-]{0,100}(/[a-z0-9-]+|=[A-Za-z0-9.+~:-]+)?"),
    _name("PACKAGES", "a package or a pattern of packages", r"[A-Za-z0-9*?\[\]^][A-Za-z0-9*?\[\]^$+.:_/~=-]{0,100}", glob=True),
    _name("PACKAGEFILE", "a path or a part of one", r"[A-Za-z0-9/*?\[\]+._-][A-Za-z0-9/*?\[\]+._:@~ -]{0,250}", glob=True),
    # Proxmox
    _name("STORAGE", "a storage", _PVE_ID),
    _name("VOLUME", "a volume id such as local:iso/x.iso", rf"{_PVE_ID}:[A-Za-z0-9_.+@=,:~/ ()-]{{1,250}}"),
    _name("SNAPNAME", "a snapshot's name", r"[A-Za-z][A-Za-z0-9_-]{1,60}"),
    _name("PVEID", "a user, group, role or pool", r"[A-Za-z0-9][A-Za-z0-9_.@+/-]{0,100}"),
    _name("REPLICATION", "a job such as 101-0", r"[1-9][0-9]{2,8}-[0-9]{1,9}"),
    _name("UPID", "a task's UPID", r"UPID:[A-Za-z0-9_.:@!-]{10,250}"),
    _name("SERVICE", "a service", _NAME),
    # what is not known here may do anything when it starts or stops: blk-availability unmounts every volume, debug-shell opens one to root
    _name(
        "RESTARTABLE",
        "a service that is known to bear a restart",
        r"(?:pve(?:proxy|daemon|statd|scheduler|-firewall|fw-logger)|spiceproxy|proxmox-(?:firewall|backup|backup-proxy)|rrdcached|ksmtuned"
        r"|sshd?|crond?|chronyd?|ntp|ntpsec|ntpd|openntpd|rsyslog|syslog-ng|smartd|smartmontools|postfix|exim4|fail2ban|qemu-guest-agent"
        r"|systemd-(?:journald|timesyncd|resolved|logind|udevd)|nginx|apache2|httpd|caddy|haproxy|lighttpd|traefik|php[0-9.]*-fpm|tomcat[0-9]*"
        r"|mysqld?|mariadb|postgresql(?:@[A-Za-z0-9._-]+)?|redis(?:-server)?|memcached|mongodb?|mongod|rabbitmq-server|influxdb|mosquitto"
        r"|grafana-server|prometheus(?:-[a-z-]+)?|node_exporter|telegraf|collectd|zabbix-(?:server|proxy|agent2?)|nagios[0-9]*"
        r"|nagios-nrpe-server|nrpe|netdata|snmpd|bind9|named|unbound|dnsmasq|pihole-FTL|AdGuardHome|isc-dhcp-server|kea-dhcp[46]-server"
        r"|smbd?|nmbd?|samba(?:-ad-dc)?|winbind|vsftpd|proftpd|dovecot|opendkim|rspamd|avahi-daemon|cups|jenkins|gitea|forgejo|gunicorn"
        r"|uwsgi|supervisor|home-assistant|jellyfin|plexmediaserver|emby-server)(?:\.service)?",
    ),
    _name("APIREAD", "an API path that shows no secret and changes nothing, such as /cluster/resources", api_paths.READ),
    _name("APIINDEX", "an API path such as /nodes", api_paths.INDEX),
    _name("APIPATH", "an API path", r"/|(/[A-Za-z0-9_{][A-Za-z0-9_.:@!%+,{}-]*){1,15}"),
)
TYPES = {value_type.name: value_type for value_type in _TYPES}
