"""Liao et al.'s comparison of two releases by random forests (2021, §5, steps 2 to 5).

A forest of each release predicts the metric in each period of the new release. The deviance of a period is
the difference between the errors of both forests' trees, in deviations. A linear model then shows which types
of request come with deviance.

The paper leaves periods of the new release out in turn and fits a forest for each. Trees that a period was
not drawn for have not seen it either (Breiman 2001, out-of-bag), so one forest suffices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special
from sklearn.ensemble import RandomForestRegressor

from pipeline.analysis.statistics.bootstrap import Dependence, dependent_signs, sign_flip_chance
from pipeline.model import BoolArray, FloatArray

TREES = 100
SIGNIFICANT = 0.05
"""Level of a type's coefficient in the linear model (§5, step 4)."""

MORE = 0.1
"""Share by which a type's median count is raised to see its effect (§5, step 5)."""

MOST_DRAWS = 99
_ENOUGH_ABOVE = 10
"""Draws with an R² as large after which drawing ends."""


class ReleaseLoad(NamedTuple):
    """Requests and one metric of a release.

    Args:
        counts: (periods, types) requests of each type.
        metric: (periods,) mean of the metric, in its unit.
    """

    counts: FloatArray
    metric: FloatArray


@dataclass(frozen=True, slots=True)
class Effect:
    """A type of request that comes with deviance, and with a worse metric.

    Args:
        type: Of request.
        effect: Relative change of the deviance if its median count were 10 % higher.
        p: Chance of its coefficient in the linear model.
    """

    type: str
    effect: float
    p: float


@dataclass(frozen=True, slots=True)
class ForestComparison:
    """Result of the comparison.

    Args:
        r_squared: R² of the linear model of deviance on requests.
        p: Chance of an R² as large between equal releases; NaN if it was not asked for.
        effects: Types that may be the cause, the largest effect first.
        deviance: (new periods,) Cohen's d of the trees' errors; above 0 the old forest predicts less.
    """

    r_squared: float
    p: float
    effects: tuple[Effect, ...]
    deviance: FloatArray


def compare_forests(
    types: Sequence[str],
    old: ReleaseLoad,
    new: ReleaseLoad,
    seed: int,
    rng: np.random.Generator | None = None,
    draws: int = MOST_DRAWS,
) -> ForestComparison:
    """Compare two releases as the paper does; with ``rng`` compute the chance of the R², too.

    The chance comes from equal releases. Their metric is the prediction of one forest of both, plus its
    residuals with random signs (see ``dependent_signs``), so that load and noise are those of these releases.

    Args:
        types: (types,) of request; none may be explained by others, see ``choose_types``.
        old: The old release.
        new: The new release.
        seed: Seed of the forests.
        rng: Source of signs; without it ``p`` is NaN.
        draws: Most draws of equal releases.
    """
    errors = deviance(old, new, seed)
    linear = _linear(new.counts, errors)
    p = float("nan")
    if rng:
        p = sign_flip_chance(linear.r_squared, _drawn_r_squared(old, new, seed, rng, draws), _ENOUGH_ABOVE)
    return ForestComparison(linear.r_squared, p, _effects(types, new, linear, seed), errors)


def deviance(old: ReleaseLoad, new: ReleaseLoad, seed: int) -> FloatArray:
    """Return Cohen's d between the errors of the old and the new forest's trees: (new periods,) (step 3).

    Trees of the new forest count only if they have not seen the period.
    """
    by_old, _ = trees(old, new.counts, seed)
    by_new, seen = trees(new, new.counts, seed + 1)
    return cohens_d(new.metric - by_old, new.metric - by_new, ~seen)


def cohens_d(old: FloatArray, new: FloatArray, counts: BoolArray) -> FloatArray:
    """Return the difference of mean errors in pooled deviations: (periods,); 0 where there is no spread.

    Args:
        old: (trees, periods) errors of the old release's trees.
        new: (trees, periods) errors of the new release's trees.
        counts: (trees, periods) True for the errors in ``new`` that count, at least two in each period.
    """
    size = counts.sum(axis=0)
    mean = np.where(counts, new, 0.0).sum(axis=0) / np.maximum(size, 1)
    spread = np.where(counts, np.square(new - mean), 0.0).sum(axis=0)
    pooled = np.sqrt((spread + np.square(old - old.mean(axis=0)).sum(axis=0)) / (len(old) + size - 2))
    spreads = (size >= 2) & (pooled > 0.0)
    return np.where(spreads, (old.mean(axis=0) - mean) / np.where(spreads, pooled, 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class _Linear:
    """Ordinary least squares with an intercept.

    Args:
        coefficients: (1 + types,) the intercept first.
        p: (types,) chance of each by Student's test.
        r_squared: R² of the fit.
    """

    coefficients: FloatArray
    p: FloatArray
    r_squared: float


def _linear(counts: FloatArray, errors: FloatArray) -> _Linear:
    columns = np.column_stack([np.ones(len(counts)), counts])
    inverse = np.linalg.pinv(columns.T @ columns, hermitian=True)
    coefficients = inverse @ (columns.T @ errors)
    left = errors - columns @ coefficients
    free = max(len(errors) - columns.shape[1], 1)
    standard_errors = np.sqrt(np.diag(inverse) * float(left @ left) / free)
    t = np.divide(coefficients, standard_errors, out=np.zeros_like(coefficients), where=standard_errors > 0)
    variance = float(np.square(errors - errors.mean()).sum())
    r_squared = 1.0 - float(left @ left) / variance if variance else 0.0
    return _Linear(coefficients, 2.0 * special.stdtr(free, -np.abs(t))[1:], r_squared)


def _effects(types: Sequence[str], new: ReleaseLoad, linear: _Linear, seed: int) -> tuple[Effect, ...]:
    """Return the types whose requests mean more deviance and a worse metric (step 5)."""
    medians = np.median(new.counts, axis=0)
    at_median = float(linear.coefficients[0] + linear.coefficients[1:] @ medians)
    rises = linear.coefficients[1:] * medians * MORE / (abs(at_median) or 1.0)
    raised = np.tile(medians, (len(medians) + 1, 1))
    raised[np.arange(len(medians)), np.arange(len(medians))] *= 1.0 + MORE
    predicted = trees(new, raised, seed + 1)[0].mean(axis=0)
    may_be = (linear.p <= SIGNIFICANT) & (rises > 0.0) & (predicted[:-1] >= predicted[-1])
    order = sorted(np.flatnonzero(may_be).tolist(), key=lambda column: -rises[column])
    return tuple(Effect(types[column], float(rises[column]), float(linear.p[column])) for column in order)


def _drawn_r_squared(
    old: ReleaseLoad, new: ReleaseLoad, seed: int, rng: np.random.Generator, draws: int
) -> Iterator[FloatArray]:
    """Yield the R² of equal releases, drawn one by one: (1,)."""
    both = ReleaseLoad(np.concatenate([old.counts, new.counts]), np.concatenate([old.metric, new.metric]))
    predicted, seen = trees(both, both.counts, seed)
    unseen = np.maximum((~seen).sum(axis=0), 1)
    fitted = np.where(seen, 0.0, predicted).sum(axis=0) / unseen
    residuals = both.metric - fitted
    many = len(old.metric)
    parts = dependent_signs(Dependence.of(residuals, many), rng, draws)
    for number, signs in enumerate((column for part in parts for column in part.T), start=1):
        metric = fitted + residuals * signs
        equal = ReleaseLoad(old.counts, metric[:many]), ReleaseLoad(new.counts, metric[many:])
        yield np.array([_linear(new.counts, deviance(*equal, seed + 2 * number)).r_squared])


def trees(load: ReleaseLoad, counts: FloatArray, seed: int) -> tuple[FloatArray, BoolArray]:
    """Fit a forest, and predict the metric by each of its trees.

    Args:
        load: What the forest is fitted to.
        counts: (periods, types) for which the trees predict.
        seed: Seed of the forest.

    Returns:
        The predictions: (trees, periods of ``counts``), and True for the periods that a tree was fitted to:
        (trees, periods of ``load``).
    """
    forest = RandomForestRegressor(TREES, max_features=1.0 / 3.0, min_samples_leaf=5, random_state=seed)
    forest.fit(load.counts, load.metric)
    asked = np.ascontiguousarray(counts, np.float32)
    predicted = np.stack([tree.tree_.predict(asked)[:, 0] for tree in forest.estimators_])
    seen = np.zeros((TREES, len(load.metric)), np.bool_)
    for tree, drawn in enumerate(forest.estimators_samples_):
        seen[tree, drawn] = True
    return predicted, seen
