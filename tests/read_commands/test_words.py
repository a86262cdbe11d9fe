"""Splitting: shlex's words, the quoting that shlex forgets, and what a shell would act on."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxmox_mcp.read_commands.words import MAX_LINE, Operator, Unreadable, Word, split


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("", ()),
        (" \t ", ()),
        ("a  b\tc", (Word("a"), Word("b"), Word("c"))),
        ("a'b c'\"d\"", (Word("ab cd"),)),
        ("'' \"\"", (Word(""), Word(""))),
        ("a ''b", (Word("a"), Word("b"))),
        ("'*' *", (Word("*"), Word("*", glob=True))),
        ("a?b [x]", (Word("a?b", glob=True), Word("[x]", glob=True))),
        ("a] b", (Word("a]"), Word("b"))),
        ("'$x' \"$x\"", (Word("$x"), Word("$x"))),
        ('"a\\"b" "a\\\\b" "a\\nb"', (Word('a"b'), Word("a\\b"), Word("a\\nb"))),
        ("a#b a~b ~'x'", None),
        ("a#b a~b", (Word("a#b"), Word("a~b"))),
        (
            "a;b&&c||d|e",
            (Word("a"), Operator(";"), Word("b"), Operator("&&"), Word("c"), Operator("||"), Word("d"), Operator("|"), Word("e")),
        ),
        ("';' '|'", (Word(";"), Word("|"))),
        ("a ; ", (Word("a"), Operator(";"))),
    ],
)
def test_tokens(line: str, tokens: tuple[Word | Operator, ...] | None) -> None:
    if tokens is None:
        with pytest.raises(Unreadable):
            split(line)
    else:
        assert split(line) == tokens


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a $b", "expansion"),
        ("a `b`", "command substitution"),
        ("a <b", "redirection"),
        ("a >b", "redirection"),
        ("(a)", "subshell"),
        ("a)", "subshell"),
        ("{ a", "brace"),
        ("a}", "brace"),
        ("a\\ b", "escape"),
        ("! a", "history"),
        ("~", "home"),
        ("a=~b", "home"),
        ("a:~b", "home"),
        ("a #b", "comment"),
        ("a & b", "shell syntax"),
        ("a &", "shell syntax"),
        ("a;;b", "shell syntax"),
        ("a |& b", "shell syntax"),
        ("a ||| b", "shell syntax"),
        ("a &&& b", "shell syntax"),
        ("'a", "not closed"),
        ('"a', "not closed"),
        ('"a\\"', "not closed"),
        ("a\nb", "U+000A"),
        ("a\u00a0b", "U+00A0"),
        ("'\x07'", "U+0007"),
        ("a" * (MAX_LINE + 1), "longer than"),
    ],
)
def test_unreadable(line: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why.replace("+", "\\+")):
        split(line)


@pytest.mark.parametrize("line", ['"$x"', '"`x`"', '"a\\b"', '"a!"'])
def test_what_lives_inside_double_quotes_of_a_shell(line: str) -> None:
    assert split(line) != ()
    with pytest.raises(Unreadable, match="live inside double quotes"):
        split(line, shell=True)


@pytest.mark.parametrize(
    ("line", "why"), [("cat ~", "unquoted ~: a home directory"), ("cat #x", "unquoted #: a comment"), ('cat "x', "a quote is not closed")]
)
def test_what_a_shell_would_make_of_it_is_named(line: str, why: str) -> None:
    with pytest.raises(Unreadable) as unreadable:
        split(line)
    assert str(unreadable.value) == why


def test_other_words_in_double_quotes_are_the_same_to_a_shell() -> None:
    assert split('cat "X /etc/hosts"', shell=True) == (Word("cat"), Word("X /etc/hosts"))


def test_an_open_quote_is_named() -> None:
    with pytest.raises(Unreadable) as unreadable:
        split("cat 'x")
    assert str(unreadable.value) == "a quote is not closed"


def test_two_readings_of_the_quoting_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxmox_mcp.read_commands.words._scan", lambda line, shell: iter([Word("something else")]))
    with pytest.raises(Unreadable, match="two ways"):
        split("a")


@given(st.text(st.sampled_from("abX '\"\\;|&$*#~=\t-/"), max_size=14))
@settings(max_examples=400, deadline=None)
def test_words_are_those_of_shlex(line: str) -> None:
    try:
        tokens = split(line)
    except Unreadable:
        return
    if all(isinstance(token, Word) for token in tokens):
        assert [token.text for token in tokens] == shlex.split(line)
