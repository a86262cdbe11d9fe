"""The notation of the tables, read: options with their values, and operands as a small regular expression over words.

Options, separated by blanks:
    -q,--quiet              a flag and its spellings
    -n,--lines=AMOUNT       takes a value of a type (capitals), or one of some words: --sort=size|time
    --color[=auto|never]    may have an attached value
    -b,--boot[=BOOT]?       ... or take the next word if it is such a value
    -i[=LSOFINET]+          ... or take the next word unless that begins with - or +
    -#=AMOUNT               digits as an option: -20
    !-l,--list              one of the options marked ! must be given
    &-e=PATTERN             and each of those marked &
Operands:
    FILE+  DEVICE*  POOL?   words of a type        show|list           one of some words
    ( a B | c )*            a group, alternatives  [ INTERVAL COUNT ]  a group that may be missing
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from proxmox_mcp.read_commands.types import TYPES, Limits, ValueType
from proxmox_mcp.read_commands.words import Word

Takes = Literal["nothing", "value", "attached", "fitting", "next"]
_OPTION = re.compile(r"(?P<must>[!&]?)(?P<names>[^=\[\]]+)(?:=(?P<value>[^\[\]]+)|\[=(?P<optional>[^\[\]]+)\](?P<next>[?+]?))?")
_TYPE = re.compile(r"[A-Z][A-Z0-9]*")
_REPEATS = {"": (1, 1), "?": (0, 1), "*": (0, 200), "+": (1, 200)}


@dataclass(frozen=True, slots=True)
class Value:
    """What may stand in one place: a type, or one of some words."""

    type: ValueType | None = None
    words: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """What is expected, for people."""
        if self.type is not None:
            return self.type.says
        return " or ".join(self.words) if len(self.words) < 8 else f"one of {', '.join(self.words)}"

    def fault(self, word: Word, limits: Limits) -> str | None:
        """Why this word may not stand here, or None."""
        if self.type is not None:
            return self.type.fault(word, limits)
        return None if word.text in self.words and not word.glob else f"{self.says} is expected"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a row."""

    spellings: tuple[str, ...]
    takes: Takes
    value: Value
    must: str


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an operand pattern: one word (`value`), or `parts` in a row, or one of them (`choice`); `least` to `most` times."""

    value: Value | None = None
    parts: tuple[Node, ...] = ()
    choice: bool = False
    least: int = 1
    most: int = 1


def _value(spec: str) -> Value:
    return Value(TYPES[spec]) if _TYPE.fullmatch(spec) else Value(words=tuple(spec.split("|")))


def options(notation: str) -> Mapping[str, Option]:
    """The options of a row by spelling. ValueError when the notation is wrong."""
    found: dict[str, Option] = {}
    for item in notation.split():
        parts = _OPTION.fullmatch(item)
        if parts is None:
            raise ValueError(f"not an option in this notation: {item}")
        takes: Takes = "nothing"
        if parts["value"]:
            takes = "value"
        elif parts["optional"]:
            takes = "fitting" if parts["next"] == "?" else "next" if parts["next"] else "attached"
        spec = parts["value"] or parts["optional"]
        spellings = tuple(parts["names"].split(","))
        option = Option(spellings, takes, _value(spec) if spec else Value(), parts["must"])
        for spelling in spellings:
            if spelling in found:
                raise ValueError(f"option twice: {spelling}")
            found[spelling] = option
    return found


def operands(notation: str) -> Node:
    """The operand pattern of a row. ValueError when the notation is wrong."""
    tokens = notation.split()
    node = _alternatives(tokens)
    if tokens:
        raise ValueError(f"unbalanced operand pattern: {notation}")
    return node


def _alternatives(tokens: list[str]) -> Node:
    choices: list[Node] = []
    row: list[Node] = []
    while tokens and tokens[0][0] not in ")]":
        token = tokens.pop(0)
        if token == "|":
            choices.append(Node(parts=tuple(row)))
            row = []
        elif token in {"(", "["}:
            group = _alternatives(tokens)
            row.append(_repeated(group, "?" if token == "[" else tokens[0][1:]))
            tokens.pop(0)
        else:
            bare = token.rstrip("?*+")
            row.append(_repeated(Node(_value(bare)), token[len(bare) :]))
    choices.append(Node(parts=tuple(row)))
    return choices[0] if len(choices) == 1 else Node(parts=tuple(choices), choice=True)


def _repeated(node: Node, mark: str) -> Node:
    least, most = _REPEATS[mark]
    return node if mark == "" else Node(parts=(node,), least=least, most=most)


def first_words(node: Node) -> tuple[set[str], bool]:
    """The literal words a pattern may begin with, and whether it may be empty."""
    if node.value is not None:
        return {word for word in node.value.words if not word.startswith("-")}, False
    if node.choice:
        branches = [first_words(part) for part in node.parts]
        return set().union(*(words for words, _ in branches)), any(empty for _, empty in branches)
    found: set[str] = set()
    for part in node.parts:
        words, empty = first_words(part)
        found |= words
        if not empty:
            return found, node.least == 0
    return found, True


Bindings = tuple[tuple[Value, Word], ...]


class Furthest:
    """How far a pattern got, and why it went no further: what a refusal says."""

    def __init__(self) -> None:
        self.at, self.why = -1, ""

    def stop(self, at: int, why: str) -> None:
        """Remember a fault at word `at` unless a later one is known."""
        if at > self.at:
            self.at, self.why = at, why


@dataclass(frozen=True, slots=True)
class Matching:
    """One attempt to fit words into a pattern."""

    words: tuple[Word, ...]
    limits: Limits
    furthest: Furthest

    def whole(self, node: Node) -> Bindings | None:
        """The words bound to their types when the pattern fits them all, else None (and `furthest` says why)."""
        for at, bound in self._fits(node, 0):
            if at == len(self.words):
                return bound
            self.furthest.stop(at, "one word too many")
        return None

    def _fits(self, node: Node, at: int) -> Iterator[tuple[int, Bindings]]:
        if node.value is not None:
            yield from self._word(node.value, at)
        elif node.choice:
            for part in node.parts:
                yield from self._fits(part, at)
        elif (node.least, node.most) == (1, 1):
            yield from self._row(node.parts, at)
        else:
            yield from self._times(node, at, 0)

    def _word(self, value: Value, at: int) -> Iterator[tuple[int, Bindings]]:
        fault = value.fault(self.words[at], self.limits) if at < len(self.words) else f"{value.says} is missing"
        if fault is None:
            yield at + 1, ((value, self.words[at]),)
        else:
            self.furthest.stop(at, fault)

    def _row(self, parts: tuple[Node, ...], at: int) -> Iterator[tuple[int, Bindings]]:
        if not parts:
            yield at, ()
            return
        for middle, bound in self._fits(parts[0], at):
            for end, more in self._row(parts[1:], middle):
                yield end, bound + more

    def _times(self, node: Node, at: int, done: int) -> Iterator[tuple[int, Bindings]]:
        if done < node.most:
            for middle, bound in self._row(node.parts, at):
                if middle > at:
                    for end, more in self._times(node, middle, done + 1):
                        yield end, bound + more
        if done >= node.least:
            yield at, ()
