"""Rows: hardware, processes, time, users, services, journal and packages."""

from __future__ import annotations

from proxmox_mcp.read_commands.grammar import Row

_PS_LOOK = "-w --sort=PSSORT --no-headers,--no-heading,--noheader,--noheading --headers --cols,--columns,--width=SMALL --rows,--lines=SMALL"
_PS_WHO = "-p,--pid=PIDS -q,--quick-pid=PIDS --ppid=PIDS -C=NAME -u,-U=PSUSER --user,--User=PSUSER"
_PS_WHY = "no BSD e, and nothing that makes ps read the line again in BSD style: there -e shows environments"
_UNITS = "--no-pager --no-legend --legend=BOOL --plain -l,--full -q,--quiet -a,--all --state=LIST -t,--type=LIST --failed -r,--recursive"
_UNITS_WHY = "no -H, -M, --root: other machines and trees"
_TIME_LOOK = "--no-pager"
_DPKG_WHY = "no --admindir, --root, --pre-invoke and no verb that changes"
_APT_WHY = "no -o and -c: they name programs to run and files to write; apt itself may refresh its own cache"
_APT = "-q,--quiet -a,--all-versions --no-all-versions -v,--verbose"

ROWS = (
    # hardware
    Row("/usr/bin/lspci", "", "-v -n -k -t -D -m -b -P -s=PCISLOT -d=PCIID", why="no -x, -F, -A, -H, -O, -M: registers and files"),
    Row("/usr/bin/lsusb", "", "-v,--verbose -t,--tree -s=WORD -d=PCIID -V,--version", why="no -D: it opens any device"),
    Row(
        "/usr/bin/lshw",
        "( -short|-businfo|-json|-html|-xml|-quiet|-sanitize|-numeric|-notime | -class|-C|-c|-disable|-enable WORD )*",
        style="words",
        why="no -dump and -X",
    ),
    Row(
        "/usr/sbin/dmidecode",
        "",
        "-t,--type=DMITYPE -s,--string=WORD -q,--quiet -H,--handle=HEXORNUMBER -u,--dump --no-sysfs -V,--version",
        why="no --dump-bin: it writes; no -d and --from-dump: they read any file",
    ),
    Row(
        "/usr/bin/dmesg",
        "",
        "-T,--ctime -l,--level=LEVELS -f,--facility=LEVELS -H,--human -P,--nopager -x,--decode -k,--kernel -u,--userspace -t,--notime"
        " -r,--raw -J,--json"
        " -e,--reltime -d,--show-delta -L,--color[=auto|always|never] -S,--syslog -s,--buffer-size=NUMBER -p,--force-prefix --noescape"
        " --since=DATE --until=DATE --time-format=ctime|reltime|delta|notime|iso|raw -V,--version",
        why="no -c, -C, -D, -E, -n: they change the log; no -w, -W: they never end; no -F, -K: any file",
    ),
    Row("/usr/bin/sensors", "GLOB*", "-A,--no-adapter -u -j -f,--fahrenheit -v,--version", why="no -s: it sets; no -c: any file"),
    Row(
        "/usr/bin/lscpu",
        "",
        "-a,--all -b,--online -c,--offline -B,--bytes -C,--caches[=FIELDS] -e,--extended[=FIELDS] -p,--parse[=FIELDS] -J,--json -x,--hex"
        " -y,--physical --output-all",
    ),
    Row("/usr/bin/nproc", "", "--all --ignore=SMALL"),
    Row("/usr/bin/arch"),
    Row(
        "/usr/bin/uname",
        "",
        "-a,--all -s,--kernel-name -n,--nodename -r,--kernel-release -v,--kernel-version -m,--machine -p,--processor -i"
        " -o,--operating-system",
    ),
    Row("/usr/bin/getconf", "GETCONF META?"),
    Row("/usr/sbin/lsmod"),
    Row("/usr/sbin/modinfo", "NAME+", "-a,--author -d,--description -l,--license -p,--parameters -n,--filename -F,--field=NAME"),
    Row("/usr/bin/numastat", "NAME*", "-c -m -n -v -z -s -p=NAME"),
    # load
    Row(
        "/usr/bin/free",
        "",
        "-b,--bytes -k,--kibi -m,--mebi -g,--gibi --kilo --mega --giga --tebi --pebi --tera --peta --si -h,--human -l,--lohi -t,--total"
        " -w,--wide -v,--committed -L,--line -s,--seconds=INTERVAL -c,--count=COUNT",
    ),
    Row("/usr/bin/uptime", "", "-p,--pretty -s,--since"),
    Row(
        "/usr/bin/vmstat",
        "[ INTERVAL COUNT ]",
        "-a,--active -f,--forks -m,--slabs -n,--one-header -s,--stats -d,--disk -D,--disk-sum -S,--unit=k|K|m|M -t,--timestamp -w,--wide"
        " -y,--no-first",
    ),
    Row(
        "/usr/bin/iostat",
        "DISKNAME* [ INTERVAL COUNT ]",
        "-c -d -h --human -k -m -N -s -t -x -y -z --dec=0|1|2 --pretty --compact -o=SYSSTATJSON -V",
        style="apart",
    ),
    Row(
        "/usr/bin/mpstat",
        "[ INTERVAL COUNT ]",
        "-A -n -u -T -P=CPULIST -I=ALL|CPU|SCPU|SUM -N=CPULIST --dec=0|1|2 -o=SYSSTATJSON -V",
        style="apart",
    ),
    # processes: see _PS_WHY
    Row("/usr/bin/ps", "", f"-e -A -d -f -F -l -H --forest {_PS_LOOK}", why=_PS_WHY),
    Row("/usr/bin/ps", "", f"&-L -e -A -d -f -F -l {_PS_LOOK}", why=_PS_WHY),
    Row("/usr/bin/ps", "", f"-A -d -f -F -l -L -T -j {_PS_LOOK}", why=_PS_WHY),
    Row("/usr/bin/ps", "", f"-e -A -d -a -H --forest &-o,--format=PSCOLUMNS {_PS_LOOK}", why=_PS_WHY),
    Row("/usr/bin/ps", "", f"{_PS_WHO} -f -F -l -j -L -T -H --forest {_PS_LOOK}", why=_PS_WHY),
    Row("/usr/bin/ps", "PID*", f"{_PS_WHO} &-o,--format=PSCOLUMNS -L -T -H --forest {_PS_LOOK}", why=_PS_WHY),
    Row("/usr/bin/ps", "( PSBSD | PSBSDLIST PSCOLUMNS | PID | p PIDS )+", f"--forest -p,--pid=PIDS {_PS_LOOK}", why=_PS_WHY),
    Row("/usr/bin/ps", "-aux|-auxf|-auxw|-auxww|-auxfw|-auxfww [ --sort PSSORT ]", style="words", why="a habit: it means aux"),
    Row(
        "/usr/bin/pgrep",
        "REGEX?",
        "-l,--list-name -a,--list-full -f,--full -x,--exact -c,--count -n,--newest -o,--oldest -i,--ignore-case -v,--inverse"
        " -u,--euid=PSUSER -U,--uid=PSUSER -P,--parent=PIDS -d,--delimiter=CHAR",
    ),
    Row("/usr/bin/pidof", "NAME+", "-s -c -x -q"),
    Row(
        "/usr/bin/lsof",
        "META*",
        "-i[=LSOFINET]+ -n -P -p=LIST -g[=PIDS]+ -u=LIST -c=REGEX -t -a -l -U -d=LIST -s[=LSOFSTATE]+ -F[=NAME]+ -w -b -R -N -V -L"
        " +L[=SMALL]+ +D=TREE +d=META -O -v",
        style="first",
        why="no -r and +r: they never end; no -D and +m: they write",
    ),
    # users and names
    Row("/usr/bin/id", "USER*", "-a -u,--user -g,--group -G,--groups -n,--name -r,--real -z,--zero"),
    Row("/usr/bin/groups", "USER*"),
    Row("/usr/bin/whoami"),
    Row(
        "/usr/bin/who",
        "",
        "-a,--all -b,--boot -d,--dead -H,--heading --ips -l,--login --lookup -m -p,--process -q,--count -r,--runlevel -s,--short"
        " -t,--time -T,-w,--mesg -u,--users",
        why="without a file",
    ),
    Row("/usr/bin/w", "USER?", "-h,--no-header -u,--no-current -s,--short -f,--from -o,--old-style -i,--ip-addr -p,--pids"),
    Row(
        "/usr/bin/last",
        "NAME*",
        "-n,--limit=SMALL -#=SMALL -a,--hostlast -d,--dns -F,--fulltimes -i,--ip -R,--nohostname -w,--fullnames -x,--system"
        " -s,--since=DATE -t,--until=DATE -p,--present=DATE --time-format=notime|short|full|iso",
        why="no -f: any file",
    ),
    Row(
        "/usr/bin/getent",
        "passwd|group|hosts|ahosts|ahostsv4|ahostsv6|services|protocols|networks|rpc|ethers NAME*",
        why="not shadow, not gshadow; no -s",
    ),
    Row(
        "/usr/bin/hostname",
        "",
        "-f,--fqdn,--long -s,--short -d,--domain -i,--ip-address -I,--all-ip-addresses -A,--all-fqdns",
        why="no operand, -F, -b: they set it",
    ),
    Row("/usr/bin/hostnamectl", "status?", "--json=pretty|short|off", why="no operand after the verb"),
    # time
    Row(
        "/usr/bin/date",
        "DATEFORMAT?",
        "-u,--utc,--universal -d,--date=DATE -R,--rfc-email -I,--iso-8601[=date|hours|minutes|seconds|ns] --rfc-3339=date|seconds|ns"
        " -r,--reference=META --resolution",
        why="no -s and no operand without +: they set the clock; no -f: it shows the file it reads",
    ),
    Row(
        "/usr/bin/timedatectl",
        "[ status|show|timesync-status|show-timesync|list-timezones ]",
        f"{_TIME_LOOK} -a,--all -p,--property=FIELDS --value",
        why="no --monitor: it never ends",
    ),
    Row(
        "/usr/bin/chronyc",
        "( -n|-c|-N|-4|-6|-e )* ( tracking|activity|serverstats|rtcdata|smoothing|ntpdata | sources|sourcestats|selectdata ( -a|-v )* )",
        style="words",
        why="no -m: it chains commands; no -h, -f",
    ),
    # services
    Row("/usr/bin/systemctl", "[ list-units UNITS* ]", _UNITS, why=_UNITS_WHY),
    Row("/usr/bin/systemctl", "list-unit-files|list-timers|list-sockets|list-automounts|list-paths UNITS*", _UNITS, why=_UNITS_WHY),
    Row("/usr/bin/systemctl", "list-jobs|get-default|is-system-running", _UNITS, why=f"{_UNITS_WHY}; no --wait"),
    Row("/usr/bin/systemctl", "list-dependencies UNITS*", f"{_UNITS} --reverse --before --after", why=_UNITS_WHY),
    Row("/usr/bin/systemctl", "status UNITS*", f"{_UNITS} -n,--lines=SMALL -o,--output=JOURNALFORM", why=_UNITS_WHY),
    Row("/usr/bin/systemctl", "is-active|is-enabled|is-failed UNITS+", _UNITS, why=_UNITS_WHY),
    Row(
        "/usr/bin/systemctl",
        "show UNITS*",
        f"!-p,--property=PROPERTIES !-P=PROPERTIES --value {_UNITS}",
        why="named properties only: all of them hold environments with passwords",
    ),
    Row("/usr/bin/loginctl", "[ list-sessions|list-users|list-seats ]", f"{_TIME_LOOK} --no-legend -l,--full"),
    Row("/usr/bin/loginctl", "session-status|user-status|seat-status NAME*", f"{_TIME_LOOK} -l,--full -n,--lines=SMALL"),
    Row(
        "/usr/bin/journalctl",
        "( JOURNALMATCH | PLUS )*",
        "-u,--unit=UNITS --user-unit=UNITS -t,--identifier=WORD -p,--priority=PRIORITY --facility=LIST -g,--grep=PATTERN"
        " --case-sensitive[=BOOL] -S,--since=DATE"
        " -U,--until=DATE -b,--boot[=BOOT]? -k,--dmesg -n,--lines[=JOURNALLINES]? -r,--reverse"
        " -o,--output=JOURNALFORM --output-fields=JOURNALFIELDS"
        " -x,--catalog -q,--quiet"
        " -a,--all -l,--full --no-full -e,--pager-end --no-pager --no-hostname --no-tail --utc -m,--merge --system --user"
        " -c,--cursor=CURSOR"
        " --after-cursor=CURSOR --show-cursor --list-boots --disk-usage --header -N,--fields -F,--field=FIELD --truncate-newline",
        why="no -f; no -o verbose and export: they show environments; no --rotate, --flush, --sync, --vacuum-*, --cursor-file ...: they"
        " change or write; no -D, --file, --root, -M",
    ),
    Row(
        "/usr/bin/coredumpctl",
        "[ list|info ( JOURNALMATCH | PID | NAME )* ]",
        f"{_TIME_LOOK} -q,--quiet --no-legend -1 -n=SMALL -S,--since=DATE -U,--until=DATE -r,--reverse --json=pretty|short|off -a,--all",
        why="no dump and debug: they show memory or run a program; no -o, -D, --debugger",
    ),
    Row(
        "/usr/sbin/sysctl",
        "SYSCTL*",
        "!-a,-A,--all -N,--names -e,--ignore -r,--pattern=TEXT",
        why="no key=value, -w, -p, -f, --system: they set; no -n: by their names secret values are masked",
    ),
    Row("/usr/sbin/sysctl", "SYSCTL+", "-n,--values -N,--names -e,--ignore", why="no key=value, -w, -p, -f, --system: they set"),
    # packages
    Row("/usr/bin/dpkg", "PACKAGES*", "!-l,--list --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg", "PACKAGE*", "!-s,--status --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg", "PACKAGE+", "!-L,--listfiles !-p,--print-avail !-V,--verify --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg", "PACKAGEFILE+", "!-S,--search --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg", "", "!-C,--audit !--print-architecture !--print-foreign-architectures !--version", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg", "PACKAGES*", "!--get-selections", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg-query", "PACKAGES*", "!-W,--show -f,--showformat=TEXT --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg-query", "PACKAGES*", "!-l,--list --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg-query", "PACKAGE+", "!-s,--status !-L,--listfiles !-p,--print-avail --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/dpkg-query", "PACKAGEFILE+", "!-S,--search --no-pager", style="first", why=_DPKG_WHY),
    Row("/usr/bin/apt", "list PACKAGES*", f"--installed --upgradable,--upgradeable --manual-installed {_APT}", why=_APT_WHY),
    Row("/usr/bin/apt", "show|policy|depends|rdepends PACKAGES+", _APT, why=_APT_WHY),
    Row("/usr/bin/apt", "search TEXT+", f"-n,--names-only -f,--full {_APT}", why=_APT_WHY),
    Row("/usr/bin/apt-cache", "policy|stats|pkgnames|showsrc|madison PACKAGES*", _APT, why=f"{_APT_WHY}; no gencaches"),
    Row(
        "/usr/bin/apt-cache",
        "show|showpkg|depends|rdepends PACKAGES+",
        f"-i,--important --installed --no-recommends --no-suggests --recurse {_APT}",
        why=_APT_WHY,
    ),
    Row("/usr/bin/apt-cache", "search TEXT+", f"-n,--names-only -f,--full {_APT}", why=_APT_WHY),
    Row("/usr/bin/apt-mark", "showhold|showmanual|showauto|showinstall PACKAGES*", "", why=_APT_WHY),
)
