"""What may be set, and to what: the rest is refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.zfs import properties

# what the published tool set
PUBLISHED = (
    {"compression": "zstd", "atime": "off", "recordsize": "1M", "quota": "10G", "refquota": "none", "reservation": "5G"}
    | {"refreservation": "none", "sync": "standard", "logbias": "throughput", "primarycache": "metadata", "secondarycache": "none"}
    | {"dedup": "off", "snapdir": "visible", "checksum": "sha256", "copies": "2", "xattr": "sa", "acltype": "posix", "exec": "off"}
    | {"setuid": "off", "readonly": "on", "mountpoint": "/mnt/x", "canmount": "noauto"}
)


@pytest.mark.parametrize(("name", "value"), [*PUBLISHED.items(), ("org.lab:note", "with = and , and : in it"), ("relatime", "on")])
def test_what_may_be_set(name: str, value: str) -> None:
    properties.check_set(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("quota", "banana"), ("readonly", "maybe"), ("compression", "zstd-99"), ("recordsize", "100K"), ("copies", "4")),
        *(
            ("mountpoint", place)
            for place in ("/", "/etc", "/etc/pve", "/usr/x", "/var", "/var/lib/vz/../..", "tank", "//mnt", "/mnt/", "")
        ),
        *(("sharenfs", "on"), ("keylocation", "file:///x"), ("volsize", "1G"), ("zoned", "on"), ("used", "1"), ("volblocksize", "8K")),
        *(("checksum", "off"), ("org.lab:note", "two\nlines"), ("org.lab:note", "x" * 1025), ("quota", "1G\n")),
    ],
)
def test_what_may_not(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name.replace("volsize", "qm resize")):
        properties.check_set(name, value)


@pytest.mark.parametrize(
    "place", ["none", "legacy", "/mnt/backup", "/tank/data/with space", "/var/lib/vz", "/var/lib/vz/dump", "/srv/share"]
)
def test_mountpoints(place: str) -> None:
    properties.check_set("mountpoint", place)


@given(st.text(), st.text())
def test_a_value_that_passes_is_one_printable_line(name: str, value: str) -> None:
    try:
        properties.check_set(name, value)
    except ValueError:
        return
    assert "\n" not in value
    assert value == "" or value.isprintable()


def test_properties_of_a_new_dataset_come_as_json_has_them() -> None:
    assert properties.check_create({"atime": False, "copies": 2, "compression": "lz4"}) == {
        "atime": "off",
        "copies": "2",
        "compression": "lz4",
    }
    assert properties.check_create({"volsize": "10G", "volblocksize": "16K"}) == {"volsize": "10G", "volblocksize": "16K"}


@pytest.mark.parametrize(
    "given_ones", [{"encryption": "on"}, {"atime": ["on"]}, {"volblocksize": "8K"}, {"-o": "x"}, {"quota": "1G exec=on"}]
)
def test_and_are_refused_like_the_others(given_ones: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        properties.check_create(given_ones)


def test_dangers_are_named() -> None:
    assert "power fails" in properties.warnings("sync", "disabled")[0]
    assert not properties.warnings("sync", "standard")
    assert properties.warnings("recordsize", "1M") == ("recordsize applies to data written from now on",)
    assert not properties.warnings("recordsize", "1M", new=True)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("used", "98304", "98304 (96.0K)"),
        ("quota", "0", "0 (none)"),
        ("quota", "10737418240", "10737418240 (10.0G)"),
        ("used", "0", "0 (0B)"),
        ("creation", "1772326800", "1772326800 (2026-03-01 01:00Z)"),
        ("copies", "2", "2"),
        ("compression", "lz4", "lz4"),
        ("receive_resume_token", "-", "-"),
        ("org.lab:used", "7", "7"),
    ],
)
def test_exact_values_come_with_their_meaning(name: str, value: str, told: str) -> None:
    assert properties.readable(name, value) == told
