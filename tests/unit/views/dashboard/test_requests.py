"""The page of requests that cost more in a new release: load, models and code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pipeline.settings.workloads import known_workloads
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard import Login, Sources, create_app
from pipeline.views.dashboard.requests import difference_of
from pipeline.views.dashboard.words import breakable
from tests.support.new_release import COSTLIER, SERVICE, release

STARTED = 1_790_000_000.0
LINES = "https://git.invalid/{service}/{path}#L{line}"
DIFF = "a.py\n-old\n+new\nb.py\n+more"


@pytest.fixture(scope="module")
def found() -> tuple[ArrayStore, float]:
    store = ArrayStore()
    return store, release(store, STARTED)


@asynccontextmanager
async def use(
    found: tuple[ArrayStore, float], *without: str
) -> AsyncIterator[tuple[TestClient[Any, Any], str]]:
    """Yield a client of a dashboard, and the page of the event; of some tables there is nothing."""
    store, end = found
    (row,) = store.rows(RowQuery("regressions", SERVICE))
    shown: Any = _Without(store, without) if without else store
    sources = Sources(shown, known_workloads([]), clock=lambda: end + 60.0, source_url=LINES)
    async with TestClient(TestServer(create_app(sources, Login()))) as client:
        yield client, f"/regressions/{row['id']}"


class _Without:
    """A store that has forgotten what it had of some verbs."""

    def __init__(self, store: ArrayStore, verbs: tuple[str, ...]) -> None:
        self._store, self._verbs = store, verbs

    def __getattr__(self, name: str) -> Any:
        return getattr(ArrayStore() if name in self._verbs else self._store, name)


async def read(client: TestClient[Any, Any], path: str, status: int = 200) -> str:
    answer = await client.get(path)
    assert answer.status == status
    return await answer.text()


async def test_the_page_names_requests_at_once_and_what_takes_long_as_a_part(
    found: tuple[ArrayStore, float],
) -> None:
    async with use(found) as (client, page):
        text = await read(client, page)
        assert "Requests that cost more" in text
        assert f'{breakable(COSTLIER)}</code></strong> <span class="meta">100 %</span>' in text
        assert f'data-part="{page}/requests"' in text
        series = await (await client.get(f"{page}/series.json")).json()
        assert None not in series["data"][0]["y"][:-1]  # windows are periods, and so have points


async def test_the_part_has_load_models_and_code(found: tuple[ArrayStore, float]) -> None:
    async with use(found) as (client, page):
        text = await read(client, f"{page}/requests")
        assert text.count('type="application/json"') == 3
        for part in ("by the costs of v41", "measured less the model of v42", "requests a minute"):
            assert part in text
        assert text.count("<tr>") == 1 + 7  # every type
        assert "orders/pricing.py:27</a>" in text  # the end of the way
        assert f'href="https://git.invalid/{SERVICE}/orders/pricing.py#L27"' in text
        assert "+    return sum(parts(item))" in text
        assert "Tidy the search" not in text  # what the requests do not run
        assert "<script>alert" not in text
        assert "<b>price" not in text


@pytest.mark.parametrize("verb", ["counts", "series"])
async def test_what_the_store_has_forgotten_is_said(found: tuple[ArrayStore, float], verb: str) -> None:
    async with use(found, verb) as (client, page):
        assert "no longer has the requests" in await read(client, f"{page}/requests")


async def test_an_event_that_is_not_there_has_no_part(found: tuple[ArrayStore, float]) -> None:
    async with use(found) as (client, _):
        await read(client, "/regressions/none/requests", status=404)


@pytest.mark.parametrize(
    ("content", "path", "expected"),
    [
        (DIFF, "a.py", ("-old", "+new")),
        (DIFF, "b.py", ("+more",)),
        (DIFF, "c.py", ()),
        ("", "a.py", ()),
    ],
)
def test_a_difference_is_that_of_one_file(content: str, path: str, expected: tuple[str, ...]) -> None:
    assert difference_of(content, path) == expected
