"""G02: whatever happens, standard output carries JSON-RPC and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOISY = {"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1", "PYTHONASYNCIODEBUG": "1"}


def message(number: int | None, method: str, **params: Any) -> bytes:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        body["id"] = number
    return json.dumps(body).encode() + b"\n"


INITIALIZE = message(
    1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "1"}
) + message(None, "notifications/initialized")  # fmt: skip


def talk(tmp_path: Path, *args: str, lines: bytes, env: dict[str, str]) -> tuple[list[Any], str]:
    """Everything the server wrote to standard output until its input ended, parsed, and its standard error."""
    process = subprocess.Popen(
        [sys.executable, "-m", "proxmox_mcp", *args],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **NOISY, **env},
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    process.stdin.write(lines)
    process.stdin.flush()
    wanted = lines.count(b'"id"')
    said = []
    for line in process.stdout:
        said.append(line)
        if sum(b'"id"' in earlier for earlier in said) >= wanted:
            break
    rest, stderr = process.communicate(timeout=30)
    return [json.loads(line) for line in (*said, *rest.splitlines())], stderr.decode()


@pytest.mark.parametrize(
    ("env_file", "args"),
    [("", ()), ("PROXMOX_HOST=http://pve\nPROXMOX_PORT=many\n%%% not a line\nPROXMOX_VERIFY_SSL=false\n", ()), ("", ("--demo",))],
    ids=["no configuration", "wrong configuration", "demo"],
)
def test_g02_every_line_is_json_rpc(tmp_path: Path, env_file: str, args: tuple[str, ...]) -> None:
    (tmp_path / ".env").write_text(env_file)
    calls = [
        message(2, "tools/list"),
        message(3, "tools/call", name="proxmox_list_vms", arguments={}),
        message(4, "tools/call", name="proxmox_list_vms", arguments={"nodee": "pve1"}),
        message(5, "no/such/method"),
    ]
    answers, _ = talk(tmp_path, *args, lines=INITIALIZE + b"".join(calls), env={"PROXMOX_ENV_FILE": str(tmp_path / ".env")})
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    by_id = {answer["id"]: answer for answer in answers if "id" in answer}
    assert by_id.keys() == {1, 2, 3, 4, 5}
    assert by_id[2]["result"]["tools"]
    assert by_id[3]["result"].get("isError", False) is not bool(args)
    assert by_id[4]["result"]["isError"]
    assert "error" in by_id[5]
