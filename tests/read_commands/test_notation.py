"""The notation of the tables: what it means, and that mistakes in it are found."""

from __future__ import annotations

import pytest

from proxmox_mcp.read_commands import describe, notation
from proxmox_mcp.read_commands.notation import Furthest, Matching
from proxmox_mcp.read_commands.shell_lines import LISTS
from proxmox_mcp.read_commands.types import TYPES, Limits, amount
from proxmox_mcp.read_commands.words import Word


def _fits(pattern: str, *words: str) -> bool:
    return Matching(tuple(Word(word) for word in words), Limits(), Furthest()).whole(notation.operands(pattern)) is not None


def test_option_spellings_and_values() -> None:
    options = notation.options("-q,--quiet !-n,--lines=SMALL &--color[=a|b] -b[=BOOT]? -i[=LIST]+ -#=SMALL")
    assert options["-q"] is options["--quiet"]
    assert [(name, option.takes, option.must) for name, option in options.items()] == [
        ("-q", "nothing", ""),
        ("--quiet", "nothing", ""),
        ("-n", "value", "!"),
        ("--lines", "value", "!"),
        ("--color", "attached", "&"),
        ("-b", "fitting", ""),
        ("-i", "next", ""),
        ("-#", "value", ""),
    ]
    assert options["-n"].value.type is TYPES["SMALL"]
    assert options["--color"].value.words == ("a", "b")


@pytest.mark.parametrize("wrong", ["-a -a", "-n=", "-n[=", "--x=[a]"])
def test_mistakes_in_options(wrong: str) -> None:
    with pytest.raises(ValueError, match="option"):
        notation.options(wrong)


@pytest.mark.parametrize("wrong", ["a )", "( a ) )", "a ]"])
def test_mistakes_in_operands(wrong: str) -> None:
    with pytest.raises(ValueError, match="unbalanced"):
        notation.operands(wrong)


def test_an_unknown_type_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        notation.operands("NOSUCHTYPE")


@pytest.mark.parametrize(
    ("pattern", "fitting", "not_fitting"),
    [
        (
            "",
            [
                "",
            ],
            ["a"],
        ),
        ("a|b", ["a", "b"], ["", "c", "a b"]),
        ("SMALL?", ["", "1"], ["1 2", "x"]),
        ("SMALL*", ["", "1 2 3"], ["1 x"]),
        ("SMALL+ x", ["1 x", "1 2 x"], ["x", "1", "1 x 2"]),
        ("[ INTERVAL COUNT ]", ["", "1 2"], ["1", "1 2 3"]),
        ("POOL* [ INTERVAL COUNT ]", ["tank 1 2", "a b", "1 2"], ["tank 1", "1"]),
        ("( a SMALL | b )*", ["", "a 1 b b a 2"], ["a", "b 1"]),
        ("( a | b c )+ d", ["a d", "b c a d"], ["d", "b d"]),
        ("( a? )*", ["", "a a"], ["b", "a b"]),
        ("x ( a | b )", ["x a"], ["x", "a", "x a b"]),
    ],
)
def test_operand_patterns(pattern: str, fitting: list[str], not_fitting: list[str]) -> None:
    assert [line for line in fitting if not _fits(pattern, *line.split())] == []
    assert [line for line in not_fitting if _fits(pattern, *line.split())] == []


def test_a_pattern_takes_many_words_and_an_end() -> None:
    assert _fits("SMALL+", *["1"] * 200)
    assert not _fits("SMALL+", *["1"] * 201)


@pytest.mark.parametrize(
    ("pattern", "words", "empty"),
    [
        ("a|b c", {"a", "b"}, False),
        ("[ a ] b", {"a", "b"}, False),
        ("( -x | y )* z", {"y", "z"}, False),
        ("SMALL a", set(), False),
        ("( a | b )*", {"a", "b"}, True),
        ("( a )?", {"a"}, True),
        ("", set(), True),
    ],
)
def test_first_words(pattern: str, words: set[str], empty: bool) -> None:
    assert notation.first_words(notation.operands(pattern)) == (words, empty)


def test_all_rows_are_well_written() -> None:
    for row in (*describe(), *(row for grammar in LISTS for row in grammar.rows)):
        notation.options(row.options)
        notation.operands(row.operands)
        assert row.program.startswith(("/usr/bin/", "/usr/sbin/", "/sbin/"))
        assert row.style in {"gnu", "apart", "first", "single", "perl", "words"}


def test_capitals_are_types_and_nothing_else() -> None:
    for row in describe():
        for word in row.operands.split():
            assert not word.strip("?*+").isupper() or word.strip("?*+") in TYPES


@pytest.mark.parametrize(
    ("text", "size"), [("5", 5), ("+3", 3), ("-2", 2), ("4K", 4096), ("1kB", 1000), ("1MiB", 1024**2), ("2b", 1024), ("", 0)]
)
def test_amounts(text: str, size: int) -> None:
    assert amount(text) == size


def test_a_value_says_what_it_expects() -> None:
    few, many = notation.operands("a|b").parts[0].value, notation.operands("a|b|c|d|e|f|g|h|i").parts[0].value
    assert few is not None
    assert many is not None
    assert few.says == "a or b"
    assert many.says == "one of a, b, c, d, e, f, g, h, i"
