"""Series that a scan could not judge, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.change_point import SideSums, p_values, signed_roots
from pipeline.analysis.detect.matrix import least_history
from pipeline.analysis.detect.normalised import Normalised
from pipeline.model import BoolArray, Candidate, FloatArray, IntArray, Unjudged

CODES = (
    *("no_data", "no_history", "windows_empty", "noise_unknown", "few_samples"),
    *("direction_unknown", "store_refused"),
)
"""Reasons for which a scan judges no series, in the order of the tests (words: pipeline.views.report)."""

Steps = tuple[Sequence[Candidate], Sequence[Unjudged]]
"""The candidates of a scan, and which series could not be judged."""

NO_DATA = Unjudged("no_data", 0, 0.0, 1.0)
"""Reason of a scan without any series."""

STORE_REFUSED = Unjudged("store_refused", 0, 0.0, 0.0)
"""Reason of a scan that could not be made."""

_Lack = tuple[str, BoolArray, FloatArray | IntArray, FloatArray | float]

_LEAST_DEGREES = 1.0
"""Degrees of freedom of an estimate from two pairs of blocks or fewer."""


@dataclass(frozen=True, slots=True, eq=False)
class Grounds:
    """Quantities by which series count as judged: (series,) each."""

    share: FloatArray  # of the history's windows with data
    least_share: FloatArray  # that is needed
    windows: IntArray  # with data since the analysis window began; none if it has none itself
    splits: IntArray  # of the analysis window that have data enough on either side
    degrees_of_freedom: FloatArray  # of the noise
    least_p: FloatArray  # p-value of the largest change possible; 0 for values, which have no largest

    @property
    def has_history(self) -> BoolArray:
        """True for series with a history; see ``pipeline.analysis.detect.matrix.has_history``."""
        return np.asarray(self.share >= self.least_share)


def find_unjudged(grounds: Grounds, *, min_points: int, significance: float) -> tuple[Unjudged, ...]:
    """Count the series that could not be judged, each by its first reason.

    Args:
        grounds: What each is judged on.
        min_points: Windows with data that are needed on either side of a change.
        significance: That a change must reach.

    Returns:
        One record a reason, with the median of the series' numbers.
    """
    rest = np.ones(len(grounds.share), dtype=np.bool_)
    unjudged = []
    for code, lacks, value, bound in _lacking(grounds, min_points, significance):
        rows = rest & lacks
        if rows.any():
            numbers = (value, np.broadcast_to(bound, rows.shape))
            middle = [float(np.median(number[rows])) for number in numbers]
            unjudged.append(Unjudged(code, int(rows.sum()), *middle))
        rest &= ~lacks
    return tuple(unjudged)


def are_judged(grounds: Grounds, *, min_points: int, significance: float) -> BoolArray:
    """Return True for series that can be judged: (series,)."""
    lacks = [lacks for _, lacks, _, _ in _lacking(grounds, min_points, significance)]
    return np.asarray(~np.logical_or.reduce(lacks))


def _lacking(grounds: Grounds, min_points: int, significance: float) -> tuple[_Lack, ...]:
    """Return each possible lack: its code, the series that have it, the value and its bound."""
    return (
        ("no_history", ~grounds.has_history, grounds.share, grounds.least_share),
        ("windows_empty", grounds.splits == 0, grounds.windows, float(min_points)),
        (
            "noise_unknown",
            grounds.degrees_of_freedom <= _LEAST_DEGREES,
            grounds.degrees_of_freedom,
            _LEAST_DEGREES,
        ),
        ("few_samples", grounds.least_p >= significance, grounds.least_p, significance),
    )


def grounds_of(
    series: Normalised, totals: FloatArray, splits: IntArray, before: slice, since: slice, least: float
) -> Grounds:
    """Return the grounds on which each series of a scan counts as judged.

    Args:
        series: In the form in which the scan compares them.
        totals: (windows,) of the service.
        splits: (series,) that were searched.
        before: The windows of the history.
        since: Those after it.
        least: Share of the history with data, see ``has_history``.
    """
    before_data = series.exposure[:, before] > 0
    return Grounds(
        share=before_data.mean(axis=1) if before_data.shape[1] else np.zeros(len(before_data)),
        least_share=least_history(before_data, least),
        windows=np.where(splits > 0, (series.exposure[:, since] > 0).sum(axis=1), 0),
        splits=splits,
        degrees_of_freedom=series.degrees_of_freedom,
        least_p=_least_p(series, float(totals[since].sum()), before, since),
    )


def _least_p(series: Normalised, most: float, before: slice, since: slice) -> FloatArray:
    """Return the p-value that the largest change possible would have: (series,).

    A count may fall to nothing or rise to all samples; a value has no largest change.
    """
    rows = len(series.observed)
    if series.family == "values":
        return np.zeros(rows)
    left, exposure = series.observed[:, before].sum(axis=1), series.exposure[:, before].sum(axis=1)
    later = series.exposure[:, since].sum(axis=1)
    ends = [
        np.abs(signed_roots(SideSums(left, exposure, np.full(rows, after), later), series.family))
        for after in (0.0, most)
    ]
    roots = np.maximum(*ends) / np.sqrt(np.where(series.variance > 0, series.variance, 1.0))
    return p_values(roots, series.degrees_of_freedom, np.zeros(rows), np.ones(rows, dtype=np.int64))


def merge_unjudged(parts: Iterable[Unjudged]) -> tuple[Unjudged, ...]:
    """Add up unjudged series of parts of a matrix by reason; the numbers are those of the largest part."""
    merged: dict[str, Unjudged] = {}
    for part in sorted(parts, key=lambda whole: -whole.series):
        former = merged.get(part.code)
        series = part.series + (former.series if former else 0)
        largest = former or part
        merged[part.code] = Unjudged(part.code, series, largest.value, largest.bound)
    return tuple(merged[code] for code in CODES if code in merged)
