"""Changes against fakepve over TLS, with real tasks, locks and faults: create, power, snapshot, clone of VMs and containers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest

from proxmox_mcp import audit, pipeline
from proxmox_mcp.app import App
from proxmox_mcp.config import Settings
from tests.piped import FakePerson, records
from tests.pve_schema import validator
from tests.tools.changes import tool

pytest.importorskip("fakepve")
pytestmark = pytest.mark.anyio
YES = {"confirm": True}
ALL = {"confirm": True, "i_understand_data_loss": True}
DISK = {"memory": 2048, "cores": 2, "scsi0": "local-lvm:vm-101-disk-0,size=32G", "net0": "virtio=BC:24:11:00:00:65,bridge=vmbr0"}
ROOT = {"memory": 512, "cores": 1, "hostname": "mail", "rootfs": "local-lvm:vm-205-disk-0,size=8G", "unprivileged": 1}


@dataclass
class EndToEnd:
    pve: Any
    app: App
    tmp_path: Path

    async def call(self, called: str, /, **arguments: Any) -> pipeline.Result:
        found = await pipeline.run(tool(called), arguments, self.app, FakePerson())
        assert isinstance(found, pipeline.Result)
        return found

    @property
    def writes(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Recorded changes, each one held against the real API's schema."""
        sent = []
        for method, path, body in self.pve.requests:
            path, values = unquote(path).removeprefix("/api2/json"), dict(parse_qsl((body or b"").decode(), keep_blank_values=True))
            if method != "GET":
                if validator() is not None:
                    assert validator().check(method, path, values) == []
                sent.append((method, path, values))
        return sent


@pytest.fixture
def cluster(fakepve: Any, fakepve_settings: Settings, tmp_path: Path) -> Any:
    """One node with a running VM 101 and container 205, a template, and storages for all of it."""
    template = {"content": "vztmpl", "format": "tzst", "size": 1000, "ctime": 1}
    fakepve.storages["local"].setdefault("volumes", {})["vztmpl/debian-13.tar.zst"] = template
    fakepve.add_vm(101, "web", status="running", config=dict(DISK))
    fakepve.add_vm(900, "golden", config={**DISK, "scsi0": "local-lvm:base-900-disk-0,size=32G"}, template=True)
    fakepve.add_ct(205, status="running", config=dict(ROOT))

    @asynccontextmanager
    async def opened(**changes: Any) -> AsyncIterator[EndToEnd]:
        app = App(replace(fakepve_settings, audit_dir=tmp_path / "audit", approval="off", **changes))
        try:
            yield EndToEnd(fakepve, app, tmp_path)
        finally:
            await app.close()

    return opened


# --- create


async def test_a_vm_is_created_and_its_disks_are_named(cluster: Any) -> None:
    async with cluster() as lab:
        found = await lab.call("create_vm", name="new", disk_storage="local-lvm", disk_gb="1.5G", start=True, **YES)
        assert found.text.startswith("Done: create VM 100 (new) on pve1"), found.text
        assert "vmid: 100\nstatus: running\n" in found.text
        assert "scsi0 (local-lvm:" in found.text
        made = lab.pve.vm(100)
        assert made.config["scsihw"] == "virtio-scsi-single"
        assert [path for method, path, _ in lab.writes] == ["/nodes/pve1/qemu"]
        assert audit.verify(lab.tmp_path / "audit", "api", lab.app.audit_keys).verdict == "INTACT"


async def test_a_container_is_created_unprivileged(cluster: Any) -> None:
    async with cluster() as lab:
        arguments = {"ostemplate": "local:vztmpl/debian-13.tar.zst", "disk_storage": "local-lvm", "hostname": "ct", "password": "hunter22"}
        found = await lab.call("create_container", **arguments, start=True, **YES)
        assert found.text.startswith("Done: create unprivileged CT 100 (ct) on pve1"), found.text
        assert lab.pve.ct(100).config["unprivileged"] == 1
        assert lab.pve.ct(100).status == "running"
        assert "hunter22" not in found.text + str(records(lab.tmp_path))


# --- power


@pytest.mark.parametrize("vmid", [101, 205])
async def test_power_there_and_back(vmid: int, cluster: Any) -> None:
    async with cluster() as lab:
        guest = lab.pve.vm(vmid) or lab.pve.ct(vmid)
        for action, status in (("reboot", "running"), ("shutdown", "stopped"), ("start", "running"), ("stop", "stopped")):
            found = await lab.call("vm_power", vmid=vmid, action=action, **YES)
            assert found.text.startswith("Done: "), found.text
            assert guest.status == status
        again = await lab.call("vm_power", vmid=vmid, action="stop", **YES)
        assert again.text.startswith("Nothing to do")
        assert len(lab.writes) == 4


@pytest.mark.fakepve(time_scale=1)
async def test_g51_a_guest_that_ignores_a_shutdown_is_powered_off_by_a_call_of_its_own(cluster: Any) -> None:
    async with cluster(max_wait=0.3) as lab:
        lab.pve.vm(101).acpi = False
        found = await lab.call("vm_power", vmid=101, action="shutdown", wait_seconds=20, **YES)
        assert found.text.startswith("Started, still running: shut down VM 101 (web)"), found.text
        assert lab.pve.vm(101).status == "running"
        assert len(lab.writes) == 1
        shown = await lab.call("vm_power", vmid=101, action="stop", dry_run=True)
        assert "overrule-shutdown=1" in shown.text


async def test_g38_a_start_with_an_error_is_the_tasks_own_word(cluster: Any) -> None:
    async with cluster() as lab:
        await lab.call("vm_power", vmid=101, action="stop", **YES)
        lab.pve.vm(101).start_error = "can't activate LV 'pve/vm-101-disk-0'"
        found = await lab.call("vm_power", vmid=101, action="start", **YES)
        assert found.failed
        assert "can't activate LV 'pve/vm-101-disk-0'" in found.text
        assert records(lab.tmp_path)[-1]["state"] == "failed"


# --- snapshots


@pytest.mark.parametrize("vmid", [101, 205])
async def test_a_snapshot_is_taken_returned_to_and_deleted(vmid: int, cluster: Any) -> None:
    async with cluster() as lab:
        guest = lab.pve.vm(vmid) or lab.pve.ct(vmid)
        for number, name in enumerate(("first", "second"), 1):
            found = await lab.call("snapshot", vmid=vmid, action="create", snapname=name, description="Größe", **YES)
            assert found.text.startswith(f"Done: take snapshot {name}"), found.text
            assert len(guest.snapshots) == number
        assert guest.snapshots["first"]["description"].strip() == "Größe"
        found = await lab.call("snapshot", vmid=vmid, action="rollback", snapname="second", **YES)
        assert found.text.startswith("Done: roll "), found.text
        found = await lab.call("snapshot", vmid=vmid, action="delete", snapname="second", **ALL)
        assert "\nsnapshots: first\n" in found.text
        assert list(guest.snapshots) == ["first"]


# --- clones


async def test_a_vm_a_template_and_a_stopped_container_are_cloned(cluster: Any) -> None:
    async with cluster() as lab:
        await lab.call("vm_power", vmid=205, action="stop", **YES)
        for vmid, how, name in ((101, "full", "web2"), (900, "linked", "fresh"), (205, "full", "mail2")):
            found = await lab.call("clone_vm", vmid=vmid, name=name, **YES)
            assert found.text.startswith("Done: clone "), found.text
            assert f"\nclone: {how}\n" in found.text
            assert f"\nname: {name}\n" in found.text
        assert {vm.name for vm in lab.pve.vms} >= {"web2", "fresh"}
        assert [values["newid"] for _, path, values in lab.writes if path.endswith("/clone")] == ["100", "102", "103"]


async def test_an_id_that_is_taken_between_plan_and_request_is_answered_with_a_free_one(cluster: Any) -> None:
    async with cluster() as lab:
        lab.pve.fail("POST", "/qemu/101/clone", status=500, message="unable to create VM 100: config file already exists")
        found = await lab.call("clone_vm", vmid=101, **YES)
        assert found.failed
        assert "unable to create VM 100: config file already exists" in found.text
        assert len(lab.writes) == 1


# --- faults


async def test_a_node_that_dies_between_intent_and_request_leaves_the_outcome_unknown(cluster: Any) -> None:
    async with cluster() as lab:
        lab.pve.add_node("pve2")
        lab.pve.add_vm(102, "far", node="pve2", config=dict(DISK))
        log = lab.app.log("api")
        intend = log.intent
        log.intent = lambda entry: (intend(entry), lab.pve.set_node_offline("pve2"))[0]
        found = await lab.call("vm_power", vmid=102, action="start", **YES)
        assert found.failed
        assert found.text.startswith("Outcome unknown: ")
        assert "most likely the change was not delivered" in found.text
        assert len(lab.writes) == 1
        assert records(lab.tmp_path)[-1]["state"] == "unknown"
        assert lab.pve.vm(102).status == "stopped"


async def test_a_connection_cut_after_the_request_was_sent_is_unknown_and_not_repeated(cluster: Any) -> None:
    async with cluster() as lab:
        log = lab.app.log("api")
        intend = log.intent
        log.intent = lambda entry: (intend(entry), lab.pve.flaky_network(drop_rate=1.0))[0]
        found = await lab.call("snapshot", vmid=101, action="create", snapname="fresh", **YES)
        assert found.text.startswith("Outcome unknown: take snapshot fresh"), found.text
        assert records(lab.tmp_path)[-1]["state"] == "unknown"


async def test_a_lock_of_the_configuration_is_found_beforehand(cluster: Any) -> None:
    async with cluster() as lab:
        lab.pve.vm(101).lock = "backup"
        for called, arguments in (
            ("vm_power", {"action": "shutdown"}),
            ("snapshot", {"action": "create", "snapname": "fresh"}),
            ("clone_vm", {}),
            ("create_backup", {}),
            ("resize_vm", {"memory_mb": 4096}),
        ):
            shown = await lab.call(called, vmid=101, **arguments, dry_run=True)
            assert "VM 101 (web) is busy: it is locked (backup)" in shown.text
        assert not lab.writes


async def test_without_quorum_nothing_is_done_and_it_is_said(cluster: Any) -> None:
    async with cluster() as lab:
        lab.pve.lose_quorum()
        found = await lab.call("snapshot", vmid=101, action="create", snapname="fresh", **YES)
        assert found.failed
        assert "quorum" in found.text
        assert not lab.pve.vm(101).snapshots


# --- size


async def test_memory_of_a_running_vm_is_pending_and_a_containers_in_effect(cluster: Any) -> None:
    async with cluster() as lab:
        found = await lab.call("resize_vm", vmid=101, memory_mb=4096, **YES)
        assert "memory: 4096 MiB, pending" in found.text
        found = await lab.call("resize_vm", vmid=205, memory_mb=1024, cores=2, **YES)
        assert "memory: 1024 MiB, in effect\ncores: 2, in effect" in found.text
        await lab.call("vm_power", vmid=101, action="reboot", **YES)
        again = await lab.call("resize_vm", vmid=101, memory_mb=4096, **YES)
        assert again.text == "Nothing to do, no request was sent: VM 101 (web) has 4096 MiB of memory already."
