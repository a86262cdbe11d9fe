"""The tools against a real sshd whose programs are those of tests/zfs/machine.py: real connections, a real shell, the model behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import pipeline
from proxmox_mcp.app import App
from proxmox_mcp.registry import all_tools
from proxmox_mcp.ssh import command
from tests.piped import FakePerson
from tests.served_api import ServedApi, settings
from tests.sshd import start_sshd
from tests.zfs.machine import Machine
from tests.zfs.node import Node


class FarSide:
    """One server, one machine. Streams may be written to tmp_path/backup."""

    def __init__(self, app: App, machine: Machine) -> None:
        self.app, self.machine = app, machine
        self.person = FakePerson()

    async def call(self, called: str, **arguments: Any) -> pipeline.Result:
        tool = next(tool for tool in all_tools() if tool.name == f"proxmox_{called}")
        found = await pipeline.run(tool, arguments, self.app, self.person)
        assert isinstance(found, pipeline.Result)
        return found


@asynccontextmanager
async def far_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> AsyncIterator[FarSide]:
    machine = Machine.make(tmp_path, Node.sample())
    monkeypatch.setattr(command, "PATH", machine.path)
    monkeypatch.setitem(command.ENVIRONMENT, "PATH", machine.path)
    (tmp_path / "backup").mkdir()
    with start_sshd(tmp_path) as sshd, ServedApi() as api:
        api.on("GET", "/storage", [])
        api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
        api.on("GET", "/cluster/resources", [])
        api.on("GET", "/access/permissions", {"/": {"Sys.Audit": 1, "VM.Audit": 1, "Datastore.Audit": 1}})
        target = sshd.target()
        values: dict[str, Any] = {
            "ssh_host": target.host,
            "ssh_port": target.port,
            "ssh_user": target.user,
            "ssh_key_path": target.key_file,
            "ssh_known_hosts": str(target.known_hosts),
            "audit_dir": tmp_path / "audit",
            "zfs_send_dirs": (str(tmp_path / "backup"),),
            **changes,
        }
        app = App(settings(api, **values))
        try:
            yield FarSide(app, machine)
        finally:
            await app.close()
