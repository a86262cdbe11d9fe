"""One record: a JSON object on a line of ASCII, keys sorted, its own hash first and over every byte that follows the hash."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import gmtime, strftime, time_ns
from typing import Any

from proxmox_mcp.audit.keys import Digest

Mask = Callable[[str], str]

ZEROS = "0" * 64  # the hash before the first record
_FIRST = len('{"hash":"') + 64 + len('",')  # where the hashed part of a line begins


def _refuse(name: str) -> float:
    raise ValueError(name)


def _encoder() -> Callable[[Any], str]:
    """ASCII, keys sorted, no blanks, no NaN. `json` builds its C encoder anew for every text; here it is built once, where there is one."""
    slow = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return slow.encode
    chunks = make(None, slow.default, json.encoder.encode_basestring_ascii, None, ":", ",", True, False, False)
    return lambda value: "".join(chunks(value, 0))


encode = _encoder()
_decode = json.JSONDecoder(parse_constant=_refuse).raw_decode


def unmasked(text: str) -> str:
    """The mask that hides nothing."""
    return text


def entry_text(entry: Mapping[str, Any], mask: Mask) -> str:
    """A caller's entry as JSON. Raises ValueError and RecursionError when it cannot be."""
    if mask is unmasked:
        try:
            return encode(entry)
        except (TypeError, ValueError):  # it holds what JSON does not know
            pass
    return encode(plain(entry, mask))


def plain(value: Any, mask: Mask) -> Any:
    """The same value as JSON can hold it, with `mask` applied to every text; what JSON does not know becomes text."""
    kind = type(value)
    if kind is str:
        return mask(value)
    if kind is dict:
        return {str(key): plain(item, mask) for key, item in value.items()}
    if kind is int or kind is bool or value is None:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, mask) for item in value]
    if isinstance(value, Mapping):
        return plain(dict(value), mask)
    if isinstance(value, (bytes, bytearray)):
        return mask(bytes(value).decode("utf-8", "backslashreplace"))
    if isinstance(value, float) and math.isfinite(value):
        return value
    return mask(value if isinstance(value, str) else str(value))


def timestamp() -> str:
    """Now, in UTC, to the microsecond."""
    seconds, nanoseconds = divmod(time_ns(), 1_000_000_000)
    return f"{_to_the_second(seconds)}.{nanoseconds // 1000:06d}+00:00"


@lru_cache(maxsize=1)
def _to_the_second(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))


def compose(log: str, seq: int, prev: str, kind: str, record: str, writer: str, more: tuple[str, str, str] = ("", "", "")) -> str:
    """A record without its hash; `record` and `writer` are JSON already, `more` is what `optional` gave."""
    loss, of, torn = more
    begin = f'"kind":"{kind}","log":"{log}",{loss}{of}"prev":"{prev}","record":'
    return f'{begin}{record},"seq":{seq},"time":"{timestamp()}",{torn}"writer":{writer}}}'


def optional(loss: str, of: int | str | None, torn: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """The fields that only some records have."""
    return (
        f'"loss":{encode(loss)},' if loss else "",
        "" if of is None else f'"of":{encode(of)},',
        f'"torn":{encode(torn)},' if torn else "",
    )


def seal(text: str, digest: Digest) -> tuple[str, bytes]:
    """(hash, line without its newline) of what follows the hash on a line."""
    own = digest(text.encode("ascii"))
    return own, f'{{"hash":"{own}",{text}'.encode("ascii")


def is_id(value: object, length: int = 16) -> bool:
    """Whether a value is an id as this log writes them (of a log, of a key), or with `length` 64 a hash."""
    return isinstance(value, str) and len(value) == length and value.isascii() and value.isalnum()


def parse(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """(text, fields) of a line that is a JSON object in ASCII, None for anything else."""
    try:
        text = line.decode("ascii")
        fields, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return (text, fields) if isinstance(fields, dict) and end == len(text) else None


def own_hash(text: str, line: bytes, digest: Digest | None) -> str | None:
    """The line's hash if it stands in its place and is right, else None. Without `digest` (key not known) only the place is checked."""
    expected = digest(line[_FIRST:]) if digest else text[9:73]
    return expected if text.startswith(f'{{"hash":"{expected}",') else None


def hashed_part(line: bytes) -> bytes:
    """What the hash of a line is over."""
    return line[_FIRST:]
