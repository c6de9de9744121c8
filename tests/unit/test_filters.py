from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.filters.gone_away import judge_gone_away
from pipeline.filters.same_regression import judge_same_regression
from pipeline.filters.threshold import judge_significance, judge_threshold
from pipeline.filters.verdict import Verdict, divide
from pipeline.model import Candidate
from tests.builders import build_candidate


@pytest.mark.parametrize(
    ("before", "after", "absolute", "relative", "passed"),
    [
        pytest.param(
            0.010, 0.011, 0.001, None, True, id="0.1 pp absolute reaches 0.1 pp (Table 3's caption)"
        ),
        pytest.param(0.010, 0.011, None, 0.10, True, id="the same is 10 % relative"),
        pytest.param(0.010, 0.011, None, 0.11, False, id="and not 11 %"),
        pytest.param(0.010, 0.0109, 0.001, None, False, id="just below absolute"),
        pytest.param(0.0, 0.002, None, 0.5, True, id="from nothing is infinitely much"),
        pytest.param(100.0, 90.0, None, 0.05, True, id="a drop counts by its size"),
        pytest.param(0.00005, 0.0001, 0.00005, None, True, id="0.005 % of the CPU"),
    ],
)
def test_threshold(
    before: float, after: float, absolute: float | None, relative: float | None, passed: bool
) -> None:
    verdict = judge_threshold(
        build_candidate(before=before, after=after), absolute=absolute, relative=relative
    )
    assert verdict.passed is passed
    assert np.isfinite(verdict.statistic)


def test_threshold_wants_one_of_the_two() -> None:
    with pytest.raises(ValueError, match="either"):
        judge_threshold(build_candidate())


@pytest.mark.parametrize(
    ("p_value", "series", "passed"),
    [(1e-6, 1000, True), (1e-6, 1001, False), (0.009, 1, False), (0.0, 10**9, True)],
)
def test_significance_counts_the_series_of_the_scan(p_value: float, series: int, passed: bool) -> None:
    candidate = replace(build_candidate(), p_value=p_value)
    assert judge_significance(candidate, series=series).passed is passed


def levels(*parts: tuple[int, float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.concatenate([np.full(count, level) for count, level in parts])


@pytest.mark.parametrize(
    ("series", "change", "extended", "passed"),
    [
        pytest.param(levels((20, 0.1), (10, 0.2)), 20, 25, True, id="stays"),
        pytest.param(levels((20, 0.1), (5, 0.2), (5, 0.1)), 20, 25, False, id="gone in the extended window"),
        pytest.param(
            levels((20, 0.1), (5, 0.2), (4, 0.1), (1, 0.9)), 20, 25, False, id="gone but for one spike"
        ),
        pytest.param(levels((20, 0.1), (5, 0.2), (5, 0.16)), 20, 25, True, id="mostly stays"),
        pytest.param(
            levels((20, 0.1), (2, 0.2), (2, 0.1), (6, 0.2)), 20, 25, True, id="a dip after a true regression"
        ),
        pytest.param(levels((20, 0.1), (6, 0.2), (3, 0.1)), 20, 29, False, id="gone, no extended window"),
        pytest.param(levels((20, 0.1), (9, 0.2)), 20, 29, True, id="stays, no extended window"),
    ],
)
def test_gone_away(
    series: np.ndarray[tuple[int], np.dtype[np.float64]], change: int, extended: int, passed: bool
) -> None:
    candidate = build_candidate(before=0.1, after=0.2)
    verdict = judge_gone_away(
        candidate, series, np.ones(len(series)), change_index=change, extended_index=extended
    )
    assert verdict.passed is passed


def test_gone_away_looks_the_same_way_down() -> None:
    falling = build_candidate(before=0.2, after=0.1)
    series = levels((20, 0.2), (5, 0.1), (4, 0.2), (1, 0.0))
    assert not judge_gone_away(falling, series, np.ones(30), change_index=20, extended_index=25).passed


def test_gone_away_without_data_at_the_end_confirms_nothing() -> None:
    series, weights = levels((20, 0.1), (5, 0.2), (5, np.nan)), np.ones(30)
    weights[25:] = 0.0
    assert not judge_gone_away(build_candidate(), series, weights, change_index=20, extended_index=25).passed


@pytest.mark.parametrize(
    ("candidate", "known", "passed"),
    [
        pytest.param(build_candidate(before=0.1, after=0.2), [], True, id="nothing known"),
        pytest.param(
            build_candidate(before=0.1, after=0.21),
            [build_candidate(before=0.1, after=0.2)],
            False,
            id="the same",
        ),
        pytest.param(
            build_candidate(before=0.15, after=0.2),
            [build_candidate(before=0.1, after=0.2)],
            False,
            id="historical window now holds old and new level",
        ),
        pytest.param(
            build_candidate(before=0.2, after=0.3),
            [build_candidate(before=0.1, after=0.2)],
            True,
            id="a second regression on top",
        ),
        pytest.param(
            build_candidate(before=0.1, after=0.2),
            [build_candidate(before=0.3, after=0.1)],
            True,
            id="an improvement before does not cover a regression",
        ),
        pytest.param(
            build_candidate(before=100.0, after=80.0),
            [build_candidate(before=100.0, after=81.0)],
            False,
            id="the same drop",
        ),
    ],
)
def test_same_regression(candidate: Candidate, known: list[Candidate], passed: bool) -> None:
    assert same(candidate, known, absolute=0.03) is passed


def same(
    candidate: Candidate,
    known: list[Candidate],
    *,
    absolute: float | None = None,
    relative: float | None = None,
    recent: float | None = None,
) -> bool:
    level = candidate.before if recent is None else recent
    return judge_same_regression(
        candidate, known, recent=level, analysis_s=100.0, absolute=absolute, relative=relative
    ).passed


@pytest.mark.parametrize(
    ("earlier_s", "recent", "passed"),
    [
        pytest.param(50, 0.1, False, id="at the same time, however it looked before"),
        pytest.param(500, 0.2, False, id="long ago, and the level is still there"),
        pytest.param(500, 0.1, True, id="long ago, rolled back, and back again"),
    ],
)
def test_a_regression_that_comes_back_after_a_rollback_is_new(
    earlier_s: float, recent: float, passed: bool
) -> None:
    candidate = build_candidate(before=0.12, after=0.2)
    known = replace(build_candidate(before=0.1, after=0.2), change_time=candidate.change_time - earlier_s)
    assert same(candidate, [known], absolute=0.03, recent=recent) is passed


def test_same_regression_by_a_relative_threshold() -> None:
    known = [build_candidate(before=100.0, after=110.0)]
    grown = build_candidate(before=110.0, after=117.0)
    assert same(grown, known, relative=0.05)
    assert not same(grown, known, relative=0.10)


def test_divide_writes_the_ledger() -> None:
    kept, lost = build_candidate("kept"), build_candidate("lost")
    passed, dropped = divide("step", [(kept, Verdict(True, 1, 2)), (lost, Verdict(False, 3.0, 4.0, "why"))])
    assert passed == (kept,)
    (line,) = dropped
    assert (line.candidate, line.step, line.statistic, line.bound, line.reason) == (
        lost,
        "step",
        3.0,
        4.0,
        "why",
    )
