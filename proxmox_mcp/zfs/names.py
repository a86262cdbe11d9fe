"""ZFS's own grammar of names: pools, datasets, snapshots, bookmarks, properties. Raises ValueError with the rule.

A name that passes never begins with "-", so it can stand as an operand; it holds no tab, comma, "%" or line break, so lists of names can
be joined with commas and split at tabs.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

LONGEST = 255  # bytes of a whole name, the snapshot's part included
_DEEPEST = 50
_PART = r"[A-Za-z0-9_.: -]+"
_POOL = re.compile(r"[A-Za-z][A-Za-z0-9_.: -]*", re.ASCII)
_COMPONENT = re.compile(_PART, re.ASCII)
_NATIVE = re.compile(r"[a-z][a-z0-9_]{0,63}(?:@[A-Za-z0-9_.:#-]{1,128})?", re.ASCII)
_USER = re.compile(r"[a-z0-9._+][a-z0-9._+-]*:[a-z0-9:._+-]*", re.ASCII)
# a volume of a guest, as Proxmox names them: vm-101-disk-0, subvol-205-disk-1, base-900-disk-0, vm-101-state-x, vm-101-cloudinit
_GUEST_VOLUME = re.compile(r"(?:vm|subvol|base|basevol)-([1-9][0-9]{2,8})-[A-Za-z0-9_.-]+", re.ASCII)


def pool(name: str) -> str:
    """A pool: a letter, then letters, digits and _ . : - or a blank."""
    if len(name) > LONGEST or not _POOL.fullmatch(name):
        raise ValueError("a pool's name begins with a letter; then letters, digits, _ . : - and blanks")
    return name


def dataset(name: str) -> str:
    """A file system or volume: pool/part/part."""
    for mark, what in (("@", "a snapshot"), ("#", "a bookmark")):
        if mark in name:
            raise ValueError(f"{name} is {what}; a dataset is meant: pool/name")
    if len(name) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    first, *rest = name.split("/")
    pool(first)
    if len(rest) >= _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} levels")
    for part in rest:
        _component(part, "each part of a dataset's name")
    return name


def snapshot_part(name: str) -> str:
    """What stands behind the "@"."""
    return _component(name, "a snapshot's name")


def snapshot(name: str) -> str:
    """dataset@name."""
    place, mark, part = name.partition("@")
    if not mark:
        raise ValueError(f"{name} is no snapshot: write dataset@name")
    dataset(place)
    snapshot_part(part)
    if len(name) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    return name


def anything(name: str) -> str:
    """A dataset, a snapshot or a bookmark."""
    if "#" in name:
        place, _, part = name.partition("#")
        dataset(place)
        _component(part, "a bookmark's name")
        return name
    return snapshot(name) if "@" in name else dataset(name)


def is_valid(name: str) -> bool:
    """Whether ZFS could call something so."""
    try:
        anything(name)
    except ValueError:
        return False
    return True


def property_name(name: str) -> str:
    """A native property (quota, userused@joe) or one of a user's (org.example:note)."""
    if len(name) > LONGEST or not (_NATIVE.fullmatch(name) or _USER.fullmatch(name)):
        raise ValueError("a property is lower case letters, digits and _; a user's property has a colon: org.example:note")
    return name


def is_user_property(name: str) -> bool:
    """Whether it belongs to a user: ZFS stores it and does nothing with it."""
    return ":" in name and _USER.fullmatch(name) is not None


def pattern(glob: str) -> str:
    """A glob for the part behind the "@": * ? [abc] [!abc], held against each name here and never given to a shell."""
    if not glob or len(glob) > 64:
        raise ValueError("must be 1 to 64 characters")
    if "@" in glob or "/" in glob:
        raise ValueError("the pattern is for the part behind the @ alone, e.g. autosnap_*; the dataset is an argument of its own")
    if not re.fullmatch(r"[A-Za-z0-9_.: *?\[\]!-]+", glob, re.ASCII):
        raise ValueError("letters, digits, _ . : - and blanks, with * ? [abc] [!abc]")
    return glob


def pool_of(name: str) -> str:
    """The pool that a name is in."""
    return re.split(r"[/@#]", name, maxsplit=1)[0]


def dataset_of(name: str) -> str:
    """The dataset of a snapshot or bookmark, or the name itself."""
    return re.split(r"[@#]", name, maxsplit=1)[0]


def within(name: str, top: str) -> bool:
    """Whether a dataset is `top` or lies below it."""
    return name == top or name.startswith(f"{top}/")


def guest_of(name: str) -> int | None:
    """The vmid in a name that Proxmox gives to a guest's volume; None for every other name."""
    found = _GUEST_VOLUME.fullmatch(dataset_of(name).rpartition("/")[2])
    return int(found[1]) if found else None


def _component(part: str, what: str) -> str:
    if part in ("", ".", "..") or not _COMPONENT.fullmatch(part):
        raise ValueError(f"{what} is letters, digits, _ . : - and blanks, and not empty, . or ..")
    return part


PoolName = Annotated[str, AfterValidator(pool)]
DatasetName = Annotated[str, AfterValidator(dataset)]
SnapshotName = Annotated[str, AfterValidator(snapshot)]
SnapshotPart = Annotated[str, AfterValidator(snapshot_part)]
AnyName = Annotated[str, AfterValidator(anything)]
Pattern = Annotated[str, AfterValidator(pattern)]
