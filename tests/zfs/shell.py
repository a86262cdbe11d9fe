"""The tools against a modelled node: the audited door and all above it are real, in the pool's place stands the model.

async with at_the_node(tmp_path) as here:
    text = await here.text("zfs_list_datasets", pool="tank")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxmox_mcp import pipeline
from proxmox_mcp.app import App
from proxmox_mcp.errors import Refused
from proxmox_mcp.registry import all_tools
from proxmox_mcp.ssh import Outcome
from proxmox_mcp.ssh.command import prepare
from proxmox_mcp.ssh_targets import SshTarget
from tests.cluster import ServedCluster, served_cluster
from tests.cluster.world import Guest
from tests.piped import FakePerson, records
from tests.served_api import settings
from tests.zfs.node import Node

FLAGS = {"confirm": True, "i_understand_data_loss": True}


def outcome(status: int | None, stdout: str = "", stderr: str = "", **more: Any) -> Outcome:
    """The end of a command."""
    known: dict[str, Any] = {"signal": None, "lost": False, "timed_out": False, "capped": False, "omitted_bytes": 0, "omitted_stderr": 0}
    known |= {"replaced": False, "duration": 0.1, "stdout_bytes": len(stdout), "stdout_sha256": ""}
    return Outcome(exit_status=status, stdout=stdout, stderr=stderr, **{**known, **more})


@dataclass
class ModelPool:
    """Stands in for SshPool: each command is written as the real one would send it, then the model answers."""

    node: Node
    name: str = "pve1"
    ran: list[list[str]] = field(default_factory=list)
    sent: list[bytes | None] = field(default_factory=list)
    instead: Callable[[Sequence[str]], Outcome | None] = lambda argv: None  # answers a command in the model's place

    def known_hostname(self, target: SshTarget) -> str | None:
        return None

    async def hostname(self, target: SshTarget, **more: Any) -> str:
        return self.name

    async def run(
        self,
        target: SshTarget,
        argv: Sequence[str],
        *,
        stdin: bytes | None,
        timeout: float,
        max_bytes: int,
        on_output: Any,
        host: str | None,
        **more: Any,
    ) -> Outcome:
        assert host == self.name, "a node's command names its machine"
        prepare(argv, timeout=timeout, stdin=stdin, host=host)
        self.ran.append(list(argv))
        self.sent.append(stdin)
        answer = self.instead(argv)
        if answer is not None:
            return answer
        if argv[0] == "sh":
            # open-files and the look at a directory: nothing is open, there is room
            return outcome(0, "u 0\n" if "open-files" in argv else "free 999999999999\n")
        if argv[0] == "systemctl":
            return outcome(3, "inactive\n")
        return outcome(*self.node.run(list(argv), stdin or b""))

    async def close(self) -> None:
        pass

    @property
    def changes(self) -> list[list[str]]:
        """What ran that changes something."""
        verbs = {"create", "destroy", "snapshot", "set", "unmount", "scrub", "receive"}
        return [argv for argv in self.ran if argv[1] in verbs and "-n" not in argv]


@dataclass
class Here:
    """One server, one node, one cluster."""

    app: App
    api: ServedCluster
    pool: ModelPool
    tmp_path: Path
    person: FakePerson = field(default_factory=FakePerson)

    @property
    def node(self) -> Node:
        return self.pool.node

    async def call(self, called: str, **arguments: Any) -> pipeline.Result:
        tool = next(tool for tool in all_tools() if tool.name == f"proxmox_{called}")
        found = await pipeline.run(tool, arguments, self.app, self.person)
        assert isinstance(found, pipeline.Result)
        return found

    async def text(self, called: str, **arguments: Any) -> str:
        found = await self.call(called, **arguments)
        assert not found.failed, found.text
        return found.text

    async def refusal(self, called: str, **arguments: Any) -> str:
        """Why nothing was done, and that nothing was."""
        before = list(self.pool.changes)
        try:
            found = await self.call(called, **arguments)
        except Refused as refused:
            assert self.pool.changes == before
            return str(refused)
        raise AssertionError(found.text)

    def log(self) -> list[dict[str, Any]]:
        return records(self.tmp_path, "host")


def guests() -> dict[int, Guest]:
    """CT 101 runs on pve1 with its disk on the storage `tank`; VM 200 is stopped there; CT 205 has no disk of ZFS."""
    known = [
        Guest(101, "pve1", "lxc", "mail", config={"rootfs": "tank:subvol-101-disk-0,size=8G"}),
        Guest(200, "pve1", "qemu", "db", status="stopped", config={"scsi0": "tank:vm-200-disk-0,size=32G"}),
        Guest(205, "pve1", "lxc", "proxy"),
    ]
    return {guest.vmid: guest for guest in known}


@asynccontextmanager
async def at_the_node(tmp_path: Path, **changes: Any) -> AsyncIterator[Here]:
    with served_cluster(nodes=1, guests=0) as api:
        api.world.guests.clear()
        api.world.guests.update(guests())
        api.world.storages["tank"] = {"storage": "tank", "type": "zfspool", "pool": "tank/data", "content": "images,rootdir"}
        app = App(settings(api, audit_dir=tmp_path / "audit", ssh_host="127.0.0.1", **changes))
        pool = ModelPool(Node.sample())
        app.__dict__["ssh"] = pool
        try:
            yield Here(app, api, pool, tmp_path)
        finally:
            await app.close()
