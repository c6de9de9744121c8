"""Spread of results on machines, and the machines that experiments should avoid (ServiceLab §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pipeline.experiments.trials.machines import Results
from pipeline.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Level:
    """Spread of results on machines of one level: standard deviation as a share of the mean (CoV)."""

    factor: str
    level: str
    results: int
    spread: float  # of all of them
    matched: float  # among machines that match in the factors chosen
    p_value: float  # p-value against a matched spread of at most `ratio` times that of the other levels
    avoid: bool


def spread_of_levels(
    results: Results, chosen: Sequence[str], *, ratio: float = 1.5, alpha: float = 0.01
) -> list[Level]:
    """Return each level's spread, and whether experiments had better avoid its machines.

    A level's results also differ because its machines differ in other factors, so the spread is measured
    among machines that match in the chosen factors. A level is avoided if that is surely more than ``ratio``
    times that of the other levels (the test of Brown and Forsythe 1974, with a false discovery rate of
    ``alpha`` over all levels). The most certain level is left out before the next search, since levels that
    often occur together with it seem to spread as well.
    """
    levels = rest = _levels(results, chosen, ratio)
    avoided: list[int] = []
    remaining = results
    while True:
        worst = int(np.lexsort((-np.nan_to_num(rest.matched), rest.p_value))[0])
        if rest.p_value[worst] > alpha:
            break
        levels.p_value[worst] = rest.p_value[worst]
        avoided.append(worst)
        remaining = remaining.without(int(levels.factor[worst]), int(levels.code[worst]))
        rest = _levels(remaining, chosen, ratio)
    return [
        Level(
            results.factors[levels.factor[row]],
            results.levels[levels.factor[row]][levels.code[row]],
            int(levels.results[row]),
            float(levels.spread[row]),
            float(levels.matched[row]),
            float(levels.p_value[row]),
            avoid=row in avoided,
        )
        for row in np.flatnonzero(levels.results).tolist()
    ]


def spreads(values: FloatArray, groups: IntArray) -> FloatArray:
    """Return the spread of each group that has two values at least: (such groups,)."""
    counts = np.bincount(groups)
    means = np.bincount(groups, values) / np.maximum(counts, 1)
    squares = np.bincount(groups, (values - means[groups]) ** 2)
    several = counts > 1
    result: FloatArray = np.sqrt(squares[several] / (counts[several] - 1)) / means[several]
    return result


@dataclass(frozen=True, slots=True)
class _Levels:
    """Spread of the results of each level of each factor; a row a level, also of levels without results."""

    factor: IntArray
    code: IntArray
    results: IntArray
    spread: FloatArray
    matched: FloatArray
    p_value: FloatArray  # of matched not being so much larger than that of others, adjusted over all levels


def _levels(results: Results, chosen: Sequence[str], ratio: float) -> _Levels:
    absolute, squares, matching = _deviations(results.values, results.cells(chosen))
    parts = []
    for factor, names in enumerate(results.levels):
        codes = results.codes[:, factor]
        all_of = _Moments.of(results.values, codes, len(names))
        deviations = _Moments.of(absolute[matching], codes[matching], len(names))
        matched = np.sqrt(_Moments.of(squares[matching], codes[matching], len(names)).mean)
        parts.append(
            (
                np.full(len(names), factor),
                np.arange(len(names)),
                all_of.count.astype(np.int64),
                np.sqrt(all_of.variance) / all_of.mean,
                matched,
                deviations.larger_than_rest(ratio),
            )
        )
    columns = [np.concatenate(columns_of_parts) for columns_of_parts in zip(*parts, strict=True)]
    columns[-1] = stats.false_discovery_control(columns[-1])
    return _Levels(*columns)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Count, mean and variance of values of each group, NaN where there are too few."""

    count: FloatArray
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, values: FloatArray, groups: IntArray, size: int) -> _Moments:
        with np.errstate(invalid="ignore", divide="ignore"):
            count = np.bincount(groups, minlength=size).astype(float)
            mean = np.bincount(groups, values, minlength=size) / count
            squares = np.bincount(groups, (values - mean[groups]) ** 2, minlength=size)
            return cls(count, mean, np.where(count > 1, squares / (count - 1), np.nan))

    def larger_than_rest(self, ratio: float) -> FloatArray:
        """Return each group's p-value against at most ``ratio`` times the mean of the others (Welch)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            sums, squares = np.nan_to_num(self.count * self.mean), np.nan_to_num(self._squares())
            rest = self.count.sum() - self.count
            rest_mean = (sums.sum() - sums) / rest
            rest_variance = (squares.sum() - squares - rest * rest_mean**2) / (rest - 1)
            test = stats.ttest_ind_from_stats(
                self.mean,
                np.sqrt(self.variance),
                self.count,
                ratio * rest_mean,
                ratio * np.sqrt(np.maximum(rest_variance, 0.0)),
                rest,
                equal_var=False,
                alternative="greater",
            )
            testable = (self.count > 1) & (rest > 1) & np.isfinite(test.pvalue)
        return np.where(testable, test.pvalue, 1.0)

    def _squares(self) -> FloatArray:
        variance: FloatArray = np.nan_to_num(self.variance)
        result: FloatArray = (self.count - 1) * variance + self.count * self.mean**2
        return result


def _deviations(values: FloatArray, cells: IntArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return the deviations of results from matching results.

    Returns:
        Absolute deviations from the median of the cell as shares of its mean; squared ones from its mean, as
        shares of that squared, unbiased; and which results match another.
    """
    counts = np.bincount(cells)
    means = np.bincount(cells, values) / np.maximum(counts, 1)
    order = np.lexsort((values, cells))
    starts = np.cumsum(counts) - counts
    low, high = (values[order][starts + (counts - part) // 2] for part in (1, 0))
    absolute = np.abs(values - ((low + high) / 2)[cells]) / means[cells]
    squares = ((values - means[cells]) / means[cells]) ** 2
    unbiased = squares * counts[cells] / np.maximum(counts[cells] - 1, 1)
    return absolute, unbiased, counts[cells] > 1
