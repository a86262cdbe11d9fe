"""The head: a small sealed file beside the log that names the newest record, so that a cut, emptied or deleted log is found."""

from __future__ import annotations

from typing import NamedTuple

from proxmox_mcp.audit.keys import Digest, Keys
from proxmox_mcp.audit.record import is_id, own_hash, parse, seal

SIZE = 512  # bytes, one sector: it is overwritten in one piece


class Head(NamedTuple):
    """What the head vouches for: record `seq` has hash `last` and ends at byte `size` of segment `segment`."""

    log: str
    segment: int
    size: int
    seq: int
    last: str
    key: str | None


def pack(log: str, segment: int, size: int, seq: int, last: str, key: str | None, digest: Digest) -> bytes:
    """The whole content of the head file, from the fields of a Head."""
    name = f'"{key}"' if key else "null"
    text = f'"key":{name},"kind":"head","last":"{last}","log":"{log}","segment":{segment},"seq":{seq},"size":{size}}}'
    return seal(text, digest)[1].ljust(SIZE - 1) + b"\n"


def is_blank(raw: bytes) -> bool:
    """Whether nothing was ever written to the head: it is made a moment before the log, and a crash may come between."""
    return not raw.strip(b"\0")


def unpack(raw: bytes, keys: Keys) -> Head | str:
    """The head in `raw`, or what is wrong with it. A head whose key is not known here is taken as it is: see `keys.digest(head.key)`."""
    line = raw.rstrip()
    parsed = parse(line)
    if parsed is None or parsed[1].get("kind") != "head":
        return "the head file is empty" if is_blank(raw) else "the head file does not hold a head"
    text, fields = parsed
    try:
        head = Head(fields["log"], fields["segment"], fields["size"], fields["seq"], fields["last"], fields["key"])
    except KeyError:
        return "the head file does not hold a head of this version"
    numbers = (head.segment, head.size, head.seq)
    well_formed = is_id(head.log) and is_id(head.last, 64) and (head.key is None or is_id(head.key))
    if not well_formed or not all(type(number) is int and number >= 0 for number in numbers):
        return "the head file does not hold a head of this version"
    if own_hash(text, line, keys.digest(head.key)) is None:
        return "the head was changed: it does not match its own hash" if head.key is None else "the head was forged: its HMAC is wrong"
    return head
