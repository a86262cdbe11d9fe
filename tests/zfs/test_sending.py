"""The scripts behind zfs send, run by a real shell: both ends' statuses, files that are whole or not there, units that go on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from proxmox_mcp.zfs import sending
from proxmox_mcp.zfs.sending import Stream
from tests.zfs.machine import Machine
from tests.zfs.node import Node

SOURCE = "tank/data@before"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.make(tmp_path, Node.sample())


def follow(machine: Machine, script: str, words: Sequence[str], patience: int = 20) -> tuple[int, str]:
    argv, stdin = sending.follow(script, "pve-mcp-send-test", patience, words)
    done = subprocess.run(argv, input=stdin, env=machine.environment, capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode()


def to_file(machine: Machine, top: Path, place: Path, name: str = "stream", patience: int = 20) -> tuple[int, str]:
    return follow(machine, sending.TO_FILE, (str(top), str(place), name, *Stream(SOURCE).options), patience)


def test_nothing_in_the_scripts_is_read_by_systemd() -> None:
    for script in (sending.TO_FILE, sending.TO_DATASET):
        assert "${" not in script
        assert "$$" not in script


def test_a_file_appears_whole_and_for_its_owner_alone(machine: Machine, tmp_path: Path) -> None:
    status, said = to_file(machine, tmp_path, tmp_path)
    assert status == 0
    assert sending.result(said) == f"done: send 0, {(tmp_path / 'stream').stat().st_size} bytes"
    assert (tmp_path / "stream").read_text().startswith(f"STREAM {SOURCE} ")
    assert (tmp_path / "stream").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*"))


def test_a_file_that_exists_is_never_overwritten(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "stream").write_text("mine")
    status, said = to_file(machine, tmp_path, tmp_path)
    assert (status, sending.result(said)) == (1, "failed: the file exists")
    assert (tmp_path / "stream").read_text() == "mine"


def test_nor_is_a_link_that_leads_nowhere(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "stream").symlink_to(tmp_path / "elsewhere")
    assert to_file(machine, tmp_path, tmp_path)[0] == 1
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_appears_meanwhile_is_not_overwritten_either(machine: Machine, tmp_path: Path) -> None:
    target = tmp_path / "stream"
    machine.program("zfs", f"echo STREAM\necho theirs >{target}")
    status, said = to_file(machine, tmp_path, tmp_path)
    assert (status, sending.result(said)) == (1, "failed: the file could not be given its name")
    assert target.read_text() == "theirs\n"
    assert not list(tmp_path.glob(".stream*"))


def test_a_directory_that_leads_outside_is_refused(machine: Machine, tmp_path: Path) -> None:
    allowed, outside = tmp_path / "allowed", tmp_path / "outside"
    allowed.mkdir()
    outside.mkdir()
    (allowed / "link").symlink_to(outside)
    status, said = to_file(machine, allowed, allowed / "link")
    assert (status, sending.result(said)) == (1, f"failed: the directory leads outside of {allowed}")
    assert not list(outside.iterdir())
    # an allowed directory that is a link itself was chosen by the owner
    (tmp_path / "chosen").symlink_to(outside)
    assert to_file(machine, tmp_path / "chosen", tmp_path / "chosen")[0] == 0


def test_a_failed_send_leaves_no_file(machine: Machine, tmp_path: Path) -> None:
    node = machine.read()
    node.fail["zfs send *"] = [1, "warning: cannot send 'tank/data@before': Input/output error\n"]
    machine.write(node)
    status, said = to_file(machine, tmp_path, tmp_path)
    assert (status, sending.result(said)) == (1, "failed: send 1")
    assert sending.messages(said) == ["warning: cannot send 'tank/data@before': Input/output error"]
    assert not list(tmp_path.glob("*stream*"))


def test_a_missing_directory(machine: Machine, tmp_path: Path) -> None:
    assert sending.result(to_file(machine, tmp_path, tmp_path / "nosuch")[1]) == "failed: no such directory"


def test_a_file_that_cannot_be_created(machine: Machine, tmp_path: Path) -> None:
    assert sending.result(to_file(machine, tmp_path, tmp_path, "x" * 250)[1]) == "failed: the file could not be created"


def test_hostile_names_stay_words(machine: Machine, tmp_path: Path) -> None:
    place = tmp_path / "a b;touch x"
    place.mkdir()
    assert to_file(machine, tmp_path, place, "-rf $(touch y) `z` *")[0] == 0
    assert [path.name for path in place.iterdir()] == ["-rf $(touch y) `z` *"]


def to_dataset(machine: Machine, target: str = "tank/copy", options: str = "-u") -> tuple[int, str]:
    return follow(machine, sending.TO_DATASET, (options, target, *Stream(SOURCE).options))


def test_a_dataset_is_received(machine: Machine) -> None:
    status, said = to_dataset(machine)
    assert status == 0
    assert sorted(sending.result(said).removeprefix("done: ").split()) == ["0", "0", "receive", "send"]
    node = machine.read()
    assert node.snapshots["tank/copy@before"]["guid"] == node.snapshots[SOURCE]["guid"]


def test_a_failing_sender_is_no_success_whatever_the_receiver_says(machine: Machine) -> None:
    machine.program("zfs", "case $1 in send) echo data; exit 1;; *) cat >/dev/null; exit 0;; esac")
    status, said = to_dataset(machine)
    assert status == 1
    assert "send 1" in sending.result(said)
    assert "receive 0" in sending.result(said)


def test_both_ends_are_told(machine: Machine) -> None:
    machine.program("zfs", "case $1 in send) echo no key >&2; exit 1;; *) cat >/dev/null; echo cannot receive >&2; exit 1;; esac")
    result = sending.result(to_dataset(machine)[1])
    assert "send 1" in result
    assert "receive 1" in result
    assert sending.explained(result) == "the sender failed, and the receiver with the broken stream"


def test_a_receiver_that_stops_first_is_the_cause(machine: Machine) -> None:
    status, said = to_dataset(machine, "tank/share")
    assert status == 1
    assert "receive 1" in sending.result(said)
    assert "must specify -F to overwrite it" in said
    assert "stopped first" in sending.explained("failed: receive 1 send 141")


def test_what_takes_longer_than_the_patience_goes_on_and_cannot_be_started_twice(machine: Machine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    machine.program("zfs", f"cat {gate}")
    os.mkfifo(machine.units / "ended")
    assert to_file(machine, tmp_path, tmp_path, patience=0)[0] == sending.GOES_ON
    assert to_file(machine, tmp_path, tmp_path)[0] == sending.NOT_STARTED
    gate.write_text("the stream\n")
    (machine.units / "ended").read_text()
    assert (tmp_path / "stream").read_text() == "the stream\n"


def test_a_unit_that_says_nothing_of_its_end_is_no_success(machine: Machine, tmp_path: Path) -> None:
    machine.program("journalctl", ":")
    status, said = to_file(machine, tmp_path, tmp_path)
    assert status == 1
    assert sending.result(said) == ""


def test_the_same_transfer_has_the_same_unit() -> None:
    assert sending.unit(Stream(SOURCE), "/mnt/x") == sending.unit(Stream(SOURCE), "/mnt/x")
    others = {
        sending.unit(Stream(SOURCE, raw=True), "/mnt/x"),
        sending.unit(Stream(SOURCE), "/mnt/y"),
        sending.unit(Stream(SOURCE), "/mnt/x"),
    }
    assert len(others) == 3


def test_progress_and_estimates_are_no_messages() -> None:
    said = (
        "full send of tank/data@before estimated size is 47.1K\ntotal estimated size is 47.1K\n"
        "TIME        SENT   SNAPSHOT tank/data@before\n01:02:03   8.05M   tank/data@before\n"
        "warning: cannot send 'x': dataset key must be loaded\npve-mcp result: failed: send 1 receive 1\n"
    )
    assert sending.messages(said) == ["warning: cannot send 'x': dataset key must be loaded"]


def test_options() -> None:
    stream = Stream("tank/x@b", "tank/x@a", replication=True, raw=True)
    assert stream.options == ("-R", "-w", "-i", "tank/x@a", "tank/x@b")
    assert sending.estimate(stream) == ("zfs", "send", "-nvP", "-R", "-w", "-i", "tank/x@a", "tank/x@b")
