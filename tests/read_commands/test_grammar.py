"""What the matcher accepts and refuses, and how it says so."""

from __future__ import annotations

import shlex

import pytest

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.read_commands import Kind, PathCheck, describe, match
from proxmox_mcp.read_commands.grammar import Grammar, Row
from proxmox_mcp.read_commands.types import Limits
from proxmox_mcp.read_commands.words import Word
from tests.read_commands.lists import ACCEPTED, REFUSED, SHARED, read

_NO_SHARED = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared lists are not here")


def _refusal(line: str, **limits: float) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        match(line, **limits)  # type: ignore[arg-type]
    assert caught.value.argument == "command"
    return caught.value


@pytest.mark.parametrize("line", ACCEPTED)
def test_accepted_with_the_exact_argv(line: str) -> None:
    command = match(line)
    words = shlex.split(line)
    assert command.argv == (command.argv[0], *words[1:])
    assert command.argv[0] in {row.program for row in describe()}
    assert command.argv[0].rsplit("/", 1)[-1] == words[0].rsplit("/", 1)[-1]


@pytest.mark.parametrize("line", REFUSED)
def test_refused_with_a_next_step(line: str) -> None:
    assert _refusal(line).hint


@_NO_SHARED
def test_every_line_of_the_shared_allow_list() -> None:
    for line in read(SHARED / "allow.txt"):
        words = shlex.split(line)
        command = match(line)
        assert command.argv[1:] == tuple(words[1:])
        assert command.argv[0].startswith("/usr/")
        assert command.argv[0].endswith(f"/{words[0]}")


@_NO_SHARED
def test_every_line_of_the_shared_deny_list() -> None:
    for line in read(SHARED / "deny.txt") + read(SHARED / "deny.txt", escapes=True):
        _refusal(line)


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("cat /etc/hosts /proc/meminfo", [("/etc/hosts", Kind.FILE), ("/proc/meminfo", Kind.FILE)]),
        ("md5sum /etc/hosts", [("/etc/hosts", Kind.SUM)]),
        ("ls -l /dev/disk/by-id", [("/dev/disk/by-id", Kind.META)]),
        ("ls -lR /var/lib/vz", [("/var/lib/vz", Kind.TREE)]),
        ("du -sh /var", [("/var", Kind.META)]),
        ("du -ah /var/lib/vz", [("/var/lib/vz", Kind.TREE)]),
        ("grep -r x /etc/network", [("/etc/network", Kind.GREP)]),
        ("grep -e /etc/shadow /etc/hosts", [("/etc/hosts", Kind.FILE)]),
        ("grep /etc/shadow /etc/hosts", [("/etc/hosts", Kind.FILE)]),
        ("smartctl -d sat -a /dev/sda", [("/dev/sda", Kind.DEVICE)]),
        ("date -r /etc/hosts", [("/etc/hosts", Kind.META)]),
        ("losetup --associated=/srv/a.raw", [("/srv/a.raw", Kind.META)]),
        ("lsof -c x +D /var/log /etc/hosts", [("/var/log", Kind.TREE), ("/etc/hosts", Kind.META)]),
        ("zpool status tank", []),
    ],
)
def test_paths_that_the_far_side_checks(line: str, paths: list[tuple[str, Kind]]) -> None:
    assert match(line).paths == tuple(PathCheck(*path) for path in paths)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("grep x /etc/hosts", "grep"),
        ("grep -ex /etc/hosts", "grep -e"),
        ("grep -rn x /etc/network", "grep -r"),
        ("zfs list -r", "zfs list"),
        ("systemctl show -p Id x", "systemctl -p"),
        ("pveum user token list root@pam", "pveum user token list"),
    ],
)
def test_the_row_is_named(line: str, row: str) -> None:
    assert match(line).row == row


@pytest.mark.parametrize(
    ("line", "what", "hint"),
    [
        ("", "empty", "zpool status"),
        ("zpoool status", "not one of the read-only programs", "zpool"),
        ("qqqqq", "not one of the read-only programs", "Allowed: apt, "),
        ("rm -rf /x", "'rm' is not one", "proxmox_host_exec"),
        ("LD_PRELOAD=/x cat /etc/hosts", "assignment", "environment is fixed"),
        ("/opt/cat /etc/hosts", "another program than /usr/bin/cat", "Write cat"),
        ("zpool scrub tank", "zpool: one of events, get, history, iostat, list, status, version is expected", "zpool"),
        ("systemctl", "", ""),
        ("dmesg -TC", "option -C is not among the allowed ones", "options: -T,--ctime"),
        ("dmesg --clea", "option --clea is not among the allowed ones (written in full)", "options: -T,--ctime"),
        ("tail --quiet=x /etc/hosts", "option --quiet takes no value", "tail FILE+"),
        ("tail -n", "option -n needs a value", "tail FILE+"),
        ("tail -n x /etc/hosts", "option -n: a number", "tail FILE+"),
        ("tail -n 999999 /etc/hosts", "more than the 200000 bytes", "tail FILE+"),
        ("cat", "an absolute path of a file to read is missing", "cat FILE+"),
        ("cat hosts", "'hosts': an absolute path is expected", "cat FILE+"),
        ("cat /etc/*", "an unquoted wildcard is not expanded here", "cat FILE+"),
        ("cat -[n] /etc/hosts", "option -[ is not among", "cat FILE+"),
        ("journalctl --no-pag*", "option --no-pag* is not among", "journalctl"),
        ("zfs diff tank@a", "a snapshot such as tank/data@name is missing", "zfs diff SNAPSHOT SNAPSHOT"),
        ("uptime now", "'now': one word too many", "uptime"),
        ("systemctl show pveproxy", "-P or -p is expected", "systemctl show UNITS*"),
        ("grep -r -e x", "an absolute path of a directory to search is missing", "grep GREPTREE+"),
        ("vmstat 2", "a number of samples is missing", "vmstat [ INTERVAL COUNT ]"),
        ("vmstat 2 20", "below the timeout of 30 s", "vmstat"),
        ("free -s 2", "an interval without a count never ends", "free"),
        ("nvme id-ctrl -Hv /dev/nvme0", "-Hv: give these options one by one", "nvme id-ctrl DEVICE"),
        ("zpool list -o", "option -o needs a value", "zpool list"),
        ("cat /etc/hosts; id", "unquoted ;", "one command at a time"),
        ("cat $x", "unquoted $", "Quote text"),
    ],
)
def test_a_refusal_says_what_and_what_next(line: str, what: str, hint: str) -> None:
    if not what:
        match(line)
        return
    error = _refusal(line)
    assert what in str(error)
    assert hint in error.hint
    assert len(str(error)) < 1500


def test_the_limits_are_those_of_the_call() -> None:
    assert match("vmstat 5 10", timeout=60.0).argv[-1] == "10"
    assert "below the timeout of 10 s" in str(_refusal("vmstat 5 2", timeout=10.0))
    assert "below the timeout of 2 s" in str(_refusal("free -c 2", timeout=2.0))
    assert match("head -c 1M /etc/hosts", max_bytes=2_000_000).argv[2] == "1M"
    assert "more than the 1000 bytes" in str(_refusal("head -c 1K /etc/hosts", max_bytes=1000))
    assert match("tail -c +999999 /etc/hosts", max_bytes=1000).argv[2] == "+999999"


def test_options_end_at_the_first_operand_where_the_program_says_so() -> None:
    assert match("dpkg -l bash").row == "dpkg -l"
    assert "'--no-pager'" in str(_refusal("dpkg -l bash --no-pager"))
    assert "is expected, not an option" in str(_refusal("dpkg -l bash -x"))


def test_after_two_dashes_everything_is_an_operand() -> None:
    assert match("grep -- -x /etc/hosts").paths == (PathCheck("/etc/hosts", Kind.FILE),)
    assert "not an option" in str(_refusal("cat -- -n"))
    assert match("qm config -- 101").argv[-1] == "101"


def test_an_optional_value_is_taken_as_the_program_takes_it() -> None:
    assert match("journalctl -b -p err").argv[1:] == ("-b", "-p", "err")  # -p is no boot
    assert match("journalctl -n").argv[1:] == ("-n",)
    assert "FIELD=value is expected" in str(_refusal("journalctl -n many"))  # no number, so an operand
    assert match("ls --color /etc").paths == (PathCheck("/etc", Kind.META),)  # only attached
    assert "[4" in str(_refusal("lsof -i /var/log"))  # lsof takes the next word whatever it is
    assert match("lsof -i -n").argv[1:] == ("-i", "-n")


def test_two_programs_of_a_name_in_different_places_are_a_mistake_of_the_tables() -> None:
    places: dict[str, set[str]] = {}
    for row in describe():
        places.setdefault(row.command, set()).add(row.program)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_an_option_has_the_same_arity_in_all_rows_of_a_program_or_verb() -> None:
    from proxmox_mcp.read_commands.grammar import _options

    arities: dict[tuple[str, str, str], set[str]] = {}
    for row in describe():
        for spelling, option in _options(row).items():
            arities.setdefault((row.command, row.verb, spelling), set()).add(option.takes)
    assert {key: found for key, found in arities.items() if len(found) > 1} == {}


def test_every_row_that_leaves_a_sibling_out_says_why() -> None:
    dangerous = {
        "tail",
        "grep",
        "blkid",
        "lvs",
        "journalctl",
        "systemctl",
        "ss",
        "smartctl",
        "dmesg",
        "date",
        "find",
        "tree",
        "nft",
        "ps",
        "lsof",
    }
    assert {row.command for row in describe() if row.why} >= dangerous


def test_words_that_were_split_before() -> None:
    grammar = Grammar([Row("/usr/bin/true", "WORD?")])
    assert grammar.match_words((Word("true"),), Limits()).argv == ("/usr/bin/true",)
    with pytest.raises(InvalidArgument, match="not one of the read-only programs"):
        grammar.match_words((Word("tru*", glob=True),), Limits())
    with pytest.raises(InvalidArgument, match="wildcard"):
        grammar.match_words((Word("true"), Word("a*", glob=True)), Limits())


def test_a_wildcard_in_an_option_is_refused_and_in_a_pattern_taken() -> None:
    grammar = Grammar([Row("/usr/bin/x", "", "-q --long=GLOB -*")])
    assert grammar.match("x --long=*.conf", Limits()).argv[1] == "--long=*.conf"
    assert grammar.match("x --long *.conf", Limits()).argv[2] == "*.conf"
    with pytest.raises(InvalidArgument, match="unquoted wildcard in option"):
        grammar.match("x -*", Limits())


@pytest.mark.parametrize(
    ("line", "words", "form"),
    [
        ("pveum foo", "pveum: one of acl, group, pool, realm, role, user is expected.", "pveum user list"),
        ("pvecm delnode x", "pvecm: one of nodes, status is expected.", "pvecm status"),
        ("pvecm", "pvecm: one of nodes, status is expected.", "pvecm status"),
        ("zpool -x", "zpool: status is expected after zpool.", "zpool status POOL* [ INTERVAL COUNT ]"),
        ("cat hosts", "cat: 'hosts': an absolute path is expected.", "cat FILE+"),
        ("tail -nx /etc/hosts", "tail: option -n: a number, with K or M if wanted is expected.", ""),
        (
            "tail --lines=4* /etc/hosts",
            "tail: option --lines: an unquoted wildcard is not expanded here: a number, with K or M if wanted is expected.",
            "",
        ),
        ("tail -9999999 /etc/hosts", "tail: option -9999999: more than the 200000 bytes that one answer holds.", ""),
        ("cat ---show-all /etc/hosts", "cat: option ---show-all is not among the allowed ones (written in full).", ""),
        ("tree -aL3 /var/log", "tree: option -L: give its value as a word of its own.", ""),
        ("free -c 30", "free: interval times count must stay below the timeout of 30 s.", "free"),
        ("free -s 2", "free: an interval without a count never ends.", "free"),
        ("systemctl show pveproxy", "systemctl: -P or -p is expected.", "systemctl show UNITS*, options: !-p,--property=PROPERTIES !-P..."),
        ("hostnamectl set-hostname", "hostnamectl: 'set-hostname': status is expected.", "hostnamectl status?"),
        ("lsof -i ''", "lsof: '': an absolute path is expected.", "lsof META*"),
        ("journalctl -b ''", "journalctl: '': FIELD=value is expected.", ""),
        ("tail -n 201K /etc/hosts", "tail: option -n: more than the 200000 bytes that one answer holds.", ""),
        (
            "cat -z /etc/hosts",
            "cat: option -z is not among the allowed ones.",
            "cat FILE+, options: -A,--show-all -b,--number-nonblank -e -E,--show-ends -n,--number -s,--squeeze-blank -t -T,--show-tabs -u "
            "-v,--show-nonprinting",
        ),
        (
            "nvme id-ctrl -Hv /dev/nvme0",
            "nvme: -Hv: give these options one by one.",
            "nvme id-ctrl DEVICE, options: -o,--output-format=normal|json|tabular -v,--verbose -H,--human-readable",
        ),
    ],
)
def test_a_refusal_word_for_word(line: str, words: str, form: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        match(line)
    said, _, hint = str(refused.value).partition("\nNext: Nearest allowed form: ")
    assert said == f"Invalid argument command: {words}"
    form, open_end, _ = form.partition("...")
    assert hint.startswith(form or words.partition(":")[0])
    assert open_end or not form or hint == form


def test_a_long_list_of_options_is_cut_between_two() -> None:
    with pytest.raises(InvalidArgument) as refused:
        match("journalctl --bad")
    shown = str(refused.value).partition(", options: ")[2]
    assert shown.startswith("-u,--unit=UNITS --user-unit=UNITS ")
    assert shown.endswith(" --show-cursor ...")
    assert 450 < len(shown) < 505


def test_an_optional_value_is_not_a_sign_that_joins_matches() -> None:
    assert match("journalctl -b + _PID=1").argv[1:] == ("-b", "+", "_PID=1")
    assert match("lsof -i +D /var/log/apt").argv[1:] == ("-i", "+D", "/var/log/apt")
    assert match("journalctl -b 0").argv[1:] == ("-b", "0")


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("stat /etc/hosts /etc/hostname", [1, 2]),
        ("losetup -j /etc/hosts", [2]),
        ("findmnt --target=/var/log", [0]),  # not a word of its own: the program gets the word as it is
        ("grep -e /etc/hosts /etc/hosts", [3]),
    ],
)
def test_the_far_side_is_told_which_words_are_paths(line: str, places: list[int]) -> None:
    assert [path.at for path in match(line).paths] == places


def test_a_count_without_an_interval_takes_one_second_each() -> None:
    assert match("free -c 29").row == "free"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('cat "x', "Give one plain command; no shell reads it. Quote text."),
        ("cat x; id", "Give one command at a time; no shell reads it. Quote text."),
    ],
)
def test_a_line_for_a_shell_is_told_how_to_do_without(line: str, hint: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        match(line)
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("line", "words", "hint"),
    [
        ("", "it is empty.", "Give one command, such as: zpool status"),
        ("A=1 cat /etc/hosts", "an assignment before the command is not taken.", "The environment is fixed."),
        ("zpoool status", "'zpoool' is not one of the read-only programs.", "Nearest: zpool. Others run through proxmox_host_exec."),
        ("/usr/s?in/zpool status", "'/usr/s?in/zpool' is not one of the read-only programs.", "Nearest: zpool."),
        ("/a/b/zpool status", "/a/b/zpool is another program than /usr/sbin/zpool.", "Write zpool."),
        ("zca", "'zca' is not one of the read-only programs.", "Nearest: zcat, xzcat, bzcat. Others run"),
        ("pveum user frob", "pveum: list is expected after user.", "Nearest allowed form: pveum user list"),
    ],
)
def test_a_program_that_is_not_there(line: str, words: str, hint: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        match(line)
    assert refused.value.what == f"Invalid argument command: {words}"
    assert refused.value.hint.startswith(hint)


def test_words_of_any_beginning_and_the_largest_amount() -> None:
    assert match("grep Xorg /var/log/syslog").argv[1:] == ("Xorg", "/var/log/syslog")
    assert match("lsof +D /var/log/apt").row == "lsof"
    assert match("tail -n 200000 /etc/hosts").argv[2] == "200000"
