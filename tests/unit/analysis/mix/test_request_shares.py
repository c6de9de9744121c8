"""Requests as a covariate: what their mix makes of series is known before it does, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.mix.request_shares import RequestMix, RequestTraffic, build_traffic, fit_request_mix
from pipeline.model import RequestPeriods
from tests.support.served import AT, DAY, END, HISTORY, WINDOW_S, Served, serve

LEAST = 0.00005


def traffic_of(served: Served, first: int = 0) -> RequestTraffic | None:
    return build_traffic(served.requests, served.matrix, slice(first, HISTORY))


def mix_of(served: Served, first: int = 0) -> RequestMix | None:
    traffic = traffic_of(served, first)
    return None if traffic is None else fit_request_mix(traffic, served.matrix, LEAST)


def chosen(requests: RequestPeriods, *, types: int = 8, until: int = END) -> RequestPeriods:
    arrays = {name: getattr(requests, name)[:types, :until] for name in ("requests", "timed", "log_times")}
    return replace(
        requests,
        releases=requests.releases[:types],
        types=requests.types[:types],
        starts=requests.starts[:until],
        **arrays,
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_a_campaign_makes_is_known_from_the_history(seed: int) -> None:
    served = serve(seed, gain=0.5)
    mix = mix_of(served)
    assert mix is not None
    assert len(mix.series) > 20
    rows = [served.matrix.series.index(key) for key in mix.series]
    strays = mix.factors[:, AT:].mean(axis=1) - served.moved[rows]
    assert np.sqrt(np.mean((strays / mix.errors) ** 2)) < 2
    # The subroutines of one type, of which the first has half as many requests again.
    alone = [number for number, row in enumerate(rows) if row % 24 == 0]
    np.testing.assert_allclose(strays[alone], 0.0, atol=0.1)
    assert mix.factors[alone, AT:].mean() > 1.3
    traffic = traffic_of(served)
    assert traffic is not None
    assert mix.mover(alone[0], traffic.rates, AT) == "GET /0"


def test_the_time_after_the_history_is_not_fitted_to() -> None:
    served = serve(1, gain=0.5)
    stepped = served.with_steps([0, 3], np.array([0.5, 0.5]), 1)
    one, other = mix_of(served), mix_of(stepped)
    assert one is not None
    assert other is not None
    assert one.series == other.series
    np.testing.assert_allclose(one.factors, other.factors)


def test_a_series_is_fitted_by_itself() -> None:
    served = serve(1, gain=0.5)
    matrix = served.matrix
    few = replace(matrix, kinds=matrix.kinds[:9], names=matrix.names[:9], samples=matrix.samples[:9])
    whole, part = mix_of(served), mix_of(replace(served, matrix=few))
    assert whole is not None
    assert part is not None
    assert part.series == whole.series[: len(part.series)]
    np.testing.assert_allclose(part.factors, whole.factors[: len(part.series)])


def test_a_series_that_follows_no_request_stays() -> None:
    served = serve(2, gain=0.5)
    rng = np.random.default_rng(5)
    # A share that keeps its level, whatever comes: with a cycle of its own, too.
    cycle = 1 + 0.2 * np.cos(2 * np.pi * np.arange(END) / DAY)
    samples = served.matrix.samples.copy()
    samples[::3] = rng.poisson(0.01 * cycle * served.matrix.totals, (len(samples[::3]), END))
    mix = mix_of(replace(served, matrix=replace(served.matrix, samples=samples)))
    assert mix is not None
    followed = {served.matrix.series.index(key) % 3 for key in mix.series}
    # Work that goes with no request does not fall with them, which is known of it: what it loses as others
    # come is less than a fifth of what a series of their own wins.
    rows = [row for row, key in enumerate(mix.series) if served.matrix.series.index(key) % 3 == 0]
    assert 1 in followed
    assert (np.abs(mix.factors[rows, AT:].mean(axis=1) - 1) < 0.1).all()


def test_what_is_less_than_a_scan_may_report_is_left() -> None:
    served = serve(3, gain=0.5)
    traffic = traffic_of(served)
    assert traffic is not None
    assert fit_request_mix(traffic, served.matrix, 0.05) is None


@pytest.mark.parametrize(
    ("requests", "first"),
    [
        pytest.param(lambda found: chosen(found, types=1), 0, id="a single type"),
        pytest.param(lambda found: chosen(found, types=0), 0, id="none"),
        pytest.param(lambda found: chosen(found, until=END - 2 * DAY), 0, id="too few windows with requests"),
        pytest.param(lambda found: replace(found, width_s=2 * WINDOW_S), 0, id="periods longer than windows"),
        pytest.param(lambda found: found, HISTORY - 2 * DAY, id="a short history"),
    ],
)
def test_requests_that_say_nothing(requests: Callable[[RequestPeriods], RequestPeriods], first: int) -> None:
    served = serve(1, gain=0.5, series=12)
    assert mix_of(replace(served, requests=requests(served.requests)), first) is None


def test_windows_without_requests_stay_as_they_are() -> None:
    served = serve(1, gain=0.5)
    hole = served.requests.requests.copy()
    hole[:, AT + 10 : AT + 20] = 0
    mix = mix_of(replace(served, requests=replace(served.requests, requests=hole)))
    assert mix is not None
    assert (mix.factors[:, AT + 10 : AT + 20] == 1).all()


@pytest.mark.parametrize("part", [0.5, 0.8, 1.5])
def test_windows_without_some_hosts_requests_stay_as_they_are(part: float) -> None:
    served = serve(1, gain=0.5)
    partly = served.requests.requests.copy()
    partly[:, END - 6 :] *= part
    mix = mix_of(replace(served, requests=replace(served.requests, requests=partly)))
    whole = mix_of(served)
    assert mix is not None
    assert whole is not None
    assert (mix.factors[:, END - 6 :] == 1).all()
    assert mix.series == whole.series
    np.testing.assert_allclose(mix.factors[:, : END - 6], whole.factors[:, : END - 6])


def test_more_samples_of_the_same_requests_say_nothing() -> None:
    served = serve(1, gain=0.5)
    times = np.where(np.arange(END) < AT - 2 * DAY, 1.0, 2.0)
    matrix = replace(
        served.matrix, samples=served.matrix.samples * times, totals=served.matrix.totals * times
    )
    assert mix_of(replace(served, matrix=matrix)) is None


def test_rare_types_are_one_and_releases_add_up() -> None:
    served = serve(1, gain=0.5, types=30, series=3)
    traffic = traffic_of(served)
    assert traffic is not None
    assert len(traffic.types) == 17
    assert traffic.types[-1] == ""
    halves = served.requests
    twice = replace(
        halves,
        releases=(*halves.releases, *(["v2"] * 30)),
        types=halves.types * 2,
        requests=np.concatenate([halves.requests / 2] * 2),
    )
    both = build_traffic(twice, served.matrix, slice(0, HISTORY))
    assert both is not None
    assert both.types == traffic.types
    np.testing.assert_allclose(both.rates, traffic.rates)
