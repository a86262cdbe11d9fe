"""What became of one command; its output read with bounded memory, decoded, without the noise around it. Pure."""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass

# what is kept of the text before the marker (a profile's noise), for the case that the marker never comes
_NOISE = 16_384

_LOCALE_NOISE = re.compile(
    r"perl: warning: .*"
    r"|(?:\S*: )*(?:line \d+: )?warning: setlocale: .*cannot change locale.*"
    r"|locale: Cannot set LC_\S+ to default locale: .*"
    r"|(?:\S+: )?[Cc]an't set (?:the )?locale; make sure \$LC_\* and \$LANG are correct!?"
)
# what stands between perl's warning lines
_PERL_LOCALE = re.compile(r"\s+(?:LANGUAGE|LANG|LC_[A-Z]+) = .*|\s+are supported and installed on your system\.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one command. Text is hostile until cleaned; stdout and stderr are decoded as UTF-8 with replacement.

    exit_status is the channel's own and may be 255; it is None unless the command ended by itself and all its output came. `lost`: the
    connection died first, the outcome is unknown. `timed_out` and `capped`: it was ended here, for its time or for printing without
    end. When bytes were left out (omitted_bytes, omitted_stderr), a line in the middle of the text says so: head and tail are kept.
    stdout_bytes and stdout_sha256 (hex) are of everything that was read; duration is in seconds.
    """

    exit_status: int | None
    signal: str | None  # "TERM", without SIG
    lost: bool
    timed_out: bool
    capped: bool
    stdout: str
    stderr: str
    omitted_bytes: int
    omitted_stderr: int
    replaced: bool  # bytes were not UTF-8
    duration: float
    stdout_bytes: int
    stdout_sha256: str
    may_run_on: bool = False  # it was to be ended, and the far side did not confirm that it has
    open_end: bool = False  # it ended, its output did not: left open by what it put into the background, or late on a slow wire

    @property
    def ok(self) -> bool:
        """Known to have ended by itself with exit status 0."""
        return self.exit_status == 0 and self.signal is None and not (self.lost or self.timed_out or self.capped)


class Capture:
    """One output stream: drops what comes before the marker line, keeps head and tail of the rest, counts and hashes all of it."""

    def __init__(self, marker: bytes, keep: int) -> None:
        """`keep`: how many bytes are kept at most, half of them from the end."""
        self._marker = marker
        self._head_size = keep // 2
        self._tail_size = keep - self._head_size
        self._head = bytearray()
        self._tail = bytearray()
        self._hash = hashlib.sha256()
        self.noise = bytearray()
        self.started: tuple[str, ...] | None = None  # the words of the marker line, once it has come
        self.total = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next piece; returns the part of it that is output of the command."""
        if self.started is None:
            data = self._after_marker(data)
        if data:
            self.total += len(data)
            self._hash.update(data)
            self._keep(data)
        return data

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def text(self) -> tuple[str, int, bool]:
        """(text, bytes left out, whether bytes had to be replaced). A cut never splits a character."""
        tail = self._tail[-self._tail_size :] if self._tail_size else bytearray()
        if self.total == len(self._head) + len(tail):
            text, replaced = _decode(bytes(self._head + tail))
            return text, 0, replaced
        return self._cut_text(self._head, tail)

    def _cut_text(self, head: bytearray, tail: bytearray) -> tuple[str, int, bool]:
        before = bytes(head[: len(head) - _unfinished(head)])
        after = bytes(tail[_orphans(tail) :])
        omitted = self.total - len(before) - len(after)
        first, broken_first = _decode(before)
        last, broken_last = _decode(after)
        return f"{first}\n[... {omitted} bytes left out ...]\n{last}", omitted, broken_first or broken_last

    def _keep(self, data: bytes) -> None:
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not self._tail_size or not data:
            return
        self._tail += data[-self._tail_size :]
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]

    def _after_marker(self, data: bytes) -> bytes:
        self.noise += data
        place = self.noise.find(self._marker)
        end = self.noise.find(b"\n", place) if place >= 0 else -1
        if end < 0:
            if place < 0 and len(self.noise) > 2 * _NOISE:
                del self.noise[:-_NOISE]
            return b""
        self.started = tuple(self.noise[place + len(self._marker) : end].decode("ascii", "replace").split())
        rest = bytes(self.noise[end + 1 :])
        self.noise.clear()
        return rest


class Decoder:
    """Pieces of bytes -> pieces of text, for showing output while it comes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        return self._decoder.decode(data)


def without_locale_noise(stderr: str) -> str:
    """stderr without the warnings that programs print when the machine lacks a locale."""
    perl = "perl: warning: " in stderr
    return "\n".join(line for line in stderr.split("\n") if not (_LOCALE_NOISE.fullmatch(line) or (perl and _PERL_LOCALE.fullmatch(line))))


def _decode(data: bytes) -> tuple[str, bool]:
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        return data.decode(errors="replace"), True


def _unfinished(head: bytes | bytearray) -> int:
    """How many bytes at the end begin a character that the cut took the rest of."""
    for back in range(1, min(3, len(head)) + 1):
        byte = head[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < length else 0
        if byte < 0x80:
            return 0
    return 0


def _orphans(tail: bytes | bytearray) -> int:
    """How many bytes at the start continue a character that the cut took the beginning of."""
    count = 0
    while count < min(3, len(tail)) and 0x80 <= tail[count] < 0xC0:
        count += 1
    return count
