from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import Verdict
from pipeline.model.errors import ConfigError
from pipeline.views.dashboard.item import STATES, Item
from pipeline.views.dashboard.query import SORTS, Query, matching, page_of, read_query

NOW = 1_699_920_000.0
DAY_S = 86_400.0

BASE = Item(
    id="a",
    service="shop",
    workload="weekly",
    metric="shop.cart.price",
    metric_kind="subroutine",
    change_time=NOW - DAY_S,
    detected_time=NOW - DAY_S,
    before=0.01,
    after=0.02,
    delta=0.01,
    p_value=0.001,
    relative=1.0,
    waste_servers=4.0,
    suspect="Rules may be nested",
    suspect_id="8f2c11d0",
    author="ada",
)
ITEMS = (
    BASE,
    replace(
        BASE, id="b", service="search", metric="search.find", delta=0.002, author="bob", waste_servers=None
    ),
    replace(BASE, id="c", detected_time=NOW - 9 * DAY_S, delta=0.05, relative=None, releases=("v7",)),
    replace(BASE, id="d", verdict=Verdict("d", "shop", "false", NOW)),
    replace(BASE, id="e", resolved_time=NOW),
    replace(
        BASE,
        id="f",
        metric="latency",
        metric_kind="service",
        delta=12.0,
        verdict=Verdict("f", "shop", "acknowledged", NOW),
    ),
)


def found(**given: str) -> str:
    query = read_query(given)
    return "".join(item.id for item in matching(ITEMS, query, now=NOW))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "abfc"),
        ({"state": "new"}, "abc"),
        ({"state": "false"}, "d"),
        ({"state": "resolved"}, "e"),
        ({"state": "all", "service": "search"}, "b"),
        ({"search": "RULES cart"}, "ac"),
        ({"search": "nothing such"}, ""),
        ({"owner": "bob"}, "b"),
        ({"release": "v7"}, "c"),
        ({"release": "8f2c11d0", "service": "search"}, "b"),
        ({"min_size": "0.5"}, "ac"),
        ({"age": "2d"}, "abf"),
        ({"sort": "size"}, "cabf"),
        ({"sort": "-size"}, "fbac"),
        ({"sort": "relative"}, "cabf"),
        ({"sort": "metric"}, "fbac"),
        ({"sort": "waste", "state": "new"}, "acb"),
        ({"workload": "other"}, ""),
    ],
)
def test_a_list_shows_what_its_address_asks_for(given: dict[str, str], expected: str) -> None:
    assert found(**given) == expected


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"state": "odd"}, "state: should be one of open, all, new"),
        ({"sort": "colour"}, "sort: should be one of detected"),
        ({"page": "0"}, "page: should be a number from 1"),
        ({"page": "two"}, "page: should be a number from 1, not 'two'"),
        ({"per": "501"}, "per: should be a number from 1 to 500"),
        ({"min_size": "large"}, "min_size: should be points"),
        ({"age": "long"}, "age: "),
        ({"colour": "red"}, "colour: no such filter"),
    ],
)
def test_a_wrong_filter_is_named(given: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_query(given)
    assert str(error.value).startswith(named)


@given(
    st.builds(
        Query,
        state=st.sampled_from(["open", "all", *STATES]),
        service=st.text(max_size=9),
        search=st.text(max_size=9),
        min_size=st.floats(0, 100),
        sort=st.sampled_from([sign + name for name in SORTS for sign in ("", "-")]),
        page=st.integers(1, 99),
    )
)
def test_an_address_says_all_of_a_query(query: Query) -> None:
    address = query.url("/regressions")
    assert read_query(dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))) == query


def test_pages_hold_everything_once() -> None:
    query = replace(Query(), per=2)
    pages = [page_of(ITEMS, replace(query, page=number)) for number in (1, 2, 3)]
    assert [item.id for page in pages for item in page.items] == [item.id for item in ITEMS]
    assert [page.first for page in pages] == [1, 3, 5]
    assert page_of(ITEMS, replace(query, page=99)) == pages[-1]
    assert page_of((), query).first == 0


def test_a_click_on_a_column_sorts_by_it_and_a_second_one_turns_it_round() -> None:
    query = Query()
    assert (query.direction("detected"), query.direction("size")) == ("descending", "none")
    once = replace(query, sort=query.sorted_by("metric"))
    assert once.direction("metric") == "ascending"
    assert replace(once, sort=once.sorted_by("metric")).direction("metric") == "descending"
