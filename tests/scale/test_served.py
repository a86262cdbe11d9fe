"""The real server on the big cluster: every first page within its bounds of memory, and a cost that follows the size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.scale.served import costs, first_page, running
from tests.scale.world import FULL, Size

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")]
MEMORY = 60.0  # MB over the idle server
# lists whose one answer grows with what there is; each is doubled twice
GROWING = ("list_vms", "list_backups", "zfs_list_snapshots")


def test_every_first_page_is_answered_within_sixty_megabytes(tmp_path: Path) -> None:
    with running(FULL, tmp_path) as server:
        for cost in costs(server):
            assert not cost.failed, cost
            assert cost.memory <= MEMORY, (cost.name, cost.memory)
            assert len(cost.text) < 40_000, cost.name
        assert not server.junk


def test_the_processor_time_of_a_first_page_grows_no_faster_than_the_list(tmp_path: Path) -> None:
    """Three sizes, the best of five calls each; generous, for others use the machine too."""
    sizes = [Size(4, 5_000 * factor, 20, 2_000, 25_000 * factor, 100) for factor in (1, 2, 4)]
    spent: dict[str, list[float]] = {name: [] for name in GROWING}
    for number, size in enumerate(sizes):
        place = tmp_path / str(number)
        place.mkdir()
        with running(size, place) as server:
            for name in GROWING:
                spent[name].append(min(first_page(server, name).cpu for _ in range(5)))
    for name, (one, _, four) in spent.items():
        assert four <= 6 * max(one, 0.05), (name, spent[name])
