"""What may stand in a path or a parameter, and that nothing else ever leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.http_client import HttpClient, Repeat, encode, path_of
from tests.served_api import settings

UPID = r"UPID:pve1:00000B79:00073E5A:6B0E2E8D:vzdestroy:3\x2d6:root@pam!mcp:"


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (("version",), "/version"),
        (("nodes", "pve1", "qemu", 101, "status", "current"), "/nodes/pve1/qemu/101/status/current"),
        (
            ("nodes", "pve1", "tasks", UPID, "log"),
            "/nodes/pve1/tasks/UPID:pve1:00000B79:00073E5A:6B0E2E8D:vzdestroy:3%5Cx2d6:root@pam!mcp:/log",
        ),
        (
            ("nodes", "pve1", "storage", "local", "content", "local:iso/debian 13 (ü).iso"),
            "/nodes/pve1/storage/local/content/local:iso%2Fdebian%2013%20%28%C3%BC%29.iso",
        ),
        (("cluster", "firewall", "ipset", "lan", "10.0.0.0/24"), "/cluster/firewall/ipset/lan/10.0.0.0%2F24"),
        (("cluster", "ha", "resources", "vm:101"), "/cluster/ha/resources/vm:101"),
        (("access", "users", "ops+x@pve"), "/access/users/ops%2Bx@pve"),
        (("a" * 512,), "/" + "a" * 512),
    ],
)
def test_paths(parts: tuple[str | int, ...], path: str) -> None:
    assert path_of(parts) == path


HOSTILE = [
    "", ".", "..", "../x", "x/../y", "a/b", "x?y", "x#y", "%2f", "a%00", "a\x00", "a\r\nHost: x", "a\tb", "a b", "a\x7f", "a\x1b[0m",
    "pve\u0456",
    "ｐｖｅ", "a\u200b", "a\u202e", "a\U000e0041", "\ud800", "a" * 513, "a..b", "\ufeffpve1",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    ("before", "after", "argument"),
    [
        (("nodes",), ("status",), "node"),
        (("nodes", "pve1", "qemu"), ("config",), "vmid"),
        (("nodes", "pve1", "storage"), ("status",), "storage"),
        (("nodes", "pve1", "tasks"), ("log",), "upid"),
        (("nodes", "pve1", "qemu", 101, "snapshot"), (), "snapname"),
        (("nodes", "pve1", "disks", "zfs"), (), "pool"),
        ((), ("x",), "path"),
    ],
)
def test_hostile_parts_are_refused_by_the_argument_they_came_as(
    value: str, before: tuple[Any, ...], after: tuple[Any, ...], argument: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        path_of((*before, value, *after))
    assert caught.value.argument == argument
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "volume",
    ["", "..", "local:../x", "local:iso/../../etc/passwd", "local:iso//x", "/etc/passwd", "local:iso/", "local:iso/x?y", "local:iso/x#y",
    "local:%2e", "a\\b",
     "local:iso/a\nb", "local:iso/a\u200bb", "local:iso/a\u202eb", "x" * 513],
)  # fmt: skip
def test_volume_ids_are_checked_by_segment(volume: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        path_of(("nodes", "pve1", "storage", "local", "content", volume))
    assert caught.value.argument == "volume"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("nas:iso/a.iso ", "'nas:iso/a.iso' has invisible or control characters"),
        ("nas:iso/a\xa0b", "has invisible or control characters"),
        ("nas:iso/a?b", "'nas:iso/a?b' contains a character that no volume id has"),
        ("nas:iso/a\\b", "contains a character that no volume id has"),
        ("nas:./x", "'nas:./x' has an empty or relative segment"),
        ("nas:iso//x", "'nas:iso//x' has an empty or relative segment"),
        ("nas:" + "x" * 400 + "//", "has an empty or relative segment"),
    ],
)
def test_a_refused_volume_is_told_with_its_fault(part: str, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        path_of(("nodes", "pve1", "storage", "nas", "content", part))
    assert caught.value.what.startswith("Invalid argument volume: '")
    assert words in caught.value.what
    assert len(caught.value.what) < 150


def test_capital_letters_are_no_fault() -> None:
    assert path_of(("content", "nas:iso/WinXX.iso")) == "/content/nas:iso%2FWinXX.iso"


def test_a_part_that_is_shown_is_cut() -> None:
    with pytest.raises(InvalidArgument) as caught:
        path_of(("nodes", "y" * 300 + "/"))
    assert caught.value.what.count("y") <= 60
    assert "contains '/', which no such name can have" in caught.value.what


@pytest.mark.parametrize("cidr", ["10.0.0.0/24/x", "../24", "x/24", "10.0.0.0/2444", "/24", "fe80::1%eth0/64", "fe80::1%1/64"])
def test_a_cidr_is_one_or_refused(cidr: str) -> None:
    with pytest.raises(InvalidArgument):
        path_of(("cluster", "firewall", "ipset", "lan", cidr))


@pytest.mark.parametrize("part", [None, True, 1.5, b"pve1", -1, ["pve1"]])
def test_only_text_and_numbers_are_parts(part: Any) -> None:
    with pytest.raises(InvalidArgument):
        path_of(("nodes", part))
    with pytest.raises(InvalidArgument):
        path_of(())


def test_slashes_only_in_the_last_part_after_content() -> None:
    with pytest.raises(InvalidArgument):
        path_of(("nodes", "pve1", "storage", "local", "content", "local:iso/x.iso", "more"))
    with pytest.raises(InvalidArgument):
        path_of(("content", "x", "local:iso/x.iso"))


@pytest.mark.parametrize(
    ("params", "encoded"),
    [
        ({}, ""),
        ({"a": None, "b": [], "c": "", "d": 0}, "c=&d=0"),
        ({"on": True, "off": False}, "on=1&off=0"),
        ({"n": 1.5, "m": 2.0, "big": 1e22, "small": 1e-7, "neg": -3}, "n=1.5&m=2&big=10000000000000000000000&small=0.0000001&neg=-3"),
        ({"vmid": [101, 205], "t": ("a", "b")}, "vmid=101%2C205&t=a%2Cb"),
        ({"s": {"b", "a"}}, "s=a%2Cb"),
        ({"command": Repeat(["ls", "-l", "a b"])}, "command=ls&command=-l&command=a%20b"),
        ({"net0": "virtio=AA:BB,bridge=vmbr0"}, "net0=virtio%3DAA%3ABB%2Cbridge%3Dvmbr0"),
        ({"d": "a;b=c+d&e\nf é %41 ~"}, "d=a%3Bb%3Dc%2Bd%26e%0Af%20%C3%A9%20%2541%20~"),
        ({"remove-x_y.z": 1}, "remove-x_y.z=1"),
    ],
)
def test_parameters(params: dict[str, Any], encoded: str) -> None:
    assert encode(params) == encoded


@pytest.mark.parametrize(
    ("params", "argument"),
    [
        ({"a": "x\0y"}, "a"),
        ({"a": "\ud800"}, "a"),
        ({"a": float("nan")}, "a"),
        ({"a": float("inf")}, "a"),
        ({"a": b"x"}, "a"),
        ({"a": {"b": 1}}, "a"),
        ({"a": object()}, "a"),
        ({"a": ["x,y"]}, "a"),
        ({"a": ["x;y"]}, "a"),
        ({"a": ["x y"]}, "a"),
        ({"a": [""]}, "a"),
        ({"a": [None]}, "a"),
        ({"a": Repeat([["x"]])}, "a"),  # type: ignore[list-item]
        ({"a=b": 1}, "a=b"),
        ({"a&b": 1}, "a&b"),
        ({"": 1}, ""),
    ],
)
def test_parameters_that_could_not_arrive_unchanged(params: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        encode(params)
    assert caught.value.argument == argument


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True), st.text(max_size=30), max_size=4))
def test_text_arrives_unchanged(params: dict[str, str]) -> None:
    try:
        encoded = encode(params)
    except InvalidArgument:
        assert any("\0" in v or any("\ud800" <= c <= "\udfff" for c in v) for v in params.values())
        return
    assert dict(parse_qsl(encoded, keep_blank_values=True)) == params
    assert ";" not in encoded


class Recorder(httpx.AsyncBaseTransport):
    def __init__(self) -> None:
        self.targets: list[bytes] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.targets.append(request.url.raw_path)
        return httpx.Response(200, json={"data": None})


@pytest.fixture
async def recorded() -> AsyncIterator[tuple[HttpClient, Recorder]]:
    recorder = Recorder()
    client = HttpClient(settings(members=served_members()), transport=recorder)
    yield client, recorder
    await client.close()


def served_members() -> Any:
    from proxmox_mcp.config import Member

    return (Member("pve.test", 8006),)


VALUES = st.one_of(
    st.text(max_size=30),
    st.text("./?#%\\\r\n\0 \t;&=+:@!abc\u200b\u202e", max_size=12),
    st.sampled_from(HOSTILE),
    st.integers(-5, 10**12),
)


@pytest.mark.anyio
@hypothesis_settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, place=st.sampled_from(["node", "vmid", "storage", "upid", "snapname", "volume", "last"]), write=st.booleans())
async def test_hostile_values_never_leave(recorded: tuple[HttpClient, Recorder], value: Any, place: str, write: bool) -> None:
    """Either it is refused before any request, or it arrives as the one path part it was meant to be."""
    client, recorder = recorded
    parts: tuple[Any, ...] = {
        "node": ("nodes", value, "status"),
        "vmid": ("nodes", "pve1", "qemu", value, "config"),
        "storage": ("nodes", "pve1", "storage", value, "status"),
        "upid": ("nodes", "pve1", "tasks", value, "log"),
        "snapname": ("nodes", "pve1", "lxc", 205, "snapshot", value),
        "volume": ("nodes", "pve1", "storage", "local", "content", value),
        "last": ("cluster", value),
    }[place]
    recorder.targets.clear()
    before = client.sent
    try:
        await (client.send("POST", parts, {}) if write else client.get(*parts))
    except InvalidArgument:
        assert recorder.targets == []
        assert client.sent == before
        return
    (target,) = recorder.targets
    path = target.decode("ascii").removeprefix("/api2/json/")
    assert [unquote(part) for part in path.split("/")] == [str(part) for part in parts]
    assert "/" not in str(value) or (place == "volume" and ".." not in str(value).split("/"))
    assert not set("?#%\r\n\0\u200b\u202e") & set(str(value))


@pytest.mark.parametrize("item", ["a,b", "a;b", "a b", "", "a\tb"])
def test_an_item_of_a_list_that_would_become_two_is_named(item: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        encode({"tags": ["fine", item]})
    assert caught.value.argument == "tags"
    assert "is empty or contains a separator" in caught.value.what


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), "path: no path was given"),
        (("a\n",), "path: 'a' has characters that no such name can have"),
        (("nodes", "pvé1"), "node: 'pvé1' has characters that no such name can have"),
        (("nodes", "a..b"), "node: 'a..b' looks like a way through directories"),
        (("x", "a..b"), "path: 'a..b' looks like a way through directories"),
        (("nodes", "a#b"), "node: 'a#b' contains '#', which no such name can have"),
        (("a..b", "nodes"), "path: 'a..b' looks like a way through directories"),
    ],
)
def test_a_refused_path_word_for_word(parts: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        path_of(parts)
    assert str(refused.value).partition("\nNext: ")[0] == f"Invalid argument {words}"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (("nodes", -1), "node: a negative number"),
        (("nodes", ""), "node: it is empty"),
        (("nodes", 5.0), "node: text is expected, not float"),
        (("nodes", None), "node: text is expected, not NoneType"),
        (("nodes", "a" * 513), "node: it has 513 characters, 512 are allowed"),
        (("ipset", "10.0.0.0/8"), "ipset: '10.0.0.0/8' contains '/', which no such name can have"),
    ],
)
def test_what_is_no_part_of_a_path(parts: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        path_of(parts)
    assert str(refused.value).partition("\nNext: ")[0] == f"Invalid argument {words}"


def test_numbers_from_zero_and_networks_are_parts() -> None:
    assert path_of(("nodes", "pve1", "disks", 0)) == "/nodes/pve1/disks/0"
    assert path_of(("ipset", "mine", "10.0.0.0/8")) == "/ipset/mine/10.0.0.0%2F8"


@pytest.mark.parametrize(
    ("params", "body"),
    [
        ({"a": 1, "b": Repeat(("x", "y")), "c": 2}, "a=1&b=x&b=y&c=2"),
        ({"order": ["b", "a"]}, "order=b%2Ca"),
        ({"some": {"b", "a"}}, "some=a%2Cb"),
        ({"some": frozenset({10, 9})}, "some=10%2C9"),
        ({"mixed": {1, "a"}}, "mixed=1%2Ca"),
        ({"path": "a/b X"}, "path=a%2Fb%20X"),
    ],
)
def test_parameters_byte_for_byte(params: dict[str, Any], body: str) -> None:
    assert encode(params) == body


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"b&a": 1}, "b&a: no parameter has such a name"),
        ({"&" * 50: 1}, f"{'&' * 40}…(+10): no parameter has such a name"),
        ({"a": float("nan")}, "a: nan is not a number that can be sent"),
    ],
)
def test_what_is_no_parameter(params: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        encode(params)
    assert str(refused.value).partition("\nNext: ")[0] == f"Invalid argument {words}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a\0b", "a: it contains a NUL character"),
        ("\ud800", "a: it is not valid Unicode text"),
        ({"x": 1}, "a: a dict cannot be sent"),
    ],
)
def test_what_cannot_be_sent_word_for_word(value: Any, words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        encode({"a": value})
    assert str(refused.value).partition("\nNext: ")[0] == f"Invalid argument {words}"
