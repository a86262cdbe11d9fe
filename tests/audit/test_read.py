"""tail and export: everything that stands there, cheaply, and nothing hidden."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from proxmox_mcp.audit import AuditLog, Keys, export, tail
from proxmox_mcp.audit import files as files_module
from proxmox_mcp.audit.files import lines as forwards
from proxmox_mcp.audit.files import lines_backwards
from tests.audit.forger import LOG, edit, lines, write_log


def test_tail_takes_the_newest_across_segments(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "api", max_bytes=1200)
    for number in range(20):
        log.note({"n": number})
    found = tail(tmp_path, "api", 30)
    assert [record["record"]["n"] for record in found if record["kind"] == "note"][-20:] == list(range(20))
    assert [record["record"].get("n") for record in tail(tmp_path, "api", 1)] == [19]
    assert tail(tmp_path, "api", 0) == []
    assert len(tail(tmp_path, "api", 10_000)) == len(list(export(tmp_path, "api")))


def test_no_log(tmp_path: Path) -> None:
    assert tail(tmp_path / "nowhere", "api", 5) == []
    assert list(export(tmp_path, "vm")) == []


def test_export_gives_the_lines_as_they_stand(tmp_path: Path) -> None:
    write_log(tmp_path, Keys.none(), max_bytes=1000)
    names = sorted((path.name for path in tmp_path.glob("*.log")), key=lambda name: (len(name), name))
    assert [line.encode() + b"\n" for line in export(tmp_path, "api")] == [line for name in names for line in lines(tmp_path, name)]


def test_lines_that_are_no_records_are_shown_as_such(tmp_path: Path) -> None:
    write_log(tmp_path, Keys.none())
    edit(tmp_path, lambda found: found.insert(3, b"\x1b[31m\xff" + b"x" * 5000 + b"\n"))
    shown = json.loads(list(export(tmp_path, "api"))[3])
    assert shown["bytes"] == 5006
    assert shown["unreadable"].startswith("\x1b[31m\\xffxxx")
    assert len(shown["unreadable"]) < 1100
    assert tail(tmp_path, "api", 9)[0] == shown


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a", b"a\n", b"a\nb", b"a\nb\n", b"\n\n", b"a\n\nb\n", b"\na", b"abcdefgh\n" * 5 + b"x" * 20]
)
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
def test_lines_both_ways_whatever_the_chunks(tmp_path: Path, content: bytes, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "_CHUNK", chunk)
    path = tmp_path / "file"
    path.write_bytes(content)
    expected = content.removesuffix(b"\n").split(b"\n") if content else []
    assert list(forwards(path, 0, len(content))) == expected
    assert list(lines_backwards(path)) == expected[::-1]


def test_tail_reads_only_the_end(tmp_path: Path) -> None:
    """A gigabyte before the newest records, which as a hole takes no room, is not read."""
    write_log(tmp_path, Keys.none())
    content = (tmp_path / LOG).read_bytes()
    with open(tmp_path / LOG, "wb") as file:
        file.seek(1 << 40)
        file.write(b"\n" + content)
    assert os.stat(tmp_path / LOG).st_size > 1 << 40
    assert [record["seq"] for record in tail(tmp_path, "api", 3)] == [9, 10, 11]
