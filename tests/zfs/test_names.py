"""ZFS's grammar of names: what it takes is taken, and nothing that is taken can become an option, a path or a second name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.ssh import Outcome, operand
from proxmox_mcp.zfs import names, snapshots
from proxmox_mcp.zfs.host import Zfs
from proxmox_mcp.zfs.snapshots import Snapshot

HOSTILE = (
    *("", "-r", "--help", "/", "tank/", "/tank", "tank//x", "tank/../x", "tank/.", "tank/x;id", "tank/$(id)", "tank/`id`", "tank/a,b"),
    *("tank/a\tb", "tank/a\nb", "tank/a%b", "tank/x!", "tänk", "tank/\u202ex", "9tank", "tank\x00", "a" * 256, "tank" + "/x" * 50),
)


@pytest.mark.parametrize("name", ["tank", "rpool/data", "tank/data/with space", "tank/a:b", "tank/-x", "tank/a_b-c.d", "a" * 255])
def test_what_zfs_takes_as_a_dataset(name: str) -> None:
    assert names.dataset(name) == name


@pytest.mark.parametrize("name", [*HOSTILE, "tank@x", "tank/x@y", "tank#b"])
def test_what_is_no_dataset(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        names.dataset(name)


@pytest.mark.parametrize(
    "name", ["tank@a", "tank/with space@autosnap_2025-11-30_00:00:01_daily", "tank/x@-r", "tank@zfs-auto-snap_frequent-1"]
)
def test_snapshots(name: str) -> None:
    assert names.snapshot(name) == name
    assert names.anything(name) == name


@pytest.mark.parametrize(
    "name", ["tank", "tank@", "@x", "tank@a@b", "tank@a/b", "tank@a,b", "tank@a%b", "tank@*", "tank@..", "tank@" + "x" * 251]
)
def test_what_is_no_snapshot(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        names.snapshot(name)


@given(st.text())
def test_a_name_that_passes_can_never_be_anything_else(text: str) -> None:
    for rule in (names.pool, names.dataset, names.snapshot, names.anything):
        check: Callable[[str], str] = rule
        try:
            name = check(text)
        except ValueError:
            continue
        assert operand(name) == name
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_.:@#/ -]*", name)


@given(
    st.lists(
        st.from_regex(r"[A-Za-z0-9_.: -]{1,30}", fullmatch=True).filter(lambda part: part not in (".", "..")), min_size=1, max_size=300
    )
)
def test_a_batch_names_exactly_its_snapshots(parts: list[str]) -> None:
    given_ones = [Snapshot(f"tank/x@{names.snapshot_part(part)}", str(n), 1, 0, 0, 0, (), False) for n, part in enumerate(parts)]
    words = [snapshots.operand(batch) for batch in snapshots.batches(given_ones)]
    assert all(len(word) <= snapshots.BATCH_CHARACTERS + 100 and operand(word) == word for word in words)
    assert [part for word in words for part in word.removeprefix("tank/x@").split(",")] == parts


@pytest.mark.parametrize("name", ["quota", "userused@joe", "written@before", "org.lab:note", "com.sun:auto-snapshot"])
def test_properties(name: str) -> None:
    assert names.property_name(name) == name
    assert names.is_user_property(name) == (":" in name)


@pytest.mark.parametrize("name", ["", "-o", "Quota", "a b", "quota=1", "quota,used", "org.lab:note=1", "x\n"])
def test_what_is_no_property(name: str) -> None:
    with pytest.raises(ValueError, match="property"):
        names.property_name(name)


@pytest.mark.parametrize("glob", ["*", "autosnap_*", "pre_?", "[abc]*", "[!a]b", "2025-12-??_*"])
def test_patterns(glob: str) -> None:
    assert names.pattern(glob) == glob


@pytest.mark.parametrize("glob", ["", "tank@*", "a/b", "a,b", "$(id)", "a\nb", "{a,b}", "x" * 65])
def test_what_is_no_pattern(glob: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        names.pattern(glob)


@pytest.mark.parametrize(
    ("name", "vmid"),
    [
        ("tank/data/subvol-101-disk-0@vzdump", 101),
        ("rpool/data/vm-200-disk-0", 200),
        ("tank/base-900-disk-0", 900),
        ("tank/vm-101-state-before", 101),
        ("tank/vm-99-disk-0", None),
        ("tank/my-vm-101-disk-0", None),
        ("tank/vm-101-disk-0/below", None),
    ],
)
def test_whose_volume_it_is(name: str, vmid: int | None) -> None:
    assert names.guest_of(name) == vmid


@pytest.mark.parametrize(
    "name", ["-a", "-r", "tank/a;id", "tank/a,b", "tank@a,b", "tank@a%b", "tank/../x", "tank/a\n", "", "tank@a@b", "tank/-", "$(id)"]
)
def test_what_zfs_would_not_call_so_is_no_name(name: str) -> None:
    assert names.is_valid(name) is (name == "tank/-")


@pytest.mark.anyio
async def test_a_list_leaves_out_what_cannot_be_a_name() -> None:
    class Lying(Zfs):
        async def outcome(self, *argv: str, **more: Any) -> Any:
            said = "tank/a\t1\n-a\t1\ntank@x,y\t1\ntank/a;id\t1\ntank@ok\t1\n"
            return Outcome(0, None, False, False, False, said, "", 0, 0, False, 0.0, len(said), "")

    table = await Lying(None, "pve1").table("zfs", "list", columns=("name", "used"))  # type: ignore[arg-type]
    assert [row["name"] for row in table.rows] == ["tank/a", "tank@ok"]
