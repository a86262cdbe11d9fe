"""What verify finds, word for word, and where a forger hits just one of the conditions that a record must meet."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.audit import AuditLog, Keys, lock, verify
from proxmox_mcp.audit.head import pack
from proxmox_mcp.audit.record import ZEROS, encode, seal
from proxmox_mcp.audit.report import Newest
from proxmox_mcp.errors import AuditError
from tests.audit.forger import HEAD, KEY, LOG, edit, lines, rehash, write_log

NONE = Keys.none()
LISTED = 20


def problem(directory: Path, keys: Keys = NONE) -> str:
    found = verify(directory, "api", keys).first_problem
    assert found is not None
    return str(found)


def remarks(directory: Path, keys: Keys = NONE) -> tuple[str, ...]:
    report = verify(directory, "api", keys)
    assert report.verdict == "INTACT WITH REMARKS", report
    return report.remarks


def head(directory: Path, *, keys: Keys = NONE, log: str = "", **changed: Any) -> None:
    """A head that vouches for the log as it is, but for what is `changed`."""
    found = lines(directory) if (directory / LOG).exists() else []
    newest = json.loads(found[-1]) if found else {"log": log, "seq": 0, "hash": ZEROS}
    fields = {"log": newest["log"], "segment": 1, "size": sum(map(len, found)), "seq": newest["seq"], "last": newest["hash"]}
    (directory / HEAD).write_bytes(pack(**{**fields, "key": keys.current, **changed}, digest=keys.sealing))


def extend(directory: Path, **fields: Any) -> None:
    """A record with a right hash behind the last one, and a head that vouches for it."""
    last = json.loads(lines(directory)[-1])
    due = {"kind": "note", "log": last["log"], "prev": last["hash"], "record": {}, "seq": last["seq"] + 1, "time": "t", "writer": "w"}
    line = seal(encode({**due, **fields})[1:], NONE.sealing)[1] + b"\n"
    edit(directory, lambda found: found.append(line))
    head(directory)


# --- a record that meets all conditions but one


def test_an_honest_record_more_is_none_of_these(tmp_path: Path) -> None:
    write_log(tmp_path, NONE)
    extend(tmp_path)
    assert verify(tmp_path, "api", NONE).verdict == "INTACT"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"seq": 13}, "missing: record 12 is due here and record 13 follows"),
        ({"seq": 11}, "duplicated or reordered: record 11 stands where record 12 is due"),
        ({"log": "0" * 16}, "forged: the record belongs to another log"),
        ({"prev": "0" * 64}, "forged: the record does not follow the one before it; one of the two was replaced"),
        ({"kind": "open"}, "forged: an opening record stands inside a segment"),
        ({"torn": {"bytes": 1, "sha256": "0" * 64}}, "missing: the torn line that this record tells of is not before it"),
    ],
)
def test_a_record_that_is_wrong_in_one_field(tmp_path: Path, fields: dict[str, Any], what: str) -> None:
    write_log(tmp_path, NONE)
    extend(tmp_path, **fields)
    assert problem(tmp_path) == f"{LOG}, line 12: {what}"


def test_a_record_that_holds_its_place_alone_is_unhashed(tmp_path: Path) -> None:
    write_log(tmp_path, NONE)
    for keep in ("kind", "log", "prev", "seq"):
        assert keep in json.loads(lines(tmp_path)[4])
    edit(
        tmp_path,
        lambda found: found.__setitem__(
            4, encode({name: json.loads(found[4])[name] for name in ("kind", "log", "prev", "seq")}).encode() + b"\n"
        ),
    )
    assert problem(tmp_path) == f"{LOG}, line 5: unhashed: the record has no hash"


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("short", "forged: the opening record names no key in a way that this version knows"),
        (7, "forged: the opening record names no key in a way that this version knows"),
        (
            "0123456789abcdef",
            "wrong key: this segment was written with the key 0123456789abcdef, which is needed to check it, and no key is set",
        ),
    ],
)
def test_a_key_that_is_not_known(tmp_path: Path, key: Any, what: str) -> None:
    write_log(tmp_path, NONE)
    edit(tmp_path, lambda found: found.__setitem__(0, rehash(found[0], NONE, record={"which": "api", "segment": 1, "key": key})))
    assert problem(tmp_path) == f"{LOG}, line 1: {what}"


def test_a_key_among_others(tmp_path: Path) -> None:
    write_log(tmp_path, KEY)
    other = Keys.load("another one", None)
    what = f"wrong key: this segment was written with the key {KEY.current}, which is not among the 1 known here"
    assert problem(tmp_path, other) == f"{LOG}, line 1: {what}"


# --- the head


def test_a_head_that_is_sealed_otherwise_than_its_record(tmp_path: Path) -> None:
    what = f"{HEAD}: forged: the head is not sealed with the key of the record it vouches for"
    write_log(tmp_path, KEY)
    head(tmp_path)
    assert problem(tmp_path, KEY) == what
    head(tmp_path, seq=0, size=0, last=ZEROS)  # the log is ahead of it, and its first record is sealed
    assert problem(tmp_path, KEY) == what


def test_a_head_before_its_log_under_a_key_that_is_gone(tmp_path: Path) -> None:
    head(tmp_path, keys=KEY, log="0" * 16)
    assert verify(tmp_path, "api", KEY).verdict == "NOTHING RECORDED"
    assert problem(tmp_path) == f"{HEAD}: forged: the head is not sealed with the key of the record it vouches for"


def test_a_head_with_one_byte_more(tmp_path: Path) -> None:
    write_log(tmp_path, NONE)
    head(tmp_path)
    (tmp_path / HEAD).write_bytes((tmp_path / HEAD).read_bytes() + b"x")
    assert problem(tmp_path).startswith(f"{HEAD}: lost file: the head file does not hold a head")


def test_several_may_verify_at_once_and_none_while_a_record_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "WAIT", 0.05)
    write_log(tmp_path, NONE)
    with open(tmp_path / HEAD, "rb") as file:
        lock.acquire(file.fileno(), HEAD, shared=True)
        assert verify(tmp_path, "api", NONE).verdict == "INTACT"
    with open(tmp_path / HEAD, "rb+") as file:
        lock.acquire(file.fileno(), HEAD)
        with pytest.raises(AuditError, match=f"held the audit log's lock {re.escape(str(tmp_path / HEAD))} for 0.05 seconds"):
            verify(tmp_path, "api", NONE)


# --- what a report holds beside the verdict


def test_the_newest_record_is_named_with_its_time_whatever_the_verdict(tmp_path: Path) -> None:
    write_log(tmp_path, NONE)
    last = json.loads(lines(tmp_path)[-1])
    for verdict in ("INTACT", "BROKEN"):
        report = verify(tmp_path, "api", NONE)
        assert (report.verdict, report.newest) == (verdict, Newest(11, last["hash"], last["time"]))
        assert (report.first_problem is None) == (verdict == "INTACT")
        edit(tmp_path, lambda found: found.append(b'{"a":1}\n'))
    assert verify(tmp_path / "none", "api", NONE).newest is None
    (tmp_path / LOG).unlink()
    report = verify(tmp_path, "api", NONE)
    assert (report.verdict, report.records, report.newest) == ("BROKEN", 0, None)


def test_a_first_record_that_was_torn_is_told_where_nothing_is_recorded(tmp_path: Path) -> None:
    head(tmp_path, log="0" * 16)
    (tmp_path / LOG).write_bytes(b'{"hash"')
    report = verify(tmp_path, "api", NONE)
    assert (report.verdict, report.records) == ("NOTHING RECORDED", 0)
    assert report.remarks == (f"{LOG} ends with 7 bytes of a torn line; the next record will tell of them",)


def test_what_nobody_can_prove_depends_on_the_key(tmp_path: Path) -> None:
    write_log(tmp_path / "a", NONE)
    write_log(tmp_path / "b", KEY)
    copies, without = verify(tmp_path / "a", "api", NONE).cannot_prove
    assert (copies, "that nobody who has the key rewrote them") == verify(tmp_path / "b", "api", KEY).cannot_prove
    assert without.startswith("that nobody rewrote log and head as a whole: no key seals them")


@pytest.mark.skipif(os.name == "nt", reason="makes a directory where a file is due")
def test_files_that_cannot_be_read_are_no_verdict(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    with pytest.raises(AuditError) as unread:
        verify(tmp_path, "api", NONE)
    error = unread.value
    assert error.what == f"The audit log {tmp_path / LOG} cannot be read."
    assert (error.said, error.hint) == ("not a regular file", "verify as the user that runs the server")


# --- torn lines


@pytest.mark.parametrize("count", [LISTED, LISTED + 1])
def test_torn_lines_beyond_those_listed_are_counted(tmp_path: Path, count: int) -> None:
    for _ in range(count):
        write_log(tmp_path, NONE, pairs=1)
        edit(tmp_path, lambda found: found.append(b"torn"))
    write_log(tmp_path, NONE, pairs=1)
    found = remarks(tmp_path)
    assert len(found) == count
    assert ("1 more torn lines are kept" in found) == (count > LISTED)


def test_a_torn_line_of_several_is_kept_byte_for_byte(tmp_path: Path) -> None:
    torn = b"one\n\ntwo"
    write_log(tmp_path, NONE, pairs=1)
    edit(tmp_path, lambda found: found.append(torn))
    assert remarks(tmp_path) == (f"{LOG} ends with 8 bytes of a torn line; the next record will tell of them",)
    write_log(tmp_path, NONE, pairs=1)
    assert json.loads(lines(tmp_path)[6])["torn"] == {"bytes": 8, "sha256": hashlib.sha256(torn).hexdigest()}
    assert remarks(tmp_path) == (f"{LOG}, line 7: before it, 8 bytes of a torn line",)


# --- what is missing, and what comes later


def test_a_record_that_comes_nowhere_is_missing_though_a_file_is_lost_too(tmp_path: Path) -> None:
    write_log(tmp_path, NONE, max_bytes=1500, pairs=12)
    (tmp_path / "_api_audit.2.log").unlink()
    edit(tmp_path, lambda found: found.pop(2))
    assert problem(tmp_path) == f"{LOG}, line 3: missing: record 3 is due here and record 4 follows"


def test_records_before_the_first_key_are_counted(tmp_path: Path) -> None:
    write_log(tmp_path, NONE, pairs=1)
    edit(tmp_path, lambda found: found.__delitem__(slice(1, None)))  # a crash right behind the opening record
    head(tmp_path)
    write_log(tmp_path, KEY, pairs=1)
    assert remarks(tmp_path, KEY) == ("records 1 to 1 were written without a key: if there always was one, they are forged",)


# --- intents and outcomes


def test_an_intent_beyond_those_listed_is_named_when_its_turn_comes(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api")
    first, *_ = [log.intent({"tool": "proxmox_start_vm"}) for _ in range(LISTED + 1)]
    log.outcome(first, {"state": "ok"})
    found = remarks(tmp_path)
    assert len(found) == LISTED
    why = "has no outcome: the process ended, the call is still running, or recording it failed"
    assert found[0].startswith("intent 3 (proxmox_start_vm, 20")
    assert found[-1] == f"intent {LISTED + 2} {why}"


def test_an_intent_of_odd_content_is_named(tmp_path: Path) -> None:
    write_log(tmp_path, NONE, pairs=1)
    extend(tmp_path, kind="intent", record="x", time="2026")
    (found,) = remarks(tmp_path)
    assert found.startswith("intent 4 (?, 2026) has no outcome: ")


def test_outcomes_of_no_intent_are_counted(tmp_path: Path) -> None:
    write_log(tmp_path, NONE, pairs=1)
    for of in (2, 77, "elsewhere-3"):  # twice the same, unknown, of another log
        extend(tmp_path, kind="outcome", of=of)
    assert remarks(tmp_path) == ("3 outcomes belong to no open intent of this log",)


# --- an append without a head


@pytest.mark.parametrize(
    "changed", [{"kind": "note"}, {"log": "x"}, {"log": 1}, {"prev": "0"}, {"prev": None}, {"seq": "1"}, {"seq": None}]
)
def test_nothing_is_appended_behind_what_is_no_opening_record(tmp_path: Path, changed: dict[str, Any]) -> None:
    write_log(tmp_path, NONE, pairs=1)
    (tmp_path / HEAD).unlink()
    edit(tmp_path, lambda found: found.__setitem__(0, rehash(found[0], NONE, **changed)))
    with pytest.raises(AuditError, match="not a log of this version and has no head"):
        AuditLog(tmp_path, "api").intent({"tool": "x"})
