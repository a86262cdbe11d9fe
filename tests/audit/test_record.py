"""The line format: ASCII, sorted, hashed over its own bytes, and every text comes back as it was."""

from __future__ import annotations

import hashlib
import hmac
import json
from enum import IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxmox_mcp.audit import AuditLog, Keys, record, tail, verify
from proxmox_mcp.audit.record import entry_text, unmasked
from proxmox_mcp.errors import AuditError
from tests.audit.forger import KEY, LOG, lines

HOSTILE = {
    "line separators": "a\u2028b\u2029c\x85d\x0b\x0c\x1c\x1d\x1e",
    "newlines": "a\nb\r\nc\r",
    "NUL": "a\x00b",
    "lone surrogates": "\ud800 \udfff \udc80",
    "escapes": '\x1b[31m\u202e\u200b"\\/',
    "not characters": "\ufffe\uffff\U0010ffff",
    "1 MiB of text": "x" * (1 << 20),
    "1 MiB of what JSON escapes": "\u2028" * (1 << 20),
    "looks like a record": '{"hash":"' + "0" * 64 + '","kind":"open"}\n',
    "empty": "",
}


@pytest.mark.parametrize("keys", [Keys.none(), KEY], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_comes_back_and_breaks_nothing(tmp_path: Path, keys: Keys, text: str) -> None:
    log = AuditLog(tmp_path, "api", keys=keys)
    intent = log.intent({"argv": ["echo", text], text: text})
    log.outcome(intent, {"said": text})
    (_, first, second) = tail(tmp_path, "api", 3)
    assert first["record"] == {"argv": ["echo", text], text: text}
    assert second["record"] == {"said": text}
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT", 3)


def joined(text: str) -> str:
    """The same text as any JSON reader has it: two halves of a pair that stand together are one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
        max_leaves=20,
    )
)
def test_an_entry_is_the_same_with_and_without_a_mask(value: Any) -> None:
    entry = {"value": value}
    plain = entry_text(entry, unmasked)
    assert plain == entry_text(entry, str)
    assert plain.isascii()
    assert "\n" not in plain
    assert json.loads(plain) == json.loads(json.dumps(entry))


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_comes_back(text: str) -> None:
    assert json.loads(entry_text({"text": text}, unmasked))["text"] == joined(text)


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    CHANGE = "change"


def test_what_json_does_not_know_is_recorded_as_text() -> None:
    entry = {
        "path": PurePosixPath("/etc/pve"),
        "bytes": b"caf\xc3\xa9 \xff",
        "nan": float("nan"),
        "inf": float("-inf"),
        "tuple": (1, 2),
        "set": {1},
        "mapping": MappingProxyType({"a": 1}),
        "word": Word.CHANGE,
        "level": Level.HIGH,
        5: "a number as key",
    }
    found = json.loads(entry_text(entry, str))  # type: ignore[arg-type]
    assert found == {
        "path": "/etc/pve",
        "bytes": "café \\xff",
        "nan": "nan",
        "inf": "-inf",
        "tuple": [1, 2],
        "set": [1],
        "mapping": {"a": 1},
        "word": "change",
        "level": "3",
        "5": "a number as key",
    }
    assert json.loads(entry_text(entry, unmasked)) == found  # type: ignore[arg-type]


def test_the_mask_reaches_every_text(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api", mask=lambda text: text.replace("s3cret", "[hidden]"))
    log.note({"a": "s3cret", "b": ["x s3cret", {"c": ("s3cret",)}], "d": b"s3cret", "e": PurePosixPath("s3cret")})
    assert b"s3cret" not in (tmp_path / LOG).read_bytes()
    assert (tmp_path / LOG).read_bytes().count(b"[hidden]") == 5


def test_an_entry_that_json_cannot_hold_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api")
    endless: dict[str, Any] = {}
    endless["self"] = endless
    for entry in (endless, {"number": 10**5000}):
        with pytest.raises(AuditError, match="JSON cannot hold it"):
            log.intent(entry)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("secret", [None, "correct horse battery staple"])
def test_a_third_party_can_check_a_line_with_standard_tools(tmp_path: Path, secret: str | None) -> None:
    """As docs/audit.md says: the hash is over everything after the first 76 characters of the line."""
    log = AuditLog(tmp_path, "api", keys=Keys.load(secret, None))
    log.outcome(log.intent({"tool": "proxmox_start_vm"}), {"status": "ok"})
    last = "0" * 64
    for number, line in enumerate(lines(tmp_path), 1):
        assert line.isascii()
        assert line.endswith(b"}\n")
        fields = json.loads(line)
        assert list(fields) == sorted(fields)
        hashed = line[75:-1]
        expected = hmac.new(secret.encode(), hashed, "sha256") if secret else hashlib.sha256(hashed)
        assert fields["hash"] == expected.hexdigest()
        assert fields["prev"] == last
        assert fields["seq"] == number
        assert fields["time"].endswith("+00:00")
        last = fields["hash"]
    intent, outcome = map(json.loads, lines(tmp_path)[1:])
    assert (intent["kind"], outcome["kind"], outcome["of"]) == ("intent", "outcome", intent["seq"])


@pytest.mark.parametrize("value", [{"b": [1, True, None, 1.5, "é\u2028"], "a": {}}, [], "x"])
def test_a_python_without_the_fast_encoder_writes_the_same(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    fast = record.encode(value)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    assert record._encoder()(value) == fast == json.dumps(value, sort_keys=True, separators=(",", ":"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        record._encoder()(float("nan"))


@pytest.mark.parametrize("mask", [unmasked, lambda text: text], ids=["unmasked", "masked"])
@pytest.mark.parametrize(
    ("entry", "found"),
    [({("a", 1): "kept"}, {"('a', 1)": "kept"}), ({"nan": float("nan"), "most": float("-inf")}, {"nan": "nan", "most": "-inf"})],
)
def test_nothing_of_an_entry_is_dropped_or_written_as_no_json(mask: record.Mask, entry: Any, found: dict[str, str]) -> None:
    assert json.loads(entry_text(entry, mask), parse_constant=pytest.fail) == found
