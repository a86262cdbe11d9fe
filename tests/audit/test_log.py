"""Appending: what is written where, rotation, torn lines, files that vanish, locks, threads."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proxmox_mcp.audit import AuditLog, Keys, lock, tail, verify
from proxmox_mcp.audit import log as log_module
from proxmox_mcp.audit.disk import complete, unwritable
from proxmox_mcp.audit.files import head_path, segments
from proxmox_mcp.audit.head import pack
from proxmox_mcp.audit.record import ZEROS
from proxmox_mcp.errors import AuditError
from tests.audit.forger import HEAD, KEY, LOG, edit, lines, write_log
from tests.audit.processes import run

BOTH = pytest.mark.parametrize("keys", [Keys.none(), KEY], ids=["unkeyed", "keyed"])
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes, forks and open files that can be removed are POSIX")


def test_nothing_is_opened_before_the_first_append(tmp_path: Path) -> None:
    AuditLog(tmp_path / "state" / "audit", "api").close()
    assert list(tmp_path.iterdir()) == []


@posix
def test_directory_and_files_belong_to_their_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "state" / "audit"
    write_log(directory, Keys.none(), max_bytes=500)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert len(list(directory.iterdir())) > 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


@pytest.mark.parametrize(("which", "stem"), [("host", "_host_ssh_audit"), ("vm", "_vm_ssh_audit"), ("api", "_api_audit")])
def test_names(tmp_path: Path, which: str, stem: str) -> None:
    AuditLog(tmp_path, which).note({})  # type: ignore[arg-type]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{stem}.head", f"{stem}.log"]


@posix
def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / LOG).symlink_to(victim)
    with pytest.raises(AuditError, match=LOG):
        AuditLog(tmp_path / "audit", "api").note({})
    assert victim.read_bytes() == b""


def test_ids_lead_from_outcome_to_intent(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api")
    first, second = log.intent({"n": 1}), log.intent({"n": 2})
    log.outcome(second, {"n": 2})
    log.outcome(first, {"n": 1})
    records = tail(tmp_path, "api", 4)
    assert [f"{record['log']}-{record['seq']}" for record in records[:2]] == [first, second]
    assert [record["of"] for record in records[2:]] == [records[1]["seq"], records[0]["seq"]]


def test_records_name_their_writer_and_time(tmp_path: Path) -> None:
    AuditLog(tmp_path, "api").note({})
    assert tail(tmp_path, "api", 1)[0]["writer"].endswith(f"/{os.getpid()}")


@BOTH
def test_one_chain_through_all_segments_whoever_writes(tmp_path: Path, keys: Keys) -> None:
    one, other = (AuditLog(tmp_path, "api", keys=keys, max_bytes=2000) for _ in range(2))
    for number in range(30):
        (one, other, other)[number % 3].note({"n": number})
    found = segments(tmp_path, "api")
    assert [segment.number for segment in found] == list(range(1, len(found) + 1))
    assert len(found) >= 4
    assert all(segment.size < 2500 for segment in found)
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT", 30 + len(found))


@BOTH
def test_an_appended_torn_line_is_kept_and_chained_over(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    torn = lines(tmp_path)[-1][:100]
    edit(tmp_path, lambda found: found.append(torn))
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT WITH REMARKS", 11)
    assert report.remarks == ("_api_audit.log ends with 100 bytes of a torn line; the next record will tell of them",)
    write_log(tmp_path, keys, pairs=1)
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT WITH REMARKS", 13)
    assert report.remarks == ("_api_audit.log, line 13: before it, 100 bytes of a torn line",)
    assert lines(tmp_path)[11] == torn + b"\n"
    assert json.loads(lines(tmp_path)[12])["torn"] == {"bytes": 100, "sha256": hashlib.sha256(torn).hexdigest()}


@BOTH
@pytest.mark.parametrize("change", ["remove", "edit", "grow"])
def test_a_kept_torn_line_is_evidence_too(tmp_path: Path, keys: Keys, change: str) -> None:
    write_log(tmp_path, keys)
    edit(tmp_path, lambda found: found.append(b'{"hash":"torn'))
    write_log(tmp_path, keys, pairs=1)
    assert verify(tmp_path, "api", keys).verdict == "INTACT WITH REMARKS"
    after = {"remove": b"", "edit": b'{"hash":"TORN\n', "grow": b'{"hash":"torn\nmore\n'}[change]
    edit(tmp_path, lambda found: found.__setitem__(11, after))
    report = verify(tmp_path, "api", keys)
    assert report.verdict == "BROKEN"
    assert report.first_problem is not None
    assert report.first_problem.line == 12


@BOTH
@pytest.mark.parametrize("rest", [b"\n", b"\n\n", b'{"hash":"one\n{"hash":"two', b'{"hash":"one\n', b"\x00" * 700, b"\xff"])
def test_whatever_a_crash_leaves_is_chained_over(tmp_path: Path, keys: Keys, rest: bytes) -> None:
    write_log(tmp_path, keys, max_bytes=1500)
    edit(tmp_path, lambda found: found.append(rest), segments(tmp_path, "api")[-1].path.name)
    assert verify(tmp_path, "api", keys).verdict == "INTACT WITH REMARKS"
    write_log(tmp_path, keys, pairs=4, max_bytes=1500)
    report = verify(tmp_path, "api", keys)
    assert report.verdict == "INTACT WITH REMARKS"
    kept = len(rest.removesuffix(b"\n"))
    assert [remark.partition(": ")[2] for remark in report.remarks] == [f"before it, {kept} bytes of a torn line"]


@BOTH
def test_a_whole_last_line_without_its_newline_is_a_record(tmp_path: Path, keys: Keys) -> None:
    """A crash cut off nothing but the newline, and before the head was rewritten."""
    write_log(tmp_path, keys, pairs=4)
    head = (tmp_path / HEAD).read_bytes()
    write_log(tmp_path, keys, pairs=1)
    (tmp_path / HEAD).write_bytes(head)
    edit(tmp_path, lambda found: found.__setitem__(-1, found[-1].rstrip()))
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT WITH REMARKS", 11)
    write_log(tmp_path, keys, pairs=1)
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT", 13)


@BOTH
def test_a_log_ahead_of_its_head_goes_on(tmp_path: Path, keys: Keys) -> None:
    """A process ended after the log was flushed and before the head was rewritten."""
    write_log(tmp_path, keys, pairs=2)
    head = (tmp_path / HEAD).read_bytes()
    write_log(tmp_path, keys, pairs=2)
    (tmp_path / HEAD).write_bytes(head)
    assert verify(tmp_path, "api", keys).verdict == "INTACT WITH REMARKS"
    write_log(tmp_path, keys, pairs=2)
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT", 13)


@pytest.mark.parametrize(
    ("head_keys", "keys"), [(Keys.none(), Keys.none()), (KEY, KEY), (Keys.none(), KEY)], ids=["unkeyed", "keyed", "keyed between"]
)
@pytest.mark.parametrize("log", [None, b"", b'{"hash":"torn'], ids=["no log", "empty log", "torn log"])
def test_a_head_before_its_log(tmp_path: Path, keys: Keys, head_keys: Keys, log: bytes | None) -> None:
    """The process ended after it made the head and before the log's first record; then a key may have been set."""
    (tmp_path / HEAD).write_bytes(pack("0123456789abcdef", 1, 0, 0, ZEROS, head_keys.current, head_keys.sealing))
    if log is not None:
        (tmp_path / LOG).write_bytes(log)
    assert verify(tmp_path, "api", keys).verdict == "NOTHING RECORDED"
    write_log(tmp_path, keys)
    report = verify(tmp_path, "api", keys)
    assert (report.verdict, report.records) == ("INTACT WITH REMARKS" if log else "INTACT", 11)


def test_many_torn_lines_are_counted(tmp_path: Path) -> None:
    for _ in range(25):
        write_log(tmp_path, Keys.none(), pairs=1)
        edit(tmp_path, lambda found: found.append(b"torn"))
    write_log(tmp_path, Keys.none(), pairs=1)
    report = verify(tmp_path, "api", Keys.none())
    assert report.verdict == "INTACT WITH REMARKS"
    assert len(report.remarks) == 21
    assert report.remarks[-1] == "5 more torn lines are kept"


@posix
@BOTH
@pytest.mark.parametrize("names", [(LOG,), (HEAD,), (LOG, HEAD)], ids=["log", "head", "both"])
def test_files_deleted_under_a_running_process_are_missed_at_once(
    tmp_path: Path, keys: Keys, names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    log = AuditLog(tmp_path, "api", keys=keys)
    log.note({"n": 1})
    for name in names:
        (tmp_path / name).unlink()
    with caplog.at_level(logging.WARNING):
        log.note({"n": 2})
    assert verify(tmp_path, "api", keys).verdict == "BROKEN"
    if LOG in names:
        assert tail(tmp_path, "api", 1)[0]["record"] == {"n": 2}
        assert "damaged" in caplog.text


@posix
def test_files_moved_away_are_missed(tmp_path: Path) -> None:
    here = tmp_path / "audit"
    log = AuditLog(here, "api")
    log.note({"n": 1})
    here.rename(tmp_path / "archive")
    log.note({"n": 2})
    assert verify(tmp_path / "archive", "api", Keys.none()).records == 2
    assert tail(here, "api", 1)[0]["record"] == {"n": 2}
    report = verify(here, "api", Keys.none())
    assert report.verdict == "BROKEN"
    assert "missing: record 1 is due here and record 3 follows" in str(report.first_problem)


@posix
def test_in_a_burst_the_names_are_looked_up_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "LOOK", 3600.0)
    here = tmp_path / "audit"
    log = AuditLog(here, "api")
    for number in range(3):
        log.note({"n": number})
    here.rename(tmp_path / "archive")
    log.note({"n": 3})
    assert verify(tmp_path / "archive", "api", Keys.none()).records == 5
    monkeypatch.setattr(log, "_look_again", 0.0)
    log.note({"n": 4})
    assert tail(here, "api", 1)[0]["record"] == {"n": 4}


def test_a_foreign_log_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A log of the predecessor, or anything else that bears the name and has no head."""
    for content in (b'{"prev_hash":"0","hash":"1","command":"qm list"}\n', b"text", b"\x00" * 10):
        (tmp_path / LOG).write_bytes(content)
        with pytest.raises(AuditError, match="not a log of this version") as caught:
            AuditLog(tmp_path, "api").intent({"tool": "x"})
        assert "move it elsewhere" in str(caught.value)
        assert (tmp_path / LOG).read_bytes() == content


def test_close_and_append_again(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api")
    log.note({})
    log.close()
    log.close()
    log.note({})
    assert verify(tmp_path, "api", Keys.none()).records == 3


@posix
def test_open_files_do_not_grow_in_number(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api", max_bytes=400)
    log.note({})
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        log.note({})
    assert len(os.listdir("/dev/fd")) == before


def test_threads_append_at_once(tmp_path: Path) -> None:
    log, other = AuditLog(tmp_path, "api", max_bytes=20_000), AuditLog(tmp_path, "api", max_bytes=20_000)

    def call(number: int) -> None:
        used = (log, other)[number % 2]
        used.outcome(used.intent({"n": number}), {"n": number})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(100)))
    report = verify(tmp_path, "api", Keys.none())
    assert report.verdict == "INTACT"
    assert report.records == 200 + len(segments(tmp_path, "api"))


def test_a_lock_that_is_not_given_up_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "WAIT", 0.1)
    log = AuditLog(tmp_path, "api")
    log.note({})
    path = os.fspath(head_path(tmp_path, "api"))
    fd = os.open(path, os.O_RDWR)
    lock.acquire(fd, path)
    with pytest.raises(AuditError, match="has held the audit log's lock"):
        log.intent({"tool": "x"})
    lock.release(fd)
    log.intent({"tool": "x"})
    os.close(fd)


def test_a_call_that_hangs_in_this_process_is_an_error_for_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "WAIT", 0.1)
    log = AuditLog(tmp_path, "api")
    log.note({})
    held, done = threading.Event(), threading.Event()

    def hang() -> None:
        with log._mutex:
            held.set()
            done.wait()

    thread = threading.Thread(target=hang)
    thread.start()
    held.wait()
    with pytest.raises(AuditError, match="Another call"):
        log.note({})
    done.set()
    thread.join()


@posix
def test_a_forked_child_does_not_share_the_lock(tmp_path: Path) -> None:
    """Its records and its parent's make one chain, though both began with the same open files."""
    script = f"""
import os, sys
from pathlib import Path
from proxmox_mcp.audit import AuditLog
log = AuditLog(Path({str(tmp_path)!r}), "api")
log.note({{}})
child = os.fork()
for number in range(50):
    log.note({{"n": number}})
if child == 0:
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run(script)
    report = verify(tmp_path, "api", Keys.none())
    assert (report.verdict, report.records) == ("INTACT", 102)
    assert len({record["writer"] for record in tail(tmp_path, "api", 100)}) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes by name here")
@pytest.mark.parametrize("name", ["_api_audit.log", "_api_audit.head", "_api_audit.2.log"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/null", path)])
def test_what_is_no_file_is_refused_and_holds_nobody(tmp_path: Path, name: str, make: Callable[[str], None]) -> None:
    make(str(tmp_path / name))
    with pytest.raises(AuditError):
        AuditLog(tmp_path, "api").intent({"tool": "x"})
    if name.endswith(".log"):
        with pytest.raises(AuditError):
            verify(tmp_path, "api", Keys.none())


@pytest.mark.skipif(sys.platform != "linux", reason="a place where nobody may make a directory")
def test_a_directory_that_cannot_be_made_is_told_with_the_way_out() -> None:
    with pytest.raises(AuditError) as refused:
        AuditLog(Path("/sys/kernel/audit"), "api").intent({})
    assert refused.value.what.startswith("Nothing was sent: the audit record could not be written to /sys/kernel/audit")
    assert "let the user that runs this server write to /sys/kernel/audit" in refused.value.hint


def test_a_lock_that_the_file_cannot_carry_is_an_error(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        lock.acquire(fd, str(tmp_path))


@pytest.mark.parametrize("written", [0, 2, 6])
def test_what_a_write_left_over_is_written(tmp_path: Path, written: int) -> None:
    with open(tmp_path / "file", "wb") as file:
        complete(file.fileno(), b"record", written)
    assert (tmp_path / "file").read_bytes() == b"record"[written:]


@posix
@pytest.mark.parametrize("size", [0, 300, 511])
def test_a_head_that_does_not_fit_refuses_the_intent(tmp_path: Path, size: int) -> None:
    import resource

    log, limits = AuditLog(tmp_path, "api"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        with pytest.raises(AuditError, match="Nothing was sent: the audit record could not be written") as refused:
            log.intent({"tool": "x"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "free space" in refused.value.hint
    assert verify(tmp_path, "api", Keys.none()).records == 0
    assert log.intent({"tool": "x"}).endswith("-2")
    assert verify(tmp_path, "api", Keys.none()).verdict.startswith("INTACT")


@posix
def test_a_directory_is_asked_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert unwritable(tmp_path) == unwritable(tmp_path / "a" / "b") == ""
    assert unwritable(tmp_path / "file") == unwritable(tmp_path / "file" / "b") == f"{tmp_path / 'file'} is no directory"
    assert unwritable(tmp_path / ("x" * 300)) == "File name too long"
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="a place where nobody may make a file")
def test_a_directory_that_nobody_may_write_into() -> None:
    why = unwritable(Path("/sys/kernel/audit"))
    assert why in ("", "this user may not write into /sys/kernel")  # root is stopped by the file system alone
    assert why or os.geteuid() == 0
