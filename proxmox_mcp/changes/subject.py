"""The guest that a change is about: who it is, its configuration and its state, read just before the plan is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proxmox_mcp.changes import guest_config
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.inventory import Guest, Inventory, Reader, called, flag, gather, read_object


@dataclass(frozen=True, slots=True)
class Subject:
    """One guest, as it was when it was read."""

    guest: Guest
    config: Mapping[str, Any]  # of a VM with the pending changes in it
    state: Mapping[str, Any]  # .../status/current

    @property
    def vmid(self) -> int:
        return self.guest.vmid

    @property
    def node(self) -> str:
        return self.guest.node

    @property
    def is_vm(self) -> bool:
        return self.guest.kind == "qemu"

    @property
    def name(self) -> str:
        """VM 101 (web)."""
        return f"{'VM' if self.is_vm else 'CT'} {self.vmid}{called(self.state.get('name') or self.guest.name)}"

    @property
    def targets(self) -> tuple[str, ...]:
        return (f"guest {self.vmid}", f"node {self.node}")

    @property
    def running(self) -> bool:
        return self.state.get("status") == "running"

    @property
    def qmpstatus(self) -> str:
        """What QEMU says of a VM: running, paused, prelaunch, stopped ...; "" for a container."""
        return str(self.state.get("qmpstatus") or "")

    @property
    def template(self) -> bool:
        return flag(self.config.get("template")) or self.guest.template

    @property
    def protected(self) -> bool:
        return flag(self.config.get("protection"))

    @property
    def lock(self) -> str:
        return str(self.config.get("lock") or self.state.get("lock") or "")

    @property
    def digest(self) -> str:
        return str(self.config.get("digest") or "")

    @property
    def ha_managed(self) -> bool:
        ha = self.state.get("ha")
        return isinstance(ha, Mapping) and flag(ha.get("managed"))

    def path(self, *rest: str | int) -> tuple[str | int, ...]:
        """The parts of a path below this guest."""
        return ("nodes", self.node, self.guest.kind, self.vmid, *rest)

    @property
    def disks(self) -> list[guest_config.Volume]:
        return guest_config.disks(self.config, self.guest.kind)


async def subject(inventory: Inventory, vmid: int, *, node: str | None = None, kind: str | None = None) -> Subject:
    """The guest with this id, ready to be judged. Raises where it is not, or is not what the caller takes it for."""
    guest = await inventory.guest(vmid, node=node, kind=kind, change=True)
    base = ("nodes", guest.node, guest.kind, guest.vmid)
    reads = {"config": ("config",), "state": ("status", "current")}

    def read(rest: tuple[str, ...]) -> Callable[[], Awaitable[Any]]:
        return lambda: read_object(inventory.api, *base, *rest)

    answers: dict[str, Mapping[str, Any]] = {}
    for name, result in (await gather({name: read(rest) for name, rest in reads.items()})).items():
        if isinstance(result, ProxmoxMcpError):
            raise result
        answers[name] = result
    return Subject(guest, answers["config"], answers["state"])


async def reread(api: Reader, guest: Subject) -> Subject:
    """The same guest as it is now, wherever it is now."""
    return await subject(Inventory(api), guest.vmid)
