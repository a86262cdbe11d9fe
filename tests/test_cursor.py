"""Cursors: rows neither repeat nor vanish, and a cursor works for its own list alone."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp import cursor
from proxmox_mcp.errors import InvalidArgument

VALUES = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=5), st.booleans())


@given(st.lists(st.fixed_dictionaries({"a": VALUES, "id": st.integers()}), max_size=20), st.booleans())
def test_any_rows_have_an_order(rows: list[dict[str, object]], descending: bool) -> None:
    key = cursor.key_of(("-a" if descending else "a", "id"))
    ordered = sorted(rows, key=key)
    assert sorted(map(key, rows)) == [key(row) for row in ordered]
    for row in rows:
        assert cursor.decode(cursor.encode("t", {}, key(row)), "t", {}) == key(row)


@given(st.lists(st.fixed_dictionaries({"n": st.one_of(st.integers(), VALUES)}), max_size=20), st.sampled_from(["n", "-n"]))
def test_the_fast_sort_is_the_same_sort(rows: list[dict[str, object]], order: str) -> None:
    ordered = list(rows)
    cursor.sort(ordered, (order,))  # type: ignore[arg-type]
    assert list(map(cursor.key_of((order,)), ordered)) == sorted(map(cursor.key_of((order,)), rows))


def test_unknown_comes_last_in_both_directions() -> None:
    rows = [{"n": None}, {"n": 1}, {"n": 3}]
    assert [row["n"] for row in sorted(rows, key=cursor.key_of(("n",)))] == [1, 3, None]
    assert [row["n"] for row in sorted(rows, key=cursor.key_of(("-n",)))] == [3, 1, None]


@pytest.mark.parametrize(("tool", "filters"), [("other", {"status": "running"}), ("list", {"status": "stopped"}), ("list", {})])
def test_a_cursor_with_other_filters_is_refused(tool: str, filters: dict[str, str]) -> None:
    made = cursor.encode("list", {"status": "running", "node": None}, ((0, 101),))
    assert cursor.decode(made, "list", {"status": "running"}) == ((0, 101),)
    with pytest.raises(InvalidArgument, match="other filters"):
        cursor.decode(made, tool, filters)


def test_a_forged_cursor_cannot_bring_a_foreign_type_into_the_order() -> None:
    mark = json.loads(base64.urlsafe_b64decode(cursor.encode("t", {}, ((0, 1),)) + "=="))[0]
    for parts in ([[0, "text"]], [[1, 5]], [[0, [1]]], "x", [[0]], None, [[0, {}]]):
        forged = base64.urlsafe_b64encode(json.dumps([mark, parts]).encode()).decode().rstrip("=")
        with pytest.raises(InvalidArgument, match="not a cursor"):
            cursor.decode(forged, "t", {})


@given(st.text(max_size=40))
def test_junk_is_refused(junk: str) -> None:
    with pytest.raises(InvalidArgument):
        cursor.decode(junk, "t", {})
