"""Who on the node has a dataset open: processes that work in it, and containers whose own mounts it is. Read from /proc.

A destroy that meets an open dataset fails half-way, with the snapshots gone already; so this is asked beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from proxmox_mcp import text
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.zfs.host import Zfs

_MOST = 20
# stdin: what to look for in the mount tables of all namespaces. Arguments: paths, which find takes as patterns.
SCRIPT = r"""
echo "u $(id -u)"
grep -shFf - /proc/[0-9]*/mountinfo | sort -u | sed 's/^/m /'
n=$#
while [ "$n" -gt 0 ]; do
  n=$((n - 1)) p=$1
  shift
  case $p in
    /dev/zvol/*)
      p=$(readlink -f "$p") && [ -b "$p" ] || continue
      set -- "$@" -o -lname "$p" -o -lname "${p}p*"
      grep -hsE "^$p(p[0-9]+)?[[:space:]]" /proc/mounts /proc/swaps | while read -r device place rest; do
        echo "p $device is mounted at $place, or swap"
      done
      for holder in /sys/block/"${p##*/}"/holders/* /sys/block/"${p##*/}"/*/holders/*; do
        [ ! -e "$holder" ] || echo "p $p is held by ${holder##*/}"
      done
      ;;
    *) set -- "$@" -o -lname "$p" -o -lname "${p%/}/*" ;;
  esac
done
find /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe /proc/[0-9]*/fd -maxdepth 1 -type l \( -false "$@" \) \
  -printf '%p %l\n' 2>/dev/null |
  head -n 20 |
  while read -r p place; do
    p=${p#/proc/} name='?'
    read -r name <"/proc/${p%%/*}/comm"
    echo "p process ${p%%/*} ($name) has $place open"
  done 2>/dev/null
:
"""


async def by_whom(zfs: Zfs, mountpoints: Mapping[str, str | None], volumes: Sequence[str]) -> tuple[list[str], list[str]]:
    """(who has these file systems (dataset -> mountpoint) and volumes open, what could not be checked)."""
    from proxmox_mcp.ssh import OwnScript

    mounted = {dataset: place for dataset, place in mountpoints.items() if place}
    paths = [_literal(place) for place in mounted.values() if place.startswith("/")] + [f"/dev/zvol/{volume}" for volume in volumes]
    if not mounted and not paths:
        return [], []
    wanted = "".join(f" - zfs {_escaped(dataset)} \n" for dataset in mounted) or " - no file system\n"
    try:
        found = await zfs.outcome("sh", "-c", OwnScript(SCRIPT), "open-files", *paths, stdin=wanted.encode())
    except ProxmoxMcpError as error:
        return [], [f"whether something on {zfs.node} has it open: {error.what}"]
    lines = [(line[:2], line[2:]) for line in found.stdout.splitlines()]
    users = [text.clean(words, 300) for kind, words in lines if kind == "p "]
    users += _elsewhere([words for kind, words in lines if kind == "m "], mounted)
    blind = [] if ("u ", "0") in lines else [f"whether other users' processes on {zfs.node} have it open: that takes root"]
    return users[:_MOST], blind


def _elsewhere(tables: Sequence[str], mounted: Mapping[str, str]) -> list[str]:
    """Mounts of these datasets in places other than the one ZFS gave them: those of a running container, or of fstab."""
    found: dict[str, None] = {}
    for line in tables:
        before, _, behind = line.partition(" - zfs ")
        fields = before.split(" ")
        dataset, place = _unescaped(behind.split(" ")[0]), _unescaped(fields[4]) if len(fields) > 4 else ""
        if dataset in mounted and place and place != mounted[dataset]:
            found[f"{dataset} is mounted at {text.clean(place, 200)} too: by a container that runs, or by fstab"] = None
    return list(found)


def _literal(path: str) -> str:
    """A path as a pattern that means nothing but itself."""
    return re.sub(r"([\\*?\[])", r"\\\1", path)


def _escaped(name: str) -> str:
    return name.replace(" ", "\\040")


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)
