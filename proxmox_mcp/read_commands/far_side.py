"""Carries one accepted command out on the node in one round trip: resolve its paths, check them again, then become the program.

The wrapper is constant; every value is a positional parameter. It writes nothing to stdout. A refusal is exit status 97 and one line on
stderr that begins with `pve-read refused: `. Exit status 124 or 137 means that the time ran out.
"""

from __future__ import annotations

import math

from proxmox_mcp.read_commands import paths
from proxmox_mcp.read_commands.paths import Kind
from proxmox_mcp.read_commands.types import PathCheck, ReadCommand

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
        ("JOURNALS", paths.JOURNALS),
        ("LISTED", paths.LISTED),
        ("UNLISTED", paths.UNLISTED),
        ("GUEST_ROOTS", paths.GUEST_ROOTS),
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
  case $1 in {Kind.FILE}) if hit "$2" "$JOURNALS"; then no "$2" 'is a journal: journalctl shows it'; fi;; esac
  case $1 in {Kind.TREE}|{Kind.META}) return;; esac
  case $2 in
    {paths.DEV}|{paths.DEV}/*) no "$2" 'is a device';;
    {paths.PROC}|{paths.PROC}/*) [ "$1" != {Kind.GREP} ] && listed "$2" || no "$2" 'is not a listed file of /proc';;
    {paths.SYS}|{paths.SYS}/*) [ "$1" != {Kind.GREP} ] && case $3 in
      {paths.SYS}/*) listed "$3" && ! hit "$2" "$UNLISTED";; *) listed "$2";; esac || no "$2" 'is not a listed file of /sys';;
  esac
}}
"""
# Becomes the program with operands that are what was judged, whatever is swapped for a link meanwhile: each is opened without following
# one, compared with the path that was judged, and handed on open. Arguments: how many, (index, path) each, then argv.
OPENER = f"""use Fcntl;
$^F = 999;
my $many = shift;
my @found = splice @ARGV, 0, 2 * $many;
while (my ($at, $path) = splice @found, 0, 2) {{
  my ($place, $file, $is);
  sysopen($place, $path, 0x200000 | O_NOFOLLOW) and $is = "/proc/self/fd/" . fileno $place;
  unless ($is && readlink($is) eq $path && (-d $place || -f _ && sysopen($file, $is, O_RDONLY))) {{
    $path =~ s/[^ -~]/?/g;
    print STDERR "{REFUSAL}$path: was changed meanwhile\\n";
    exit {REFUSED};
  }}
  push @kept, $place, $file;
  if ($many > 1) {{ $ARGV[$at] = "/proc/self/fd/" . fileno($file || $place) }}
  elsif ($file) {{ open STDIN, "<&", $file; $ARGV[$at] = "-" }}
  else {{ chdir $is; $ARGV[$at] = "." }}
}}
exec {{ $ARGV[0] }} @ARGV;
exit 127;
"""
# `-ef` tells a magic link of /proc (another mount namespace) from what its text says. `closed PATH`: nobody but root can put something
# else there; what lies elsewhere is opened by OPENER (without perl, as on some guests, it is opened by name, which a quick swap deceives).
SCRIPT = f"""no() {{
  printf '{REFUSAL}%s: %s\\n' "$(printf %s "$1" | tr -c '[:print:]' '?')" "$2" >&2
  exit {REFUSED}
}}
{JUDGE}
closed() {{
  ! hit "$1" "$GUEST_ROOTS" || return 1
  inside=$1
  while [ -n "$inside" ]; do
    entry=$inside
    inside=${{inside%/*}}
    case $(stat -c %u:%A -- "${{inside:-/}}" 2>/dev/null) in
      0:d????-??-?) ;;
      0:d????????[tT]) [ "$(stat -c %u -- "$entry" 2>/dev/null)" = 0 ] || return 1;;
      '') [ -n "$inside" ] || return 1;;
      *) return 1;;
    esac
  done
}}
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
  find "$2" '(' $tests ')' -print -quit 2>/dev/null
}}
nl='
'
many=0
while [ "$1" != -- ]; do
  kind=$1 at=$2 path=$3
  shift 3
  judge "$kind" "$path" "$path"
  real=$(readlink -f "$path" && printf x) || real=
  real=${{real%"$nl"x}}
  [ -z "$real" ] || judge "$kind" "$real" "$path"
  if [ ! -e "$path" ]; then
    [ "$at" = 0 ] || {{ closed "$path" && {{ [ -z "$real" ] || closed "$real"; }}; }} || eval "word_$at=/nonexistent\\$path"
    continue
  fi
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
  case $at:$path:$real in
    0:*|*:{paths.PROC}/*:*|*:{paths.SYS}/*:*) ;;
    *:{paths.PROC}/*) [ -e "$real" ] || real={paths.PROC}/self/${{real#{paths.PROC}/*/}}
      eval "word_$at=\\$real";;
    *) if closed "$real"; then eval "word_$at=\\$real"; else set -- "$@" "$at" "$real"; many=$((many + 1)); fi;;
  esac
done
shift
program=$1
[ -x "$program" ] || for place in /usr/bin /usr/sbin /bin /sbin; do
  [ ! -x "$place/${{program##*/}}" ] || program=$place/${{program##*/}}
done
word_0=$program count=$(($# - 2 * many)) at=0
while [ $at -lt $count ]; do
  eval "word=\\${{word_$at-}}"
  set -- "$@" "${{word:-$1}}"
  shift
  at=$((at + 1))
done
if [ $many -gt 0 ] && command -v perl >/dev/null; then exec perl -e '{OPENER}' $many "$@" </dev/null; fi
shift $((2 * many))
exec "$@" </dev/null
"""


def wrap(command: ReadCommand, *, timeout: float = 30.0) -> tuple[str, ...]:
    """The argv that does it: a clean environment, `timeout` (seconds, rounded up; SIGKILL 5 s later), low priority, the wrapper.

    A path that does not exist is left to the program, whose message says so best.
    """
    checks = [word for check in command.paths for word in (check.kind.value, str(_index(check)), check.path)]
    return (
        *("/usr/bin/env", "-i", *ENVIRONMENT, "timeout", "-k", "5", str(math.ceil(timeout))),
        *("nice", "-n", "10", "ionice", "-c", "3", "sh", "-c", SCRIPT, "pve-read", *checks, "--", *command.argv),
    )


def _index(check: PathCheck) -> int:
    """Which word of argv may be replaced by what was judged; 0 for what only shows names and attributes, or opens a device."""
    return check.at if check.kind in paths.OPENS else 0


def refusal(exit_status: int | None, stderr: str) -> str | None:
    """The wrapper's reason, or None when the program itself ended so."""
    line = stderr.partition("\n")[0]
    return line.removeprefix(REFUSAL) if exit_status == REFUSED and line.startswith(REFUSAL) else None
