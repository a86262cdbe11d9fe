"""The token, however it was pasted; its secret is shown nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from proxmox_mcp import secrets
from proxmox_mcp.clients import PLACEHOLDERS
from proxmox_mcp.config import Settings, load

SECRET = "0a1b2c3d-1111-4222-8333-444444444444"
HOST = {"PROXMOX_HOST": "pve.lab"}


def token(user: str = "", name: str = "", value: str = "", **more: str) -> Settings:
    return load(HOST | {"PROXMOX_USER": user, "PROXMOX_TOKEN_NAME": name, "PROXMOX_TOKEN_VALUE": value} | more)


def agrees(found: Settings, user: str = "ops@pve") -> bool:
    return (found.problems, found.user, found.token_name, found.token_value) == ((), user, "mcp", SECRET)


@pytest.mark.parametrize(
    ("user", "name", "value"),
    [
        ("ops@pve", "mcp", SECRET),
        ("ops@pve", "ops@pve!mcp", SECRET),  # as the web interface shows it
        ("ops@pve!mcp", "", SECRET),
        ("ops@pve!mcp", "mcp", SECRET),
        ("", "ops@pve!mcp", SECRET),
        ("", "", f"ops@pve!mcp={SECRET}"),
        ("", "", f"PVEAPIToken=ops@pve!mcp={SECRET}"),
        ("", "", f"Authorization: PVEAPIToken=ops@pve!mcp={SECRET}"),
        ("", "", f"PVEAPIToken ops@pve!mcp={SECRET}"),
        ("", "", f"PVEAPIToken=ops%40pve%21mcp={SECRET}"),
        ("ops@pve", "mcp", f"ops@pve!mcp={SECRET}"),
        ("ops@pve", f"mcp={SECRET}", ""),
        ("ops@pve", f"ops@pve!mcp={SECRET}", ""),
        ("ops@pve", "!mcp", f'"{SECRET}"'),
        (" 'ops@pve' ", "\ufeffmcp\r\n", f" {SECRET}\r\n"),
    ],
)
def test_g12_any_way_to_paste_a_token(user: str, name: str, value: str) -> None:
    found = token(user, name, value)
    assert agrees(found), found.problems
    assert SECRET not in repr(found)


def test_g12_another_prefix_than_the_user_is_refused_with_both_shown() -> None:
    (problem,) = token("ops@pve", "admin@pve!mcp", SECRET).problems
    assert "ops@pve" in problem
    assert "admin@pve" in problem
    assert SECRET not in problem


def test_different_token_names_and_different_secrets_are_contradictions() -> None:
    (problem,) = token("ops@pve!one", "two", SECRET).problems
    assert "one" in problem
    assert "two" in problem
    other = "ffffffff-1111-4222-8333-444444444444"
    (problem,) = token("ops@pve", f"mcp={other}", SECRET).problems
    assert "different secrets" in problem
    assert SECRET not in problem
    assert other not in problem


def test_g12_a_user_without_realm_is_refused_saying_root_at_pam() -> None:
    (problem,) = token("root", "mcp", SECRET).problems
    assert problem.startswith("PROXMOX_USER=root: ")
    assert "root@pam" in problem


@pytest.mark.parametrize("user", ["jürgen@ldap", "john@corp.example@ad", "a+b=c%d;e@pve", "o'neil@pve", "x.y-z_@my-realm.1"])
def test_user_names_may_hold_odd_characters(user: str) -> None:
    assert agrees(token(user, "mcp", SECRET), user)


@pytest.mark.parametrize(
    "user", ["@pve", "ops@", "o ps@pve", "o/ps@pve", "o:ps@pve", "ops@pve@", "ops@p ve", "a\x00b@pve", "x" * 70 + "@pve"]
)
def test_user_names_that_cannot_be(user: str) -> None:
    assert any(problem.startswith("PROXMOX_USER=") for problem in token(user, "mcp", SECRET).problems)


@pytest.mark.parametrize("name", ["m", "1mcp", "mc p", "mcp;x", "mcp/../x", "müll"])
def test_token_names_that_cannot_be(name: str) -> None:
    (problem,) = token("ops@pve", name, SECRET).problems
    assert problem.startswith("PROXMOX_TOKEN_NAME=")


@pytest.mark.parametrize(
    "value",
    [
        "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
        "your-token-secret",
        "********",
        "changeme",
        "put-the-secret-here",
        PLACEHOLDERS["PROXMOX_TOKEN_VALUE"],
    ],
)
def test_an_example_is_not_a_secret(value: str) -> None:
    (problem,) = token("ops@pve", "mcp", value).problems
    assert problem.startswith("PROXMOX_TOKEN_VALUE: it still holds the example")


@pytest.mark.parametrize("secret", [SECRET, f"b{SECRET[1:]}", f"b{SECRET[1:]}".upper()])
def test_a_secret_in_the_place_of_the_name_is_refused_and_not_shown(secret: str) -> None:
    found = token("ops@pve", secret, "mcp")
    assert [problem.partition(":")[0].partition("=")[0] for problem in found.problems] == ["PROXMOX_TOKEN_NAME"]
    assert "changed places" in found.problems[0]
    assert secret not in f"{found.problems} {found!r}"
    assert secrets.mask_text(f"sent {secret} there") == f"sent {secrets.MARK} there"


@pytest.mark.parametrize("value", ["abc def-secret", "abc\ndef-secret", "geheim;x-secret", "gehäim-secret", "a\x00b-secret"])
def test_a_secret_that_cannot_be_is_not_shown(value: str) -> None:
    found = token("ops@pve", "mcp", value)
    (problem,) = found.problems
    assert problem.startswith("PROXMOX_TOKEN_VALUE: ")
    assert "-secret" not in problem
    assert found.token_value == ""


def test_the_secret_is_known_to_the_masks_from_then_on() -> None:
    token("ops@pve", "mcp", SECRET)
    assert secrets.mask_text(f"sent {SECRET} there") == f"sent {secrets.MARK} there"


@pytest.mark.parametrize(
    "content",
    [
        SECRET,
        f"{SECRET}\r\n",
        f"\ufeff{SECRET}\n",
        f"# the token\n\n  '{SECRET}'  \n",
        f"PROXMOX_TOKEN_VALUE={SECRET}\n",
        f'export PROXMOX_TOKEN_VALUE="{SECRET}"\n',
        f"PVEAPIToken=ops@pve!mcp={SECRET}\n",
        json.dumps({"full-tokenid": "ops@pve!mcp", "info": {"privsep": "1"}, "value": SECRET}),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_token_file(tmp_path: Path, content: str, encoding: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content.encode(encoding))
    file.chmod(0o600)
    found = token("ops@pve", "mcp", PROXMOX_TOKEN_FILE=str(file))
    assert agrees(found), found.problems
    assert found.warnings == ()


@pytest.mark.skipif(os.name != "posix", reason="file modes say this on POSIX only")
def test_token_file_that_others_can_read_is_mentioned(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET)
    file.chmod(0o640)
    (warning,) = token("ops@pve", "mcp", PROXMOX_TOKEN_FILE=str(file)).warnings
    assert f"chmod 600 {file}" in warning


def test_token_file_and_value_must_not_differ(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET)
    file.chmod(0o600)
    assert agrees(token("ops@pve", "mcp", SECRET, PROXMOX_TOKEN_FILE=str(file)))
    (problem,) = token("ops@pve", "mcp", SECRET.replace("0a", "ff"), PROXMOX_TOKEN_FILE=str(file)).problems
    assert "PROXMOX_TOKEN_VALUE and PROXMOX_TOKEN_FILE hold different secrets" in problem


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"# nothing\n", "empty"),
        (f"{SECRET}\nsecond".encode(), "one line"),
        (b"\xc3\x28" * 9, "UTF-8"),
        (b"\x00" * 40, "UTF-8"),
        (b'{"value"', "JSON"),
        (b'{"data": 1}', "no 'value'"),
    ],
)
def test_token_file_that_holds_no_token(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    (problem,) = token("ops@pve", "mcp", PROXMOX_TOKEN_FILE=str(file)).problems
    assert problem.startswith(f"PROXMOX_TOKEN_FILE={str(file)[:40]}")
    assert why in problem


def test_token_file_that_is_not_there(tmp_path: Path) -> None:
    (problem,) = token("ops@pve", "mcp", PROXMOX_TOKEN_FILE=str(tmp_path / "none")).problems
    assert "No such file" in problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROXMOX_SSH_HOST", "root:geheim@10.0.0.1"),
        ("PROXMOX_SSH_USER", "root:geheim"),
        ("PROXMOX_SSH_NODES", "pve2=root:geheim@10.0.0.1,pve3=10.0.0.3"),
        ("PROXMOX_SSH_JUMP", "root:geheim@10.0.0.1"),
        ("PROXMOX_USER", "root:geheim"),
        ("PROXMOX_TOKEN_FILE", "9e1c5b6a-1111-4222-8333-0123456789ab"),
        ("PROXMOX_SSH_KEY_PATH", "9e1c5b6a-1111-4222-8333-0123456789ab"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(name: str, value: str, tmp_path: Path) -> None:
    found = load({"PROXMOX_HOST": "pve.lab", name: value}, base=tmp_path)
    said = " ".join((*found.problems, *found.ssh_problems, *found.warnings))
    assert name in said
    assert "geheim" not in said
    assert "9e1c5b6a" not in said
