"""What the parts of the served cluster share: refusals as the API words them, and the use of a guest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cluster.world import Guest, Row
from tests.served_api import Reply, Request

Need = tuple[str, tuple[str, ...]]  # path, and the privileges of which one is enough
NodeHandler = Callable[[Request, str], Any]


def refusal(text: str) -> Reply:
    return Reply(403, text, message=text)


def failure(text: str) -> Reply:
    return Reply(500, text, message=text)


def usage(guest: Guest) -> Row:
    """What a guest uses: in the cluster's list, in its node's and in its own status."""
    on = guest.running
    row: Row = {"name": guest.name, "status": guest.status, "maxmem": guest.memory, "maxdisk": guest.disk}
    row |= {"cpu": guest.cpu if on else 0, "mem": int(guest.memory * guest.mem) if on else 0, "uptime": guest.uptime if on else 0}
    row |= {"disk": guest.disk // 3 if on and guest.kind == "lxc" else 0, "diskread": 0, "diskwrite": 0}
    row |= {"netin": guest.uptime * 3000 if on else 0, "netout": guest.uptime * 1900 if on else 0}
    if guest.kind == "qemu":
        row["memhost"] = row["mem"]
    return row | {key: value for key, value in (("tags", guest.tags), ("lock", guest.lock)) if value}
