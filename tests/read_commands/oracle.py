"""A second opinion on accepted commands: the programs' own option strings, dangerous options included, read by another parser.

Nothing here comes from the tables. A command that the grammar accepts must hold no dangerous option, verb or operand when it is read as
the program itself reads it: with abbreviated long options, clusters, and iproute2's prefixes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator


class Danger(AssertionError):
    """An accepted command would do something that it must not."""


# program (or "program verb"): short options as for getopt, long options ("=" takes a value, "?" may take one), and the dangerous ones
_OPTIONS: dict[str, tuple[str, str, str]] = {
    "tail": (
        "c:n:fFqs:vz0123456789",
        "bytes= follow? lines= max-unchanged-stats= pid= quiet retry silent sleep-interval= verbose zero-terminated help version",
        "f F s follow pid retry sleep-interval max-unchanged-stats",
    ),
    "head": (
        "c:n:qvz0123456789",
        "bytes= lines= quiet silent verbose zero-terminated presume-input-pipe help version",
        "presume-input-pipe",
    ),
    "grep": (
        "0123456789A:B:C:D:EFGHILPTUVabcd:e:f:hiLlm:noqRrsuvwxyZz",
        "after-context= before-context= context= devices= directories= extended-regexp fixed-strings basic-regexp perl-regexp regexp= file="
        " ignore-case no-ignore-case word-regexp line-regexp null-data no-messages invert-match version help max-count= byte-offset"
        " line-number"
        " line-buffered with-filename no-filename label= only-matching quiet silent binary-files= text recursive dereference-recursive"
        " include="
        " exclude= exclude-from= exclude-dir= files-without-match files-with-matches count initial-tab null color? colour? binary"
        " unix-byte-offsets"
        " group-separator= no-group-separator",
        "f R D d file dereference-recursive directories devices exclude-from",
    ),
    "wc": ("clLmw", "bytes chars lines words files0-from= max-line-length total= help version", "files0-from"),
    "du": (
        "0abd:chHklmst:xB:DLPSX:",
        "all apparent-size bytes count-links dereference dereference-args exclude= exclude-from= files0-from= human-readable inodes si"
        " max-depth="
        " null no-dereference one-file-system separate-dirs summarize total threshold= time? time-style= block-size= help version",
        "X D H L files0-from exclude-from dereference dereference-args",
    ),
    "df": (
        "aB:iF:hHklmPTt:vx:",
        "all block-size= inodes human-readable si local output? portability print-type sync no-sync total type= exclude-type=",
        "sync",
    ),
    "md5sum": ("bctwz", "binary check ignore-missing quiet status text strict tag warn zero", "c check ignore-missing status strict warn"),
    "file": (
        "bcCde:Ef:F:hiklLm:nNpP:rsSvzZ0",
        "brief checking-printout compile debug exclude= exclude-quiet= files-from= separator= no-dereference mime apple extension"
        " mime-encoding"
        " mime-type keep-going list dereference magic-file= no-buffer no-pad preserve-date parameter= raw special-files no-sandbox"
        " uncompress"
        " uncompress-noreport print0 help version",
        "C f m p s S z Z compile files-from magic-file preserve-date special-files no-sandbox uncompress uncompress-noreport debug",
    ),
    "date": (
        "d:f:I::r:Rs:u",
        "date= debug file= iso-8601? reference= resolution rfc-email rfc-822 rfc-2822 rfc-3339= set= uct utc universal help version",
        "f s file set debug",
    ),
    "hostname": (
        "aAdfbF:h?iIsVvy",
        "domain all-fqdns boot file= fqdn all-ip-addresses help long short ip-address alias version verbose yp nis",
        "b F y boot file yp nis",
    ),
    "dmesg": (
        "CcDdEeF:f:HhJK:kL::l:n:iPprSs:TtuVWwx",
        "buffer-size= clear color? console-level= console-off console-on ctime decode facility= file= follow follow-new force-prefix"
        " human json"
        " kernel kmsg-file= level= nopager notime noescape raw read-clear reltime show-delta since= syslog time-format= until= userspace"
        " help version",
        "C c D E F K n w W clear console-level console-off console-on file follow follow-new kmsg-file read-clear",
    ),
    "dmidecode": (
        "d:hqs:t:uH:Vy:",
        "dev-mem= help quiet string= type= handle= dump dump-bin= from-dump= no-sysfs no-quirks= oem-string= version list-strings"
        " list-types",
        "d dev-mem dump-bin from-dump",
    ),
    "lspci": ("nvbxks:d:tPi:mgp:A:O:H:F:GMDqQ", "help version", "x i p A O H F G M q Q"),
    "lsusb": ("vts:d:D:hV", "verbose tree help version", "D"),
    "sensors": (
        "hsvfAc:uj",
        "help set version fahrenheit no-adapter config-file= bus-list allow-no-sensors",
        "s c set config-file bus-list",
    ),
    "lsblk": (
        "AabdDzE:e:fhI:iJlNvmMno:OpPrSstT::w:Vx:yQ:",
        "all noempty bytes nodeps discard zoned dedup= exclude= fs help include= ascii json list nvme virtio perms merge noheadings output="
        " output-all paths pairs raw scsi inverse topology tree? width= version sort= shell sysroot= filter= properties-by= hyperlink?",
        "sysroot",
    ),
    "blkid": (
        "c:dDghilL:n:ko:O:ps:S:t:u:U:w:Vy",
        "cache-file= no-encoding no-part-details garbage-collect output= match-tag= match-token= list-one label= uuid= probe info size="
        " offset="
        " usages= match-types= hint= help version list-filesystems",
        "g w garbage-collect hint",
    ),
    "findmnt": (
        "AabCcDd:ehIiJfF:kLlmM:nN:o:O:p::PQ:RrS:st:T:Uuvw:Vxy",
        "all ascii bytes canonicalize nocanonicalize deleted df dfi direction= evaluate filter= first-only fstab help hyperlink? id="
        " invert json"
        " kernel? list mtab mountpoint= noheadings notruncate options= output= output-all pairs poll? pseudo raw real shadowed submounts"
        " source="
        " tab-file= target= task= timeout= tree types= uniq uniq-id= nofsroot verbose verify version vfs-all shell list-columns",
        "F N p w poll tab-file task timeout",
    ),
    "losetup": (
        "ac:dDe:E:fhj:JlLno:O:PrvV",
        "all set-capacity= detach detach-all find nooverlap offset= sizelimit= sector-size= partscan read-only show direct-io? list"
        " noheadings"
        " output= output-all raw json associated= help version",
        "c d D e E f L o P r v set-capacity detach detach-all find nooverlap offset sizelimit sector-size partscan read-only direct-io"
        " show",
    ),
    "swapon": (
        "ahd::efp:svVL:U:o:T:",
        "all discard? ifexists fixpgsz fstab= options= priority= summary show? noheadings raw bytes help verbose version",
        "a d e f p o T L U all discard ifexists fixpgsz fstab options priority",
    ),
    "mount": (
        "aBcfFhilL:m::Mno:O:rRsU:vVwt:T:N:",
        "all bind fake fork fstab= help internal-only label= labels map-groups= map-users= mkdir? move make-shared move no-mtab"
        " no-canonicalize"
        " options= options-mode= options-source= rbind read-only rw read-write show-labels source= target= target-prefix= test-opts="
        " types= uuid="
        " verbose version namespace= onlyonce beneath",
        "a B f F i L m M o O r R s U w T N all bind fake fork fstab label mkdir move options options-mode options-source rbind read-only rw"
        " read-write source target target-prefix uuid namespace",
    ),
    "sysctl": (
        "bneNwf::p::qoxaAXr:Vdhl",
        "all binary dry-run deprecated ignore names values load? quiet system write pattern= help version color",
        "w f p q X x o load quiet system write binary",
    ),
    "free": (
        "bkmgs:c:thvwlLV",
        "bytes kilo mega giga tera peta kibi mebi gibi tebi pebi human si lohi line committed total seconds= count= wide help version",
        "",
    ),
    "journalctl": (
        "hefo:aln::qmb::kD:p:g:c:S:U:t:T:u:NF:xrM:i:W",
        "help version no-pager pager-end follow output= all full no-full lines? no-tail truncate-newline quiet merge boot? this-boot"
        " list-boots"
        " list-invocations dmesg system user directory= file= root= image= image-policy= header identifier= exclude-identifier= priority="
        " facility= grep= case-sensitive? cursor= cursor-file= after-cursor= show-cursor since= until= unit= user-unit= field= fields"
        " list-catalog"
        " dump-catalog update-catalog reverse machine= utc flush relinquish-var smart-relinquish-var sync rotate vacuum-size= vacuum-files="
        " vacuum-time= no-hostname output-fields= namespace= list-namespaces setup-keys interval= verify verify-key= force catalog"
        " new-id128"
        " disk-usage invocation= synchronize-on-exit=",
        "f D i M follow directory file root image cursor-file update-catalog machine flush relinquish-var smart-relinquish-var sync rotate"
        " vacuum-size vacuum-files vacuum-time namespace setup-keys interval verify-key force new-id128",
    ),
    "systemctl": (
        "ht:p:P:alqfs:H:M:n:o:iTrC:Sv",
        "help version type= property= all reverse after before show-types failed full job-mode= fail irreversible ignore-dependencies"
        " ignore-inhibitors check-inhibitors= value user system global wait no-block legend= no-legend no-pager no-wall dry-run quiet"
        " root= image="
        " image-policy= force no-reload kill-whom= kill-value= signal= no-ask-password host= machine= runtime lines= output= plain state="
        " recursive with-dependencies preset-mode= firmware-setup boot-loader-menu= boot-loader-entry= now message= show-transaction"
        " timestamp="
        " read-only mkdir marked drop-in= when= stdin capsule= clean= verbose",
        "f s H M i T C S root image host machine force signal kill-whom kill-value global user wait now runtime firmware-setup dry-run"
        " stdin mkdir",
    ),
    "coredumpctl": (
        "hqo:F:1D:rS:U:n:aA:",
        "help version no-pager no-legend debugger= debugger-arguments= output= field= file= directory= reverse since= until= quiet json="
        " root="
        " image= image-policy= all",
        "o F D A debugger debugger-arguments output field file directory root image",
    ),
    "smartctl": (
        "h?Vq:d:T:b:r:s:o:S:HcAl:iaxv:P:t:CXF:n:B:f:g:j",
        "help usage version copyright license quietmode= device= tolerance= badsum= report= smart= offlineauto= saveauto= health"
        " capabilities"
        " attributes log= info all xall vendorattribute= presets= test= captive abort firmwarebug= nocheck= drivedb= format= get= json?"
        " set="
        " identify? scan scan-open",
        "r s o S v t C X F B report smart offlineauto saveauto vendorattribute test captive abort firmwarebug drivedb set",
    ),
    "ss": (
        "dhaBletuwxnro460spTbEf:mMiA:D:F:vVzZN:KHQSO",
        "numeric resolve options extended memory info processes threads bpf bpf-maps bpf-map-id= all listening ipv4 ipv6 packet events"
        " dccp tcp"
        " sctp udp raw unix tipc vsock family= query= socket= summary diag= filter= version help context contexts net= tos cgroup kill"
        " no-header"
        " xdp mptcp oneline inet-sockopt no-queues bound-inactive",
        "D F N K E events diag filter net kill bpf-map-id",
    ),
    "iptables": (
        "A:C:D:R:I:L::S::M:F::Z::N:E:X::P:Vh::o:p:s:d:j:i:fbvw::W::nt:m:xc:g:46",
        "append= delete= check= insert= replace= list? list-rules? flush? zero? new-chain= delete-chain? rename-chain= policy= source="
        " destination="
        " protocol= in-interface= jump= table= match= numeric out-interface= verbose wait? wait-interval? exact fragments version help"
        " line-numbers"
        " modprobe= set-counters= goto= ipv4 ipv6",
        "A C D R I M F Z N E X P o p s d j i f m c g append delete check insert replace flush zero new-chain delete-chain rename-chain"
        " policy"
        " modprobe set-counters goto jump",
    ),
    "iptables-save": ("bcdt:M:f:46V", "binary counters version dump table= modprobe= file= ipv4 ipv6", "M f d modprobe file dump"),
    "dpkg": (
        "iAuUrPlsSLpCVGREBD:ahf:",
        "install unpack record-avail configure triggers-only update-avail merge-avail clear-avail forget-old-unavail remove purge verify?"
        " audit"
        " get-selections set-selections clear-selections yet-to-unpack predep-package add-architecture= remove-architecture="
        " print-architecture"
        " print-foreign-architectures list status listfiles search print-avail admindir= root= instdir= log= pre-invoke= post-invoke="
        " path-exclude="
        " path-include= no-pager force-all abort-after= ignore-depends= no-act simulate dry-run status-fd= status-logger= version help",
        "i A u U r P G R E B D a install unpack record-avail configure triggers-only update-avail merge-avail clear-avail"
        " forget-old-unavail remove"
        " purge set-selections clear-selections add-architecture remove-architecture admindir root instdir log pre-invoke post-invoke"
        " path-exclude"
        " path-include force-all status-fd status-logger",
    ),
    "dpkg-query": (
        "lWsLSpc:f:",
        "list show status listfiles search print-avail control-path control-list control-show showformat= admindir= root= load-avail"
        " no-pager",
        "c admindir root load-avail control-path control-list control-show",
    ),
    "apt": (
        "o:c:t:qyfavViunsdm?h",
        "option= config-file= target-release= default-release= quiet yes assume-yes installed upgradable upgradeable manual-installed"
        " all-versions"
        " no-all-versions verbose names-only full simulate download-only",
        "o c t y option config-file target-release default-release yes assume-yes",
    ),
    "apt-cache": (
        "o:c:p:s:t:qifangvh",
        "option= config-file= pkg-cache= src-cache= target-release= default-release= quiet important installed no-recommends no-suggests"
        " recurse"
        " all-versions no-all-versions names-only full generate all-names no-generate verbose no-pre-depends no-depends no-conflicts"
        " no-breaks"
        " no-replaces no-enhances implicit",
        "o c p s t g option config-file pkg-cache src-cache target-release default-release generate",
    ),
    "apt-mark": ("o:c:f:qyh", "option= config-file= file= quiet", "o c f option config-file file"),
    "last": (
        "hVf:n:RxadFit:p:s:0123456789w",
        "limit= help file= nohostname version hostlast since= until= system dns ip fulltimes fullnames time-format= present= tab-separated",
        "f file",
    ),
    "getent": ("s:iA:?V", "service= no-idn no-addrconfig help usage version", "s A service"),
    "id": ("aGgnruZz", "context group groups name real user zero help version", ""),
    "who": (
        "abdHlmpqrstTuw",
        "all boot dead heading ips login lookup message mesg process runlevel short time users writable count help version",
        "",
    ),
    "vmstat": (
        "afmnsdDp:S:twyVh",
        "active forks slabs one-header stats disk disk-sum partition= unit= wide timestamp no-first help version",
        "p partition",
    ),
    "iostat": ("cdhkmNstxyzVo:p:g:j:", "dec= human pretty compact", "p g j"),
    "mpstat": ("AnuTVP:I:N:o:", "dec=", ""),
    "hostnamectl": ("hH:M:j", "help version host= machine= transient static pretty json= no-ask-password", "H M host machine"),
    "timedatectl": (
        "hH:M:p:aP:",
        "help version host= machine= adjust-system-clock monitor property= all value no-pager no-ask-password",
        "H M host machine monitor",
    ),
    "loginctl": (
        "hH:M:p:aln:o:s:P:",
        "help version host= machine= property= all full lines= output= no-pager no-legend kill-whom= signal= value no-ask-password json=",
        "H M s host machine kill-whom signal",
    ),
    "zpool status": ("c:dDegijLpPstT:vx", "json json-int json-flat-vdevs json-pool-key-guid power", "c power"),
    "zpool list": ("gjHLo:pPT:v", "json json-int json-pool-key-guid", ""),
    "zpool iostat": ("c:gLPT:vyhplqrwnH", "", "c h"),
    "zpool events": ("vHfc", "", "f c"),
    "zpool history": ("il", "", ""),
    "zpool get": ("jHo:p", "json json-int json-pool-key-guid", ""),
    "zfs list": ("jHS:d:o:prs:t:", "json json-int", ""),
    "zfs get": ("d:o:s:jrt:Hp", "json json-int", ""),
    "zfs diff": ("FHthwS", "", ""),
    "zfs holds": ("rHp", "", ""),
    "zdb": (
        "AbBcCdDeEFGhiI:kK:lLmMNo:Op:PqrRsSt:TuU:vVx:XYyZ",
        "",
        "A b B c d D e E F G h i I k K L m M N o O p q r R s S t T u U x X Y y Z",
    ),
    "arcstat": ("axzdhvo:s:f:p", "help version", "o"),
    "tree": (
        "adfhsDpuginCASNqQtcvrxFJXL:P:I:o:RlH:T:U",
        "prune noreport dirsfirst du si inodes device filelimit= sort= matchdirs ignore-case filesfirst nolinks gitignore gitfile= info"
        " infofile="
        " fromfile fromtabfile help version charset= metafirst timefmt= hintro= houtro= sort? opt-toggle",
        "o R l H T fromfile fromtabfile gitfile infofile info hintro houtro",
    ),
}
_SAME = {
    "grep": "egrep fgrep",
    "iptables": "ip6tables",
    "iptables-save": "ip6tables-save",
    "md5sum": "sha1sum sha224sum sha256sum sha384sum sha512sum",
}
_OPTIONS |= {copy: _OPTIONS[of] for of, copies in _SAME.items() for copy in copies.split()}
_STOPS_AT_OPERAND = {"dpkg", "dpkg-query"}
_VERBS = {
    "systemctl": "status show is-active is-enabled is-failed is-system-running get-default list-units list-unit-files list-timers"
    " list-sockets"
    " list-jobs list-dependencies list-automounts list-paths",
    "coredumpctl": "list info",
    "loginctl": "list-sessions list-users list-seats session-status user-status seat-status",
    "timedatectl": "status show timesync-status show-timesync list-timezones",
    "hostnamectl": "status",
    "apt": "list show policy depends rdepends search",
    "apt-cache": "policy stats pkgnames showsrc madison show showpkg depends rdepends search",
    "apt-mark": "showhold showmanual showauto showinstall",
    "zpool": "status list iostat history events get version",
    "zfs": "list get holds diff userspace groupspace allow mount version",
    "qm": "list config status pending listsnapshot showcmd",
    "pct": "list config status pending listsnapshot cpusets",
    "pvesm": "status list path apiinfo",
    "pvesh": "get ls usage",
    "pvecm": "status nodes",
    "pvesr": "status list read",
    "ha-manager": "status config groupconfig rules",
    "pve-firewall": "status localnet",
    "proxmox-boot-tool": "status kernel",
    "pveam": "list available",
    "pveum": "user role group acl pool realm",
    "pvenode": "config cert task",
    "dmsetup": "ls status deps info version",
    "nvme": "list list-subsys smart-log id-ctrl id-ns list-ns ns-descs error-log fw-log effects-log self-test-log sanitize-log show-regs"
    " get-feature version",
    "getent": "passwd group hosts ahosts ahostsv4 ahostsv6 services protocols networks rpc ethers",
}
_NO_SUCH_WORD = {
    "find": "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from -follow -L -H",
    "lshw": "-dump -X",
    "ceph": "-w --watch auth config config-key tell -i -o -c --keyring",
    "chronyc": "-m -h -f makestep burst online offline",
    "corosync-cfgtool": "-R -r -k -H -a",
    "corosync-quorumtool": "-e -v -m -f",
    "ethtool": "-s -K -E -f -p -r -t -d -w -G -C -A -L -N -U -X --monitor --reset --change",
    "mdadm": "--stop --monitor --assemble --create --grow",
    "hdparm": "-W -y -Y -t -T -f -r -S -z",
}
_IP_OBJECTS = [
    "address",
    "addrlabel",
    "maddress",
    "route",
    "rule",
    "neighbor",
    "neighbour",
    "ntable",
    "ntbl",
    "link",
    "l2tp",
    "fou",
    "ila",
    "macsec",
    "tunnel",
    "tunl",
    "tuntap",
    "tap",
    "token",
    "tcpmetrics",
    "monitor",
    "xfrm",
    "mroute",
    "mrule",
    "netns",
    "netconf",
    "vrf",
    "sr",
    "nexthop",
    "mptcp",
    "ioam",
    "help",
    "stats",
]
_IP_VERBS = {
    "address": "add change replace delete show lst list flush save showdump restore",
    "link": "add set change replace delete show lst list xstats afstats property",
    "route": "list show lst get add change chg replace prepend append test delete flush save restore showdump",
    "neighbor": "add change chg replace delete get show lst list flush",
    "neighbour": "add change chg replace delete get show lst list flush",
    "rule": "list lst show save restore add delete flush",
    "maddress": "add delete list show lst",
    "netns": "list show lst list-id add set delete identify pids exec monitor attach",
    "nexthop": "add replace delete list show lst get flush bucket",
    "tunnel": "add change delete show lst list prl 6rd",
    "tuntap": "add delete show lst list",
    "vrf": "show lst list identify pids exec",
}  # fmt: skip
_SECRET = re.compile(
    r"/etc/g?shadow|/etc/pve/(.*/)?priv(/|$)|/\.ssh(/|$)|\.key$|/id_(rsa|dsa|ecdsa|ed25519)|ssh_host_[a-z0-9]+_key$|_history$|^/proc/.*/(environ|mem"
    r"|maps|root|cwd|fd/|auxv)|^/proc/(kcore|kmsg)|pve-cluster|corosync/authkey|/\.(pgpass|netrc|my\.cnf)|/sys/kernel/(debug|tracing)|/\.zfs"
)
_READERS = [
    "cat",
    "tac",
    "nl",
    "head",
    "tail",
    "zcat",
    "xzcat",
    "zstdcat",
    "bzcat",
    "wc",
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "b2sum",
    "cksum",
    "file",
]


_LOOKERS = ["ls", "stat", "readlink", "realpath", "getfacl", "du", "df", "tree", "lsblk", "blkid", "smartctl", "losetup"]


def check(argv: tuple[str, ...]) -> None:
    """Raise Danger when this command is not read-only in the eyes of the program itself."""
    program, words = posixpath.basename(argv[0]), list(argv[1:])
    if not argv[0].startswith("/usr/") or ".." in argv[0]:
        raise Danger(f"program {argv[0]}")
    key = f"{program} {words[0]}" if words and f"{program} {words[0]}" in _OPTIONS else program
    operands = [word for word in words if not word.startswith("-")]
    if key in _OPTIONS:
        operands = _options(key, words[len(key.split()) - 1 :])
    if program in _VERBS:
        _verb(program, operands if key == program else [words[0]])
    if program in _NO_SUCH_WORD and (bad := set(words) & set(_NO_SUCH_WORD[program].split())):
        raise Danger(f"{program} {bad}")
    _special(program, words, operands)
    for word in words:
        _word(program, word)


def _options(key: str, words: list[str]) -> list[str]:
    short, long, bad = _OPTIONS[key]
    dangerous = set(bad.split())
    operands: list[str] = []
    for kind, name in _getopt(short, long.split(), words, stops=key in _STOPS_AT_OPERAND):
        if kind == "operand":
            operands.append(name)
        elif name in dangerous:
            raise Danger(f"{key} option {name}")
    return operands


def _getopt(short: str, long: list[str], words: list[str], *, stops: bool) -> Iterator[tuple[str, str]]:
    names = {name.rstrip("=?"): name[-1] if name[-1] in "=?" else "" for name in long}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--" or (stops and not (len(word) > 1 and word[0] == "-")):
            yield from (("operand", left) for left in ([] if word == "--" else [word]) + rest)
            return
        if word.startswith("--"):
            name, equals, _ = word[2:].partition("=")
            full = [name] if name in names else [known for known in names if known.startswith(name)]
            for known in full:
                yield "option", known
            if not full:
                yield "option", name
            if len(full) == 1 and names[full[0]] == "=" and not equals and rest:
                rest.pop(0)
        elif len(word) > 1 and word[0] == "-":
            for at, letter in enumerate(word[1:], 2):
                yield "option", letter
                place = short.find(letter)
                if place >= 0 and short[place + 1 : place + 2] == ":":
                    if not word[at:] and short[place + 2 : place + 3] != ":" and rest:
                        rest.pop(0)
                    break
        else:
            yield "operand", word


def _verb(program: str, operands: list[str]) -> None:
    allowed = _VERBS[program].split()
    if operands and operands[0] not in allowed:
        raise Danger(f"{program} {operands[0]}")


def _special(program: str, words: list[str], operands: list[str]) -> None:
    if program == "ip":
        families = {at + 1 for at, word in enumerate(words) if word in {"-f", "-family"}}
        _ip([word for at, word in enumerate(words) if not word.startswith("-") and at not in families], words)
    if program in {"pveum", "pvenode"} and not {"list", "permissions", "get", "info", "log", "status"} & set(words[1:3]):
        raise Danger(f"{program} {words}")
    if program == "nft" and (re.search(r"[;{}\n]", " ".join(words)) or "list" not in words):
        raise Danger("nft script")
    if program == "date" and any(not operand.startswith("+") for operand in operands):
        raise Danger("date sets the clock")
    if program in {"hostname", "mount", "swapon", "sysctl"} and any("=" in operand or program != "sysctl" for operand in operands):
        raise Danger(f"{program} {operands}")
    if program == "zfs" and words[0] == "diff" and sum("@" in operand for operand in operands) != 2:
        raise Danger("zfs diff takes a snapshot")
    if program in {"zfs"} and words[0] in {"allow", "mount"} and len(operands) > 2 - (words[0] == "mount"):
        raise Danger("zfs allow or mount changes")
    if program == "ps" and any(re.fullmatch(r"[a-zA-Z]*e[a-zA-Z]*", word) and word not in {"comm", "sleep"} for word in _bsd(words)):
        raise Danger("ps shows environments")
    numbers = [word for word in operands if re.fullmatch(r"[0-9.]+", word)]
    if program in {"vmstat", "iostat", "mpstat", "arcstat"} and len(numbers) == 1:
        raise Danger("no end")


def _bsd(words: list[str]) -> Iterator[str]:
    takes = {
        "-p",
        "-o",
        "-C",
        "-u",
        "-U",
        "-q",
        "--sort",
        "--pid",
        "--ppid",
        "--user",
        "--User",
        "--format",
        "--cols",
        "--rows",
        "--columns",
        "--lines",
        "--width",
        "--quick-pid",
    }
    previous = ""
    for word in words:
        if (
            not word.startswith("-")
            and previous not in takes
            and not re.fullmatch(r"-[a-zA-Z]*[opCuUq]", previous)
            and not previous.endswith("o")
        ):
            yield word
        previous = word


def _ip(plain: list[str], words: list[str]) -> None:
    if any(re.match(r"-{1,2}(b|ba|bat|batc|batch|force|fo|for|forc|n|netns|a|all|rc|rcvbuf)$", word) for word in words):
        raise Danger("ip option")
    if not plain:
        return
    found = next((known for known in _IP_OBJECTS if known.startswith(plain[0])), None)
    if len(plain) > 1 and found in _IP_VERBS:
        verb = next((known for known in _IP_VERBS[found].split() if known.startswith(plain[1])), "")
        if verb not in {"show", "lst", "list", "get", "list-id"}:
            raise Danger(f"ip {found} {verb or plain[1]}")
    if found in {"monitor", "xfrm", "l2tp", "macsec", "token", "sr", "mptcp", "tcpmetrics"}:
        raise Danger(f"ip {found}")


def _word(program: str, word: str) -> None:
    if any(not " " <= char <= "~" for char in word):
        raise Danger(f"a strange character in {word!r}")
    if program in _READERS and word.startswith("/") and (posixpath.normpath(word) != word or word.startswith("/dev")):
        raise Danger(f"path {word}")
    if program in (*_READERS, *_LOOKERS) and word.startswith("/") and _SECRET.search(word):
        raise Danger(f"secret {word}")
