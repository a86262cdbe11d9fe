"""Every tool with arguments made from its own schema: no request that Proxmox would refuse, no exception that nobody foresaw.

More examples: PVE_MCP_FUZZ=1000 python -m pytest tests/fuzz
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxmox_mcp import pipeline
from proxmox_mcp.app import App
from proxmox_mcp.arguments import parse, schema
from proxmox_mcp.errors import InvalidArgument, ProxmoxMcpError
from proxmox_mcp.registry import Tool, all_tools
from proxmox_mcp.ssh import Outcome
from tests.cluster import ServedCluster, served_cluster
from tests.fuzz.plausible import arguments
from tests.piped import FakePerson
from tests.pve_schema import validator
from tests.served_api import settings as api_settings

EXAMPLES = int(os.environ.get("PVE_MCP_FUZZ", "15"))
TOOLS = {tool.name: tool for tool in all_tools()}


class EndlessPatience:
    """Stands for the SSH pool: every command ends at once with nothing; the argv are kept."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def known_hostname(self, target: Any) -> str:
        return "pve1"

    async def run(self, target: Any, argv: Any, **more: Any) -> Outcome:
        self.ran.append(tuple(argv))
        return Outcome(0, None, False, False, False, "", "", 0, 0, False, 0.01, 0, "")

    async def close(self) -> None:
        return None


@pytest.fixture(scope="module")
def cluster() -> Iterator[ServedCluster]:
    with served_cluster(nodes=2, guests=6) as api:
        yield api


@pytest.mark.parametrize("name", sorted(TOOLS))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_exception_escapes_and_no_request_leaves_that_proxmox_would_refuse(
    name: str, cluster: ServedCluster, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tool = TOOLS[name]
    given_arguments = data.draw(arguments(schema(tool.model)))
    before, pool = len(cluster.requests), EndlessPatience()
    anyio.run(_call, tool, given_arguments, cluster, tmp_path_factory.getbasetemp() / "fuzz", pool)
    for argv in pool.ran:
        assert all("\0" not in word for word in argv)
    checker = validator()
    for request in cluster.requests[before:]:
        if checker is not None:
            assert not checker.check(request.method, request.path, request.params, "form"), (request.method, request.target, request.form)


async def _call(tool: Tool, given_arguments: dict[str, Any], cluster: ServedCluster, audit: Path, pool: EndlessPatience) -> None:
    app = App(api_settings(cluster, audit_dir=audit, ssh_host="127.0.0.1", max_wait=0.2, zfs_send_dirs=("/mnt/x",)))
    app.__dict__["ssh"] = pool
    sent = len(cluster.requests)
    refusal: ProxmoxMcpError | None = None
    try:
        found = await pipeline.run(tool, given_arguments, app, FakePerson())
        assert isinstance(found, pipeline.Result)
        assert found.text
    except ProxmoxMcpError as anticipated:
        refusal = anticipated
    finally:
        await app.close()
    if not _fits(tool, given_arguments):
        assert isinstance(refusal, InvalidArgument)
        assert refusal.argument
        assert len(cluster.requests) == sent


def _fits(tool: Tool, given_arguments: dict[str, Any]) -> bool:
    try:
        parse(tool.model, given_arguments)
    except InvalidArgument:
        return False
    return True
