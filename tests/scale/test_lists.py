"""Every list on a big cluster: its first page, complete by paging, and a cost that grows no faster than what there is.

Small here; with `-m slow` 32 nodes, 10,000 guests, 50,000 snapshots, 100,000 task lines and 200 storages.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.scale.lists import LISTS, Counted, Lists
from tests.scale.world import FULL, SMALL, Size

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Size], Lists]:
    made: dict[Size, Lists] = {}

    def of(size: Size) -> Lists:
        if size not in made:
            made[size] = Lists(size, tmp_path_factory.mktemp("audit"))
        return made[size]

    return of


async def pages(here: Lists, name: str, **more: Any) -> AsyncIterator[dict[str, Any]]:
    """The pages of a list, which end."""
    app, cursor = here.open(), None
    try:
        while True:
            page = await here.page(app, name, cursor, **more)
            yield page
            cursor = page.get("cursor")
            if cursor is None:
                return
    finally:
        await app.close()


async def every_row_once(here: Lists, name: str, **more: Any) -> int:
    """The number of rows on all pages, none of which comes twice, and as many as the first page counts."""
    seen: set[str] = set()
    shown, counted = 0, None
    async for page in pages(here, name, **more):
        rows = [json.dumps(row, sort_keys=True) for row in page["items"]]
        assert not seen & set(rows)
        seen.update(rows)
        shown += len(rows)
        counted = page["count"] if counted is None else counted
    assert shown == len(seen) == counted
    return shown


@pytest.mark.parametrize("name", LISTS)
async def test_every_row_once_page_by_page(name: str, lists: Callable[[Size], Lists]) -> None:
    assert await every_row_once(lists(SMALL), name) == lists(SMALL).rows(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(LISTS) - {"list_tasks"}))
async def test_every_row_of_the_big_cluster_once_page_by_page(name: str, lists: Callable[[Size], Lists]) -> None:
    """Only what tells rows apart is asked for, so that a page holds more of them."""
    assert await every_row_once(lists(FULL), name, fields=LISTS[name][1]) == lists(FULL).rows(name)


@pytest.mark.slow
async def test_a_hundred_thousand_task_lines(lists: Callable[[Size], Lists]) -> None:
    """Of one node all of them; of all nodes the newest thousands, in order, beside their whole number."""
    here = lists(FULL)
    tasks = here.api.world.tasks.values()
    assert await every_row_once(here, "list_tasks", node="pve7") == sum(task.node == "pve7" for task in tasks)
    newest = sorted((-task.started, task.upid) for task in tasks)
    found: list[str] = []
    async for page in pages(here, "list_tasks", fields=["upid"]):
        assert page.get("count", page.get("remaining")) == len(tasks) - (0 if "count" in page else len(found))
        found += [row["upid"] for row in page["items"]]
        if len(found) >= 3_000:
            break
    assert found == [upid for _, upid in newest[: len(found)]]


@pytest.mark.parametrize("name", LISTS)
async def test_the_work_for_a_first_page_grows_no_faster_than_what_there_is(name: str, lists: Callable[[Size], Lists]) -> None:
    """Calls of functions at one, two and four times the size: no timing, so no luck."""
    counts = []
    for factor in (1, 1, 2, 4):  # the first run loads and caches
        here = lists(SMALL.times(factor))
        app = here.open()
        with Counted() as counted:
            await here.page(app, name)
        await app.close()
        counts.append(counted.calls)
    _, one, two, four = counts
    assert two <= 2.1 * one, counts
    assert four <= 4.2 * one, counts
