"""Where a regression holds: everywhere, or only where samples have one label.

Two models with one ratio each are held against each other: the series rose by it everywhere, or in the
strata of one value alone, be it a label or a host. Counts before and after are binomial given their sum, so
neither has another parameter. The likeliest value is named if it explains the counts far better than all,
and hardly anything of the rise lies outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import xlogy

from pipeline.analysis.mix.standardise import rows_by
from pipeline.analysis.mix.terms import terms
from pipeline.model import BoolArray, FloatArray, IntArray, SeriesKey, StrataMatrix, Stratum

KEY = "one_stratum"

BAYES_FACTOR = 100.0
"""By how much likelier the counts must be in one value alone, chosen of several, than everywhere."""

OUTSIDE = 0.2
"""Share of the rise that may lie outside of the value, or what counting leaves there, if that is more."""

_ERRORS = 2.0

_MOST_OF_SAMPLES = 0.8
"""A value with more of the samples than this is nearly all of the service."""


def find_scopes(before: StrataMatrix, after: StrataMatrix) -> dict[SeriesKey, str]:
    """Return where each series rose, as ``name=value``; those that rose everywhere are absent.

    Args:
        before: Who sent samples before the change; counts of the series over that time.
        after: The same after the change.
    """
    strata = sorted({*before.strata, *after.strata})
    series = sorted({*before.series} & {*after.series})
    if len(strata) < 2 or not series:
        return {}
    old, new = (_aligned(matrix, series, strata) for matrix in (before, after))
    exposure = np.stack([_totals(matrix, strata) for matrix in (before, after)])
    every: BoolArray = np.ones(len(strata), dtype=np.bool_)
    senders = [term for term in terms(strata, every) if term.source != "release"]
    if not senders:
        return {}
    values = [f"{term.name}={value}" for term in senders for value in term.values]
    members = np.concatenate([term.members for term in senders], axis=1)
    chosen = _values(old, new, exposure, members)
    return {series[row]: values[chosen[row]] for row in np.flatnonzero(chosen >= 0).tolist()}


def _values(old: FloatArray, new: FloatArray, exposure: FloatArray, members: FloatArray) -> IntArray:
    """Return the value in which alone each series rose, -1 where there is none: (series,).

    Args:
        old: (series, strata) counts before.
        new: (series, strata) counts after.
        exposure: (2, strata) samples before and after.
        members: (strata, values) 1 where a stratum has a value.
    """
    both = (exposure > 0).all(axis=0)
    odds = np.divide(exposure[1], exposure[0], out=np.ones(exposure.shape[1]), where=both)
    old, new = old * both, new * both
    rise = new - old * odds
    flat = _log_likelihood(old, new, odds, 1.0)
    whole = new.sum(axis=1) / np.maximum((old * odds).sum(axis=1), 1e-300)
    everywhere = _log_likelihood(old, new, odds, whole[:, None]).sum(axis=1)
    alone = np.full((len(old), members.shape[1]), -np.inf)
    for value, held in enumerate(members.T.astype(np.bool_)):
        part, expected = new[:, held].sum(axis=1), (old[:, held] * odds[held]).sum(axis=1)
        if expected.any() and exposure[1, held].sum() <= _MOST_OF_SAMPLES * exposure[1].sum():
            ratio = np.divide(part, expected, out=np.ones(len(part)), where=expected > 0)
            risen = _log_likelihood(old[:, held], new[:, held], odds[held], ratio[:, None])
            alone[:, value] = flat.sum(axis=1) + (risen - flat[:, held]).sum(axis=1)
    best = np.argmax(alone, axis=1)
    inside = (rise * members[:, best].T).sum(axis=1)
    error = np.sqrt((old * odds * (1 + odds) * (1 - members[:, best].T)).sum(axis=1))
    named = (
        (alone[np.arange(len(best)), best] - np.log(members.shape[1]) - everywhere > np.log(BAYES_FACTOR))
        & (inside > 0)
        & (np.abs(rise.sum(axis=1) - inside) <= np.maximum(OUTSIDE * inside, _ERRORS * error))
    )
    return np.where(named, best, -1)


def _log_likelihood(
    old: FloatArray, new: FloatArray, odds: FloatArray, ratio: FloatArray | float
) -> FloatArray:
    """Return how likely counts after are, given those of both times, at a ratio of the two rates."""
    share = odds * ratio / (1 + odds * ratio)
    return np.asarray(xlogy(new, share) + xlogy(old, 1 - share))


def _aligned(matrix: StrataMatrix, series: Sequence[SeriesKey], strata: Sequence[Stratum]) -> FloatArray:
    rows = rows_by(matrix.series)
    counts = np.zeros((len(series), len(strata)))
    columns = [strata.index(stratum) for stratum in matrix.strata]
    counts[:, columns] = matrix.samples[[rows[key] for key in series]]
    return counts


def _totals(matrix: StrataMatrix, strata: Sequence[Stratum]) -> FloatArray:
    """Return the samples of strata in the windows that counts of series are of: (strata,)."""
    totals = np.zeros(len(strata))
    totals[[strata.index(stratum) for stratum in matrix.strata]] = matrix.counted_totals
    return totals
