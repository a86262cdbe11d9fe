"""The plan that destroys a list of snapshots, in two steps: the second destroys what the first showed, as far as it still qualifies.

The list that was shown is kept by the server (looks.Looks), under the question that led to it, with each snapshot's guid. So the second
call has the published arguments alone, in both protocol eras; after a restart of the server one looks again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from proxmox_mcp import text
from proxmox_mcp.plan import Answer, Plan, Risk, StepResult
from proxmox_mcp.zfs import destroying, names, snapshots
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.snapshots import Found, Snapshot

NAMED = 20_000  # characters of names in a preview or an answer
REFUSED = 5_000  # and in a refusal, which is shorter, and says them twice
NOT_SHOWN = "this list was not shown before: it is now, and the same call again destroys exactly what it names"

SECOND = "the same call with dry_run=false destroys exactly these, as far as they still qualify then"


@dataclass(frozen=True)
class Removal:
    """What is to go, and what stays for which reason. `again` lists once more."""

    what: str  # which snapshots, for the summary: "of tank/data that match autosnap_*"
    question: Hashable
    going: Sequence[Snapshot]
    staying: Mapping[str, Sequence[Snapshot]]  # by reason
    again: Callable[[], Awaitable[Found]]
    risk: Risk
    asks: bool = False
    most: int | None = None
    obstacles: Sequence[str] = ()
    doubts: Sequence[str] = ()
    notes: Sequence[str] = field(default=())


def plan(zfs: Zfs, removal: Removal, *, looking: bool) -> Plan:
    """`zfs destroy dataset@a,b,c` in batches. `looking`: this call is the first step, so all that qualifies is shown and remembered."""
    looks = zfs.call.app.looks
    shown = looks.last(removal.question) or None
    going = list(removal.going)
    obstacles, notes = list(removal.obstacles), list(removal.notes)
    if looking or shown is None:
        going = snapshots.that_fit(going, NAMED if looking else REFUSED)
        if later := len(removal.going) - len(going):
            notes.append(f"{later} more qualify than fit into one list: they stay for now; the same two calls, made again, are for them")
        too_many = _more_than_allowed(removal, len(removal.going))
        looks.remember(removal.question, () if too_many else (snapshot.mark for snapshot in going))
        if going and not looking and not too_many:
            obstacles.append(NOT_SHOWN)
    else:
        going = [snapshot for snapshot in going if snapshot.mark in shown]
        fresh = [snapshot for snapshot in removal.going if snapshot.mark not in shown]
        notes += [f"not in the list that was shown, so left alone: {line}" for line in snapshots.named(fresh, NAMED // 4)]
        if len(going) < len(shown):
            notes.append(f"{len(shown) - len(going)} of the {len(shown)} that were shown are gone or stay now")
        too_many = _more_than_allowed(removal, len(going))
    obstacles += too_many
    free = text.size(sum(snapshot.used or 0 for snapshot in going))
    stays = [f"stays, {reason}: {line}" for reason, kept in removal.staying.items() for line in snapshots.named(kept, NAMED // 4)]
    notes += destroying.few(stays, "that stay")
    batches = list(snapshots.batches(going))
    account = _account(zfs, removal, going, batches)
    datasets = list(snapshots.grouped(going))
    vmids = sorted({vmid for dataset in datasets if (vmid := names.guest_of(dataset)) is not None})
    count = f"{len(going)} snapshot{'' if len(going) == 1 else 's'}"
    return Plan(
        f"destroy {count} {removal.what} on node {zfs.node}" if going else f"no snapshot {removal.what} on node {zfs.node} may go",
        tuple(zfs.command("zfs", "destroy", snapshots.operand(batch), timeout=300.0) for batch in batches),
        removal.risk,
        destroying.targets(zfs.node, *datasets[:20], vmids=vmids),
        asks=removal.asks,
        on_failure="continue",
        fingerprint=" ".join(snapshot.guid for snapshot in going),
        obstacles=tuple(obstacles),
        doubts=tuple(removal.doubts),
        notes=tuple(notes),
        otherwise=(
            *(f"goes: {line}" for line in snapshots.named(going, NAMED)),
            *((f"at least {free} become free", SECOND) if going else ()),
        ),
        conclude=account,
        after_failure=account,
    )


def _more_than_allowed(removal: Removal, count: int) -> list[str]:
    if removal.most is None or count <= removal.most:
        return []
    return [f"{count} snapshots are more than max_delete={removal.most}: raise it, or narrow the pattern"]


def _account(
    zfs: Zfs, removal: Removal, going: Sequence[Snapshot], batches: Sequence[Sequence[Snapshot]]
) -> Callable[[Sequence[StepResult]], Awaitable[Answer]]:
    async def account(results: Sequence[StepResult]) -> Answer:
        """What became of each, by a new list."""
        gone, left = snapshots.still_there(going, (await removal.again()).snapshots)
        said = {
            snapshot.mark: (result.text or result.state).partition("\n")[0]
            for batch, result in zip(batches, results, strict=True)
            for snapshot in batch
        }
        record = {"destroyed": f"{len(gone)} of {len(going)}", "names": list(snapshots.named(gone, NAMED))}
        if left:
            record["left"] = [f"{snapshot.name}: {_why(snapshot, said.get(snapshot.mark, ''))}" for snapshot in left[:200]]
        done = "Done" if not left else "Not all of them are gone"
        return Answer(f"{done}: destroy snapshots {removal.what} on node {zfs.node}", record=record, failed=bool(left))

    return account


def _why(snapshot: Snapshot, said: str) -> str:
    if snapshot.deferred:
        return "marked for destruction, goes with its last hold or clone"
    return snapshots.cannot_go(snapshot) or (said if said != "ok" else "still there, though ZFS reported success")
