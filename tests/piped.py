"""A small tool of the tests' own, to hold the pipeline itself to its word: it powers guest 101 of a served API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from proxmox_mcp.app import App, Call
from proxmox_mcp.arguments import Destroying, Vmid, Waiting
from proxmox_mcp.pipeline import Question
from proxmox_mcp.plan import Answer, ApiCall, Plan, Risk
from proxmox_mcp.registry import Tool
from tests.served_api import ServedApi, settings

UPID = "UPID:pve1:0000A1B2:00C0FFEE:69A4B000:qmstop:101:root@pam!mcp:"


class Power(Destroying, Waiting):
    vmid: Vmid
    action: Literal["look", "shutdown", "stop", "destroy"]
    times: int = 1
    on_failure: Literal["stop", "continue"] = "stop"


async def power(args: Power, call: Call) -> Answer | Plan:
    guest = await call.inventory.guest(args.vmid, change=args.action != "look")
    if args.action == "look":
        return Answer(f"guest {guest.vmid}", record={"status": guest.status})
    return Plan(
        f"{args.action} guest {guest.vmid} on {guest.node}",
        tuple(ApiCall("POST", ("nodes", guest.node, "qemu", guest.vmid, "status", args.action), {"timeout": n}) for n in range(args.times)),
        Risk.DATA_LOSS if args.action == "destroy" else Risk.CHANGE,
        (f"guest {guest.vmid}", f"node {guest.node}"),
        asks=args.action == "stop",
        on_failure=args.on_failure,
        undo="start it again",
    )


POWER = Tool("power", "Power", "Powers a guest.", "guests", Risk.DATA_LOSS, Power, power, True, {"action": ("look",)}, "guest")


@dataclass
class FakePerson:
    """A peer that answers at once; `asked` holds the plans it saw."""

    says: bool | None = True
    asked: list[Plan] = field(default_factory=list)
    told: list[tuple[float, str]] = field(default_factory=list)

    async def progress(self, elapsed: float, message: str) -> None:
        self.told.append((elapsed, message))

    @property
    def asks_now(self) -> bool:
        return self.says is not None

    async def approve(self, plan: Plan) -> bool | Question | None:
        self.asked.append(plan)
        return self.says


def serve_guest(api: ServedApi, *, exitstatus: str | None = "OK", node: str = "pve1") -> None:
    """Guest 101 on `node`, and a task that ends with `exitstatus` (None: it never ends)."""
    api.on("GET", "/cluster/resources", [{"vmid": 101, "node": node, "type": "qemu", "status": "running", "name": "web", "id": "qemu/101"}])
    api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}, {"node": "pve2", "status": "online"}])
    api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", UPID)
    ended = {"status": "stopped", "exitstatus": exitstatus} if exitstatus is not None else {"status": "running"}
    api.on("GET", "/nodes/{node}/tasks/{upid}/status", {"upid": UPID, "node": "pve1", "type": "qmstop", "id": "101", **ended})
    api.on("GET", "/nodes/{node}/tasks/{upid}/log", [{"n": 1, "t": "line one"}, {"n": 2, "t": f"TASK ERROR: {exitstatus}"}])


@asynccontextmanager
async def piped(tmp_path: Path, **changes: Any) -> AsyncIterator[tuple[ServedApi, App]]:
    """A served guest and an App that reaches it, its audit log in tmp_path/audit."""
    with ServedApi() as api:
        serve_guest(api)
        app = App(settings(api, audit_dir=tmp_path / "audit", **changes))
        try:
            yield api, app
        finally:
            await app.close()


def records(tmp_path: Path, which: str = "api") -> list[dict[str, Any]]:
    """The entries of an audit log, without the frame around them and without the opening record."""
    path = tmp_path / "audit" / (f"_{which}_audit.log" if which == "api" else f"_{which}_ssh_audit.log")
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line["record"] for line in lines if line["kind"] != "open"]
