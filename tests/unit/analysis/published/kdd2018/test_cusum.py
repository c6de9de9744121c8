from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import yaml

from pipeline.analysis.detect.short_term import Windows
from pipeline.analysis.published.kdd2018.butterworth import low_pass
from pipeline.analysis.published.kdd2018.cusum import Cusum, cusum, find_kdd2018
from pipeline.analysis.published.kdd2018.fourier import daily_trend, loess_operator, remove_cycles
from pipeline.analysis.published.kdd2018.setups import (
    CORE_DATA,
    EFFICIENCY_INFRA,
    INSTAGRAM,
    TEAMS,
    Kdd2018Config,
)
from pipeline.analysis.statistics.long_run_noise.batch_means import long_run_variance
from pipeline.backtest.plain import build_datasets
from pipeline.backtest.run import run_backtest
from pipeline.backtest.seriesfile import Series
from pipeline.model import Candidate, Direction, FloatArray, MetricKind, SeriesMatrix
from pipeline.settings.workloads import Kdd2018Setup, load_workloads

START = 1_700_000_000.0
RESOLUTION_S = 600.0
DAY = 144
WINDOWS = Windows(14 * DAY - 24, 14 * DAY, 14 * DAY + 36)
T = np.arange(WINDOWS.end)
CHANGE = 14 * DAY - 14
STEP = np.where(T >= CHANGE, 1.0, 0.0)
EARLIER = 14 * DAY - 2 * DAY
DAILY = np.sin(2 * np.pi * T / DAY) + 0.5 * np.cos(4 * np.pi * T / DAY)
USE_CASES = [
    pytest.param(EFFICIENCY_INFRA, id="efficiency infra"),
    pytest.param(CORE_DATA, id="core data"),
    pytest.param(INSTAGRAM, id="instagram"),
]

# The series of KDD 2018 §2.1: twice the same spike, and a lasting rise.
X, Y, Z = [0.0, 0.0, 0.0, 2.0, 0.0], [0.0, 0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0]


def noise(seed: int, rows: int = 20) -> FloatArray:
    return np.random.default_rng(seed).normal(0.0, 1.0, (rows, len(T)))


def find(
    values: FloatArray, config: Kdd2018Config | None = None, direction: Direction = "up"
) -> tuple[Candidate, ...]:
    kinds: tuple[MetricKind, ...] = tuple("service" for _ in values)
    names = tuple(str(row) for row in range(len(values)))
    matrix = SeriesMatrix(START, RESOLUTION_S, kinds, names, values, np.ones(values.shape[1]))
    return find_kdd2018(matrix, WINDOWS, direction=direction, config=config)


def plain_cusum(values: FloatArray) -> Cusum:
    rows = len(values)
    return cusum(values, np.ones(values.shape), np.ones(rows), np.ones(rows))


def test_a_late_spike_looks_like_a_step() -> None:
    found = plain_cusum(np.array([X, Y, Z]))
    np.testing.assert_allclose(found.statistic, [0.24, 0.16, 0.24])
    assert found.index.tolist() == [3, 2, 3]


def test_the_low_pass_filter_distinguishes_them() -> None:
    x, y, z = plain_cusum(low_pass(np.array([X, Y, Z]), cutoff=5.0)).statistic
    assert z > 1.1 * max(x, y)


def test_the_filter_halves_its_cut_off_and_keeps_the_level() -> None:
    windows = np.arange(40 * DAY)
    wave = low_pass(5.0 + np.cos(2 * np.pi * (windows + 0.5) / DAY)[None, :], cutoff=DAY)[0]
    assert wave.mean() == pytest.approx(5.0)
    assert np.ptp(wave) == pytest.approx(1.0, rel=1e-3)


def test_the_filter_does_not_join_the_ends() -> None:
    step = np.where(np.arange(432) >= 300, 1.0, 0.0)[None, :]
    smooth = low_pass(step, cutoff=DAY)[0]
    assert smooth[0] < 0.01
    assert smooth[-1] > 0.99


@pytest.mark.parametrize(
    "share", [pytest.param(1.0, id="everywhere"), pytest.param(0.1, id="in the last tenth")]
)
def test_p_values_are_uniform_enough_without_a_change(share: float) -> None:
    values = np.random.default_rng(1).normal(0.0, 1.0, (4000, 400))
    first = max(1, round(400 * (1 - share)))
    found = cusum(values, np.ones(values.shape), np.ones(4000), np.ones(4000), first=first)
    for level in (0.01, 0.1, 0.5):
        assert (found.p_value < level).mean() <= 1.2 * level + 0.003
    assert (found.p_value < 0.1).mean() >= 0.05


def test_scale_divides_the_statistic_only() -> None:
    values = 10.0 + noise(2, 3) + STEP
    scaled = cusum(values * 7, np.ones(values.shape), np.full(3, 49.0), values.mean(axis=1) * 7)
    plain = cusum(values, np.ones(values.shape), np.ones(3), values.mean(axis=1))
    np.testing.assert_allclose(scaled.statistic, plain.statistic)
    np.testing.assert_allclose(scaled.p_value, plain.p_value)
    assert scaled.index.tolist() == plain.index.tolist()


@pytest.mark.parametrize("config", USE_CASES)
class TestUseCases:
    def test_noise_has_few_candidates(self, config: Kdd2018Config) -> None:
        assert len(find(20.0 + noise(3, 100), config)) <= 3

    def test_a_step_is_found(self, config: Kdd2018Config) -> None:
        found = find(20.0 + noise(4) + 6.0 * STEP, config)
        assert len(found) >= 19
        assert {candidate.kind for candidate in found} == {"short_term"}

    def test_level_and_position_of_a_step(self, config: Kdd2018Config) -> None:
        # Without a second pass, CUSUM draws what is near the end of days towards their middle.
        change = CHANGE if config.second_pass else EARLIER
        found = find(20.0 + 0.2 * noise(5) + np.where(change <= T, 6.0, 0.0), config)
        assert len(found) == 20
        for candidate in found:
            assert candidate.change_time == pytest.approx(START + change * RESOLUTION_S, abs=RESOLUTION_S)
            assert candidate.before == pytest.approx(20.0, abs=0.2)
            assert candidate.after == pytest.approx(26.0, abs=0.2)

    def test_a_fall_is_found_where_it_is_worse(self, config: Kdd2018Config) -> None:
        values = 20.0 + noise(6) - 6.0 * STEP
        assert find(values, config) == ()
        assert len(find(values, config, direction="down")) >= 19

    def test_the_extended_window_has_no_say(self, config: Kdd2018Config) -> None:
        values = 20.0 + noise(7) + 6.0 * STEP
        later = values.copy()
        later[:, WINDOWS.extended :] = 1e6
        assert find(later, config) == find(values, config)

    def test_cycles_are_no_change(self, config: Kdd2018Config) -> None:
        assert len(find(40.0 + noise(8) + 5.0 * DAILY, config)) <= 1

    def test_unit_changes_nothing_but_levels(self, config: Kdd2018Config) -> None:
        values = 40.0 + noise(9) + 3.0 * DAILY + 4.0 * STEP
        plain, scaled = find(values, config), find(values * 1e-4, config)
        assert [c.metric for c in scaled] == [c.metric for c in plain]
        assert [c.change_time for c in scaled] == [c.change_time for c in plain]
        np.testing.assert_allclose([c.p_value for c in scaled], [c.p_value for c in plain], rtol=1e-6)

    def test_gaps_are_no_zeros(self, config: Kdd2018Config) -> None:
        values = 20.0 + noise(10) + 3.0 * DAILY
        values[:, ::7] = np.nan
        values[:, 1800:1850] = np.nan
        assert len(find(values, config)) <= 1

    def test_constant_and_empty(self, config: Kdd2018Config) -> None:
        for level in (0.0, 0.1):
            assert find(np.full((2, len(T)), level), config) == ()
        assert find(np.full((2, len(T)), np.nan), config) == ()
        assert find(np.empty((0, len(T))), config) == ()

    def test_a_batch_equals_one_by_one(self, config: Kdd2018Config) -> None:
        values = 40.0 + noise(11, 6) + 3.0 * DAILY + 4.0 * STEP
        together = find(values, config)
        alone = [replace(c, metric=str(row)) for row in range(6) for c in find(values[row : row + 1], config)]
        assert [c.metric for c in together] == [c.metric for c in alone]
        np.testing.assert_allclose([c.p_value for c in together], [c.p_value for c in alone], rtol=1e-6)


def test_a_step_on_a_cycle_is_found_once_the_cycle_is_taken_off() -> None:
    values = 40.0 + noise(12) + 5.0 * DAILY + 6.0 * STEP
    assert len(find(values, INSTAGRAM)) >= 19
    assert find(values, replace(INSTAGRAM, cycles=False)) == ()


def test_the_filter_keeps_spikes_out() -> None:
    spikes = 20.0 + noise(13, 100) + np.where((T >= CHANGE) & (T < CHANGE + 2), 10.0, 0.0)
    unfiltered = len(find(spikes, replace(EFFICIENCY_INFRA, low_pass=False, second_pass=False)))
    assert len(find(spikes, EFFICIENCY_INFRA)) < unfiltered / 3


def test_a_fix_that_does_not_hold_is_found_after_the_fall() -> None:
    back = np.where((T >= CHANGE - 150) & (T < CHANGE), -6.0, 0.0)
    values = 20.0 + noise(14) + back
    assert len(find(values)) > len(find(values, replace(EFFICIENCY_INFRA, truncate=False)))
    assert len(find(values)) >= 15


def test_cycles_are_removed_and_level_and_trend_kept() -> None:
    level = 40.0 * (1 + 0.1 * T / len(T))
    weekly = np.where(T % (7 * DAY) >= 5 * DAY, -1.0, 0.0)
    values = (level + 5.0 * DAILY + weekly + 0.5 * noise(15)[0])[None, :]
    left = remove_cycles(values, np.ones(values.shape), RESOLUTION_S)[0]
    assert (left - level).std() < 0.9
    assert left.mean() == pytest.approx(level.mean(), rel=0.01)


def test_an_odd_day_does_not_bend_the_cycle() -> None:
    values = 40.0 + 5.0 * DAILY + 0.5 * noise(16)[0]
    odd = values + np.where((T >= 700) & (T < 780), 30.0, 0.0)
    kept = (T < 700) | (T >= 780)
    both = np.stack([values, odd])
    plain, bent = remove_cycles(both, np.ones(both.shape), RESOLUTION_S)
    assert np.abs(plain - bent)[kept].mean() < 0.5


def test_what_has_no_positive_trend_is_not_divided() -> None:
    values = (5.0 * DAILY + 0.5 * noise(17)[0] - 40.0)[None, :]
    assert (daily_trend(values, np.ones(values.shape), DAY, 2 / 3) == 1.0).all()
    assert remove_cycles(values, np.ones(values.shape), RESOLUTION_S).std() < 1.0


def test_loess_reproduces_lines_and_smooths_the_rest() -> None:
    line = 3.0 + 0.5 * np.arange(14)
    operator = loess_operator(14, 2 / 3)
    np.testing.assert_allclose(operator @ line, line)
    jagged = line + np.where(np.arange(14) % 2, 1.0, -1.0)
    assert np.abs(operator @ jagged - line).max() < 0.5
    np.testing.assert_allclose(loess_operator(1, 2 / 3), [[1.0]])


@pytest.mark.parametrize("correlation", [0.0, 0.8], ids=["independent", "similar neighbours"])
def test_the_long_run_variance_is_that_of_means(correlation: float) -> None:
    fresh = np.random.default_rng(18).normal(0.0, 1.0, (60, 3000))
    values = fresh.copy()
    for at in range(1, 3000):
        values[:, at] = correlation * values[:, at - 1] + fresh[:, at]
    variance, _ = long_run_variance(values, np.ones(values.shape), longest=100)
    assert np.median(variance) == pytest.approx(1 / (1 - correlation) ** 2, rel=0.35)


def scanned(folder: Path, values: FloatArray, team: str | None, rerun: str) -> list[Candidate]:
    """What a workload of that team finds in half hours of a latency."""
    raw = {
        **{"name": "mine", "series": "service", "detectors": ["kdd2018"], "resolution": "30m"},
        **{"rerun_interval": rerun, "historical": "10d", "analysis": "1d", "threshold": {"relative": 0.05}},
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(raw | ({"kdd2018": team} if team else {})))
    times = 1_767_225_600.0 + np.arange(len(values)) / 48 * 86_400
    series = Series("shop", "service", "latency", times, values, None)
    (dataset,) = build_datasets([series], Path("latency.csv"), window_s=1800.0)
    scans = run_backtest(dataset, load_workloads([str(folder / "mine.yaml")])).scans
    return [candidate for scan in scans for candidate in scan.candidates]


@pytest.mark.parametrize(
    ("team", "found"),
    [("efficiency_infra", False), (None, False), ("core_data", True), ("instagram", True)],
    ids=str,
)
def test_a_workload_chooses_a_team(tmp_path: Path, team: str | None, found: bool) -> None:
    # A fifth of the level comes and goes every day; a step of a tenth.
    days = np.arange(14 * 48) / 48
    level = 100 * (1 + 0.2 * np.sin(2 * np.pi * days)) * np.where(days >= 12, 1.1, 1.0)
    values = level + np.random.default_rng(3).normal(0, 2, len(days))
    assert bool(scanned(tmp_path, values, team, "12h")) == found


def test_every_set_up_of_a_workload_is_known() -> None:
    assert set(get_args(Kdd2018Setup)) == set(TEAMS)


def test_a_workload_divides_by_the_median(tmp_path: Path) -> None:
    # One spike raises the mean of three days by half, and leaves the median where it is.
    days = np.arange(12 * 48) / 48
    values = np.where(days >= 10.5, 150.0, 100.0) + np.random.default_rng(3).normal(0, 1, len(days))
    values[9 * 48] += 50 * 144
    by_mean, by_median = (
        scanned(tmp_path, values, team, "1d") for team in ("efficiency_infra", "efficiency_infra_median")
    )
    assert by_mean
    for mean, median in zip(by_mean, by_median, strict=True):
        assert median == replace(mean, statistic=median.statistic)
        assert median.statistic > 1.3 * mean.statistic
