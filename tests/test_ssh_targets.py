"""Settings and vm_ssh_hosts.json -> targets; what is wrong is named, the rest works."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.errors import ConfigError
from proxmox_mcp.ssh_targets import Endpoint, SshTarget, parse_endpoint, parse_known_hosts, parse_nodes, read_vm_descriptions, read_vm_hosts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.2", Endpoint("10.0.0.2")),
        ("pve3.lan:2222", Endpoint("pve3.lan", 2222)),
        ("root@pve3.lan:2222", Endpoint("pve3.lan", 2222, "root")),
        (" admin@pve ", Endpoint("pve", None, "admin")),
        ("[2001:db8::1]", Endpoint("2001:db8::1")),
        ("[2001:db8::1]:22", Endpoint("2001:db8::1", 22)),
        ("2001:db8::1", Endpoint("2001:db8::1")),
        ("root@[fe80::1%eth0]:22", Endpoint("fe80::1%eth0", 22, "root")),
        ("user@domain.tld@host", Endpoint("host", None, "user@domain.tld")),
    ],
)
def test_endpoints(text: str, expected: Endpoint) -> None:
    assert parse_endpoint(text, "PROXMOX_SSH_JUMP") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "host:",
        "host:0",
        "host:65536",
        "host:x",
        "host:²",
        "[::1",
        "[::1]22",
        "-oProxyCommand=x",
        "a b",
        "a/b",
        "@host",
        "x;y@host",
        "h\n",
    ],
)
def test_wrong_endpoints_name_the_setting(text: str) -> None:
    if text == "h\n":
        assert parse_endpoint(text, "PROXMOX_SSH_JUMP") == Endpoint("h")
        return
    with pytest.raises(ConfigError, match="PROXMOX_SSH_JUMP"):
        parse_endpoint(text, "PROXMOX_SSH_JUMP")


def test_nodes() -> None:
    text = "pve2=10.0.0.2, pve3=root@pve3.lan:2222,\n pve-4=[2001:db8::4]:22,"
    assert parse_nodes(text) == {
        "pve2": Endpoint("10.0.0.2"),
        "pve3": Endpoint("pve3.lan", 2222, "root"),
        "pve-4": Endpoint("2001:db8::4", 22),
    }
    assert parse_nodes("") == {}


@pytest.mark.parametrize("text", ["pve2", "=10.0.0.2", "pve2=", "pve2=a,pve2=b", "p v=a", "pve2=a:b", "-x=a", "pve2==a"])
def test_wrong_nodes_name_the_setting(text: str) -> None:
    with pytest.raises(ConfigError, match="PROXMOX_SSH_NODES"):
        parse_nodes(text)


@given(st.text(max_size=40))
def test_any_text_is_nodes_or_a_named_fault(text: str) -> None:
    nodes: dict[str, Endpoint] = {}
    with contextlib.suppress(ConfigError):
        nodes = parse_nodes(text)
    assert all(name and endpoint.host and not endpoint.host.startswith("-") for name, endpoint in nodes.items())


def test_an_endpoint_takes_what_it_does_not_say_from_the_defaults() -> None:
    defaults = SshTarget("pve1", 2200, "ops", password="x", sudo=True)
    assert Endpoint("pve2").on(defaults, label="node pve2") == SshTarget("pve2", 2200, "ops", password="x", sudo=True, label="node pve2")
    assert Endpoint("pve2", 22, "root").on(defaults, label="n") == SshTarget("pve2", 22, "root", password="x", sudo=True, label="n")


def test_known_hosts_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_known_hosts("") is None
    assert parse_known_hosts(" Ignore ") == "ignore"
    assert parse_known_hosts("~/known") == Path("/home/me/known")
    assert parse_known_hosts("known", Path("/etc/pve-mcp")) == Path("/etc/pve-mcp/known")
    assert parse_known_hosts("/abs/known", Path("/etc/pve-mcp")) == Path("/abs/known")


def test_addresses_for_messages() -> None:
    assert SshTarget("::1", 2222, "ops").address == "ops@[::1]:2222"
    assert SshTarget("pve").name == "pve"
    assert SshTarget("pve", label="node pve2").name == "node pve2"


def written(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "vm_ssh_hosts.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_published_format(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "_comment": "mine",
            "web": {
                "host": "10.0.0.5",
                "port": 2222,
                "user": "admin",
                "key_path": "/keys/web",
                "known_hosts": "/keys/known",
                "description": "the web server",
            },
            "db": {"host": "db.lan", "user": "root", "password": " s3cret ", "known_hosts": "ignore"},
        },
    )
    targets, problems = read_vm_hosts(path)
    assert problems == {}
    assert targets == {
        "web": SshTarget("10.0.0.5", 2222, "admin", key_file=Path("/keys/web"), known_hosts=Path("/keys/known"), label="guest web"),
        "db": SshTarget("db.lan", 22, "root", password=" s3cret ", known_hosts="ignore", label="guest db"),
    }
    assert read_vm_descriptions(path) == {"web": "the web server"}


@pytest.mark.parametrize("key", ["key_path", "key_file", "identity_file"])
def test_synonyms(tmp_path: Path, key: str) -> None:
    path = written(tmp_path, {"web": {"hostname": "h", "username": "u", key: "id"}})
    targets, problems = read_vm_hosts(path)
    assert problems == {}
    assert targets["web"].key_file == tmp_path / "id"
    assert (targets["web"].host, targets["web"].user) == ("h", "u")


def test_what_an_entry_does_not_say_comes_from_the_node(tmp_path: Path) -> None:
    node = SshTarget(
        "pve1",
        22,
        "root",
        key_file=Path("/k"),
        key_passphrase="p",
        password="pw",
        known_hosts=Path("/known"),
        sudo=True,
        connect_timeout=30,
    )
    path = written(tmp_path, {"a": {"host": "h", "user": "u"}, "b": {"host": "h", "user": "u", "password": "own"}})
    targets, _ = read_vm_hosts(path, node)
    assert targets["a"] == SshTarget(
        "h", 22, "u", key_file=Path("/k"), key_passphrase="p", known_hosts=Path("/known"), connect_timeout=30, label="guest a"
    )
    assert (targets["b"].key_file, targets["b"].key_passphrase, targets["b"].password) == (None, None, "own")


def test_jump_hosts(tmp_path: Path) -> None:
    node = SshTarget("pve1", 22, "root", key_file=Path("/k"), sudo=True, label="node pve1")
    path = written(
        tmp_path,
        {
            "a": {"host": "h", "user": "u", "jump": "host"},
            "b": {"host": "h", "user": "u", "jump": "me@bastion:2222"},
            "c": {"host": "h", "user": "u", "jump": 5},
            "d": {"host": "h", "user": "u", "jump": "a b"},
            "e": {"host": "h", "user": "u", "jump": ""},
        },
    )
    targets, problems = read_vm_hosts(path, node)
    assert targets["a"].jump == node
    assert targets["b"].jump == SshTarget("bastion", 2222, "me", key_file=Path("/k"), label="jump host me@bastion:2222")
    assert targets["e"].jump is None
    assert sorted(problems) == ["c", "d"]
    _, problems = read_vm_hosts(path)
    assert "PROXMOX_SSH_HOST" in problems["a"]


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ("text", "object"),
        ({}, "host"),
        ({"host": "h"}, "user"),
        ({"host": "", "user": "u"}, "host"),
        ({"host": 5, "user": "u"}, "host"),
        ({"host": "-oProxyCommand=id", "user": "u"}, "host"),
        ({"host": "h", "user": "-x"}, "user"),
        ({"host": "h", "user": "u", "port": 0}, "port"),
        ({"host": "h", "user": "u", "port": True}, "port"),
        ({"host": "h", "user": "u", "port": "x"}, "port"),
        ({"host": "h", "user": "u", "key_path": ["k"]}, "key_path"),
        ({"host": "h", "user": "u", "key_path": "k\nl"}, "key_path"),
        ({"host": "h", "user": "u", "sudo": "yes"}, "sudo"),
        ({"host": "h", "hostname": "i", "user": "u"}, "hostname"),
        ({"host": "h", "user": "u", "key_path": "k", "identity_file": "l"}, "identity_file"),
    ],
)
def test_a_wrong_entry_is_named_and_the_others_work(tmp_path: Path, entry: Any, named: str) -> None:
    path = written(tmp_path, {"bad": entry, "good": {"host": "h", "user": "u"}})
    targets, problems = read_vm_hosts(path)
    assert list(targets) == ["good"]
    assert list(problems) == ["bad"]
    assert named in problems["bad"]


def test_unknown_keys_are_named_and_the_entry_works(tmp_path: Path) -> None:
    path = written(tmp_path, {"web": {"host": "h", "user": "u", "pasword": "s3cret", "os": "debian", "_note": 1}})
    targets, problems = read_vm_hosts(path)
    assert "web" in targets
    assert "pasword (is password meant?)" in problems["web"]
    assert "os" in problems["web"]
    assert "_note" not in problems["web"]
    assert "s3cret" not in problems["web"]


def test_ports_as_text_are_understood(tmp_path: Path) -> None:
    targets, _ = read_vm_hosts(written(tmp_path, {"web": {"host": "h", "user": "u", "port": "2222"}}))
    assert targets["web"].port == 2222


def test_an_alias_twice_is_no_choice_of_ours(tmp_path: Path) -> None:
    path = written(tmp_path, '{"web": {"host": "a", "user": "u"}, "web": {"host": "b", "user": "u"}, "db": {"host": "c", "user": "u"}}')
    targets, problems = read_vm_hosts(path)
    assert list(targets) == ["db"]
    assert "twice" in problems["web"]


@pytest.mark.parametrize("alias", ["", "a b", "x" * 65, "a\nb"])
def test_aliases_are_checked(tmp_path: Path, alias: str) -> None:
    targets, problems = read_vm_hosts(written(tmp_path, {alias: {"host": "h", "user": "u"}}))
    assert targets == {}
    assert alias in problems


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert read_vm_hosts(tmp_path / "none.json") == ({}, {})


@pytest.mark.parametrize(
    ("content", "said"), [("{", "line 1"), ("[]", "one JSON object"), ('{"a": 1,}', "line 1"), ("5", "one JSON object")]
)
def test_a_file_that_is_no_json_object_is_named(tmp_path: Path, content: str, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ConfigError, match=said) as failed:
        read_vm_hosts(path)
    assert str(path) in str(failed.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_vm_hosts(tmp_path)
    path = tmp_path / "latin"
    path.write_bytes(b'{"web": "caf\xe9"}')
    with pytest.raises(ConfigError, match="cannot be read"):
        read_vm_hosts(path)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "vm_ssh_hosts.json"
    path.write_text('{"web": {"host": "h", "user": "u"}}', encoding="utf-8-sig")
    assert list(read_vm_hosts(path)[0]) == ["web"]


def test_a_password_behind_a_user_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse_endpoint("root:geheim@10.0.0.1", "PROXMOX_SSH_JUMP")
    assert "geheim" not in str(wrong.value)
    file = tmp_path / "vm_ssh_hosts.json"
    entries = [
        {"host": "h", "user": "root:geheim"},
        {"host": "h", "user": "root", "jump": "root:geheim@j"},
        {"host": "root:geheim@h", "user": "x"},
    ]
    file.write_text(json.dumps({f"g{n}": entry for n, entry in enumerate(entries)}))
    targets, problems = read_vm_hosts(file, SshTarget("pve"))
    assert (set(targets), set(problems)) == (set(), {"g0", "g1", "g2"})
    assert "geheim" not in str(problems)
