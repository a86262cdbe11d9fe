"""No test of the configuration reads a file of the person who runs it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, configuration directory and working directory."""
    home = tmp_path_factory.mktemp("home")
    (home / "work").mkdir()
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.chdir(home / "work")
    return home
