"""Prompts through the official client: they name only tools that are on offer, and hold what was typed as one clean word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mcp import Client, MCPError

from proxmox_mcp import registry
from tests.protocol.talking import ERAS, in_memory, names

pytestmark = pytest.mark.anyio
SIX = ["health_check", "why_did_this_task_fail", "backup_review", "capacity_review", "safe_upgrade", "what_fills_a_storage"]
ARGUMENTS = {"safe_upgrade": {"vmid": "101"}}


async def message(client: Client, name: str, **arguments: str) -> str:
    (said,) = (await client.get_prompt(name, arguments or ARGUMENTS.get(name))).messages
    assert said.role == "user"
    return said.content.text  # type: ignore[union-attr]


@ERAS
async def test_the_six_are_listed_with_titles_descriptions_and_arguments(tmp_path: Path, era: str) -> None:
    async with in_memory(None, tmp_path, era) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert list(prompts) == SIX
    assert all(prompt.title and prompt.description for prompt in prompts.values())
    arguments = {name: [(a.name, bool(a.required)) for a in prompt.arguments or ()] for name, prompt in prompts.items()}
    assert arguments["safe_upgrade"] == [("vmid", True), ("change", False)]
    assert arguments["why_did_this_task_fail"] == [("upid", False)]
    assert arguments["what_fills_a_storage"] == [("storage", False)]
    assert all(a.description for prompt in prompts.values() for a in prompt.arguments or ())


CHOICES = [
    {},
    {"PROXMOX_READ_ONLY": "1"},
    {"PROXMOX_TOOLS": "proxmox_get_vm_status,proxmox_list_backups,proxmox_storage_usage_detail,proxmox_get_task_log"},
    *({"PROXMOX_TOOLSETS": group} for group in registry.GROUPS),
]


@ERAS
async def test_each_names_tools_that_exist_and_are_on_offer(tmp_path: Path, era: str) -> None:
    for choice in CHOICES:
        if choice.get("PROXMOX_TOOLSETS") and not any(tool.group == choice["PROXMOX_TOOLSETS"] for tool in registry.all_tools()):
            continue
        async with in_memory(None, tmp_path, era, **choice) as client:
            offered = set(await names(client))
            for prompt in (await client.list_prompts()).prompts:
                text = await message(client, prompt.name)
                named = set(re.findall(r"proxmox_\w+", text))
                assert named <= offered, (choice, prompt.name)
                assert named, (choice, prompt.name)
                assert "  " not in text
                assert not re.search(r"[:,] ?[.;]|: *$", text), text


@ERAS
async def test_all_six_work_with_reading_tools_alone(tmp_path: Path, era: str) -> None:
    async with in_memory(None, tmp_path, era, PROXMOX_READ_ONLY="1") as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == SIX
        plan = await message(client, "safe_upgrade", vmid="101", change="Debian 13")
        assert "this change: Debian 13, safely, on guest 101" in plan
        assert "carry out myself" in plan
        assert "dry_run" not in plan


async def test_those_that_only_look_say_so(tmp_path: Path) -> None:
    async with in_memory(None, tmp_path) as client:
        for name in SIX:
            text = await message(client, name)
            assert "Change nothing." in text or "Delete nothing." in text or "go on only when I say so" in text


@ERAS
async def test_what_was_typed_is_cleaned_and_capped(tmp_path: Path, era: str) -> None:
    async with in_memory(None, tmp_path, era) as client:
        text = await message(client, "safe_upgrade", vmid="101\n\x1b[2J\u202eSYSTEM", change="y" * 5_000)
        assert "guest 101 SYSTEM." in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert len(text) < 1_500


@ERAS
async def test_a_missing_argument_or_prompt_is_an_error_that_says_which(tmp_path: Path, era: str) -> None:
    async with in_memory(None, tmp_path, era) as client:
        for name, word in (("safe_upgrade", "vmid"), ("no_such", "no_such")):
            with pytest.raises(MCPError, match=word) as refused:
                await client.get_prompt(name)
            assert refused.value.error.code == -32602
