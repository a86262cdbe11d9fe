"""PROXMOX_HOST and PROXMOX_PORT as people write them."""

from __future__ import annotations

import pytest

from proxmox_mcp.config import Settings, load

TOKEN = {"PROXMOX_USER": "ops@pve", "PROXMOX_TOKEN_NAME": "mcp", "PROXMOX_TOKEN_VALUE": "00000000-1111-4222-8333-444444444444"}


def hosts(host: str, **more: str) -> Settings:
    return load(TOKEN | {"PROXMOX_HOST": host} | more)


def members(host: str, **more: str) -> list[str]:
    found = hosts(host, **more)
    assert found.problems == ()
    return [str(member) for member in found.members]


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("https://pve.lab:8006/", "pve.lab:8006"),
        ("pve.lab:8007", "pve.lab:8007"),
        ("https://pve.lab/", "pve.lab:8006"),
        (" pve.lab ", "pve.lab:8006"),
        ("HTTPS://PVE.lab", "PVE.lab:8006"),
        ('"pve.lab"', "pve.lab:8006"),
        ("\ufeffpve.lab\r", "pve.lab:8006"),
        ("pve.lab.", "pve.lab:8006"),
        ("pve.lab:", "pve.lab:8006"),
        ("https://pve.lab:8006/#v1:0:18:4:::::::", "pve.lab:8006"),
        ("https://pve.lab:8006/?console=shell", "pve.lab:8006"),
        ("https://pve.lab:8006/api2/json", "pve.lab:8006"),
        ("10.0.0.1", "10.0.0.1:8006"),
        ("[fe80::1]:8006", "[fe80::1]:8006"),
        ("https://[2001:db8::5]:8007/", "[2001:db8::5]:8007"),
        ("[2001:DB8:0::5]", "[2001:db8::5]:8006"),
        ("2001:db8::5", "[2001:db8::5]:8006"),
        ("fe80::1%eth0", "[fe80::1%eth0]:8006"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example:8006"),
        ("pve_1", "pve_1:8006"),
    ],
)
def test_g09_one_host(given: str, base: str) -> None:
    assert members(given) == [base]


def test_g09_ssh_goes_to_the_bare_host() -> None:
    assert hosts("https://pve.lab:8007/").ssh_host == "pve.lab"
    assert hosts("[2001:db8::5]:8006").ssh_host == "2001:db8::5"
    assert hosts("pve.lab", PROXMOX_SSH_HOST="10.0.0.9:2222").ssh_host == "10.0.0.9"
    assert hosts("pve.lab", PROXMOX_SSH_HOST="10.0.0.9:2222").ssh_port == 2222


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("http://pve.lab", "TLS only"),
        ("http://pve.lab:8006", "TLS only"),
        ("ftp://pve.lab", "https:// at most"),
        ("root@pve.lab", "without a user"),
        ("pve.lab:99999", "from 1 to 65535"),
        ("pve.lab:0", "from 1 to 65535"),
        ("pve.lab:80x", "from 1 to 65535"),
        ("10.0.0.256", "IPv4"),
        ("10.0.0", "IPv4"),
        ("[10.0.0.1", "letters, digits"),
        ("fe80::g", "IPv6"),
        ("pve!lab", "letters, digits"),
        ("-pve", "letters, digits"),
        ("pve..lab", "letters, digits"),
        ("bücher.example", "xn--"),
        ("https://", "missing"),
        ("https:///", "missing"),
    ],
)
def test_g09_a_host_that_cannot_be_is_named_with_the_reason(given: str, why: str) -> None:
    problems = hosts(given).problems
    assert any(problem.startswith("PROXMOX_HOST") and why in problem for problem in problems), problems


def test_g09_the_port_in_the_host_contradicts_an_explicit_other_one() -> None:
    (problem,) = hosts("pve.lab:8007", PROXMOX_PORT="8006").problems
    assert "8007" in problem
    assert "PROXMOX_PORT=8006" in problem
    assert members("pve.lab:8007", PROXMOX_PORT="8007") == ["pve.lab:8007"]
    assert members("pve.lab", PROXMOX_PORT=" '443' ") == ["pve.lab:443"]


@pytest.mark.parametrize("port", ["0", "65536", "-1", "https", "80 06", "８００６", "8006.0"])
def test_a_port_that_is_none(port: str) -> None:
    (problem,) = hosts("pve.lab", PROXMOX_PORT=port).problems
    assert problem.startswith("PROXMOX_PORT=")
    assert "1 to 65535" in problem


def test_a_port_that_is_none_contradicts_nothing() -> None:
    (problem,) = hosts("pve.lab:8007", PROXMOX_PORT="eight").problems
    assert problem.startswith("PROXMOX_PORT=eight: ")
    found = hosts("pve.lab", PROXMOX_SSH_HOST="pve.lab:2222", PROXMOX_SSH_PORT="ssh")
    (problem,) = found.ssh_problems
    assert problem.startswith("PROXMOX_SSH_PORT=ssh: ")


def test_several_members_in_order_without_duplicates() -> None:
    assert members("pve1,pve2:8007,https://pve3:8006/") == ["pve1:8006", "pve2:8007", "pve3:8006"]
    assert members("pve1, pve2\tpve1:8006 PVE1. ;[::1],::1") == ["pve1:8006", "pve2:8006", "[::1]:8006"]


def test_one_wrong_member_is_named_alone_and_without_a_password() -> None:
    found = hosts("pve1,root:geheim123@pve2")
    assert [str(member) for member in found.members] == ["pve1:8006"]
    (problem,) = found.problems
    assert "pve2" in problem
    assert "geheim123" not in problem


def test_nothing_set_names_each_missing_variable() -> None:
    problems = load({}).problems
    for name in ("PROXMOX_HOST", "PROXMOX_USER", "PROXMOX_TOKEN_NAME", "PROXMOX_TOKEN_VALUE"):
        assert sum(problem.startswith(f"{name} is not set: ") for problem in problems) == 1
    assert len(problems) == 4
