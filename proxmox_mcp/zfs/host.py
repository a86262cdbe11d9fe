"""One node's zfs and zpool, read over the audited door; what a suspended pool would hang is refused beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proxmox_mcp import limits
from proxmox_mcp.errors import NotFound, SshError
from proxmox_mcp.plan import HostCommand, HostTarget
from proxmox_mcp.zfs import names, tables
from proxmox_mcp.zfs.failures import failure

if TYPE_CHECKING:
    from proxmox_mcp.app import Call
    from proxmox_mcp.ssh import Outcome

# 50,000 snapshots with their properties are about 10 MB
LIST_BYTES = 48_000_000
SUSPENDED = "SUSPENDED"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a `-Hp` list; `cut`: bytes that were left out of its middle."""

    rows: list[tables.Row]
    cut: int = 0


@dataclass(frozen=True)
class Zfs:
    """A node that was reached."""

    call: Call
    node: str

    @classmethod
    async def on(cls, call: Call, node: str | None) -> Zfs:
        """The node of this name, or the configured SSH host. Raises as `Door.node`, and InvalidArgument where reads are limited."""
        place = await call.door.node(node)
        limits.check_read(call.settings, node=place.name)
        return cls(call, place.name)

    def command(
        self, *argv: str, timeout: float = 120.0, ok: tuple[int, ...] = (0,), stdin: bytes | None = None, progress: bool = False
    ) -> HostCommand:
        """A step of a plan on this node."""
        return HostCommand(HostTarget(node=self.node), argv, stdin=stdin, timeout=timeout, ok=ok, progress=progress)

    async def outcome(
        self, *argv: str, stdin: bytes | None = None, timeout: float = 60.0, max_bytes: int = 1_000_000, ok: tuple[int, ...] = (0,)
    ) -> Outcome:
        """The end of a command that only reads. Raises SshError or NotFound unless its status is in `ok`."""
        command = HostCommand(HostTarget(node=self.node), argv, stdin=stdin, timeout=timeout, max_bytes=max_bytes, ok=ok)
        found = await self.call.door.run(command)
        if found.exit_status not in ok:
            raise failure(found, argv, self.node)
        if found.open_end:
            raise SshError(f"the output of {argv[0]} on {self.node} did not come to its end", hint="the wire is slow: call again")
        return found

    async def read(self, *argv: str, timeout: float = 60.0) -> str:
        """What a command that only reads prints."""
        return (await self.outcome(*argv, timeout=timeout)).stdout

    async def table(self, *argv: str, columns: Sequence[str]) -> Table:
        """`zfs list` or `zpool list` with -Hp and these columns, "name" among them; `argv`: the command, what comes before and behind."""
        program, verb, *rest = argv
        found = await self.outcome(program, verb, "-Hp", "-o", ",".join(columns), *rest, timeout=180.0, max_bytes=LIST_BYTES)
        rows = tables.rows(found.stdout, columns)
        # names become operands: what ZFS itself would not call so is no row
        return Table([row for row in rows if names.is_valid(row["name"] or "")], found.omitted_bytes)

    async def pools(self) -> dict[str, str]:
        """Health by pool: ONLINE, DEGRADED, SUSPENDED ... (`zpool list` answers where `zfs list` would hang or leave a pool out)."""
        rows = (await self.table("zpool", "list", columns=("name", "health"))).rows
        return {row["name"]: row["health"] or "" for row in rows if row["name"]}

    async def must_answer(self, name: str) -> dict[str, str]:
        """The pools, once the one that this name is in exists and answers. Raises NotFound, or SshError for a suspended pool."""
        pools = await self.pools()
        pool = names.pool_of(name)
        if pool not in pools:
            raise NotFound(f"there is no pool {pool} on {self.node}; there are: {', '.join(sorted(pools)) or 'none'}", status=0)
        if pools[pool] == SUSPENDED:
            raise suspended(pool, self.node)
        return pools

    async def clock(self) -> int:
        """Unix seconds by the node's own clock."""
        now = tables.integer((await self.read("date", "+%s")).strip())
        if now is None:
            raise SshError(f"{self.node} did not tell its time", tried=f"date +%s on {self.node}")
        return now


def suspended(pool: str, node: str) -> SshError:
    """Why nothing is tried on such a pool."""
    return SshError(
        f"pool {pool} on {node} is SUSPENDED: it lost its disks, and whatever touches it hangs until they are back. Nothing was run.",
        hint=f"connect the disks, then `zpool clear {pool}`; proxmox_zfs_pool_status pool={pool} shows them",
    )


def missing_pools(pools: dict[str, str]) -> tuple[str, ...]:
    """A note for each pool that a list leaves out."""
    return tuple(f"pool {name} is SUSPENDED: it is left out of this list" for name, health in pools.items() if health == SUSPENDED)
