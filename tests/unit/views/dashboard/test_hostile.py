"""What somebody sends who means harm, or mistypes: answered by one line, and never by a traceback."""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import suppress
from html import unescape
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from aiohttp.test_utils import TestClient, TestServer
from multidict import CIMultiDict
from yarl import URL

from pipeline.messages.measurements import decode_profile, encode_profile
from pipeline.model import Change
from pipeline.model.errors import InvalidMessage, StoreUnavailable
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard import Login, Sources, app, create_app
from pipeline.views.dashboard.access import Forms, Person
from pipeline.views.dashboard.board import Board
from pipeline.views.dashboard.query import MOST_A_PAGE
from pipeline.views.dashboard.site import SITE, Site
from pipeline.views.dashboard.words import breakable, urlencode
from tests.support.builders import build_profile
from tests.support.open_faults import open_fault
from tests.unit.views.dashboard.conftest import PROXIED, Client, Serve, listed
from tests.unit.views.dashboard.test_app import form_token

NOW = 1_770_000_000.0
NUMBERS = (
    *("nan", "inf", "-inf", "-1", "0", "1e400", "9" * 5000, "0x10", "1e-300", "\0"),
    "\N{SUPERSCRIPT TWO}",  # a digit, and no number
)
TIMES = (
    *("0001-01-01", "9999-12-31", "1969-12-31", "2262-04-12", "2026-02-30", "2026-01-01\0"),
    *("nan", "9" * 400),
)
NAMES = ("..", "a/b", "%2e%2e", "<script>alert(1)</script>", "'\"><svg/onload=x>", "\0", "\ud7ff" * 300)

FIELDS = {
    "/regressions?page={}&state=all": NUMBERS,
    "/regressions?per={}": NUMBERS,
    "/regressions?min_size={}": NUMBERS,
    "/regressions?min_servers={}": NUMBERS,
    "/regressions?age={}": (*NUMBERS, "9" * 300 + "d"),
    "/regressions?search={}": NAMES,
    "/regressions?service={}&release={}": NAMES,
    "/regressions/{}": NAMES,
    "/regressions/ID?release={}&host={}&label={}&within={}": NAMES,
    "/regressions/ID/series.json?start={}": TIMES,
    "/regressions/ID/series.json?end={}": TIMES,
    "/regressions/ID/series.json?start=0001-01-01&end={}": TIMES,
    "/regressions/ID/series.json?span={}": NAMES,
    "/regressions/ID/flames?label={}": NAMES,
    "/services/{}": NAMES,
    "/services/search?day={}": TIMES,
    "/services/search?step={}": NAMES,
    "/services/search/detectable?workload={}": NAMES,
    "/services/{}/candidates/{}": NAMES,
    "/services/{}/candidates/{}/series.json": NAMES,
    "/explorer?end={}": TIMES,
    "/explorer?start={}": TIMES,
    "/explorer/flames?service=search&end={}": TIMES,
    "/explorer/flames?service=search&start={}": TIMES,
    "/explorer/flames?service={}": NAMES,
    "/explorer/flames?service=search&by={}&within={}&host={}": NAMES,
    "/explorer/flames?service=search&span={}": NUMBERS,
    "/settings?workload=weekly&threshold={}": NUMBERS,
    "/settings?workload={}": NAMES,
    "/settings/compared?workload=weekly&other_chance={}": NUMBERS,
    "/settings/compared?workload={}": NAMES,
    "/operations/throughput.json?span={}": NAMES,
    "/badges/{}.svg": NAMES,
    "/static/{}": NAMES,
    "/api/v1/events?limit={}": NUMBERS,
    "/api/v1/events?since={}": TIMES,
    "/api/v1/series?service=search&name=x&resolution={}": NUMBERS,
    "/api/v1/series?service=search&name=x&start={}": TIMES,
    "/api/v1/series?service=search&name=x&end={}": TIMES,
    "/api/v1/flames?service=search&start=0001-01-01&end={}": TIMES,
    "/api/v1/silences?service={}": NAMES,
}


@pytest.mark.parametrize("address", FIELDS)
async def test_an_absurd_address_is_answered_in_one_line(serve: Serve, address: str) -> None:
    async with serve(Login()) as client:
        one = (await listed(client, {}))[0]["id"]
        for value in FIELDS[address]:
            path = address.replace("ID", one).replace("{}", quote(value, safe=""))
            answer = await client.get(path, headers={"Accept": "text/html"}, allow_redirects=False)
            assert answer.status < 500, (path, answer.status)
            text = await answer.text()
            assert "<script>alert" not in text, path
            assert "<svg/onload" not in text, path
            assert "Traceback" not in text, path


SILENCE = {"kind": "muted", "service": "search", "end": "2h"}


@pytest.mark.parametrize(
    "changed",
    [
        *({"end": value} for value in ("9999-12-31", "9" * 300 + "d", "nan", "1e300", "0001-01-01")),
        *({"start": value} for value in ("9999-12-31", "9" * 300 + "d", "0001-01-01", "1e18")),
        {"service": ""},
        {"reason": "x" * 100_000},
        {"cost": "nan"},
    ],
    ids=str,
)
async def test_an_absurd_silence_is_refused(serve: Serve, changed: dict[str, str]) -> None:
    async with serve(Login()) as client:
        given = {**SILENCE, **changed}
        answer = await client.post("/api/v1/silences", json=given, headers=await form(client))
        assert answer.status == 400, await answer.text()


async def form(client: Client) -> dict[str, str]:
    return {"X-Form-Token": await form_token(client)}


async def test_one_answer_is_of_one_page_at_most(serve: Serve, said: list[Any]) -> None:
    async with serve(Login()) as client:
        one = (await listed(client, {}))[0]["id"]
        token = (await form(client))["X-Form-Token"]
        given = [("verdict", "true"), ("form_token", token)]
        twice = [("id", one), ("id", one), *given]
        assert (await client.post("/regressions", data=twice, allow_redirects=False)).status == 303
        assert len(said) == 1
        many = [("id", f"{number:08x}") for number in range(MOST_A_PAGE + 1)]
        assert (await client.post("/regressions", data=[*many, *given])).status == 400


NAME = "std::get<T&, 1+2>"


async def test_a_name_with_signs_of_addresses_stays_one(serve: Serve) -> None:
    """Templates of C++ hold & and spaces: a part of the page is asked for with the address as it came."""
    async with serve(Login()) as client:
        one = (await listed(client, {}))[0]["id"]
        for path in ("/explorer", f"/regressions/{one}"):
            page = await (await client.get(path, params={"within": NAME, "service": "search"})).text()
            (part,) = re.findall(rf'data-part="{path}/flames\?([^"]*)"', page)
            assert parse_qs(unescape(part)) == {"within": [NAME], "service": ["search"]}


@pytest.mark.parametrize(("given", "status"), [(["ada"], 200), (["ada", "eve"], 401), ([], 401)])
async def test_a_header_that_is_there_twice_names_nobody(serve: Serve, given: list[str], status: int) -> None:
    async with serve(PROXIED) as client:
        headers = CIMultiDict(("X-User", name) for name in given)
        assert (await client.get("/regressions", headers=headers)).status == status


def test_dashboards_with_one_secret_take_one_anothers_forms() -> None:
    ada, bob = Person("ada", may_answer=True), Person("bob", may_answer=True)
    one, other, stranger = Forms("shared"), Forms("shared"), Forms()
    assert other.accepts(ada, one.token(ada))
    assert not other.accepts(bob, one.token(ada))
    assert not stranger.accepts(ada, one.token(ada))
    assert not one.accepts(ada, "\N{SNOWMAN}")


async def test_a_service_with_a_slash_has_a_page_and_no_name_leads_elsewhere() -> None:
    assert urlencode("team/shop") == "team%2Fshop"
    assert urlencode("../x?a=b#c") == "..%2Fx%3Fa%3Db%23c"
    store = ArrayStore()
    store.insert("naming", {"service": ["team/shop"], "time": [NOW], "version": ["1"], "before": [0]})
    sources = Sources(store, clock=lambda: NOW + 60)
    async with TestClient(TestServer(create_app(sources))) as client:
        page = await (await client.get("/services")).text()
        (link,) = set(re.findall(r'href="(/services/[^"]+)"', page))
        assert (await client.get(URL(link, encoded=True))).status == 200


@pytest.mark.parametrize(
    ("change", "service", "where"),
    [
        ("8f2c", "shop", "https://git.invalid/shop/commit/8f2c"),
        ("a?b=c#d", "{change}", "https://git.invalid/%7Bchange%7D/commit/a%3Fb%3Dc%23d"),
        ('"><script>', "team/shop", "https://git.invalid/team/shop/commit/%22%3E%3Cscript%3E"),
    ],
)
def test_an_address_of_a_diff_is_what_the_operator_says(change: str, service: str, where: str) -> None:
    async def use() -> str:
        sources = Sources(ArrayStore(), diff_url="https://git.invalid/{service}/commit/{change}")
        site = Site(sources, Login())
        site.close()
        return site.diff_url(Change(id=change, service=service, time=0.0, title=""))

    assert asyncio.run(use()) == where


class Counting(ArrayStore):
    """A store that counts how often it is asked, and does not answer while ``down``."""

    asked, down = 0, False

    def rows(self, query: RowQuery) -> list[dict[str, Any]]:
        self.asked += query.end == 1.0
        if self.down:
            raise StoreUnavailable("no store")
        return super().rows(query)


async def test_whoever_asks_often_whether_it_is_ready_asks_the_store_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Counting()
    async with TestClient(TestServer(create_app(Sources(store)))) as client:
        answers = await asyncio.gather(*(client.get("/ready") for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        assert store.asked == 1
        monkeypatch.setattr(app, "READY_S", 0.0)
        store.down = True
        assert (await client.get("/ready")).status == 503
        store.down = False
        assert (await client.get("/ready")).status == 200


async def test_an_error_in_the_refresh_is_shown_and_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refresh(board: Board) -> None:
        rounds.append(board)
        if len(rounds) in {2, 3}:  # the first is that of the start
            raise ValueError("f(a) and f(b) must have different signs")
        held.wait(60)

    rounds: list[Board] = []
    held = threading.Event()
    held.set()
    monkeypatch.setattr(Board, "refresh", refresh)
    application = create_app(Sources(ArrayStore()), refresh_s=0.01)
    async with TestClient(TestServer(application)) as client:
        held.clear()
        while len(rounds) < 4:
            await asyncio.sleep(0.01)
        answer = await client.get("/ready")
        assert answer.status == 503
        problem = "refresh: ValueError: f(a) and f(b) must have different signs (2 times in a row)"
        assert (await answer.json())["checks"] == {"store": "ok", "background tasks": problem}
        assert problem in unescape(await (await client.get("/regressions")).text())
        metrics = await (await client.get("/metrics")).text()
        assert 'smidgen_task_failures_total{task="refresh"} 2.0' in metrics
        held.set()
        while application[SITE].tasks.problem():
            await asyncio.sleep(0.01)
        assert (await client.get("/ready")).status == 200
        assert "out of date" not in await (await client.get("/regressions")).text()


@open_fault("44.15", "direction overrides and invisible characters of names stand on pages as they are")
@pytest.mark.parametrize("character", ["\n", "\x1b", "\u202e", "\u200b"], ids=ascii)
def test_a_name_with_invisible_characters_is_refused_or_shows_them(character: str) -> None:
    shown = ""
    with suppress(InvalidMessage):
        profile = decode_profile(encode_profile(build_profile({f"pay{character}yap.exe": 1})))
        shown = breakable(profile.frames[0])
    assert character not in shown
