"""What holds for ZFS pools and volume groups alike: a new one may take a storage id, a destroyed one takes all who live there along."""

from __future__ import annotations

from collections.abc import Sequence

from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.changes.storage_users import Tenants
from proxmox_mcp.inventory import StorageRef
from proxmox_mcp.privileges import Need

_STORAGES = Need("/storage", ("Datastore.Allocate",))


async def storage_id_is_free(checks: Checks, name: str, node: str, kind: str) -> None:
    """With add_storage the new pool's name becomes a storage id: taken, unless that storage is of this kind and for other nodes."""
    await checks.privileges(_STORAGES)
    known = next((ref for ref in await checks.inventory.storages() if ref.name == name), None)
    if known is None or (known.type == kind and known.nodes is not None and node not in known.nodes):
        return
    where = "every node" if known.nodes is None else ", ".join(sorted(known.nodes))
    checks.refuse(f"there is a storage {name} already (type {known.type}, for {where}): take another name, or add_storage=false")


async def may_destroy(checks: Checks, there: Tenants, *, cleanup_config: bool) -> None:
    """Nothing is pulled from under a running guest. Guests that are stopped lose their disks: the plan names them, the flag decides."""
    if cleanup_config:
        await checks.privileges(_STORAGES)
    if there.running:
        checks.refuse(f"guests that may be running have disks there: {', '.join(there.running)}; stop them first")


async def fate(checks: Checks, there: Tenants, own: Sequence[StorageRef], node: str, *, cleanup_config: bool, cleanup_disks: bool) -> str:
    """What goes with it, as the end of a sentence. `own`: the storages whose entries Proxmox cleans up; others that stand on it stay.

    Cleaning up takes the node out of an entry that is for other nodes too, and the entry away where it was the only one.
    """
    cleaned = list(own) if cleanup_config else []
    everyone = {one.name for one in await checks.inventory.nodes()}
    others = {ref.name: sorted((everyone if ref.nodes is None else ref.nodes) - {node}) for ref in cleaned}
    gone = [name for name, nodes in others.items() if not nodes]
    left = [name for name in there.storages if name not in others]
    parts = [f"lost are {there.words}" if there.words else "no guest is known to have disks there"]
    parts += [f"the entry of storage {', '.join(gone)} goes too"] if gone else []
    parts += [f"storage {name} stays for {', '.join(nodes)} alone" for name, nodes in others.items() if nodes]
    parts += [f"the entry of storage {', '.join(left)} stays and points nowhere on {node}"] if left else []
    parts += ["its disks are wiped"] if cleanup_disks else []
    return f"; {'; '.join(parts)}"
