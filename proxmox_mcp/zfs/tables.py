"""What `-Hp` prints: a line each, columns split at tabs and at nothing else, "-" for what there is not. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Row = dict[str, str | None]


def rows(stdout: str, columns: Sequence[str]) -> list[Row]:
    """The lines as mappings; a line with another number of columns (the mark of a cut, a half line beside it) is left out."""
    found: list[Row] = []
    for line in stdout.split("\n"):
        values = line.split("\t")
        if len(values) == len(columns):
            found.append({column: None if value == "-" else value for column, value in zip(columns, values, strict=True)})
    return found


def integer(value: str | None) -> int | None:
    """A number of -p; None for "-", for "none" and for anything else."""
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 20 else None


def ratio(value: str | None) -> float | None:
    """A ratio such as compressratio: "1.69" or "1.69x"."""
    try:
        return float((value or "").removesuffix("x"))
    except ValueError:
        return None


def properties(stdout: str, name: str) -> list[tuple[str, str, str]]:
    """(property, value, source) of `zfs get -Hp`. A user's value may hold tabs and line breaks; it ends where the next property begins."""
    blocks = f"\n{stdout.removesuffix(chr(10))}".split(f"\n{name}\t")[1:]
    found = []
    for block in blocks:
        prop, _, rest = block.partition("\t")
        value, tab, source = rest.rpartition("\t")
        if tab:
            found.append((prop, value, source))
    return found


def estimate(stdout: str) -> int | None:
    """The bytes in the last line of `zfs send -nvP`: size, tab, number."""
    for line in reversed(stdout.splitlines()):
        word, _, number = line.partition("\t")
        if word == "size":
            return integer(number)
    return None
