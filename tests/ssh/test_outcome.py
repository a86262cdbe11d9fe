"""Output with bounded memory: cuts, counts, decoding, noise."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.ssh import Outcome
from proxmox_mcp.ssh.outcome import Capture, without_locale_noise


def captured(data: bytes, keep: int, piece: int = 7) -> Capture:
    capture = Capture(b"MARK", keep)
    stream = b"noise\nMARK 1 2\n" + data
    for place in range(0, len(stream), piece):
        capture.feed(stream[place : place + piece])
    return capture


def test_noise_before_the_marker_is_dropped_and_its_words_are_read() -> None:
    capture = captured(b"hello", 100)
    assert capture.text() == ("hello", 0, False)
    assert capture.started == ("1", "2")
    assert capture.total == 5


def test_noise_without_a_marker_is_bounded() -> None:
    capture = Capture(b"MARK", 100)
    for _ in range(1000):
        capture.feed(b"x" * 1000)
    assert capture.started is None
    assert len(capture.noise) < 50_000


def test_a_marker_after_much_noise_in_any_pieces_is_found() -> None:
    capture = Capture(b"MARK", 100)
    for byte in b"n" * 40_000 + b"MARK 5 6\nout":
        capture.feed(bytes([byte]))
    assert capture.text()[0] == "out"


@given(st.text(max_size=200), st.integers(0, 60), st.integers(1, 50))
def test_cuts_never_split_a_character_and_the_count_is_exact(text: str, keep: int, piece: int) -> None:
    data = text.encode()
    capture = captured(data, keep, piece)
    shown, omitted, replaced = capture.text()
    assert not replaced
    assert capture.total == len(data)
    assert capture.sha256 == hashlib.sha256(data).hexdigest()
    if len(data) <= keep:
        assert (shown, omitted) == (text, 0)
        return
    head, _, tail = shown.partition(f"\n[... {omitted} bytes left out ...]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + omitted == len(data)
    assert len(head.encode()) + len(tail.encode()) <= keep


@given(st.binary(max_size=100), st.integers(0, 60))
def test_any_bytes_become_text(data: bytes, keep: int) -> None:
    shown, omitted, replaced = captured(data, keep).text()
    assert shown.encode().decode() == shown
    assert 0 <= omitted <= len(data)
    if not omitted:
        assert replaced == (data.decode(errors="replace").encode() != data)


def test_memory_stays_bounded() -> None:
    capture = Capture(b"MARK", 1000)
    capture.feed(b"MARK 1 2\n")
    for _ in range(2000):
        capture.feed(b"y\n" * 5000)
    assert capture.total == 20_000_000
    assert len(capture._head) + len(capture._tail) <= 3000


PERL = """perl: warning: Setting locale failed.
perl: warning: Please check that your locale settings:
\tLANGUAGE = (unset),
\tLC_ALL = "C.UTF-8",
\tLANG = "en_US.UTF-8"
    are supported and installed on your system.
perl: warning: Falling back to the standard locale ("C").
"""


@pytest.mark.parametrize(
    "noise",
    [
        PERL,
        "bash: warning: setlocale: LC_ALL: cannot change locale (C.UTF-8)\n",
        "/bin/sh: line 1: warning: setlocale: LC_ALL: cannot change locale (C.UTF-8): No such file or directory\n",
        "locale: Cannot set LC_CTYPE to default locale: No such file or directory\n",
        "Can't set locale; make sure $LC_* and $LANG are correct!\n",
        "manpath: can't set the locale; make sure $LC_* and $LANG are correct\n",
    ],
)
def test_g60_locale_noise_goes_and_the_message_stays(noise: str) -> None:
    assert without_locale_noise(noise) == ""
    assert without_locale_noise(f"{noise}cannot open 'tank': no such pool\n") == "cannot open 'tank': no such pool\n"


@pytest.mark.parametrize(
    "text",
    ["  LANG = de\n", "warning: locale missing\n", "perl: not a warning\n", "Can't open perl script\n", "a\x0bLC_ALL b\u2028c\r\n"],
)
def test_other_lines_stay(text: str) -> None:
    assert without_locale_noise(text) == text


@pytest.mark.parametrize(
    "change", [{"exit_status": 1}, {"exit_status": None}, {"signal": "TERM"}, {"lost": True}, {"timed_out": True}, {"capped": True}]
)
def test_only_a_known_end_with_zero_is_ok(change: dict[str, object]) -> None:
    good: dict[str, object] = {
        "exit_status": 0,
        "signal": None,
        "lost": False,
        "timed_out": False,
        "capped": False,
        "stdout": "",
        "stderr": "",
        "omitted_bytes": 0,
        "omitted_stderr": 0,
        "replaced": False,
        "duration": 0.1,
        "stdout_bytes": 0,
        "stdout_sha256": "",
    }
    assert Outcome(**good).ok  # type: ignore[arg-type]
    assert not Outcome(**{**good, **change}).ok  # type: ignore[arg-type]
