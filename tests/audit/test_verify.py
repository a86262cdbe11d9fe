"""The matrix: what is done to a log, and the exact verdict that must follow, without a key and with one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from proxmox_mcp.audit import AuditLog, Keys, Report, verify
from proxmox_mcp.audit.head import pack
from proxmox_mcp.audit.record import encode
from tests.audit.forger import HEAD, KEY, LOG, edit, lines, rehash, rewrite, without_hash, write_log

NO_KEY = Keys.none()
BOTH = pytest.mark.parametrize("keys", [NO_KEY, KEY], ids=["unkeyed", "keyed"])
LAST = 11  # lines of write_log


def broken(report: Report, what: str, line: int, file: str = LOG) -> None:
    assert report.verdict == "BROKEN"
    assert report.first_problem is not None
    assert (report.first_problem.file, report.first_problem.line) == (file, line), report.first_problem
    assert report.first_problem.what.startswith(what), report.first_problem.what


@BOTH
def test_an_untouched_log_is_intact(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records, report.first_problem, report.remarks) == ("INTACT", LAST, None, ())
    assert report.newest is not None
    assert report.newest.hash == json.loads(lines(tmp_path)[-1])["hash"]


def replace(old: bytes, new: bytes, index: int) -> Callable[[list[bytes]], object]:
    def change(found: list[bytes]) -> None:
        assert old in found[index]
        found[index] = found[index].replace(old, new)

    return change


def swap(found: list[bytes]) -> None:
    found[4], found[5] = found[5], found[4]


def strip_one(found: list[bytes]) -> None:
    found[4] = without_hash(found[4])


def strip_all(found: list[bytes]) -> None:
    found[:] = map(without_hash, found)


def flip_last_character(found: list[bytes]) -> None:
    found[-1] = found[-1].replace(b'"ok"', b'"no"')


ON_LINES = {
    "edit a line": (replace(b"guest 101", b"guest 999", 3), "changed", 4),
    "edit the first line": (replace(b'"which":"api"', b'"which":"ap1"', 0), "forged", 1),
    "edit the last line": (flip_last_character, "changed", LAST),
    "edit the time": (replace(b"+00:00", b"+01:00", 4), "changed", 5),
    "edit a hash": (replace(b'{"hash":"', b'{"hash":"0', 4), "changed", 5),
    "edit white space": (replace(b'"record":{', b'"record": {', 4), "changed", 5),
    "change the line ends": (lambda found: found.__setitem__(slice(None), [line.replace(b"\n", b"\r\n") for line in found]), "changed", 1),
    "delete a line": (lambda found: found.pop(4), "missing: record 5 is due", 5),
    "delete the first line": (lambda found: found.pop(0), "missing", 1),
    "delete three lines": (lambda found: found.__delitem__(slice(4, 7)), "missing: record 5 is due here and record 8 follows", 5),
    "insert a line of text": (lambda found: found.insert(4, b"hello\n"), "changed", 5),
    "insert an empty line": (lambda found: found.insert(4, b"\n"), "changed", 5),
    "insert an empty object": (lambda found: found.insert(4, b"{}\n"), "changed", 5),
    "swap two lines": (swap, "reordered: record 5", 5),
    "reverse the log": (lambda found: found.reverse(), "reordered: record 1 ", 1),
    "duplicate a line": (lambda found: found.insert(4, found[3]), "duplicated", 5),
    "repeat an old line at the end": (lambda found: found.append(found[3]), "duplicated", LAST + 1),
    "strip a hash": (strip_one, "unhashed", 5),
    "strip all hashes": (strip_all, "unhashed", 1),
    "cut one line": (lambda found: found.pop(), "cut tail: the log ends here, and record 11 is missing", LAST),
    "cut four lines": (lambda found: found.__delitem__(slice(-4, None)), "cut tail: the log ends here, and records 8 to 11 are", 8),
    "cut all but the first": (lambda found: found.__delitem__(slice(1, None)), "cut tail", 2),
    "cut inside the last line": (
        lambda found: found.__setitem__(-1, found[-1][:40]),
        "changed: this is not a record, and record 11 is missing",
        LAST,
    ),
    "cut the last newline": (lambda found: found.__setitem__(-1, found[-1].rstrip()), "cut tail: the file ends before byte", LAST),
    "empty the log": (lambda found: found.clear(), "cut tail: the log ends here, and records 1 to 11 are missing", 1),
}


@BOTH
@pytest.mark.parametrize(("change", "what", "line"), ON_LINES.values(), ids=ON_LINES.keys())
def test_what_an_editor_does_is_found(tmp_path: Path, keys: Keys, change: Callable[[list[bytes]], object], what: str, line: int) -> None:
    write_log(tmp_path, keys)
    edit(tmp_path, change)
    broken(verify(tmp_path, "api", keys), what, line)


@BOTH
@pytest.mark.parametrize("name", [LOG, HEAD])
def test_no_byte_can_be_changed_dropped_or_added(tmp_path: Path, keys: Keys, name: str) -> None:
    write_log(tmp_path, keys, pairs=1)
    path = tmp_path / name
    content = path.read_bytes()
    for place in range(len(content.rstrip())):
        other = (bytes([content[place] ^ 1]), b"", content[place : place + 1] * 2)[place % 3]
        path.write_bytes(content[:place] + other + content[place + 1 :])
        assert verify(tmp_path, "api", keys).verdict == "BROKEN", (place, other)


@BOTH
def test_what_an_editor_did_stays_found_when_the_log_goes_on(tmp_path: Path, keys: Keys) -> None:
    for number, (change, _, line) in enumerate(ON_LINES.values()):
        directory = tmp_path / str(number)
        write_log(directory, keys)
        edit(directory, change)
        write_log(directory, keys, pairs=2)
        report = verify(directory, "api", keys)
        assert report.verdict == "BROKEN", list(ON_LINES)[number]
        assert report.first_problem is not None
        assert abs(report.first_problem.line - line) <= 1, list(ON_LINES)[number]


@BOTH
def test_delete_log(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    (tmp_path / LOG).unlink()
    broken(verify(tmp_path, "api", keys), "lost file", 0)


@BOTH
def test_delete_head(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    (tmp_path / HEAD).unlink()
    broken(verify(tmp_path, "api", keys), "lost file: the head file is missing", 0, HEAD)


@BOTH
@pytest.mark.parametrize("content", [b"", b"x" * 512, b"{}", b'{"kind":"head"}\n'], ids=["empty", "junk", "object", "no fields"])
def test_spoil_head(tmp_path: Path, keys: Keys, content: bytes) -> None:
    write_log(tmp_path, keys)
    (tmp_path / HEAD).write_bytes(content)
    broken(verify(tmp_path, "api", keys), "lost file: the head file", 0, HEAD)


@pytest.mark.parametrize(
    "fields",
    [
        {"size": -1},
        {"seq": "11"},
        {"seq": True},
        {"segment": 1.0},
        {"last": "0"},
        {"log": None},
        {"key": "\x1b[31m"},
        {"key": 7},
        {"log": "x" * 17},
    ],
)
def test_a_head_of_odd_values_with_a_fitting_hash(tmp_path: Path, fields: dict[str, object]) -> None:
    write_log(tmp_path, NO_KEY)
    (head,) = lines(tmp_path, HEAD)
    (tmp_path / HEAD).write_bytes(rehash(head, NO_KEY, **fields).strip().ljust(511) + b"\n")
    broken(verify(tmp_path, "api", NO_KEY), "lost file: the head file does not hold a head of this version", 0, HEAD)
    write_log(tmp_path, NO_KEY, pairs=1)
    assert verify(tmp_path, "api", NO_KEY).verdict == "BROKEN"


@BOTH
def test_edit_head(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    head = tmp_path / HEAD
    head.write_bytes(head.read_bytes().replace(b'"seq":11', b'"seq":10'))
    report = verify(tmp_path, "api", keys)
    assert report.verdict == "BROKEN"
    assert "the head was" in str(report.first_problem)


@BOTH
def test_delete_head_and_go_on(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    (tmp_path / HEAD).unlink()
    write_log(tmp_path, keys, pairs=1)
    broken(verify(tmp_path, "api", keys), "damaged before this record was appended: the log had lost its head", LAST + 1)


@BOTH
def test_delete_both(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    (tmp_path / LOG).unlink()
    (tmp_path / HEAD).unlink()
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("NOTHING RECORDED", 0)
    assert report.cannot_prove == ("that nothing was ever recorded: a log deleted together with its head looks the same",)


@BOTH
def test_an_empty_log_without_a_head_is_not_a_new_install(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    (tmp_path / LOG).write_bytes(b"")
    (tmp_path / HEAD).unlink()
    broken(verify(tmp_path, "api", keys), "lost file: the head file is missing", 0, HEAD)


@BOTH
def test_strip_all_and_delete_head(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    edit(tmp_path, strip_all)
    (tmp_path / HEAD).unlink()
    broken(verify(tmp_path, "api", keys), "unhashed", 1)


def keep_copy(directory: Path) -> Path:
    return Path(shutil.copytree(directory, directory.with_name("copy")))


@BOTH
def test_restore_an_old_log(tmp_path: Path, keys: Keys) -> None:
    here = tmp_path / "audit"
    write_log(here, keys)
    old = keep_copy(here)
    write_log(here, keys, pairs=2)
    shutil.copy(old / LOG, here / LOG)
    broken(verify(here, "api", keys), "cut tail: the log ends here, and records 12 to 15 are missing", LAST + 1)
    write_log(here, keys, pairs=1)
    broken(verify(here, "api", keys), "missing: record 12 is due here and record 16 follows", LAST + 1)


@BOTH
def test_restore_an_old_head(tmp_path: Path, keys: Keys) -> None:
    """Nothing is lost, and it looks like a crash: a remark."""
    here = tmp_path / "audit"
    write_log(here, keys)
    old = keep_copy(here)
    write_log(here, keys, pairs=2)
    shutil.copy(old / HEAD, here / HEAD)
    report = verify(here, "api", keys)
    assert (report.verdict, report.records) == ("INTACT WITH REMARKS", LAST + 4)
    assert report.remarks == (
        "the log is 4 records ahead of its head: the process ended before it wrote the head, or an older head was put back",
    )


@BOTH
def test_restore_old_copies_of_both_is_not_seen_here(tmp_path: Path, keys: Keys) -> None:
    here = tmp_path / "audit"
    write_log(here, keys)
    old = keep_copy(here)
    write_log(here, keys, pairs=2)
    noted = verify(here, "api", keys).newest
    assert noted is not None
    shutil.copytree(old, here, dirs_exist_ok=True)
    report = verify(here, "api", keys)
    assert (report.verdict, report.records) == ("INTACT", LAST)
    assert report.cannot_prove[0].startswith("that log and head were not both put back to older copies")
    broken(verify(here, "api", keys, expect=(noted.seq, noted.hash)), "cut tail: record 15, noted elsewhere, is missing", LAST + 1)


@BOTH
def test_restore_old_copies_of_both_under_a_running_process(tmp_path: Path, keys: Keys) -> None:
    here = tmp_path / "audit"
    log = AuditLog(here, "api", keys=keys)
    log.note({"n": 1})
    old = keep_copy(here)
    log.note({"n": 2})
    shutil.copytree(old, here, dirs_exist_ok=True)
    log.note({"n": 3})
    broken(verify(here, "api", keys), "missing: record 3 is due here and record 4 follows", 3)


@BOTH
def test_delete_both_under_a_running_process(tmp_path: Path, keys: Keys) -> None:
    log = AuditLog(tmp_path, "api", keys=keys)
    log.note({"n": 1})
    (tmp_path / LOG).unlink()
    (tmp_path / HEAD).unlink()
    log.note({"n": 2})
    broken(verify(tmp_path, "api", keys), "missing: record 1 is due here and record 3 follows", 1)


@BOTH
def test_processes_that_remember_different_logs_agree_in_the_end(tmp_path: Path, keys: Keys) -> None:
    """One process's log was deleted and another began anew: the first says so, once, and then both go on with what is there."""
    old = AuditLog(tmp_path, "api", keys=keys)
    for number in range(5):
        old.note({"n": number})
    (tmp_path / LOG).unlink()
    (tmp_path / HEAD).unlink()
    new = AuditLog(tmp_path, "api", keys=keys)
    for log in (new, old, new, old, new):
        log.note({})
    records = [json.loads(line) for line in lines(tmp_path)]
    assert [record["seq"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert len([record for record in records if "loss" in record]) == 1
    broken(verify(tmp_path, "api", keys), "damaged before this record was appended: record 6 of log ", 3)


def test_rewrite_everything_without_a_key_is_not_seen_and_verify_says_so(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    rewrite(tmp_path, NO_KEY, key_id=None, drop=2)
    report = verify(tmp_path, "api", NO_KEY)
    assert (report.verdict, report.records) == ("INTACT", LAST - 2)
    assert any(limit.startswith("that nobody rewrote log and head as a whole: no key seals them") for limit in report.cannot_prove)


@pytest.mark.parametrize(
    ("forger", "key_id", "what"),
    [
        (NO_KEY, None, "not sealed: a key is set, but the log is written without"),
        (NO_KEY, KEY.current, "changed"),
        (Keys.load("my own", None), KEY.current, "changed"),
        (Keys.load("my own", None), Keys.load("my own", None).current, "wrong key"),
    ],
    ids=["as if there were no key", "plain hashes", "another key's hashes", "another key"],
)
def test_rewrite_everything_in_a_keyed_log_is_found(tmp_path: Path, forger: Keys, key_id: str | None, what: str) -> None:
    write_log(tmp_path, KEY)
    rewrite(tmp_path, forger, key_id=key_id)
    broken(verify(tmp_path, "api", KEY), what, 1)


def test_a_record_appended_without_the_key_is_called_forged(tmp_path: Path) -> None:
    write_log(tmp_path, KEY)
    edit(tmp_path, lambda found: found.append(rehash(found[-1], NO_KEY, seq=LAST + 1, prev=json.loads(found[-1])["hash"])))
    broken(verify(tmp_path, "api", KEY), "forged: the record is hashed without the key", LAST + 1)


def test_cut_and_head_forged_without_the_key(tmp_path: Path) -> None:
    write_log(tmp_path, KEY)
    cut = json.loads(lines(tmp_path)[6])
    edit(tmp_path, lambda found: found.__delitem__(slice(7, None)))
    for key_id in (None, KEY.current, "0" * 16):
        forge_head(tmp_path, cut["log"], 7, cut["hash"], key_id)
        report = verify(tmp_path, "api", KEY)
        assert report.verdict == "BROKEN"
        assert report.first_problem is not None
        assert report.first_problem.file == HEAD
        assert "forged" in report.first_problem.what


def forge_head(directory: Path, log: str, seq: int, last: str, key_id: str | None) -> None:
    size = (directory / LOG).stat().st_size
    (directory / HEAD).write_bytes(pack(log, 1, size, seq, last, key_id, NO_KEY.sealing))


@pytest.mark.parametrize("key_id", [None, KEY.current, "0" * 16], ids=["no key", "the key's name", "another key's name"])
def test_the_next_record_does_not_launder_a_forged_head(tmp_path: Path, key_id: str | None) -> None:
    write_log(tmp_path, KEY)
    cut = json.loads(lines(tmp_path)[6])
    edit(tmp_path, lambda found: found.__delitem__(slice(7, None)))
    forge_head(tmp_path, cut["log"], 7, cut["hash"], key_id)
    write_log(tmp_path, KEY, pairs=1)
    report = verify(tmp_path, "api", KEY)
    assert report.verdict == "BROKEN"
    assert "forged" in str(report.first_problem)


def test_cut_and_head_rewritten_without_a_key_is_not_seen(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    cut = json.loads(lines(tmp_path)[6])
    edit(tmp_path, lambda found: found.__delitem__(slice(7, None)))
    forge_head(tmp_path, cut["log"], 7, cut["hash"], None)
    report = verify(tmp_path, "api", NO_KEY)
    assert (report.verdict, report.records) == ("INTACT", 7)
    assert any("rewrote log and head as a whole" in limit for limit in report.cannot_prove)


def test_one_record_rewritten_with_a_fitting_hash(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    edit(tmp_path, lambda found: found.__setitem__(4, rehash(found[4], NO_KEY, record={"status": "nothing happened"})))
    broken(verify(tmp_path, "api", NO_KEY), "forged: the record does not follow the one before it", 6)


def test_the_last_record_rewritten_with_a_fitting_hash(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    edit(tmp_path, lambda found: found.__setitem__(-1, rehash(found[-1], NO_KEY, record={"status": "nothing happened"})))
    broken(verify(tmp_path, "api", NO_KEY), "rewritten: this is not the record 11 that the head vouches for", LAST)


def test_wrong_key(tmp_path: Path) -> None:
    write_log(tmp_path, KEY)
    broken(verify(tmp_path, "api", Keys.load("another", None)), "wrong key: this segment was written with the key ", 1)
    broken(verify(tmp_path, "api", NO_KEY), "wrong key", 1)


def test_key_switched_on_later(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    broken(verify(tmp_path, "api", KEY), "not sealed", 1)
    write_log(tmp_path, KEY, pairs=1)
    report = verify(tmp_path, "api", KEY)
    assert (report.verdict, report.records) == ("INTACT WITH REMARKS", LAST + 3)
    assert report.remarks == ("records 1 to 11 were written without a key: if there always was one, they are forged",)
    edit(tmp_path, replace(b"guest 101", b"guest 999", 3))
    broken(verify(tmp_path, "api", KEY), "changed", 4)


def test_files_of_another_log_under_this_name(tmp_path: Path) -> None:
    write_log(tmp_path, KEY)
    (tmp_path / LOG).rename(tmp_path / "_vm_ssh_audit.log")
    (tmp_path / HEAD).rename(tmp_path / "_vm_ssh_audit.head")
    broken(verify(tmp_path, "vm", KEY), "forged: the opening record is not the one of this file", 1, "_vm_ssh_audit.log")


@BOTH
def test_head_of_another_log(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path / "a", keys)
    write_log(tmp_path / "b", keys)
    shutil.copy(tmp_path / "a" / HEAD, tmp_path / "b" / HEAD)
    broken(verify(tmp_path / "b", "api", keys), "forged: the head belongs to another log", 0, HEAD)


@BOTH
def test_a_record_of_another_log(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path / "a", keys)
    write_log(tmp_path / "b", keys)
    foreign = lines(tmp_path / "a")[4]
    edit(tmp_path / "b", lambda found: found.__setitem__(4, foreign))
    broken(verify(tmp_path / "b", "api", keys), "forged: the record belongs to another log", 5)


@BOTH
def test_segments_deleted(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path / "all", keys, max_bytes=1000)
    names = sorted((path.name for path in (tmp_path / "all").glob("*.log")), key=lambda name: (len(name), name))
    assert len(names) >= 4
    assert verify(tmp_path / "all", "api", keys).verdict == "INTACT"
    for name in names:
        here = tmp_path / name
        shutil.copytree(tmp_path / "all", here)
        (here / name).unlink()
        broken(verify(here, "api", keys), "lost file", 0, name)


@BOTH
def test_segments_exchanged(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys, max_bytes=1500)
    second, third = tmp_path / "_api_audit.2.log", tmp_path / "_api_audit.3.log"
    kept = second.read_bytes()
    second.write_bytes(third.read_bytes())
    third.write_bytes(kept)
    broken(verify(tmp_path, "api", keys), "forged: the opening record is not the one of this file", 1, second.name)


@BOTH
def test_intents_without_outcome_and_outcomes_without_intent(tmp_path: Path, keys: Keys) -> None:
    log = AuditLog(tmp_path, "api", keys=keys)
    for number in range(30):
        log.intent({"tool": f"tool\x1b[31m{number}"})
    log.outcome("0123456789abcdef-7", {"status": "ok"})
    report = verify(tmp_path, "api", keys)
    assert report.verdict == "INTACT WITH REMARKS"
    assert report.remarks[0].startswith("intent 2 (tool\\u001b[31m0, ")
    assert report.remarks[-2:] == ("10 more intents have no outcome", "1 outcomes belong to no open intent of this log")
    assert "\x1b" not in report.text()


@BOTH
def test_an_old_log_of_the_predecessor(tmp_path: Path, keys: Keys) -> None:
    old = [{"timestamp": "2025-01-01T00:00:00Z", "command": "qm list", "prev_hash": "0" * 64, "hash": "ab" * 32}] * 3
    (tmp_path / LOG).write_text("".join(json.dumps(entry) + "\n" for entry in old))
    broken(verify(tmp_path, "api", keys), "this is not a log of this version", 1)
    (tmp_path / LOG).write_text("some text\n")
    broken(verify(tmp_path, "api", keys), "this is not a log of this version", 1)


@pytest.mark.parametrize(
    "forged",
    [
        b'{"hash":1}',
        b"[]",
        b"1e999",
        b"NaN",
        b'{"kind":NaN}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"\x00" * 4096,
        b'{"kind":"open","record":{"which":"api","segment":1,"key":7},"log":"","prev":"","seq":1}',
        b'{"kind":"open","record":[],"log":{},"prev":[],"seq":"1"}',
    ],
)
def test_hostile_lines_end_in_a_verdict(tmp_path: Path, forged: bytes) -> None:
    write_log(tmp_path, NO_KEY)
    edit(tmp_path, lambda found: found.insert(0, forged + b"\n"))
    assert verify(tmp_path, "api", NO_KEY).verdict == "BROKEN"


@pytest.mark.parametrize(
    "changed",
    [
        {"of": [1]},
        {"of": {"a": 1}},
        {"kind": ["outcome"]},
        {"kind": "outcome", "of": True},
        {"loss": {"a": 1e308}},
        {"time": 7},
        {"kind": "intent", "record": 5},
        {"torn": {"bytes": "x"}},
        {"kind": "open"},
        {"seq": 6.0},
    ],
)
def test_hostile_records_with_fitting_hashes_end_in_a_verdict(tmp_path: Path, changed: dict[str, object]) -> None:
    write_log(tmp_path, NO_KEY)
    edit(tmp_path, lambda found: found.__setitem__(5, rehash(found[5], NO_KEY, **changed)))
    report = verify(tmp_path, "api", NO_KEY)
    assert report.verdict == "BROKEN"
    assert encode(report.as_dict())
    assert report.text()
