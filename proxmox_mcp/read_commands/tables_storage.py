"""Rows: block devices, file systems, LVM, ZFS, SMART and NVMe."""

from __future__ import annotations

from proxmox_mcp.read_commands.grammar import Row

_LVM = (
    "-a,--all -o,--options=FIELDS -O,--sort=FIELDS -S,--select=LVMSELECT --units=LVMUNITS --noheadings --nosuffix --separator=CHAR"
    " --reportformat=basic|json|json_std --unquoted --nameprefixes --rows --aligned --headings=none|abbrev|full --segments --binary"
    " -P,--partial"
    " --readonly --nolocking --foreign --shared --unbuffered -q,--quiet -v,--verbose --version"
)
_LVM_WHY = "no --config, --profile, --commandprofile, --devicesfile: they make it write logs and locks anywhere, or lie"
_LVM_SHOW = (
    "-c,--colon -C,--columns -m,--maps -s,--short -v,--verbose --units=LVMUNITS --readonly --noheadings --nosuffix -o,--options=FIELDS"
)
_ZPOOL_NAMES = "-g -L -P"
_NVME = "-o,--output-format=normal|json|tabular -v,--verbose"
_NVME_WHY = "one log or identify page"

ROWS = (
    Row(
        "/usr/bin/lsblk",
        "DEVICE*",
        "-a,--all -A,--noempty -b,--bytes -d,--nodeps -D,--discard -e,--exclude=LIST -E,--dedup=WORD -f,--fs -i,--ascii -I,--include=LIST"
        " -J,--json"
        " -l,--list -M,--merge -m,--perms -n,--noheadings -N,--nvme -v,--virtio -o,--output=FIELDS -O,--output-all -p,--paths -P,--pairs"
        " -r,--raw"
        " -s,--inverse -S,--scsi -t,--topology -T,--tree[=WORD] -w,--width=SMALL -x,--sort=WORD -y,--shell -z,--zoned -V,--version",
        why="no --sysroot",
    ),
    Row(
        "/usr/sbin/blkid",
        "DEVICE*",
        "-o,--output=full|value|device|export|udev -s,--match-tag=TAG -t,--match-token=TAGVALUE -L,--label=WORD -U,--uuid=WORD -p,--probe"
        " -i,--info"
        " -l,--list-one -n,--match-types=LIST -u,--usages=LIST -d,--no-encoding -c,--cache-file=/dev/null -V,--version",
        why="no -c FILE: it replaces the file; no -o list and -g; the cache is switched off by the environment",
    ),
    Row(
        "/usr/bin/findmnt",
        "( META | WORD )*",
        "-a,--ascii -A,--all -b,--bytes -c,--canonicalize -C,--nocanonicalize -d,--direction=forward|backward -D,--df -e,--evaluate"
        " -f,--first-only"
        " -i,--invert -I,--dfi -J,--json -k,--kernel -l,--list -m,--mtab -s,--fstab -M,--mountpoint=META -n,--noheadings"
        " -o,--output=FIELDS --output-all"
        " -O,--options=LIST -P,--pairs --pseudo --real --shadowed -R,--submounts -r,--raw -S,--source=SOURCE -t,--types=LIST"
        " -T,--target=META --tree"
        " -u,--notruncate -U,--uniq -v,--nofsroot -x,--verify -y,--shell --verbose --vfs-all -V,--version",
        why="no -p, --poll: it waits; no -F: it reads any file",
    ),
    Row("/usr/bin/mount", "", "-l,--show-labels -t,--types=LIST -v,--verbose -V,--version", why="without operands it only lists"),
    Row(
        "/usr/sbin/swapon",
        "",
        "!--show[=FIELDS] !-s,--summary --noheadings --raw --bytes",
        why="--show and -s only list",
    ),
    Row(
        "/usr/sbin/losetup",
        "DEVICE?",
        "-a,--all -l,--list -n,--noheadings -O,--output=FIELDS --output-all -J,--json --raw -j,--associated=META",
        why="no -f: it creates devices; no -d, -D, -c, -r, -P",
    ),
    Row(
        "/usr/sbin/fdisk",
        "DEVICE*",
        "!-l,--list --bytes -o,--output=FIELDS -u,--units[=sectors|cylinders]",
        why="-l opens for reading only",
    ),
    Row("/usr/sbin/mdadm", "--detail|-D ( --scan | DEVICE+ )", style="words"),
    Row("/usr/sbin/mdadm", "--examine|-E DEVICE+", style="words"),
    Row("/usr/sbin/dmsetup", "ls|status|deps|version", why="not table --showkeys: it prints dm-crypt keys"),
    Row("/usr/sbin/dmsetup", "info", "-c,--columns -C"),
    Row("/usr/sbin/hdparm", "-I|-i|-C DEVICE", style="words", why="one query at a time: other letters set what they name"),
    Row(
        "/usr/bin/lsscsi",
        "",
        "-g,--generic -s,--size -t,--transport -d,--device -l,--long -H,--hosts -L,--list -k,--kname -p,--protection -b,--brief",
    ),
    # LVM
    Row("/usr/sbin/pvs", "( DEVICE | VG )*", _LVM, why=_LVM_WHY),
    Row("/usr/sbin/vgs", "VG*", _LVM, why=_LVM_WHY),
    Row("/usr/sbin/lvs", "LV*", _LVM, why=_LVM_WHY),
    Row("/usr/sbin/pvdisplay", "DEVICE*", _LVM_SHOW, why=_LVM_WHY),
    Row("/usr/sbin/vgdisplay", "VG*", _LVM_SHOW, why=_LVM_WHY),
    Row("/usr/sbin/lvdisplay", "LV*", _LVM_SHOW, why=_LVM_WHY),
    # ZFS pools
    Row(
        "/usr/sbin/zpool",
        "POOL* [ INTERVAL COUNT ]",
        f"-v -x -s -t -i -D -e -p -j,--json --json-int --json-flat-vdevs --json-pool-key-guid -T=u|d {_ZPOOL_NAMES}",
        verb="status",
        why="no -c: it runs scripts; an interval needs a count",
    ),
    Row(
        "/usr/sbin/zpool",
        "POOL* [ INTERVAL COUNT ]",
        f"-v -H -p -o=PROPS -j,--json --json-int --json-pool-key-guid -T=u|d {_ZPOOL_NAMES}",
        verb="list",
        why="an interval needs a count",
    ),
    Row(
        "/usr/sbin/zpool",
        "POOL* [ INTERVAL COUNT ]",
        f"-v -l -q -r -w -H -p -n -y -T=u|d {_ZPOOL_NAMES}",
        verb="iostat",
        why="no -c: it runs scripts; an interval needs a count",
    ),
    Row("/usr/sbin/zpool", "POOL*", "-i -l", verb="history"),
    Row("/usr/sbin/zpool", "POOL?", "-v -H", verb="events", why="no -f: it never ends; no -c: it clears them"),
    Row("/usr/sbin/zpool", "PROPS POOL*", "-H -p -o=PROPS -j,--json --json-int --json-pool-key-guid", verb="get"),
    Row("/usr/sbin/zpool", verb="version"),
    # ZFS datasets
    Row(
        "/usr/sbin/zfs",
        "DATASET*",
        "-r -H -p -j,--json --json-int -d=SMALL -o=PROPS -s=PROPS -S=PROPS -t=ZFSTYPES",
        verb="list",
    ),
    Row(
        "/usr/sbin/zfs",
        "PROPS DATASET*",
        "-r -H -p -j,--json --json-int -d=SMALL -o=PROPS -s=ZFSSOURCES -t=ZFSTYPES",
        verb="get",
    ),
    Row("/usr/sbin/zfs", "SNAPSHOT+", "-r -H -p", verb="holds"),
    Row("/usr/sbin/zfs", "SNAPSHOT SNAPSHOT", "-F -H -t -h", verb="diff", why="two snapshots: with one it takes and destroys another"),
    Row("/usr/sbin/zfs", "DATASET", "-n -H -p -i -o=PROPS -s=PROPS -S=PROPS -t=LIST", verb="userspace"),
    Row("/usr/sbin/zfs", "DATASET", "-n -H -p -i -o=PROPS -s=PROPS -S=PROPS -t=LIST", verb="groupspace"),
    Row("/usr/sbin/zfs", "DATASET", verb="allow", why="with one operand it only lists"),
    Row("/usr/sbin/zfs", verb="mount", why="without operands it only lists"),
    Row("/usr/sbin/zfs", verb="version"),
    Row("/usr/sbin/zdb", "POOL?", "!-C", why="the cached configuration; other letters walk the pool, copy out or import"),
    Row("/usr/sbin/zdb", "DEVICE", "!-l", why="the labels"),
    Row("/usr/sbin/arcstat", "[ INTERVAL COUNT ]", "-a -v -x -p -f=FIELDS -s=CHAR", why="no -o: it writes; an interval needs a count"),
    Row("/usr/sbin/arc_summary", "", "-a,--alternate -d,--description -g,--graph -p,--page=SMALL -r,--raw -s,--section=WORD"),
    # drives
    Row(
        "/usr/sbin/smartctl",
        "DEVICE",
        "-a,--all -x,--xall -i,--info -H,--health -A,--attributes -c,--capabilities -l,--log=SMARTLOG -g,--get=WORD -j --json[=SMARTJSON]"
        " -d,--device=SMARTDEVICE -n,--nocheck=SMARTPOWER -q,--quietmode=errorsonly|silent|noserial"
        " -T,--tolerance=normal|conservative|permissive"
        " -b,--badsum=warn|exit|ignore -f,--format=brief|old|hex|hex,id|hex,val --identify[=n|w|nw] -P,--presets=show|use|ignore",
        why="no -t, -X, -s, -S, -o: they change the drive; no -B: it reads any file; -l scterc without values",
    ),
    Row("/usr/sbin/smartctl", "", "!--scan !--scan-open -j --json[=SMARTJSON] -d,--device=SMARTDEVICE"),
    Row("/usr/sbin/smartctl", "", "!-V,--version,--license,--copyright"),
    Row("/usr/sbin/nvme", "DEVICE?", f"{_NVME}", verb="list", style="single"),
    Row("/usr/sbin/nvme", "DEVICE?", f"{_NVME}", verb="list-subsys", style="single"),
    Row(
        "/usr/sbin/nvme",
        "DEVICE",
        f"{_NVME} -n,--namespace-id=HEXORNUMBER -H,--human-readable",
        verb="smart-log",
        style="single",
        why=_NVME_WHY,
    ),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME} -H,--human-readable", verb="id-ctrl", style="single", why=_NVME_WHY),
    Row(
        "/usr/sbin/nvme",
        "DEVICE",
        f"{_NVME} -n,--namespace-id=HEXORNUMBER -H,--human-readable",
        verb="id-ns",
        style="single",
        why=_NVME_WHY,
    ),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME} -n,--namespace-id=HEXORNUMBER -a,--all", verb="list-ns", style="single", why=_NVME_WHY),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME} -n,--namespace-id=HEXORNUMBER", verb="ns-descs", style="single", why=_NVME_WHY),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME} -e,--log-entries=SMALL", verb="error-log", style="single", why=_NVME_WHY),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME}", verb="fw-log", style="single", why=_NVME_WHY),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME} -H,--human-readable", verb="effects-log", style="single", why=_NVME_WHY),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME}", verb="self-test-log", style="single", why="the log, not a test"),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME} -H,--human-readable", verb="sanitize-log", style="single", why="the log, not a sanitize"),
    Row("/usr/sbin/nvme", "DEVICE", f"{_NVME} -H,--human-readable", verb="show-regs", style="single"),
    Row(
        "/usr/sbin/nvme",
        "DEVICE",
        f"{_NVME} !-f,--feature-id=HEXORNUMBER -n,--namespace-id=HEXORNUMBER -s,--sel=SMALL -H,--human-readable",
        verb="get-feature",
        style="single",
    ),
    Row("/usr/sbin/nvme", verb="version", style="single"),
    Row(
        "/usr/sbin/proxmox-boot-tool",
        "status",
        why="looks into the boot partitions in a mount namespace of its own; every other verb changes them",
    ),
    Row("/usr/sbin/proxmox-boot-tool", "kernel list", why="pin, add and remove are other verbs"),
)
