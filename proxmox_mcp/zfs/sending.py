"""`zfs send` into a file or a dataset, as a transient systemd unit of the node: constant scripts, every value a positional parameter.

The unit goes on when the caller's patience or the connection ends. Both sides' exit statuses are reported: a pipeline's own would be that
of its last command. What the unit prints is in the node's journal, its last line the result.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

GOES_ON = 75  # the follower's exit status when its time is up and the unit runs
NOT_STARTED = 80
RESULT = "pve-mcp result:"

# Parameters: the allowed directory, the file's directory, its name; then those of zfs send. No "${" and no "$$": systemd would read them.
# The directory is entered before it is judged, so that no link can be changed in between; names are relative to it from then on.
# On SIGTERM (`systemctl stop`) the sender ends, and what was written so far goes.
TO_FILE = f"""
umask 077
trap : TERM
say() {{ echo "{RESULT} $*" >&2; }}
cd -P -- "$1" && top=$(pwd -P) && cd -P -- "$2" || {{ say "failed: no such directory"; exit 1; }}
case $(pwd -P)/ in "$top"/*) ;; *) say "failed: the directory leads outside of $1"; exit 1;; esac
name=./$3 part=./.$3.$(date +%s%N).part
shift 3
[ ! -e "$name" ] && [ ! -L "$name" ] || {{ say "failed: the file exists"; exit 1; }}
set -C
sent=$( {{ zfs send "$@" >&3; echo $?; }} 3>"$part" )
fail() {{ rm -f "$part"; say "failed: $*"; exit 1; }}
[ "$sent" ] || [ ! -e "$part" ] || fail "it was stopped"
[ "$sent" ] || fail "the file could not be created"
[ "$sent" = 0 ] || fail "send $sent"
sync "$part" || fail "the file could not be written to disk"
ln -T "$part" "$name" || {{ [ ! -e "$name" ] && mv -nT "$part" "$name" && [ ! -e "$part" ]; }} ||
  fail "the file could not be given its name"
rm -f "$part"
sync .
say "done: send 0, $(stat -c %s "$name") bytes"
"""

# Parameters: the options of zfs receive as one word, the dataset; then those of zfs send.
TO_DATASET = f"""
say() {{ echo "{RESULT} $*" >&2; }}
options=$1 target=$2
shift 2
ends=$( {{
  {{ zfs send "$@" 3>&-; echo "send $?" >&3; }} |
    {{ zfs receive "$options" "$target" 3>&- >&2; echo "receive $?" >&3; }}
}} 3>&1 >&2 )
ends=$(echo $ends)
case $ends in
  'send 0 receive 0' | 'receive 0 send 0') say "done: $ends" ;;
  *) say "failed: $ends"; exit 1 ;;
esac
"""

# Parameters: the unit, seconds of patience; then the command of the unit.
_FOLLOW = f"""
unit=$1 patience=$2
shift 2
journal() {{ journalctl -q --no-pager -o cat "_SYSTEMD_UNIT=$unit.service" --since "@$since" "$@"; }}
since=$(date +%s)
systemd-run --quiet --collect --unit="$unit" --setenv=LC_ALL=C.UTF-8 --setenv=PATH="$PATH" -- \\
  /bin/sh -c "$script" "$unit" "$@" </dev/null || exit {NOT_STARTED}
waited=0
while systemctl is-active --quiet "$unit"; do
  [ "$waited" -lt "$patience" ] || exit {GOES_ON}
  sleep 1
  waited=$((waited + 1))
  journal -n 1 >&2
done
journalctl --sync
said=$(journal -n 40)
printf '%s\n' "$said"
printf '%s\n' "$said" | grep -q '^{RESULT} done'
"""


@dataclass(frozen=True, slots=True)
class Stream:
    """What is sent. `base` is the snapshot or bookmark that an incremental stream begins at, as a full name."""

    source: str
    base: str | None = None
    replication: bool = False
    raw: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        flags = (*(("-R",) if self.replication else ()), *(("-w",) if self.raw else ()))
        return (*flags, *(("-i", self.base) if self.base is not None else ()), self.source)

    @property
    def words(self) -> str:
        return f"zfs send {shlex.join(self.options)}"


def estimate(stream: Stream) -> tuple[str, ...]:
    """The command that says how much would be sent; it sends nothing."""
    return ("zfs", "send", "-nvP", *stream.options)


def unit(stream: Stream, target: str) -> str:
    """The unit's name: the same for the same transfer, so that it cannot run twice at a time."""
    mark = hashlib.sha256("\0".join([*stream.options, target]).encode()).hexdigest()[:12]
    return f"pve-mcp-send-{mark}"


def follow(script: str, unit: str, patience: int, words: Sequence[str]) -> tuple[tuple[str, ...], bytes]:
    """(argv, stdin) of the command that starts the unit and follows it for `patience` seconds: the scripts travel as stdin."""
    return ("sh", "-s", "--", unit, str(patience), *words), f"script={shlex.quote(script)}\n{_FOLLOW}".encode()


def result(stdout: str) -> str:
    """What the unit said last: "done: send 0 receive 0", "failed: send 1 receive 1"; "" when it said nothing (killed, or no journal)."""
    found = [line.removeprefix(RESULT).strip() for line in stdout.splitlines() if line.startswith(RESULT)]
    return found[-1] if found else ""


def messages(stdout: str) -> list[str]:
    """What zfs itself said, without the progress and the result."""
    lines = (line.strip() for line in stdout.splitlines())
    return [line for line in lines if line and not line.startswith((RESULT, "TIME ")) and not _PROGRESS.match(line)]


_PROGRESS = re.compile(r"\d\d:\d\d:\d\d\s+\S+\s+\S|(?:full|incremental) send of|total estimated size|send from ")


def explained(result: str) -> str:
    """What a pair of exit statuses means."""
    if "send 141" in result:
        return "the receiver stopped first, so the sender had nobody to send to (141)"
    if re.search(r"send [1-9]", result) and "receive" in result:
        return "the sender failed, and the receiver with the broken stream"
    return ""
