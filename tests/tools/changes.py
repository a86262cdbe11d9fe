"""Calls a changing tool the way the server does, against a served cluster that also takes the requests that change something.

    async with changing(tmp_path) as world:
        world.takes("POST", "/nodes/{node}/qemu/{vmid}/status/start", "qmstart")
        text = await world.call("vm_power", vmid=102, action="start", confirm=True)

Guests: VM 101 (web) and CT 205 (mail) run on pve1, VM 102 and CT 206 are stopped there, VM 103 is on pve2, VM 900 and CT 901 are templates.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp import pipeline
from proxmox_mcp.app import App
from proxmox_mcp.errors import Refused
from proxmox_mcp.registry import _TOOLS, Tool
from tests.cluster import ADMIN, ServedCluster, served_cluster
from tests.cluster.rights import Rights
from tests.cluster.world import GIB, Guest
from tests.piped import FakePerson, records
from tests.pve_schema import validator
from tests.served_api import Request, settings

NOW = 1_796_091_400
SECOND = 1_796_000_000
SNAPSHOTS = [
    {"name": "before_upgrade", "snaptime": SECOND - 86_400, "description": "first", "vmstate": 0},
    {"name": "nightly", "snaptime": SECOND, "description": "", "parent": "before_upgrade", "vmstate": 0},
]
WRITES = {"POST", "PUT", "DELETE"}


def guests() -> dict[int, Guest]:
    """The guests of the served cluster."""
    known = [
        Guest(101, "pve1", "qemu", "web", snapshots=[dict(row) for row in SNAPSHOTS]),
        Guest(102, "pve1", "qemu", "db", status="stopped"),
        Guest(103, "pve2", "qemu", "git"),
        Guest(205, "pve1", "lxc", "mail", disk=8 * GIB, snapshots=[dict(row) for row in SNAPSHOTS]),
        Guest(206, "pve1", "lxc", "files", status="stopped", disk=8 * GIB),
        Guest(900, "pve1", "qemu", "golden", status="stopped", template=True),
        Guest(901, "pve1", "lxc", "base", status="stopped", template=True, config={"template": 1}),
    ]
    return {guest.vmid: guest for guest in known}


@dataclass
class Changes:
    """One served cluster, one server process's worth of state."""

    api: ServedCluster
    app: App
    tmp_path: Path
    asked: FakePerson = field(default_factory=FakePerson)

    # --- what the cluster does with a change

    def takes(
        self,
        method: str,
        path: str,
        kind: str = "task",
        *,
        status: str = "OK",
        log: list[str] | None = None,
        ends: bool = True,
        effect: Callable[[Request], None] | None = None,
    ) -> None:
        """Answers this change with the UPID of a task that ended with `status` (or, `ends` false, goes on); `effect` comes first."""

        def answer(request: Request) -> str:
            if effect is not None:
                effect(request)
            node = request.vars.get("node", "pve1")
            ident = request.vars.get("vmid", request.params.get("vmid", ""))
            return self.api.world.task(node, kind, ident, age=0, took=1 if ends else None, status=status, log=log, token="mcp").upid

        self.api.on(method, path, answer)

    def power(self, vmid: int, status: str) -> Callable[[Request], None]:
        """The effect of a power action."""

        def effect(_: Request) -> None:
            self.api.world.guests[vmid].status = status

        return effect

    # --- calls

    async def call(self, called: str, /, *, person: FakePerson | None = None, **arguments: Any) -> str:
        """The text of an answer that is no failure."""
        found = await self.result(called, person=person, **arguments)
        assert not found.failed, found.text
        return found.text

    async def result(self, called: str, /, *, person: FakePerson | None = None, **arguments: Any) -> pipeline.Result:
        found = await pipeline.run(tool(called), arguments, self.app, person or self.asked)
        assert isinstance(found, pipeline.Result)
        return found

    async def refusal(self, called: str, /, **arguments: Any) -> str:
        """The text of a refusal; nothing was sent."""
        before = len(self.api.writes)
        with pytest.raises(Refused) as refused:
            await self.result(called, **arguments)
        assert len(self.api.writes) == before
        return str(refused.value)

    async def obstacles(self, called: str, /, **arguments: Any) -> list[str]:
        """What stands in the way, by a dry run; nothing is sent."""
        text = await self.call(called, **arguments, dry_run=True)
        assert not self.api.writes
        _, found, rest = text.partition("Stands in the way:\n")
        return [line.removeprefix("- ") for line in rest.splitlines()] if found else []

    # --- what was seen

    @property
    def sent(self) -> list[tuple[str, str, dict[str, Any]]]:
        return [(request.method, request.path, request.params) for request in self.api.writes]

    @property
    def log(self) -> list[dict[str, Any]]:
        return records(self.tmp_path)

    def config(self, vmid: int, **options: Any) -> None:
        """Options on top of a guest's configuration."""
        self.api.world.guests[vmid].config.update(options)

    def grant(self, rights: Mapping[str, Mapping[str, int]]) -> None:
        self.api.rights = {path: dict(held) for path, held in rights.items()}

    def without(self, *privileges: str) -> None:
        """The token lacks these from now on."""
        self.grant({path: {name: 1 for name in held if name not in privileges} for path, held in ADMIN.items()})


MODULES = (
    "vm_power", "guest_create", "guest_copy", "snapshot_manage", "backup_manage", "storage_config", "disk_prepare", "lvm_manage",
    "zfs_pool_manage",
)  # fmt: skip


def tools() -> dict[str, Tool]:
    """The 13 changing tools, by name without the prefix."""
    modules = {importlib.import_module(f"proxmox_mcp.tools.{module}").__name__ for module in MODULES}
    return {name.removeprefix("proxmox_"): record for name, record in _TOOLS.items() if record.function.__module__ in modules}


def tool(name: str) -> Tool:
    return tools()[name]


@asynccontextmanager
async def changing(
    tmp_path: Path, *, rights: Rights = ADMIN, nodes: int = 2, version: str = "9.2.11", **changes: Any
) -> AsyncIterator[Changes]:
    """A served cluster and an App that reaches it; every recorded request is held against the real API's schema at the end."""
    with served_cluster(nodes, 0, rights=rights, version=version, now=NOW) as api:
        api.world.guests = guests()
        for guest in api.world.guests.values():
            api.world._disk(guest)
        app = App(settings(api, audit_dir=tmp_path / "audit", approval="off", **changes))
        try:
            yield Changes(api, app, tmp_path)
        finally:
            await app.close()
        if validator() is not None:
            hold(api.requests)


def hold(requests: list[Request]) -> None:
    """No request is one that the real API would refuse for its parameters."""
    wrong = {}
    for request in requests:
        found = validator().check(request.method, request.path, request.params)
        if found:
            wrong[f"{request.method} {request.target} {dict(request.form)}"] = found
    assert not wrong
