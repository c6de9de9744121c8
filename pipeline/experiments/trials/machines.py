"""Factors of machines that explain the differences of results (ServiceLab §4.1): analysis of variance.

A result is a value that a test measured on a machine, whose factors (type, architecture, kernel, turbo,
region, …) each have a level. A factor explains much if results of one level are near each other. Few factors
that explain nearly as much as all are those by which machines of an experiment should match.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pipeline.model import FloatArray, IntArray

MOST_FACTORS = 12
"""Largest number of factors whose subsets are all compared."""

_BY_CHANCE = 0.01
"""Chance that factors that explain nothing are chosen."""

_SINGULAR = 1e-9
"""Share of a factor's largest variance from which on a direction is explained by the other factors."""


@dataclass(frozen=True, slots=True)
class Results:
    """Results of one metric, and the machines on which they were measured.

    Args:
        values: (results,) in the metric's unit, all positive.
        factors: Their names.
        codes: (results, factors) each result's level of each factor, as an index into ``levels``.
        levels: The names of each factor's levels.
    """

    values: FloatArray
    factors: tuple[str, ...]
    codes: IntArray
    levels: tuple[tuple[str, ...], ...]

    def without(self, factor: int, code: int) -> Results:
        """Return the results without those of one level."""
        mask = self.codes[:, factor] != code
        return replace(self, values=self.values[mask], codes=self.codes[mask])

    def cells(self, factors: Sequence[str]) -> IntArray:
        """Return the number of each result's combination of levels of these factors: (results,)."""
        columns = self.codes[:, [self.factors.index(name) for name in factors]]
        if not columns.shape[1]:
            return np.zeros(len(self.values), np.int64)
        return np.asarray(np.unique(columns, axis=0, return_inverse=True)[1], np.int64).ravel()


@dataclass(frozen=True, slots=True)
class ExplainedVariance:
    """Share of the variance that factors explain: R², less what as many levels explain by chance."""

    factors: tuple[str, ...]
    share: float


def explained_shares(results: Results, subsets: Sequence[tuple[str, ...]]) -> list[ExplainedVariance]:
    """Return the adjusted R² of an additive model of each subset of factors (Ezekiel 1930).

    Plain R² grows with each level, and is 1 where every machine has a level of its own; the adjusted one is 0
    in the mean for factors that explain nothing.
    """
    gram = _Gram.of(results)
    return [gram.fit(subset).explained for subset in subsets]


def choose_factors(results: Results, tolerance: float = 0.02) -> tuple[ExplainedVariance, ExplainedVariance]:
    """Return the fewest factors that explain nearly as much as all factors, and the share that all explain.

    Nearly means less by ``tolerance`` at most, or by no more than chance does (F-test of the models, one in a
    hundred). The paper takes three that explain 0.87 where 0.89 is the upper bound. Of as many factors those
    with the fewest levels are taken: the cloud more easily has machines that match.

    Raises:
        ValueError: there are more than MOST_FACTORS factors.
    """
    if len(results.factors) > MOST_FACTORS:
        raise ValueError(f"{len(results.factors)} factors, more than {MOST_FACTORS}")
    gram = _Gram.of(results)
    upper = gram.fit(results.factors)
    for size in range(len(results.factors) + 1):
        fits = [gram.fit(subset) for subset in itertools.combinations(results.factors, size)]
        near = [
            fit
            for fit in fits
            if fit.adjusted >= upper.adjusted - tolerance or fit.p_value_of(upper) > _BY_CHANCE
        ]
        if near:
            best = min(near, key=lambda fit: (gram.levels(fit.factors), -fit.adjusted))
            return best.explained, upper.explained
    raise AssertionError("all factors explain as much as all")


def match_machines(cells: IntArray, pairs: int, rng: np.random.Generator) -> IntArray:
    """Return pairs of machines that match, sides drawn by chance: (pairs or fewer, 2) indexes of machines.

    Few cells give many pairs: one cell after another is used up, the largest first, so that trials of one
    experiment resemble each other too.

    Args:
        cells: (machines,) the number of each machine's combination of levels that must match.
        pairs: How many are wanted.
        rng: Draws machines and sides.
    """
    shuffled = rng.permutation(len(cells))
    counts = np.bincount(cells)
    order = shuffled[np.lexsort((cells[shuffled], -counts[cells[shuffled]]))]
    sorted_cells = cells[order]
    starts = np.flatnonzero(np.r_[True, sorted_cells[1:] != sorted_cells[:-1]]) if len(order) else order
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    paired = rank < counts[sorted_cells] // 2 * 2
    result: IntArray = order[paired].reshape(-1, 2)[:pairs]
    return result


@dataclass(frozen=True, slots=True)
class _Fit:
    """An additive model of factors: its residual sum of squares, and its rank."""

    factors: tuple[str, ...]
    left: float
    rank: int
    variation: float
    results: int

    @property
    def adjusted(self) -> float:
        """Adjusted R², 0 where nothing varies or each result has parameters of its own."""
        if not self.variation or self.results <= self.rank:
            return 0.0
        return 1.0 - (self.left / (self.results - self.rank)) / (self.variation / (self.results - 1))

    @property
    def explained(self) -> ExplainedVariance:
        return ExplainedVariance(self.factors, self.adjusted)

    def p_value_of(self, larger: _Fit) -> float:
        """Return the chance that a larger model explains as much more than this one (F-test)."""
        more, free = larger.rank - self.rank, larger.results - larger.rank
        if more <= 0 or free <= 0 or self.left <= larger.left:
            return 1.0
        if not larger.left:
            return 0.0
        return float(stats.f.sf((self.left - larger.left) / more / (larger.left / free), more, free))


@dataclass(frozen=True, slots=True)
class _Gram:
    """Sums of products over results of all columns of the model: one column a level of each factor."""

    columns: dict[str, NDArray[Any]]  # of each factor
    products: FloatArray
    with_values: FloatArray
    results: int
    variation: float  # sum of squares of the values

    @classmethod
    def of(cls, results: Results) -> _Gram:
        sizes = [len(levels) for levels in results.levels]
        starts = np.cumsum([0, *sizes])
        total = int(starts[-1])
        values = results.values - results.values.mean()
        products, with_values = np.zeros((total, total)), np.zeros(total)
        parts = [slice(start, start + size) for start, size in zip(starts, sizes, strict=False)]
        for row, part in enumerate(parts):
            codes = results.codes[:, row]
            with_values[part] = np.bincount(codes, values, minlength=sizes[row])
            for column, beside in enumerate(parts):
                joint = codes * sizes[column] + results.codes[:, column]
                counted = np.bincount(joint, minlength=sizes[row] * sizes[column])
                products[part, beside] = counted.reshape(sizes[row], sizes[column])
        columns = {
            name: np.arange(part.start, part.stop) for name, part in zip(results.factors, parts, strict=True)
        }
        return cls(columns, products, with_values, len(values), float(values @ values))

    def levels(self, factors: Sequence[str]) -> int:
        """Return how many combinations of levels there could be."""
        return math.prod(len(self.columns[name]) for name in factors)

    def fit(self, factors: Sequence[str]) -> _Fit:
        """Fit an additive model of factors by least squares.

        Columns of one factor never overlap, so that the block of the largest factor is diagonal and is
        eliminated first; what is left is small.
        """
        explained, rank = self._explained(factors) if factors else (0.0, 1)
        return _Fit(tuple(factors), max(self.variation - explained, 0.0), rank, self.variation, self.results)

    def _explained(self, factors: Sequence[str]) -> tuple[float, int]:
        """Return the sum of squares that a model explains, and the model's rank."""
        largest = max(factors, key=lambda name: len(self.columns[name]))
        first = self.columns[largest]
        first = first[self.products[first, first] > 0]
        counts, sums = self.products[first, first], self.with_values[first]
        explained, rank = float((sums**2 / counts).sum()), len(first)
        blocks = [self.columns[name] for name in factors if name != largest]
        if not blocks:
            return explained, rank
        rest = np.concatenate(blocks)
        across = self.products[np.ix_(rest, first)]
        left = self.products[np.ix_(rest, rest)] - (across / counts) @ across.T
        sums_left = self.with_values[rest] - across @ (sums / counts)
        sizes, directions = np.linalg.eigh(left)
        regular = sizes > _SINGULAR * self.results
        along = directions[:, regular].T @ sums_left
        return explained + float((along**2 / sizes[regular]).sum()), rank + int(regular.sum())
