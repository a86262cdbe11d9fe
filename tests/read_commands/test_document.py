"""The page in docs/ is what the tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxmox_mcp.read_commands import describe
from proxmox_mcp.read_commands.document import document

PAGE = Path(__file__).parents[2] / "docs" / "read-only-commands.md"


def test_the_page_is_up_to_date() -> None:
    if not PAGE.exists():
        pytest.skip("docs/ is not here")
    assert PAGE.read_text(encoding="utf-8") == document(), "run: python -m scripts.generate"


def test_every_row_is_on_the_page() -> None:
    page = document()
    for row in describe():
        assert f"| `{row.usage}` |".replace("|", "\\|") in page.replace("|", "\\|").replace("\\\\|", "\\|")
