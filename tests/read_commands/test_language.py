"""The grammar accepts its own language in every spelling, and nothing that a second parser finds dangerous, however commands are broken."""

from __future__ import annotations

import shlex
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.read_commands import ReadCommand, describe, match
from tests.read_commands import generator, oracle
from tests.read_commands.lists import ACCEPTED

ROWS = describe()
# a seed, not hypothesis' own random: one example is a command of every row
_SEEDS = st.integers(0, 2**32)
_FAST = settings(max_examples=12, deadline=None)
_POISON_TEXT = """
-f -F -c -C -K -o -O -w -D -T -s -S -t -X -R -r -e -ef -n -b -i -x -p -H -M -A -L -- - --config=x --follow --fol --vacuum-time=1s --rotat
--root=/ --file=/etc/shadow --files0-from=/etc/shadow --output=/tmp/x --exec -exec -delete --help --version -1 +r +m +5f ; & && | || > <
$(id) `id` ${HOME} {a,b} ( ) ! # ~ * ? [a] \\ /etc/shadow /etc/pve/priv/x /root/.ssh/id_rsa /dev/sda /dev/watchdog /proc/1/environ /tmp/x
../x ./x . .. // set add del flush change replace save exec monitor s a f e id cat 1 0 1000000 99999999999 x=y A=b @1 aux axe eww shadow
restart stop Environment environ update install destroy import create
"""
_POISON = _POISON_TEXT.split()
_LOOKALIKES = {"a": "а", "e": "е", "o": "о", "c": "ｃ", "-": "‐", "/": "∕", " ": "\u00a0", "i": "і", "s": "ѕ", ";": ";", "1": "１"}


@given(_SEEDS)
@_FAST
def test_every_row_accepts_what_it_says_in_any_order_and_spelling(seed: int) -> None:
    rnd = Random(seed)
    for row in ROWS:
        words = generator.command(row, rnd)
        command = match(generator.line(words, rnd))
        assert command.argv == (command.argv[0], *words[1:])
        assert command.argv[0].rsplit("/", 1)[-1] == row.command
        oracle.check(command.argv)


def test_every_type_has_a_sample() -> None:
    assert generator.samples_missing() == set()


def _mutated(words: list[str], rnd: Random) -> str:
    words = list(words)
    at = rnd.randrange(len(words))
    match rnd.randrange(12):
        case 0:
            words.insert(rnd.randint(0, len(words)), rnd.choice(_POISON))
        case 1:
            words[at] = rnd.choice(_POISON)
        case 2:
            words[at] += rnd.choice(_POISON)
        case 3:
            words[at] = words[at][: rnd.randint(0, len(words[at]))]
        case 4:
            other = rnd.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        case 5:
            words[at : at + 2] = ["".join(words[at : at + 2])]
        case 6:
            cut = rnd.randint(0, len(words[at]))
            words[at : at + 1] = [words[at][:cut], words[at][cut:]]
        case 7:
            del words[at]
        case 8:
            words[at] = words[at].swapcase()
        case 9:
            words[at] = words[at].replace("=", " ", 1) if rnd.random() < 0.5 else words[at] + "=" + rnd.choice(_POISON)
        case 10:
            words[at] = words[at][:1] + rnd.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") + words[at][1:]
        case _:
            words.extend(generator.command(rnd.choice(ROWS), rnd)[1:])
    if rnd.random() < 0.15:
        raw = " ".join(words)
        place = rnd.randint(0, len(raw))
        return raw[:place] + rnd.choice(["\n", "\r", "\x00", "\t", "\\", "'", '"', "''", "\u2028", "\x1b"]) + raw[place:]
    if rnd.random() < 0.1:
        raw = shlex.join(words)
        letter = rnd.choice(sorted(_LOOKALIKES))
        return raw.replace(letter, _LOOKALIKES[letter], 1)
    return rnd.choice([" ".join, shlex.join])(words)


def _accepted(line: str) -> ReadCommand | None:
    try:
        return match(line)
    except InvalidArgument:
        return None


@given(_SEEDS)
@_FAST
def test_whatever_is_accepted_after_breaking_it_is_still_harmless(seed: int) -> None:
    rnd = Random(seed)
    for row in ROWS:
        words = generator.command(row, rnd)
        for _ in range(rnd.randint(1, 3)):
            line = _mutated(words, rnd)
            command = _accepted(line)
            if command is not None:
                assert list(command.argv[1:]) == shlex.split(line)[1:]
                assert all(" " <= char <= "~" for char in line.replace("\t", " "))
                oracle.check(command.argv)


@given(_SEEDS)
@_FAST
def test_listed_commands_broken_in_the_same_ways(seed: int) -> None:
    rnd = Random(seed)
    for line in ACCEPTED:
        command = _accepted(_mutated(shlex.split(line), rnd))
        if command is not None:
            oracle.check(command.argv)


@pytest.mark.parametrize("line", ACCEPTED)
def test_the_oracle_finds_nothing_in_the_listed_commands(line: str) -> None:
    oracle.check(match(line).argv)


@pytest.mark.parametrize(
    "line",
    [
        "dmesg -TC",
        "dmesg --clea",
        "journalctl --rotat",
        "tail -5f /x",
        "smartctl -at short /dev/sda",
        "ss -atnKp",
        "ip l s vmbr0 up",
        "ip -b /x",
        "ip a a 1 dev x",
        "ip ro f all",
        "date 0102",
        "date --se=1",
        "hostname --fi x",
        "sysctl a=b",
        "zfs diff tank@a",
        "zpool status -xc size",
        "systemctl -p x restart y",
        "apt-cache -oDir::x=y policy",
        "ps axe",
        "nft list ruleset; flush",
        "cat /etc/shadow",
        "vmstat 1",
        "find /x -delete",
    ],
)
def test_the_oracle_itself_sees_danger(line: str) -> None:
    words = line.split()
    with pytest.raises(oracle.Danger):
        oracle.check((f"/usr/bin/{words[0]}", *words[1:]))


@pytest.mark.parametrize(
    "char", ["\u0430", "\u2010", "\u00a0", "\u200b", "\u202e", "\ufeff", "\n", "\r", "\x00", "\x1b", "\x7f", "\x85", "\u2028"]
)
@pytest.mark.parametrize("line", ["cat /etc/os-release", "zpool status -v tank", "grep -i 'a b' /etc/hosts"])
def test_no_strange_character_anywhere(char: str, line: str) -> None:
    for place in range(len(line) + 1):
        with pytest.raises(InvalidArgument):
            match(line[:place] + char + line[place:])
