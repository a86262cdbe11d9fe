"""Files that settings come from: the .env that is found, the token's file, and whether others can read them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

HOSTS_FILE = "vm_ssh_hosts.json"
_MAX_BYTES = 2**20


def beside_package() -> Path | None:
    """The directory of the checkout (or of the script) that this package runs from; None when it is installed among others."""
    directory = Path(__file__).resolve().parents[2]
    return None if directory.name in ("site-packages", "dist-packages") else directory


def user_directory() -> Path | None:
    """The user's configuration directory for this server; None for a user without a home (a container's, often)."""
    import platformdirs

    try:
        return Path(platformdirs.user_config_dir("pve-mcp", appauthor=False))
    except RuntimeError:
        return None


def places(base: Path | None) -> list[Path]:
    """Where a .env is looked for, in this order: beside the package, the user's configuration directory, the working directory."""
    return list(dict.fromkeys([*owned(base), *(() if (here := working()) is None else (here,))]))


def owned(base: Path | None) -> list[Path]:
    """The places among them that are the user's own, whatever directory a client starts the server in."""
    return [place / ".env" for place in (base, user_directory()) if place is not None]


def working() -> Path | None:
    """The .env of the working directory, which may be somebody else's project."""
    with suppress(OSError):  # it may have been removed
        return Path.cwd() / ".env"
    return None


def misnamed(searched: Iterable[Path]) -> list[Path]:
    """Files beside these .env files that were meant to be one: Windows' editor adds .txt, and its Explorer hides that."""
    return [other for path in searched for name in (".env.txt", "env.txt") if is_file(other := path.with_name(name))]


def is_file(path: Path) -> bool:
    """Path.is_file that says no where the directory cannot be entered."""
    try:
        return path.is_file()
    except OSError:
        return False


def absent(path: Path) -> str:
    """Why a path is no file that can be read, in words."""
    try:
        return "that is a directory" if path.is_dir() else "there is no such file"
    except OSError as e:
        return f"it cannot be looked at ({e.strerror})"


def read_text(path: Path) -> str:
    """The text of a small file in the encodings that editors write (UTF-8 or UTF-16, with or without a byte order mark).

    Raises OSError, and ValueError for what is no text.
    """
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError("it is too large for a file of settings")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        found = data.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text; save it as UTF-8") from None
    if "\0" in found:
        raise ValueError("it is not text; save it as UTF-8")
    return found


def read_env(path: Path) -> tuple[dict[str, str], list[int]]:
    """The variables of a .env file, unexpanded, and the numbers of the lines that are none."""
    from io import StringIO

    from dotenv.parser import parse_stream

    values: dict[str, str] = {}
    wrong = []
    for binding in parse_stream(StringIO(read_text(path))):
        if binding.error:
            wrong.append(binding.original.line)
        elif binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
    return values, wrong


def read_token(path: Path) -> str:
    """What a token file holds: the secret alone, NAME=secret, or what `pveum user token add --output-format json` printed."""
    found = read_text(path).strip()
    if found.startswith("{"):
        try:
            parsed = json.loads(found)
        except ValueError:
            raise ValueError("it looks like JSON and is not; write the secret alone into it") from None
        if isinstance(parsed, Mapping) and isinstance(parsed.get("value"), str):
            full = parsed.get("full-tokenid")
            return f"{full}={parsed['value']}" if isinstance(full, str) else str(parsed["value"])
        raise ValueError("its JSON has no 'value'; write the secret alone into it")
    lines = [line.strip() for line in found.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) != 1:
        raise ValueError("it must hold one line, the secret" if lines else "it is empty; write the secret into it")
    return lines[0].removeprefix("export ").removeprefix("PROXMOX_TOKEN_VALUE=").strip()


def is_exposed(path: Path) -> bool:
    """Whether group or others can read a file (never on Windows, where modes do not say so)."""
    if os.name != "posix":
        return False
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False
