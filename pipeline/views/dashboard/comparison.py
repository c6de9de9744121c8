"""Stack samples of a selection and of its comparison, read from the store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pipeline.analysis.statistics.dispersion import between_senders, between_windows
from pipeline.model import SeriesKey, StackMatrix, StrataMatrix
from pipeline.model.frames import series_of
from pipeline.model.units import format_duration
from pipeline.storage.interface import SeriesQuery, StackQuery, Store, StrataQuery, StrataWidthQuery
from pipeline.views.dashboard.selection import SenderChoice, Span, View
from pipeline.views.report.flame import SURE, largest_shares

_WINDOWS = 64
"""Windows of a span whose variation shows the over-dispersion of shares."""

_SERIES = 20
"""Series that show it: those with the largest shares."""

_WHOLE = 0.98
"""Largest share that shows it."""

_AS_SHARE = 0.1
_TOO_COARSE = 0.03
"""Smallest visible change of a 10 % share from which on there are too few samples."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """Senders and span of one side."""

    span: Span
    senders: SenderChoice | None  # None: all senders that the other side lacks


@dataclass(frozen=True, slots=True)
class StackComparison:
    """Stacks of two sides, and the over-dispersion of their shares."""

    stacks: StackMatrix
    spans: tuple[Span, Span]  # number of samples, before and after
    strata: StrataMatrix  # senders of the samples of the second span
    compared: bool
    dispersion: float  # over-dispersion of counts
    lacking: str  # a sentence if there are no samples, or too few; else empty


def read_view_stacks(store: Store, view: View) -> StackComparison:
    """Read the stacks of a view. Spans of some senders are widened to whole windows of their counts."""
    sides = ComparedSide(view.before, view.other_senders), ComparedSide((view.start, view.end), view.senders)
    return read_comparison(store, view.service, sides, view.within, widened=True)


def read_comparison(
    store: Store,
    service: str,
    sides: tuple[ComparedSide, ComparedSide],
    within_name: str = "",
    *,
    widened: bool = False,
) -> StackComparison:
    """Read two sides, the first of which may be of an empty span: then nothing is compared.

    Args:
        store: The store.
        service: Whose stacks.
        sides: Before and after.
        within_name: Element whose counts by sender are read as well; empty: none.
        widened: Whether spans of some senders grow to whole windows; else windows wholly inside count.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    before, after = (side.span for side in sides)
    compared = before[1] > before[0]
    names = [series_of(within_name)] if within_name else []
    strata = store.counts(StrataQuery(service, *after, _part(after), names))
    spans, ids, width_s = (before, after), None, 0.0
    if not _everybody(sides):
        width_s = store.counts(StrataWidthQuery(service, after[1]))
        if widened:
            spans = _whole(before, width_s) if compared else before, _whole(after, width_s)
        ids = _ids(store, service, spans, sides)
    stacks = store.counts(StackQuery(service, *spans, strata=ids))
    dispersion = 1.0
    if compared and min(stacks.total_before, stacks.total_after) > 0:
        differ = ids is not None and ids[0] != ids[1]
        dispersion = _dispersion(store, service, spans, ids if differ else None, stacks)
    return StackComparison(
        stacks=stacks,
        spans=spans,
        strata=strata,
        compared=compared,
        dispersion=dispersion,
        lacking=_lacking(stacks, compared, dispersion, width_s),
    )


def _everybody(sides: tuple[ComparedSide, ComparedSide]) -> bool:
    """Return whether neither side excludes any sender, so that counts of all senders suffice."""
    other_senders, senders = (side.senders for side in sides)
    return senders is not None and senders.every and (other_senders is None or other_senders.every)


def _ids(
    store: Store, service: str, spans: tuple[Span, Span], sides: tuple[ComparedSide, ComparedSide]
) -> tuple[set[int], set[int]]:
    """Return the ids of the strata of each side; none for an empty span."""
    other_senders, senders = (side.senders for side in sides)
    parts = [
        store.counts(StrataQuery(service, *span, _part(span), [])).strata for span in dict.fromkeys(spans)
    ]
    by_id = {stratum.id: stratum for part in parts for stratum in part}
    chosen = {key for key, sender in by_id.items() if senders is None or senders.include(sender)}
    if spans[0][1] <= spans[0][0]:
        return set(), chosen
    if other_senders is None:
        return by_id.keys() - chosen, chosen
    return {key for key, sender in by_id.items() if other_senders.include(sender)}, chosen


def _dispersion(
    store: Store,
    service: str,
    spans: tuple[Span, Span],
    ids: tuple[Collection[int], Collection[int]] | None,
    stacks: StackMatrix,
) -> float:
    """Return the over-dispersion of counts in time, and between senders if sides have different ones."""
    largest = largest_shares(stacks, _SERIES, _WHOLE)
    names: list[SeriesKey] = sorted({series_of(name) for name in largest})
    if not names:
        return 1.0
    start, end = spans[1]
    matrix = store.series(SeriesQuery("gcpu", service, start, end, (end - start) / _WINDOWS, names))
    estimates = [between_windows(matrix.samples, matrix.totals)]
    if ids is not None and spans[0] == spans[1]:
        by = store.counts(StrataQuery(service, start, end, end - start, names))
        side = {key: number for number, keys in enumerate(ids) for key in keys}
        column = [at for at, stratum in enumerate(by.strata) if stratum.id in side]
        of = np.array([side[by.strata[at].id] for at in column], dtype=np.int64)
        estimates.append(between_senders(by.samples[:, column], by.counted_totals[column], of))
    return max(estimates)


def _whole(span: Span, width_s: float) -> Span:
    """Return the whole windows nearest to a span, one at least."""
    if not width_s:
        return span
    windows = max(1, round((span[1] - span[0]) / width_s))
    # One window more includes the end, which may be now.
    end = -(-span[1] // width_s) * width_s
    return end - windows * width_s, end


def _part(span: Span) -> float:
    return max(1e-3, span[1] - span[0])


def _lacking(stacks: StackMatrix, compared: bool, dispersion: float, width_s: float) -> str:
    before, after = stacks.total_before, stacks.total_after
    coarse = f" Counts by sender are kept in windows of {format_duration(width_s)}." if width_s else ""
    if not after:
        return f"There are no samples of this selection.{coarse}"
    if compared and not before:
        return f"There are no samples of what it is held against.{coarse}"
    if not compared:
        return ""
    variance = dispersion * _AS_SHARE * (1 - _AS_SHARE) * (1 / before + 1 / after)
    hidden = -float(ndtri((1 - SURE) / 2)) * variance**0.5
    if hidden <= _TOO_COARSE:
        return ""
    return (
        "There are few samples: where a share is 10 %, "
        f"a difference of less than {100 * hidden:.0f} points may be chance."
    )
