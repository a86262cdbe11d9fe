"""What a run came to: samples of the server, the table, and its place in docs/reliability.md."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- begin soak -->\n", "<!-- end soak -->"
WARM = 2.0  # minutes until every pool is full and every module loaded


@dataclass(frozen=True, slots=True)
class Sample:
    """The idle server at one moment: bytes in use and resident memory in MiB, open handles, asyncio tasks, threads, Python objects.

    After a collection, and with the free pages given back.
    """

    minute: float
    in_use: float
    resident: float
    handles: int
    tasks: int
    threads: int
    objects: int

    @staticmethod
    def growth(samples: Sequence[Sample]) -> list[str]:
        """What grew from the warm server to the end by more than chance; needs a run that is longer than the warming."""
        warm = [sample for sample in samples if sample.minute >= WARM]
        if len(warm) < 2:
            return []
        first, last = warm[0], warm[-1]
        found = []
        for name, share, more in (("in_use", 1.03, 1), ("resident", 1.1, 4)):
            before, after = getattr(first, name), getattr(last, name)
            if after > before * share + more:
                found.append(f"memory {name} grew from {before:.1f} to {after:.1f} MiB")
        for name, slack in (("handles", 4), ("tasks", 4), ("threads", 8), ("objects", first.objects // 20)):
            before, after = getattr(first, name), getattr(last, name)
            if after > before + slack:
                found.append(f"{name} grew from {before} to {after}")
        return found


def table(
    minutes: float,
    results: Counter[str],
    faults: Counter[str],
    requests: int,
    writes: int,
    intents: int,
    verdicts: Sequence[str],
    samples: Sequence[Sample],
) -> str:
    """The run as Markdown."""
    outcomes = [f"{name} {count:,}" for name, count in results.most_common() if name not in ("calls", "lost", "other requests")]
    first, last = next((s for s in samples if s.minute >= WARM), samples[0]), samples[-1]
    named = ("minute", "in_use", "resident", "handles", "tasks", "threads", "objects")
    rows = [
        ("length", f"{minutes:g} minutes"),
        ("calls", f"{results['calls']:,}, and {results['other requests']:,} other requests"),
        ("what became of them", ", ".join(outcomes)),
        ("lost", f"{results['lost']}"),
        ("requests to the API", f"{requests:,}, of them {writes:,} changes for {intents:,} recorded intents"),
        ("faults", f"{sum(faults.values()):,}: " + ", ".join(f"{name} {count:,}" for name, count in sorted(faults.items()))),
        ("audit logs", "<br>".join(verdicts)),
        *(
            (
                f"idle server at minute {sample.minute:.0f}",
                ", ".join(f"{name.replace('_', ' ')} {getattr(sample, name):,.6g}" for name in named[1:]),
            )
            for sample in (first, last)
        ),
        ("most memory when idle", f"{max(sample.resident for sample in samples):.1f} MiB resident"),
    ]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip()
    where = f"Python {platform.python_version()}, {platform.system()}, {platform.machine()}"
    lines = ["| figure | measured |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join([*lines, "", f"Measured at commit {commit} with `python -m tests.soak` ({where}); memory in MiB.", ""])


def write(found: str) -> None:
    """Replaces the table in docs/reliability.md."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + found + END + rest.partition(END)[2])
