"""The page of requests that cost more in a new release, in Chromium: drawn whole, and for everybody."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pipeline.settings.workloads import known_workloads
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard import Login, Sources, create_app
from tests.support.axe import audit
from tests.support.browser import CHROMIUM, DESKTOP, PHONE, chromium
from tests.support.new_release import SERVICE, release

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]

TALL = 4200
"""Most of the page that a picture shows, in pixels."""

LINES = "https://git.invalid/{service}/blob/{commit}/{path}#L{line}"
LINK = "document.querySelector('.way .meta a').href"
STARTED = 1_790_000_000.0
DRAWN = """!document.querySelector('[aria-busy]')
    && document.querySelectorAll('.figure').length === 4
    && [...document.querySelectorAll('.figure')].every((one) => one.dataset.drawn === 'yes')"""


def test_requests_that_cost_more_are_for_everybody(pictures: Path | None) -> None:
    """Light and dark, desktop and phone: nothing that axe finds, nothing wider than the screen."""
    store = ArrayStore()
    end = release(store, STARTED)
    (row,) = store.rows(RowQuery("regressions", SERVICE))
    found: dict[str, list[str]] = {}

    async def look() -> None:
        sources = Sources(store, known_workloads([]), clock=lambda: end + 60.0, source_url=LINES)
        async with TestClient(TestServer(create_app(sources, Login()))) as client, chromium() as browser:
            page = str(client.make_url(f"/regressions/{row['id']}"))
            for size, screen in ((DESKTOP, "desktop"), (PHONE, "phone")):
                for dark in (False, True):
                    await browser.look(size, dark=dark)
                    await browser.open(page)
                    await browser.until(DRAWN)
                    where = f"requests-{screen}-{'dark' if dark else 'light'}"
                    assert str(await browser.run(LINK)).endswith("/orders/views.py#L41")
                    await browser.run("document.querySelector('.calls details').open = true")
                    if pictures:
                        await browser.screenshot(pictures / f"{where}.webp", most=TALL)
                    found[where] = await audit(browser)

    asyncio.run(look())
    assert {where: lines for where, lines in found.items() if lines} == {}
