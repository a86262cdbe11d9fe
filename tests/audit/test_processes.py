"""Several processes on one log, processes that are killed, disks that are full or may not be written to."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxmox_mcp.audit import AuditLog, Keys, export, lock, tail, verify
from proxmox_mcp.errors import AuditError
from tests.audit.forger import KEY
from tests.audit.processes import run, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals, limits and mounts")

WRITER = """
import sys
from pathlib import Path
from proxmox_mcp.audit import AuditLog, Keys
directory, key, count, max_bytes = sys.argv[1:5]
log = AuditLog(Path(directory), "api", keys=Keys.load(key or None, None), max_bytes=int(max_bytes))
sys.stdin.readline()
for number in range(int(count)):
    print(log.note({"n": number}), flush=True)
"""


@pytest.mark.parametrize("key", ["", "correct horse battery staple"], ids=["unkeyed", "keyed"])
def test_four_processes_lose_nothing(tmp_path: Path, key: str) -> None:
    writers = [start(WRITER, str(tmp_path), key, "500", "200000") for _ in range(4)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    said = [writer.communicate(timeout=60) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0, 0], said
    acknowledged = {line for out, _ in said for line in out.split()}
    assert len(acknowledged) == 2000
    records = [json.loads(line) for line in export(tmp_path, "api")]
    notes = [record for record in records if record["kind"] == "note"]
    assert {f"{record['log']}-{record['seq']}" for record in notes} == acknowledged
    assert len(notes) == 2000
    report = verify(tmp_path, "api", Keys.load(key or None, None))
    assert (report.verdict, report.records) == ("INTACT", len(records))


NURSERY = """
import os, sys
from pathlib import Path
from proxmox_mcp.audit import AuditLog, Keys
directory, key = Path(sys.argv[1]), Keys.load(sys.argv[2], None)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        log = AuditLog(directory, "api", keys=key, max_bytes=3000)
        for _ in range(20_000):
            os.write(1, f"{log.note({'text': 'x' * 200})}\\n".encode())
    os.write(1, f"{child}\\n".encode())  # in one piece, for the child writes there too
    sys.stdin.readline()
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


def test_two_hundred_kills_at_random_moments_lose_nothing_acknowledged(tmp_path: Path) -> None:
    dice = random.Random(20260301)
    acknowledged: set[str] = set()
    with start(NURSERY, str(tmp_path), "correct horse battery staple") as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        for number in range(200):
            print("fork", file=nursery.stdin, flush=True)
            child, wanted = 0, dice.randrange(4)
            while not child or wanted > 0:
                word = nursery.stdout.readline().strip()
                if "-" in word:
                    acknowledged.add(word)
                    wanted -= 1
                else:
                    child = int(word)
            spin_until(time.perf_counter() + dice.uniform(0, 0.001))
            os.kill(child, 9)
            print("wait", file=nursery.stdin, flush=True)
            while (word := nursery.stdout.readline().strip()) != "dead":
                acknowledged.add(word)
            if number % 20 == 0:
                assert verify(tmp_path, "api", KEY).verdict != "BROKEN"
    report = verify(tmp_path, "api", KEY)
    assert report.verdict in ("INTACT", "INTACT WITH REMARKS"), report.text()
    assert len(acknowledged) > 200
    assert acknowledged <= ids(tmp_path)


def spin_until(moment: float) -> None:
    while time.perf_counter() < moment:
        pass


CRASHER = """
import json, os, sys
from pathlib import Path
from proxmox_mcp.audit import AuditLog, Keys, log as module

write, count = os.write, 0

def die_in_time(fatal, share):
    # all that changes files ends the process at the fatal-th time, a write after a share of its bytes
    def deadly(real):
        def call(fd, *more):
            global count
            count += 1
            if count == fatal:
                if real is write:  # the head is one sector and is written in one piece
                    write(fd, more[0][: int(len(more[0]) * share)])
                os.kill(os.getpid(), 9)
            return real(fd, *more)
        return call
    os.write = deadly(write)
    for name in ("pwrite", "flush", "flush_directory"):
        setattr(module, name, deadly(getattr(module, name)))

for line in sys.stdin:
    directory, key, fatal, share = json.loads(line)
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        die_in_time(fatal, share)
        log = AuditLog(Path(directory), "api", keys=Keys.load(key or None, None), max_bytes=1200)
        for number in range(12):
            write(writer, log.note({"n": number, "text": "x" * 50}).encode() + b" ")
        os._exit(0)
    os.close(writer)
    with open(reader) as said:
        acknowledged = said.read().split()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), acknowledged]), flush=True)
"""


@pytest.mark.parametrize("key", ["", "correct horse battery staple"], ids=["unkeyed", "keyed"])
def test_a_crash_at_any_step_costs_nothing_acknowledged(tmp_path: Path, key: str) -> None:
    """Death before, inside and after every write and flush of the first appends, rotations included; then life goes on."""
    keys = Keys.load(key or None, None)
    steps = [(fatal, share) for fatal in range(1, 41) for share in (0.0, 0.5, 1.0)]
    deaths = [(str(tmp_path / f"{fatal}-{share}"), key, fatal, share) for fatal, share in steps]
    said = run(CRASHER, told="".join(json.dumps(death) + "\n" for death in deaths)).splitlines()
    for (directory, *_), answer in zip(deaths, said, strict=True):
        here = Path(directory)
        status, acknowledged = json.loads(answer)
        assert status == -9, here
        report = verify(here, "api", keys)
        assert report.verdict != "BROKEN", (here, report.text())
        AuditLog(here, "api", keys=keys, max_bytes=1200).note({"after": "the crash"})
        report = verify(here, "api", keys)
        assert report.verdict in ("INTACT", "INTACT WITH REMARKS"), (here, report.text())
        assert set(acknowledged) <= ids(here), here


def ids(directory: Path) -> set[str]:
    """The ids of all records that stand in the log."""
    return {f"{record['log']}-{record['seq']}" for record in map(json.loads, export(directory, "api")) if "seq" in record}


HOLDER = """
import os, signal, sys
from proxmox_mcp.audit import lock
fd = os.open(sys.argv[1], os.O_RDWR)
lock.acquire(fd, sys.argv[1])
print("held", flush=True)
signal.pause()
"""


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "WAIT", 0.1)
    log = AuditLog(tmp_path, "api")
    log.note({})
    holder = start(HOLDER, str(tmp_path / "_api_audit.head"))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(AuditError, match="Another process"):
        log.note({})
    holder.kill()
    holder.communicate(timeout=10)
    log.note({})
    assert verify(tmp_path, "api", Keys.none()).records == 3


LIMITED = """
import resource, sys
from pathlib import Path
from proxmox_mcp.audit import AuditLog
from proxmox_mcp.errors import AuditError
log = AuditLog(Path(sys.argv[1]), "api")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
for number in range(100):
    try:
        print(log.intent({"n": number}), flush=True)
    except AuditError as exc:
        print("refused", str(exc).replace("\\n", " "), flush=True)
        if "again" in sys.argv:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            print(log.intent({"n": "there is room again"}), flush=True)
        break
"""


@pytest.mark.parametrize("again", ["", "again"], ids=["full", "room again"])
@pytest.mark.parametrize("limit", range(1700, 2100, 57))
def test_a_file_that_cannot_grow_refuses_the_intent(tmp_path: Path, limit: int, again: str) -> None:
    out = run(LIMITED, str(tmp_path), str(limit), again).splitlines()
    (refusal,) = [line for line in out if line.startswith("refused")]
    assert "Nothing was sent" in refusal
    assert "_api_audit.log" in refusal
    assert "File too large" in refusal
    assert "free space" in refusal
    acknowledged = {line for line in out if not line.startswith("refused")}
    if again:
        assert tail(tmp_path, "api", 1)[0]["record"] == {"n": "there is room again"}
    report = verify(tmp_path, "api", Keys.none())
    assert report.verdict == "INTACT WITH REMARKS", report.text()
    assert acknowledged <= ids(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    here = tmp_path / "disk"
    here.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(here)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no right to mount a tmpfs")
    yield here
    subprocess.run(["umount", str(here)], check=True)


def test_a_full_disk_refuses_the_intent_and_the_log_goes_on_when_there_is_room(small_disk: Path) -> None:
    directory = small_disk / "audit"
    log = AuditLog(directory, "api", max_bytes=8000)
    (small_disk / "ballast").write_bytes(b"x" * 20_000)
    acknowledged: list[str] = []

    def until_full() -> None:
        while len(acknowledged) < 1000:
            acknowledged.append(log.intent({"n": len(acknowledged), "text": "x" * 300}))

    with pytest.raises(AuditError, match="No space left on device") as caught:
        until_full()
    assert "Nothing was sent" in str(caught.value)
    with pytest.raises(AuditError, match="No space left on device"):
        log.outcome(acknowledged[-1], {"text": "x" * 9000})
    (small_disk / "ballast").unlink()
    for intent in acknowledged:
        log.outcome(intent, {"status": "ok"})
    log.close()
    report = verify(directory, "api", Keys.none())
    assert report.verdict in ("INTACT", "INTACT WITH REMARKS"), report.text()
    assert all("torn line" in remark for remark in report.remarks)
    assert set(acknowledged) <= ids(directory)


READ_ONLY = """
import os, sys
from pathlib import Path
from proxmox_mcp.audit import AuditLog
from proxmox_mcp.errors import AuditError
os.chdir(sys.argv[1])
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for directory in (Path("."), Path("new")):
    try:
        AuditLog(directory, "api").intent({"tool": "x"})
    except AuditError as exc:
        print(str(exc).replace("\\n", " "))
"""


def test_a_directory_that_may_not_be_written_to_refuses_the_intent(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    out = run(READ_ONLY, str(tmp_path)).splitlines()
    assert len(out) == 2
    for line in out:
        assert "Nothing was sent" in line
        assert "Permission denied" in line
        assert "let the user that runs this server write to" in line
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("")
    with pytest.raises(AuditError, match="Nothing was sent") as caught:
        AuditLog(tmp_path / "audit", "api").intent({})
    assert "it must be a directory" in str(caught.value)
