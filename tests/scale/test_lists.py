"""Every list on a big cluster: its first page, complete by paging, and a cost that grows no faster than what there is.

Small here; with `-m slow` 32 nodes, 10,000 guests, 50,000 snapshots, 100,000 task lines and 200 storages.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.scale.lists import LISTS, Counted, Lists
from tests.scale.world import FULL, SMALL, Size

pytestmark = pytest.mark.anyio
SIZES = [pytest.param(SMALL, id="small"), pytest.param(FULL, id="full", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Size], Lists]:
    made: dict[Size, Lists] = {}

    def of(size: Size) -> Lists:
        if size not in made:
            made[size] = Lists(size, tmp_path_factory.mktemp("audit"))
        return made[size]

    return of


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", LISTS)
async def test_every_row_once_page_by_page(name: str, size: Size, lists: Callable[[Size], Lists]) -> None:
    here = lists(size)
    app = here.open()
    seen: set[str] = set()
    shown, cursor, first = 0, None, None
    while True:
        page = await here.page(app, name, cursor)
        assert page["items"] or cursor is None
        rows = [json.dumps(row, sort_keys=True) for row in page["items"]]
        assert not seen & set(rows)
        seen.update(rows)
        shown += len(rows)
        first = page["count"] if cursor is None else first
        cursor = page.get("cursor")
        if cursor is None:
            break
    await app.close()
    assert shown == len(seen) == here.rows(name)
    assert first == shown


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
