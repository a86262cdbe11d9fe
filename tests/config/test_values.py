"""Single values: what is taken, what is refused, and that a gate set wrong is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from proxmox_mcp import secrets
from proxmox_mcp.config import VARIABLES, Settings, load

BASE = {
    "PROXMOX_HOST": "pve.lab",
    "PROXMOX_USER": "ops@pve",
    "PROXMOX_TOKEN_NAME": "mcp",
    "PROXMOX_TOKEN_VALUE": "00000000-1111-4222-8333-444444444444",
}
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
FINGERPRINT = ":".join(["AB"] * 32)


def one(name: str, value: str) -> Settings:
    return load(BASE | {f"PROXMOX_{name}": value})


def problem_of(name: str, value: str) -> str:
    (problem,) = one(name, value).problems
    assert problem.startswith(f"PROXMOX_{name}")
    return problem


@pytest.mark.parametrize("value", ["false", "False", "0", "no", "off", '"false"', " FALSE ", "'0'"])
def test_g11_verification_switched_off(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = one("VERIFY_SSL", value)
    assert (found.verify_tls, found.problems) == (False, ())
    assert sum("TLS verification is off" in warning for warning in found.warnings) == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("value", ["true", "1", "yes", "on", "True", '"true"', ""])
def test_g11_verification_on(value: str) -> None:
    found = one("VERIFY_SSL", value)
    assert (found.verify_tls, found.ca_file, found.problems, found.warnings) == (True, None, (), ())


def test_g11_an_existing_path_is_the_authority(tmp_path: Path) -> None:
    file = tmp_path / "lab-ca.pem"
    file.write_text(PEM)
    found = one("VERIFY_SSL", f' "{file}" ')
    assert (found.verify_tls, found.ca_file, found.problems) == (True, file, ())
    assert one("CA_FILE", str(file)).ca_file == file


@pytest.mark.parametrize("name", ["VERIFY_SSL", "CA_FILE"])
def test_g11_a_file_that_is_no_authority(name: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    assert "pve-root-ca.pem" in problem_of(name, str(empty))
    assert one(name, str(tmp_path / "none.pem")).verify_tls is True
    problem_of(name, str(tmp_path / "none.pem"))


def test_g11_anything_else_keeps_verification_on() -> None:
    assert "true or false" in problem_of("VERIFY_SSL", "perhaps")
    assert one("VERIFY_SSL", "perhaps").verify_tls is True


def test_a_pin_is_reason_enough_not_to_warn() -> None:
    found = load(BASE | {"PROXMOX_VERIFY_SSL": "false", "PROXMOX_TLS_FINGERPRINT": FINGERPRINT})
    assert found.warnings == ()


@pytest.mark.parametrize(
    "value",
    [
        FINGERPRINT,
        FINGERPRINT.lower(),
        "ab" * 32,
        f"SHA256 Fingerprint={FINGERPRINT}",
        f"sha256 Fingerprint={FINGERPRINT}",
        f"SHA256:{'ab' * 32}",
        "AB " * 32,
    ],
)
def test_fingerprints_in_any_usual_spelling(value: str) -> None:
    assert one("TLS_FINGERPRINT", value).tls_fingerprint == FINGERPRINT


def test_one_fingerprint_a_member() -> None:
    other = ":".join(["0C"] * 32)
    assert one("TLS_FINGERPRINT", f"{FINGERPRINT}, {other.lower()}").tls_fingerprint == f"{FINGERPRINT},{other}"


@pytest.mark.parametrize(
    ("value", "why"), [("AB:" * 19 + "AB", "SHA-1"), ("AB:CD", "32 hex pairs"), ("Z" * 64, "32 hex pairs"), (",", "32 hex pairs")]
)
def test_fingerprints_that_are_none(value: str, why: str) -> None:
    assert why in problem_of("TLS_FINGERPRINT", value)
    assert one("TLS_FINGERPRINT", value).tls_fingerprint == ""


@pytest.mark.parametrize(
    ("name", "value", "closed"),
    [
        ("READ_ONLY", "maybe", ("read_only", True)),
        ("APPROVAL", "sometimes", ("approval", "all")),
        ("APPROVAL_FALLBACK", "ask", ("approval_fallback", "deny")),
        ("ALLOW_SECRET_READS", "2", ("allow_secret_reads", False)),
        ("ALLOW_VMIDS", "all of them", ("allow_vmids", ((0, 0),))),
        ("ALLOW_NODES", "../x", ("allow_nodes", ("-",))),
    ],
)
def test_a_gate_that_is_set_wrong_is_closed(name: str, value: str, closed: tuple[str, Any]) -> None:
    problem_of(name, value)
    assert getattr(one(name, value), closed[0]) == closed[1]


@pytest.mark.parametrize(
    ("value", "ranges"),
    [
        ("100-199,205", ((100, 199), (205, 205))),
        (" 100 - 199 , 205 ", ((100, 199), (205, 205))),
        ("100–199", ((100, 199),)),
        ("100..199;300", ((100, 199), (300, 300))),
        ("999999999", ((999_999_999, 999_999_999),)),
        ("101 102", ((101, 101), (102, 102))),
    ],
)
def test_guests_as_ids_and_ranges(value: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert one("ALLOW_VMIDS", value).allow_vmids == ranges


@pytest.mark.parametrize("value", ["99", "0", "200-100", "100-", "-5", "1e3", "1000000000", "100,x", ",", "１００"])
def test_guests_that_cannot_be(value: str) -> None:
    problem_of("ALLOW_VMIDS", value)
    assert one("ALLOW_VMIDS", value).allow_vmids == ((0, 0),)


@pytest.mark.parametrize(
    ("name", "value", "field", "parsed"),
    [
        ("TIMEOUT", "12.5", "timeout", 12.5),
        ("TIMEOUT", "30s", "timeout", 30.0),
        ("MAX_WAIT", "0", "max_wait", 0.0),
        ("MAX_CONCURRENCY", "16", "max_concurrency", 16),
        ("READ_ONLY", "1", "read_only", True),
        ("APPROVAL", "DATA-LOSS", "approval", "data_loss"),
        ("APPROVAL", "off", "approval", "off"),
        ("TOOLSETS", "overview, Guests,backups", "toolsets", ("overview", "guests", "backups")),
        ("TOOLS", "proxmox_list_vms", "tools", ("proxmox_list_vms",)),
        ("EXCLUDE_TOOLS", "proxmox_host_exec proxmox_vm_exec", "exclude_tools", ("proxmox_host_exec", "proxmox_vm_exec")),
        ("ALLOW_NODES", "pve1,PVE2", "allow_nodes", ("pve1", "PVE2")),
        ("PROXY", "http://10.0.0.1:3128/", "proxy", "http://10.0.0.1:3128"),
        ("PROXY", "socks5://[::1]:1080", "proxy", "socks5://[::1]:1080"),
        ("SSH_PORT", "2222", "ssh_port", 2222),
        ("SSH_USER", "admin", "ssh_user", "admin"),
        ("SSH_KNOWN_HOSTS", "Ignore", "ssh_known_hosts", "ignore"),
        ("SSH_NODES", "pve2=10.0.0.2,pve3=pve3.lan:2222", "ssh_nodes", "pve2=10.0.0.2,pve3=pve3.lan:2222"),
        ("SSH_JUMP", "ops@bastion.lan:22", "ssh_jump", "ops@bastion.lan:22"),
        ("SSH_SUDO", "yes", "ssh_sudo", True),
        ("ZFS_SEND_DIRS", "/backup/zfs/, /mnt/a b", "zfs_send_dirs", ("/backup/zfs", "/mnt/a b")),
        ("AUDIT_HMAC_KEY", " some long key ", "audit_hmac_key", "some long key"),
    ],
)
def test_values_that_are_taken(name: str, value: str, field: str, parsed: object) -> None:
    found = one(name, value)
    assert (found.problems, found.ssh_problems, getattr(found, field)) == ((), (), parsed)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TIMEOUT", "0"), ("TIMEOUT", "-1"), ("TIMEOUT", "nan"), ("TIMEOUT", "inf"), ("TIMEOUT", "soon"), ("TIMEOUT", "1e9"),
        ("TIMEOUT", "３０"), ("MAX_WAIT", "-1"),
        ("MAX_WAIT", "x"), ("MAX_CONCURRENCY", "0"), ("MAX_CONCURRENCY", "8.5"), ("MAX_CONCURRENCY", "1000"),
        ("PROXY", "10.0.0.1:3128"), ("PROXY", "http://"), ("PROXY", "http://x:99999"),
        ("AUDIT_HMAC_KEY_FILE", "/none/here"),
    ],
)  # fmt: skip
def test_values_that_are_refused(name: str, value: str) -> None:
    problem_of(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSH_PORT", "ssh"), ("SSH_HOST", "ssh://pve"), ("SSH_HOST", "root@pve"), ("SSH_USER", "-oProxyCommand=x"), ("SSH_USER", "a b"),
        ("SSH_KEY_PATH", "/none/id_ed25519"), ("SSH_NODES", "pve2"), ("SSH_NODES", "pve2=-x"), ("SSH_NODES", "../x=pve2"),
        ("SSH_JUMP", "-x@host"), ("SSH_JUMP", "host:99999"), ("SSH_SUDO", "perhaps"), ("SSH_TIMEOUT", "0"), ("SSH_CONFIG", "/none/config"),
        ("ZFS_SEND_DIRS", "relative"), ("ZFS_SEND_DIRS", "/a/../b"), ("ZFS_SEND_DIRS", "/"), ("ZFS_SEND_DIRS", "/a\x1bb"),
    ],
)  # fmt: skip
def test_what_only_ssh_needs_does_not_stop_the_api(name: str, value: str) -> None:
    found = one(name, value)
    assert found.problems == ()
    (problem,) = found.ssh_problems
    assert problem.startswith(f"PROXMOX_{name}")


def test_a_proxy_password_is_shown_nowhere() -> None:
    found = one("PROXY", "http://me:proxy-geheim@10.0.0.1:3128")
    assert "geheim" not in repr(found)
    assert "geheim" not in secrets.mask_text("could not reach http://me:proxy-geheim@10.0.0.1:3128; proxy-geheim")
    assert "geheim" not in problem_of("PROXY", "me:proxy-geheim@10.0.0.1")


def test_key_files_of_the_audit_are_secrets_too(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("current-hmac-key\nolder-hmac-key\n")
    file.chmod(0o600)
    assert one("AUDIT_HMAC_KEY_FILE", str(file)).audit_hmac_key_file == file
    assert secrets.mask_text("keys: current-hmac-key, older-hmac-key.") == f"keys: {secrets.MARK}, {secrets.MARK}."


@pytest.mark.parametrize(("name", "value"), [("AUDIT_DIR", "~no-such-user/audit"), ("AUDIT_HMAC_KEY_FILE", "/none/here")])
def test_what_cannot_be_recorded_as_the_owner_said_is_not_done_over_ssh_either(name: str, value: str) -> None:
    found = one(name, value)
    assert found.problems == found.ssh_problems
    assert found.problems[0].startswith(f"PROXMOX_{name}=")


def test_a_public_key_is_not_the_private_one(tmp_path: Path) -> None:
    file = tmp_path / "id_ed25519.pub"
    file.write_text("ssh-ed25519 AAAA")
    (problem,) = one("SSH_KEY_PATH", str(file)).ssh_problems
    assert "without .pub" in problem


def test_ssh_config_true_means_the_users_own(elsewhere: Path) -> None:
    (problem,) = one("SSH_CONFIG", "true").ssh_problems
    assert str(elsewhere / ".ssh" / "config") in problem
    (elsewhere / ".ssh").mkdir()
    (elsewhere / ".ssh" / "config").write_text("")
    assert one("SSH_CONFIG", "true").ssh_config == elsewhere / ".ssh" / "config"
    assert one("SSH_CONFIG", "false").ssh_config is None


ODD = ["[", "]:8006", "https://[", "a@b!c=d=e", "~nobody/x", "1" * 400, "\ud800", "100-", "${A}", "%00", "\x00", "{", "http://u:p@h"]


@hypothesis_settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from([variable.name for variable in VARIABLES]), st.one_of(st.text(max_size=60), st.sampled_from(ODD)), max_size=12
    )
)
def test_load_never_raises_and_never_shows_a_secret(environ: dict[str, str]) -> None:
    marker = "S3cr3t-marker-value"
    environ = environ | {"PROXMOX_TOKEN_VALUE": marker, "PROXMOX_SSH_PASSWORD": marker, "PROXMOX_AUDIT_HMAC_KEY": marker}
    found = load(environ)
    assert isinstance(found, Settings)
    assert marker not in repr(found)
    assert marker not in " ".join(found.problems + found.ssh_problems + found.warnings)
