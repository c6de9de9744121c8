from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.filters import ChangeSpans
from pipeline.analysis.filters.went_away import WentAway, judge_went_away
from pipeline.model import FloatArray

HISTORY, ANALYSIS, EXTENDED = 480, 24, 36
END = HISTORY + ANALYSIS + EXTENDED
POSITION = np.arange(END)


def between(start: int, end: int, height: float) -> FloatArray:
    """A level that rises at ``start`` and is back at ``end``, both counted from the analysis window."""
    return np.where((start + HISTORY <= POSITION) & (end + HISTORY > POSITION), height, 0.0)


def noise(rows: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(10.0, 1.0, (rows, END))


def judge(
    values: FloatArray, *, change: int, weights: FloatArray | None = None, rising: bool = True
) -> list[WentAway]:
    return judge_went_away(
        values,
        np.ones(END) if weights is None else weights,
        ChangeSpans(
            change_index=np.full(len(values), HISTORY + change),
            analysis_index=HISTORY,
            extended_index=HISTORY + ANALYSIS,
            resolution_s=600.0,
            rising=rising,
        ),
    )


def passed(judged: list[WentAway]) -> float:
    return float(np.mean([one.decision.passed for one in judged]))


FOREVER = 10**6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "change", "lasting"),
    [
        pytest.param(between(6, FOREVER, 1.5), 6, True, id="a step of 1.5 deviations of a window"),
        pytest.param(between(21, FOREVER, 4.0), 21, True, id="a step at the analysis window's end"),
        pytest.param(between(0, FOREVER, 1.5), 0, True, id="a step at the analysis window's beginning"),
        pytest.param(between(6, FOREVER, 500.0), 6, True, id="a huge step"),
        pytest.param(
            np.clip((POSITION - HISTORY - 6) / 12, 0.0, 1.0) * 3.0, 8, True, id="a roll-out over two hours"
        ),
        pytest.param(
            between(-30, -12, 6.0) + between(10, FOREVER, 2.0), 10, True, id="Figure 14: a spike hours before"
        ),
        pytest.param(
            between(-300, -296, 900.0) + between(10, FOREVER, 2.0), 10, True, id="a huge spike days before"
        ),
        pytest.param(
            between(6, FOREVER, 2.0) - between(20, 26, 2.0), 6, True, id="a dip after a true regression"
        ),
        pytest.param(between(6, 7, 12.0), 6, False, id="ten minutes"),
        pytest.param(between(6, 18, 3.0), 6, False, id="two hours"),
        pytest.param(between(6, 46, 3.0), 6, False, id="until shortly before the end"),
        pytest.param(between(20, 50, 500.0), 20, False, id="huge, until an hour and a half before the end"),
        pytest.param(
            between(6, FOREVER, 8.0) * 0.85 ** np.maximum(POSITION - HISTORY - 6, 0), 6, False, id="it decays"
        ),
        pytest.param(
            between(6, 46, 3.0) + between(59, 60, 90.0), 6, False, id="gone, but for a spike at the end"
        ),
        pytest.param(
            between(6, 18, 3.0) + between(45, FOREVER, 6.0), 6, False, id="gone, and another one later"
        ),
        pytest.param(
            between(6, 16, 12.0) + between(34, FOREVER, 6.0), 6, False, id="gone, and a smaller one later"
        ),
        pytest.param(
            between(6, 16, 6.0) + between(40, FOREVER, 6.0), 6, False, id="gone, and another like it later"
        ),
        pytest.param(
            between(6, 30, 6.0) + between(40, FOREVER, 6.0), 6, True, id="a dip shorter than what was before"
        ),
        pytest.param(
            between(6, 16, 12.0) + between(16, FOREVER, 5.0), 6, True, id="the first hours of a step are more"
        ),
        pytest.param(
            between(-60, FOREVER, 4.0) + between(6, 12, 9.0),
            6,
            False,
            id="a spike on a step of the night before",
        ),
        pytest.param(between(-60, FOREVER, 4.0) + between(6, FOREVER, 3.0), 6, True, id="a second step"),
    ],
)
@pytest.mark.parametrize("rising", [True, False])
def test_what_lasts_passes_and_what_went_away_does_not(
    shape: FloatArray, change: int, lasting: bool, rising: bool
) -> None:
    values = noise(100) + shape
    share = passed(judge(values if rising else -values, change=change, rising=rising))
    assert share >= 0.97 if lasting else share <= 0.03


def test_a_pattern_that_the_history_knows_is_no_regression() -> None:
    daily = np.where(POSITION % 144 >= 96, 3.0, 0.0)
    # As on the three days before, the peak begins at the change and lasts for eight hours.
    judged = judge(noise(50) + np.roll(daily, HISTORY + 6 - 528), change=6)
    assert not any(one.new_pattern.holds or one.significant.holds for one in judged)


def test_new_pattern_needs_no_trend_and_no_percentile() -> None:
    known = np.where((POSITION < HISTORY) & (POSITION % 144 >= 126), 20.0, 0.0)  # an eighth of the time at 30
    judged = judge(noise(50) + known + between(6, FOREVER, 8.0), change=6)
    assert all(one.new_pattern.holds and one.decision.passed for one in judged)
    assert not any(one.significant.holds for one in judged)


def test_what_is_left_of_a_larger_regression_is_a_new_pattern_if_sax_letters_can_show() -> None:
    partly = judge(noise(50) + between(6, 16, 40.0) + between(16, FOREVER, 8.0), change=6)
    assert all(one.new_pattern.holds for one in partly)
    barely = judge(noise(50) + between(6, 16, 40.0) + between(16, FOREVER, 0.5), change=6)
    assert {one.decision.code for one in barely} == {"returned"}


def test_what_returned_and_rose_anew_is_another_change() -> None:
    judged = judge(noise(50) + between(6, 18, 3.0) + between(45, FOREVER, 6.0), change=6)
    codes = {one.decision.code for one in judged if not one.decision.passed}
    assert codes == {"rose_anew"}


def test_the_window_of_the_return_is_reported() -> None:
    judged = judge(noise(50) + between(6, 30, 5.0), change=6)
    assert all(one.returned_index is not None for one in judged)
    returned = [one.returned_index - HISTORY for one in judged if one.returned_index is not None]
    assert np.median(returned) == 30
    assert all(one.returned_index is None for one in judge(noise(50) + between(6, FOREVER, 5.0), change=6))


def test_blocks_are_as_long_as_the_noise_demands() -> None:
    sizes = [judge(noise(1) + between(6, FOREVER, h), change=6)[0].pattern.block for h in (20.0, 2.0, 1.0)]
    assert sizes[0] == 1
    assert sizes[0] < sizes[1] < sizes[2] <= 54 // 3


def test_the_pattern_can_be_drawn() -> None:
    (one,) = judge(noise(1) + between(6, FOREVER, 30.0), change=6)
    assert (one.pattern.block, one.pattern.start, one.pattern.change) == (1, 0, HISTORY + 6)
    assert (len(one.pattern.before), len(one.pattern.after)) == (HISTORY + 6, END - HISTORY - 6)
    assert not set(one.pattern.after) & set(one.pattern.valid)
    assert one.before == pytest.approx(10.0, abs=0.3)
    assert one.delta == pytest.approx(30.0, abs=1.0)


def test_missing_windows_are_no_data_and_no_zeros() -> None:
    rng = np.random.default_rng(3)
    gaps = np.where(rng.random(END) < 0.3, 0.0, 1.0)
    with_nan = np.where(gaps > 0, 1.0, np.nan)
    assert passed(judge((noise(50) + between(6, FOREVER, 2.5)) * with_nan, change=6, weights=gaps)) >= 0.96
    assert passed(judge((noise(50) + between(6, 30, 3.0)) * with_nan, change=6, weights=gaps)) <= 0.04


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        pytest.param(HISTORY + ANALYSIS, END, "unconfirmed", id="extended window"),
        pytest.param(HISTORY + 6, END, "unconfirmed", id="all after the change"),
        pytest.param(0, END, "unconfirmed", id="everything"),
        pytest.param(0, HISTORY + 6, "within_percentiles", id="all before it"),
    ],
)
def test_no_data_confirms_nothing(start: int, end: int, code: str) -> None:
    values, weights = noise(1) + between(6, FOREVER, 5.0), np.ones(END)
    values[:, start:end], weights[start:end] = np.nan, 0.0
    (one,) = judge(values, change=6, weights=weights)
    assert not one.decision.passed
    assert one.decision.code == code
    assert np.isfinite([one.decision.statistic, one.decision.bound]).all()


@pytest.mark.parametrize(
    ("shape", "lasting"),
    [
        pytest.param(between(6, FOREVER, 1.0), True, id="step"),
        pytest.param(between(6, 40, 1.0), False, id="gone"),
        pytest.param(
            between(6, FOREVER, 1.0) - between(58, FOREVER, 1.0), True, id="two windows are a glitch"
        ),
        pytest.param(np.zeros(END), False, id="constant"),
    ],
)
def test_series_without_noise(shape: FloatArray, lasting: bool) -> None:
    assert passed(judge(0.1 + shape[None, :], change=6)) == lasting


def test_rare_counts_from_nothing() -> None:
    rng = np.random.default_rng(4)
    samples = rng.poisson(between(6, FOREVER, 2.0), (50, END)).astype(np.float64)
    assert passed(judge(samples / 40_000, change=6, weights=np.full(END, 40_000.0))) >= 0.96


def test_without_an_extended_window_the_last_points_decide() -> None:
    def run(shape: FloatArray) -> float:
        return passed(
            judge_went_away(
                noise(100)[:, : HISTORY + ANALYSIS] + shape[: HISTORY + ANALYSIS],
                np.ones(HISTORY + ANALYSIS),
                ChangeSpans(
                    change_index=np.full(100, HISTORY + 6),
                    analysis_index=HISTORY,
                    extended_index=HISTORY + ANALYSIS,
                    resolution_s=600.0,
                    rising=True,
                ),
            )
        )

    assert run(between(6, FOREVER, 2.0)) >= 0.97
    assert run(between(6, 14, 3.0)) <= 0.05


@pytest.mark.parametrize(
    ("change", "analysis", "extended"), [(0, 480, 504), (END, 480, 504), (486, 505, 504), (486, 480, END + 1)]
)
def test_indexes_outside_the_series_are_refused(change: int, analysis: int, extended: int) -> None:
    with pytest.raises(ValueError, match="must"):
        judge_went_away(
            noise(1),
            np.ones(END),
            ChangeSpans(
                change_index=np.array([change]),
                analysis_index=analysis,
                extended_index=extended,
                resolution_s=600.0,
                rising=True,
            ),
        )


def test_no_candidates() -> None:
    assert judge(np.zeros((0, END)), change=6) == []


OFFICE = np.where((POSITION % 144 >= 48) & (POSITION % 144 < 108), 1.0, 0.0)
OF_THREE = np.where(POSITION % 3 == 0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("data", "shape", "change", "lasting"),
    [
        pytest.param(OF_THREE, between(6, FOREVER, 5.0), 6, True, id="one of three: a step"),
        pytest.param(OF_THREE, between(6, 30, 5.0), 6, False, id="one of three: four hours"),
        # The history ends in the night before its fourth day at work.
        pytest.param(OFFICE, between(6, FOREVER, 2.5), 6, True, id="ten hours a day: a step"),
        pytest.param(OFFICE, between(6, 32, 4.0), 6, False, id="ten hours a day: gone in the afternoon"),
    ],
)
def test_windows_without_data_are_no_windows(
    data: FloatArray, shape: FloatArray, change: int, lasting: bool
) -> None:
    values = np.where(data > 0, noise(40) + shape, np.nan)
    judged = judge(values, change=change, weights=data)
    assert passed(judged) == pytest.approx(1.0 if lasting else 0.0, abs=0.1)
    shown = [one.pattern.begins for one in judged]
    assert all(data[list(begins)].all() for begins in shown)  # SAX letters begin where there is data
    assert all(one.returned_index is None or data[one.returned_index] for one in judged)


def test_rows_without_data_after_the_change_do_not_stop_others() -> None:
    data = np.ones((2, END))
    data[0, HISTORY + 6 :] = 0.0
    data[:, HISTORY - 20 : HISTORY - 10] = 0.0
    values = np.where(data > 0, noise(2) + between(6, FOREVER, 8.0), np.nan)
    gone, stays = judge(values, change=6, weights=data)
    assert gone.decision.code == "unconfirmed"
    assert stays.decision.passed
