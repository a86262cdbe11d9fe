"""One variable at a time: where its value comes from, and what is said when it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from proxmox_mcp import secrets, text
from proxmox_mcp.config import files, values
from proxmox_mcp.config.variables import VARIABLES

T = TypeVar("T")
D = TypeVar("D")

_NAMES = {variable.name: variable for variable in VARIABLES}
_UNFILLED = re.compile(r"\$\{[^{}]*\}")  # what a client leaves of a field that its user did not fill
_USER_INFO = re.compile(r":[^\s:/@,]+(?=@)")
TOKEN_SECRET = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Reader:
    """The environment over a .env file. Collects problems (which stop the API), SSH problems and warnings."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._file: dict[str, str] = {}
        self._directory: Path | None = None
        self.problems: list[str] = []
        self.ssh_problems: list[str] = []
        self.warnings: list[str] = []

    def add_file(self, path: Path) -> None:
        """Put a .env file beneath the environment."""
        self._directory = path.parent
        try:
            self._file, wrong = files.read_env(path)
        except (OSError, ValueError) as e:
            self.problems.append(f"{path} cannot be read: {getattr(e, 'strerror', None) or e}.")
            return
        if wrong:
            self.problems.append(f"{path} has lines that are not NAME=value: {', '.join(map(str, wrong))}.")
        if any(variable.secret and self._file.get(variable.name) for variable in VARIABLES):
            self.warn_if_exposed(path, "the .env file")

    # values

    def raw(self, name: str) -> str:
        """The value as it was given, "" when there is none; only for secrets, where blanks and quotes may belong to it."""
        assert name in _NAMES, name
        for source in (self._environ, self._file):
            value = source.get(name, "")
            if value.strip() and not _UNFILLED.fullmatch(values.bare(value)):
                return value
        return ""

    def text(self, name: str) -> str:
        """The value without blanks and quotes around it; ${NAME} in it is replaced, except in secrets."""
        value = values.bare(self.raw(name))
        return value if _NAMES[name].secret else _REFERENCE.sub(self._referenced, value)

    def _referenced(self, match: re.Match[str]) -> str:
        return self._environ.get(match[1]) or self._file.get(match[1]) or match[0]

    def given(self, name: str) -> bool:
        return bool(self.raw(name))

    def parsed(self, name: str, parse: Callable[[str], T], default: D, *, wrong: T | D | None = None, ssh: bool = False) -> T | D:
        """The parsed value; `default` without one, and for one that does not parse the problem is noted and `wrong` (or default) holds."""
        value = self.text(name)
        if not value:
            return default
        try:
            return parse(value)
        except ValueError as e:
            self.wrong(name, str(e), ssh=ssh)
            return default if wrong is None else wrong

    def path(self, name: str, *, ssh: bool = False) -> Path | None:
        """A path with ~ expanded; a relative one counts from the .env file's directory when it stands there."""
        value = self.text(name)
        if not value:
            return None
        if not value.isprintable():
            self.wrong(name, "the path has control characters; in .env write it without quotes, or in single ones", ssh=ssh)
            return None
        try:
            path = Path(value).expanduser()
        except RuntimeError:
            self.wrong(name, "there is no such user's home directory", ssh=ssh)
            return None
        from_file = not (self._environ.get(name) or "").strip()
        if self._directory is not None and from_file:
            return self._directory / path
        return path if path.is_absolute() else Path.cwd() / path

    # what is wrong

    def wrong(self, name: str, why: str, *, shown: str | None = None, ssh: bool = False) -> None:
        """Note a problem: the variable, its value (never a secret's) and the mending step."""
        value = "" if _NAMES[name].secret else _veiled(name, text.clean(self.text(name) if shown is None else shown, 80))
        (self.ssh_problems if ssh else self.problems).append(f"{name}={value}: {why}." if value else f"{name}: {why}.")

    def missing(self, name: str, what: str) -> None:
        self.problems.append(f"{name} is not set: {what}.")

    def warn_if_exposed(self, path: Path, what: str) -> None:
        if files.is_exposed(path):
            self.warnings.append(f"{path} ({what}) can be read by other users of this machine: chmod 600 {path}")

    def look_for_misspellings(self) -> None:
        """Warn about names that look like one of ours and are none."""
        for name in sorted(name for name in {*self._file, *self._environ} - _NAMES.keys() if name.upper().startswith("PROXMOX_")):
            import difflib

            near = difflib.get_close_matches(name.upper(), _NAMES, 1, 0.85)
            if near:
                self.warnings.append(f"{text.clean(name, 60)} is not a variable of this server; is {near[0]} meant?")


def _veiled(name: str, value: str) -> str:
    """A value that may be shown: what was put into the wrong place, a password behind a user or the secret of a token, stays unseen."""
    value = _USER_INFO.sub(rf":{secrets.MARK}", value)
    if name.endswith("_USER"):
        value = re.sub(r":.+", f":{secrets.MARK}", value)
    return secrets.mask_text(TOKEN_SECRET.sub(secrets.MARK, value))
