"""argv -> the line a login shell gets, and the script that ends a command on the far side. Pure text; the one place that quotes."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proxmox_mcp.errors import InvalidArgument

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C.UTF-8", "PAGER": "cat", "TERM": "dumb", "DEBIAN_FRONTEND": "noninteractive"}

# Linux takes 128 KiB in one argument, and the login shell gets the whole line as one.
LINE_LIMIT = 120_000
# What stands behind the marker when the machine is not the one that was meant.
ELSEWHERE = "elsewhere"
# A command whose client has vanished ends by itself this long after its timeout.
BACKSTOP = 10

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ShellText(str):
    """A word of argv that may hold line breaks: the text after `sh -c`. Every other word is refused with one."""

    __slots__ = ()


class OwnScript(ShellText):
    """A constant script that this package brings: records name its digest instead of repeating it with every read."""

    __slots__ = ()

    @property
    def mark(self) -> str:
        """What stands in the audit log: the same for the same text, in every version."""
        return f"[own script, sha256 {hashlib.sha256(self.encode()).hexdigest()}]"


@dataclass(frozen=True, slots=True)
class Command:
    """One command, ready to be sent. `line` is for the login shell; `token` names it on the far side, `marker` begins its output."""

    line: str
    token: str
    marker: bytes
    stdin: bytes | None = field(default=None, repr=False)


def operand(value: str, name: str = "value") -> str:
    """The value, when it can be an operand of a command: no leading "-" (it would be an option), no NUL, no line break.

    Raises InvalidArgument, which names the argument.
    """
    if value.startswith("-"):
        raise InvalidArgument(name, f'{value!r} begins with "-" and would be taken for an option.')
    return _word(value, name)


def prepare(
    argv: Sequence[str],
    *,
    timeout: float,
    sudo: bool = False,
    stdin: bytes | None = None,
    extra_env: Mapping[str, str] | None = None,
    host: str | None = None,
) -> Command:
    """Check argv and write the line. Raises InvalidArgument.

    `host`: the first label of the name that the machine must have; on another one the marker says ELSEWHERE and nothing runs.

    On the far side: /bin/sh, a clean environment (HOME, USER, LOGNAME, SHELL and ENVIRONMENT), stdin from /dev/null unless given, and
    `timeout` as a last limit where GNU's is installed and the command does not run through sudo.
    """
    words = _checked(argv)
    extra = [f"{_name(name)}={_word(value, f'extra_env {name}')}" for name, value in (extra_env or {}).items()]
    if sudo:
        # sudo resets the environment, so variables are set behind it
        words = ["sudo", "-n", "--", *(["env", *extra] if extra else []), *words]
        extra = []
    token, proof = secrets.token_hex(8), secrets.token_hex(8)
    fixed = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
    limit = "" if sudo else f'timeout --version >/dev/null 2>&1 && set -- timeout -k 5 {math.ceil(timeout) + BACKSTOP} "$@"\n'
    right = (
        ""
        if host is None
        else f"h=$(uname -n); h=${{h%%.*}}\n"
        f'[ "$h" = {shlex.quote(_word(host, "host"))} ] || {{ printf \'%s%s {ELSEWHERE} %s\\n\' "$0" {proof} "$h"; exit 1; }}\n'
    )
    script = (
        f"PATH={PATH}; export PATH\n"
        f"{right}"
        "l=; read -r l </proc/$$/stat\n"
        "set -- ${l##*\\)}\n"
        # the marker ends whatever the account's profile printed; it is never whole in the line itself, which a shell may echo
        f'printf \'%s%s %s %s\\n\' "$0" {proof} "$$" "${{20-}}"\n'
        f"printf '%s%s\\n' \"$0\" {proof} >&2\n"
        'set -- env -i HOME="${HOME-}" USER="${USER-}" LOGNAME="${LOGNAME-}" SHELL="${SHELL-}" '
        f"{shlex.join([*fixed, *extra, *words])}\n"
        f"{limit}"
        f'exec "$@"{"" if stdin is not None else " </dev/null"}'
    )
    line = _login_line(token, script)
    if len(line) > LINE_LIMIT:
        raise InvalidArgument("argv", f"the command is {len(line):,} bytes long; {LINE_LIMIT:,} fit.", hint="Send the long part as stdin.")
    return Command(line, token, f"{token}{proof}".encode(), stdin)


def ending(token: str, process: tuple[int, str] | None) -> ShellText:
    """The script that ends a command: SIGTERM, after a second SIGKILL, to its session and to everything below its first process.

    `process` is (pid, start time) as the command reported it; without it (its profile hangs) the processes whose command line holds the
    token are meant. Prints "left" and the process ids that are still there (none: it has ended). What detached itself from the command
    (a daemon that has a new session and no living parent here) is not part of it. Without Linux's /proc the process group is ended.
    """
    pid, start = process or ("", "")
    if pid != "" and int(pid) <= 1:
        raise ValueError("the first process is never part of a command")
    return ShellText(_ENDING.replace("@PID@", str(pid)).replace("@START@", start).replace("@TOKEN@", token))


_ENDING = r"""exec 2>/dev/null
p=@PID@ t=@START@ k=@TOKEN@
pause() { sleep 0.1 || sleep 1; }
if [ ! -r /proc/self/stat ]; then
  [ "$p" ] || { echo 'left ?'; exit; }
  kill -s TERM -- "-$p" || kill -s TERM "$p"; n=0
  while n=$((n+1)); [ $n -lt 10 ] && kill -s 0 -- "-$p"; do pause; done
  kill -s KILL -- "-$p"; pause
  if kill -s 0 -- "-$p"; then echo "left $p"; else echo left; fi
  exit
fi
read -r l </proc/$$/stat; set -- ${l##*\)}; own=$4
# never the way this script came by, and never the first process
spared=' 0 1 '; a=$$
while [ "$a" -gt 1 ]; do
  spared="$spared$a "; l=; read -r l <"/proc/$a/stat" || break
  set -- ${l##*\)}; a=$2
done
mine=' '
if [ "$p" ]; then mine=" $p:$t "; else
  p=none
  for f in $(grep -lF "$k" /proc/[0-9]*/cmdline); do
    f=${f%/cmdline}; q=${f#/proc/}; l=; read -r l <"$f/stat" || continue
    set -- ${l##*\)}; [ "$4" = "$own" ] && continue
    mine="$mine$q:${20} "; [ "$4" = "$q" ] && p=$q
  done
  [ "$mine" = ' ' ] && { echo 'left ?'; exit; }
fi
list() {
  for f in /proc/[0-9]*/stat; do
    l=; read -r l <"$f" || continue
    f=${f%/stat}; set -- ${l##*\)}
    case $1 in Z|X) continue ;; esac
    echo "${f#/proc/} $2 $4 ${20}"
  done
}
find_them() {
  # somebody else got the process id meanwhile: the command has ended, and its session with it
  l=; [ "$t" ] && read -r l <"/proc/$p/stat" && set -- ${l##*\)} && [ "${20}" != "$t" ] && p=none
  all=$(list); left=; grown=1
  while [ "$grown" ]; do
    grown=
    while read -r q parent session begun; do
      case "$spared$left " in *" $q "*) continue ;; esac
      hit=
      case "$mine" in *" $q:$begun "*) hit=1 ;; esac
      if [ "$q" = "$p" ] || [ "$session" = "$p" ]; then hit=1; fi
      case "$left " in *" $parent "*) hit=1 ;; esac
      if [ "$hit" ]; then left="$left $q"; mine="$mine$q:$begun "; grown=1; fi
    done <<LIST
$all
LIST
  done
}
# stopped first, so that none has a child that nobody sees; the look that finds no more is the last
n=0; before=none
while find_them; [ "$left" != "$before" ] && [ $n -lt 5 ]; do
  n=$((n+1)); before=$left; [ "$left" ] && kill -s STOP $left
done
[ "$left" ] && { kill -s TERM $left; kill -s CONT $left; }
n=0
while find_them; [ "$left" ] && [ $n -lt 25 ]; do
  [ $n -ge 8 ] && kill -s KILL $left
  n=$((n+1)); pause
done
echo "left$left"
"""


def _checked(argv: Sequence[str]) -> list[str]:
    words = list(argv)
    if isinstance(argv, str) or not words:
        raise InvalidArgument("argv", "a command is a list of words, the program first.")
    program = words[0]
    if not program or program.startswith("-") or "=" in program:
        # env and sudo read a first word with "=" as an assignment and run the next one instead
        raise InvalidArgument("argv", f"{program!r} is not a program.")
    return [_word(word, f"argv[{place}]", breaks=isinstance(word, ShellText)) for place, word in enumerate(words)]


def _word(word: str, name: str, *, breaks: bool = False) -> str:
    if "\0" in word:
        raise InvalidArgument(name, "a NUL character cannot be passed to a command.")
    if not breaks and ("\n" in word or "\r" in word):
        raise InvalidArgument(name, "a line break is not allowed here.")
    try:
        word.encode()
    except UnicodeEncodeError as wrong:
        raise InvalidArgument(name, "it holds half a character (a lone surrogate).") from wrong
    return word


def _name(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise InvalidArgument("extra_env", f"{name!r} is not a variable's name.")
    return name


def _login_line(token: str, script: str) -> str:
    """A line that bash, dash, ash, ksh, zsh, tcsh and fish read the same.

    Their quoting differs (fish unescapes backslashes inside quotes, tcsh expands "!" and breaks at line ends), so only plain printable
    characters stand in the quotes; everything else travels as octal escapes that printf's %b restores. Short pieces, for tcsh's sake.
    """
    pieces = [""]
    for byte in script.encode():
        plain = 32 <= byte < 127 and byte not in b"\\'!"
        if len(pieces[-1]) > 500:
            pieces.append("")
        pieces[-1] += chr(byte) if plain else f"\\0{byte:03o}"
    quoted = " ".join(f"'{piece}'" for piece in pieces)
    return f'exec /bin/sh -c \'eval "$(printf %b "$@")"\' {token} {quoted}'
