"""What stands in the way of a change, found by reading alone: certain refusals (obstacles) and what could not be checked (doubts)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from proxmox_mcp import privileges, tasks
from proxmox_mcp.changes.subject import Subject
from proxmox_mcp.errors import ApiError, AuthenticationError, Busy, InvalidArgument, NodeUnreachable, RequestTimeout
from proxmox_mcp.inventory import Inventory, number, read_rows
from proxmox_mcp.privileges import Need

T = TypeVar("T")


@dataclass
class Checks:
    """Collects what was found; `obstacles` and `doubts` go into the Plan."""

    inventory: Inventory
    certain: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)

    @property
    def obstacles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.certain))

    @property
    def doubts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.unsure))

    def refuse(self, why: str, *, when: bool = True) -> None:
        """An obstacle: this is certain to fail, or must not be done."""
        if when:
            self.certain.append(why)

    def doubt(self, what: str, *, when: bool = True) -> None:
        """Something that could not be checked."""
        if when:
            self.unsure.append(what)

    async def attempt(self, read: Awaitable[T], what: str) -> T | None:
        """The result of a read that only serves a check; where it fails, "what: why" is a doubt and the result None."""
        try:
            return await read
        except AuthenticationError:
            raise
        except (ApiError, RequestTimeout) as error:
            self.doubt(f"{what}: {error.said if isinstance(error, ApiError) and error.said else error.what}")
            return None

    async def privileges(self, *needs: Need) -> None:
        """Each need that the token does not meet is an obstacle."""
        held = (await self.inventory.permissions()).entries
        if held is None:
            self.doubt("the token's privileges: its permission list could not be read")
            return
        for need in privileges.judge(needs, held).lacking:
            self.refuse(f"the token lacks {need}")

    async def privileges_since(self, since: tuple[int, int], *needs: Need) -> None:
        """Needs that only this version of Proxmox VE and later ones have."""
        version = await self.inventory.version()
        if version is None or version >= since:
            await self.privileges(*needs)

    async def unlocked(self, guest: Subject, *, but: tuple[str, ...] = ()) -> None:
        """A lock is an obstacle: which one, and the task that holds it when it can be seen."""
        if guest.lock and guest.lock not in but:
            busy = f"{guest.name} is busy: it is locked ({guest.lock})"
            holder = await tasks.who_holds_the_lock(self.inventory.api, guest.path(), Busy(busy, status=500))
            self.refuse(". ".join(filter(None, (busy, holder.replace("\n", "; ")))))

    async def new_id(self, wanted: int | None, argument: str) -> int:
        """The id of a guest to be made: the one wanted, else the next free one. A taken one is an obstacle that names a free one."""
        if wanted is None:
            return await self.inventory.next_free_id()
        if not await self.inventory.is_free(wanted):
            owner = next((guest for guest in await self.inventory.guests() if guest.vmid == wanted), None)
            by = f" by {'VM' if owner.kind == 'qemu' else 'CT'} {wanted} on {owner.node}" if owner else ""
            self.refuse(f"{argument} {wanted} is taken{by}; the next free id is {await self.inventory.next_free_id()}")
        return wanted

    async def node(self, name: str | None) -> str:
        """The node that is named, which must be online and spelt right; without a name the only one there is."""
        if name is None:
            return (await self.inventory.node_or_only(None)).name
        return (await self.inventory.node(name, change=True, live=True)).name

    async def place_for_new(self, node: str | None, storage: str) -> str:
        """The node for a new guest: the one named, else the only one, else the only one that has its storage."""
        if node is not None:
            return await self.node(node)
        known = [entry for entry in await self.inventory.nodes() if entry.online is not False]
        if len(known) == 1:
            return known[0].name
        ref = await self.inventory.storage(storage)
        fits = [entry.name for entry in known if ref.nodes is None or entry.name in ref.nodes]
        if not fits:
            raise NodeUnreachable(
                f"storage {storage} is on {', '.join(sorted(ref.nodes or ())) or 'no node'} alone, not online now", status=0
            )
        if len(fits) > 1:
            raise InvalidArgument("node", f"say on which: {', '.join(fits)}")
        return fits[0]

    async def bridge(self, node: str, bridge: str, *, tag: str | None = None, starts: bool = False) -> tuple[str, ...]:
        """The right to use a bridge or VNet, and whether the node has it: without it a guest can be made but not started. Notes."""
        zone = "localnetwork"
        api = self.inventory.api
        rows = await self.attempt(read_rows(api, "nodes", node, "network", params={"type": "any_bridge"}), f"bridges of {node}")
        row = next((row for row in rows or () if row.get("iface") == bridge), None)
        if row is not None and row.get("type") == "vnet":
            vnets = await self.attempt(read_rows(api, "cluster", "sdn", "vnets"), f"the zone of VNet {bridge}")
            zone = next((str(vnet.get("zone")) for vnet in vnets or () if vnet.get("vnet") == bridge), "")
        if zone:
            await self.privileges(Need(f"/sdn/zones/{zone}/{bridge}" + (f"/{tag}" if tag else ""), ("SDN.Use",)))
        if row is not None or rows is None:
            return ()
        seen = ", ".join(sorted(str(row.get("iface")) for row in rows)) or "none"
        absent = f"no bridge {bridge} is visible on {node} (visible: {seen}); a guest with it does not start"
        self.refuse(absent, when=starts)
        return () if starts else (absent,)

    async def cpus(self, node: str, vcpus: int, *, starts: bool = False) -> tuple[str, ...]:
        """Whether the node has the CPUs for a VM with so many: with fewer it can be made but not started. Notes."""
        there = number((await self.inventory.node(node)).row.get("maxcpu"))
        if there is None or vcpus <= there:
            return ()
        short = f"{node} has {there:g} CPUs: a VM with {vcpus} vCPUs does not start there"
        self.refuse(short, when=starts)
        return () if starts else (short,)


async def next_id_instead(inventory: Inventory, path: tuple[str | int, ...], params: Mapping[str, Any]) -> str:
    """For a refused creation or clone: a free id when somebody else took the wanted one meanwhile; "" otherwise."""
    wanted = params.get("newid") if path[-1] == "clone" else params.get("vmid") if path[-1] in ("qemu", "lxc") else None
    if not isinstance(wanted, int):
        return ""
    try:
        if await inventory.is_free(wanted):
            return ""
        return f"Id {wanted} is taken; the next free one is {await inventory.next_free_id()}."
    except (ApiError, RequestTimeout):
        return ""
