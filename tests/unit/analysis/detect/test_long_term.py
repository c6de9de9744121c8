from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.long_term import find_long_term
from pipeline.analysis.detect.ramp import best_split, find_rise
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.model import Candidate, Direction, FloatArray, MetricKind, SeriesMatrix

START = 1_700_000_000.0
HOUR_S, DAY_S = 3600.0, 86_400.0
SMALL = (600.0, WindowIndexes(1440, 1464, 1500))  # frontfaas-small
ADSERVING = (3600.0, WindowIndexes(16 * 24, 25 * 24, 25 * 24))  # adserving-long
SUPPLY = (3600.0, WindowIndexes(10 * 24, 17 * 24, 18 * 24))  # ct-supply-long
GEOMETRIES = [
    pytest.param(SMALL, id="frontfaas-small"),
    pytest.param(ADSERVING, id="adserving-long"),
    pytest.param(SUPPLY, id="ct-supply-long"),
]
Geometry = tuple[float, WindowIndexes]


def days_of(geometry: Geometry) -> FloatArray:
    """Days before the end, of each window."""
    resolution_s, windows = geometry
    return np.asarray((np.arange(windows.end) - windows.end) * resolution_s / DAY_S, dtype=np.float64)


def ramp(geometry: Geometry, begin: float, length: float) -> FloatArray:
    """Rise by 1 within so many days, from ``begin`` days before the end on."""
    return np.clip((days_of(geometry) + begin) / length, 0.0, 1.0)


def noise(geometry: Geometry, seed: int, rows: int = 20) -> FloatArray:
    """White noise, such that a day's mean has a standard deviation of 0.01."""
    resolution_s, windows = geometry
    return np.random.default_rng(seed).normal(0.0, 0.01 * np.sqrt(DAY_S / resolution_s), (rows, windows.end))


def build_kinds(values: FloatArray) -> tuple[MetricKind, ...]:
    return tuple("service" for _ in values)


def find(
    geometry: Geometry,
    values: FloatArray,
    *,
    direction: Direction = "up",
    absolute: float | None = 0.1,
    relative: float | None = None,
) -> tuple[Candidate, ...]:
    resolution_s, windows = geometry
    names = tuple(str(row) for row in range(len(values)))
    matrix = SeriesMatrix(START, resolution_s, build_kinds(values), names, values, np.ones(values.shape[1]))
    return find_long_term(matrix, windows, direction=direction, absolute=absolute, relative=relative)


def days_before_end(geometry: Geometry, candidate: Candidate) -> float:
    resolution_s, windows = geometry
    return (START + windows.end * resolution_s - candidate.change_time) / DAY_S


@pytest.mark.parametrize("geometry", GEOMETRIES)
class TestGeometries:
    @pytest.mark.parametrize(
        ("begin", "length"),
        [
            pytest.param(3.0, 2.0, id="two days"),
            pytest.param(5.0, 4.0, id="four days"),
            pytest.param(6.0, 6.0, id="six days, just done"),
            pytest.param(4.0, 6.0, id="six days, not done yet"),
        ],
    )
    def test_a_gradual_rise_is_found_where_it_begins(
        self, geometry: Geometry, begin: float, length: float
    ) -> None:
        values = 5.0 + noise(geometry, 1, 4) + ramp(geometry, begin, length)
        found = find(geometry, values)
        assert len(found) == 4
        for candidate in found:
            assert candidate.kind == "long_term"
            assert candidate.p_value < 1e-4
            assert 0.1 <= candidate.delta <= 1.05
            assert days_before_end(geometry, candidate) == pytest.approx(begin, abs=0.6)

    def test_a_step_is_found_where_it_is(self, geometry: Geometry) -> None:
        values = 5.0 + noise(geometry, 2, 4) + np.where(days_of(geometry) >= -2.1, 1.0, 0.0)
        found = find(geometry, values)
        assert len(found) == 4
        for candidate in found:
            assert days_before_end(geometry, candidate) == pytest.approx(2.1, abs=0.2)
            assert candidate.before == pytest.approx(5.0, abs=0.15)
            assert candidate.after == pytest.approx(6.0, abs=0.25)

    @pytest.mark.parametrize("absolute", [pytest.param(None, id="no threshold"), pytest.param(0.1, id="0.1")])
    def test_noise_and_seasons_have_none(self, geometry: Geometry, absolute: float | None) -> None:
        days = days_of(geometry)
        plain = noise(geometry, 3)
        for values in (
            plain,
            plain + np.sin(2 * np.pi * days),
            plain + np.where((days - 1.0) % 7 < 2, 0.5, 0.0),  # the last day is a weekend's
            plain + np.where((days + 0.2) % 1 < 0.3, 0.5, 0.0),
        ):
            assert len(find(geometry, values, absolute=absolute)) <= 1

    def test_a_transient_is_not_a_trend(self, geometry: Geometry) -> None:
        days = days_of(geometry)
        for hours in (2, 8):
            for end in (0.0, 0.1, 1.0):
                away = np.where((days >= -end - hours / 24) & (days < -end), 2.0, 0.0)
                assert find(geometry, noise(geometry, 4, 5) + away) == ()

    def test_a_fall_is_not_a_rise(self, geometry: Geometry) -> None:
        assert find(geometry, 5.0 + noise(geometry, 5, 4) - ramp(geometry, 4.0, 2.0)) == ()

    def test_a_fall_is_found_where_it_is_worse(self, geometry: Geometry) -> None:
        values = 5.0 + noise(geometry, 6, 4) + ramp(geometry, 4.0, 3.0)
        up, down = find(geometry, values), find(geometry, -values, direction="down")
        assert [(c.change_time, -c.before, -c.after) for c in down] == [
            (c.change_time, c.before, c.after) for c in up
        ]
        assert len(down) == 4

    def test_what_rose_long_ago_is_no_news(self, geometry: Geometry) -> None:
        begin = -days_of(geometry)[0] - 1.5
        assert find(geometry, noise(geometry, 7, 4) + ramp(geometry, begin, 1.0)) == ()

    def test_a_season_does_not_hide_a_rise(self, geometry: Geometry) -> None:
        values = (
            noise(geometry, 8, 3) + ramp(geometry, 5.0, 4.0) + 0.5 * np.sin(2 * np.pi * days_of(geometry))
        )
        assert len(find(geometry, values)) == 3

    def test_gaps_are_no_zeros(self, geometry: Geometry) -> None:
        values = 5.0 + noise(geometry, 9, 3)
        values[:, ::7] = np.nan
        values[:, 200:230] = np.nan
        values[:, -3:] = np.nan
        assert find(geometry, values, absolute=None) == ()
        assert len(find(geometry, values + ramp(geometry, 5.0, 4.0))) == 3


@pytest.mark.parametrize(
    ("absolute", "relative", "found"),
    [
        pytest.param(0.4, None, True, id="above the absolute threshold"),
        pytest.param(0.6, None, False, id="below it"),
        pytest.param(None, 0.05, True, id="above the relative threshold"),
        pytest.param(None, 0.15, False, id="below that"),
    ],
)
def test_thresholds(absolute: float | None, relative: float | None, found: bool) -> None:
    values = 5.0 + noise(ADSERVING, 10, 2) + 0.5 * ramp(ADSERVING, 5.0, 2.0)
    assert bool(find(ADSERVING, values, absolute=absolute, relative=relative)) is found


def test_gcpu_counts_of_a_rare_subroutine() -> None:
    resolution_s, windows = SMALL
    totals = np.full(windows.end, 40_000.0)
    shares = 5e-5 * (1 + ramp(SMALL, 4.0, 3.0)) * np.ones((5, 1))
    shares[4] = 5e-5
    samples = np.random.default_rng(11).poisson(shares * totals).astype(np.float64)
    matrix = SeriesMatrix(START, resolution_s, ("subroutine",) * 5, tuple("abcde"), samples, totals)
    found = find_long_term(matrix, windows, absolute=1e-5)
    assert [c.metric for c in found] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "windows",
    [
        pytest.param(WindowIndexes(30, 45, 50), id="seconds"),
        pytest.param(WindowIndexes(3, 5, 5), id="hardly any"),
        pytest.param(WindowIndexes(1440, 1440, 1440), id="no analysis window"),
    ],
)
def test_short_windows_are_no_error(windows: WindowIndexes) -> None:
    values = np.random.default_rng(12).normal(0.0, 1.0, (3, windows.end))
    assert find((1.0, windows), values, absolute=10.0) == ()


@pytest.mark.parametrize("level", [pytest.param(0.0, id="zeros"), pytest.param(0.1, id="constant")])
def test_a_constant_series_has_no_trend(level: float) -> None:
    assert find(SMALL, np.full((2, SMALL[1].end), level), absolute=None) == ()


def test_no_series_no_candidates() -> None:
    assert find(SMALL, np.empty((0, SMALL[1].end))) == ()


def test_a_series_without_history_has_no_baseline() -> None:
    values = 5.0 + noise(SMALL, 13, 2) + ramp(SMALL, 2.0, 1.5)
    values[:, :1000] = np.nan
    assert find(SMALL, values) == ()


@pytest.mark.parametrize("days", [1.7, 2.3, 2.9])
def test_what_is_new_begins_when_it_was_first_seen(days: float) -> None:
    # From a few days of it, a season is fitted that reaches back to before it was there.
    there = days_of(SMALL) >= -days
    day = 1 + 0.5 * np.sin(2 * np.pi * days_of(SMALL))
    counts = np.random.default_rng(3).poisson(np.where(there, 20.0 * day, 0.0), (20, SMALL[1].end))
    found = find(SMALL, counts / 20.0)
    assert len(found) == 20
    positions = np.array([days_before_end(SMALL, candidate) for candidate in found])
    assert np.abs(positions - days).max() <= 0.2


def test_best_split_is_the_least_squared_error() -> None:
    rng = np.random.default_rng(14)
    for _ in range(20):
        values, weights = rng.normal(0.0, 1.0, 30), rng.uniform(0.5, 2.0, 30)

        def error(at: int, values: FloatArray = values, weights: FloatArray = weights) -> float:
            parts = ((values[:at], weights[:at]), (values[at:], weights[at:]))
            return sum(float(((v - np.average(v, weights=w)) ** 2 * w).sum()) for v, w in parts)

        assert best_split(values, weights) == min(range(1, 30), key=error)


def test_odd_windows_do_not_draw_the_change_to_them() -> None:
    t = np.arange(600)
    values = np.where(t >= 400, 1.0, 0.0) + np.random.default_rng(15).normal(0.0, 0.3, 600)
    values[[100, 101]] += 50.0
    assert find_rise(values, np.ones(600), shortest=72).start == pytest.approx(400, abs=10)
