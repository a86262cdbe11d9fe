"""Which paths may be looked at, and how closely: one table of patterns, applied here before sending and by `far_side` after symlinks.

Patterns are those of a POSIX shell's `case` (and of `find -path`): `*` also crosses `/`, so a leading `*` covers a container's root
file system below any dataset or mount point.
"""

from __future__ import annotations

import re
from enum import StrEnum
from fnmatch import fnmatchcase


class Kind(StrEnum):
    """What a command does with a path operand, and so what must hold for it after its symlinks are resolved."""

    FILE = "file"  # shows the content: a regular file, or a listed file of /proc or /sys
    SUM = "sum"  # reads the content, shows a digest, a count or a type: the same, disk images and archives too
    META = "meta"  # shows names and attributes only
    TREE = "tree"  # shows the names below a directory: none of them secret
    GREP = "grep"  # shows the content below a directory: no secret in it
    DEVICE = "device"  # opens a disk: a block device or a character device of NVMe or SCSI


RECURSIVE = frozenset({Kind.TREE, Kind.GREP})
MAY_BE_DIRECTORY = RECURSIVE | {Kind.META}
SHOWS_CONTENT = frozenset({Kind.FILE, Kind.GREP})
OPENS = frozenset({Kind.FILE, Kind.SUM, Kind.GREP})


def _patterns(*lines: str) -> tuple[str, ...]:
    return tuple(" ".join(lines).split())


# Never touched, not even listed.
SECRET = _patterns(
    # accounts
    "*/etc/shadow* */etc/gshadow* */var/backups/shadow* */var/backups/gshadow* */etc/security/opasswd*",
    # Proxmox: pmxcfs, its database, subscription, corosync, SDN services with their API keys, Backup Server
    "*/etc/pve/priv */etc/pve/priv/* */etc/pve/*/priv */etc/pve/*/priv/* */etc/pve/sdn/dns.cfg */etc/pve/sdn/ipams.cfg",
    "*/etc/pve/.debug* */etc/pve/domains.cfg*",
    "*/var/lib/pve-cluster */var/lib/pve-cluster/* */etc/corosync/authkey* */etc/corosync/qdevice */etc/corosync/qdevice/*",
    "*/etc/subscription* */etc/proxmox-backup */etc/proxmox-backup/* */etc/apt/auth.conf*",
    # SSH and GnuPG, public halves included: they sit beside private ones, and authorized_keys leads to /etc/pve/priv
    "*/.ssh */.ssh/* */.gnupg */.gnupg/* */secring*",
    # keys and passwords of services
    "*/etc/ssl/private */etc/ssl/private/* */etc/letsencrypt/accounts* */etc/letsencrypt/keys* */etc/cryptsetup-keys.d* */etc/zfs/keys*",
    "*/etc/wireguard */etc/wireguard/* */etc/openvpn */etc/openvpn/* */etc/ipsec.secrets* */etc/ipsec.d/private* */etc/swanctl/*",
    "*/etc/ppp/*-secrets* */etc/wpa_supplicant* */etc/NetworkManager/system-connections* */var/lib/samba/private*",
    "*/etc/iscsi/iscsid.conf* */etc/iscsi/nodes* */etc/iscsi/send_targets* */etc/postfix/sasl* */sasl_passwd* */etc/exim4/passwd*",
    "*/etc/ssmtp* */msmtprc */.msmtprc */etc/mysql/debian.cnf* */var/lib/ceph/*keyring* */etc/ceph/*keyring* */run/user/*/keyring*",
    "*/etc/credstore* */run/credentials* */run/credstore* */run/secrets* */var/lib/systemd/credential.secret */var/lib/systemd/random-seed",
    "*/var/log/journal/*/fss */var/lib/systemd/coredump/* */var/crash/* */var/cache/debconf/passwords.dat* */var/log/installer/cdebconf/*",
    "*/etc/snmp/snmpd*.conf* */var/lib/snmp/* */etc/nut/upsd.users* */etc/nut/upsmon.conf* */etc/sssd */etc/sssd/* */etc/nslcd.conf*",
    "*/etc/ldap.secret* */etc/target/* */etc/rtslib-fb-target/* */etc/drbd.d/*.res */var/lib/linstor.d/* */etc/keepalived/keepalived.conf*",
    "*/etc/kubernetes/* */etc/rancher/* */var/lib/tailscale/* */etc/cloudflared/* */krb5cc_* */tls/private/*",
    # what people leave in their home directories
    "*/.*history */.*_history* */.lesshst */.viminfo* */.pgpass* */.netrc* */.my.cnf* */.mylogin.cnf* */.git-credentials* */.docker",
    "*/.docker/* */.kube */.kube/* */.aws */.aws/* */.azure */.azure/* */.config/gcloud* */.config/rclone* */.config/gh */.config/gh/*",
    "*/.config/proxmox-backup* */.npmrc */.pypirc */.vault-token* */.password-store* */.smbcredentials* */.htpasswd* */.env */.env.*",
    "*/.Xauthority */.boto */.cloudflared/* */.wgetrc */.curlrc */.s3cfg */.mc */.mc/* */.acme.sh/*.conf */.config/borg/* */.secrets",
    "*/.secrets/* */.local/share/keyrings*",
    # data of programs that keep accounts in it
    "*/var/lib/mysql/* */var/lib/postgresql/* */var/lib/pgsql/* */var/lib/docker/* */var/lib/containerd/*",
    "*/etc/sasldb* */etc/dovecot/users* */etc/raddb/users* */etc/freeradius/*/users* */etc/squid/passwd* */etc/mosquitto/passwd* */psk.txt",
    # processes: their environment and memory, and the magic links that lead out of /proc
    "/proc/*/environ /proc/*/mem /proc/*/auxv /proc/*/maps /proc/*/smaps /proc/*/pagemap /proc/kcore /proc/kmsg /proc/keys",
    "/proc/*/root /proc/*/root/* /proc/*/cwd /proc/*/cwd/* /proc/*/fd/* /proc/*/map_files/*",
    # looking into .zfs mounts the snapshot: a change
    "*/.zfs */.zfs/*",
)
# Private by the look of their names ...
PRIVATE = _patterns(
    "*.key *.pem *.p12 *.pfx *.jks *.keytab *.ppk *.kdbx *.keyring */keyring *.pw *.psk *.env *.KEY *.PEM *.P12 *.PFX",
    "*/id_rsa* */id_dsa* */id_ecdsa* */id_ed25519* *host*_key *_rsa_key *authkey* *private_key* *private-key* *privkey*",
    "*/credentials* *.credentials */secrets* *.secret *.secrets *.token */*_token */rclone.conf */htpasswd* *.htpasswd *.htdigest",
    "*/wg*.conf *.ovpn */passwd.client* *.keys *key.json *.tfstate *.tfvars *.passwd *[Pp]assword* *[Pp]assphrase*",
    "*vault_pass* *vault-pass* */token */tokens */*smbcred* */*-credentials",
)
# ... except these, which are public.
PUBLIC = _patterns(
    "*.pub *.pub.old /etc/ssl/certs/* /usr/share/ca-certificates/* /usr/local/share/ca-certificates/* /usr/share/keyrings/*",
    "/etc/pve/pve-root-ca.pem /etc/pve/local/pve-ssl.pem /etc/pve/local/pveproxy-ssl.pem /etc/pve/nodes/*/pve-ssl.pem",
    "/etc/pve/nodes/*/pveproxy-ssl.pem /etc/letsencrypt/*/cert[0-9.]*pem /etc/letsencrypt/*/chain[0-9.]*pem",
    "/etc/letsencrypt/*/fullchain[0-9.]*pem /usr/lib/python3/* /usr/share/* /usr/lib/* /etc/pam.d/*",
)
# Guests inside: what a disk image, a backup or cloud-init data holds is the guest's, and may be measured but not shown.
CONTENT = _patterns(
    "*/images/[0-9]*/* */vm-[0-9]*-disk-* */base-[0-9]*-disk-* */vm-[0-9]*-state-* */vm-[0-9]*-cloudinit* *.qcow2 *.vmdk *.raw *.vdi",
    "*.vhd *.vhdx *.img */vzdump-*.tar* */vzdump-*.vma* */vzdump-*.tgz */snippets/*.y*ml */snippets/*user* *.core */core.[0-9]*",
    "*/var/lib/cloud/*user-data* */var/lib/cloud/*vendor-data*",
)
# Read by journalctl, which leaves out the environments in it; a search through a tree says of them only whether they match.
JOURNALS = _patterns("*.journal *.journal[.-]*")
# Root file systems of containers, where a guest's root can swap files for links at any moment.
GUEST_ROOTS = _patterns("*/subvol-[0-9]*-disk-* */basevol-[0-9]*-disk-* */var/lib/lxc/*/rootfs*")
_PROCESS = _patterns(
    "status stat statm limits io sched schedstat cgroup comm cmdline mountinfo mounts mountstats oom_score oom_score_adj oom_adj loginuid",
    "sessionid wchan stack smaps_rollup cpuset net/* uid_map gid_map personality autogroup",
)
_PROC = _patterns(
    "buddyinfo cgroups cmdline config.gz consoles cpuinfo crypto devices diskstats dma filesystems interrupts iomem ioports loadavg locks",
    "mdstat meminfo misc modules mounts mtrr pagetypeinfo partitions schedstat slabinfo softirqs stat swaps timer_list uptime version",
    "vmallocinfo vmstat zoneinfo scsi/* sysvipc/* tty/drivers irq/* pressure/* net/* spl/kstat/* driver/rtc bus/pci/devices",
    "bus/input/devices fs/ext4/* fs/jbd2/* fs/xfs/* sys/kernel/* sys/vm/* sys/fs/* sys/net/* sys/dev/*",
)
_CLASSES = _patterns(
    "net block hwmon thermal power_supply nvme nvme-subsystem scsi_host scsi_disk scsi_device fc_host sas_host sas_phy rtc dmi/id bdi",
    "infiniband mdev_bus watchdog iommu ata_link ata_port enclosure",
)
# The files of /proc and /sys that may be opened: reading has no side effect, ends, and shows no process's memory or environment ...
LISTED = (
    *(f"/proc/{name}" for name in _PROC),
    *(f"/proc/{process}/{name}" for process in ("[0-9]*", "self") for name in _PROCESS),
    *(f"/sys/class/{name}/*" for name in _CLASSES),
    *_patterns(
        "/sys/block/* /sys/bus/pci/devices/* /sys/bus/usb/devices/* /sys/module/* /sys/kernel/mm/* /sys/kernel/iommu_groups/*",
        "/sys/fs/cgroup/* /sys/fs/ext4/* /sys/fs/xfs/* /sys/fs/btrfs/* /sys/firmware/efi/fw_platform_size /sys/power/state",
        "/sys/power/mem_sleep /sys/devices/system/cpu/* /sys/devices/system/node/* /sys/devices/system/edac/* /sys/devices/virtual/*",
    ),
)
# ... but none of these, wherever they hang: keys, and registers whose reading touches the hardware.
UNLISTED = _patterns(
    "/proc/sys/*secret* /proc/sys/*_key /proc/sys/fs/binfmt_misc* /proc/net/rpc/* /proc/*/net/rpc/*",
    "/sys/*secret* /sys/*_key* /sys/*/tls_* /sys/*password* /sys/*/rom /sys/*/resource* /sys/*/config /sys/*/vpd /sys/*/eeprom*",
    "/sys/*/nvmem* /sys/*/nvram* /sys/*/trace* /sys/*/sections/* /sys/*/notes/*",
)
# One example of each place, `*` standing for one name: what lies above them is not read by recursion, without asking the node.
_KNOWN = _patterns(
    "/etc/shadow /etc/pve/priv/authkey.key /etc/pve/nodes/*/priv /etc/pve/local/priv /etc/ssh/ssh_host_rsa_key /etc/ssl/private/x.key",
    "/etc/corosync/authkey /root/.ssh/id_rsa /home/*/.ssh/id_rsa /var/backups/shadow.bak /var/lib/pve-cluster/config.db",
    "/var/lib/systemd/random-seed /var/lib/lxc/*/rootfs/etc/shadow /run/credentials/x /run/user/*/keyring /proc/1/environ",
)
PROC, SYS, DEV = "/proc", "/sys", "/dev"
_SHAPE = re.compile(r"/[A-Za-z0-9 _.,:;=@%+~#^&!'()\[\]{}\"/-]*")


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns matches as `case` would match it."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def below(path: str, top: str) -> bool:
    """Whether `path` is `top` or lies in it."""
    return path == top or path.startswith(top + "/")


def fault(text: str, kind: Kind) -> str | None:
    """Why this operand is refused before anything is sent, or None. `text` as the user wrote it, without quotes."""
    if not text.startswith("/"):
        return "an absolute path is expected"
    if not _SHAPE.fullmatch(text):
        return "a path holds none of * ? $ ` < > | and backslash; no shell expands it"
    path = text.removesuffix("/") if kind in MAY_BE_DIRECTORY else text
    if any(part in {"", ".", ".."} for part in path.split("/")[1:]):
        return "the path is not canonical: no .., ., // or trailing /"
    return judge(path or "/", kind)


def judge(path: str, kind: Kind) -> str | None:
    """Why a canonical path is refused for this kind of use, or None. The far side applies the same rules to the resolved path."""
    if matches(path, SECRET):
        return "holds secrets, or opening it has effects"
    if kind is Kind.DEVICE:
        return None
    if matches(path, PRIVATE) and not matches(path, PUBLIC):
        return "looks like a private key or a credential"
    if kind in SHOWS_CONTENT and matches(path, CONTENT):
        return "holds a guest's data"
    if kind is Kind.FILE and matches(path, JOURNALS):
        return "is a journal: journalctl shows it"
    if kind in OPENS and below(path, DEV):
        return "is a device"
    if kind in OPENS and (below(path, PROC) or below(path, SYS)) and not listed(path, kind):
        return "is not one of the listed files of /proc and /sys"
    if kind in RECURSIVE and (below(path, PROC) or holds_known(path)):
        return "is or contains a secret path: name a smaller directory"
    return None


def listed(path: str, kind: Kind) -> bool:
    """Whether this file of /proc or /sys may be opened."""
    return kind is not Kind.GREP and matches(path, LISTED) and not matches(path, UNLISTED)


def holds_known(directory: str) -> bool:
    """Whether a well-known secret lies below (`/`, `/etc`, `/root`, `/home/someone` ...)."""
    names = [] if directory == "/" else directory.split("/")[1:]
    return any(
        len(names) < len(known) and all(fnmatchcase(name, pattern) for name, pattern in zip(names, known, strict=False))
        for known in (path.split("/")[1:] for path in _KNOWN)
    )
