"""A dataset with all that would go with it: children, snapshots, clones, holds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from proxmox_mcp.errors import NotFound
from proxmox_mcp.zfs import names
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.snapshots import COLUMNS, Snapshot, of
from proxmox_mcp.zfs.tables import Row, integer

_COLUMNS = ("type", "mounted", "mountpoint", "origin", *COLUMNS)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A file system or volume; `mountpoint` only while it is mounted, `place` where it is to be (none, legacy, a path)."""

    name: str
    volume: bool
    guid: str
    used: int | None
    mountpoint: str | None
    origin: str | None  # the snapshot that it is a clone of
    place: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Tree:
    """A dataset, what lies below it, and the snapshots of all of them."""

    top: Dataset
    below: tuple[Dataset, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    bookmarks: tuple[str, ...] = field(default=(), compare=False)

    @property
    def all(self) -> tuple[Dataset, ...]:
        return (self.top, *self.below)

    @property
    def mountpoints(self) -> dict[str, str | None]:
        return {dataset.name: dataset.mountpoint for dataset in self.all}

    @property
    def volumes(self) -> list[str]:
        return [dataset.name for dataset in self.all if dataset.volume]

    @property
    def clones_outside(self) -> dict[str, tuple[str, ...]]:
        """Snapshot -> its clones that would stay, and so keep it from going."""
        top = self.top.name
        found = {snapshot.name: tuple(c for c in snapshot.clones if not names.within(c, top)) for snapshot in self.snapshots}
        return {name: clones for name, clones in found.items() if clones}

    @property
    def held(self) -> list[Snapshot]:
        return [snapshot for snapshot in self.snapshots if snapshot.holds]

    @property
    def to_unmount(self) -> list[str]:
        """The uppermost mounted ones: each takes those below it along."""
        found: list[str] = []
        for dataset in sorted((d for d in self.all if d.mountpoint), key=lambda d: d.name):
            if not any(names.within(dataset.name, top) for top in found):
                found.append(dataset.name)
        return found

    @property
    def fingerprint(self) -> str:
        """Another one when something came, went or was made again."""
        marks = [*(f"{dataset.name} {dataset.guid}" for dataset in self.all), *(snapshot.mark for snapshot in self.snapshots)]
        return hashlib.sha256("\n".join(marks).encode()).hexdigest()[:16]

    @property
    def extent(self) -> str:
        """What it is, in numbers: "2 datasets below it and 14 snapshots"; "" for a bare one."""
        parts = []
        if self.below:
            parts.append(f"{len(self.below)} dataset{'s' if len(self.below) > 1 else ''} below it")
        if self.snapshots:
            parts.append(f"{len(self.snapshots)} snapshot{'s' if len(self.snapshots) > 1 else ''}")
        return " and ".join(parts)


async def tree(zfs: Zfs, name: str) -> Tree:
    """A dataset and all below it. Raises NotFound when it does not exist."""
    table = await zfs.table("zfs", "list", "-r", "-t", "filesystem,volume,snapshot,bookmark", name, columns=_COLUMNS)
    datasets: list[Dataset] = []
    snapshots: list[Snapshot] = []
    bookmarks: list[str] = []
    for row in table.rows:
        if row["type"] == "snapshot":
            snapshots.append(of(row))
        elif row["type"] == "bookmark":
            bookmarks.append(str(row["name"]))
        else:
            datasets.append(_dataset(row))
    top = next((dataset for dataset in datasets if dataset.name == name), None)
    if top is None:
        raise NotFound(f"there is no dataset {name} on {zfs.node}", status=0, hint="proxmox_zfs_list_datasets shows what there is")
    return Tree(top, tuple(dataset for dataset in datasets if dataset is not top), tuple(snapshots), tuple(bookmarks))


async def one(zfs: Zfs, name: str) -> Dataset | None:
    """A dataset by itself; None when there is no such one."""
    try:
        table = await zfs.table("zfs", "list", "-d", "0", "-t", "filesystem,volume", name, columns=_COLUMNS)
    except NotFound:
        return None
    return next((_dataset(row) for row in table.rows if row["name"] == name), None)


async def exists(zfs: Zfs, name: str) -> Tree | None:
    """A dataset and all below it; None when there is no such one."""
    try:
        return await tree(zfs, name)
    except NotFound:
        return None


def what_is_gone(before: Tree, now: Tree | None) -> tuple[list[str], list[str]]:
    """(names that are gone, names that are still there) of all that was to go."""
    left = {f"{d.name} {d.guid}" for d in now.all} | {s.mark for s in now.snapshots} if now is not None else set()
    marks: Sequence[tuple[str, str]] = [
        *((f"{dataset.name} {dataset.guid}", dataset.name) for dataset in before.all),
        *((snapshot.mark, snapshot.name) for snapshot in before.snapshots),
    ]
    return [name for mark, name in marks if mark not in left], [name for mark, name in marks if mark in left]


def _dataset(row: Row) -> Dataset:
    return Dataset(
        name=row["name"] or "",
        volume=row["type"] == "volume",
        guid=row["guid"] or "",
        used=integer(row["used"]),
        mountpoint=row["mountpoint"] if row["mounted"] == "yes" else None,
        origin=row["origin"],
        place=row["mountpoint"],
    )
