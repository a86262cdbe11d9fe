"""The table of variables against everything that stands on it: Settings, .env.example, what load() reads."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from proxmox_mcp.config import VARIABLES, Settings, load, values
from scripts.env_example import text as example

ROOT = Path(__file__).resolve().parents[2]
# Settings that no variable of their own stands behind: where they come from.
DERIVED = {"members", "problems", "ssh_problems", "warnings", "searched", "verify_tls"}


def test_env_example_is_the_table() -> None:
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == example(), "run: python -m scripts.generate"


def test_env_example_is_read_without_a_problem_once_the_secret_is_filled_in(tmp_path: Path) -> None:
    filled = example().replace("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "00000000-1111-4222-8333-444444444444")
    everything = re.sub(r"(?m)^#(PROXMOX_\w+=.+)$", r"\1", filled)
    (tmp_path / ".env").write_text(everything)
    (tmp_path / ".env").chmod(0o600)
    found = load({}, base=tmp_path)
    assert (found.problems, found.ssh_problems, found.warnings) == ((), (), ())
    assert found.user == "mcp@pve"


def test_env_example_unfilled_says_which_line_is_the_example(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(example())
    (problem,) = load({}, base=tmp_path).problems
    assert problem.startswith("PROXMOX_TOKEN_VALUE: it still holds the example")


def test_each_setting_has_a_variable_and_each_variable_a_setting() -> None:
    read = {variable.name.removeprefix("PROXMOX_").lower() for variable in VARIABLES}
    fields = {field.name for field in dataclasses.fields(Settings)} - DERIVED
    assert fields <= read
    assert read - fields == {"host", "port", "verify_ssl", "token_file"}


def test_the_secrets_of_the_table_are_the_fields_kept_out_of_repr() -> None:
    hidden = {f"PROXMOX_{field.name.upper()}" for field in dataclasses.fields(Settings) if not field.repr}
    assert hidden == {variable.name for variable in VARIABLES if variable.secret}


def test_defaults_in_the_table_are_the_defaults_of_settings() -> None:
    plain = Settings()
    for variable in VARIABLES:
        name = variable.name.removeprefix("PROXMOX_").lower()
        if not re.fullmatch(r"[0-9]+|true|false|off|allow|deny|data_loss|root", variable.default):
            continue
        default = {"port": 8006, "verify_ssl": plain.verify_tls}.get(name, getattr(plain, name, None))
        expected = values.flag(variable.default) if isinstance(default, bool) else type(default)(variable.default)
        assert default == expected, variable.name


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_each_sentence_is_one(variable: object) -> None:
    what = variable.what  # type: ignore[attr-defined]
    assert what.endswith(".")
    assert what[0].isupper()
    assert len(what) <= 110


def test_the_example_register_of_guests_is_json_with_what_each_entry_needs() -> None:
    hosts = json.loads((ROOT / "vm_ssh_hosts.example.json").read_text(encoding="utf-8"))
    entries = {alias: entry for alias, entry in hosts.items() if not alias.startswith("_")}
    assert entries
    assert all(entry["host"] and entry["user"] for entry in entries.values())
