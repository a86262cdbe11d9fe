"""The gates of a Plan, in this order: read-only mode, dry run (shown, not refused), limits, confirm, data loss, obstacles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxmox_mcp import limits
from proxmox_mcp.arguments import Changing
from proxmox_mcp.config import Settings
from proxmox_mcp.errors import Refused
from proxmox_mcp.plan import Plan, Risk
from proxmox_mcp.preview import preview


def check_mode(settings: Settings) -> None:
    """Read-only mode refuses every plan, a dry run included: its steps must not even look available."""
    if settings.read_only:
        raise Refused("the server runs in read-only mode (PROXMOX_READ_ONLY)", hint="only the owner of the server can change this")


def check_limits(plan: Plan, settings: Settings) -> None:
    """Changes outside PROXMOX_ALLOW_VMIDS and PROXMOX_ALLOW_NODES are refused."""
    for target in plan.targets:
        kind, _, name = target.partition(" ")
        if kind == "guest" and not limits.guest_inside(settings, int(name)):
            raise Refused(f"guest {name} is outside PROXMOX_ALLOW_VMIDS")
        if kind == "node" and not limits.node_inside(settings, name):
            raise Refused(f"node {name} is outside PROXMOX_ALLOW_NODES")


def check_flags(plan: Plan, args: Changing) -> None:
    """confirm for every plan, i_understand_data_loss for data loss, and nothing certain in the way."""
    missing = [flag for flag in _wanted(plan) if getattr(args, flag, False) is not True]
    if missing:
        raise Refused(f"{' and '.join(f'{flag}=true' for flag in missing)} missing. It would do:\n" + "\n".join(preview(plan)))
    if plan.obstacles:
        raise Refused("it would fail.\n" + "\n".join(preview(plan)))


def wants_person(plan: Plan, settings: Settings) -> bool:
    """Whether the policy PROXMOX_APPROVAL wants a person's word for this plan."""
    if settings.approval == "off":
        return False
    return settings.approval == "all" or plan.risk is Risk.DATA_LOSS or plan.asks


def given_flags(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The gates that the caller opened, for the record."""
    return tuple(flag for flag in ("confirm", "i_understand_data_loss", "force") if arguments.get(flag) is True)


def _wanted(plan: Plan) -> tuple[str, ...]:
    return ("confirm", "i_understand_data_loss") if plan.risk is Risk.DATA_LOSS else ("confirm",)
