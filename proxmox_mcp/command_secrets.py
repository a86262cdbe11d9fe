"""Secrets in command lines: masked where programs take them, and never so that a mask could hide what a shell would run.

Behind `password="$(reboot)"` there is code, not a password: a record that shows `password="***"` would not say what was done. So a mask
covers one plain word at most; what holds blanks or shell syntax stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from proxmox_mcp import secrets
from proxmox_mcp.secrets import MARK, OPTION_NAME, SHAPES, Masked

_SECRET_OPTION = re.compile(r"(?i)" + OPTION_NAME + r"$")
_SHORT_OPTIONS = {"sshpass": "-p", "curl": "-u", "wget": "--password", "openssl": "-pass", "mysql": "-p", "mysqldump": "-p"}
# What could run, or end the word it stands in.
_CODE = re.compile(r"[\s;|&<>()`]|\$\{")
_KEY_MATERIAL = re.compile(r"(?<![A-Za-z0-9+/=])(?!/)[A-Za-z0-9+/]{40,}={0,2}")
_WORD = r"(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s;|&<>()'\"]+)"
_SAME_COMMAND = r"\b[^;|&\n]{0,300}?[ \t]"
_SUDO = r"(?:sudo[ \t]+(?:-\w+[ \t]+)*)?"
_READS_PASSWORDS = r"(?:chpasswd|passwd|smbpasswd|cryptsetup|kinit)\b"
_IN_LINES: tuple[re.Pattern[str], ...] = tuple(
    re.compile(shape)
    for shape in (
        rf"(\bsshpass{_SAME_COMMAND}?-p[ \t]*){_WORD}",
        rf"(\b(?:mysql|mariadb)[a-z-]*{_SAME_COMMAND}-p){_WORD}",
        rf"(\bcurl{_SAME_COMMAND}(?:-u|-U|--user|--proxy-user)[ \t=]*){_WORD}",
        rf"(\b(?:docker|podman|skopeo)[ \t]+login{_SAME_COMMAND}-p[ \t]*){_WORD}",
        rf"(\b(?:ipmitool|mosquitto_[a-z]+){_SAME_COMMAND}-P[ \t]*){_WORD}",
        rf"(\bldap[a-z]+{_SAME_COMMAND}-[ws][ \t]*){_WORD}",
        rf"(\bredis-cli{_SAME_COMMAND}-a[ \t]*){_WORD}",
        rf"(\bhtpasswd{_SAME_COMMAND}-[a-zA-Z]*b[a-zA-Z]*[ \t]+{_WORD}[ \t]+{_WORD}[ \t]+){_WORD}",
        r"(\bsmb[a-z]+\b[^;|&\n]{0,300}?%)[^\s;|&<>()'\"]+",
        rf"(\bpass(?:in|out)?[ \t]+pass:){_WORD}",
        rf"([ \t,]pass=){_WORD}",
        rf"(\b(?:echo|printf)[ \t]+(?:-[a-zA-Z]+[ \t]+|'%[^']*'[ \t]+)*){_WORD}(?=[ \t]*\|[ \t]*{_SUDO}{_READS_PASSWORDS})",
        rf"(\b{_READS_PASSWORDS}[ \t]*<<<[ \t]*){_WORD}",
        rf"(\b{_READS_PASSWORDS}[ \t]*<<-?[ \t]*['\"]?\w+['\"]?\n[^\s:]+:){_WORD}",
        r"(?i)((?:\bidentified[ \t]+by|\bpassword)[ \t]*\(?[ \t]*)'[^'\n]*'",
    )
)


def mask_argv(argv: Sequence[str]) -> list[str]:
    """A command that may be shown: the value after `--password` and the like (and after `sshpass -p`, `curl -u`) as MARK."""
    return list(_mask_argv(argv))


def _mask_argv(argv: Sequence[str]) -> Iterator[str]:
    short = ""
    hide_next = False
    for argument in argv:
        if hide_next:
            hide_next = False
            yield MARK
            continue
        short = _SHORT_OPTIONS.get(argument.rsplit("/", 1)[-1], short)
        hide_next = bool(_SECRET_OPTION.match(argument)) or (bool(short) and argument == short)
        if short == "-p" and argument.startswith("-p") and len(argument) > 2:
            yield f"-p{MARK}"
        else:
            yield mask_line(argument)


def mask_line(line: str) -> Masked:
    """One word of a command, which may be a whole line for a shell, as it may be recorded."""
    line = secrets.mask_known(line)
    if "PRIVATE KEY" in line:
        line = _KEY_MATERIAL.sub(MARK, line)
    for shape, replacement in SHAPES:
        line = shape.sub(_unless_code(replacement), line)
    for shape in _IN_LINES:
        line = shape.sub(_unless_code(_keep_what_leads_to_it), line)
    return Masked(line)


def _unless_code(replacement: Callable[[re.Match[str]], str]) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        hidden = match[0][len(match[1]) :] if match.lastindex else match[0]
        return match[0] if _CODE.search(hidden) else replacement(match)

    return replaced


def _keep_what_leads_to_it(match: re.Match[str]) -> str:
    hidden = match[0][len(match[1]) :]
    quote = hidden[0] if hidden[0] in "'\"" else ""
    return f"{match[1]}{quote}{MARK}{quote}"
