"""Ten minutes of mixed calls through the real server over stdio, against fakepve whose answers and wires break and a real sshd that is cut.

    python -m tests.soak                 # 10 minutes
    python -m tests.soak 1 --seed 3      # one minute, other dice
    python -m tests.soak --write         # the result goes into docs/reliability.md

Nothing may be lost: every call is answered (or was cancelled by this client), every change that was sent stands in the audit log with its
outcome, and the server's memory, handles and tasks are at the end what they were after the first minute. Exit status 1 otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxmox_mcp import audit
from proxmox_mcp.audit.files import STEMS
from tests.soak.calls import draw
from tests.soak.cluster import FaultyCluster, running
from tests.soak.report import Sample, table, write
from tests.sshd import SSHD, Sshd, start_sshd
from tests.stdio import Server, serving

TIMEOUT = 1.0  # seconds the server waits for one answer of the API
AT_ONCE = 16  # calls under way
PHASE = 20.0  # seconds
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ping", {}),
    ("tools/list", {}),
    ("resources/read", {"uri": "proxmox://overview"}),
    ("prompts/list", {}),
)


@dataclass
class Soak:
    """One run: the server, its cluster, and what came of each call."""

    server: Server
    cluster: FaultyCluster
    sshd: Sshd | None
    dice: random.Random
    results: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    under_way: deque[tuple[int, str]] = field(default_factory=deque)
    samples: list[Sample] = field(default_factory=list)

    # --- calls

    def one(self) -> None:
        """Starts something; when enough is under way, first takes the oldest answer."""
        if len(self.under_way) >= AT_ONCE:
            self.take()
        if self.dice.random() < 0.1:
            method, params = self.dice.choice(REQUESTS)
            self.under_way.append((self.server.start(method, **params), method))
            return
        name, arguments = draw(self.dice, ssh=self.sshd is not None)
        number = self.server.start_call(name, self.dice.choice((None, "token")), **arguments)
        self.results["calls"] += 1
        if self.dice.random() < 0.05:
            time.sleep(self.dice.uniform(0, 0.05))
            self.server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            self.results["cancelled"] += 1
        else:
            self.under_way.append((number, name))

    def take(self) -> None:
        number, name = self.under_way.popleft()
        try:
            answer = self.server.answer(number, timeout=90)
        except queue.Empty:
            self.results["lost"] += 1
            return
        if not name.startswith("proxmox_"):
            self.results["other requests"] += 1
            return
        self.results[self.kind(answer)] += 1

    def kind(self, answer: dict[str, Any]) -> str:
        """What became of a call, by its own words."""
        if "result" not in answer:
            return "unknown tool"
        text = "\n".join(part["text"] for part in answer["result"]["content"])
        if not answer["result"].get("isError"):
            return "answered"
        if "inside the server" in text:
            self.unexpected.append(text)
            return "unexpected"
        for words, kind in (
            ("Nothing was changed", "refused"),
            ("Invalid argument", "invalid arguments"),
            ("Outcome unknown", "outcome unknown"),
            ("unknown", "outcome unknown"),
        ):
            if text.startswith(words):
                return kind
        return "told as failed"

    def drain(self) -> None:
        while self.under_way:
            self.take()

    # --- faults

    def trouble(self, number: int) -> None:
        """The next phase: calm, broken answers, a dead wire, a dead node, no quorum, all at once."""
        cluster = self.cluster
        cluster.rate, cluster.quorate = 0.0, True
        cluster.set_node_offline("pve2", offline=False)
        match number % 6:
            case 1:
                cluster.rate = 0.1
            case 2:
                cluster.rate = 0.3
            case 3:
                cluster.set_node_offline("pve2")
                cluster.faults["node offline"] += 1
            case 4:
                cluster.quorate = False
                cluster.faults["quorum lost"] += 1
            case 5:
                cluster.rate = 0.1
                cluster.set_node_offline("pve2")

    def cut_ssh(self) -> None:
        if self.sshd is not None and self.cluster.rate:
            self.sshd.drop_connections()
            self.cluster.faults["ssh cut"] += 1

    # --- the server from outside

    def sample(self, minute: float) -> None:
        """Memory, handles and tasks while nothing is under way."""
        pid = self.server.process.pid
        before = len(self.server.stderr)
        os.kill(pid, signal.SIGUSR1)
        deadline = time.monotonic() + 10
        while not (told := [line for line in self.server.stderr[before:] if line.startswith("watched: ")]):
            assert time.monotonic() < deadline, "the server does not answer a signal"
            time.sleep(0.02)
        tasks, objects, used = map(int, told[-1].split()[1:])
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        resident = int(status["VmRSS"].split()[0]) / 1024
        found = Sample(minute, used / (1 << 20), resident, len(os.listdir(f"/proc/{pid}/fd")), tasks, int(status["Threads"]), objects)
        self.samples.append(found)
        print(found, dict(self.results), flush=True)

    def run(self, minutes: float) -> None:
        begun, phase, measured, cut = time.monotonic(), 0, -1, time.monotonic()
        while (spent := time.monotonic() - begun) < minutes * 60:
            if int(spent // PHASE) != phase:
                phase = int(spent // PHASE)
                self.trouble(phase)
            if time.monotonic() - cut > 3:
                cut = time.monotonic()
                self.cut_ssh()
            if int(spent // 60) != measured:
                measured = int(spent // 60)
                self.rest()
                self.sample(spent / 60)
                self.trouble(phase)
            self.one()
        self.rest()
        self.sample(minutes)

    def rest(self) -> None:
        """Faults off, every answer in, cancelled calls at their end, idle connections as many as ever."""
        self.trouble(0)
        self.drain()
        time.sleep(3)
        for _ in range(3):
            self.server.call("proxmox_health_overview")
            self.server.call("proxmox_list_tasks")
            if self.sshd is not None:
                self.server.call("proxmox_host_read_exec", command="uptime")
                self.server.call("proxmox_vm_read_file", alias="web", path="/etc/os-release")


def recorded(directory: Path) -> tuple[list[str], int, int, int]:
    """(verdicts, changes begun, steps recorded, steps known to be done) of the audit logs; a verdict says also what has no outcome."""
    verdicts, intents, steps, done = [], 0, 0, 0
    for which in STEMS:
        report = audit.verify(directory, which, audit.Keys.none())
        verdicts.append("; ".join((f"{which}: {report.verdict}, {report.records} records", *report.remarks)))
        for line in audit.export(directory, which):
            record = json.loads(line)
            if which != "api":
                continue
            if record["kind"] == "intent":
                intents += 1
                steps += len(record["record"]["steps"])
            elif record["kind"] == "outcome":
                done += sum(step["state"] in ("ok", "warnings", "running") for step in record["record"]["steps"])
    return verdicts, intents, steps, done


@contextlib.contextmanager
def shell(place: Path) -> Iterator[tuple[Sshd | None, dict[str, str]]]:
    """A real sshd where there is one, and the variables that reach it."""
    if not SSHD.exists():
        yield None, {}
        return
    with start_sshd(place) as sshd:
        target = sshd.target()
        entry = {"host": target.host, "port": target.port, "user": target.user, "key_path": str(target.key_file)}
        hosts = place / "vm_ssh_hosts.json"
        hosts.write_text(json.dumps({"web": {**entry, "known_hosts": str(target.known_hosts)}}))
        yield (
            sshd,
            {
                "PROXMOX_SSH_HOST": target.host,
                "PROXMOX_SSH_PORT": str(target.port),
                "PROXMOX_SSH_USER": target.user,
                "PROXMOX_SSH_KEY_PATH": str(target.key_file),
                "PROXMOX_SSH_KNOWN_HOSTS": str(target.known_hosts),
                "PROXMOX_VM_SSH_HOSTS": str(hosts),
            },
        )


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.soak", description="Mixed calls while everything breaks.")
    options.add_argument("minutes", nargs="?", type=float, default=10.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--write", action="store_true", help="put the result into docs/reliability.md")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as name, running(asked.seed, TIMEOUT * 2) as (cluster, reach):
        home = Path(name)
        with shell(home) as (sshd, reach_ssh):
            env = {
                **reach,
                **reach_ssh,
                "PROXMOX_AUDIT_DIR": str(home / "audit"),
                "PROXMOX_TIMEOUT": str(TIMEOUT),
                "PROXMOX_MAX_WAIT": "5",
                "PYTHONMALLOC": "malloc",
            }
            with serving(home, env, module="tests.soak.watched") as server:
                soak = Soak(server, cluster, sshd, random.Random(asked.seed))
                soak.run(asked.minutes)
                status = server.end()
                noise = [line for line in server.stderr if not line.startswith("watched: ")]
                junk = len(server.junk)
        verdicts, intents, steps, done = recorded(home / "audit")
    problems = [
        *(soak.unexpected[:3]),
        *([f"{soak.results['lost']} calls were never answered"] if soak.results["lost"] else []),
        *(verdict for verdict in verdicts if "BROKEN" in verdict or "no outcome" in verdict),
        *([f"{done} steps are recorded as done, {cluster.writes} were sent"] if done > cluster.writes else []),
        *([f"{cluster.writes} changes were sent, {steps} are recorded"] if cluster.writes > steps else []),
        *([f"the server ended with status {status}"] if status else []),
        *([f"{junk} lines of its output were no JSON"] if junk else []),
        *([f"it said {len(noise)} lines on standard error: {noise[0].strip()[:300]}"] if noise else []),
        *Sample.growth(soak.samples),
    ]
    found = table(asked.minutes, soak.results, cluster.faults, cluster.seen, cluster.writes, intents, verdicts, soak.samples)
    print(found)
    print("".join(noise[:200]), file=sys.stderr)
    print("\n".join(f"PROBLEM: {problem}" for problem in problems) or "no problem found")
    if asked.write:
        write(found)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
