"""The plan that destroys a dataset: what goes with it, what stands in the way, and a look at what is left when it fails."""

from __future__ import annotations

from collections.abc import Sequence

from proxmox_mcp import text
from proxmox_mcp.changes import conclusions
from proxmox_mcp.plan import Answer, Plan, Risk, StepResult
from proxmox_mcp.zfs import datasets, names, open_files, snapshots, tenants
from proxmox_mcp.zfs.datasets import Tree
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.tenants import Tenants

NAMED = 12_000  # characters of names in a preview
MOST = 100  # names one by one in a list of them
# what the node itself lives on
_OWN = ("/", "/boot", "/etc", "/opt", "/root", "/usr", "/var", "/var/lib", "/var/log", "/home")


def targets(node: str, *things: str, vmids: Sequence[int] = ()) -> tuple[str, ...]:
    """The objects of a plan: the node, the datasets, and the guests whose volumes they are by name."""
    guests = sorted({*vmids, *(vmid for vmid in map(names.guest_of, things) if vmid is not None)})
    return (f"node {node}", *(f"dataset {thing}" for thing in things), *(f"guest {vmid}" for vmid in guests))


async def in_the_way(zfs: Zfs, tree: Tree, there: Tenants) -> tuple[list[str], list[str]]:
    """(certain obstacles, doubts): nothing is pulled from under a guest, a clone, a hold, a process or the node itself."""
    obstacles = [
        f"{dataset.name} is mounted at {dataset.mountpoint}: the node lives on it" for dataset in tree.all if dataset.mountpoint in _OWN
    ]
    obstacles += [f"a guest that may be running uses it: {guest}; stop it first" for guest in there.running]
    cloned = [f"{name} has clones elsewhere ({', '.join(clones)})" for name, clones in tree.clones_outside.items()]
    obstacles += [f"{what}: destroy or promote them first" for what in few(cloned, "snapshots with clones")]
    tags = await snapshots.held_by(zfs, tree.held)
    held = [f"{snapshot.name} is held by {tags.get(snapshot.name, 'somebody')}" for snapshot in tree.held]
    obstacles += [f"{what}: `zfs release` first" for what in few(held, "held snapshots")]
    users, blind = await open_files.by_whom(zfs, tree.mountpoints, tree.volumes)
    obstacles += [f"it is in use: {user}" for user in users]
    return obstacles, [*there.doubts, *blind]


async def plan(zfs: Zfs, name: str, *, recursive: bool) -> Plan:
    """`zfs unmount`, which fails clean when something is in use, then `zfs destroy`. Raises NotFound."""
    tree = await datasets.tree(zfs, name)
    there = await tenants.of(zfs.call, zfs.node, tree.mountpoints)
    obstacles, doubts = await in_the_way(zfs, tree, there)
    if not recursive and (tree.below or tree.snapshots):
        obstacles.insert(0, f"it has {tree.extent}: recursive=true destroys them too")
    extent = f" with {tree.extent}" if tree.extent else ""
    users = f"; lost too: {there.words}" if there.words else ""
    summary = f"destroy {name} of node {zfs.node}{extent}: its data is lost for good{users}"
    unmounts = tuple(zfs.command("zfs", "unmount", mounted, timeout=60.0) for mounted in tree.to_unmount)
    destroy = zfs.command("zfs", "destroy", *(("-r",) if recursive else ()), name, timeout=600.0)

    async def conclude(results: Sequence[StepResult]) -> Answer:
        gone, left = datasets.what_is_gone(tree, await datasets.exists(zfs, name))
        facts = {"destroyed": f"{len(gone)} of {len(gone) + len(left)}", "left": few(left) or None}
        done = conclusions.done(summary, results, facts)
        return done if not left else Answer(f"Not all of it is gone: {summary}", record=done.record, failed=True)

    async def after_failure(results: Sequence[StepResult]) -> Answer:
        now = await datasets.exists(zfs, name)
        gone, left = datasets.what_is_gone(tree, now)
        again = [mounted for mounted in tree.to_unmount if now is not None and now.mountpoints.get(mounted, "-") is None]
        notes = [f"not mounted any more: {', '.join(again)}; `zfs mount` mounts it again"] if again else []
        return Answer("", record={"gone": few(gone) or "nothing", "left": f"{len(left)} of {len(gone) + len(left)}"}, notes=tuple(notes))

    return Plan(
        summary,
        (*unmounts, destroy),
        Risk.DATA_LOSS,
        targets(zfs.node, name, vmids=there.vmids),
        fingerprint=f"{tree.fingerprint}/{there.words}",
        obstacles=tuple(dict.fromkeys(obstacles)),
        doubts=tuple(dict.fromkeys(doubts)),
        otherwise=_what_goes(tree),
        conclude=conclude,
        after_failure=after_failure,
    )


def few(things: list[str], what: str = "") -> list[str]:
    """The first hundred, and how many more there are."""
    return things if len(things) <= MOST else [*things[:MOST], f"... and {len(things) - MOST} more {what}".rstrip()]


def _what_goes(tree: Tree) -> tuple[str, ...]:
    """The names of all that would go, as lines for the preview."""
    lines = [f"it holds {text.size(tree.top.used)}"]
    lines += few([f"goes with it: {dataset.name} ({'volume' if dataset.volume else 'file system'})" for dataset in tree.below], "datasets")
    if tree.bookmarks:
        lines.append(f"{len(tree.bookmarks)} bookmarks go with it")
    return (*lines, *(f"snapshots of {line}" for line in snapshots.named(tree.snapshots, NAMED)))
