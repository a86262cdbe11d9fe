"""What verify and the walk say, word for word, about chains that were told anew with every hash and the head in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.audit import AuditLog, Keys, verify
from proxmox_mcp.audit.files import head_path
from proxmox_mcp.audit.head import pack
from proxmox_mcp.audit.record import ZEROS, encode, seal
from proxmox_mcp.audit.walk import Flaw, Walk
from proxmox_mcp.errors import AuditError
from tests.audit.forger import HEAD, KEY, LOG, lines, write_log

NO_KEY = Keys.none()
Fields = dict[str, Any]


def retell(directory: Path, change: Callable[[list[Fields]], object]) -> None:
    """Changes the records, then writes log and head anew so that each follows the one before: all that somebody without a key can do."""
    found: list[Fields] = [json.loads(line) for line in lines(directory)]
    change(found)
    last, written = ZEROS, []
    for fields in found:
        kept = {**fields, "prev": last}
        del kept["hash"]
        last, line = seal(encode(kept)[1:], NO_KEY.sealing)
        written.append(line + b"\n")
    data = b"".join(written)
    (directory / LOG).write_bytes(data)
    first = found[0]
    (directory / HEAD).write_bytes(pack(first["log"], 1, len(data), len(found), last, None, NO_KEY.sealing))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda found: found[4].update(log="0" * 16), "line 5: forged: the record belongs to another log"),
        (lambda found: found[4].update(seq=7), "line 5: missing: record 5 is due here and record 7 follows"),
        (lambda found: found[4].update(seq=3), "line 5: duplicated or reordered: record 3 stands where record 5 is due"),
        (lambda found: found[4].update(seq="5"), "line 5: forged: the record belongs to another log"),
        (
            lambda found: found[4].update(kind="open", record=found[0]["record"]),
            "line 5: forged: an opening record stands inside a segment",
        ),
        (
            lambda found: found[0]["record"].update(key=7),
            "line 1: forged: the opening record names no key in a way that this version knows",
        ),
        (
            lambda found: found[0]["record"].update(key="ab" * 8),
            "line 1: wrong key: this segment was written with the key abababababababab, which is needed to check it, and no key is set",
        ),
        (lambda found: found[0]["record"].update(segment=2), "line 1: forged: the opening record is not the one of this file"),
        (
            lambda found: found[4].update(torn={"bytes": 3, "sha256": "0" * 64}),
            "line 5: missing: the torn line that this record tells of is not before it",
        ),
        (lambda found: found[4].update(loss="gone"), "line 5: damaged before this record was appended: gone"),
    ],
)
def test_a_chain_that_was_told_anew(tmp_path: Path, change: Callable[[list[Fields]], object], problem: str) -> None:
    write_log(tmp_path, NO_KEY)
    retell(tmp_path, change)
    report = verify(tmp_path, "api", NO_KEY)
    assert (report.verdict, str(report.first_problem)) == ("BROKEN", f"{LOG}, {problem}")


def test_a_chain_without_a_flaw_says_what_nobody_can_prove(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    retell(tmp_path, lambda found: None)
    report = verify(tmp_path, "api", NO_KEY)
    assert report.verdict == "INTACT"
    assert [limit.partition(":")[0] for limit in report.cannot_prove] == [
        "that log and head were not both put back to older copies, which drops the newest records without a trace",
        "that nobody rewrote log and head as a whole",
    ]
    write_log(tmp_path / "keyed", KEY)
    assert verify(tmp_path / "keyed", "api", KEY).cannot_prove[1] == "that nobody who has the key rewrote them"
    nothing = verify(tmp_path, "vm", NO_KEY)
    assert (nothing.verdict, nothing.newest, nothing.remarks) == ("NOTHING RECORDED", None, ())
    assert nothing.cannot_prove == ("that nothing was ever recorded: a log deleted together with its head looks the same",)


def test_the_newest_record_is_named_before_and_beside_a_problem(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    kept = [json.loads(line) for line in lines(tmp_path)]
    report = verify(tmp_path, "api", NO_KEY)
    assert report.newest is not None
    assert (report.newest.seq, report.newest.hash, report.newest.time) == (11, kept[-1]["hash"], kept[-1]["time"])
    retell(tmp_path, lambda found: found[8].update(seq=20))
    report = verify(tmp_path, "api", NO_KEY)
    assert report.newest is not None
    assert (report.records, report.newest.seq, report.newest.time) == (8, 8, kept[7]["time"])


def test_a_second_outcome_belongs_to_nothing(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api")
    intent = log.intent({"tool": "t"})
    for _ in range(3):
        log.outcome(intent, {"state": "ok"})
    log.close()
    assert verify(tmp_path, "api", NO_KEY).remarks == ("2 outcomes belong to no open intent of this log",)


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = head_path(tmp_path, "host")
    path.mkdir()
    with pytest.raises(AuditError) as caught:
        verify(tmp_path, "host", NO_KEY)
    assert caught.value.what in (f"The audit log {path} cannot be read.", f"The audit log {tmp_path}/_host_ssh_audit.log cannot be read.")
    assert caught.value.said == "Is a directory"
    assert caught.value.hint == "verify as the user that runs the server"


@pytest.mark.parametrize("wrong", [{"kind": "note"}, {"seq": "1"}, {"seq": True}, {"log": "x"}, {"log": None}, {"prev": "0" * 63}, None])
def test_a_walk_begins_at_an_opening_record_alone(wrong: Fields | None, tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY, pairs=1)
    first = json.loads(lines(tmp_path)[0])
    walk = Walk(NO_KEY, "api")
    walk.enter(1, LOG)
    with pytest.raises(Flaw) as caught:
        walk.begin_at(b"no record" if wrong is None else encode({**first, **wrong}).encode())
    flaw = caught.value
    assert (flaw.file, flaw.line, flaw.what, flaw.due) == (LOG, 1, "this is not a log of this version", None)
    assert str(flaw) == flaw.what
    walk.begin_at(encode({**first, "seq": 9}).encode())
    assert (walk.log, walk.seq, walk.last) == (first["log"], 8, ZEROS)


def test_what_a_walk_holds_back_is_hashed_with_its_line_breaks() -> None:
    import hashlib

    walk = Walk(NO_KEY, "api")
    walk.enter(1, LOG)
    assert walk.torn is None
    for line in (b"half", b"", b"of a line"):
        assert walk.feed(line) is None
    assert walk.torn == {"bytes": 15, "sha256": hashlib.sha256(b"half\n\nof a line").hexdigest()}
