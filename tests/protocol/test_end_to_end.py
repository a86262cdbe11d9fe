"""An afternoon: the official client over stdio, the server as a process, a stateful fake cluster over TLS, in both protocol eras."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from mcp import Client
from mcp.types import ElicitRequestParams, ElicitResult

from proxmox_mcp import audit
from tests.protocol.talking import ERAS, ask, call, names, over_stdio

pytest.importorskip("fakepve")
pytestmark = pytest.mark.anyio
TOKEN = "0f0e0d0c-0000-4000-8000-0123456789ab"
DISK = {"memory": 2048, "cores": 2, "scsi0": "local-lvm:vm-101-disk-0,size=32G", "net0": "virtio=BC:24:11:00:00:65,bridge=vmbr0"}
ROOT = {"memory": 512, "cores": 1, "hostname": "mail", "rootfs": "local-lvm:vm-205-disk-0,size=8G", "unprivileged": 1}


class Person:
    """Says yes; `asked` holds what was shown."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"approve": True})


@pytest.fixture
def connected(fakepve: Any, fakepve_cafile: str, tmp_path: Path) -> Any:
    """A client of a server that reaches the fake cluster with a token, its certificate verified."""
    fakepve.apitokens["root@pam!mcp"] = TOKEN
    fakepve.add_vm(101, "web", status="running", config=dict(DISK))
    fakepve.add_vm(102, "db", config={**DISK, "scsi0": "local-lvm:vm-102-disk-0,size=32G"})
    fakepve.add_ct(205, status="running", config=dict(ROOT))
    env = {
        "PROXMOX_HOST": f"{fakepve.host}:{fakepve.port}",
        "PROXMOX_USER": "root@pam",
        "PROXMOX_TOKEN_NAME": "mcp",
        "PROXMOX_TOKEN_VALUE": TOKEN,
        "PROXMOX_CA_FILE": fakepve_cafile,
        "PROXMOX_AUDIT_DIR": str(tmp_path / "audit"),
    }

    @asynccontextmanager
    async def opened(era: str, person: Person | None = None, **more: str) -> AsyncIterator[Client]:
        async with over_stdio(tmp_path, {**env, **more}, era=era, elicitation_callback=person) as client:
            yield client
        assert (tmp_path / "stderr").read_text() == ""

    return opened


def changes(pve: Any) -> list[str]:
    return [f"{method} {unquote(path).removeprefix('/api2/json')}" for method, path, _ in pve.requests if method != "GET"]


@ERAS
@pytest.mark.fakepve(time_scale=0.1)  # tasks that take their time
@pytest.mark.parametrize(("vmid", "kind"), [(101, "qemu"), (205, "lxc")])
async def test_look_snapshot_clone_and_power(fakepve: Any, connected: Any, tmp_path: Path, era: str, vmid: int, kind: str) -> None:
    person = Person()
    name = {101: "web", 205: "mail"}[vmid]
    async with connected(era, person) as client:
        assert len(await names(client)) == 52
        listed = json.loads(await call(client, "proxmox_list_vms", response_format="json"))["items"]
        assert [(row["vmid"], row["status"]) for row in listed] == [(101, "running"), (102, "stopped"), (205, "running")]
        assert (await call(client, "proxmox_get_vm_status", vmid=vmid)).startswith(
            f"{'VM' if kind == 'qemu' else 'container'} {vmid} ({name})"
        )

        snapshot = {"vmid": vmid, "snapname": "before"}
        failed, text = await ask(client, "proxmox_snapshot", action="create", **snapshot)
        assert failed
        assert text.startswith("Nothing was changed: confirm=true missing")
        preview = await call(client, "proxmox_snapshot", action="create", **snapshot, dry_run=True)
        assert f"POST /nodes/pve1/{kind}/{vmid}/snapshot snapname=before" in preview
        assert not changes(fakepve)
        done = await call(client, "proxmox_snapshot", action="create", **snapshot, confirm=True, wait_seconds=20, reason="a test")
        assert done.startswith("Done: ")
        assert "before" in await call(client, "proxmox_list_snapshots", vmid=vmid)
        assert not person.asked  # making a snapshot destroys nothing

        # a running container is copied from a snapshot, a VM as it is
        source = {"snapname": "before"} if kind == "lxc" else {}
        wanted = {"vmid": vmid, "newid": 900, "name": "copy", "full": True, **source}
        cloned = await call(client, "proxmox_clone_vm", **wanted, confirm=True, wait_seconds=20)
        assert cloned.startswith("Done: ")
        assert "900 copy" in await call(client, "proxmox_list_vms")

        stopped = await call(client, "proxmox_vm_power", vmid=vmid, action="stop", confirm=True, wait_seconds=20)
        assert stopped.startswith("Done: ")
        assert len(person.asked) == 1  # pulling the plug is asked for
        assert ": stopped" in (await call(client, "proxmox_get_vm_status", vmid=vmid)).splitlines()[0]
        back = await call(
            client, "proxmox_snapshot", action="rollback", **snapshot, confirm=True, i_understand_data_loss=True, wait_seconds=20
        )
        assert back.startswith("Done: ")
        assert f"POST /nodes/pve1/{kind}/{vmid}/snapshot/before/rollback" in person.asked[1]
        assert (await call(client, "proxmox_vm_power", vmid=vmid, action="start", confirm=True, wait_seconds=20)).startswith("Done: ")

        tasks = await call(client, "proxmox_list_tasks", vmid=vmid)
        upid = re.findall(r"UPID:\S+", tasks)[0]
        assert ": OK" in (await call(client, "proxmox_get_task_log", upid=upid)).splitlines()[0]
    base = f"/nodes/pve1/{kind}/{vmid}"
    assert changes(fakepve) == [
        *(f"POST {base}/snapshot", f"POST {base}/clone", f"POST {base}/status/stop"),
        *(f"POST {base}/snapshot/before/rollback", f"POST {base}/status/start"),
    ]
    report = audit.verify(tmp_path / "audit", "api", audit.Keys.load(None, None))
    assert report.verdict == "INTACT"


@ERAS
async def test_a_task_that_fails_says_why(fakepve: Any, connected: Any, era: str) -> None:
    fakepve.vm(102).start_error = "start failed: QEMU exited with code 1"
    async with connected(era) as client:
        failed, text = await ask(client, "proxmox_vm_power", vmid=102, action="start", confirm=True, wait_seconds=20)
        assert failed
        assert text.startswith("Failed: start VM 102 (db) on pve1")
        assert "start failed: QEMU exited with code 1" in text
        upid = re.findall(r"UPID:\S+", text)[0]
        log = await call(client, "proxmox_get_task_log", upid=upid)
        assert "start failed: QEMU exited with code 1" in log.splitlines()[0]
        assert "1 failed task" in await call(client, "proxmox_list_tasks", errors_only=True)


@ERAS
async def test_a_lock_is_named_and_nothing_is_sent(fakepve: Any, connected: Any, era: str) -> None:
    fakepve.vm(101).lock = "backup"
    async with connected(era) as client:
        failed, text = await ask(client, "proxmox_snapshot", vmid=101, action="create", snapname="s1", confirm=True)
        assert failed
        assert text.startswith("Nothing was changed: it would fail.")
        assert "locked (backup)" in text
        assert "locked" in await call(client, "proxmox_get_vm_status", vmid=101)
    assert not changes(fakepve)


@ERAS
async def test_a_certificate_that_is_not_the_expected_one_ends_it(fakepve: Any, connected: Any, era: str) -> None:
    async with connected(era, PROXMOX_CA_FILE="", PROXMOX_TLS_FINGERPRINT=":".join(["AB"] * 32)) as client:
        failed, text = await ask(client, "proxmox_list_vms")
        assert failed
        assert "certificate" in text
        assert TOKEN not in text
    assert not fakepve.requests
