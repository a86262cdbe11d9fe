"""One server for the tests of a module, a pool for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from proxmox_mcp.ssh import SshPool
from tests.sshd import Sshd, start_sshd


@pytest.fixture(scope="module")
def _sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with start_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def sshd(_sshd: Sshd) -> Sshd:
    """A running server; its log, and so the count of its connections, begins with the test."""
    _sshd.log.write_text("")
    return _sshd


@pytest.fixture
async def pool(anyio_backend: str) -> AsyncIterator[SshPool]:
    pool = SshPool()
    yield pool
    await pool.close()
