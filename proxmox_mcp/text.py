"""Text for people and models: sizes, durations, ages and times; removal of control, bidi and invisible characters.

size(2_040_109_466) is 1.9G, duration(1_051_200) 12d4h, age(now - 200, now) 3m20s, percent(0.071) 7, when(1_772_326_800)
2026-03-01 01:00Z, and whatever is unknown is "-".
"""

from __future__ import annotations

import errno
import math
import os
import re
from datetime import UTC, datetime

UNKNOWN = "-"

_UNITS = "BKMGTPE"


def os_reason(error: OSError) -> str:
    """Why the system refused, in its own words; asyncio tells of refused connections in Python's, several in one text for a name."""
    import socket  # not needed by what starts

    if isinstance(error, socket.gaierror):  # which counts its own numbers
        return error.strerror or str(error)
    numbers = [error.errno] if error.errno else [int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error))]
    words = [os.strerror(number) for number in numbers if number in errno.errorcode]
    return ", ".join(dict.fromkeys(words)) or error.strerror or str(error)


def _number(value: float | None) -> float | None:
    """The value when it is a finite number; None, text and NaN are unknown."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return None


def size(n: float | None) -> str:
    """Bytes in binary units: 512B, 1.9G, 466G; "-" when unknown."""
    value = _number(n)
    if value is None:
        return UNKNOWN
    sign, value = ("-", -value) if value < 0 else ("", value)
    if value < 1023.5:
        return f"{sign}{value:.0f}B"
    step = 0
    # 1023.96K would print as 1024K: a value that rounds up to the next unit belongs there
    while value >= 1023.5 and step < len(_UNITS) - 1:
        value /= 1024
        step += 1
    return f"{sign}{value:.1f}{_UNITS[step]}" if value < 99.95 else f"{sign}{value:.0f}{_UNITS[step]}"


def counted(number: int, things: str) -> str:
    """A number with its things, which are named in the plural: "1 guest", "2 guests", "1 volume, largest first"."""
    if number != 1:
        return f"{number} {things}"
    noun, comma, rest = things.partition(",")
    noun = f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")
    return f"1 {noun}{comma}{rest}"


def duration(seconds: float | None) -> str:
    """Seconds as their two largest units: 45s, 3m20s, 4h5m, 12d4h; "-" when unknown."""
    value = _number(seconds)
    if value is None:
        return UNKNOWN
    if value < 0:
        return "-" + duration(-value)
    if 0 < value < 1:
        return "<1s"
    whole = int(value)
    for unit, big, small, per in (("d", 86_400, 3_600, "h"), ("h", 3_600, 60, "m"), ("m", 60, 1, "s")):
        if whole >= big:
            rest = whole % big // small
            return f"{whole // big}{unit}{rest}{per}" if rest else f"{whole // big}{unit}"
    return f"{whole}s"


def age(epoch: float | None, now: float) -> str:
    """How long ago `epoch` (Unix seconds) was: 3d2h; "in 3h" for a time to come. A clock that is a minute ahead counts as now."""
    value = _number(epoch)
    if value is None:
        return UNKNOWN
    seconds = now - value
    if seconds < -60:
        return f"in {duration(-seconds)}"
    return duration(max(0, int(seconds)))


def when(epoch: float | None) -> str:
    """Unix seconds as UTC to the minute: 2026-03-01 01:00Z; "-" when unknown."""
    value = _number(epoch)
    if value is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%MZ")
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def percent(fraction: float | None) -> str:
    """A fraction (0..1) as whole percent without a sign: 0.071 -> 7; "-" when unknown."""
    value = _number(fraction)
    return UNKNOWN if value is None else str(math.floor(value * 100 + 0.5))


# Terminal sequences go as a whole, else "\x1b[31m" would leave "[31m". The payload of a string sequence (window title, hyperlink ...)
# never spans a control character, so an unterminated one cannot swallow the rest, and matching stays linear.
_TERMINAL = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    "|\x1b[ -/]+[0-~]"  # character sets
    "|\x1b[0-OQ-WYZ\\\\`-~]"  # single shifts, reset, save
)
# Named by code point: written out they could not be seen here.
_INVISIBLE_RANGES = (
    (0x00, 0x08), (0x0E, 0x1F), (0x7F, 0x84), (0x86, 0x9F),  # C0 and C1 without the line and column ones
    (0xAD, 0xAD), (0x034F, 0x034F), (0x061C, 0x061C),  # soft hyphen, grapheme joiner, Arabic letter mark
    (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFFA0, 0xFFA0),  # fillers and Mongolian selectors
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),  # zero width, bidi embeddings and isolates, invisible operators
    (0xD800, 0xDFFF),  # lone surrogates
    (0xFDD0, 0xFDEF), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFF0, 0xFFFB), (0xFFFE, 0xFFFF),  # selectors, BOM, annotations, non-characters
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),  # shorthand and musical controls
    (0xE0000, 0xE0FFF),  # tags, variation selectors 17-256, unassigned ignorables
)  # fmt: skip
_INVISIBLE = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _INVISIBLE_RANGES) + "]+")
# Begins where a run of blanks begins: a search from each blank of a long run would be quadratic.
_BREAKS = re.compile("(?<![ \t])[ \t]*[\t\n\v\f\r\x85\u2028\u2029][\\s\x85]*")
_LINE_ENDS = re.compile("\r\n|[\v\f\r\x85\u2028\u2029]")


def clean(s: str, limit: int | None = None) -> str:
    """One harmless line: no terminal sequences, controls, invisible or bidi characters; line breaks and tabs become one blank.

    With `limit`, that many characters are kept and the rest is counted: "abc…(+120)".
    """
    if not (s.isascii() and s.isprintable()):
        s = _INVISIBLE.sub("", _TERMINAL.sub("", s))
        s = _BREAKS.sub(" ", s)
    s = s.strip()
    return s if limit is None else cut(s, limit)


def visible(s: str) -> str:
    r"""One line that hides nothing of `s`: line breaks as ⏎, tabs as ⇥, whatever else could not be seen by its code (\x1b, \u200b)."""
    if s.isascii() and s.isprintable():
        return s
    return "".join(c if c.isprintable() and not _INVISIBLE.match(c) else _CODES.get(c) or _code(ord(c)) for c in s)


_CODES = {"\n": "⏎", "\t": "⇥"}


def _code(point: int) -> str:
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def cut(s: str, limit: int) -> str:
    """The first `limit` characters, and how many were left out: "abc…(+120)"."""
    return s if len(s) <= limit else f"{s[:limit]}…(+{len(s) - limit})"


def clean_block(s: str, max_chars: int | None = None) -> str:
    r"""The same for text of several lines: "\n" and tabs stay, other line ends become "\n".

    With `max_chars`, head and tail (half each) are kept around a line that counts what is missing.
    """
    if not (s.isascii() and s.replace("\n", "").isprintable()):
        s = _LINE_ENDS.sub("\n", _TERMINAL.sub("", s))
        s = _INVISIBLE.sub("", s)
    if max_chars is not None and len(s) > max_chars:
        head = (max_chars + 1) // 2
        tail = max_chars - head
        return f"{s[:head]}\n[... {len(s) - max_chars} characters left out ...]\n{s[len(s) - tail :]}"
    return s


def token_estimate(s: str) -> int:
    """Roughly what a model pays: 2.4 ASCII characters a token (tables and ids split finely), one or more a token for the rest."""
    if s.isascii():
        return math.ceil(len(s) / 2.4)
    plain = len(s.encode("ascii", "ignore"))
    other = len(s.encode("utf-8", "surrogatepass")) - plain  # 2 bytes a letter of most scripts, 3 for CJK, 4 for emoji
    return math.ceil(plain / 2.4 + other / 2)
