"""Fixtures for all tests. fakepve and fakepve_cafile come from the package fakepve's own plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from proxmox_mcp import secrets
from proxmox_mcp.config import Member, Settings
from tests.served_api import ServedApi, settings


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test knows its own secrets alone: the process-wide set would mask another test's words."""
    monkeypatch.setattr(secrets, "_known", secrets.Known())


@pytest.fixture
def served() -> Iterator[ServedApi]:
    """A served API that knows no path yet."""
    with ServedApi() as api:
        yield api


@pytest.fixture
def fakepve_settings(fakepve: Any, fakepve_cafile: str) -> Settings:
    """Settings that reach the `fakepve` fixture with a token of root@pam, TLS verified by its CA file."""
    secret = "0f0e0d0c-0000-4000-8000-0123456789ab"
    fakepve.apitokens["root@pam!mcp"] = secret
    return settings(
        members=(Member(fakepve.host, fakepve.port),), token_value=secret, ca_file=fakepve_cafile, user="root@pam", token_name="mcp"
    )
