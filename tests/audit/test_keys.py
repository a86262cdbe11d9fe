"""Keys: where they come from, what they never tell, and logs that outlive them."""

from __future__ import annotations

import hmac
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.audit import AuditLog, Keys, verify
from proxmox_mcp.audit.files import segments
from proxmox_mcp.errors import AuditError, ConfigError
from tests.audit.forger import HEAD, LOG, edit, lines, write_log

OLD, NEW = "the old secret", "the new secret"


def key_file(directory: Path, text: str) -> Path:
    path = directory / "keys"
    path.write_bytes(text.encode())
    return path


def test_the_setting_comes_before_the_file_and_the_first_line_before_the_others(tmp_path: Path) -> None:
    path = key_file(tmp_path, f"\ufeff{NEW}\r\n\n  {OLD}  \n")
    assert Keys.load(None, path).current == Keys.load(NEW, None).current
    assert Keys.load(OLD, path).current == Keys.load(OLD, None).current
    assert len(Keys.load(None, path)) == len(Keys.load(OLD, path)) == 2
    assert Keys.load(f" {OLD}\n", None).current == Keys.load(OLD, None).current


@pytest.mark.parametrize("nothing", [None, "", "  \n"])
def test_no_key(nothing: str | None) -> None:
    assert Keys.load(nothing, None).current is None
    assert len(Keys.load(nothing, None)) == 0


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00"], ids=["empty", "blank", "not text"])
def test_a_key_file_without_a_key_is_an_error_and_not_no_key(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="keys"):
        Keys.load("another", path)


def test_a_missing_key_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        Keys.load(None, tmp_path / "nowhere")
    assert "No such file" in str(caught.value)


@given(st.binary(min_size=1, max_size=200), st.binary(max_size=300))
def test_the_hash_is_hmac_sha256(secret: bytes, data: bytes) -> None:
    keys = Keys((secret,))
    assert keys.sealing(data) == hmac.new(secret, data, "sha256").hexdigest()


def test_the_secret_is_never_shown(tmp_path: Path) -> None:
    keys = Keys.load(OLD, key_file(tmp_path, NEW))
    write_log(tmp_path / "audit", keys)
    shown = [repr(keys), str(keys), verify(tmp_path / "audit", "api", Keys.load("other", None)).text()]
    shown += [path.read_text() for path in (tmp_path / "audit").iterdir()]
    with pytest.raises(AuditError) as caught:
        AuditLog(tmp_path / "audit", "api").note({})
    shown.append(str(caught.value))
    assert not [text for text in shown if OLD in text or NEW in text]


def test_a_new_key_starts_a_new_segment_and_the_old_ones_keep_theirs(tmp_path: Path) -> None:
    write_log(tmp_path, Keys.load(OLD, None), pairs=2)
    write_log(tmp_path, Keys.load(NEW, key_file(tmp_path, OLD)), pairs=2)
    opening = [json.loads(lines(tmp_path, segment.path.name)[0]) for segment in segments(tmp_path, "api")]
    assert [fields["record"]["key"] for fields in opening] == [Keys.load(OLD, None).current, Keys.load(NEW, None).current]
    both = Keys.load(NEW, key_file(tmp_path, OLD))
    report = verify(tmp_path, "api", both)
    assert (report.verdict, report.records) == ("INTACT", 10)
    report = verify(tmp_path, "api", Keys.load(NEW, None))
    assert report.verdict == "BROKEN"
    assert str(report.first_problem).startswith("_api_audit.log, line 1: wrong key")
    report = verify(tmp_path, "api", Keys.load(OLD, None))
    assert report.verdict == "BROKEN"
    assert str(report.first_problem).startswith("_api_audit.2.log, line 1: wrong key")


def test_a_log_of_an_older_known_key_is_remarked(tmp_path: Path) -> None:
    write_log(tmp_path, Keys.load(OLD, None))
    report = verify(tmp_path, "api", Keys.load(NEW, key_file(tmp_path, OLD)))
    assert report.verdict == "INTACT WITH REMARKS"
    assert report.remarks == (f"the newest segment is written with the older key {Keys.load(OLD, None).current}",)


def test_a_new_key_without_the_old_one_is_remarked_for_good(tmp_path: Path) -> None:
    write_log(tmp_path, Keys.load(OLD, None), pairs=2)
    write_log(tmp_path, Keys.load(NEW, None), pairs=2)
    report = verify(tmp_path, "api", Keys.load(NEW, key_file(tmp_path, OLD)))
    assert report.verdict == "INTACT WITH REMARKS"
    assert report.remarks == ("record 6 began a new key without the old one: records cut off before it could not be noticed",)


def test_a_keyed_log_takes_no_record_without_a_key(tmp_path: Path) -> None:
    write_log(tmp_path, Keys.load(OLD, None))
    before = [(path.name, path.read_bytes()) for path in sorted(tmp_path.iterdir())]
    with pytest.raises(AuditError, match="no key is set") as caught:
        AuditLog(tmp_path, "api").intent({"tool": "x"})
    assert "PROXMOX_AUDIT_HMAC_KEY" in str(caught.value)
    assert [(path.name, path.read_bytes()) for path in sorted(tmp_path.iterdir())] == before


def test_an_unkeyed_segment_slipped_behind_keyed_ones_is_found(tmp_path: Path) -> None:
    keyed = Keys.load(OLD, None)
    write_log(tmp_path, keyed, pairs=1)
    write_log(tmp_path / "other", Keys.none(), pairs=1)
    (tmp_path / "_api_audit.2.log").write_bytes((tmp_path / "other" / LOG).read_bytes().replace(b'"segment":1', b'"segment":2'))
    report = verify(tmp_path, "api", keyed)
    assert report.verdict == "BROKEN"
    assert str(report.first_problem).startswith("_api_audit.2.log, line 1: forged: a segment without a key follows segments with one")


def test_two_writers_with_different_keys_take_turns(tmp_path: Path) -> None:
    both = Keys.load(NEW, key_file(tmp_path, OLD))
    first = AuditLog(tmp_path, "api", keys=Keys.load(OLD, key_file(tmp_path, NEW)))
    key_file(tmp_path, OLD)
    second = AuditLog(tmp_path, "api", keys=both)
    for log in (first, second, first, second):
        log.note({"n": 1})
    report = verify(tmp_path, "api", both)
    assert (report.verdict, report.records) == ("INTACT", 8)


def test_the_head_is_sealed_with_the_key(tmp_path: Path) -> None:
    keys = Keys.load(OLD, None)
    write_log(tmp_path, keys)
    edit(tmp_path, lambda found: found.__setitem__(0, found[0].replace(b'"seq":11', b'"seq":12')), HEAD)
    report = verify(tmp_path, "api", keys)
    assert str(report.first_problem).endswith("the head was forged: its HMAC is wrong, so nobody can tell whether records were cut off")
