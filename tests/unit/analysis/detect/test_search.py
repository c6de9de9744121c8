"""The search for change points by the detectors of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.detect.search import SearchConfig, StepDetector, due_detectors, find_change_points
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.analysis.published.kdd2018.cusum import find_kdd2018
from pipeline.model import Candidate, Detector, SeriesMatrix

HOUR_S = 3600.0
LEAD, HISTORY, ANALYSIS, EXTENDED = 20, 240, 24, 12
WINDOWS = WindowIndexes(HISTORY, HISTORY + ANALYSIS, HISTORY + ANALYSIS + EXTENDED)
PUBLISHED: Mapping[Detector, StepDetector] = {"kdd2018": find_kdd2018}


def matrix(*, lead: int = 0) -> SeriesMatrix:
    window = np.arange(-lead, WINDOWS.end)
    step = np.where(window >= HISTORY + 5, 0.02, 0.01)
    levels = np.array([step, np.full(len(window), 0.01)])
    samples = np.random.default_rng(7).binomial(100_000, levels).astype(np.float64)
    names = ("shop.step", "shop.steady")
    totals = np.full(len(window), 100_000.0)
    return SeriesMatrix(-lead * 600.0, 600.0, ("subroutine", "subroutine"), names, samples, totals)


@pytest.mark.parametrize(
    ("end_h", "interval_h", "runs"),
    [
        pytest.param(12, 2, True, id="at noon"),
        pytest.param(14, 2, False, id="two hours later"),
        pytest.param(24, 2, True, id="at midnight"),
        pytest.param(14, 12, True, id="as rarely as that anyway"),
    ],
)
def test_slow_rises_are_looked_for_twice_a_day(end_h: float, interval_h: float, runs: bool) -> None:
    both: tuple[Detector, ...] = ("short_term", "long_term")
    found = due_detectors(both, end_h * HOUR_S, interval_s=interval_h * HOUR_S)
    assert found == (both if runs else ("short_term",))


@pytest.mark.parametrize("detector", ["short_term", "kdd2018"])
def test_a_detector_finds_the_step_and_nothing_else(detector: Detector) -> None:
    found = find_change_points(
        matrix(), WINDOWS, SearchConfig((detector,), absolute=0.001, published=PUBLISHED)
    )
    assert [candidate.metric for candidate in found.candidates] == ["shop.step"]
    assert found.unusable == 0


def test_what_two_detectors_find_counts_once() -> None:
    once = find_change_points(matrix(), WINDOWS, SearchConfig(("short_term",), absolute=0.001))
    twice = find_change_points(
        matrix(), WINDOWS, SearchConfig(("short_term", "kdd2018"), absolute=0.001, published=PUBLISHED)
    )
    assert twice.candidates[: len(once.candidates)] == once.candidates
    keys = [(c.metric_kind, c.metric, c.kind) for c in twice.candidates]
    assert len(set(keys)) == len(keys)


def test_what_lies_before_the_history_is_for_the_short_term_alone() -> None:
    led = WindowIndexes(HISTORY + LEAD, HISTORY + LEAD + ANALYSIS, WINDOWS.end + LEAD, history=LEAD)
    (found,) = find_change_points(
        matrix(lead=LEAD), led, SearchConfig(("kdd2018",), absolute=0.001, published=PUBLISHED)
    ).candidates
    assert found.change_time == pytest.approx((HISTORY + 5) * 600.0, abs=1200.0)


def test_a_candidate_that_no_message_can_carry_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = find_change_points(matrix(), WINDOWS, SearchConfig(("short_term",), absolute=0.001)).candidates
    broken: Candidate = replace(found, statistic=float("inf"))
    monkeypatch.setattr(
        "pipeline.analysis.detect.search.find_steps", lambda *_args, **_given: ((broken,), ())
    )
    result = find_change_points(matrix(), WINDOWS, SearchConfig(("short_term",), absolute=0.001))
    assert (result.candidates, result.unusable) == ((), 1)


def test_levels_of_gcpu_are_shares() -> None:
    # The whole grows by half, so every share falls; one that is nearly all of it cannot.
    rng, windows = np.random.default_rng(8), np.arange(WINDOWS.end)
    level = np.where(windows >= HISTORY + 5, 0.004 / 1.5, 0.004)
    samples = rng.poisson(np.tile(level * 100_000, (150, 1))).astype(np.float64)
    root = rng.binomial(100_000, np.where(windows >= HISTORY + 5, 0.999, 0.98)).astype(np.float64)
    names = (*(f"shop.f{i}" for i in range(150)), "main")
    whole = SeriesMatrix(
        0.0, 600.0, ("subroutine",) * 151, names, np.vstack([samples, root]), np.full(WINDOWS.end, 100_000.0)
    )
    found = find_change_points(whole, WINDOWS, SearchConfig(("short_term",), absolute=0.001)).candidates
    assert "main" in {candidate.metric for candidate in found}
    assert all(0 <= level <= 1 for candidate in found for level in (candidate.before, candidate.after))
