""".env.example: each group of variables, each variable with its sentence, the required ones to fill in."""

from __future__ import annotations

import re
import textwrap
from itertools import groupby

from proxmox_mcp.config import VARIABLES

HEAD = """\
# Copy this file to .env and fill in the four lines without a #; those with one are not read and show the default.
# Keep it to yourself: chmod 600 .env (Windows: icacls .env /inheritance:r /grant:r "%USERNAME%:R").
"""


def text() -> str:
    """The whole file."""
    found = HEAD
    for group, variables in groupby(VARIABLES, lambda variable: variable.group):
        found += f"\n# --- {group} ---\n"
        for variable in variables:
            is_value = re.fullmatch(r"[a-z0-9_]+", variable.default) and variable.default not in ("none", "all", "searched", "required")
            silent = is_value or variable.default in ("none", "searched", "required")
            what = variable.what if silent else f"{variable.what} Default: {variable.default}."
            found += "".join(f"# {line}\n" for line in textwrap.wrap(what, 130))
            found += (
                f"{variable.name}={variable.example}\n"
                if variable.example
                else f"#{variable.name}={variable.default if is_value else ''}\n"
            )
    return found
