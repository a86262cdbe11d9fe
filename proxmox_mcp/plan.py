"""The words every room shares: Answer (a read), Plan (a change that has not happened yet), Step, Risk. Pure data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Literal


class Risk(StrEnum):
    """What a call can do to the world. Ordered: READ < CHANGE < DATA_LOSS."""

    READ = "read"
    CHANGE = "change"
    DATA_LOSS = "data loss"


class Kind(Enum):
    """How a column's raw value is shown in text (JSON always has the raw value)."""

    TEXT = "text"
    NUMBER = "number"
    BYTES = "bytes"  # int -> 1.9G
    PERCENT = "percent"  # fraction 0..1 -> bare integer percent
    DURATION = "duration"  # seconds -> 12d4h
    TIME = "time"  # Unix seconds -> 2026-03-01 01:00Z
    FLAG = "flag"  # true/false -> yes/no


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `name` is the key in the rows, the name that `fields` takes and the header."""

    name: str
    kind: Kind = Kind.TEXT
    default: bool = True  # shown without being asked for
    head: str = ""  # header when it differs from the name, e.g. "cpu%"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a read found, or what a carried-out plan has to say.

    Any of: `lines`, `rows` (a list: each row a mapping of raw values; None is unknown), `record` (one object), `text` (a log, a file, the
    output of a command: hostile until cleaned; render cleans, marks and caps it).
    """

    title: str  # caption: what this is, "guests", "status of VM 101 on pve1"
    rows: Sequence[Mapping[str, Any]] | None = None
    columns: tuple[Column, ...] = ()  # of rows, or of the record's values that want a kind
    order: tuple[str, ...] = ()  # sort key of rows, "-x" descending, unknown last; must be unique as a whole: cursors stand on it
    filters: Mapping[str, Any] = field(default_factory=dict)  # what narrowed the list; shown, and part of the cursor
    finish: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None  # computes what only the rows of a page need
    beyond: int | None = None  # set when `rows` are only what follows the call's cursor: how many more follow these and were not read
    record: Mapping[str, Any] | None = None  # beside rows: what holds for the list as a whole
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # of the record's values, where `columns` are those of the rows
    lines: tuple[str, ...] = ()  # our own words, a line each (names in them come from guests all the same: they are cleaned)
    text: str | None = None
    text_source: str = ""  # where the text comes from: "task log", "output of pve1"
    text_limit: int = 24_000  # characters of it that are shown, head and tail
    notes: tuple[str, ...] = ()  # what is missing and why; remarks; next calls
    failed: bool = False  # shown as an isError result (a plan that stopped half-way, a command with exit status != 0)


@dataclass(frozen=True, slots=True)
class GuestState:
    """Wait until the guest has this status (HA-managed guests: their task only files a request)."""

    node: str
    kind: Literal["qemu", "lxc"]
    vmid: int
    status: Literal["running", "stopped"]


class Wait(Enum):
    """How a step is awaited when it is not a guest's state."""

    TASK = "task"  # the answer is a UPID (anything else is an error), the verdict is its exit status
    TASK_OR_NULL = "task or null"  # null means that it is done already
    NOTHING = "nothing"  # done when answered


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request to the REST API. `path` holds the parts below /api2/json; `params` the parameters, None values are not sent."""

    method: Literal["POST", "PUT", "DELETE"]
    path: tuple[str | int, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    wait: Wait | GuestState = Wait.TASK


@dataclass(frozen=True, slots=True)
class HostTarget:
    """Where a command runs: on a node (node=None: the configured SSH host), in a container of it, or on a registered guest."""

    node: str | None = None
    vmid: int | None = None  # a container: the argv runs through `pct exec`
    alias: str | None = None  # an entry of vm_ssh_hosts.json


@dataclass(frozen=True, slots=True)
class HostCommand:
    """One command. `argv` is a list, never a shell line; a line that is meant for a shell is ("sh", "-c", line)."""

    target: HostTarget
    argv: tuple[str, ...]
    stdin: bytes | None = None
    timeout: float = 60.0
    max_bytes: int = 200_000
    ok: tuple[int, ...] = (0,)  # exit statuses that mean success
    progress: bool = False  # its last line is passed on to the client while it runs


Step = ApiCall | HostCommand


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of one step.

    state: "ok", "warnings" (done, with `text` the warning lines), "failed", "running" (the wait ended first), "unknown", "not tried".
    """

    step: Step
    state: Literal["ok", "warnings", "failed", "running", "unknown", "not tried"]
    text: str = ""  # for a person: exit status, PVE's words, last log lines
    data: Any = None  # the API's answer, or the Outcome of a command
    upid: str = ""


Conclude = Callable[[Sequence[StepResult]], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Plan:
    """A change as data. Two equal plans are the same change: nothing volatile (ages, free bytes) goes into summary, steps or targets."""

    summary: str  # object, action, consequence: what a person judges
    steps: tuple[Step, ...]
    risk: Risk
    targets: tuple[str, ...]  # the objects it touches: "guest 101", "node pve1", "storage nas", "dataset tank/x"
    asks: bool = False  # a person is asked under the policy data_loss too, though risk is CHANGE
    on_failure: Literal["stop", "continue"] = "stop"
    undo: str = ""  # how to take it back, where that exists
    fingerprint: str = ""  # what else must not have changed in between: config digest, snapshot list ...
    obstacles: tuple[str, ...] = ()  # certain refusals found beforehand; with any, nothing runs
    doubts: tuple[str, ...] = field(default=(), compare=False)  # what could not be checked; shown, does not stop
    notes: tuple[str, ...] = field(default=(), compare=False)  # remarks for the preview and the answer
    otherwise: tuple[str, ...] = field(default=(), compare=False)  # remarks for the preview and for any answer but "done"
    conclude: Conclude | None = field(default=None, compare=False)
    after_failure: Conclude | None = field(default=None, compare=False)  # a look at what a failed or unknown end left; added to the account
