"""What looks at the next release will see, by the load and the noise of this one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadgen.requests.outlook import foreseen_rise, is_found
from pipeline.model import FloatArray, MetricKind, RequestPeriods, SeriesMatrix
from pipeline.releases.requests import (
    LookConfig,
    NotCompared,
    ReleaseRun,
    RequestOutlook,
    TypeOutlook,
    build_run,
    find_run,
    foresee,
)

WIDTH = 30.0
COSTS = np.array([0.004, 0.002, 0.0])
TYPES = ("GET /a", "GET /b", "GET /c")


def run_of(periods: int, seed: int = 0) -> ReleaseRun:
    rng = np.random.default_rng(seed)
    busy = np.exp(0.3 * rng.standard_normal((periods, 3)))
    counts = rng.poisson(busy * [100, 150, 200]).astype(np.float64)
    return ReleaseRun("v1", WIDTH, np.asarray(WIDTH * np.arange(periods), np.float64), TYPES, counts)


def metrics(run: ReleaseRun, noise: float = 0.02, **more: FloatArray) -> SeriesMatrix:
    rng = np.random.default_rng(1)
    cpu = (0.1 + run.counts @ COSTS) * (1.0 + noise * rng.standard_normal(len(run.starts)))
    values = {"cpu": cpu, **more}
    samples = np.array([*values.values()])
    kinds: list[MetricKind] = ["service" for _ in values]
    return SeriesMatrix(0.0, WIDTH, (*kinds,), (*values,), samples, np.ones(len(run.starts)))


def outlook(run: ReleaseRun, noise: float = 0.02) -> RequestOutlook:
    found = foresee(run, metrics(run, noise), LookConfig())["cpu"]
    assert isinstance(found, RequestOutlook)
    return found


def test_types_have_costs_and_shares() -> None:
    found = outlook(run_of(600))
    heavy, light, free = found.types
    assert [one.type for one in (heavy, light)] == ["GET /a", "GET /b"]
    assert heavy.cost == pytest.approx(0.004, rel=0.05)
    assert heavy.share == pytest.approx(0.4 / 0.8, rel=0.1)
    assert free.share == pytest.approx(0.0, abs=0.05)
    assert found.periods == 600
    assert found.r_squared > 0.9


def test_rises_and_periods_are_each_others_inverse() -> None:
    found = outlook(run_of(600))
    heavy = found.types[0]
    for periods in (30, 120, 480):
        rise = found.rise_after(heavy, periods)
        assert rise is not None
        assert found.periods_for(heavy, rise * 1.0001) in (periods - 1, periods)
        assert found.rise_after(heavy, periods, beside=0.5) == pytest.approx(2.0 * rise)
    # What the periods of this release leave unknown, none of the next one shows.
    least = found.rise_after(heavy, 10**9)
    assert least is not None
    assert found.periods_for(heavy, 0.99 * least) is None


def test_half_the_noise_shows_half_the_rise() -> None:
    run = run_of(600)
    coarse, fine = outlook(run, 0.02), outlook(run, 0.01)
    rises = [found.rise_after(found.types[0], 60) or math.nan for found in (coarse, fine)]
    assert rises[0] / rises[1] == pytest.approx(2.0, rel=0.1)


COSTLY = TypeOutlook("GET /a", cost=1.0, share=0.2, error=1.0)


@pytest.mark.parametrize(
    ("one", "rise", "periods", "look", "small"),
    [
        pytest.param(COSTLY, 0.8, 41, 60, False, id="between two looks"),
        pytest.param(COSTLY, 2.0, 20, 30, False, id="by the first look"),
        pytest.param(COSTLY, 0.27, 522, None, False, id="after the last look"),
        pytest.param(COSTLY, 0.01, None, None, True, id="never"),
        pytest.param(TypeOutlook("a", 1.0, 0.001, 1.0), 0.8, 41, None, True, id="too small to be an event"),
        pytest.param(TypeOutlook("a", -1.0, 0.2, 1.0), 0.8, None, None, False, id="costs nothing"),
        pytest.param(TypeOutlook("a", 1.0, 0.2, math.nan), 0.8, None, None, False, id="not kept apart"),
    ],
)
def test_after_how_many_periods_a_look_reports(
    one: TypeOutlook, rise: float, periods: int | None, look: int | None, small: bool
) -> None:
    found = RequestOutlook((one,), periods=1000, bound=5.0, least_share=0.005, r_squared=0.9)
    assert found.periods_for(one, rise) == periods
    assert found.look_for(one, rise) == look
    assert found.is_small(one, rise) == small


@pytest.mark.slow
def test_what_is_foreseen_is_what_looks_find() -> None:
    """90 of 100 are foreseen; half of the rise is found far less often."""
    found, half = 0, 0
    for seed in range(10):
        foreseen = foreseen_rise("plain", 120, (7, seed))
        assert foreseen is not None
        found += is_found("plain", 120, (7, seed), foreseen[0] * foreseen[1])
        half += is_found("plain", 120, (7, seed), 0.5 * foreseen[0] * foreseen[1])
    assert found >= 7
    assert half < found


@pytest.mark.parametrize(
    ("periods", "values", "code"),
    [(12, None, "few_periods"), (600, np.ones(600), "constant"), (600, np.full(600, np.nan), "few_periods")],
)
def test_what_cannot_be_foreseen(periods: int, values: FloatArray | None, code: str) -> None:
    run = run_of(periods)
    given = metrics(run) if values is None else metrics(run, cpu=values)
    found = foresee(run, given, LookConfig())["cpu"]
    assert isinstance(found, NotCompared)
    assert found.code == code


def test_night_is_not_held_against_day() -> None:
    run = run_of(800)
    day = np.where(np.arange(800) < 400, 1.0, 30.0)[:, None]
    assert outlook(ReleaseRun("v1", WIDTH, run.starts, TYPES, run.counts * day)).periods > 700


def untimed(
    releases: tuple[str, ...], types: tuple[str, ...], starts: FloatArray, requests: FloatArray
) -> RequestPeriods:
    nothing = np.zeros_like(requests)
    return RequestPeriods(releases, types, starts, WIDTH, requests, nothing, nothing)


def test_the_release_that_runs_is_the_one_with_most_requests_last() -> None:
    starts = np.asarray(WIDTH * np.arange(100), np.float64)
    old = np.where(np.arange(100) < 40, 10.0, 0.0)
    new = np.where(np.arange(100) >= 30, 20.0, 0.0)
    found = find_run(untimed(("v1", "v2"), ("", ""), starts, np.array([old, new])))
    assert found is not None
    release, alone = found
    assert (release, alone.tolist()) == ("v2", starts[40:].tolist())
    own = untimed(("v2", "v2"), ("a", "b"), starts[30:], np.array([new, 2 * new])[:, 30:])
    run = build_run(release, alone, own)
    assert (run.types, run.starts.tolist()) == (("a", "b"), starts[40:].tolist())
    assert run.counts.tolist() == [[20.0, 40.0]] * 60
    assert find_run(untimed((), (), np.empty(0), np.empty((0, 0)))) is None
