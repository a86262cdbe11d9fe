"""Sizes, durations and times at their edges; cleaning of text that wants to be more than text."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp import text

GIB = 2**30


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (0, "0B"), (1, "1B"), (512, "512B"), (1023, "1023B"), (1024, "1.0K"), (1536, "1.5K"), (2_040_109_466, "1.9G"), (4 * GIB, "4.0G"),
        (1024**2 - 1, "1.0M"), (1024**3 - 1, "1.0G"), (99 * GIB, "99.0G"), (500_107_862_016, "466G"), (1023 * GIB, "1023G"),
        (2**60, "1.0E"), (2**70, "1024E"), (1.5, "2B"), (-2048, "-2.0K"), (None, "-"), (float("nan"), "-"), (float("inf"), "-"),
        (True, "-"), ("12", "-"),
    ],
)  # fmt: skip
def test_size(n: float | None, shown: str) -> None:
    assert text.size(n) == shown


@given(st.integers(0, 2**62))
def test_size_is_short_and_keeps_its_magnitude(n: int) -> None:
    shown = text.size(n)
    value = float(shown[:-1]) * 1024 ** "BKMGTPE".index(shown[-1])
    assert len(shown) <= 5
    assert abs(value - n) <= max(0.6, n * 0.06)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"), (0.4, "<1s"), (1, "1s"), (59.9, "59s"), (60, "1m"), (200, "3m20s"), (3600, "1h"), (3661, "1h1m"), (86_399, "23h59m"),
        (86_400, "1d"), (1_051_200, "12d4h"), (400 * 86_400, "400d"), (-90, "-1m30s"), (None, "-"), (float("nan"), "-"),
    ],
)  # fmt: skip
def test_duration(seconds: float | None, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("epoch", "shown"), [(1000, "0s"), (1030, "0s"), (800, "3m20s"), (1000 - 3 * 86_400, "3d"), (1000 + 10_800, "in 3h"), (None, "-")]
)
def test_age(epoch: float | None, shown: str) -> None:
    assert text.age(epoch, 1000) == shown


@pytest.mark.parametrize(
    ("epoch", "shown"), [(1_772_326_800, "2026-03-01 01:00Z"), (0, "1970-01-01 00:00Z"), (None, "-"), (1e30, "-"), (-1e30, "-")]
)
def test_when(epoch: float | None, shown: str) -> None:
    assert text.when(epoch) == shown


@pytest.mark.parametrize(
    ("fraction", "shown"), [(0, "0"), (0.071, "7"), (0.125, "13"), (0.995, "100"), (1, "100"), (1.5, "150"), (None, "-")]
)
def test_percent(fraction: float | None, shown: str) -> None:
    assert text.percent(fraction) == shown


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("  padded\n", "padded"),
        ("two\nlines\r\nthree\tcolumns", "two lines three columns"),
        ("a\n\n \t b", "a b"),
        ("two  blanks stay", "two  blanks stay"),
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;https://x.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\dcs", "dcs"),
        ("\x1b_apc\x1b\\\x1b^pm\x1b\\x", "x"),
        ("\x1b(0charset\x1b)B", "charset"),
        ("\x1bc\x1b7\x1b=reset", "reset"),
        ("\x9b31mc1\x9d0;t\x9c", "c1"),
        ("\x1b]0;never ends", "]0;never ends"),
        ("\x1b[999", "[999"),
        ("bell\x07back\x08null\x00del\x7f", "bellbacknulldel"),
        ("next\x85line\u2028and\u2029more", "next line and more"),
        ("ze\u200bro\u200d wi\u2060dth\ufeff", "zero width"),
        ("\u202etxt.exe\u202c \u2066iso\u2069 \u200em\u200f\u061c", "txt.exe iso m"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("heart\u2764\ufe0f and \U000e0100\U000e01efmore\ufe00", "heart\u2764 and more"),
        ("soft\u00adhyphen \u115f\u3164\uffa0filler", "softhyphen filler"),
        ("lone\ud800surrogate\udfff", "lonesurrogate"),
        ("non\ufffe\uffff\ufdd0characters \ufff9note\ufffb", "noncharacters note"),
        ("grüße 世界 привет 👍", "grüße 世界 привет 👍"),
        ("e\u0301 combining", "e\u0301 combining"),
    ],
)
def test_clean(dirty: str, clean: str) -> None:
    assert text.clean(dirty) == clean


def test_clean_caps_with_a_count() -> None:
    assert text.clean("abcdefghij", 4) == "abcd…(+6)"
    assert text.clean("abcd", 4) == "abcd"
    assert text.clean("ab\x1b[1mcd", 4) == "abcd"


def test_clean_block_keeps_lines_and_tabs() -> None:
    assert text.clean_block("one\r\ntwo\x1b[1m\tthree\rfour\x0b\x0cfive\u2028six\x00\u200b\n") == "one\ntwo\tthree\nfour\n\nfive\nsix\n"
    assert text.clean_block("plain\n  indented\n") == "plain\n  indented\n"


def test_clean_block_keeps_head_and_tail() -> None:
    assert text.clean_block("a" * 50 + "b" * 900 + "c" * 50, 100) == f"{'a' * 50}\n[... 900 characters left out ...]\n{'c' * 50}"
    assert text.clean_block("abc", 3) == "abc"
    assert text.clean_block("abc", 0) == "\n[... 3 characters left out ...]\n"


@given(st.text(st.characters(), max_size=80) | st.text("\x1b[]\\;0m\x07\x9b\x9d\x9c\n\t \u200b\U000e0041ab", max_size=80))
def test_clean_leaves_nothing_invisible_and_is_stable(dirty: str) -> None:
    for cleaned in (text.clean(dirty), text.clean_block(dirty).replace("\n", "").replace("\t", "")):
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in cleaned)
        assert not any(0xE0000 <= ord(c) <= 0xE0FFF or 0x202A <= ord(c) <= 0x202E or 0xFE00 <= ord(c) <= 0xFE0F for c in cleaned)
        cleaned.encode()
    assert text.clean(text.clean(dirty)) == text.clean(dirty)
    assert "\n" not in text.clean(dirty)


def test_every_format_character_but_visible_ones_goes() -> None:
    kept = {
        chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) in ("Cf", "Cc", "Cs") and text.clean(f"a{chr(c)}b") == f"a{chr(c)}b"
    }
    # signs that are printed: Arabic and Kaithi number signs, Syriac abbreviation, Egyptian joiners between hieroglyphs
    assert {f"{ord(c):X}" for c in kept} <= {
        *(f"{c:X}" for c in (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)))
    }


@pytest.mark.parametrize("unit", ["a", "\x1b[", "\x1b]", "\x9b0", "\u200b", "\n \t", "\x1b[0;"])
def test_cleaning_is_linear(unit: str) -> None:
    dirty = unit * (400_000 // len(unit))
    start = time.process_time()
    text.clean(dirty)
    text.clean_block(dirty)
    assert time.process_time() - start < 2


def test_token_estimate() -> None:
    assert text.token_estimate("") == 0
    assert text.token_estimate("a" * 240) == 100
    assert text.token_estimate("привет") >= 6
    assert text.token_estimate("世界") >= 2
    assert text.token_estimate("👍👍") >= 4
    assert text.token_estimate("\ud800") >= 1


def test_long_runs_of_blanks_are_cleaned_in_linear_time() -> None:
    began = time.monotonic()
    assert text.clean(" " * 200_000 + "é") == "é"
    assert text.clean("\x1b " * 200_000 + "é") == "é"
    assert text.clean("\t \n" * 100_000 + "é") == "é"
    assert time.monotonic() - began < 5


def test_things_are_counted() -> None:
    assert [text.counted(n, "guests") for n in (0, 1, 2)] == ["0 guests", "1 guest", "2 guests"]
    assert text.counted(1, "volumes, largest first") == "1 volume, largest first"
    assert text.counted(1, "properties") == "1 property"
    assert text.counted(1, "further ZFS pools") == "1 further ZFS pool"
