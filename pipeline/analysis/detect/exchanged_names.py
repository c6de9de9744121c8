"""Exchanged names: series that began together when as many others ended, and candidates among them.

Some runtimes make names anew in every process (``pipeline.counting.names`` knows the usual ones). At a
restart many series end and as many begin, with the same cost in all: an exchange of names. What began in one
has no history of its own, so that nothing can be said of a rise from nothing; if cost rose with it, callers
and callees that kept their names show it.

A series began, or ended, if at the rate of its life it would hardly have had no samples before, or since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.detect.matrix import rows_by_series
from pipeline.model import BoolArray, Candidate, Decision, FloatArray, IntArray, SeriesKey, SeriesMatrix
from pipeline.model.units import DAY_S

STEP = "exchanged_names"

_BLOCK = 4096  # series that are looked at together


@dataclass(frozen=True, slots=True)
class ExchangeConfig:
    """When names that begin and end together are an exchange."""

    least: int = 10  # series that begin, and that end: fewer are renames, which stacks show
    apart: int = 1  # windows on either side that are the same time: a restart is no moment
    expected: float = 10.0  # samples that a life would have had outside of it: e-10 by chance
    slack: float = 5.0  # samples that a name would have had before it was first seen: e-5 by chance
    ratio: float = 1.5  # by which the cost of those that end and of those that begin differs at most
    life_s: float = DAY_S  # that a series must have lived before a change: what is younger has seen no cycle
    share: float = 0.5  # of a rise that must be within the life of its series


@dataclass(frozen=True, slots=True, eq=False)
class Exchanges:
    """The series of a matrix that began, or ended, in an exchange of names."""

    first: IntArray  # (series,) the first window with a sample
    began: BoolArray  # (series,)
    ended: BoolArray  # (series,)
    last: IntArray  # (series,) the last window with a sample
    rate: FloatArray  # (series,) gCPU between the two
    windows: IntArray  # (exchanges,) about where names were exchanged, ascending

    @property
    def one_life(self) -> int:
        """Number of series of one process only: they began in one exchange and ended in another."""
        return int((self.began & self.ended).sum())


def find_exchanges(matrix: SeriesMatrix, config: ExchangeConfig | None = None) -> Exchanges:
    """Find the exchanges of names in gCPU series: (series × windows) counts."""
    config = config or ExchangeConfig()
    series, windows = matrix.samples.shape
    first, last, rate = _lives(matrix)
    running = np.concatenate([[0.0], np.cumsum(matrix.totals)])
    began = rate * running[first] > config.expected
    ended = rate * (running[-1] - running[last + 1]) > config.expected
    # Counted by windows with data: a name ends before a gap, and another begins after it.
    data = np.concatenate([[0], np.cumsum(matrix.totals > 0)])
    start, end = data[first], data[last + 1]
    reach = 2 * config.apart + 1

    def around(at: IntArray, weights: FloatArray | None = None) -> FloatArray:
        """Return the sum over each window and its neighbours."""
        sums = np.bincount(at, weights, minlength=windows + 1)
        return np.convolve(sums, np.ones(reach), mode="same")

    born, died = around(start[began]), around(end[ended])
    cost_born, cost_died = around(start[began], rate[began]), around(end[ended], rate[ended])
    exchanged = (born >= config.least) & (died >= config.least)
    exchanged &= (cost_born <= config.ratio * cost_died) & (cost_died <= config.ratio * cost_born)
    # A rare name is first seen some time after it was made, and last seen some time before it ended.
    wait = np.divide(config.slack, rate, out=np.zeros(series), where=rate > 0)
    made = np.searchsorted(running, running[first] - wait, side="right") - 1
    gone = np.searchsorted(running, running[last + 1] + wait, side="left")
    passed = np.concatenate([[0], np.cumsum(exchanged[data])])

    def holds(earliest: IntArray, latest: IntArray) -> BoolArray:
        """Return True if an exchange lies between windows, or next to them: (series,)."""
        low, high = np.maximum(earliest - config.apart, 0), np.minimum(latest + config.apart, windows)
        return np.asarray(passed[high + 1] > passed[low], dtype=np.bool_)

    exchanges = Exchanges(
        first,
        began & holds(made, first),
        ended & holds(last + 1, gone),
        last,
        rate,
        _middles(exchanged[data]),
    )
    if exchanges.one_life < config.least:
        return exchanges
    # Where names are known to live for one process only, those of the morning are seen hours after a restart.
    late = round(config.life_s / matrix.resolution_s)
    return replace(exchanges, began=began & holds(np.minimum(made, first - late), first))


def decide(
    candidates: Sequence[Candidate],
    matrix: SeriesMatrix,
    exchanges: Exchanges,
    config: ExchangeConfig | None = None,
) -> list[Decision]:
    """Decide on each candidate whether its series has a history that it rose from.

    A series that began in an exchange has, once it has lived for some time, if most of the rise is within its
    life. The statistic is that share of the rise.

    Args:
        candidates: Of the matrix's series.
        matrix: That was searched.
        exchanges: Found in it.
        config: Settings.
    """
    config = config or ExchangeConfig()
    rows = rows_by_series(matrix)
    decisions = []
    for candidate in candidates:
        row = rows[SeriesKey(candidate.metric_kind, candidate.metric)]
        share = 1.0
        if exchanges.began[row]:
            share = _share_within_life(candidate, matrix, row, int(exchanges.first[row]), config)
        lasting = share >= config.share
        decisions.append(Decision(STEP, lasting, share, config.share, "" if lasting else "exchanged"))
    return decisions


def _share_within_life(
    candidate: Candidate, matrix: SeriesMatrix, row: int, first: int, config: ExchangeConfig
) -> float:
    """Return the share of a candidate's rise that is above the level of its series since it began."""
    change = round((candidate.change_time - matrix.start) / matrix.resolution_s)
    life = slice(first + config.apart, change)
    total = float(matrix.totals[life].sum())
    if (change - first) * matrix.resolution_s < config.life_s or not total or not candidate.delta:
        return 0.0
    level = float(matrix.samples[row, life].sum()) / total
    return (candidate.after - level) / candidate.delta


def _middles(chosen: BoolArray) -> IntArray:
    """Return the middle of each run of chosen windows."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return np.asarray((edges[::2] + edges[1::2] - 1) // 2, dtype=np.int64)


def _lives(matrix: SeriesMatrix) -> tuple[IntArray, IntArray, FloatArray]:
    """Return each series' first and last window with a sample, and its gCPU between: (series,) all."""
    series, windows = matrix.samples.shape
    running = np.concatenate([[0.0], np.cumsum(matrix.totals)])
    first, last = np.zeros(series, dtype=np.int64), np.full(series, windows - 1)
    counts = np.zeros(series)
    for start in range(0, series, _BLOCK):
        rows = slice(start, start + _BLOCK)
        held = matrix.samples[rows] > 0
        some = held.any(axis=1)
        first[rows] = np.where(some, held.argmax(axis=1), 0)
        last[rows] = np.where(some, windows - 1 - held[:, ::-1].argmax(axis=1), windows - 1)
        counts[rows] = matrix.samples[rows].sum(axis=1)
    lived = running[last + 1] - running[first]
    return first, last, np.divide(counts, lived, out=np.zeros(series), where=lived > 0)
