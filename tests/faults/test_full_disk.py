"""The disk under the audit log is full while the server runs: no record, no change; an outcome that could not be written is said to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxmox_mcp import audit
from tests.faults.test_killed import STOP, serve
from tests.served_api import ServedApi, environment
from tests.stdio import Server, serving

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="a limit can be set on another process on Linux alone")


def limit(server: Server, size: int) -> None:
    """No file of the server grows beyond this many bytes from now on."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_what_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    log = directory / "_api_audit.log"
    with ServedApi() as api:
        serve(api, "done")
        env = environment(api, PROXMOX_APPROVAL="off", PROXMOX_AUDIT_DIR=str(directory))
        with serving(tmp_path, env) as server:

            def stop() -> tuple[bool, str, int]:
                """Whether it failed, its text, and how many requests it sent."""
                before = len(api.writes)
                failed, text = server.call("proxmox_vm_power", **STOP, wait_seconds=5)
                return failed, text, len(api.writes) - before

            assert stop()[0] is False
            intent, outcome = (len(line) + 1 for line in log.read_bytes().splitlines()[1:3])

            for room in (0, 1, intent - 1):
                limit(server, log.stat().st_size + room)
                failed, text, sent = stop()
                assert failed
                assert "Nothing was sent: the audit record could not be written" in text
                assert "File too large" in text
                assert "free space" in text
                assert sent == 0
                # reads go on, and so does the server
                assert server.call("proxmox_get_vm_status", vmid=101)[0] is False

            for room in (intent + 100, intent + outcome):
                limit(server, log.stat().st_size + room)
                failed, text, sent = stop()
                assert sent == 1
                assert not failed, text
                assert text.startswith("Done: shut down VM 101 (web)")
                assert "the outcome could not be recorded in the audit log" in text

            limit(server, resource.RLIM_INFINITY)
            failed, text, sent = stop()
            assert (failed, sent) == (False, 1)
            assert "could not be recorded" not in text
            assert not server.junk
            assert server.end() == 0
        report = audit.verify(directory, "api", audit.Keys.none())
        assert report.verdict == "INTACT WITH REMARKS", report.text()
        assert sum("has no outcome" in remark for remark in report.remarks) == 2
        kinds = [json.loads(line).get("kind") for line in audit.export(directory, "api")]  # what the full disk tore off has none
        assert kinds.count("intent") == len(api.writes)
