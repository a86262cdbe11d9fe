"""Changes that a dead process left without an outcome: found in the newest records, named fit for a terminal, others left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.audit import AuditLog, unfinished
from proxmox_mcp.audit import unfinished as listed
from tests.audit.forger import LOG, edit
from tests.audit.processes import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="asks for processes as POSIX does")
CHANGE = {"tool": "proxmox_vm_power", "risk": "change", "summary": "stop VM 101 (web)", "targets": ["guest 101"]}
WRITER = """
import json, sys
from pathlib import Path
from proxmox_mcp.audit import AuditLog
for which, entry, done in json.loads(sys.stdin.read()):
    log = AuditLog(Path(sys.argv[1]), which)
    intent = log.intent(entry)
    if done:
        log.outcome(intent, {"state": "ok"})
"""


def dead(directory: Path, *entries: tuple[str, dict[str, Any], bool]) -> None:
    """Records of a process that is gone."""
    subprocess.run([sys.executable, "-c", WRITER, str(directory)], cwd=ROOT, input=json.dumps(entries), text=True, check=True)


def rewritten(directory: Path, **changed: Any) -> None:
    """The record behind the opening one with other fields; its hash is nobody's business here."""
    edit(directory, lambda found: found.__setitem__(1, json.dumps({**json.loads(found[1]), **changed}).encode() + b"\n"))


def test_what_a_dead_process_left_is_named_by_log_and_number(tmp_path: Path) -> None:
    command = {"tool": "proxmox_host_exec", "risk": "data loss", "argv": ["zfs", "destroy", "tank/\u202ex"], "target": "node pve1"}
    read = {"tool": "proxmox_host_read_exec", "risk": "read", "argv": ["uptime"], "target": "node pve1"}
    dead(tmp_path, ("api", CHANGE, True), ("api", CHANGE, False), ("host", read, False), ("host", command, False))
    second, first = sorted(unfinished(tmp_path), key=lambda one: -len(one.which))
    assert (first.which, first.seq, first.tool, first.what) == ("api", 4, "proxmox_vm_power", "stop VM 101 (web)")
    assert (second.which, second.seq, second.what) == ("host", 3, "zfs destroy tank/x on node pve1")
    assert str(first) == f"proxmox_vm_power of {first.time} has no recorded outcome: stop VM 101 (web) (record 4 of the log api)"
    assert first.time.endswith("Z")
    assert len(first.time) == 20


def test_a_process_that_runs_has_its_changes_under_way(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api")
    intent = log.intent(CHANGE)
    assert unfinished(tmp_path) == []
    log.outcome(intent, {"state": "ok"})
    assert unfinished(tmp_path) == []


def test_a_predecessor_with_the_same_number_is_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    AuditLog(tmp_path, "api").intent(CHANGE)
    monkeypatch.setattr(sys.modules[listed.__module__], "_BEGAN", "9999-01-01T00:00:00")
    assert len(unfinished(tmp_path)) == 1


@pytest.mark.parametrize(
    ("writer", "found"),
    [("elsewhere/1", 1), ("", 1), ("x", 1), (f"{os.uname().nodename}/abc", 1), (f"{os.uname().nodename}/99999999999", 1), (None, 1)],
)
def test_a_writer_that_is_nobody_here_counts_as_gone(tmp_path: Path, writer: Any, found: int) -> None:
    dead(tmp_path, ("api", CHANGE, False))
    rewritten(tmp_path, writer=writer)
    assert len(unfinished(tmp_path)) == found


def test_somebody_elses_process_is_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead(tmp_path, ("api", CHANGE, False))

    def not_allowed(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_allowed)
    assert unfinished(tmp_path) == []


def test_what_is_older_than_a_week_is_not_told_again(tmp_path: Path) -> None:
    dead(tmp_path, ("api", CHANGE, False))
    now = time.time()
    assert len(unfinished(tmp_path, now=now + 6 * 86_400)) == 1
    assert unfinished(tmp_path, now=now + 8 * 86_400) == []


@pytest.mark.parametrize(
    "changed",
    [{"record": "x"}, {"record": None}, {"kind": "note"}, {"seq": [1]}, {"time": None}, {"log": {}}, {"record": {"risk": "read"}}],
)
def test_odd_records_are_passed_over(tmp_path: Path, changed: dict[str, Any]) -> None:
    dead(tmp_path, ("api", CHANGE, False))
    rewritten(tmp_path, **changed)
    assert all(str(one) for one in unfinished(tmp_path))


def test_odd_entries_are_still_told(tmp_path: Path) -> None:
    dead(tmp_path, ("api", {"risk": 7, "argv": "x", "summary": ["a"]}, False), ("vm", {}, False))
    second, first = sorted(unfinished(tmp_path), key=lambda one: one.which, reverse=True)
    assert (first.tool, first.what) == ("a change", "['a']")
    assert second.what == "on None"


def test_a_log_that_cannot_be_read_or_is_not_there_has_nothing_to_tell(tmp_path: Path) -> None:
    assert unfinished(tmp_path / "nothing") == []
    (tmp_path / LOG).mkdir()
    assert unfinished(tmp_path) == []
    (tmp_path / "file").write_text("")
    assert unfinished(tmp_path / "file") == []
