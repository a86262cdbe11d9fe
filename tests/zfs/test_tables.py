"""-Hp output is split at tabs, never by eye."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxmox_mcp.zfs import names, tables

FACTS = Path(__file__).parents[3] / "shared" / "host" / "FACTS.md"


def test_names_hold_blanks_and_a_dash_is_nothing() -> None:
    (row,) = tables.rows("tank/data/with space\t98304\t-\t/tank/data/with space\n", ("name", "used", "quota", "mountpoint"))
    assert row == {"name": "tank/data/with space", "used": "98304", "quota": None, "mountpoint": "/tank/data/with space"}


def test_lines_around_a_cut_are_left_out() -> None:
    text = "tank@a\t1\ntank@b\n[... 120 bytes left out ...]\nc\t2\t3\ntank@d\t4\n"
    assert [row["name"] for row in tables.rows(text, ("name", "used"))] == ["tank@a", "tank@d"]


@pytest.mark.parametrize(
    ("value", "number"), [("0", 0), ("280580096", 280580096), ("-", None), ("none", None), (None, None), ("1.69", None), ("²", None)]
)
def test_numbers(value: str | None, number: int | None) -> None:
    assert tables.integer(value) == number


def test_a_users_property_may_hold_what_it_likes() -> None:
    text = (
        "tank/data\tquota\t0\tdefault\n"
        "tank/data\torg.lab:note\ta user property, with = and : in it\tlocal\n"
        "tank/data\torg.lab:two\tline one\n\tline\ttwo\tinherited from tank\n"
    )
    assert tables.properties(text, "tank/data") == [
        ("quota", "0", "default"),
        ("org.lab:note", "a user property, with = and : in it", "local"),
        ("org.lab:two", "line one\n\tline\ttwo", "inherited from tank"),
    ]
    assert tables.properties("", "tank/data") == []


def test_the_estimate_is_the_last_line() -> None:
    assert tables.estimate("incremental\ttank/data@before\ttank/data@manual-1\t8438384\nsize\t8438384\n") == 8438384
    assert tables.estimate("") is None


def test_every_recorded_list_is_read_whole() -> None:
    if not FACTS.exists():
        pytest.skip("the recorded host answers are not here")
    text = FACTS.read_text().replace("\\t", "\t")
    found = text.split("`$ zfs list -t snapshot -Hp -o name,used,referenced,creation`")[1].split("```\n")[1]
    rows = tables.rows(found, ("name", "used", "referenced", "creation"))
    assert len(rows) == found.count("\n") == 28
    assert all(names.snapshot(row["name"] or "") and tables.integer(row["creation"]) for row in rows)
    assert "tank/data/with space@manual-1" in {row["name"] for row in rows}
