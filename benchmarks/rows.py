"""One figure of the table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`ours` and `reference` are shown as they are; `holds` says whether the bar is met."""

    figure: str
    ours: str
    reference: str
    ratio: str
    bar: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.figure}: {self.ours}; {self.reference}; {self.ratio} (bar {self.bar}: {'held' if self.holds else 'MISSED'})"


def interleaved(ours: Callable[[], object], reference: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Medians in seconds of two functions run in turns, so that both meet the same machine."""
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for place, run in enumerate((ours, reference)):
            began = time.perf_counter()
            run()
            spent[place].append(time.perf_counter() - began)
    return statistics.median(spent[0]), statistics.median(spent[1])
