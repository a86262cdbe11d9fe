"""The rows of the grammar and the matcher: a line is accepted when one row accounts for every word of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.read_commands import notation
from proxmox_mcp.read_commands.notation import Bindings, Furthest, Matching, Option, Value
from proxmox_mcp.read_commands.types import Limits, PathCheck, ReadCommand
from proxmox_mcp.read_commands.words import Operator, Unreadable, Word, split

Style = Literal["gnu", "apart", "first", "single", "perl", "words"]


@dataclass(frozen=True, slots=True)
class Row:
    """One allowed form of one program: `program verb [options] operands`.

    style: how the program itself reads options.
        gnu     getopt_long: clusters, attached values, `--x=y`, options and operands in any order
        apart   the same, but the value of a letter is always a word of its own: what follows the letter are other letters
        first   the same as gnu, but options end at the first operand
        single  getopt_long_only: as gnu, without clusters
        perl    Getopt::Long: -name and --name, `=value` or the next word, any order
        words   no options at all: every word, dashes included, is an operand of the pattern
    why: what makes the row read-only, where that is not obvious.
    """

    program: str
    operands: str = ""
    options: str = ""
    verb: str = ""
    style: Style = "gnu"
    why: str = ""

    @property
    def command(self) -> str:
        """The program's name without its directory."""
        return self.program.rsplit("/", 1)[-1]

    @property
    def name(self) -> str:
        """Program, verb and the option that tells this row from its neighbours: "grep -r", "zfs list"."""
        marked = next((option.spellings[0] for option in _options(self).values() if option.must), "")
        return " ".join(part for part in (self.command, self.verb, marked) if part)

    @property
    def usage(self) -> str:
        """The form without its options, in the notation of the tables: "zfs diff SNAPSHOT SNAPSHOT"."""
        return " ".join(part for part in (self.command, self.verb, self.operands) if part)


class _Refusal(Exception):
    """This row does not fit: at which word, and why."""

    def __init__(self, at: int, why: str) -> None:
        self.at, self.why = at, why
        super().__init__(why)


@cache
def _options(row: Row) -> Mapping[str, Option]:
    return notation.options(row.options)


@cache
def _operands(row: Row) -> notation.Node:
    return notation.operands(row.operands)


class Grammar:
    """Rows, by program."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._by_name: dict[str, list[Row]] = {}
        for row in self.rows:
            self._by_name.setdefault(row.command, []).append(row)

    def match(self, line: str, limits: Limits) -> ReadCommand:
        """The command that a line is. Raises InvalidArgument("command", ...) with the nearest allowed form as the hint."""
        try:
            tokens = split(line)
        except Unreadable as why:
            raise InvalidArgument("command", f"{why}.", hint="Give one plain command; no shell reads it. Quote text.") from why
        for token in tokens:
            if isinstance(token, Operator):
                raise InvalidArgument(
                    "command", f"unquoted {token.text}: shell syntax.", hint="Give one command at a time; no shell reads it. Quote text."
                )
        return self.match_words(tuple(token for token in tokens if isinstance(token, Word)), limits)

    def match_words(self, words: tuple[Word, ...], limits: Limits) -> ReadCommand:
        """The same for words that were split before."""
        if not words:
            raise InvalidArgument("command", "it is empty.", hint="Give one command, such as: zpool status")
        refusals: list[tuple[_Refusal, Row]] = []
        for row in self._rows(words[0]):
            try:
                bound = _parse(row, words, limits)
            except _Refusal as refusal:
                refusals.append((refusal, row))
            else:
                return ReadCommand((row.program, *(word.text for word in words[1:])), tuple(_checks(bound, words)), row.name)
        raise _nearest(words, refusals)

    def _rows(self, program: Word) -> list[Row]:
        name = program.text.rsplit("/", 1)[-1]
        rows = [] if program.glob else self._by_name.get(name, [])
        if "=" in program.text:
            raise InvalidArgument("command", "an assignment before the command is not taken.", hint="The environment is fixed.")
        if rows and program.text not in {name, rows[0].program}:
            raise InvalidArgument("command", f"{program.text[:80]} is another program than {rows[0].program}.", hint=f"Write {name}.")
        if not rows:
            import difflib  # only a mistake needs it

            near = difflib.get_close_matches(name, self._by_name, n=3)
            hint = f"Nearest: {', '.join(near)}." if near else f"Allowed: {', '.join(sorted(self._by_name))}."
            raise InvalidArgument(
                "command",
                f"{program.text[:80]!r} is not one of the read-only programs.",
                hint=f"{hint} Others run through proxmox_host_exec.",
            )
        return rows


_LONG = 500  # characters of options in a hint


def _nearest(words: tuple[Word, ...], refusals: list[tuple[_Refusal, Row]]) -> InvalidArgument:
    """The error that names the row which went furthest."""
    refusal, row = max(refusals, key=lambda pair: pair[0].at)
    verbs = {verb for _, other in refusals for verb in other.verb.split()[:1] or notation.first_words(_operands(other))[0]}
    why = refusal.why
    if refusal.at == 1 and len(verbs) > 1 and not (len(words) > 1 and words[1].text.startswith("-")):
        why = f"one of {', '.join(sorted(verbs))} is expected"
    options = f", options: {row.options}" if "option" in why or why.startswith("-") else ""
    options = options if len(options) < _LONG else f"{options[:_LONG].rpartition(' ')[0]} ..."
    return InvalidArgument("command", f"{words[0].text}: {why}.", hint=f"Nearest allowed form: {row.usage}{options}")


def _checks(bound: Bindings, words: tuple[Word, ...]) -> Iterable[PathCheck]:
    for value, word in bound:
        if value.type is not None and value.type.path is not None:
            # by identity: a pattern may read like the path
            yield PathCheck(word.text, value.type.path, next((at for at, other in enumerate(words) if other is word), 0))


def _parse(row: Row, words: tuple[Word, ...], limits: Limits) -> Bindings:
    """What each word of the line is in this row. Raises _Refusal."""
    start = 1
    for verb in row.verb.split():
        if start == len(words) or words[start] != Word(verb):
            raise _Refusal(start, f"{verb} is expected after {words[start - 1].text}")
        start += 1
    reader = _Reader(row, words, limits)
    reader.read(start)
    matching = Matching(tuple(words[at] for at in reader.operands), limits, Furthest())
    operands = matching.whole(_operands(row))
    if operands is None:
        stopped = matching.furthest
        if stopped.at == len(matching.words):
            raise _Refusal(len(words), stopped.why)
        raise _Refusal(reader.operands[stopped.at], f"{matching.words[stopped.at].text[:80]!r}: {stopped.why}")
    _check_required(row, reader.given, len(words))
    bound = (*reader.bound, *operands)
    _check_sampling(bound, limits, len(words))
    return bound


def _check_required(row: Row, given: list[Option], end: int) -> None:
    options = set(_options(row).values())
    missing = [option.spellings[0] for option in options - set(given) if option.must == "&"]
    one_of = {option for option in options if option.must == "!"}
    if one_of and one_of.isdisjoint(given):
        missing.append(" or ".join(sorted(option.spellings[0] for option in one_of)))
    if missing:
        raise _Refusal(end, f"{' and '.join(sorted(missing))} is expected")


def _check_sampling(bound: Bindings, limits: Limits, end: int) -> None:
    intervals = [float(word.text) for value, word in bound if value.type is not None and value.type.bound == "interval"]
    counts = [int(word.text) for value, word in bound if value.type is not None and value.type.bound == "count"]
    if intervals and not counts:
        raise _Refusal(end, "an interval without a count never ends")
    if counts and max(intervals, default=1.0) * max(counts) >= limits.timeout:
        raise _Refusal(end, f"interval times count must stay below the timeout of {limits.timeout:g} s")


class _Reader:
    """Tells options from operands as the program would."""

    def __init__(self, row: Row, words: tuple[Word, ...], limits: Limits) -> None:
        self._style, self._words, self._limits = row.style, words, limits
        self._options = _options(row)
        self._signs = "+-" if any(spelling.startswith("+") for spelling in self._options) else "-"
        self.bound: Bindings = ()
        self.given: list[Option] = []
        self.operands: list[int] = []

    def read(self, at: int) -> None:
        """Read all words from `at`."""
        while at < len(self._words):
            text = self._words[at].text
            if self._style == "words" or len(text) < 2 or text[0] not in self._signs:
                self.operands.append(at)
                at += 1
                if self._style == "first":
                    break
            elif text == "--":
                at += 1
                break
            else:
                at = self._option(at, text)
        self.operands.extend(range(at, len(self._words)))

    def _option(self, at: int, text: str) -> int:
        if "-#" in self._options and text[1:].isdigit():
            return self._take(self._options["-#"], text, at, attached=text[1:])
        if text.startswith("--") or self._style == "perl":
            name, equals, value = text.partition("=")
            option = self._options.get("--" + name.removeprefix("-").removeprefix("-") if self._style == "perl" else name)
            if option is None:
                raise _Refusal(at, f"option {name[:80]} is not among the allowed ones (written in full)")
            return self._take(option, name, at, attached=value if equals else None)
        for place, letter in enumerate(text[1:], 2):
            option = self._options.get(text[0] + letter)
            if option is None:
                raise _Refusal(at, f"option {text[0]}{letter} is not among the allowed ones")
            rest = text[place:] or None
            if option.takes != "nothing":
                if rest and self._style == "apart":
                    raise _Refusal(at, f"option {text[0]}{letter}: give its value as a word of its own")
                return self._take(option, text[0] + letter, at, attached=rest)
            if rest and self._style == "single":
                raise _Refusal(at, f"{text}: give these options one by one")
            self._take(option, text[0] + letter, at, attached=None)
        return at + 1

    def _take(self, option: Option, name: str, at: int, *, attached: str | None) -> int:
        """Note the option and its value; the index of the word after both."""
        self.given.append(option)
        word = self._words[at]
        if attached is not None:
            if option.takes == "nothing":
                raise _Refusal(at, f"option {name} takes no value")
            self._bind(option.value, Word(attached, word.glob), name, at)
            return at + 1
        if word.glob:
            raise _Refusal(at, f"an unquoted wildcard in option {name}")
        if not self._takes_next(option, at + 1, name):
            return at + 1
        self._bind(option.value, self._words[at + 1], name, at + 1)
        return at + 2

    def _takes_next(self, option: Option, at: int, name: str) -> bool:
        if at == len(self._words):
            if option.takes == "value":
                raise _Refusal(at, f"option {name} needs a value")
            return False
        if option.takes == "fitting":
            return option.value.fault(self._words[at], self._limits) is None
        return option.takes == "value" or (option.takes == "next" and self._words[at].text[:1] not in {"", "-", "+"})

    def _bind(self, value: Value, word: Word, name: str, at: int) -> None:
        if fault := value.fault(word, self._limits):
            raise _Refusal(at, f"option {name}: {fault}")
        self.bound = (*self.bound, (value, word))
