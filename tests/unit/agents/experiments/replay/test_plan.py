"""What is replayed: guards, selection, proportions, times and headers."""

from __future__ import annotations

from collections import Counter

import pytest

from agents.experiments.replay.plan import (
    Choice,
    NamedRequest,
    Rewriting,
    at_rate,
    at_recorded_times,
    choose,
    name_endpoints,
    planned,
)
from agents.experiments.replay.recording import RecordedRequest
from pipeline.model.errors import ConfigError

REQUESTS = [
    RecordedRequest(100.0 + index, method, target)
    for index, (method, target) in enumerate(
        [
            ("GET", "/cart/1"),
            ("GET", "/cart/2?x=1"),
            ("GET", "/search?q=a"),
            ("POST", "/cart"),
            ("DELETE", "/cart/3"),
            ("HEAD", "/"),
        ]
    )
]
NAMED = name_endpoints(REQUESTS)


def endpoints(requests: list[NamedRequest]) -> list[str]:
    return [one.endpoint for one in requests]


def test_requests_are_named_by_endpoint() -> None:
    assert endpoints(NAMED) == [
        "GET /cart/:id",
        "GET /cart/:id",
        "GET /search",
        "POST /cart",
        "DELETE /cart/:id",
        "HEAD /",
    ]
    assert endpoints(name_endpoints(REQUESTS[:1], [("GET /cart/*", "carts")])) == ["carts"]


@pytest.mark.parametrize(
    ("choice", "numbers", "blocked"),
    [
        pytest.param(Choice(), [0, 1, 2, 5], 2, id="what may change something is blocked"),
        pytest.param(Choice(allowed=("POST /cart",)), [0, 1, 2, 3, 5], 1, id="unless it is allowed"),
        pytest.param(Choice(allowed=("/cart*",)), [0, 1, 2, 3, 4, 5], 0, id="by path"),
        pytest.param(Choice(endpoints=("GET /cart/:id", "/search")), [0, 1, 2], 0, id="selected"),
        pytest.param(Choice(endpoints=("/cart*",)), [0, 1], 2, id="selected and blocked"),
    ],
)
def test_requests_are_chosen_and_blocked_are_counted(
    choice: Choice, numbers: list[int], blocked: int
) -> None:
    chosen, counts = choose(NAMED, choice)
    assert [request.number for request in chosen] == numbers
    assert counts.total() == blocked
    if choice.endpoints == ("/cart*",):
        assert counts == {"POST /cart": 1, "DELETE /cart/:id": 1}


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (Choice(endpoints=("/nothing",)), "/nothing: matches no endpoint; there are"),
        (Choice(allowed=("PUT *",)), "matches no endpoint"),
        (Choice(endpoints=("POST /cart",)), "blocked unless --allow names their endpoint: POST /cart"),
    ],
)
def test_a_choice_of_nothing_is_refused(choice: Choice, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        choose(NAMED, choice)
    assert why in str(refused.value)


def test_a_mix_has_its_proportions_and_keeps_the_order_of_each_endpoint() -> None:
    found, _ = choose(NAMED * 200, Choice(mix=(("GET /cart/:id", 3.0), ("GET /search", 1.0))))
    counts = Counter(endpoints(found))
    assert len(found) == 800
    assert set(counts) == {"GET /cart/:id", "GET /search"}
    assert 500 < counts["GET /cart/:id"] < 700
    assert [one.number for one in found if one.endpoint == "GET /cart/:id"][:4] == [0, 1, 0, 1]


def test_a_fixed_rate_goes_through_a_recording_over_and_over() -> None:
    schedule = at_rate(NAMED[:3], rate=10.0, count=4, warm_up=1)
    assert [offset for offset, _, _ in schedule] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert [one.number for _, one, _ in schedule] == [0, 1, 2, 0, 1]
    assert [warm_up for _, _, warm_up in schedule] == [True, False, False, False, False]
    assert [one.number for _, one, _ in at_rate(NAMED[:3], 10.0, 2, 0, began=5)] == [2, 0]


def test_recorded_times_are_scaled() -> None:
    schedule = at_recorded_times(NAMED, speed=2.0, count=0, warm_up=0)
    assert [offset for offset, _, _ in schedule] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]


def test_headers_of_the_connection_are_left_out_and_others_put_over() -> None:
    recorded = (
        ("Host", "shop"),
        ("Content-Length", "3"),
        ("Accept", "a"),
        ("Connection", "close"),
        ("X-Shard", "7"),
    )
    (named,) = name_endpoints([RecordedRequest(1.0, "GET", "/", recorded)])
    rewriting = Rewriting((("x-shard", "1"), ("Accept", ""), ("Host", "b")))
    (request,) = planned([(0.0, named, False)], rewriting)
    assert request.headers == (("x-shard", "1"), ("Host", "b"))
