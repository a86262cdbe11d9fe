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


def _case(patterns: tuple[str, ...]) -> str:
    return "|".join(patterns)


def _kinds(kinds: frozenset[Kind]) -> str:
    return "|".join(sorted(kinds))


def _find(patterns: tuple[str, ...]) -> str:
    return " -o ".join(f"-path '{pattern}'" for pattern in patterns)


# Written for dash and busybox ash. `-ef` tells a magic link of /proc (another mount namespace) from what its text says. A link swapped
# between check and use is not seen: whoever can do that on the node needs no help from here.
_NO = f"""
no() {{
  printf '{REFUSAL}%s: %s\\n' "$(printf %s "$1" | tr -c '[:print:]' '?')" "$2" >&2
  exit {REFUSED}
}}
"""
JUDGE = f"""
listed() {{
  case $1 in {_case(paths.UNLISTED)}) return 1;; esac
  case $1 in {_case(paths.LISTED)}) return 0;; esac
  return 1
}}
judge() {{
  case $2 in {_case(paths.SECRET)}) no "$2" 'holds secrets, or opening it has effects';; esac
  case $1 in {Kind.DEVICE}) return;; esac
  case $2 in {_case(paths.PUBLIC)}) ;; {_case(paths.PRIVATE)}) no "$2" 'looks like a private key or a credential';; esac
  case $1 in {_kinds(paths.SHOWS_CONTENT)}) case $2 in {_case(paths.CONTENT)}) no "$2" "holds a guest's data";; esac;; esac
  case $1 in {_kinds(paths.OPENS)}) case $2 in
    {paths.DEV}|{paths.DEV}/*) no "$2" 'is a device';;
    {paths.PROC}|{paths.PROC}/*) [ "$1" != {Kind.GREP} ] && listed "$2" || no "$2" 'is not a listed file of /proc';;
    {paths.SYS}|{paths.SYS}/*) [ "$1" != {Kind.GREP} ] && case $3 in
      {paths.SYS}/*) listed "$3" && case $2 in {_case(paths.UNLISTED)}) false;; esac;;
      *) listed "$2";; esac || no "$2" 'is not a listed file of /sys';;
  esac;; esac
}}
"""
SCRIPT = (
    _NO
    + JUDGE
    + f"""
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
    {_kinds(frozenset({Kind.FILE, Kind.SUM}))}) [ -f "$path" ] || no "$path" 'is not a regular file';;
    {Kind.DEVICE}) [ -b "$path" ] || {{ [ -c "$path" ] && case $real in
      /dev/nvme[0-9]*|/dev/ng[0-9]*|/dev/sg[0-9]*) ;; *) false;; esac; }} || no "$path" 'is not a disk';;
    {_kinds(paths.RECURSIVE)}) [ -f "$path" ] || [ -d "$path" ] || no "$path" 'is neither a directory nor a regular file';;
  esac
  case $kind in
    {Kind.TREE}) found=$(find "$real" \\( {_find(paths.SECRET)} \\) -print 2>/dev/null | head -n 1);;
    {Kind.GREP}) found=$(find "$real" \\( {_find(paths.SECRET)} -o {_find(paths.CONTENT)} -o \\( {_find(paths.PRIVATE)} \\) \\
      ! \\( {_find(paths.PUBLIC)} \\) \\) -print 2>/dev/null | head -n 1);;
    *) found=;;
  esac
  [ -z "$found" ] || no "$path" "contains $(printf %s "$found" | tr -c '[:print:]' '?')"
done
program=$2
shift 2
[ -x "$program" ] || for place in /usr/bin /usr/sbin /bin /sbin; do
  [ ! -x "$place/${{program##*/}}" ] || program=$place/${{program##*/}}
done
exec "$program" "$@" </dev/null
"""
)


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
