"""Storage entries of the cluster added and removed: proxmox_storage_config."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Changing, Flag, StorageId, matching
from proxmox_mcp.changes import conclusions, storage_users
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.inventory import StorageRef, read_rows
from proxmox_mcp.plan import Answer, ApiCall, Plan, Risk, StepResult, Wait
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool

_CONTENT = {
    "add_zfs": frozenset({"images", "rootdir", "none"}),
    "add_dir": frozenset({"backup", "images", "import", "iso", "none", "rootdir", "snippets", "vztmpl"}),
}
_DEFAULT_CONTENT = {"add_zfs": "images,rootdir", "add_dir": "iso,vztmpl,backup"}
_POOL = r"[A-Za-z][A-Za-z0-9_.:-]*(?:/[A-Za-z0-9][A-Za-z0-9_.:-]*)*"
_LIST = r"[a-z]+(?:[,; ]+[a-z]+)*"
_PATH = r"(?:/[A-Za-z0-9_+@-][A-Za-z0-9_.+@-]*)+"


def _words(value: str) -> list[str]:
    return [word for word in re.split(r"[,; ]+", value.strip()) if word]


class StorageConfig(Changing):
    action: Literal["add_zfs", "add_dir", "remove"]
    storage: StorageId
    pool: (
        Annotated[str, AfterValidator(matching(_POOL, "a pool is pool or pool/dataset", longest=128)), Field(description="add_zfs")] | None
    ) = None
    path: (
        Annotated[str, AfterValidator(matching(_PATH, "a path is absolute, without '..'", longest=256)), Field(description="add_dir")]
        | None
    ) = None
    content: (
        Annotated[
            str,
            AfterValidator(matching(_LIST, "content types, separated by commas", longest=128)),
            Field(description="images,backup ..."),
        ]
        | None
    ) = None
    sparse: Flag = True
    nodes: (
        Annotated[
            str,
            AfterValidator(matching(r"[A-Za-z0-9,; -]+", "node names, separated by commas", longest=256)),
            Field(description="pve1,pve2; default: all"),
        ]
        | None
    ) = None
    used_by: ClassVar = {
        "pool": ("add_zfs",),
        "sparse": ("add_zfs",),
        "path": ("add_dir",),
        **dict.fromkeys(("content", "nodes"), ("add_zfs", "add_dir")),
    }

    @model_validator(mode="after")
    def _what_it_needs(self) -> Self:
        if self.action == "add_zfs" and self.pool is None:
            raise ValueError("action=add_zfs needs pool")
        if self.action == "add_dir" and self.path is None:
            raise ValueError("action=add_dir needs path")
        if self.action != "remove":
            unknown = set(_words(self.content or "")) - _CONTENT[self.action]
            if unknown:
                raise ValueError(f"no content for this storage: {', '.join(sorted(unknown))}; {', '.join(sorted(_CONTENT[self.action]))}")
        return self


@tool(
    "proxmox_storage_config",
    "Add a ZFS pool or directory as a storage of the cluster, or remove a storage's entry (its data stays).",
    title="Storage entries: add, remove",
    group="storage",
    model=StorageConfig,
    risk=Risk.CHANGE,
    destructive=True,
    limit="none",
)
async def storage_config(args: StorageConfig, call: Call) -> Plan:
    """POST /storage {type=zfspool|dir}; DELETE /storage/{id}. It is the cluster's configuration alone: no data is made or lost."""
    checks = Checks(call.inventory)
    await checks.privileges(Need("/storage", ("Datastore.Allocate",)))
    known = next((ref for ref in await call.inventory.storages() if ref.name == args.storage), None)
    if args.action == "remove":
        return await _remove(args, call, checks, known)
    checks.refuse(f"there is a storage {args.storage} already (type {known.type if known else ''})", when=known is not None)
    # a node that is away can have an entry all the same
    nodes = [(await call.inventory.node(name, change=True)).name for name in dict.fromkeys(_words(args.nodes or ""))]
    content = ",".join(dict.fromkeys(_words(args.content or _DEFAULT_CONTENT[args.action])))
    base: dict[str, Any] = {"storage": args.storage, "content": content, "nodes": ",".join(nodes) or None}
    if args.action == "add_zfs":
        notes = await _has_pool(args, checks, nodes)
        params = {**base, "type": "zfspool", "pool": args.pool, "sparse": int(args.sparse)}
        what = f"ZFS pool {args.pool}"
    else:
        notes = await _same_path(args, checks)
        params = {**base, "type": "dir", "path": args.path}
        what = f"directory {args.path} (made where it is missing)"
    summary = f"add {what} as storage {args.storage} for {content} on {', '.join(nodes) or 'every node'}"
    undo = f"proxmox_storage_config action=remove storage={args.storage}"
    targets = (f"storage {args.storage}", *(f"node {name}" for name in nodes))
    return _plan(call, checks, summary, ApiCall("POST", ("storage",), params, wait=Wait.NOTHING), targets, undo, "", notes)


async def _has_pool(args: StorageConfig, checks: Checks, nodes: Sequence[str]) -> tuple[str, ...]:
    """The pool should be on every node that the storage is for; where it is nowhere, Proxmox cannot activate the storage."""
    assert args.pool is not None
    top = args.pool.partition("/")[0]
    asked = list(nodes) or [node.name for node in await checks.inventory.nodes() if node.online is not False]
    have: list[str] = []
    lack: list[str] = []
    for node in asked:
        pools = await checks.attempt(read_rows(checks.inventory.api, "nodes", node, "disks", "zfs"), f"ZFS pools of {node}")
        if pools is not None:
            (have if any(pool.get("name") == top for pool in pools) else lack).append(node)
    checks.refuse(f"no pool {top} on {', '.join(lack)}", when=bool(lack) and not have)
    checks.doubt(f"whether {args.pool} exists in pool {top}: the API does not list datasets", when="/" in args.pool)
    if have and lack:
        return (f"pool {top} is on {', '.join(have)}, not on {', '.join(lack)}: nodes={','.join(have)} would keep it from failing there",)
    return ()


async def _same_path(args: StorageConfig, checks: Checks) -> tuple[str, ...]:
    same = [ref.name for ref in await checks.inventory.storages() if str(ref.row.get("path") or "").rstrip("/") == args.path]
    return (f"storage {', '.join(same)} has the same path: both show the same files",) if same else ()


async def _remove(args: StorageConfig, call: Call, checks: Checks, known: StorageRef | None) -> Plan:
    step = ApiCall("DELETE", ("storage", args.storage), wait=Wait.NOTHING)
    if known is None:
        names = ", ".join(ref.name for ref in await call.inventory.storages()) or "none"
        checks.refuse(f"there is no storage {args.storage}; there are: {names}")
        return _plan(call, checks, f"remove storage {args.storage}", step, (f"storage {args.storage}",), "", "", ())
    based = [ref.name for ref in await call.inventory.storages() if str(ref.row.get("base") or "").partition(":")[0] == known.name]
    checks.refuse(f"storage {', '.join(based)} stands on it", when=bool(based))
    there = await storage_users.tenants(checks, [known])
    jobs = await checks.attempt(read_rows(call.api, "cluster", "backup"), "whether a backup job uses it")
    using = [str(job.get("id")) for job in jobs or () if job.get("storage") == known.name]
    left = [f"what points to it then points nowhere: {there.words}"] if there.words else []
    left += [f"backup jobs that use it fail from then on: {', '.join(using)}"] if using else []
    summary = f"remove the entry of storage {known.name} (type {known.type}); its data stays" + "".join(f"; {words}" for words in left)
    kept = {name: known.row[name] for name in _TELLING if known.row.get(name)}
    undo = f"add it again with {', '.join(f'{name}={value}' for name, value in kept.items())}"
    notes = ("the password or key that Proxmox keeps for it is deleted too",) if known.type in ("pbs", "cifs", "esxi") else ()
    return _plan(call, checks, summary, step, (f"storage {known.name}",), undo, f"{known.row.get('digest')}/{there.fingerprint}", notes)


_TELLING = ("type", "path", "pool", "vgname", "thinpool", "server", "export", "share", "datastore", "content", "nodes")


def _plan(
    call: Call,
    checks: Checks,
    summary: str,
    step: ApiCall,
    targets: tuple[str, ...],
    undo: str,
    fingerprint: str,
    notes: tuple[str, ...],
) -> Plan:
    async def conclude(results: Sequence[StepResult]) -> Answer:
        names = sorted(str(row.get("storage")) for row in await read_rows(call.api, "storage"))
        return conclusions.done(summary, results, {"storages": ", ".join(names) or "none"})

    return Plan(
        summary,
        (step,),
        Risk.CHANGE,
        targets,
        undo=undo,
        fingerprint=fingerprint,
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=notes,
        conclude=conclude,
        after_failure=conclude,
    )
