"""What a change may have to do with a type of request that costs more, by source and by stacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.rootcause.attribution import NO_PART
from pipeline.analysis.rootcause.request_evidence import (
    attribute_by_source,
    attribute_request,
    observed_calls,
    request_types,
    route_reached,
)
from pipeline.model import Change, CostlierRequests, Decision, RouteReach
from tests.support.builders import build_candidate

ROUTES = (
    RouteReach("GET /cart/{id}", share=0.2, nearness=0.5, rank=2, chance=0.05),
    RouteReach("GET /cart/new"),
    RouteReach("* /{rest...}"),
)
STACKS = [
    ("main", "serve", "endpoint=GET /cart/<int:id>", "app", "cart", "price"),
    ("main", "serve", "endpoint=GET /cart/<int:id>", "app", "cart", "metadata=x=1", "price", "tax"),
    ("main", "serve", "endpoint=GET /search", "app", "search", "price"),
    ("main", "serve", "endpoint=GET /about", "app", "about"),
    ("main", "idle"),
]


def change(name: str, *subroutines: str, routes: tuple[RouteReach, ...] = ()) -> Change:
    return Change(name, "shop", 0.0, "Change", files=("a.py",), subroutines=subroutines, routes=routes)


def dearer(share: float, *types: str, chances: tuple[float, ...] = ()) -> Decision:
    return CostlierRequests(types[0], "v2", "v1", share, 0.01, types[1:], chances).decision()


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        pytest.param([], {}, id="another candidate"),
        pytest.param([dearer(0.1, "a")], {"a": 1.0}, id="one type"),
        pytest.param([dearer(0.1, "a", "b")], {"a": 0.5, "b": 0.5}, id="one of two"),
        pytest.param([dearer(0.3, "a"), dearer(0.1, "b")], {"a": 0.75, "b": 0.25}, id="two, by their shares"),
        pytest.param(
            [dearer(0.1, "a", "b"), dearer(0.1, "b")], {"a": 0.25, "b": 0.75}, id="one that may be both"
        ),
        pytest.param(
            [dearer(0.1, "a", "b", chances=(0.8, 0.2))],
            {"a": 0.8, "b": 0.2},
            id="one likelier than the other",
        ),
        pytest.param(
            [dearer(0.1, "a", "b", chances=(0.6, 0.2))], {"a": 0.75, "b": 0.25}, id="unlikely types left out"
        ),
        pytest.param([dearer(0.1, "a", "b", chances=(1.0, 0.0))], {"a": 1.0, "b": 0.0}, id="one for sure"),
        pytest.param(
            [dearer(0.3, "a", "b", chances=(0.6, 0.4)), dearer(0.1, "b", chances=(0.9,))],
            {"a": 0.45, "b": 0.55},
            id="two, by their shares and probabilities",
        ),
        pytest.param(
            [dearer(0.1, "a", "b", chances=(0.9, 0.1)), dearer(0.1, "b", "c")],
            {"a": 0.45, "b": 0.3, "c": 0.25},
            id="of one not known",
        ),
        pytest.param(
            [dearer(0.0, "a", chances=(0.5,)), dearer(0.0, "b")], {"a": 0.5, "b": 0.5}, id="without shares"
        ),
        pytest.param([dearer(0.1, "a", "b", chances=(0.9,))], {"a": 0.5, "b": 0.5}, id="too few"),
        pytest.param([dearer(0.1, "a", "b", chances=(0.0, 0.0))], {"a": 0.5, "b": 0.5}, id="all 0"),
    ],
)
def test_types_have_the_probability_to_cost_more(passed: list[Decision], expected: dict[str, float]) -> None:
    assert request_types(replace(build_candidate(), passed=tuple(passed))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("type_", "route"),
    [
        ("GET /cart/:id", "GET /cart/{id}"),
        ("GET /cart/new", "GET /cart/new"),
        ("POST /cart/:id", "* /{rest...}"),
        ("(every request)", None),
        ("other", None),
    ],
)
def test_a_type_belongs_to_a_route_of_the_change(type_: str, route: str | None) -> None:
    found = route_reached(change("a", routes=ROUTES), type_)
    assert (found and found.route) == route


def test_a_change_that_says_nothing_of_routes_is_open() -> None:
    changes = [change("near", routes=ROUTES), change("open"), change("far", routes=ROUTES[1:])]
    near, unknown, far = attribute_by_source(changes, "GET /cart/:id")
    assert near is not None
    assert (near.counted, near.nearness, near.rank) == (0.2, 0.5, 2)
    assert unknown is None
    assert far == NO_PART
    assert attribute_by_source(changes, "other") == (None, None, None)


def test_stacks_show_what_an_endpoint_runs() -> None:
    calls = observed_calls(STACKS)
    reach = calls.reach("GET /cart/:id")
    assert reach is not None
    # What all endpoints run, as a framework does, is no call.
    assert reach.depths == {"app": 0, "cart": 0, "price": 1, "tax": 2}
    assert (reach.requests["app"], reach.requests["price"], reach.requests["tax"]) == (3, 2, 1)
    assert calls.reach("GET /nowhere") is None
    assert observed_calls([("main", "idle")]).reach("GET /cart/:id") is None


def test_stacks_and_source_count_by_what_shows_more() -> None:
    reach = observed_calls(STACKS).reach("GET /cart/:id")
    changes = [
        change("source", "helper", routes=ROUTES),
        change("stacks", "cart", routes=ROUTES[1:]),
        change("neither", "search", routes=ROUTES[1:]),
        replace(change("silent"), files=()),
    ]
    by_both = attribute_request(changes, "GET /cart/:id", reach)
    assert [part and part.chance < 1.0 for part in by_both] == [True, True, False, None]
    by_source = attribute_request(changes, "GET /cart/:id", None)
    assert [part and part.chance < 1.0 for part in by_source] == [True, False, False, None]
