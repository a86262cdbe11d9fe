"""Every append looks at the names of its files, so that tests need not wait until it does."""

from __future__ import annotations

import pytest

from proxmox_mcp.audit import log


@pytest.fixture(autouse=True)
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LOOK", 0.0)
