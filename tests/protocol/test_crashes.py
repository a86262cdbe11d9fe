"""Errors that nobody foresaw: the client learns that there was one, the log what it was, and neither a secret."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from mcp import MCPError

from tests.protocol.talking import ERAS, ask, over_stdio
from tests.served_api import SECRET, ServedApi, environment

pytestmark = pytest.mark.anyio


@ERAS
async def test_a_crash_is_told_without_its_text_and_logged_without_secrets(tmp_path: Path, era: str) -> None:
    with ServedApi() as api:
        async with over_stdio(tmp_path, environment(api), era=era, module="tests.protocol.crashing") as client:
            failed, text = await ask(client, "proxmox_crash")
            assert failed
            assert text == "proxmox_crash failed inside the server; its log (stderr) has the details"
            with pytest.raises(MCPError) as refused:
                await client.read_resource("proxmox://crash")
            assert "foresaw" not in refused.value.error.message
            with pytest.raises(MCPError) as refused:
                await client.get_prompt("prompt")
            assert SECRET not in refused.value.error.message
            assert "NOTHING RECORDED" in (await ask(client, "proxmox_audit_verify"))[1]  # it goes on
    log = (tmp_path / "stderr").read_text()
    assert log.count("Traceback") >= 2
    assert "nobody foresaw" in log
    assert SECRET not in log
    assert "hunter2" not in log
    assert not {ch for ch in log if unicodedata.category(ch) in ("Cc", "Cf") and ch != "\n"}
