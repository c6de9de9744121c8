from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.filters import ChangeSpans
from pipeline.analysis.filters.went_away import WentAway, judge_went_away
from pipeline.model import FloatArray, IntArray

HISTORY, ANALYSIS, EXTENDED = 120, 24, 12
END = HISTORY + ANALYSIS + EXTENDED
ROWS = 4


@st.composite
def candidates(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, IntArray]:
    """Rows of noise with a rise in the analysis window, of any height and length, and missing windows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    change = rng.integers(HISTORY, HISTORY + ANALYSIS - 2, ROWS)
    length = rng.integers(1, END, ROWS)
    position = np.arange(END)
    risen = (position >= change[:, None]) & (position < (change + length)[:, None])
    values = rng.normal(0, 1, (ROWS, END)) + risen * np.exp(rng.uniform(-1, 4, ROWS))[:, None]
    weights = np.where(rng.random(END) < draw(st.sampled_from([0.0, 0.2])), 0.0, rng.uniform(0.5, 2.0, END))
    return np.where(weights > 0, values, np.nan), weights, change


def judge(
    values: FloatArray, weights: FloatArray, change: IntArray, *, rising: bool = True
) -> list[WentAway]:
    return judge_went_away(
        values,
        weights,
        ChangeSpans(
            change_index=change,
            analysis_index=HISTORY,
            extended_index=HISTORY + ANALYSIS,
            resolution_s=1800.0,
            rising=rising,
        ),
    )


def decisions(judged: list[WentAway]) -> list[tuple[bool, str, str, int]]:
    return [(w.decision.passed, w.decision.code, w.pattern.after, w.pattern.block) for w in judged]


@settings(deadline=None, max_examples=50)
@given(candidates(), st.sampled_from([2.0**-20, 0.25, 8.0, 2.0**20]), st.sampled_from([-64.0, 0.0, 1024.0]))
def test_shift_and_scale_change_no_decision(
    drawn: tuple[FloatArray, FloatArray, IntArray], scale: float, shift: float
) -> None:
    values, weights, change = drawn
    assert decisions(judge((values + shift) * scale, weights, change)) == decisions(
        judge(values, weights, change)
    )


@settings(deadline=None, max_examples=50)
@given(candidates())
def test_a_fall_is_judged_as_the_rise_that_mirrors_it(
    drawn: tuple[FloatArray, FloatArray, IntArray],
) -> None:
    values, weights, change = drawn
    up, down = judge(values, weights, change), judge(-values, weights, change, rising=False)
    assert decisions(down) == decisions(up)
    assert [-one.delta for one in down] == [one.delta for one in up]
    assert [-one.significant.statistic for one in down] == [one.significant.statistic for one in up]


@settings(deadline=None, max_examples=50)
@given(candidates(), st.permutations(range(ROWS)))
def test_rows_are_judged_by_themselves_in_any_order(
    drawn: tuple[FloatArray, FloatArray, IntArray], order: list[int]
) -> None:
    values, weights, change = drawn
    together = decisions(judge(values, weights, change))
    assert decisions(judge(values[order], weights, change[order])) == [together[row] for row in order]
    alone = [judge(values[row : row + 1], weights, change[row : row + 1])[0] for row in range(ROWS)]
    assert decisions(alone) == together


@settings(deadline=None, max_examples=50)
@given(candidates(), st.sampled_from([0.125, 4.0, 1024.0]))
def test_only_the_proportion_of_weights_matters(
    drawn: tuple[FloatArray, FloatArray, IntArray], factor: float
) -> None:
    values, weights, change = drawn
    assert decisions(judge(values, weights * factor, change)) == decisions(judge(values, weights, change))


@settings(deadline=None, max_examples=50)
@given(candidates())
def test_the_decision_is_the_papers_predicate(drawn: tuple[FloatArray, FloatArray, IntArray]) -> None:
    for one in judge(*drawn):
        lasting = one.significant.holds and one.lasting.holds and not one.gone_away.holds
        assert one.decision.passed == (one.new_pattern.holds or lasting)
        assert one.decision.passed or one.decision.code
        terms = (one.new_pattern, one.significant, one.lasting, one.gone_away)
        assert np.isfinite([number for term in terms for number in (term.statistic, term.bound)]).all()
