"""Flame graphs as a person and a program use them: by release, host, label and endpoint, in Chromium."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientSession

from agents.profiles.formats.collapsed import parse_collapsed
from pipeline.embedded.stack import EmbeddedStore
from pipeline.model import Record
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from pipeline.views.dashboard import Sources, create_app, serve
from tests.support.axe import audit
from tests.support.browser import CHROMIUM, DESKTOP, PHONE, Browser, chromium
from tests.support.builders import build_profile

pytestmark = pytest.mark.e2e

DRAWN = """!document.querySelector('[aria-busy]')
    && [...document.querySelectorAll('.figure')].every((one) => one.dataset.drawn === 'yes')"""

HOUR = 3600.0
NOW = time.time() // HOUR * HOUR
HOURS = 8

STACKS = {
    "main;serve;shop.cart.handle;shop.price.total;shop.price.tax": 0.16,
    "main;serve;shop.cart.handle;shop.price.total;shop.price.round": 0.08,
    "main;serve;shop.cart.handle;shop.stock.count": 0.2,
    "main;serve;shop.search.handle;shop.index.find": 0.3,
    "main;serve;shop.search.handle;shop.index.rank;shop.index.score": 0.2,
    "main;serve;json.dumps": 0.06,
}
ANNOTATIONS = [("shop.cart.handle", "endpoint", "/cart"), ("shop.search.handle", "endpoint", "/search")]
SLOWER = "main;serve;shop.cart.handle;shop.price.total;shop.price.tax"
HOSTS = {"web-1": "east", "web-2": "west", "web-3": "east", "web-4": "west"}


def count_shop(store: Store) -> None:
    """Four hosts of two regions for hours; in the last half the two of ``v2`` spend 4 % more in one frame."""
    stage = AggregateStage(
        store=store,
        clock=time.time,
        streams=one_stream("flames"),
        window_s=60.0,
        stack_window_s=300.0,
    )
    rng = np.random.default_rng(7)
    records: list[Record] = []
    for number, start in enumerate(np.arange(NOW - HOURS * HOUR, NOW, 120.0).tolist()):
        for host, region in HOSTS.items():
            new = host in ("web-3", "web-4") and start >= NOW - HOURS * HOUR / 2
            weights = np.array(
                [share + (0.04 if new and one == SLOWER else 0) for one, share in STACKS.items()]
            )
            counts = rng.multinomial(400, weights / weights.sum()).tolist()
            stacks = {one: count for one, count in zip(STACKS, counts, strict=True) if count}
            profile = build_profile(
                stacks, host=host, start=start, end=start + 60, annotations=ANNOTATIONS, id=f"{host}{number}"
            )
            sent = replace(profile, release="v2" if new else "v1", labels={"region": region})
            records.append(Record("profiles", 0, len(records), sent))
    for first in range(0, len(records), 200):
        stage.handle(records[first : first + 200])


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with EmbeddedStore() as embedded, closing(open_store(embedded.url)) as store:
        store.migrate()
        count_shop(store)
        names: dict[str, Any] = {"service": ["shop"], "time": [NOW - HOURS * HOUR]}
        store.insert("naming", {**names, "version": ["1"], "before": [0]})
        yield store


@asynccontextmanager
async def served(store: Store) -> Any:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    app = create_app(Sources(store, {}, clock=lambda: NOW))
    server = asyncio.create_task(serve(app, "127.0.0.1", 0, ready.set_result))
    try:
        yield await ready
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


def ask(store: Store, *queries: str) -> list[Any]:
    """Return what the API answers to queries of flame graphs."""

    async def fetch() -> list[Any]:
        found: list[Any] = []
        async with served(store) as url, ClientSession(url) as client:
            for query in queries:
                async with client.get(f"/api/v1/flames?service=shop&{query}") as answer:
                    json = answer.content_type == "application/json"
                    found.append(await answer.json() if json else await answer.text())
        return found

    return asyncio.run(fetch())


def shifts(answer: Any) -> dict[str, float]:
    """The differences beyond noise, in points."""
    return {
        one["subroutine"]: round(100 * (one["after"] - one["before"]), 1)
        for one in answer["shifts"]
        if not one["within_noise"]
    }


def test_a_release_is_held_against_another(store: Store) -> None:
    both = "span=4h&release=v2&against=same&other_release=v1"
    by_release, same, before = ask(store, both, "span=4h&against=before", "span=4h&release=v2&against=before")
    moved = shifts(by_release)
    assert moved["shop.price.tax"] == pytest.approx(100 * (0.2 / 1.04 - 0.16), abs=0.7)
    assert {"shop.price.round", "json.dumps"}.isdisjoint(moved)
    assert by_release["selection"]["samples"] == by_release["against"]["samples"] == 2 * 120 * 400
    assert shifts(same)["shop.price.tax"] == pytest.approx(moved["shop.price.tax"] / 2, abs=0.7)
    assert before["shifts"] == []
    assert before["lacking"] == (
        "There are no samples of what it is held against. Counts by sender are kept in windows of 1h."
    )


def test_a_host_is_held_against_all_others(store: Store) -> None:
    other, known, nobody = ask(
        store,
        "span=4h&host=web-1&against=same",
        "span=4h&label=region=east&release=!v2&against=same&other_host=web-3&other_release=*",
        "span=1h&host=nobody",
    )
    assert other["against"]["samples"] == 3 * other["selection"]["samples"] == 3 * 120 * 400
    (tax,) = [one for one in other["shifts"] if one["subroutine"] == "shop.price.tax"]
    assert tax["after"] - tax["before"] < -0.015
    assert other["dispersion"] > 2
    assert tax["within_noise"], "the others differ among themselves: two run v2"
    assert known["selection"]["samples"] == known["against"]["samples"] == 120 * 400
    assert nobody["lacking"].startswith("There are no samples of this selection.")


def test_stacks_are_text_that_other_tools_read(store: Store) -> None:
    alone, both = ask(
        store,
        "span=4h&release=v2&format=collapsed",
        "span=4h&release=v2&against=same&within=endpoint=/cart&format=collapsed",
    )
    read = parse_collapsed(alone.encode())
    assert read.samples == 2 * 120 * 400
    lines = both.splitlines()
    assert len(lines) == 3
    assert all("endpoint=/cart;shop.cart.handle" in line for line in lines)
    assert all(len(line.rsplit(" ", 2)) == 3 for line in lines)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_a_person_narrows_flame_graphs_down(store: Store, tmp_path: Path) -> None:
    found: dict[str, list[str]] = {}

    async def use(browser: Browser, url: str) -> None:
        await browser.look(DESKTOP, dark=False)
        await browser.open(f"{url}/explorer?service=shop&span=4h&by=release")
        await browser.until(DRAWN)
        await browser.run("document.querySelector('[aria-label=\"v2 against all others\"]').click()")
        await browser.until("new URLSearchParams(location.search).get('against') === 'same'")
        await browser.until(DRAWN)
        assert await browser.run("document.querySelector('td.up').closest('tr').innerText.includes('price')")
        assert await browser.run(
            "[...document.querySelectorAll('td.meta')].some((one) => one.innerText.includes('within noise'))"
        )
        colours = "[...document.querySelectorAll('.figure')].map((one) => one.data[0].marker.colors)"
        assert await browser.run(f"{colours}[0].filter((one) => one === 0).length") >= 3
        assert await browser.run(f"Math.max(...{colours}[0])") > 2
        await browser.run("document.querySelector('a[href*=\"within=endpoint%3D%2Fcart\"]').click()")
        await browser.until("new URLSearchParams(location.search).get('within') === 'endpoint=/cart'")
        await browser.until(DRAWN)
        assert await browser.run("new URLSearchParams(location.search).get('release')") == "v2"
        await browser.open(f"{url}/explorer?service=shop&release=v2&against=same&other_host=web-9")
        await browser.until(
            "[...document.querySelectorAll('.said')].some((one) => one.innerText.includes('what it is held'))"
        )
        assert browser.complaints == []

    async def look(browser: Browser, url: str) -> None:
        path = "/explorer?service=shop&span=4h&release=v2&against=same&by=host"
        for size, screen in ((DESKTOP, "desktop"), (PHONE, "phone")):
            for dark in (False, True):
                await browser.look(size, dark=dark)
                await browser.open(url + path)
                await browser.until(DRAWN)
                where = f"{screen}-{'dark' if dark else 'light'}"
                await browser.screenshot(tmp_path / f"flames-{where}.png", most=2000)
                found[where] = await audit(browser)

    asyncio.run(in_browser(store, use, look))
    assert {where: lines for where, lines in found.items() if lines} == {}


async def in_browser(store: Store, *steps: Callable[[Browser, str], Awaitable[None]]) -> None:
    async with served(store) as url, chromium() as browser:
        for step in steps:
            await step(browser, url)
