"""What the token may do, and what that explains about an empty list."""

from __future__ import annotations

from dataclasses import dataclass

from proxmox_mcp import privileges


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the token may do: `entries` is GET /access/permissions (path -> privilege -> 1 when it also holds below); None: unknown."""

    entries: privileges.Permissions | None

    def has(self, path: str, privilege: str) -> bool | None:
        """Whether the privilege is held on the path: said for it, or passed down from the nearest path that the list names."""
        if self.entries is None:
            return None
        return privileges.judge((privileges.Need(path, (privilege,)),), self.entries).state == "works"

    def explains_empty(self, what: str, path: str, *any_of: str) -> str:
        """Why a list of `what` may be empty or short without an error; "" when the token would see all there is, by one of these."""
        if self.entries is None:
            return f"whether this token may see all {what} is not known: its permissions could not be read"
        if not self.entries:
            return (
                f"0 {what} are visible to this token, and its permission list is empty: with no role Proxmox shows it nothing. "
                "Grant one: Datacenter → Permissions → API Token Permission"
            )
        need = privileges.Need(path, any_of)
        verdict = privileges.judge((need,), self.entries)
        if verdict.state == "works":
            return ""
        only = f", only on {', '.join(verdict.only[:5])}" if verdict.only else ""
        return f"this token sees only some {what} or none: it does not hold {need}{only}"

    def explains_no_backups(self, *storages: str, vmid: int | None = None) -> str:
        """Which privileges are missing to see every backup (of one guest) on these storages; "" when the token would see all there is."""
        guests = "/vms" if vmid is None else f"/vms/{vmid}"
        if self.entries is None:
            return f"whether this token may see all backups on {', '.join(storages)} is not known: its permissions could not be read"
        places = [place for name in storages if not self.has(place := f"/storage/{name}", "Datastore.Allocate")]
        blind = [place for place in places if not self.has(place, "Datastore.AllocateSpace")]
        missing = [f"Datastore.AllocateSpace on {', '.join(blind)}"] if blind else []
        missing += [f"VM.Backup on {guests}"] if places and not self.has(guests, "VM.Backup") else []
        return f"Proxmox leaves out backups that a token may not read; this one lacks {' and '.join(missing)}" if missing else ""

    def explains_no_disks(self, storage: str) -> str:
        """The same for the disks of guests on a storage."""
        place = f"/storage/{storage}"
        if self.entries is None:
            return f"whether this token may see all disks on {storage} is not known: its permissions could not be read"
        if self.has(place, "Datastore.Allocate"):
            return ""
        needs = ((place, "Datastore.Audit"), ("/vms", "VM.Config.Disk"))
        missing = " and ".join(f"{privilege} on {path}" for path, privilege in needs if not self.has(path, privilege))
        return f"Proxmox leaves out the disks of guests that a token may not configure; this one lacks {missing}" if missing else ""
