"""Snapshots of a node: lists, which of them may go, batches of names for `zfs destroy`, what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from proxmox_mcp.errors import NotFound
from proxmox_mcp.zfs import names
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.tables import Row, integer

COLUMNS = ("name", "guid", "creation", "used", "referenced", "userrefs", "clones", "defer_destroy")
# A command line is one argument of the login shell, 128 KiB at most, and every character of it may travel as four.
BATCH = 100
BATCH_CHARACTERS = 12_000
_LINE = 1_500  # characters of one line of names
_TAGS = 100  # snapshots whose holds are asked for by name

# Names that belong to Proxmox's own machinery.
BASE = "__base__"
REPLICATION = "__replicate_"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot; `created` in Unix seconds of the node, sizes in bytes."""

    name: str
    guid: str
    created: int | None
    used: int | None
    referenced: int | None
    holds: int
    clones: tuple[str, ...]
    deferred: bool  # destroyed already, and gone as soon as its holds and clones are

    @property
    def dataset(self) -> str:
        return names.dataset_of(self.name)

    @property
    def part(self) -> str:
        return self.name.partition("@")[2]

    @property
    def mark(self) -> str:
        """Another one for a snapshot that was destroyed and made again under the same name."""
        return f"{self.name} {self.guid}"


def of(row: Row) -> Snapshot:
    """From a row with COLUMNS."""
    clones = row["clones"] or ""
    return Snapshot(
        name=row["name"] or "",
        guid=row["guid"] or "",
        created=integer(row["creation"]),
        used=integer(row["used"]),
        referenced=integer(row["referenced"]),
        holds=integer(row["userrefs"]) or 0,
        clones=tuple(clone for clone in clones.split(",") if clone),
        deferred=row["defer_destroy"] == "on",
    )


@dataclass(frozen=True, slots=True)
class Found:
    """Snapshots in ZFS's order; `cut`: bytes of the list that were left out."""

    snapshots: tuple[Snapshot, ...]
    cut: int = 0


async def listed(zfs: Zfs, dataset: str | None = None, *, below: bool = True) -> Found:
    """The snapshots of a dataset (and of those below it), or all of the node. Raises NotFound for a dataset that does not exist."""
    place = () if dataset is None else ("-r", dataset) if below else ("-d", "1", dataset)
    table = await zfs.table("zfs", "list", "-t", "snapshot", *place, columns=COLUMNS)
    return Found(tuple(of(row) for row in table.rows if row["name"] and "@" in row["name"]), table.cut)


async def one(zfs: Zfs, name: str) -> Snapshot | None:
    """A snapshot by its whole name; None when there is no such one."""
    try:
        table = await zfs.table("zfs", "list", "-t", "snapshot", name, columns=COLUMNS)
    except NotFound:
        return None
    return next((of(row) for row in table.rows if row["name"] == name), None)


def matching(snapshots: Iterable[Snapshot], glob: str) -> list[Snapshot]:
    """Those whose part behind the "@" the glob describes, case and all."""
    return [snapshot for snapshot in snapshots if fnmatchcase(snapshot.part, glob)]


def cannot_go(snapshot: Snapshot) -> str:
    """Why ZFS itself would refuse, or Proxmox lose what it stands on; "" when neither."""
    if snapshot.clones:
        return f"clones live on it: {', '.join(snapshot.clones)}"
    if snapshot.holds:
        return "it is held (zfs holds)"
    if snapshot.part == BASE:
        return "it is the base of linked clones"
    return ""


async def held_by(zfs: Zfs, snapshots: Sequence[Snapshot]) -> dict[str, str]:
    """The tags of the holds by snapshot, of the first hundred that are held."""
    held = [snapshot.name for snapshot in snapshots if snapshot.holds][:_TAGS]
    found: dict[str, list[str]] = {}
    if held:
        # 1: one of them is gone meanwhile
        for line in (await zfs.outcome("zfs", "holds", "-H", *held, ok=(0, 1))).stdout.splitlines():
            name, _, rest = line.partition("\t")
            found.setdefault(name, []).append(rest.partition("\t")[0])
    return {name: ", ".join(tags) for name, tags in found.items()}


def batches(snapshots: Iterable[Snapshot]) -> Iterator[list[Snapshot]]:
    """Snapshots of one dataset that fit into one `zfs destroy dataset@a,b,c`."""
    for group in grouped(snapshots).values():
        batch: list[Snapshot] = []
        size = 0
        for snapshot in group:
            size += len(snapshot.part) + 1
            if batch and (len(batch) == BATCH or size > BATCH_CHARACTERS):
                yield batch
                batch, size = [], len(snapshot.part) + 1
            batch.append(snapshot)
        yield batch


def operand(batch: Sequence[Snapshot]) -> str:
    """The names of a batch as `zfs destroy` takes them: dataset@a,b,c."""
    return f"{batch[0].dataset}@{','.join(snapshot.part for snapshot in batch)}"


def grouped(snapshots: Iterable[Snapshot]) -> dict[str, list[Snapshot]]:
    """By dataset."""
    found: dict[str, list[Snapshot]] = {}
    for snapshot in snapshots:
        found.setdefault(snapshot.dataset, []).append(snapshot)
    return found


def named(snapshots: Iterable[Snapshot], most: int) -> tuple[str, ...]:
    """Lines of names by dataset ("tank/data: a, b, c"), `most` characters in all; the rest is counted."""
    lines: list[str] = []
    left, unnamed = most, 0
    for dataset, group in grouped(snapshots).items():
        line = ""
        for part in (snapshot.part for snapshot in group):
            if len(part) + 2 > left:
                unnamed += 1
                continue
            left -= len(part) + 2
            if len(line) + len(part) > _LINE:
                lines.append(line)
                line = ""
            line = f"{line}, {part}" if line else f"{dataset}: {part}"
        if line:
            left -= len(dataset)
            lines.append(line)
    return (*lines, f"... and {unnamed} more") if unnamed else tuple(lines)


def that_fit(snapshots: Iterable[Snapshot], most: int) -> list[Snapshot]:
    """The first of them, by dataset: as many as `named` tells in `most` characters without leaving one out."""
    found: list[Snapshot] = []
    left = most
    for dataset, group in grouped(snapshots).items():
        left -= len(dataset)
        for snapshot in group:
            left -= len(snapshot.part) + 2
            if left < 0:
                return found
            found.append(snapshot)
    return found


def still_there(before: Iterable[Snapshot], now: Iterable[Snapshot]) -> tuple[list[Snapshot], list[Snapshot]]:
    """(gone, left) of those that were to go."""
    marks: Mapping[str, Snapshot] = {snapshot.mark: snapshot for snapshot in now}
    gone = [snapshot for snapshot in before if snapshot.mark not in marks]
    return gone, [marks[snapshot.mark] for snapshot in before if snapshot.mark in marks]
