"""Which .env is read, in which encodings, and what is said about the file itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import proxmox_mcp
from proxmox_mcp.config import load, require_api, require_ssh
from proxmox_mcp.errors import ConfigError

SECRET = "0a1b2c3d-1111-4222-8333-444444444444"
ENV = f"PROXMOX_HOST=pve.lab\nPROXMOX_USER=ops@pve\nPROXMOX_TOKEN_NAME=mcp\nPROXMOX_TOKEN_VALUE={SECRET}\n"
PACKAGE = Path(proxmox_mcp.__file__).parent


def write(path: Path, content: str | bytes = ENV, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


def run_elsewhere(code: str, package_in: Path, home: Path) -> str:
    """What `code` prints in a process that starts in / with an empty environment and finds the package in `package_in`."""
    environment = {"PYTHONPATH": str(package_in), "HOME": str(home)}
    ran = subprocess.run([sys.executable, "-c", code], cwd="/", env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_g04_beside_the_package_then_the_configuration_directory_then_the_working_directory(tmp_path: Path, elsewhere: Path) -> None:
    places = [tmp_path / ".env", elsewhere / "pve-mcp" / ".env", elsewhere / "work" / ".env"]
    assert list(load({}, base=tmp_path).searched) == places
    for number, place in reversed(list(enumerate(places))):
        write(place, ENV.replace("pve.lab", f"pve{number}.lab"))
        found = load({}, base=tmp_path)
        assert (found.env_file, found.members[0].host, found.problems) == (place, f"pve{number}.lab", ())


def test_g04_the_environment_wins_and_empty_is_not_set(tmp_path: Path) -> None:
    write(tmp_path / ".env", ENV + "PROXMOX_TIMEOUT=5\n")
    found = load({"PROXMOX_HOST": "other.lab", "PROXMOX_USER": " ", "PROXMOX_TIMEOUT": ""}, base=tmp_path)
    assert (found.members[0].host, found.user, found.timeout) == ("other.lab", "ops@pve", 5.0)


def test_g04_a_field_that_the_client_left_unfilled_is_not_set(tmp_path: Path) -> None:
    write(tmp_path / ".env")
    found = load({"PROXMOX_HOST": "${user_config.host}", "PROXMOX_PORT": "${PROXMOX_PORT}"}, base=tmp_path)
    assert (str(found.members[0]), found.problems) == ("pve.lab:8006", ())


def test_g04_env_file_wins_over_the_search(tmp_path: Path) -> None:
    write(tmp_path / ".env")
    named = write(tmp_path / "lab" / "second.env", ENV.replace("pve.lab", "second.lab"))
    found = load({"PROXMOX_ENV_FILE": str(named)}, base=tmp_path)
    assert (found.env_file, found.members[0].host, found.searched) == (named, "second.lab", (named,))


def test_g04_an_env_file_that_is_not_there_is_a_problem_and_nothing_else_is_read(tmp_path: Path) -> None:
    write(tmp_path / ".env")
    found = load({"PROXMOX_ENV_FILE": str(tmp_path / "none")}, base=tmp_path)
    assert found.env_file is None
    assert found.problems[0].startswith("PROXMOX_ENV_FILE=")
    assert any(problem.startswith("PROXMOX_HOST is not set") for problem in found.problems)


def test_g04_nothing_found_names_the_variables_and_the_places_searched(tmp_path: Path, elsewhere: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        require_api(load({}, base=tmp_path))
    said = str(caught.value)
    for expected in ("PROXMOX_HOST", "PROXMOX_USER", "PROXMOX_TOKEN_NAME", "PROXMOX_TOKEN_VALUE"):
        assert f"{expected} is not set" in said
    for place in (tmp_path, elsewhere / "pve-mcp", elsewhere / "work"):
        assert str(place / ".env") in said


@pytest.mark.parametrize("credential", ["PROXMOX_TOKEN_VALUE", "PROXMOX_TOKEN_FILE", "PROXMOX_SSH_PASSWORD", "PROXMOX_SSH_KEY_PATH"])
def test_a_stranger_s_project_does_not_lead_the_environment_s_credentials_elsewhere(
    tmp_path: Path, elsewhere: Path, credential: str
) -> None:
    """A client starts the server in the directory that is open, a freshly cloned one perhaps."""
    key = write(tmp_path / "key", SECRET.encode())
    write(elsewhere / "work/.env", b"PROXMOX_PROXY=http://evil.lab:8080\nPROXMOX_VERIFY_SSL=false\nPROXMOX_APPROVAL=off\n")
    own = {"PROXMOX_HOST": "pve.lab", "PROXMOX_USER": "ops@pve", "PROXMOX_TOKEN_NAME": "mcp", "PROXMOX_TOKEN_VALUE": SECRET}
    own |= {credential: str(key) if credential.endswith(("FILE", "PATH")) else SECRET}
    if credential == "PROXMOX_TOKEN_FILE":
        del own["PROXMOX_TOKEN_VALUE"]
    found = load(own, base=tmp_path)
    assert (found.problems, found.env_file) == ((), None)
    assert (found.proxy, found.verify_tls, found.approval) == ("", True, "data_loss")
    assert any(f"{elsewhere / 'work/.env'} was not read: " in warning for warning in found.warnings)
    named = load({**own, "PROXMOX_ENV_FILE": str(elsewhere / "work/.env")}, base=tmp_path)
    assert named.proxy == "http://evil.lab:8080"
    for place in (tmp_path, elsewhere / "pve-mcp"):
        write(place / ".env", b"PROXMOX_APPROVAL=all\n")
        assert load(own, base=tmp_path).approval == "all"
        (place / ".env").unlink()


def test_without_credentials_in_the_environment_the_working_directory_is_read(tmp_path: Path, elsewhere: Path) -> None:
    write(elsewhere / "work/.env")
    found = load({"PROXMOX_READ_ONLY": "true"}, base=tmp_path)
    assert (found.env_file, found.problems, found.read_only) == (elsewhere / "work/.env", (), True)


def test_g04_beside_the_script_without_cwd(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "proxmox_mcp", ignore=shutil.ignore_patterns("__pycache__"))
    write(tmp_path / ".env")
    code = "from proxmox_mcp.config import load; s = load(); print(s.env_file, s.members[0], s.problems)"
    assert run_elsewhere(code, tmp_path, tmp_path) == f"{tmp_path / '.env'} pve.lab:8006 ()"


def test_an_installed_package_does_not_read_among_other_packages(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    shutil.copytree(PACKAGE, site / "proxmox_mcp", ignore=shutil.ignore_patterns("__pycache__"))
    write(site / ".env")
    assert run_elsewhere("from proxmox_mcp.config import load; print(load().env_file)", site, tmp_path) == "None"


def test_nothing_heavy_is_imported_without_a_file(tmp_path: Path) -> None:
    heavy = "{'dotenv', 'httpx', 'asyncssh', 'mcp', 'pydantic'}"
    code = f"import sys; from proxmox_mcp.config import load; load({{'PROXMOX_ENV_FILE': '/none'}}); print({heavy} & sys.modules.keys())"
    assert run_elsewhere(code, PACKAGE.parent, tmp_path) == "set()"


@pytest.mark.parametrize(
    "content",
    [
        ENV.encode("utf-8-sig"),
        ENV.encode("utf-16"),
        ENV.replace("\n", "\r\n").encode(),
        ENV.replace("\n", "\r\n").encode("utf-8-sig"),
        ENV.replace("PROXMOX_", "export PROXMOX_").encode(),
        ENV.replace("pve.lab", '"pve.lab"').replace("ops@pve", "'ops@pve'").encode(),
        ENV.replace("pve.lab", "pve.lab            # IP or name of the host").encode(),
        ENV.replace("=", " = ").encode(),
        (ENV + "\n# a comment\n\nOTHER=thing\n").encode(),
    ],
)
def test_a_file_as_editors_write_it(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / ".env", content)
    found = load({}, base=tmp_path)
    assert (found.problems, str(found.members[0]), found.user, found.token_value) == ((), "pve.lab:8006", "ops@pve", SECRET)


@pytest.mark.parametrize(
    ("content", "why"), [(b"PROXMOX_HOST=\xe9t\xe9\n", "save it as UTF-8"), (b"\x00" * 50, "not text"), (b"x" * 2**21, "too large")]
)
def test_a_file_that_is_no_text(tmp_path: Path, content: bytes, why: str) -> None:
    path = write(tmp_path / ".env", content)
    problems = load({}, base=tmp_path).problems
    assert problems[0].startswith(f"{path} cannot be read: ")
    assert why in problems[0]


def test_a_line_that_is_no_assignment_is_named_by_number(tmp_path: Path) -> None:
    path = write(tmp_path / ".env", ENV + "PROXMOX_PORT=\"8006\nPROXMOX_TIMEOUT='5'\n")
    (problem,) = load({}, base=tmp_path).problems
    assert problem == f"{path} has lines that are not NAME=value: 5."


def test_a_directory_in_its_place_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert load({}, base=tmp_path).env_file is None


def test_references_are_replaced_except_in_secrets(tmp_path: Path) -> None:
    write(tmp_path / ".env", ENV.replace("pve.lab", "${PVE}.lab") + "PVE=pve9\nPROXMOX_SSH_PASSWORD='pa${PVE}ss$x'\n")
    found = load({}, base=tmp_path)
    assert (found.members[0].host, found.ssh_password) == ("pve9.lab", "pa${PVE}ss$x")


def test_passwords_keep_their_blanks_and_quotes() -> None:
    found = load({"PROXMOX_SSH_PASSWORD": ' "quoted" ', "PROXMOX_SSH_KEY_PASSPHRASE": "two words "})
    assert (found.ssh_password, found.ssh_key_passphrase) == (' "quoted" ', "two words ")


@pytest.mark.skipif(os.name != "posix", reason="file modes say this on POSIX only")
@pytest.mark.parametrize(("mode", "said"), [(0o600, False), (0o400, False), (0o640, True), (0o644, True), (0o604, True)])
def test_a_file_with_secrets_that_others_can_read_is_mentioned(tmp_path: Path, mode: int, said: bool) -> None:
    path = write(tmp_path / ".env", mode=mode)
    assert [f"chmod 600 {path}" in warning for warning in load({}, base=tmp_path).warnings] == [True] * said


def test_a_readable_file_without_secrets_is_nobodys_business(tmp_path: Path) -> None:
    write(tmp_path / ".env", "PROXMOX_HOST=pve.lab\n", 0o644)
    assert load({}, base=tmp_path).warnings == ()


def test_misspelt_variables_are_mentioned_without_their_values(tmp_path: Path) -> None:
    write(tmp_path / ".env", ENV + "PROXMOX_TOKEN_VALU=geheim\n")
    warnings = load({"PROXMOX_READONLY": "1", "PROXMOX_VE_ENDPOINT": "x", "PROXMOX_UNRELATED": "x"}, base=tmp_path).warnings
    assert sorted(warnings) == [
        "PROXMOX_READONLY is not a variable of this server; is PROXMOX_READ_ONLY meant?",
        "PROXMOX_TOKEN_VALU is not a variable of this server; is PROXMOX_TOKEN_VALUE meant?",
    ]


def test_paths_count_from_the_file_that_names_them(tmp_path: Path, elsewhere: Path) -> None:
    write(tmp_path / ".env", ENV + "PROXMOX_AUDIT_DIR=audit\n")
    assert load({}, base=tmp_path).audit_dir == tmp_path / "audit"
    assert load({"PROXMOX_AUDIT_DIR": "audit"}, base=tmp_path).audit_dir == elsewhere / "work" / "audit"
    assert load({"PROXMOX_AUDIT_DIR": "~/audit"}, base=tmp_path).audit_dir == elsewhere / "audit"


def test_the_register_of_guests_is_named_or_beside_env_or_in_the_configuration_directory(tmp_path: Path, elsewhere: Path) -> None:
    assert load({}, base=tmp_path).vm_ssh_hosts is None
    last = write(elsewhere / "pve-mcp" / "vm_ssh_hosts.json", "{}")
    assert load({}, base=tmp_path).vm_ssh_hosts == last
    beside = write(tmp_path / "vm_ssh_hosts.json", "{}")
    assert load({}, base=tmp_path).vm_ssh_hosts == beside
    write(tmp_path / "lab" / ".env")
    with_env = write(tmp_path / "lab" / "vm_ssh_hosts.json", "{}")
    assert load({"PROXMOX_ENV_FILE": str(tmp_path / "lab" / ".env")}, base=tmp_path).vm_ssh_hosts == with_env
    named = write(tmp_path / "named.json", "{}")
    assert load({"PROXMOX_VM_SSH_HOSTS": str(named)}, base=tmp_path).vm_ssh_hosts == named
    (problem,) = load({"PROXMOX_VM_SSH_HOSTS": str(tmp_path / "none.json")}, base=tmp_path).ssh_problems
    assert problem.startswith("PROXMOX_VM_SSH_HOSTS=")


@pytest.mark.parametrize("content", [b"PROXMOX_READ_ONLY: true\n", b"PROXMOX_READ_ONLY=true\n# d\xfczenle\n", None])
@pytest.mark.parametrize("guests", [True, False])
def test_gates_that_could_not_be_read_close_shells_too(tmp_path: Path, content: bytes | None, guests: bool) -> None:
    path = tmp_path / "named.env" if content is None else write(tmp_path / "named.env", content)
    found = load({"PROXMOX_ENV_FILE": str(path), "PROXMOX_HOST": "pve.lab"}, base=tmp_path)
    with pytest.raises(ConfigError, match=re.escape(str(path))):
        require_ssh(found, guests=guests)


def test_a_file_that_an_editor_named_otherwise_is_mentioned(tmp_path: Path, elsewhere: Path) -> None:
    other = write(elsewhere / "pve-mcp/.env.txt")
    found = load({}, base=tmp_path)
    assert found.warnings == (f"{other} was not read: rename it to .env",)
    with pytest.raises(ConfigError, match=re.escape(str(other))):
        require_api(found)
    write(tmp_path / ".env")
    assert load({}, base=tmp_path).warnings == ()


def test_a_directory_in_place_of_a_named_file_is_called_one(tmp_path: Path) -> None:
    found = load({name: str(tmp_path) for name in ("PROXMOX_ENV_FILE", "PROXMOX_CA_FILE", "PROXMOX_SSH_KEY_PATH")}, base=tmp_path)
    said = (*found.problems, *found.ssh_problems)
    for name in ("PROXMOX_ENV_FILE", "PROXMOX_CA_FILE", "PROXMOX_SSH_KEY_PATH"):
        assert next(problem for problem in said if problem.startswith(name)).startswith(f"{name}={tmp_path}: that is a directory; ")
