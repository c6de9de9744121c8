"""How far a series rose within those who send its samples, each held against its own last samples.

A mix that was fitted over a whole span knows one ratio of each label and host. What began in one region some
days ago is not in it, nor is what one host does by itself while it sends a third of all samples. So a
candidate is asked once more, by direct standardisation (Breslow and Day, 1987): the rise of each host, or of
all hosts of equal labels, at the share that they usually have of the CPU time, which is that of the samples
where nothing says how often they are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.mix.standardise import OWN_SHARE, rows_by
from pipeline.analysis.mix.terms import RELEASE_LABELS
from pipeline.model import (
    RATE_LABEL,
    BoolArray,
    Decision,
    FloatArray,
    SeriesKey,
    SeriesMatrix,
    StrataMatrix,
    Stratum,
)

KEY = "within_strata"

_KNOWN = 0.5
"""Share of the CPU time, of the usual and of that after, whose senders must be known on both sides."""

_USUAL = 0.25
"""Part of its usual share that a sender must have in a span to be known from it."""

_ERRORS = 2.576
"""Standard errors below which one true regression in 200 comes to lie."""


@dataclass(frozen=True, slots=True)
class RiseWithin:
    """By how much a series rose around one change point."""

    within: float  # within those who send samples, at their usual shares
    error: float  # of that, by sampling
    whole: float  # of all samples together, as scans read them, between the same spans


def rises_within(
    usual: StrataMatrix, before: Sequence[StrataMatrix], after: StrataMatrix
) -> dict[SeriesKey, tuple[float, float]]:
    """Return the rise of each series within those who send samples, with its standard error.

    Args:
        usual: Who sends samples over a long time.
        before: Spans before a change, the nearest first: of each sender the first counts in which it has a
            good part of its usual samples.
        after: The span after the change.

    Returns:
        Nothing if too few of the samples are of senders that are known before and after.
    """
    if not before:
        return {}
    every = sorted({*usual.strata, *after.strata, *(one for span in before for one in span.strata)})
    for with_host in (True, False):
        cells = _Cells(every, with_host=with_host)
        shares = cells.shares(usual.strata, usual.totals.sum(axis=1))
        then = _latest([cells.counted(span, after.series) for span in before], shares)
        now = cells.counted(after, after.series)
        known = then.present & now.holds(shares)
        held = (shares[known].sum(), now.shares[known].sum())
        if known.sum() > 1 and min(held) >= _KNOWN:
            rises, errors = _standardised(shares[known], then.of(known), now.of(known))
            return dict(zip(after.series, zip(rises.tolist(), errors.tolist(), strict=True), strict=True))
    return {}


def rise_of_all(
    levels: SeriesMatrix, key: SeriesKey, before: tuple[float, float], after: tuple[float, float]
) -> float:
    """Return how far a series rose between two spans of time (s), of all samples together.

    Returns:
        NaN where the series is unknown or either span has no samples.
    """
    if key not in levels.series:
        return float("nan")
    row = levels.series.index(key)
    times = levels.start + levels.resolution_s * np.arange(len(levels.totals))
    rates = []
    for begin, end in (before, after):
        inside = (times >= begin - 1e-6) & (times < end - 1e-6)
        total = levels.totals[inside].sum()
        rates.append(levels.samples[row, inside].sum() / total if total > 0 else np.nan)
    return float(rates[1] - rates[0])


def decide(rise: float, found: RiseWithin) -> Decision:
    """Return whether most of a candidate's rise is left within those who send its samples.

    It is dropped where a rise that is all its own would hardly ever have so little left.

    What the mix made between the spans is the difference of both rises: cycles of time are in both.

    Args:
        rise: Of the candidate.
        found: What was counted around it.
    """
    own = 1 - (found.whole - found.within) / rise
    bound = min(OWN_SHARE, 1 - _ERRORS * found.error / abs(rise))
    return Decision(KEY, own >= bound, own, bound, "" if own >= bound else "usual")


@dataclass(frozen=True, slots=True)
class _Counted:
    """What senders sent in a span."""

    totals: FloatArray  # (cells,) samples
    samples: FloatArray  # (series, cells)
    shares: FloatArray  # (cells,) of the CPU time

    @property
    def present(self) -> BoolArray:
        """Which senders have samples: (cells,)."""
        return np.asarray(self.totals > 0)

    def holds(self, shares: FloatArray) -> BoolArray:
        """Return which senders have a good part of the share that they usually have: (cells,)."""
        return self.present & (self.shares >= _USUAL * shares)

    def of(self, chosen: BoolArray) -> _Counted:
        """Return what is of some senders."""
        return _Counted(self.totals[chosen], self.samples[:, chosen], self.shares[chosen])


class _Cells:
    """Whose samples are held against each other, whatever they run and how often they are taken."""

    def __init__(self, strata: Sequence[Stratum], *, with_host: bool) -> None:
        self._with_host = with_host
        self._by_rate = all(stratum.rate_hz for stratum in strata)
        cells = sorted({self._cell(stratum) for stratum in strata})
        self._number = {cell: number for number, cell in enumerate(cells)}

    def sums(self, strata: Sequence[Stratum], values: FloatArray) -> FloatArray:
        """Return the sums over the strata of each cell: (rows, strata) to (rows, cells)."""
        of = np.array([self._number[self._cell(stratum)] for stratum in strata], dtype=np.int64)
        members = of[:, None] == np.arange(len(self._number))
        return np.asarray(values @ members.astype(np.float64))

    def shares(self, strata: Sequence[Stratum], totals: FloatArray) -> FloatArray:
        """Return the share of the CPU time of each cell: (strata,) samples to (cells,)."""
        rates = [stratum.rate_hz for stratum in strata] if self._by_rate else np.ones(len(strata))
        time = self.sums(strata, (totals / np.asarray(rates))[None, :])[0]
        return np.asarray(time / max(time.sum(), 1e-300))

    def counted(self, span: StrataMatrix, series: Sequence[SeriesKey]) -> _Counted:
        """Return the samples in the windows that counts are of."""
        samples = np.zeros((len(series), len(span.strata)))
        rows = rows_by(span.series)  # those without a sample are absent
        known = [number for number, key in enumerate(series) if key in rows]
        samples[known] = span.samples[[rows[series[number]] for number in known]]
        totals = span.counted_totals
        return _Counted(
            self.sums(span.strata, totals[None, :])[0],
            self.sums(span.strata, samples),
            self.shares(span.strata, totals),
        )

    def _cell(self, stratum: Stratum) -> Stratum:
        other = RELEASE_LABELS | {RATE_LABEL}
        labels = tuple(pair for pair in stratum.labels if pair[0].lower() not in other)
        return Stratum(stratum.host if self._with_host else "", "", labels)


def _latest(spans: Sequence[_Counted], shares: FloatArray) -> _Counted:
    """Return what each cell sent in the first span in which it has a good part of what it usually has."""
    found = replace(spans[0], totals=np.zeros(len(shares)), samples=np.zeros(spans[0].samples.shape))
    for span in spans:
        chosen = ~found.present & span.holds(shares)
        found.totals[chosen], found.samples[:, chosen] = span.totals[chosen], span.samples[:, chosen]
    return found


def _standardised(shares: FloatArray, then: _Counted, now: _Counted) -> tuple[FloatArray, FloatArray]:
    """Return the rises at usual shares, and their standard errors: (series,)."""
    weights = shares / shares.sum()
    levels = [counted.samples / counted.totals for counted in (then, now)]
    # One sample more keeps a share of 0 from being certain.
    variances = [(counted.samples + 1) / counted.totals**2 for counted in (then, now)]
    return (levels[1] - levels[0]) @ weights, np.sqrt(sum(variances) @ weights**2)
