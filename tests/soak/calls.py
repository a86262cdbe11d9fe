"""What a busy assistant asks of the demo cluster, good and bad; drawn by weight."""

from __future__ import annotations

import random
from typing import Any

Call = tuple[str, dict[str, Any]]

RUNNING = (100, 101, 102, 103, 105, 106, 108, 110, 200, 201, 202, 203, 206)
EXPENDABLE = (104, 205)  # a VM and a container that nobody minds
YES = {"confirm": True, "reason": "soak"}
ALL = {**YES, "i_understand_data_loss": True}
PLAIN = (
    "health_overview", "list_vms", "list_nodes", "list_storage", "list_cluster_storage", "list_backups", "list_backup_jobs", "list_isos",
    "list_disks", "list_lvm", "list_lvm_thin", "list_zfs", "list_tasks", "audit_verify",
)  # fmt: skip


def draw(dice: random.Random, *, ssh: bool) -> Call:
    """One call: a read, a change, a refusal, a wrong argument or a command."""
    kinds = [(_read, 60), (_change, 22), (_refused, 8), (_wrong, 5), *([(_command, 8)] if ssh else [])]
    (chosen,) = dice.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
    name, arguments = chosen(dice)
    return f"proxmox_{name}", arguments


def _read(dice: random.Random) -> Call:
    more: dict[str, Any] = dice.choice(({}, {"response_format": "json"}))
    vmid, node = dice.choice((*RUNNING, *EXPENDABLE, 107, 999)), dice.choice(("pve1", "pve2", "pve3", "PVE1", "pve9"))
    if dice.random() < 0.6:
        return dice.choice(PLAIN), more
    return dice.choice(
        (
            ("get_vm_status", {"vmid": vmid, **more}),
            ("list_snapshots", {"vmid": vmid, **more}),
            ("get_node_status", {"node": node, **more}),
            ("list_vms", {"node": node, **more}),
            ("list_vms", {"limit": 5, **more}),
            ("list_tasks", {"node": node, "limit": 200, **more}),
            ("storage_usage_detail", {"storage": dice.choice(("nas", "pbs", "local", "nope")), **more}),
            ("get_disk_smart", {"node": "pve1", "disk": "sda", **more}),
            ("get_zfs_pool", {"node": "pve2", "name": "tank", **more}),
        )
    )


def _change(dice: random.Random) -> Call:
    vmid, wait = dice.choice(EXPENDABLE), {"wait_seconds": dice.choice((0, 1, 5))}
    name = f"soak{dice.randrange(4)}"
    return dice.choice(
        (
            ("vm_power", {"vmid": vmid, "action": dice.choice(("start", "stop", "shutdown", "reboot")), **YES, **wait}),
            ("vm_power", {"vmid": dice.choice(RUNNING), "action": "reboot", **YES, **wait}),
            ("snapshot", {"vmid": vmid, "action": "create", "snapname": name, **YES, **wait}),
            ("snapshot", {"vmid": vmid, "action": "rollback", "snapname": name, **ALL, **wait}),
            ("snapshot", {"vmid": vmid, "action": "delete", "snapname": name, **ALL, **wait}),
            ("resize_vm", {"vmid": vmid, "memory_mb": 1024 * dice.randint(2, 8), **YES}),
            ("vm_power", {"vmid": vmid, "action": "start", "dry_run": True}),
        )
    )


def _refused(dice: random.Random) -> Call:
    vmid = dice.choice(RUNNING)
    return dice.choice(
        (
            ("vm_power", {"vmid": vmid, "action": "stop"}),
            ("snapshot", {"vmid": vmid, "action": "delete", "snapname": "before_php84", "confirm": True}),
            ("vm_power", {"vmid": 9000, "action": "start", **YES}),
            ("move_disk", {"vmid": vmid, "disk": "scsi0", "target_storage": "nope", **YES}),
        )
    )


def _wrong(dice: random.Random) -> Call:
    return dice.choice(
        (
            ("get_vm_status", {"vmid": "x"}),
            ("get_vm_status", {}),
            ("get_node_status", {"node": "../../etc"}),
            ("list_vms", {"nodde": "pve1"}),
            ("list_vms", {"cursor": "bm8"}),
            ("vm_power", {"vmid": 101, "action": "stop", "confirm": "true"}),
            ("no_such_tool", {}),
        )
    )


def _command(dice: random.Random) -> Call:
    return dice.choice(
        (
            ("host_read_exec", {"command": dice.choice(("uptime", "cat /etc/os-release", "df -h", "cat /etc/shadow"))}),
            ("host_exec", {"command": dice.choice(("uptime", "sleep 0.3", "yes | head -c 3000000")), **ALL}),
            ("vm_exec", {"alias": "web", "command": "id -un", **ALL}),
            ("vm_read_file", {"alias": "web", "path": "/etc/os-release"}),
            ("vm_list_hosts", {}),
        )
    )
