"""How often the short-term detector finds a change where there is none, and how surely where there is one.

On steady series of every kind the rate of candidates is at most the nominal one: half of the significance
level, since only one direction is worse. The windows are those of the preset frontfaas-small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from scipy.signal import lfilter

from loadgen.fleet.figures import SUBROUTINE_SERVERS, SUBROUTINES, averaged
from pipeline.analysis.detect.short_term import ScanConfig, Windows, baseline_start, find_candidates
from pipeline.model import FloatArray, MetricKind, SeriesMatrix
from tests.support.calibration import calibrated

WINDOWS = Windows(analysis=1440, extended=1464, end=1500)
RESOLUTION_S = 600.0
DAY = 144
NEXT = 12  # windows by which the next scan is later
LENGTH = WINDOWS.end + NEXT
POSITION = np.arange(LENGTH)
SERIES = 1500
NOMINAL = 0.005
TOTAL = 40_000  # samples a window
CHANGE = 1450
BASELINE = baseline_start(WINDOWS, RESOLUTION_S, ScanConfig())


@dataclass(frozen=True)
class Noise:
    """Steady series: ``observed`` around ``level``, values if ``totals`` is None, else counts."""

    observed: FloatArray
    level: FloatArray | float = 0.0
    totals: FloatArray | None = None

    def rate(self) -> float:
        """Return the share of series that are candidates."""
        return len(self._scan(self.observed, 0)) / len(self.observed)

    def found(self, added: FloatArray) -> float:
        """Return the share of series that are candidates of one of two scans once something has been added.

        A change that lies likelier in the extended window is the next scan's.
        """
        observed = self.observed + added
        return len(self._scan(observed, 0) | self._scan(observed, NEXT)) / len(observed)

    def _scan(self, observed: FloatArray, first: int) -> set[str]:
        """Return the candidates among all windows from the first on."""
        span = slice(first, first + WINDOWS.end)
        kind = "service" if self.totals is None else "subroutine"
        matrix = SeriesMatrix(
            1_700_000_000.0,
            RESOLUTION_S,
            (kind,) * len(observed),  # type: ignore[arg-type]  # one of the literal's values
            tuple(map(str, range(len(observed)))),
            observed[:, span],
            np.ones(WINDOWS.end) if self.totals is None else self.totals[span],
        )
        return {candidate.metric for candidate in find_candidates(matrix, WINDOWS)}


Draw = Callable[[Generator, int], Noise]


def autocorrelated(hours: float, share: float = 1.0) -> Draw:
    """AR(1) that forgets by a factor e in so many hours; the rest of the variance is white."""
    factor = np.exp(-1 / (6 * hours))

    def draw(rng: Generator, series: int) -> Noise:
        shocks = rng.standard_normal((series, LENGTH))
        shocks[:, 0] /= np.sqrt(1 - factor**2)
        slow = lfilter([np.sqrt(1 - factor**2)], [1, -factor], shocks, axis=1)
        return Noise(np.sqrt(share) * slow + np.sqrt(1 - share) * rng.standard_normal(slow.shape))

    return draw


def white(rng: Generator, series: int) -> Noise:
    return Noise(rng.standard_normal((series, LENGTH)))


def heavy_tailed(rng: Generator, series: int) -> Noise:
    return Noise(rng.standard_t(3, (series, LENGTH)))


def random_walk(rng: Generator, series: int) -> Noise:
    return Noise(
        0.05 * np.cumsum(rng.standard_normal((series, LENGTH)), axis=1) + white(rng, series).observed
    )


def daily_cycle(rng: Generator, series: int) -> Noise:
    cycle = np.sin(2 * np.pi * (POSITION / DAY + rng.random((series, 1))))
    return Noise(cycle + white(rng, series).observed, cycle)


def weekend(rng: Generator, series: int) -> Noise:
    resting = ((POSITION / DAY + 7 * rng.random((series, 1))) % 7) >= 5
    level = resting * rng.standard_normal((series, 1))
    return Noise(level + white(rng, series).observed, level)


def jumping(times: int, size: float) -> Draw:
    """White noise whose level changed so often before the baseline, by so many deviations or so."""

    def draw(rng: Generator, series: int) -> Noise:
        positions = rng.integers(0, BASELINE, (times, series, 1))
        level = np.sum((positions <= POSITION) * size * rng.standard_normal(positions.shape), axis=0)
        return Noise(level + white(rng, series).observed, level)

    return draw


def binomial(share: float) -> Draw:
    def draw(rng: Generator, series: int) -> Noise:
        counts = rng.binomial(TOTAL, share, (series, LENGTH))
        return Noise(counts.astype(np.float64), TOTAL * share, np.full(LENGTH, float(TOTAL)))

    return draw


def negative_binomial(share: float) -> Draw:
    """Counts whose variance is twice what sampling makes."""

    def draw(rng: Generator, series: int) -> Noise:
        rate = rng.gamma(TOTAL * share, 1.0, (series, LENGTH))
        return Noise(rng.poisson(rate).astype(np.float64), TOTAL * share, np.full(LENGTH, float(TOTAL)))

    return draw


def gaps(rng: Generator, series: int) -> Noise:
    """Fewer samples at night, and hours without any."""
    totals = np.rint(TOTAL * (1 + 0.3 * np.sin(2 * np.pi * POSITION / DAY)))
    totals[700:720] = totals[1430:1436] = totals[1455:1458] = 0
    counts = rng.binomial(totals.astype(np.int64), 1e-3, (series, LENGTH))
    return Noise(counts.astype(np.float64), totals * 1e-3, totals)


def missing_values(rng: Generator, series: int) -> Noise:
    return Noise(np.where(rng.random((series, LENGTH)) < 0.2, np.nan, white(rng, series).observed))


STEADY = {
    "white": white,
    "heavy tails": heavy_tailed,
    "AR of 1 h": autocorrelated(1),
    "AR of 2 h, half white": autocorrelated(2, 0.5),
    "AR of 10 h, a tenth": autocorrelated(10, 0.1),
    "AR of a day, a fifth": autocorrelated(24, 0.2),
    "daily cycle": daily_cycle,
    "weekend": weekend,
    "missing values": missing_values,
    "binomial 1e-6": binomial(1e-6),
    "binomial 1e-5": binomial(1e-5),
    "binomial 1e-3": binomial(1e-3),
    "binomial 0.5": binomial(0.5),
    "negative binomial 1e-5": negative_binomial(1e-5),
    "negative binomial 1e-3": negative_binomial(1e-3),
    "counts with gaps": gaps,
}
"""Kinds of noise whose mean over hours has a standard error."""

WANDERING = {"random walk": random_walk}

CLEAR = [kind for kind in STEADY if kind not in {"weekend", "binomial 1e-6"}]
SEEN_ALWAYS = {"white", "AR of 2 h, half white", "daily cycle", "binomial 1e-5", "negative binomial 1e-3"}
"""Kinds that are tried with every run of the tests; the others with those that calibrate."""
JUMPING = {"three changes of level": jumping(3, 5.0), "six small ones": jumping(6, 1.0)}


@pytest.mark.parametrize("kind", calibrated([*STEADY, *WANDERING, *JUMPING], SEEN_ALWAYS.__contains__))
def test_on_noise_the_rate_of_candidates_is_the_nominal_one(kind: str) -> None:
    noise = (STEADY | WANDERING | JUMPING)[kind](np.random.default_rng(31), SERIES)
    allowed = stats.binom.isf(0.001, SERIES, NOMINAL)
    assert noise.rate() <= allowed / SERIES


def step(noise: Noise, errors: float) -> FloatArray:
    """Return what to add to each series for a step of so many standard errors.

    The standard error is that of the level after the change less the baseline's, over all series of the kind.
    """
    known = np.isfinite(noise.observed).astype(np.float64) if noise.totals is None else noise.totals
    known = np.broadcast_to(known, noise.observed.shape)
    moved = np.nan_to_num(noise.observed - noise.level)
    before, after = (
        moved[:, side].sum(axis=1) / known[:, side].sum(axis=1)
        for side in (slice(BASELINE, CHANGE), slice(CHANGE, WINDOWS.end))
    )
    size = np.where(POSITION >= CHANGE, errors * float(np.std(after - before)), 0.0)
    if noise.totals is None:
        return size
    more = np.random.default_rng(7).poisson(size * noise.totals, noise.observed.shape)
    return more.astype(np.float64)


@pytest.mark.parametrize("kind", calibrated(CLEAR, SEEN_ALWAYS.__contains__))
def test_a_step_of_eight_standard_errors_is_found(kind: str) -> None:
    noise = STEADY[kind](np.random.default_rng(32), 300)
    assert noise.found(step(noise, 8.0)) >= 0.98


@pytest.mark.parametrize(
    ("kind", "found"), [("three changes of level", 0.85), ("six small ones", 0.65)], ids=["three", "six"]
)
def test_what_changed_long_ago_hides_no_step(kind: str, found: float) -> None:
    noise = JUMPING[kind](np.random.default_rng(32), 300)
    assert noise.found(step(noise, 8.0)) >= found


def test_where_two_samples_are_expected_a_step_must_be_larger() -> None:
    # The standard error is one and a half samples then, and their number far from normal.
    noise = STEADY["binomial 1e-6"](np.random.default_rng(32), 300)
    assert noise.found(step(noise, 12.0)) >= 0.95


def test_weekends_as_large_as_the_noise_hide_only_what_is_not_well_above_them() -> None:
    # They count as noise at the scale of the change: far more than a standard error of the levels compared.
    noise = STEADY["weekend"](np.random.default_rng(32), 300)
    assert noise.found(np.where(POSITION >= CHANGE, 4.0, 0.0)) >= 0.95


@pytest.mark.parametrize(
    ("servers", "least", "most"), [(50_000, 0.98, 1.0), (5_000, 0.2, 0.6), (500, 0.0, 0.05)]
)
def test_a_regression_of_the_papers_smallest_size_is_found_at_its_sampling(
    servers: int, least: float, most: float
) -> None:
    # Figure 9: one of a thousand subroutines of a process costs 0.005 % more; it shows with 50,000 servers.
    rng = np.random.default_rng(9)
    series = 300
    drawn = [averaged(servers, SUBROUTINES, rng) for _ in range(series)]
    panels = np.stack([panel.values / 100 for panel in drawn])
    windows = Windows(analysis=490, extended=514, end=550)
    names = tuple(f"s{position}" for position in range(series))
    kind: MetricKind = "service"
    matrix = SeriesMatrix(0.0, RESOLUTION_S, (kind,) * series, names, panels[:, :550], np.ones(550))
    candidates = find_candidates(matrix, windows)
    near = {c.metric: c for c in candidates if abs(c.change_time / RESOLUTION_S - 500) <= 6}
    assert least <= len(near) / series <= most
    if servers == max(SUBROUTINE_SERVERS):
        # Values below 0 were dropped where the paper drew them, which leaves less of the 0.005 %.
        size = (drawn[0].mean[-1] - drawn[0].mean[0]) / 100
        assert np.median([c.delta for c in near.values()]) == pytest.approx(size, rel=0.05)
