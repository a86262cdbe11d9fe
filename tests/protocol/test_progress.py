"""Progress and cancellation by the official client over stdio, in both protocol eras."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.cluster import ServedCluster, served_cluster
from tests.protocol.talking import ERAS, call, over_stdio
from tests.served_api import environment

pytestmark = pytest.mark.anyio
REBOOT = {"vmid": 100, "action": "reboot", "confirm": True}


@pytest.fixture
def endless() -> Iterator[tuple[ServedCluster, dict[str, str]]]:
    """A cluster whose reboot task goes on for ever and writes its log."""
    with served_cluster() as api:
        task = api.world.task("pve1", "qmreboot", "100", age=1, took=None, token="mcp", log=["trying\x1b[2J to \u202ereboot"])
        api.on("POST", "/nodes/{node}/qemu/{vmid}/status/{action}", task.upid)
        yield api, environment(api, PROXMOX_MAX_WAIT="3")


def audit(home: Path) -> list[dict[str, Any]]:
    (log,) = home.rglob("_api_audit.log")
    return [json.loads(line) for line in log.read_text().splitlines()]


@ERAS
async def test_a_wait_is_told_and_ends_with_the_task_still_running(endless: Any, tmp_path: Path, era: str) -> None:
    _, env = endless
    told: list[tuple[float, float | None, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message or ""))

    async with over_stdio(tmp_path, env, era=era) as client:
        found = await client.call_tool("proxmox_vm_power", {**REBOOT, "wait_seconds": 900}, progress_callback=hear)
        assert not found.is_error
        assert "still running" in found.content[0].text  # type: ignore[union-attr]
        assert told
        assert [step[0] for step in told] == sorted({step[0] for step in told})  # it only ever grows
        assert "trying to reboot" in told[-1][2]
        assert not any("\x1b" in message or "\u202e" in message for _, _, message in told)
    assert (tmp_path / "stderr").read_text() == ""


@ERAS
async def test_a_cancelled_wait_leaves_the_task_and_its_record(endless: Any, tmp_path: Path, era: str) -> None:
    api, env = endless
    async with over_stdio(tmp_path, {**env, "PROXMOX_MAX_WAIT": "60"}, era=era) as client:
        with anyio.move_on_after(60) as scope:
            heard = anyio.Event()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.set()

            async with anyio.create_task_group() as group:

                async def power() -> None:
                    await client.call_tool("proxmox_vm_power", {**REBOOT, "wait_seconds": 50}, progress_callback=hear)
                    raise AssertionError("a cancelled call got an answer")

                group.start_soon(power)
                await heard.wait()
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught
        assert "web-1" in await call(client, "proxmox_get_vm_status", vmid=100)  # the server goes on
        with anyio.fail_after(10):
            while len(audit(tmp_path)) < 3:  # noqa: ASYNC110 - another process is on its way
                await anyio.sleep(0.02)
    assert len(api.writes) == 1
    outcome = audit(tmp_path)[2]["record"]
    assert outcome["state"] == "unknown"
    assert outcome["abandoned"].endswith("step 1 of 1")
    assert outcome["steps"][0]["upid"].startswith("UPID:pve1:")
    assert (tmp_path / "stderr").read_text() == ""
