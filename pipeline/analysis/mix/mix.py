r"""What of a series is the mix of those who sent its samples, and the series as if that mix had stayed.

Counts of a series in stratum g and block of time b are Poisson around

    N_gb · q · β_b · Π_k r_k(g)

with N the samples of the stratum, q the share of the series, β_b its own course over time, and r_k(g) how
the value that stratum g has of term k (a region, a machine type, a host, a release) differs from the others
at the same time. It is the standardised rate of epidemiology (expected counts from stratum-specific rates:
Breslow and Day, Statistical Methods in Cancer Research II, 1987) with log-linear rates, and is fitted by
iterative proportional fitting, for which the margins n_sg over all time and n_sb over all strata are
sufficient: counts of strata by time are not needed.

How far values of a term differ from each other is learnt from them (a Gamma prior, by the method of
moments), so that what only chance makes different stays at 1, and a small stratum borrows from the others.
The fit begins at β: where one stratum replaces another at once, nothing says whether strata or time made
the difference, and time gets it. What releases differ in is fitted, lest hosts or labels take it, and left
in the series: it is what scans look for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, xlogy

from pipeline.analysis.mix.terms import MixTerm, release_of, terms, value_of
from pipeline.model import BoolArray, FloatArray, SeriesKey, StrataMatrix, Stratum

_ROUNDS = 30
"""Most rounds of the fit: a stratum that replaces all others within days takes so many, others a few."""

_SETTLED = 1e-4
"""Change of any ratio below which the fit has come to its end."""

_RECENT = 0.2
"""Last part of the span: releases that came before it are one, as hosts have long run one after another."""

_LASTING = 0.5
"""Share of the blocks with data in which a host must be seen to be held against itself."""

_CHANCE = 0.001
"""Chance at which strata that do not differ in a series are found to: below it, the series has a mix."""

_LEAST_VARIANCE = 1e-9
"""Of the ratios of a term, where nothing says that they differ."""


@dataclass(frozen=True, slots=True)
class Mix:
    """How series differ between strata, of those that do, fitted over a span of time."""

    series: tuple[SeriesKey, ...]
    terms: tuple[MixTerm, ...]
    ratios: tuple[FloatArray, ...]  # of each term: (series, values)
    strata: tuple[Stratum, ...]
    reference: FloatArray  # (strata,) share of the samples of the span

    def differing(self, strata: Sequence[Stratum], only: MixTerm | None = None) -> FloatArray:
        """Return how strata differ by all but releases, or by one term alone: (series, strata).

        A value that the span did not have is as the others on average.
        """
        product = np.ones((len(self.series), len(strata)))
        for term, ratios in zip(self.terms, self.ratios, strict=True):
            if term.source == "release" if only is None else term is not only:
                continue
            position = {value: number for number, value in enumerate(term.values)}
            found = [position.get(value_of(term, stratum), -1) for stratum in strata]
            index = np.array(found, dtype=np.int64)
            product[:, index >= 0] *= ratios[:, index[index >= 0]]
        return product

    def factors(
        self, strata: Sequence[Stratum], totals: FloatArray, only: MixTerm | None = None
    ) -> FloatArray:
        """Return by how much the mix raised each series in each window: (series, windows), 1 on average.

        Args:
            strata: (strata,) in any order.
            totals: (strata, windows) their samples; a window without any has 1.
            only: The term by which strata differ; all but releases if None.
        """
        usual = self.differing(self.strata, only) @ self.reference
        whole = totals.sum(axis=0)
        shares = totals / np.where(whole > 0, whole, 1.0)
        found: FloatArray = (self.differing(strata, only) @ shares) / usual[:, None]
        found[:, whole <= 0] = 1.0
        return found


def fit_mix(strata: StrataMatrix, blocks: FloatArray) -> Mix | None:
    """Fit how series differ between strata; None where none does beyond chance, by more than its release.

    Args:
        strata: Totals by blocks of time, and counts of series over the same span.
        blocks: (series, blocks) counts of ``strata.series``, of all strata.
    """
    totals = strata.totals
    known = totals.sum(axis=0) > 0
    found = terms(strata.strata, _lasting(strata, known), _recent(strata))
    if not any(term.source != "release" for term in found) or not len(strata.series):
        return None
    totals, blocks = totals[:, known], blocks[:, known]
    reference = totals.sum(axis=1) / totals.sum()
    ratios = _fit(totals, blocks, strata.samples, found)
    differ = np.flatnonzero(np.any([(each != 1).any(axis=1) for each in ratios], axis=0)).tolist()
    if not differ:
        return None
    series = tuple(strata.series[row] for row in differ)
    return Mix(series, tuple(found), tuple(each[differ] for each in ratios), strata.strata, reference)


def _fit(
    totals: FloatArray, blocks: FloatArray, samples: FloatArray, found: Sequence[MixTerm]
) -> list[FloatArray]:
    """Return the ratios of each term: (series, values)."""
    # Counts by strata may lack the edges of the span: what they are in all says nothing.
    level = samples.sum(axis=1, keepdims=True) / np.maximum(blocks.sum(axis=1, keepdims=True), 1.0)
    cells, of = np.unique(np.stack([term.of for term in found]), axis=1, return_inverse=True)
    merged = (of.ravel()[:, None] == np.arange(cells.shape[1])).astype(np.float64)
    totals, samples = merged.T @ totals, samples @ merged
    members = [
        (values[:, None] == np.arange(len(term.values))).astype(np.float64)
        for term, values in zip(found, cells, strict=True)
    ]
    ratios = [np.ones((len(samples), len(term.values))) for term in found]
    product = np.ones(samples.shape)
    for _ in range(_ROUNDS):
        expected = product @ totals
        course = np.divide(blocks, expected, out=np.zeros(blocks.shape), where=expected > 0)
        exposure = level * (course @ totals.T)
        former = product.copy()
        for number, values in enumerate(cells):
            product /= ratios[number][:, values]
            ratios[number] = _ratios(samples @ members[number], (exposure * product) @ members[number])
            product *= ratios[number][:, values]
        if np.abs(product - former).max(initial=0.0) < _SETTLED:
            break
    by_chance = _by_chance(totals, blocks, samples / np.maximum(level, 1e-300), product, found)
    return [np.where(by_chance[:, None], 1.0, each) for each in ratios]


def _by_chance(
    totals: FloatArray, blocks: FloatArray, samples: FloatArray, product: FloatArray, found: Sequence[MixTerm]
) -> BoolArray:
    """Return which series chance would let strata differ in as much as they were found to: (series,).

    The likelihood ratio against strata that do not differ, each with the course over time that fits it best.
    """
    usual = totals.sum(axis=0)
    moved = np.divide(product @ totals, usual, out=np.ones(blocks.shape), where=usual > 0)
    gain = xlogy(samples, product).sum(axis=1) - xlogy(blocks, moved).sum(axis=1)
    return np.asarray(chdtrc(sum(len(term.values) - 1 for term in found), 2 * np.maximum(gain, 0)) > _CHANCE)


def _ratios(counts: FloatArray, expected: FloatArray) -> FloatArray:
    """Return what values of a term are to each other, drawn together as far as chance explains them.

    With counts Poisson around expected × ratio and ratios Gamma around 1, the variance of the ratios is what
    the squares of the differences exceed that of counting by.

    Args:
        counts: (series, values).
        expected: (series, values) if all ratios were 1.
    """
    expected = expected * (counts.sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-300))[:, None]
    excess = ((counts - expected) ** 2 - expected).sum(axis=1)
    variance = np.maximum(excess / np.maximum((expected**2).sum(axis=1), 1e-300), _LEAST_VARIANCE)
    strength = 1.0 / variance[:, None]
    ratios: FloatArray = (counts + strength) / (expected + strength)
    # A series that has samples by strata and none over time is at the edge of the span: nothing is known.
    return np.where(expected.any(axis=1, keepdims=True), ratios, 1.0)


def _recent(strata: StrataMatrix) -> BoolArray:
    """Return which strata run a release that was first seen in the last part of the span: (strata,)."""
    first: dict[str, int] = {}
    names = [release_of(stratum) for stratum in strata.strata]
    for name, totals in zip(names, strata.totals, strict=True):
        seen = int(np.argmax(totals > 0)) if totals.any() else len(totals)
        first[name] = min(first.get(name, seen), seen)
    since = (1 - _RECENT) * strata.totals.shape[1]
    return np.array([first[name] >= since for name in names], dtype=np.bool_)


def _lasting(strata: StrataMatrix, known: BoolArray) -> BoolArray:
    """Return which strata belong to hosts that are there for long enough: (strata,)."""
    rows: dict[str, list[int]] = {}
    for row, stratum in enumerate(strata.strata):
        rows.setdefault(stratum.host, []).append(row)
    lasting = np.zeros(len(strata.strata), dtype=np.bool_)
    for host, own in rows.items():
        seen = (strata.totals[own].sum(axis=0) > 0)[known].mean() if known.any() else 0.0
        lasting[own] = bool(host) and seen >= _LASTING
    return lasting
