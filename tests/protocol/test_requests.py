"""Every request that any tool can send, recorded and held against the schema of the real API; and that the changes do what they say."""

from __future__ import annotations

import re
from pathlib import Path

from proxmox_mcp.tools import ORDER
from tests.protocol.every_call import SECRETS, rig
from tests.pve_schema import assert_valid
from tests.stdio import serving

# what is rightly refused: guests live on them
REFUSED = ({"action": "destroy_vg", "name": "pve"}, {"action": "destroy_thin", "name": "data"})


def test_every_request_is_one_that_proxmox_takes(tmp_path: Path) -> None:
    with rig(tmp_path, hostile_texts=False) as made, serving(tmp_path, made.environment) as server:
        calls = made.calls()
        assert {f"proxmox_{tool}" for tool, _ in calls} == set(ORDER)
        for tool, arguments in calls:
            before = len(made.api.writes)
            failed, text = server.call(f"proxmox_{tool}", **arguments)
            assert not [secret for secret in SECRETS if secret in text], (tool, arguments)
            expected = arguments.get("confirm") is True and any(refused.items() <= arguments.items() for refused in REFUSED)
            if tool == "host_exec" and "confirm" in arguments:
                assert failed
                assert text.startswith("exit status 3 on node pve1")
                continue
            assert failed == expected, (tool, arguments, text)
            if arguments.get("dry_run") is True:
                assert text.startswith("Dry run, nothing was changed."), (tool, text)
                assert ("Would work." in text or "Nothing found that stands in the way." in text) != ("Stands in the way" in text)
            if arguments.get("confirm") is not True:
                assert len(made.api.writes) == before, (tool, arguments)
        for template, part in (("task/{upid}", "upid"), ("guest/{vmid}", "vmid")):
            ref = {"type": "ref/resource", "uri": f"proxmox://{template}"}
            server.request("completion/complete", ref=ref, argument={"name": part, "value": ""})
        assert "result" in server.request("resources/read", uri="proxmox://guest/103")
        assert not server.stderr
        assert_valid(made.api.requests)
        # names and ids apart, this many different requests were seen
        shapes = {f"{r.method} {re.sub(r'/(?:pve[0-9]|[0-9]+|UPID[^/]*)(?=/|$)', '/*', r.path)}" for r in made.api.requests}
        assert len(shapes) > 60


def test_the_same_on_proxmox_8(tmp_path: Path) -> None:
    """Where the version decides what is sent."""
    decided = ("vm_power", "create_backup", "restore_backup", "create_vm", "create_container", "health_overview", "list_tasks")
    with rig(tmp_path, hostile_texts=False, version="8.4.14") as made, serving(tmp_path, made.environment) as server:
        for tool, arguments in made.calls():
            if tool in decided:
                assert not server.call(f"proxmox_{tool}", **arguments)[0], (tool, arguments)
        assert_valid(made.api.requests)
        assert len(made.api.writes) >= 12
