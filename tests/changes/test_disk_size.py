"""Sizes of disks: exact or refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.changes.disk_size import configured_bytes, gib_text, new_volume_gib


@pytest.mark.parametrize(
    ("size", "gib"),
    [
        ("1.5G", "1.5"),
        ("32", "32"),
        ("32G", "32"),
        ("32GB", "32"),
        ("32GiB", "32"),
        ("0.5T", "512"),
        ("512M", "0.5"),
        (32, "32"),
        (1.5, "1.5"),
    ],
)
def test_g49_fractional_sizes_keep_their_magnitude(size: str | float, gib: str) -> None:
    assert gib_text(new_volume_gib(size)) == gib


@pytest.mark.parametrize(
    "size", ["-5", "ten", "", "0", "0G", "1,5G", "G", "5 X", "1e3", "0x10", "１０", "5G5", "nan", "inf", True, None, [32]]
)
def test_g49_what_is_no_size_is_refused(size: object) -> None:
    with pytest.raises(ValueError, match="size"):
        new_volume_gib(size)  # type: ignore[arg-type]


@given(st.integers(1, 999_999), st.integers(0, 999_999), st.sampled_from("KMGT"))
def test_g49_the_conversion_is_exact(whole: int, fraction: int, unit: str) -> None:
    written = f"{whole}.{fraction:06d}"
    factor = Decimal(1024) ** ("KMGT".index(unit) - 2)
    assert new_volume_gib(f"{written}{unit}") == pytest.approx(float(Decimal(written) * factor), rel=1e-15)


@pytest.mark.parametrize(
    ("size", "found"),
    [
        ("32G", 32 * 2**30),
        ("1536M", 1536 * 2**20),
        ("528K", 528 * 2**10),
        ("1073741824", 2**30),
        ("8T", 8 * 2**40),
        ("", None),
        ("big", None),
    ],
)
def test_sizes_in_a_configuration(size: str, found: int | None) -> None:
    assert configured_bytes(size) == found
