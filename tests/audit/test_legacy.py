"""Logs of pve-mcp 1.x: what its chain can tell, what 1.x itself left behind, what it cannot prove."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.audit import Keys
from proxmox_mcp.audit.command import main
from proxmox_mcp.audit.legacy import LegacyReport, verify_legacy
from proxmox_mcp.errors import AuditError
from tests.audit.forger import write_log

KEY = "correct horse battery staple"
KEYS = Keys.load(KEY, None)
Lines = list[bytes]


def line(prev: str, key: str = "", **entry: Any) -> bytes:
    """One line as 1.x wrote it: the hash over the sorted JSON, the line in the order of its fields."""
    entry = {"ts": "2026-03-01 01:00:00", "host": "pve", "user": "root", "rc": 0, "cmd": "uptime", "note": "", **entry, "prev": prev}
    body = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    own = hmac.new(key.encode(), body, hashlib.sha256).hexdigest() if key else hashlib.sha256(body).hexdigest()
    return json.dumps({**entry, "hash": own}, ensure_ascii=False).encode() + b"\n"


def chain(count: int, key: str = "", prev: str = "", **entry: Any) -> Lines:
    found: Lines = []
    for number in range(count):
        found.append(line(prev, key, cmd=f"echo {number} çğış", **entry))
        prev = hash_of(found[-1])
    return found


def hash_of(raw: bytes) -> str:
    return str(json.loads(raw)["hash"])


def check(tmp_path: Path, found: Lines, keys: Keys = KEYS) -> LegacyReport:
    path = tmp_path / "_host_ssh_audit.log"
    path.write_bytes(b"".join(found))
    return verify_legacy(path, keys)


def test_a_whole_log_with_a_key(tmp_path: Path) -> None:
    report = check(tmp_path, chain(5, KEY))
    assert (report.verdict, report.lines, report.chained, report.sealed) == ("INTACT", 5, 5, 5)
    assert any("cut off its end" in limit for limit in report.cannot_prove)
    assert "that nobody who has the key rewrote it" in report.cannot_prove


def test_a_whole_log_without_a_key_says_what_that_is_worth(tmp_path: Path) -> None:
    report = check(tmp_path, chain(3), Keys.none())
    assert report.verdict == "INTACT"
    assert any("no key seals it" in limit for limit in report.cannot_prove)
    suspicious = check(tmp_path, chain(3))
    assert suspicious.verdict == "INTACT WITH REMARKS"
    assert "no line is sealed" in suspicious.remarks[0]


@pytest.mark.parametrize(
    ("change", "at", "said"),
    [
        (lambda found: found.pop(0), 1, "lines before this one are missing"),
        (lambda found: found.pop(2), 3, "missing, changed or out of order"),
        (lambda found: found.insert(1, found.pop(3)), 2, "out of order"),
        (lambda found: found.append(found[1]), 6, "stands in the log twice"),
        # half a character: 1.x could never hash that
        (lambda found: found.__setitem__(1, found[1].replace(b"echo 1", b"echo \\ud800")), 2, "changed"),
        (lambda found: found.__setitem__(1, found[1].replace(b"echo 1", b"echo 9")), 2, "changed"),
        (lambda found: found.__setitem__(1, found[1].replace(b'"prev"', b'"prev": "", "prev"', 1)), 3, "missing, changed"),
        (lambda found: found.append(line(hash_of(found[-1]))), 6, "not sealed with a key"),
        (lambda found: found.append(line("", KEY)), 6, "begins anew"),
        (lambda found: found.__setitem__(2, b"{}\n"), 4, "missing, changed"),
    ],
)
def test_what_the_chain_shows(tmp_path: Path, change: Callable[[Lines], object], at: int, said: str) -> None:
    found = chain(5, KEY)
    change(found)
    report = check(tmp_path, found)
    assert report.verdict == "BROKEN"
    assert report.first_problem
    assert report.first_problem.line == at
    assert said in report.first_problem.what


def test_a_key_that_is_not_known_is_told_apart_from_nothing(tmp_path: Path) -> None:
    report = check(tmp_path, chain(2, "another"))
    assert report.first_problem
    assert "another key" in report.first_problem.what
    report = check(tmp_path, chain(2, KEY), Keys.none())
    assert report.first_problem
    assert "a key that is not known here" in report.first_problem.what


def test_an_older_key_still_opens_it(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"new\n{KEY}\n")
    assert check(tmp_path, chain(3, KEY), Keys.load(None, file)).verdict == "INTACT"


@pytest.mark.parametrize(
    "behind",
    [b'{"cmd": "torn', b'{"ts": "2025", "cmd": "before 1.1"}', line("", KEY, stdout_preview="\u2028"), line("", KEY, cmd="x" * 70_000)],
    ids=["torn", "unchained", "split", "long"],
)
def test_what_1x_could_not_read_back_is_a_remark(tmp_path: Path, behind: bytes) -> None:
    """Behind such a line it began anew by itself; that is no forgery, but nothing ties the two parts together either."""
    report = check(tmp_path, [behind.rstrip(b"\n") + b"\n", *chain(2, KEY)])
    assert report.verdict == "INTACT WITH REMARKS"
    assert report.remarks


def test_a_restart_in_the_middle_is_told(tmp_path: Path) -> None:
    report = check(tmp_path, [*chain(2, KEY), b'{"torn\n', *chain(2, KEY, ts="later")])
    assert report.verdict == "INTACT WITH REMARKS"
    assert "line 3 is no readable record" in report.remarks[0]
    assert "line 4 begins the chain anew" in report.remarks[1]


def test_two_servers_at_once_are_a_remark(tmp_path: Path) -> None:
    found = chain(3, KEY)
    found.append(line(hash_of(found[1]), KEY, cmd="of the other server"))
    report = check(tmp_path, [*found, line(hash_of(found[-1]), KEY, cmd="next")])
    assert report.verdict == "INTACT WITH REMARKS"
    assert "two servers wrote at once" in report.remarks[0]


def test_a_key_that_came_later(tmp_path: Path) -> None:
    plain = chain(2)
    report = check(tmp_path, [*plain, line(hash_of(plain[-1]), KEY)])
    assert report.verdict == "INTACT WITH REMARKS"
    assert "before line 3 are not sealed" in report.remarks[0]
    assert any("no key seals it" in limit for limit in report.cannot_prove)


def test_lines_of_windows_and_blank_ones(tmp_path: Path) -> None:
    report = check(tmp_path, [raw.replace(b"\n", b"\r\n") + b"\r\n" for raw in chain(3, KEY)])
    assert (report.verdict, report.lines) == ("INTACT", 3)


def test_many_remarks_of_one_sort_are_counted(tmp_path: Path) -> None:
    report = check(tmp_path, [b"x\n"] * 50)
    assert len(report.remarks) == 21
    assert report.remarks[-1] == "30 more lines like that one"


def test_a_log_of_this_version_and_one_that_is_not_there(tmp_path: Path) -> None:
    write_log(tmp_path, KEYS)
    with pytest.raises(AuditError, match="is a log of this version"):
        verify_legacy(tmp_path / "_api_audit.log", KEYS)
    with pytest.raises(AuditError, match="cannot be read"):
        verify_legacy(tmp_path / "none.log", KEYS)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.log"
    path.write_bytes(b"".join(chain(3, KEY)))
    assert main(["verify-legacy", str(path)], tmp_path, KEYS) == 0
    assert capsys.readouterr().out.startswith("old.log (1.x): INTACT, 3 of 3 lines chained, 3 sealed with a key\n  cannot prove: ")
    assert main(["verify-legacy", str(path), "--json"], tmp_path, KEYS) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "INTACT"
    path.write_bytes(path.read_bytes().replace(b"echo 1", b"echo 7"))
    assert main(["verify-legacy", str(path)], tmp_path, KEYS) == 1
    assert "problem: old.log, line 2: changed" in capsys.readouterr().out
    path.write_bytes(b"")
    assert main(["verify-legacy", str(path)], tmp_path, KEYS) == 1
    assert main(["verify-legacy", str(tmp_path / "none")], tmp_path, KEYS) == 1
    assert "cannot be read" in capsys.readouterr().err
