"""A server and a pool for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from proxmox_mcp.ssh import SshPool
from tests.sshd import Sshd, start_sshd


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with start_sshd(tmp_path) as server:
        yield server


@pytest.fixture
async def pool(anyio_backend: str) -> AsyncIterator[SshPool]:
    pool = SshPool()
    yield pool
    await pool.close()
