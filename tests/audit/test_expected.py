"""A record noted elsewhere, and the words of verify that name records: where, which tool, since when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxmox_mcp.audit import AuditLog, Keys, Report, verify
from tests.audit.forger import KEY, LOG, lines, write_log

NO_KEY = Keys.none()


def noted(directory: Path, seq: int) -> tuple[int, str]:
    return seq, json.loads(lines(directory)[seq - 1])["hash"]


@pytest.mark.parametrize("keys", [NO_KEY, KEY], ids=["unkeyed", "keyed"])
def test_a_record_noted_elsewhere_must_still_be_there(tmp_path: Path, keys: Keys) -> None:
    write_log(tmp_path, keys)
    for seq in (1, 4, 11):
        assert verify(tmp_path, "api", keys, expect=noted(tmp_path, seq)).verdict == "INTACT"


@pytest.mark.parametrize("seq", [1, 4, 11])
def test_another_record_in_its_place_is_found_there(tmp_path: Path, seq: int) -> None:
    write_log(tmp_path, NO_KEY)
    report = verify(tmp_path, "api", NO_KEY, expect=(seq, "0" * 64))
    assert str(report.first_problem) == f"{LOG}, line {seq}: rewritten: this is not the record {seq} that was noted elsewhere"


def test_one_that_is_missing_is_a_cut_tail(tmp_path: Path) -> None:
    write_log(tmp_path, NO_KEY)
    report = verify(tmp_path, "api", NO_KEY, expect=(12, "0" * 64))
    assert str(report.first_problem) == f"{LOG}, line 12: cut tail: record 12, noted elsewhere, is missing"
    assert report.records == 11
    empty = verify(tmp_path / "nothing", "vm", NO_KEY, expect=(3, "0" * 64))
    assert str(empty.first_problem) == "_vm_ssh_audit.log, line 1: cut tail: record 3, noted elsewhere, is missing"


def remarks(report: Report) -> list[str]:
    return [remark for remark in report.remarks if "no outcome" in remark]


def test_each_open_intent_is_named_and_more_than_twenty_are_counted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api")
    log.intent({"tool": "proxmox_start_vm"})
    log.intent({"tool": 7})
    log.intent({"text": "without a tool"})
    when = [json.loads(line)["time"] for line in lines(tmp_path)[1:]]
    why = "has no outcome: the process ended, the call is still running, or recording it failed"
    assert remarks(verify(tmp_path, "api", NO_KEY)) == [
        f"intent 2 (proxmox_start_vm, {when[0]}) {why}",
        f"intent 3 (?, {when[1]}) {why}",
        f"intent 4 (?, {when[2]}) {why}",
    ]
    for _ in range(17):
        log.intent({"tool": "t"})
    assert len(remarks(verify(tmp_path, "api", NO_KEY))) == 20
    log.intent({"tool": "t"})
    told = remarks(verify(tmp_path, "api", NO_KEY))
    assert (len(told), told[-1]) == (21, "1 more intents have no outcome")
    log.close()
