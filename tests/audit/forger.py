"""What somebody with a text editor, or with this program's source but without its key, can do to a log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proxmox_mcp.audit import AuditLog, Keys
from proxmox_mcp.audit.head import pack
from proxmox_mcp.audit.record import ZEROS, encode, seal

KEY = Keys.load("correct horse battery staple", None)
LOG, HEAD = "_api_audit.log", "_api_audit.head"


def write_log(directory: Path, keys: Keys, pairs: int = 5, **options: Any) -> None:
    """An opening record and `pairs` intents with their outcomes."""
    log = AuditLog(directory, "api", keys=keys, **options)
    for number in range(pairs):
        intent = log.intent({"tool": "proxmox_start_vm", "target": f"guest {100 + number}"})
        log.outcome(intent, {"status": "ok"})
    log.close()


def lines(directory: Path, name: str = LOG) -> list[bytes]:
    return (directory / name).read_bytes().splitlines(keepends=True)


def edit(directory: Path, change: Callable[[list[bytes]], object], name: str = LOG) -> None:
    """Let `change` work on the list of lines in place."""
    found = lines(directory, name)
    change(found)
    (directory / name).write_bytes(b"".join(found))


def without_hash(line: bytes) -> bytes:
    fields = json.loads(line)
    del fields["hash"]
    return encode(fields).encode() + b"\n"


def rehash(line: bytes, keys: Keys, **changed: Any) -> bytes:
    """The line with other values and a hash that fits them."""
    fields = json.loads(line) | changed
    del fields["hash"]
    return seal(encode(fields)[1:], keys.sealing)[1] + b"\n"


def rewrite(directory: Path, keys: Keys, *, key_id: str | None, drop: int = 0) -> None:
    """Another story: the whole chain and the head anew, with `drop` records less, hashed as `keys` can and saying `key_id`."""
    found = [json.loads(line) for line in lines(directory)]
    last, written = ZEROS, []
    for fields in found[: len(found) - drop]:
        del fields["hash"]
        fields["prev"] = last
        if fields["kind"] == "open":
            fields["record"]["key"] = key_id
        else:
            fields["record"]["forged"] = True
        last, line = seal(encode(fields)[1:], keys.sealing)
        written.append(line + b"\n")
    data = b"".join(written)
    (directory / LOG).write_bytes(data)
    (directory / HEAD).write_bytes(pack(found[0]["log"], 1, len(data), len(written), last, key_id, keys.sealing))
