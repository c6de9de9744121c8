"""Went-away: it passes lasting regressions, and drops troubles that came and went (FBDetect §5.4.3).

The predicate is the paper's, with its constants::

    NEWPATTERN or [SIGNIFICANTREGRESSION and LASTINGTREND and not REGRESSIONGONEAWAY]

The paper leaves open at which scale its terms look at a series. A regression of 0.005 % lies far below the
noise of one window, where neither letters nor percentiles of single windows can see it. So every term works
on means of blocks, which is also how SAX begins (piecewise aggregation): blocks just long enough that letters
distinguish the change from the history's noise. A letter is beyond the history's valid ones if its level is
above the history's 97 % quantile (X = 3 %), which a change of 1.88 + 1.96 = 3.84 deviations of a block's
mean achieves 39 times in 40; the blocks are made that long, as far as three of them fit in after the change.

What else was open, and how it is settled:

- *Post-regression* is all from the change point to the end, the extended window included; *pre-regression* is
  the historical window, by blocks of the same length at every place in it.
- *The value range* that is divided into buckets is that of the blocks after the change and of the history
  without its outermost 3 % on either side: those cannot make a letter valid, so they do not stretch it.
- *Most letters* are more than half, and of the last three windows one: what ends in an old pattern is no new
  one. Where the series has turned since (see the last point), the letter of the median since then has to be
  invalid, and what remains must lie above the level before by what letters distinguish, 3.84 deviations.
- *The previous day* is the day before the change point, or as long a time as there is after it, if longer.
- *The entire analysis window* of the trend is what follows the change and as long a time before it: in any
  other proportion, half or more of the pairs lie on the same side of a clean step, and the median slope is 0.
- *The window with the lower slope* is the lower of those that have an upward trend: after a clean step there
  is none. After a step that decays (a downward trend) what counts is how far the trend's line still lies
  above the level before when it ends.
- *The slope* is compared by its rise over the window, in units of the series, with 1.5 × 1.4826 × the median
  absolute deviation of the history's blocks.
- *The last few data points* are as many as speak most for a return: the evidence is the log-likelihood ratio
  of "back at the level before" against "still there" summed from the end, as in Wald's sequential test.
  Under a lasting change its exponential is a martingale, so it exceeds log(1 / α) at any length with
  probability α at most (Ville's inequality).

Windows in which no series has data are no windows: a night in which a service is closed is no time in which
a change may go away, and where data come in one window of three neighbours are those with data. They are left
out, and what is counted in windows counts those with data.

By the paper's percentiles a change must reach above what the history often reached anyway: a season as large
as the change has to be taken off the values before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.sax import spell
from pipeline.analysis.filters.evidence import ChangeSpans, FilterCase, decide_by_rows
from pipeline.analysis.filters.went_away_scale import Frame, WentAwayConfig, measure
from pipeline.analysis.filters.went_away_terms import (
    BlockedSeries,
    PredicateTerm,
    judge_gone_away,
    judge_lasting,
    judge_new_pattern,
    judge_significant,
    spread_letters,
)
from pipeline.analysis.statistics.blocks import adjacent_starts, means_at, moving_starts, running_sums
from pipeline.analysis.statistics.robust import median_deviations
from pipeline.model import Candidate, Decision, FloatArray, IntArray
from pipeline.model.units import DAY_S

_CHUNK_ROWS = 256


@dataclass(frozen=True, slots=True)
class Pattern:
    """A series in letters, one a block; for a fall, ``a`` is the highest bucket and the width is negative."""

    block: int  # windows with data per letter
    start: int  # first window of the first letter of ``before``
    change: int  # first window of the first letter of ``after``
    begins: tuple[int, ...]  # first windows of the letters of ``before``, and of ``after``
    before: str
    after: str
    valid: str  # letters that are valid in the history
    lowest: float  # level at which bucket ``a`` begins
    width: float  # of a bucket


@dataclass(frozen=True, slots=True)
class WentAway:
    """The predicate of one candidate, term by term."""

    before: float  # level before the change; NaN without data
    delta: float  # change of level in the analysis window
    pattern: Pattern
    new_pattern: PredicateTerm  # share of invalid letters
    significant: PredicateTerm  # percentile (a level) after the change, against those before
    lasting: PredicateTerm  # by how much the trend leads to the worse, or the test's score if there is none
    gone_away: PredicateTerm  # log-likelihood ratio of a return
    returned_index: int | None  # window since which the series is back at the level before

    @property
    def decision(self) -> Decision:
        """The decision, with the term that decided it; of several terms the plainest."""
        if self.new_pattern.holds:
            return _decided(self.new_pattern, code="new_pattern")
        if self.gone_away.holds:
            return _decided(self.gone_away)
        if not self.significant.holds:
            return _decided(self.significant)
        if not self.lasting.holds:
            return _decided(self.lasting)
        return _decided(self.lasting, code="stays")


def decide(candidates: Sequence[Candidate], case: FilterCase) -> list[Decision]:
    """Decide on each candidate by its series without the daily cycle."""
    return decide_by_rows("went_away", candidates, case, case.levels.levels, _decisions)


def _decisions(values: FloatArray, weights: FloatArray, spans: ChangeSpans) -> list[Decision]:
    return [row.decision for row in judge_went_away(values, weights, spans)]


def judge_went_away(
    values: FloatArray, weights: FloatArray, spans: ChangeSpans, config: WentAwayConfig | None = None
) -> list[WentAway]:
    """Judge each row's change point by the went-away predicate.

    Args:
        values: (rows, windows) levels; NaN where the weight is 0.
        weights: (windows,) or (rows, windows), not negative: inverse variances up to a factor; 0 is no data.
        spans: Where they change, from window 1 to windows - 1, and how the scan's windows divide.
        config: Settings; the paper's by default.

    Raises:
        ValueError: An index lies outside the series.
    """
    config = config or WentAwayConfig()
    windows = values.shape[1]
    change_index = np.asarray(spans.change_index, dtype=np.int64)
    if not 0 <= spans.analysis_index <= spans.extended_index <= windows:
        raise ValueError("the analysis and the extended window must lie within the series, in this order")
    if len(change_index) and not (change_index.min() >= 1 and change_index.max() < windows):
        raise ValueError("a change must have windows before and after it")
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), values.shape)
    judged: list[WentAway] = []
    for row in range(0, len(values), _CHUNK_ROWS):
        rows = slice(row, row + _CHUNK_ROWS)
        judged += _judge_some(values[rows], weights[rows], change_index[rows], spans, config)
    return judged


def _judge_some(
    values: FloatArray,
    weights: FloatArray,
    change_index: IntArray,
    spans: ChangeSpans,
    config: WentAwayConfig,
) -> list[WentAway]:
    """Judge rows by the windows with data; rows without data on one side of the change by all windows."""
    windows = values.shape[1]
    with_data = np.flatnonzero((weights > 0).any(axis=0))
    change = np.searchsorted(with_data, change_index)
    between = (change >= 1) & (change < len(with_data))
    columns = with_data if between.all() else np.arange(windows)
    if not between.all() and between.any():
        parts = [
            iter(_judge_some(values[part], weights[part], change_index[part], spans, config))
            for part in (~between, between)
        ]
        return [next(parts[int(number)]) for number in between]
    upward = values[:, columns] if spans.rising else -values[:, columns]
    change = np.searchsorted(columns, change_index)
    frame = Frame(
        values=np.where(weights[:, columns] > 0, upward, np.nan),
        weights=weights[:, columns],
        change=change,
        history=np.minimum(change, np.searchsorted(columns, spans.analysis_index)),
        extended=int(np.searchsorted(columns, spans.extended_index)),
        is_extended=spans.extended_index < windows,
        day=max(round(DAY_S / spans.resolution_s * len(columns) / (windows - columns[0])), 1),
    )
    return _judge(frame, columns, config, 1.0 if spans.rising else -1.0)


def _judge(frame: Frame, columns: IntArray, config: WentAwayConfig, sign: float) -> list[WentAway]:
    """Judge a frame of the given windows of the scan: (windows of the frame,)."""
    sums = running_sums(frame.values, frame.weights)
    level = measure(frame, sums, config)
    history = means_at(
        sums, moving_starts(np.zeros_like(frame.history), frame.history, level.block), level.block
    )
    starts = adjacent_starts(frame.change, frame.end, level.block)
    after = means_at(sums, starts, level.block)
    deviation = config.normality * median_deviations(history)
    alphabet = spread_letters(history, after, config)
    measured = BlockedSeries(frame, sums, level, history, after, deviation, alphabet)
    gone, turn = judge_gone_away(frame, level, config)
    new = judge_new_pattern(measured, gone, turn, config)
    significant, lasting = judge_significant(measured, config), judge_lasting(measured, config)
    old_starts = adjacent_starts(np.zeros_like(frame.change), frame.change, level.block)
    old = alphabet.read(means_at(sums, old_starts, level.block))
    judged = []
    moments = np.append(columns, columns[-1] + 1)  # the end of the last is no window
    for row in range(len(frame.values)):
        first, second = old_starts[row] >= 0, starts[row] >= 0
        begins = moments[old_starts[row][first]], moments[starts[row][second]]
        pattern = Pattern(
            block=int(level.block[row]),
            start=int(begins[0].min(initial=moments[frame.change[row]])),
            change=int(begins[1].min(initial=moments[-1])),
            begins=tuple(np.concatenate(begins).tolist()),
            before=spell(old[row][first]),
            after=spell(alphabet.after[row][second]),
            valid=spell(np.flatnonzero(alphabet.valid[row])),
            lowest=sign * float(alphabet.lowest[row]),
            width=sign * float(alphabet.width[row]),
        )
        judged.append(
            WentAway(
                sign * float(level.before[row]),
                sign * float(level.delta[row]),
                pattern,
                new.row(row),
                significant.row(row, sign=sign),
                lasting.row(row),
                gone.row(row, against=True),
                int(columns[turn[row]]) if turn[row] < frame.end[row] else None,
            )
        )
    return judged


def _decided(term: PredicateTerm, code: str = "") -> Decision:
    """Pass by a code, or drop by the term's own."""
    return Decision("went_away", bool(code), term.statistic, term.bound, code or term.code)
