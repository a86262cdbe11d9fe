"""Carries one accepted command out on the node in one round trip: resolve its paths, check them again, then become the program.

The wrapper is constant; every value is a positional parameter. It writes nothing to stdout. A refusal is exit status 97 and one line on
stderr that begins with `pve-read refused: `. Exit status 124 or 137 means that the time ran out.
"""

from __future__ import annotations

import math

from proxmox_mcp.read_commands import paths
from proxmox_mcp.read_commands.paths import Kind
from proxmox_mcp.read_commands.types import ReadCommand

REFUSED = 97
REFUSAL = "pve-read refused: "
# BLKID_FILE: blkid would replace its cache. HOME, TMPDIR: no dot file is read, nothing is written.
ENVIRONMENT = (
    "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/nonexistent",
    "TMPDIR=/nonexistent",
    "LC_ALL=C.UTF-8",
    "TERM=dumb",
    "COLUMNS=200",
    "PAGER=cat",
    "SYSTEMD_PAGER=",
    "BLKID_FILE=/dev/null",
    "PYTHONDONTWRITEBYTECODE=1",
)


def _kinds(kinds: frozenset[Kind]) -> str:
    return "|".join(sorted(kinds))


_TABLES = "".join(
    f"{name}='{' '.join(patterns)}'\n"
    for name, patterns in (
        ("SECRET", paths.SECRET),
        ("PRIVATE", paths.PRIVATE),
        ("PUBLIC", paths.PUBLIC),
        ("CONTENT", paths.CONTENT),
        ("LISTED", paths.LISTED),
        ("UNLISTED", paths.UNLISTED),
    )
)
# Written for dash and busybox ash. `judge KIND PATH GIVEN` is paths.judge; a path of /sys is listed as it was given, for its links lead
# through /sys/devices.
JUDGE = f"""set -f
{_TABLES}
hit() {{ for pattern in $2; do case $1 in $pattern) return 0;; esac; done; return 1; }}
listed() {{ ! hit "$1" "$UNLISTED" && hit "$1" "$LISTED"; }}
judge() {{
  if hit "$2" "$SECRET"; then no "$2" 'holds secrets, or opening it has effects'; fi
  case $1 in {Kind.DEVICE}) return;; esac
  if hit "$2" "$PRIVATE" && ! hit "$2" "$PUBLIC"; then no "$2" 'looks like a private key or a credential'; fi
  case $1 in {_kinds(paths.SHOWS_CONTENT)}) if hit "$2" "$CONTENT"; then no "$2" "holds a guest's data"; fi;; esac
  case $1 in {Kind.TREE}|{Kind.META}) return;; esac
  case $2 in
    {paths.DEV}|{paths.DEV}/*) no "$2" 'is a device';;
    {paths.PROC}|{paths.PROC}/*) [ "$1" != {Kind.GREP} ] && listed "$2" || no "$2" 'is not a listed file of /proc';;
    {paths.SYS}|{paths.SYS}/*) [ "$1" != {Kind.GREP} ] && case $3 in
      {paths.SYS}/*) listed "$3" && ! hit "$2" "$UNLISTED";; *) listed "$2";; esac || no "$2" 'is not a listed file of /sys';;
  esac
}}
"""
# `-ef` tells a magic link of /proc (another mount namespace) from what its text says. A link swapped between check and use is not seen:
# whoever can do that on the node needs no help from here.
SCRIPT = f"""no() {{
  printf '{REFUSAL}%s: %s\\n' "$(printf %s "$1" | tr -c '[:print:]' '?')" "$2" >&2
  exit {REFUSED}
}}
{JUDGE}
paths() {{ tests=; for pattern in $1; do tests="$tests${{tests:+ -o}} -path $pattern"; done; }}
within() {{
  paths "$SECRET"
  if [ "$1" = {Kind.GREP} ]; then
    secret=$tests
    paths "$CONTENT"
    content=$tests
    paths "$PRIVATE"
    private=$tests
    paths "$PUBLIC"
    tests="$secret -o $content -o ( $private ) ! ( $tests )"
  fi
  find "$2" '(' $tests ')' -print 2>/dev/null | head -n 1
}}
nl='
'
while [ "$1" != -- ]; do
  kind=$1 path=$2
  shift 2
  judge "$kind" "$path" "$path"
  real=$(readlink -f "$path" && printf x) || real=
  real=${{real%"$nl"x}}
  [ -z "$real" ] || judge "$kind" "$real" "$path"
  [ -e "$path" ] || continue
  [ -n "$real" ] || no "$path" 'cannot be resolved'
  case $real in {paths.PROC}/*) ;; *) [ "$path" -ef "$real" ] || no "$path" 'leads elsewhere';; esac
  case $kind in
    {Kind.FILE}|{Kind.SUM}) [ -f "$path" ] || no "$path" 'is not a regular file';;
    {Kind.DEVICE}) [ -b "$path" ] || {{ [ -c "$path" ] && hit "$real" '/dev/nvme[0-9]* /dev/ng[0-9]* /dev/sg[0-9]*'; }} ||
      no "$path" 'is not a disk';;
    {_kinds(paths.RECURSIVE)}) [ -f "$path" ] || [ -d "$path" ] || no "$path" 'is neither a directory nor a regular file'
      found=$(within "$kind" "$real")
      [ -z "$found" ] || no "$path" "contains $(printf %s "$found" | tr -c '[:print:]' '?')";;
  esac
done
program=$2
shift 2
[ -x "$program" ] || for place in /usr/bin /usr/sbin /bin /sbin; do
  [ ! -x "$place/${{program##*/}}" ] || program=$place/${{program##*/}}
done
exec "$program" "$@" </dev/null
"""


def wrap(command: ReadCommand, *, timeout: float = 30.0) -> tuple[str, ...]:
    """The argv that does it: a clean environment, `timeout` (seconds, rounded up; SIGKILL 5 s later), low priority, the wrapper.

    A path that does not exist is left to the program, whose message says so best.
    """
    checks = [word for check in command.paths for word in (check.kind.value, check.path)]
    return (
        *("/usr/bin/env", "-i", *ENVIRONMENT, "timeout", "-k", "5", str(math.ceil(timeout))),
        *("nice", "-n", "10", "ionice", "-c", "3", "sh", "-c", SCRIPT, "pve-read", *checks, "--", *command.argv),
    )


def refusal(exit_status: int | None, stderr: str) -> str | None:
    """The wrapper's reason, or None when the program itself ended so."""
    line = stderr.partition("\n")[0]
    return line.removeprefix(REFUSAL) if exit_status == REFUSED and line.startswith(REFUSAL) else None
