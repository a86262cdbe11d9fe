"""What zfs and zpool say when they fail: the message without the help, the right error, a next step."""

from __future__ import annotations

import pytest

from proxmox_mcp.errors import NotFound, SshError
from proxmox_mcp.zfs.failures import failure, said
from tests.zfs import samples
from tests.zfs.shell import outcome


@pytest.mark.parametrize(("status", "stderr", "message", "kind"), samples.FAILURES)
def test_recorded_failures(status: int, stderr: str, message: str, kind: str) -> None:
    assert said(stderr) == message
    error = failure(outcome(status, "", stderr), ("zfs", "x", "tank"), "pve1")
    assert isinstance(error, NotFound if kind == "missing" else SshError)
    assert message in error.what
    assert "zfs x tank on pve1" in str(error)
    if kind not in ("missing", "other"):
        assert kind in error.hint


def test_255_is_a_failure_of_zfs_and_no_lost_connection() -> None:
    error = failure(outcome(255, "", "Key load error: encryption failure\n"), ("zfs", "load-key", "tank/secret"), "pve1")
    assert "Key load error" in error.what
    assert "lost" not in str(error)


def test_g61_a_missing_program_is_told_apart_from_a_missing_dataset() -> None:
    error = failure(outcome(127, "", "sh: 1: zfs: not found\n"), ("zfs", "list"), "pve1")
    assert isinstance(error, SshError)
    assert error.what == "zfs is not installed on pve1, or not on the path that commands get there"


@pytest.mark.parametrize(
    ("how", "words"), [({"lost": True}, "outcome unknown"), ({"timed_out": True}, "time was up"), ({"signal": "KILL"}, "signal KILL")]
)
def test_an_end_that_is_not_known(how: dict[str, object], words: str) -> None:
    error = failure(outcome(None, "", "", **how), ("zfs", "list"), "pve1")
    assert words in error.what
