"""Splits a line into words and shell operators, and knows what stood outside quotes.

The words are shlex's; a second reading adds what shlex forgets (was that `*` quoted?), and a line that the two read differently is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 16_384
_LIVE = {
    "$": "expansion",
    "`": "command substitution",
    "<": "redirection",
    ">": "redirection",
    "(": "subshell",
    ")": "subshell",
    "{": "brace expansion",
    "}": "brace expansion",
    "\\": "escape",
    "!": "history expansion or negation",
}


class Unreadable(ValueError):
    """The line is not a sequence of plain words; the text says why."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word without its quotes. `glob`: an unquoted `*`, `?` or `[` is in it."""

    text: str
    glob: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    """`;`, `&&`, `||` or `|`, unquoted."""

    text: str


Token = Word | Operator


def split(line: str, *, shell: bool = False) -> tuple[Token, ...]:
    """The words and operators of one line. `shell`: the line is meant for a real shell, so `$` and backtick live inside double quotes too.

    Raises Unreadable for anything else a shell would act on, for control and non-ASCII characters, and for open quotes.
    """
    if len(line) > MAX_LINE:
        raise Unreadable(f"longer than {MAX_LINE} characters")
    strange = next((char for char in line if not (" " <= char <= "~" or char == "\t")), None)
    if strange is not None:
        raise Unreadable(f"U+{ord(strange):04X} is not a printable ASCII character")
    tokens = tuple(_scan(line, shell))
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if [token.text for token in tokens] != list(lexer):
        raise Unreadable("the quoting can be read in two ways")
    return tokens


def _scan(line: str, shell: bool) -> Iterator[Token]:
    text: list[str] | None = None
    glob = False
    at = 0
    while at < len(line):
        char = line[at]
        if char in " \t;|&":
            if text is not None:
                yield Word("".join(text), glob)
                text, glob = None, False
            if char not in " \t":
                operator = char * 2 if line[at : at + 2] == char * 2 and char != ";" else char
                if operator == "&" or line[at + len(operator) : at + len(operator) + 1] in {";", "|", "&"}:
                    raise Unreadable(f"unquoted {char}: shell syntax")
                yield Operator(operator)
                at += len(operator) - 1
        elif char in "'\"":
            text = text or []
            at = _quoted(line, at, text, shell)
        else:
            _refuse_live(char, first=text is None, after=line[at - 1 : at])
            text = [*(text or []), char]
            glob = glob or char in "*?["
        at += 1
    if text is not None:
        yield Word("".join(text), glob)


def _refuse_live(char: str, *, first: bool, after: str) -> None:
    if char in _LIVE:
        raise Unreadable(f"unquoted {char}: {_LIVE[char]}")
    if char == "~" and (first or after in {"=", ":"}):
        raise Unreadable("unquoted ~: a home directory")
    if char == "#" and first:
        raise Unreadable("unquoted #: a comment")


def _quoted(line: str, start: int, text: list[str], shell: bool) -> int:
    """Append what the quotes at `start` hold; the index of the closing quote."""
    quote = line[start]
    at = start + 1
    while at < len(line) and line[at] != quote:
        if quote == '"':
            if shell and line[at] in "$`\\!":
                raise Unreadable(f"{line[at]} is live inside double quotes")
            if line[at] == "\\" and line[at + 1 : at + 2] in {'"', "\\"}:
                at += 1
        text.append(line[at])
        at += 1
    if at >= len(line):
        raise Unreadable("a quote is not closed")
    return at
