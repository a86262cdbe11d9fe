"""`python -m tests.scale`: what the first page of each list costs on 32 nodes, 10,000 guests, 50,000 snapshots, 100,000 tasks."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.scale.served import costs, running
from tests.scale.world import FULL

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, running(FULL, Path(place)) as server:
        print("| list | seconds | of the server's processor | MB over idle |\n| --- | --- | --- | --- |")
        for cost in costs(server):
            print(
                f"| `{cost.name}` | {cost.seconds:.2f} | {cost.cpu:.2f} | {cost.memory:.0f} |",
                "FAILED: " + cost.text if cost.failed else "",
            )
