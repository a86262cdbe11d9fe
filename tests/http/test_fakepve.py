"""The client against an independent imitation of Proxmox (the package fakepve) over TLS, verified by its CA file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from proxmox_mcp import errors
from proxmox_mcp.config import Settings
from proxmox_mcp.http_client import HttpClient

pytestmark = pytest.mark.anyio


@pytest.fixture
async def http(fakepve_settings: Settings) -> AsyncIterator[HttpClient]:
    client = HttpClient(fakepve_settings)
    yield client
    await client.close()


async def test_reads(http: HttpClient) -> None:
    assert "version" in await http.get("version")
    nodes = await http.get("nodes")
    assert nodes
    tasks, total = await http.get_with_total("nodes", nodes[0]["node"], "tasks", params={"limit": 1})
    assert isinstance(tasks, list)
    assert total is None or total >= len(tasks)


async def test_a_wrong_secret(fakepve_settings: Settings) -> None:
    client = HttpClient(replace(fakepve_settings, token_value="00000000-0000-4000-8000-000000000000"))
    with pytest.raises(errors.AuthenticationError, match="Authentication failed"):
        await client.get("version")
    await client.close()


async def test_refusals_in_the_words_of_the_api(http: HttpClient) -> None:
    node = (await http.get("nodes"))[0]["node"]
    with pytest.raises(errors.Unsupported):
        await http.send("DELETE", ("version",), {})
    with pytest.raises(errors.ApiError) as caught:
        await http.get("nodes", node, "qemu", 99999, "config")
    assert "99999" in caught.value.said
    with pytest.raises(errors.ParameterError) as wrong:
        await http.send("POST", ("nodes", node, "qemu"), {"vmid": 4711, "memory": "lots", "nonsense": 1})
    assert set(wrong.value.fields) & {"memory", "nonsense"}


async def test_a_change_and_what_it_changed(http: HttpClient) -> None:
    node = (await http.get("nodes"))[0]["node"]
    words = "a;b=c+d&e\nf é %41 \u4e16"
    upid: Any = await http.send(
        "POST", ("nodes", node, "qemu"), {"vmid": 4711, "name": "made", "memory": 64, "onboot": True, "description": words}
    )
    assert upid.startswith("UPID:")
    found = await http.get("nodes", node, "tasks", upid, "status")
    assert found["upid"] == upid
    config = await http.get("nodes", node, "qemu", 4711, "config")
    assert config["name"] == "made"
    assert config["description"].rstrip("\n") == words
