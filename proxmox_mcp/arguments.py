"""The vocabulary of tool arguments: each type checks itself, and its schema says only what a model would guess wrong.

Limits live in validators, not in `Field(ge=...)`, so that they apply without being advertised: every word of a schema is paid for
in each conversation.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StrictBool, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from proxmox_mcp.errors import InvalidArgument

_DNS_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"


def matching(pattern: str, rule: str, *, longest: int = 256) -> Callable[[str], str]:
    """A validator: the whole ASCII text matches `pattern`, or the error says `rule`."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if len(value) > longest:
            raise ValueError(f"longer than {longest} characters")
        if not compiled.fullmatch(value):
            raise ValueError(rule)
        return value

    return check


def _between(low: float, high: float) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is not None and not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return check


def _json_text(value: Any) -> Any:
    # some clients send arrays and objects as JSON text
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.loads(value, object_pairs_hook=_each_name_once)
        except (ValueError, RecursionError):
            return value
    return value


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _names_text(value: Any) -> Any:
    # vmid,name: nothing else can be meant
    value = _json_text(value)
    return [name for part in value.split(",") if (name := part.strip())] if isinstance(value, str) else value


def _field_names(value: list[str]) -> list[str]:
    if len(value) > 64 or any(len(name) > 64 for name in value):
        raise ValueError("at most 64 names of at most 64 characters")
    return value


def plain_text(longest: int) -> Callable[[str], str]:
    """A validator for one line meant for people (a reason, a description): printable, capped."""

    def check(value: str) -> str:
        if len(value) > longest:
            raise ValueError(f"longer than {longest} characters")
        if any((ord(c) < 32 and c not in "\n\t") or ord(c) == 127 or 0xD800 <= ord(c) < 0xE000 for c in value):
            raise ValueError("holds control characters")
        return value

    return check


Flag = StrictBool
Vmid = Annotated[int, AfterValidator(_between(100, 999_999_999))]
Kind = Literal["qemu", "lxc"]
_DNS_NAME = rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*"
NodeName = Annotated[str, AfterValidator(matching(_DNS_NAME, "a node name has letters, digits and inner dashes", longest=64))]
_STORAGE = r"[A-Za-z][A-Za-z0-9\-_.]*[A-Za-z0-9]"
_STORAGE_RULE = "a storage id has two characters or more: a letter first, then letters, digits, - _ ., none of these three at its end"
StorageId = Annotated[str, AfterValidator(matching(_STORAGE, _STORAGE_RULE, longest=100))]
_DISK_PART = r"[A-Za-z0-9][A-Za-z0-9:._+@-]*"
DiskName = Annotated[  # sda, /dev/sda, /dev/disk/by-id/...: disks.device makes the API's path of it
    str,
    AfterValidator(matching(rf"(?!.*\.\.)(?:/dev/)?{_DISK_PART}(?:/{_DISK_PART}){{0,3}}", "a disk is named like /dev/sda", longest=200)),
]
GuestName = Annotated[str, AfterValidator(matching(_DNS_NAME, "a guest name has letters, digits, inner dashes and dots", longest=64))]
Bridge = Annotated[str, AfterValidator(matching(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "a bridge name has letters, digits, - _ .", longest=32))]
VolumeId = Annotated[
    str,
    AfterValidator(
        matching(
            r"[A-Za-z][A-Za-z0-9\-_.]*[A-Za-z0-9]:(?!/)(?!.*//)(?!.*(?:^|[:/])\.{1,2}(?:/|$))[A-Za-z0-9][A-Za-z0-9_.:+@ =/~()\[\]&-]*",
            "a volume id looks like storage:kind/file",
            longest=512,
        )
    ),
]
Upid = Annotated[str, AfterValidator(plain_text(512))]
Reason = Annotated[str, AfterValidator(plain_text(200))]
Fields = Annotated[list[str], BeforeValidator(_names_text), AfterValidator(_field_names)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_json_text)]
JsonList = Annotated[list[str], BeforeValidator(_json_text)]
Count = Annotated[int, AfterValidator(_between(1, 10_000))]
Seconds = Annotated[float, AfterValidator(_between(0, 1e9))]
between = _between
json_text = _json_text


class Arguments(BaseModel):
    """What every tool takes: nothing unknown, nothing changed after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


class Reading(Arguments):
    """A tool that shows one thing."""

    # the instructions name its values, so that each schema need not
    response_format: Annotated[Literal["markdown", "json"], WithJsonSchema({"type": "string"})] = "markdown"


class Record(Reading):
    """A tool that shows one object, whole or by fields."""

    fields: Fields | None = None


class Listing(Reading):
    """A tool that shows a list, page by page."""

    fields: Fields | None = None
    limit: Count | None = None
    cursor: Annotated[str, AfterValidator(plain_text(2048))] | None = None


class Changing(Arguments):
    """A tool that changes something: the gates."""

    confirm: Flag = False
    dry_run: Flag = False
    reason: Reason | None = None
    used_by: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # argument -> the actions that use it, where not all do

    def unused(self) -> tuple[str, ...]:
        """Remarks on arguments that were given to an action that does not use them: accepted, as they always were, but not in silence."""
        action = getattr(self, "action", None)
        idle = (name for name, actions in self.used_by.items() if name in self.model_fields_set and action not in actions)
        fields = type(self).model_fields
        return tuple(f"{name} is not used by action={action}" for name in idle if getattr(self, name) != fields[name].default)


class Destroying(Changing):
    """A tool that can destroy data: one more gate."""

    i_understand_data_loss: Flag = False


class Waiting(BaseModel):
    """Mixed into a changing tool that starts a task."""

    wait_seconds: Seconds = 0


_TOLD = 20  # faults of one call that are named


def flat(model: type[Arguments], raw: Mapping[str, Any]) -> Any:
    """The arguments themselves, where the predecessor's wrapper is around them; what else was wrapped as it is."""
    return _json_text(raw["params"]) if set(raw) == {"params"} and "params" not in model.model_fields else dict(raw)


def parse(model: type[Arguments], raw: Mapping[str, Any]) -> Arguments:
    """The checked arguments of a call; InvalidArgument names each fault. The predecessor's {"params": {...}} wrapper is accepted."""
    given = flat(model, raw)
    if not isinstance(given, dict):
        raise InvalidArgument("", 'pass the arguments flat: {"vmid": 101, ...}')
    truths = [name for name, value in given.items() if isinstance(value, bool) and _is_number(model.model_fields.get(name))]
    if truths:  # pydantic would read true as 1
        raise InvalidArgument(", ".join(truths), "must be a number, not true or false")
    try:
        return model.model_validate(given)
    except ValidationError as exc:
        faults = exc.errors(include_url=False, include_input=False, include_context=False)
    found: dict[str, list[str]] = {}
    for fault in faults[:_TOLD]:
        name = ".".join(str(part)[:64] for part in fault["loc"]) or "arguments"
        found.setdefault(name, []).append(_words(fault["type"], fault["msg"], name, model, given))
    if len(found) == 1:
        ((name, words),) = found.items()
        raise InvalidArgument(name, "; ".join(words))
    more = f"; and {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
    raise InvalidArgument(", ".join(found), "; ".join(f"{name}: {'; '.join(words)}" for name, words in found.items()) + more)


def _is_number(field: FieldInfo | None) -> bool:
    return field is not None and _shape(field.annotation, field.metadata).get("type") in ("integer", "number")


def _words(kind: str, message: str, name: str, model: type[Arguments], given: Mapping[str, Any]) -> str:
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, [field for field in model.model_fields if field not in given], n=1)
        return "unknown argument" + (f", did you mean {near[0]}?" if near else f"; known: {', '.join(_in_order(model))}")
    if kind.startswith(("int_", "float_")):
        number = "must be a whole number" if kind.startswith("int_") else "must be a number"
        return f"{number}; proxmox_list_vms name=... finds it" if name == "vmid" else number
    if kind == "missing":
        return "is required"
    if kind == "bool_type":
        return "must be true or false, not text or a number"
    return message.removeprefix("Value error, ").removeprefix("Input ")


_COMMON = {"response_format", "fields", "limit", "cursor", "confirm", "dry_run", "i_understand_data_loss", "wait_seconds", "reason"}
_CAPS = {"limit", "top_n", "max_chars", "max_bytes"}  # the answer says when one was reached
_SILENT_DEFAULTS: tuple[Any, ...] = (None, False, 0, "markdown", [], PydanticUndefined)
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}


def schema(model: type[Arguments]) -> dict[str, Any]:
    """The lean input schema: closed, without titles, null alternatives and defaults that say nothing.

    Read from the fields: pydantic's own generator would build the validators of 52 models at every start (a third of it), and say more.
    """
    fields = model.model_fields
    lean: dict[str, Any] = {"type": "object", "properties": {name: _property(name, fields[name]) for name in _in_order(model)}}
    required = [name for name, field in fields.items() if field.is_required()]
    if required:
        lean["required"] = required
    lean["additionalProperties"] = False
    return lean


def _in_order(model: type[Arguments]) -> list[str]:
    return sorted(model.model_fields, key=lambda name: name in _COMMON)  # stable: the tool's own first


def _property(name: str, field: FieldInfo) -> dict[str, Any]:
    spec = _shape(field.annotation, field.metadata)
    if field.description:
        spec["description"] = field.description
    if name not in _CAPS and not any(field.default is silent or field.default == silent for silent in _SILENT_DEFAULTS):
        spec["default"] = field.default
    return spec


def _shape(kind: Any, metadata: Iterable[Any] = ()) -> dict[str, Any]:
    for note in metadata:
        if isinstance(note, WithJsonSchema) and note.json_schema is not None:
            return dict(note.json_schema)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        described = [note.description for note in kind.__metadata__ if isinstance(note, FieldInfo) and note.description]
        return _shape(parts[0], kind.__metadata__) | ({"description": described[0]} if described else {})
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
    if origin is list:
        return {"type": "array", "items": _shape(parts[0])}
    if origin in (Union, UnionType):
        (only,) = (part for part in parts if part is not NoneType)
        return _shape(only)
    return {"type": _TYPES[origin or kind]}
