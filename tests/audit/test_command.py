"""`pve-mcp audit`: what it prints and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proxmox_mcp.audit import Keys, export, verify
from proxmox_mcp.audit.command import main
from tests.audit.forger import KEY, LOG, edit, write_log
from tests.audit.processes import ROOT


def test_verify_of_nothing_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify"], tmp_path, Keys.none()) == 1
    assert capsys.readouterr().out.count("NOTHING RECORDED") == 3


def test_verify_says_the_verdicts_of_all_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path, KEY)
    assert main(["verify"], tmp_path, KEY) == 0
    out = capsys.readouterr().out
    assert "\napi: INTACT, 11 records\n" in out
    assert "vm: NOTHING RECORDED" in out
    assert main(["verify", "vm"], tmp_path, KEY) == 1
    edit(tmp_path, lambda found: found.pop(2))
    assert main(["verify", "api"], tmp_path, KEY) == 1
    assert "api: BROKEN, 2 records before the problem\n  problem: _api_audit.log, line 3: missing" in capsys.readouterr().out
    assert main(["verify"], tmp_path, KEY) == 1


def test_verify_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path, KEY)
    assert main(["verify", "api", "--json"], tmp_path, KEY) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "INTACT"


def test_verify_against_a_record_noted_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path, KEY)
    newest = verify(tmp_path, "api", KEY).newest
    assert newest is not None
    noted = f"{newest.seq}:{newest.hash}"
    assert main(["verify", "api", "--expect", noted], tmp_path, KEY) == 0
    write_log(tmp_path, KEY)
    assert main(["verify", "api", "--expect", noted], tmp_path, KEY) == 0
    assert main(["verify", "api", "--expect", f"{newest.seq}:{'0' * 64}"], tmp_path, KEY) == 1
    assert "rewritten: this is not the record 11 that was noted elsewhere" in capsys.readouterr().out
    assert main(["verify", "api", "--expect", f"999:{newest.hash}"], tmp_path, KEY) == 1
    assert main(["verify", "vm", "--expect", noted], tmp_path, KEY) == 1
    assert main(["verify", "--expect", noted], tmp_path, KEY) == 1
    with pytest.raises(SystemExit):
        main(["verify", "api", "--expect", "7"], tmp_path, KEY)


def test_tail_and_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path, KEY)
    assert main(["tail", "api", "-n", "2"], tmp_path, KEY) == 0
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [10, 11]
    assert main(["export"], tmp_path, KEY) == 0
    assert capsys.readouterr().out.splitlines() == list(export(tmp_path, "api"))


def test_a_log_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / LOG).mkdir()
    for command in ("verify", "tail", "export"):
        assert main([command, "api"], tmp_path, Keys.none()) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "cannot be read" in captured.err
        assert "Traceback" not in captured.err


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    write_log(tmp_path, Keys.none(), pairs=150)
    script = (
        "import sys; from pathlib import Path; from proxmox_mcp.audit import Keys; from proxmox_mcp.audit.command import main;"
        "sys.exit(main(['export', 'api'], Path(sys.argv[1]), Keys.none()))"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(timeout=20), process.stderr.read()) == (0, b"")
    process.stderr.close()
