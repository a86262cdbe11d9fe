"""Sizes of disks in the forms people and Proxmox write them: exact, or refused; never a silent change of magnitude.

"32G", "32GB" and "32GiB" are 32 binary gigabytes, as everywhere in Proxmox; a number alone is GiB for a new volume and bytes in a
configuration.
"""

from __future__ import annotations

import re
from decimal import Decimal

KIB, MIB, GIB = 1024, 1024**2, 1024**3

_UNITS = {"": None, "K": KIB, "M": MIB, "G": GIB, "T": 1024**4}
_NEW = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(?:([KMGT])(?:i?B)?)?", re.IGNORECASE | re.ASCII)
_CONFIGURED = re.compile(r"(\d{1,20}(?:\.\d{1,6})?)([KMGT]?)(?:iB)?", re.ASCII)


def new_volume_gib(size: str | int | float) -> int | float:
    """The GiB that `storage:GiB` takes for a new volume: "1.5G" is 1.5, "512M" 0.5, "0.5T" 512, 32 and "32GB" 32.

    Raises ValueError for anything that is no size above zero.
    """
    match = _NEW.fullmatch(str(size).strip())
    if match is None:
        raise ValueError("a size is a number above 0, in GiB or with K, M, G or T behind it")
    value = Decimal(match[1]) * Decimal(_UNITS[(match[2] or "").upper()] or GIB) / GIB
    if value <= 0:
        raise ValueError("a size is above 0")
    return int(value) if value == value.to_integral_value() else float(value)


def configured_bytes(size: str) -> int | None:
    """The bytes of a `size=` in a guest's configuration: "32G", "1536M", "528K", "1073741824"; None when it is none."""
    match = _CONFIGURED.fullmatch(size.strip())
    return int(Decimal(match[1]) * (_UNITS[match[2]] or 1)) if match else None


def gib_text(gib: float) -> str:
    """GiB as the API takes them behind the storage's name: 32, 1.5."""
    return str(int(gib)) if float(gib).is_integer() else format(Decimal(repr(gib)).normalize(), "f")
