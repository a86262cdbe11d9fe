"""A directory of programs that stand in for a node's: zfs and zpool from the model, and enough of systemd to run a unit in the background.

machine = Machine.make(tmp_path, node)
machine.environment   # PATH begins with the programs
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.zfs import node as model
from tests.zfs.node import Node

_PROGRAMS = {
    "uname": "echo pve1.example.net",
    "sleep": "exec /bin/sleep 0.02",
    "systemd-run": """
while [ "$1" != -- ]; do case $1 in --unit=*) unit=${1#--unit=};; esac; shift; done
shift
[ ! -e UNITS/$unit.active ] || { echo "Failed to start transient service unit: Unit $unit.service was already loaded." >&2; exit 1; }
: >UNITS/$unit.active
( "$@" >>UNITS/$unit.log 2>&1; rm UNITS/$unit.active; [ ! -p UNITS/ended ] || : >UNITS/ended ) </dev/null >/dev/null 2>&1 &
""",
    "systemctl": """
for unit; do :; done
state=inactive
[ ! -e "UNITS/$unit.active" ] || state=active
[ "$2" = --quiet ] || echo $state
[ $state = active ] || exit 3
""",
    "journalctl": """
lines=1000
while [ $# -gt 0 ]; do
  case $1 in -n) lines=$2; shift;; _SYSTEMD_UNIT=*) unit=${1#_SYSTEMD_UNIT=};; esac
  shift
done
[ -z "$unit" ] || tail -n "$lines" "UNITS/${unit%.service}.log" 2>/dev/null
:
""",
}


@dataclass
class Machine:
    """`programs` is the first directory of PATH; `state` holds the model between commands."""

    programs: Path
    state: Path
    units: Path

    @classmethod
    def make(cls, tmp_path: Path, node: Node) -> Machine:
        machine = cls(tmp_path / "programs", tmp_path / "state.json", tmp_path / "units")
        machine.programs.mkdir()
        machine.units.mkdir()
        for name, script in _PROGRAMS.items():
            machine.program(name, script.replace("UNITS", str(machine.units)))
        for name in ("zfs", "zpool"):
            machine.program(name, f'exec {sys.executable} -S -E {model.__file__} {machine.state} {name} "$@"')
        machine.write(node)
        return machine

    def program(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def write(self, node: Node) -> None:
        self.state.write_text(json.dumps(asdict(node)))

    def read(self) -> Node:
        return Node(**json.loads(self.state.read_text()))

    @property
    def path(self) -> str:
        return f"{self.programs}:/usr/sbin:/usr/bin:/sbin:/bin"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": self.path, "LC_ALL": "C.UTF-8"}
