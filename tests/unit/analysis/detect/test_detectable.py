"""The detectable size: its dependence on traffic, and how often steps of that size are reported."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.detect.detectable import (
    DetectableConfig,
    Look,
    ServiceTraffic,
    busy_windows,
    detectable_size,
    samples_to_detect,
    significant_root,
    time_to_detect,
)
from pipeline.analysis.detect.service_noise import with_shared_prior
from pipeline.analysis.detect.short_term import ScanConfig, WindowIndexes, baseline_start, find_candidates
from pipeline.model import MetricKind, SeriesMatrix
from pipeline.model.units import HOUR_S
from pipeline.views.report.detectability import noise_of

RESOLUTION_S = 600.0
WINDOWS = WindowIndexes(analysis=1440, extended=1464, end=1500)  # of frontfaas-small
BASELINE_S = (WINDOWS.analysis - baseline_start(WINDOWS, RESOLUTION_S, ScanConfig())) * RESOLUTION_S
LOOK = Look(BASELINE_S, 4 * HOUR_S, 6 * HOUR_S, RESOLUTION_S)
TRAFFIC = ServiceTraffic(samples_per_s=50.0, series=2000)


def test_half_the_size_takes_four_times_the_samples() -> None:
    large = detectable_size(0.1, LOOK.longest_s, TRAFFIC, LOOK)
    small = detectable_size(0.1, LOOK.longest_s, ServiceTraffic(4 * 50.0, 2000), LOOK)
    assert large / small == pytest.approx(2, rel=0.02)
    # Noise of twice the variance is as good as half of the samples.
    noisy = detectable_size(0.1, LOOK.longest_s, ServiceTraffic(4 * 50.0, 2000, dispersion=4.0), LOOK)
    assert noisy == pytest.approx(large)


def test_more_series_and_less_time_ask_for_more() -> None:
    sizes = [
        detectable_size(0.01, LOOK.longest_s, ServiceTraffic(50.0, series), LOOK)
        for series in (10, 1000, 100_000)
    ]
    assert sizes == sorted(sizes)
    after = [detectable_size(0.01, hours * HOUR_S, TRAFFIC, LOOK) for hours in (10, 4, 1)]
    assert after == sorted(after)


def test_nothing_is_detectable_without_samples() -> None:
    assert detectable_size(0.01, LOOK.longest_s, ServiceTraffic(0.0, 10), LOOK) == math.inf
    assert time_to_detect(0.01, 0.05, ServiceTraffic(0.0, 10), LOOK) is None


@pytest.mark.parametrize("degrees", [0.5, 1.0, math.nan])
def test_nothing_is_detectable_while_the_noise_is_hardly_known(degrees: float) -> None:
    """As of a service whose first scan the dashboard shows."""
    young = replace(TRAFFIC, degrees_of_freedom=degrees)
    assert detectable_size(0.01, LOOK.longest_s, young, LOOK) == math.inf
    assert time_to_detect(0.01, 0.05, young, LOOK) is None


def test_the_time_is_the_first_at_which_the_size_is_detectable() -> None:
    size = detectable_size(0.01, 8 * HOUR_S, TRAFFIC, LOOK)
    assert time_to_detect(0.01, size * 1.0001, TRAFFIC, LOOK) == 8 * HOUR_S
    # What is clear at once waits for the extended window; what is too small is never seen.
    assert time_to_detect(0.01, 0.5, TRAFFIC, LOOK) == 6 * HOUR_S
    assert time_to_detect(0.01, size / 10, TRAFFIC, LOOK) is None


def test_the_search_takes_a_larger_root() -> None:
    config = DetectableConfig()
    alone = Look(BASELINE_S, 4 * HOUR_S, 6 * HOUR_S, RESOLUTION_S, searched=False)
    assert significant_root(ServiceTraffic(50.0, 1), alone, config) == pytest.approx(2.576, abs=0.001)
    assert significant_root(ServiceTraffic(50.0, 1), LOOK, config) > significant_root(
        ServiceTraffic(50.0, 1), alone, config
    )


@pytest.mark.parametrize("gcpu", [0.0002, 0.01, 0.2])
def test_steps_of_that_size_are_reported_about_as_often_as_it_says(gcpu: float) -> None:
    series = 500
    rng = np.random.default_rng(3)
    total = TRAFFIC.samples_per_s * RESOLUTION_S

    def scanned(size: float) -> SeriesMatrix:
        rates = np.where(np.arange(WINDOWS.end) < WINDOWS.analysis, gcpu, gcpu + size)
        samples = rng.binomial(int(total), rates, (series, WINDOWS.end)).astype(np.float64)
        kinds: list[MetricKind] = ["subroutine"] * series
        names = tuple(map(str, range(series)))
        totals = np.full(WINDOWS.end, total)
        matrix = SeriesMatrix(1_700_000_000.0, RESOLUTION_S, tuple(kinds), names, samples, totals)
        return with_shared_prior(matrix, WINDOWS, config=ScanConfig())

    _, dispersion, degrees_of_freedom = noise_of(scanned(0.0), WINDOWS)
    noise = float(np.median(dispersion)), float(np.median(degrees_of_freedom))
    traffic = ServiceTraffic(TRAFFIC.samples_per_s, series, *noise)
    size = detectable_size(gcpu, LOOK.longest_s, traffic, LOOK)
    found = find_candidates(scanned(size), WINDOWS)
    reported = sum(candidate.p_value * series <= DetectableConfig().significance for candidate in found)
    assert reported / series == pytest.approx(DetectableConfig().power, abs=0.04)


@pytest.mark.parametrize("dispersion", [1.0, 3.0])
def test_as_many_samples_make_a_size_detectable(dispersion: float) -> None:
    traffic = replace(TRAFFIC, dispersion=dispersion)
    rate = samples_to_detect(0.0001, 0.00005, LOOK.longest_s, traffic, LOOK)
    assert rate is not None
    found = detectable_size(0.0001, LOOK.longest_s, replace(traffic, samples_per_s=rate), LOOK)
    assert found == pytest.approx(0.00005, rel=1e-3)


def test_samples_grow_with_the_square_of_what_is_to_be_seen() -> None:
    rates = [
        samples_to_detect(0.1, size, LOOK.longest_s, TRAFFIC, LOOK) or math.nan for size in (0.001, 0.0005)
    ]
    assert rates[1] / rates[0] == pytest.approx(4, rel=0.03)  # Appendix A.2, expression 7
    assert samples_to_detect(0.1, 0.001, 0.0, TRAFFIC, LOOK) is None


@pytest.mark.parametrize(
    ("rates", "busy"),
    [
        ([50] * 20, [1] * 20),
        ([50, 50, *[0] * 10, *[50] * 8], [1, 1, *[0] * 10, *[1] * 8]),
        ([50, 0] * 10, [1] * 20),  # shorter than an idle run: such as one profile every other window
        ([0] * 12 + [50] * 8, [0] * 12 + [1] * 8),
        ([1, *[0] * 12, 1, *[0] * 6], [1] * 20),  # so few samples leave such gaps
        ([50, *[0] * 19], [1, *[0] * 19]),
    ],
    ids=["steady", "a pause", "every other", "young", "hardly a sample", "gone"],
)
def test_a_service_is_idle_in_long_gaps_that_its_traffic_makes_improbable(
    rates: list[int], busy: list[int]
) -> None:
    assert busy_windows(np.array(rates, dtype=np.float64), 4).tolist() == [bool(window) for window in busy]


NUMBERS = st.one_of(st.sampled_from([0.0, 1e-12, 1.0, 1e9, math.nan, math.inf]), st.floats(0, 1e12))


@given(NUMBERS, st.integers(0, 10**9), NUMBERS, NUMBERS, NUMBERS)
def test_whatever_the_numbers_there_is_a_size_or_none(
    rate: float, series: int, dispersion: float, degrees: float, gcpu: float
) -> None:
    traffic = ServiceTraffic(rate, series, max(dispersion, 1.0), degrees)
    size = detectable_size(gcpu, LOOK.longest_s, traffic, LOOK)
    assert 0 <= size <= 1 or size == math.inf
