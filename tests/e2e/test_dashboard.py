"""The dashboard as a person uses it: every page in Chromium, over the stages' results for two services."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.embedded.stack import EmbeddedStack
from pipeline.kafka import apply_topics, read_topic
from pipeline.messages.inputs import decode_feedback
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import Verdict, VerdictKind
from pipeline.processes import Child
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery, Store
from tests.e2e.worker_process import TOPICS
from tests.support.axe import audit
from tests.support.browser import CHROMIUM, DESKTOP, PHONE, Browser, chromium
from tests.support.judged_trials import judge_experiments
from tests.support.looked_into import SEARCH, SHOP, WEEKLY_FIELDS, look_into

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]

PICTURED = 1500
"""Most of a page that a picture shows, in pixels."""

TALL = {"regression": 2600}
"""Of pages with more to see: down to the flame graphs."""

DRAWN = """!document.querySelector('[aria-busy]')
    && [...document.querySelectorAll('.figure')].every((one) => one.dataset.drawn === 'yes')"""
CHOOSE = "((name) => document.querySelector(`.part select[name=${name}]`))"
CHOSEN_BY = f"((name) => {CHOOSE}(name).dispatchEvent(new Event('change', {{bubbles: true}})))"
SAMPLES = """[...document.querySelectorAll('.part h3.meta')]
    .map((one) => Number(one.innerText.match(/([\\d,]+) samples/)[1].replaceAll(',', '')))"""
CHOSEN = "document.getElementById('chosen').textContent"


@dataclass(frozen=True)
class Served:
    """A dashboard, and the broker to which it says verdicts."""

    url: str
    broker: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    workload = tmp_path_factory.mktemp("dashboard") / "weekly.yaml"
    workload.write_text(yaml.safe_dump(dict(WEEKLY_FIELDS)))
    with EmbeddedStack() as stack:
        asyncio.run(apply_topics(stack.broker, TOPICS))
        with closing(open_store(stack.store)) as store:
            for scenario in (SHOP, SEARCH):
                look_into(store, scenario, end=time.time())
            _judge(store)
            judge_experiments(store, time.time())
        command = [sys.executable, "-m", "pipeline", "dashboard", "--port", "0", "--no-idempotent-producer"]
        addresses = ["--broker", stack.broker, "--store", stack.store, "--workloads", str(workload)]
        child = Child([*command, *addresses, "--diff-url", "https://git.invalid/{service}/{change}"])
        try:
            url = child.first_line()
            assert url.startswith("http://127.0.0.1:"), child.last_words()
            yield Served(url, stack.broker)
        finally:
            assert child.stop() in (0, None)


def _judge(store: Store) -> None:
    """Call the largest regression right and the two smallest wrong, so that there is an ROC to draw."""
    rows = sorted(store.rows(RowQuery("regressions", None)), key=lambda row: -abs(row["delta"]))
    said: list[tuple[Any, VerdictKind]] = [(rows[0], "true"), *((row, "false") for row in rows[-2:])]
    verdicts = [
        verdict_to_row(Verdict(row["id"], row["service"], kind, time.time(), "ada")) for row, kind in said
    ]
    store.insert("verdicts", {name: [row[name] for row in verdicts] for name in verdicts[0]})


def test_a_person_finds_answers_and_looks_into_a_regression(served: Served) -> None:
    async def use() -> None:
        async with chromium() as browser:
            await browser.look(DESKTOP, dark=False)
            await browser.open(f"{served.url}/")
            rows = await browser.run("document.querySelectorAll('table.list tbody tr').length")
            assert rows >= 5
            await _answer_by_keys(browser)
            await _hear_of_others(browser)
            await _filter(browser)
            await _open_by_keys(browser)
            await _narrow_down_by_sender(browser, served.url)
            await _hold_senders_against_others(browser, served.url)
            await _drop_down_to_a_candidate(browser, served.url)
            assert browser.complaints == []
            _check_addresses(browser, served.url)

    asyncio.run(use())
    said = asyncio.run(_said(served.broker))
    assert sorted((one.verdict, one.author) for one in said) == [
        ("acknowledged", "local"),
        ("acknowledged", "local"),
        ("true", "local"),
    ]


async def _answer_by_keys(browser: Browser) -> None:
    for key in "jxjx":
        await browser.press(key)
    assert await browser.run(CHOSEN) == "2 chosen:"
    await browser.run("document.querySelector('#answers button[value=acknowledged]').click()")
    await browser.until("document.querySelectorAll('tbody .state-acknowledged').length === 2")


async def _hear_of_others(browser: Browser) -> None:
    """What somebody else says shows by itself, and takes neither choice nor focus away."""
    await browser.until("[...document.querySelectorAll('tbody .state-new')].length >= 3")
    await browser.press("j")
    await browser.press("x")
    await browser.run(
        """(() => { const rows = [...document.querySelectorAll('tbody tr:not(.at)')];
        const row = rows.find((one) => one.querySelector('.state-new')); window.other = row.dataset.href;
        return fetch(`/api/v1${window.other}/verdict`, { method: 'POST', body: '{"verdict": "true"}',
        headers: { 'X-Form-Token': document.body.dataset.formToken } }); })()"""
    )
    await browser.until("document.querySelector(`tr[data-href='${window.other}'] .state-true`)")
    assert await browser.run(CHOSEN) == "1 chosen:"
    assert await browser.run("document.querySelector('tr.at').contains(document.activeElement)")
    assert await browser.run("document.querySelectorAll('tbody input:checked').length") == 1


async def _filter(browser: Browser) -> None:
    await browser.run("document.querySelector('.chips .state-acknowledged').click()")
    await browser.until("location.search === '?state=acknowledged'")
    await browser.until("document.querySelectorAll('table.list tbody tr').length === 2")
    await browser.run("document.querySelector('th a[href*=size]').click()")
    await browser.until("document.querySelector('th[aria-sort=descending]')?.textContent === 'size'")


async def _open_by_keys(browser: Browser) -> None:
    first = await browser.run("document.querySelector('table.list tbody tr').dataset.href")
    await browser.press("j")
    await browser.press("Enter")
    await browser.until(f"location.pathname === '{first}'")
    await browser.until(DRAWN)
    week = await browser.run("document.querySelector('[data-span=week]').click(), true")
    assert week
    await browser.until("document.querySelector('[data-span=week]').ariaPressed === 'true'")
    await browser.until("document.getElementById('series').layout.xaxis.range[0] > ''")
    releases = "document.getElementById('series').data.some((one) => one.name === 'releases')"
    assert await browser.run(releases)
    assert await browser.run("document.querySelectorAll('.story tbody tr').length") >= 5
    assert await browser.run("document.querySelector('.lead a').href.startsWith('https://git.invalid/')")
    await browser.run(
        """(() => { const field = document.querySelector('[data-find]'); field.value = 'view';
        field.dispatchEvent(new Event('input', {bubbles: true})); })()"""
    )
    await browser.until(
        """[...document.querySelectorAll('.figure')].some((one) => one.data[0].type === 'icicle'
        && one.data[0].marker.line.width.includes(3))"""
    )


async def _narrow_down_by_sender(browser: Browser, url: str) -> None:
    """A host has samples before and after the change; a release that began with it has none before."""
    await browser.open(f"{url}/regressions?state=all&service=shop&sort=size")
    await browser.run("document.querySelector('table.list tbody a').click()")
    await browser.until(f"location.pathname.startsWith('/regressions/') && {DRAWN} && {CHOOSE}('host')")
    before = await browser.run(SAMPLES)
    await browser.run(f"{CHOOSE}('host').value = 'host-001', {CHOSEN_BY}('host')")
    await browser.until("new URLSearchParams(location.search).get('host') === 'host-001'")
    await browser.until(f"{DRAWN} && document.querySelectorAll('.part .figure').length === 2")
    assert all(0 < one < whole for one, whole in zip(await browser.run(SAMPLES), before, strict=True))
    assert await browser.run(f"{CHOOSE}('host').value") == "host-001"
    release = await browser.run(f"{CHOOSE}('release').options[{CHOOSE}('release').options.length - 1].value")
    await browser.run(f"{CHOOSE}('release').value = '{release}', {CHOSEN_BY}('release')")
    await browser.until(f"new URLSearchParams(location.search).get('release') === '{release}'")
    await browser.until(f"{DRAWN} && document.querySelector('.part .said')")
    assert "no samples" in await browser.run("document.querySelector('.part .said').innerText")
    # From where there is nothing the same form leads back.
    await browser.run(f"{CHOOSE}('release').value = '', {CHOSEN_BY}('release')")
    await browser.until("!new URLSearchParams(location.search).get('release')")
    await browser.until(f"{DRAWN} && document.querySelectorAll('.part .figure').length === 2")


async def _hold_senders_against_others(browser: Browser, url: str) -> None:
    """By another side, which nobody is on at first: the form is submitted again from there."""
    await browser.open(f"{url}/explorer?service=shop&span=1d&host=host-001&against=same&other_host=nobody")
    await browser.until(f"{DRAWN} && document.querySelector('.part .said')")
    assert "what it is held against" in await browser.run("document.querySelector('.part .said').innerText")
    await browser.run("document.querySelector('[name=other_host]').value = 'host-002'")
    await browser.run("document.querySelector('.filters button').click()")
    await browser.until("new URLSearchParams(location.search).get('other_host') === 'host-002'")
    await browser.until(f"{DRAWN} && document.querySelectorAll('.part .figure').length === 2")
    assert "host host-002" in await browser.run("document.querySelector('.part .note').innerText")
    await browser.open(f"{url}/settings?workload=weekly")
    await browser.run("document.querySelector('[name=other_threshold]').value = '0.9'")
    await browser.run("document.querySelector('.filters button').click()")
    await browser.until("new URLSearchParams(location.search).get('other_threshold') === '0.9'")
    await browser.until("document.readyState === 'complete' && document.querySelector('tr.differs')")


async def _drop_down_to_a_candidate(browser: Browser, url: str) -> None:
    await browser.open(f"{url}/services")
    await browser.run("document.querySelector('table.list tbody a').click()")
    await browser.until("location.pathname.startsWith('/services/') && document.querySelector('.funnel a')")
    await browser.run("document.querySelector('.funnel a').click()")
    await browser.until("location.search.includes('step=') && document.querySelector('.funnel .chosen')")
    await browser.run("document.querySelector('a[href*=\"/candidates/\"]').click()")
    await browser.until("location.pathname.includes('/candidates/')")
    await browser.until(DRAWN)
    assert await browser.run("document.querySelector('.mark.dropped') !== null")


async def _said(broker: str) -> list[Verdict]:
    found = []
    async for entry in read_topic(broker, TOPICS["feedback"], from_start=True, follow=False, timeout_s=10):
        said = decode_feedback(entry.value)
        assert isinstance(said, Verdict)
        found.append(said)
    return found


def test_every_page_is_for_everybody(served: Served, pictures: Path | None) -> None:
    """Light and dark, desktop and phone: nothing that axe finds, nothing wider than the screen."""
    found: dict[str, list[str]] = {}

    async def use() -> None:
        async with chromium() as browser:
            for name, path in (await _pages(browser, served.url)).items():
                for size, screen in ((DESKTOP, "desktop"), (PHONE, "phone")):
                    for dark in (False, True):
                        await browser.look(size, dark=dark)
                        await browser.open(served.url + path)
                        await browser.until(DRAWN)
                        where = f"{name}-{screen}-{'dark' if dark else 'light'}"
                        if pictures:
                            most = TALL.get(name, PICTURED)
                            await browser.screenshot(pictures / f"{where}.webp", most=most)
                        found[where] = await audit(browser)
            _check_addresses(browser, served.url)

    asyncio.run(use())
    assert {where: lines for where, lines in found.items() if lines} == {}


async def _pages(browser: Browser, url: str) -> dict[str, str]:
    """Return every page by its name: the largest regression, and one candidate that was dropped."""
    await browser.open(f"{url}/regressions?state=all&sort=size")
    one = await browser.run("document.querySelector('table.list tbody tr').dataset.href")
    await browser.open(f"{url}/services/shop")
    dropped = await browser.run("document.querySelector('a[href*=\"/candidates/\"]').getAttribute('href')")
    return {
        **{"regressions": "/regressions?state=all", "regression": one, "services": "/services"},
        **{"service": "/services/shop", "candidate": dropped, "operations": "/operations"},
        **{"explorer": "/explorer?service=shop&against=week", "alone": "/explorer?service=shop"},
        "missing": "/regressions/none",
        "settings": "/settings?workload=weekly&other_threshold=0.01",
        **{"trials": "/trials", "trial": "/trials/shop/pr-1", "models": "/trials/models"},
        "model": "/trials/models?service=shop&metric=cpu",
    }


def _check_addresses(browser: Browser, url: str) -> None:
    own = (f"{url}/", "data:", "about:", "blob:")
    assert [one for one in browser.requests if not one.startswith(own)] == []
