"""Liao et al.'s comparison of two releases by random forests (§5, steps 2 to 5), and the bound of its R².

A forest of each release says what the metric of a period of the new release should be. Each tree errs; how
far the errors of both forests are apart, in deviations, is the period's deviance. A linear model asks which
types of request come with deviance.

The paper leaves periods of the new release out one by one and fits a forest for each. Trees that a period was
not drawn for have not seen it either (Breiman 2001, out-of-bag): one forest says as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special
from sklearn.ensemble import RandomForestRegressor

from pipeline.analysis.statistics.bootstrap import Dependence, dependent_signs
from pipeline.model import BoolArray, FloatArray
from pipeline.releases.requests.periods import Periods, Releases

TREES = 100
SIGNIFICANT = 0.05
"""Of a type in the linear model (§5, step 4)."""

MORE = 0.1
"""By how much a type's median count is raised to see its effect (§5, step 5)."""

MOST_DRAWS = 99
_ENOUGH_ABOVE = 10


@dataclass(frozen=True, slots=True)
class Effect:
    """A type of request that comes with deviance, and with a worse metric.

    Args:
        type: Of request.
        effect: Of 10 % more of it at the median, on the deviance; relative.
        p: Of its coefficient in the linear model.
    """

    type: str
    effect: float
    p: float


@dataclass(frozen=True, slots=True)
class ForestComparison:
    """What the forests say.

    Args:
        r_squared: Of the linear model of deviance on requests.
        p: Chance of an R² as large, of equal releases; NaN if it was not asked for.
        effects: Types that may be the cause, the largest effect first.
        deviance: (new periods,) Cohen's d of the trees' errors; above 0 the old forest says less.
    """

    r_squared: float
    p: float
    effects: tuple[Effect, ...]
    deviance: FloatArray


def compare_forests(
    releases: Releases, seed: int, rng: np.random.Generator | None = None, draws: int = MOST_DRAWS
) -> ForestComparison:
    """Compare two releases as the paper does; with ``rng`` find the chance of the R², too.

    The chance comes from releases that are equal: residuals of one forest of both keep their place and get
    signs at random (see ``dependent_signs``), so that load and noise are those of these releases. It
    is drawn until R² was as large ten times (Besag and Clifford 1991), or ``draws`` times.

    Args:
        releases: With types that do not explain one another; see ``choose_types``.
        seed: Of the forests.
        rng: Where signs come from; without it ``p`` is NaN.
        draws: At most.
    """
    found = deviance(releases, seed)
    linear = _linear(releases.new.counts, found)
    p = _chance(releases, linear.r_squared, seed, rng, draws) if rng else float("nan")
    return ForestComparison(linear.r_squared, p, _effects(releases, linear, seed), found)


def deviance(releases: Releases, seed: int) -> FloatArray:
    """Return Cohen's d between the errors of the old and the new forest's trees: (new periods,) (step 3).

    Of the new forest only trees count that have not seen the period.
    """
    old, _ = _trees(releases.old, releases.new.counts, seed)
    new, seen = _trees(releases.new, releases.new.counts, seed + 1)
    return cohens_d(releases.new.metric - old, releases.new.metric - new, ~seen)


def deviance_left_out(releases: Releases, seed: int) -> FloatArray:
    """Return the same by a forest for each period, fitted without it, as the paper has it."""
    old, _ = _trees(releases.old, releases.new.counts, seed)
    new = np.empty_like(old)
    for period in range(len(releases.new)):
        others = releases.new.at(np.delete(np.arange(len(releases.new)), period))
        new[:, [period]] = _trees(others, releases.new.counts[[period]], seed + 1)[0]
    metric = releases.new.metric
    return cohens_d(metric - old, metric - new, np.ones(new.shape, np.bool_))


def cohens_d(old: FloatArray, new: FloatArray, counts: BoolArray) -> FloatArray:
    """Return the difference of mean errors in pooled deviations: (periods,); 0 where there is no spread.

    Args:
        old: (trees, periods) errors of the old release's trees.
        new: (trees, periods) errors of the new release's trees.
        counts: (trees, periods) which of ``new`` count; two of each period at least.
    """
    many = counts.sum(axis=0)
    mean = np.where(counts, new, 0.0).sum(axis=0) / np.maximum(many, 1)
    spread = np.where(counts, np.square(new - mean), 0.0).sum(axis=0)
    pooled = np.sqrt((spread + np.square(old - old.mean(axis=0)).sum(axis=0)) / (len(old) + many - 2))
    known = (many >= 2) & (pooled > 0.0)
    return np.where(known, (old.mean(axis=0) - mean) / np.where(known, pooled, 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class _Linear:
    """Ordinary least squares with an intercept.

    Args:
        coefficients: (1 + types,) the intercept first.
        p: (types,) of Student's test of each.
        r_squared: Of the fit.
    """

    coefficients: FloatArray
    p: FloatArray
    r_squared: float


def _linear(counts: FloatArray, found: FloatArray) -> _Linear:
    columns = np.column_stack([np.ones(len(counts)), counts])
    inverse = np.linalg.pinv(columns.T @ columns, hermitian=True)
    coefficients = inverse @ (columns.T @ found)
    left = found - columns @ coefficients
    free = max(len(found) - columns.shape[1], 1)
    errors = np.sqrt(np.diag(inverse) * float(left @ left) / free)
    t = np.divide(coefficients, errors, out=np.zeros_like(coefficients), where=errors > 0)
    variance = float(np.square(found - found.mean()).sum())
    r_squared = 1.0 - float(left @ left) / variance if variance else 0.0
    return _Linear(coefficients, 2.0 * special.stdtr(free, -np.abs(t))[1:], r_squared)


def _effects(releases: Releases, linear: _Linear, seed: int) -> tuple[Effect, ...]:
    """Return the types whose requests mean more deviance and a worse metric (step 5)."""
    medians = np.median(releases.new.counts, axis=0)
    at_median = float(linear.coefficients[0] + linear.coefficients[1:] @ medians)
    rises = linear.coefficients[1:] * medians * MORE / (abs(at_median) or 1.0)
    raised = np.tile(medians, (len(medians) + 1, 1))
    raised[np.arange(len(medians)), np.arange(len(medians))] *= 1.0 + MORE
    says = _trees(releases.new, raised, seed + 1)[0].mean(axis=0)
    may_be = (linear.p <= SIGNIFICANT) & (rises > 0.0) & (says[:-1] >= says[-1])
    order = sorted(np.flatnonzero(may_be).tolist(), key=lambda each: -rises[each])
    return tuple(Effect(releases.types[each], float(rises[each]), float(linear.p[each])) for each in order)


def _chance(releases: Releases, r_squared: float, seed: int, rng: np.random.Generator, draws: int) -> float:
    old = len(releases.old)
    both = Periods(
        np.concatenate([releases.old.counts, releases.new.counts]),
        np.concatenate([releases.old.metric, releases.new.metric]),
    )
    says, seen = _trees(both, both.counts, seed)
    unseen = np.maximum((~seen).sum(axis=0), 1)
    fitted = np.where(seen, 0.0, says).sum(axis=0) / unseen
    residuals = both.metric - fitted
    above = 0
    drawn = 0
    for signs in dependent_signs(Dependence.of(residuals, old), rng, draws):
        for column in signs.T:
            metric = fitted + residuals * column
            equal = Releases(
                releases.types,
                Periods(releases.old.counts, metric[:old]),
                Periods(releases.new.counts, metric[old:]),
            )
            drawn += 1
            above += _linear(equal.new.counts, deviance(equal, seed + 2 * drawn)).r_squared >= r_squared
            if above == _ENOUGH_ABOVE:
                return above / drawn
    return (above + 1) / (drawn + 1)


def _trees(periods: Periods, counts: FloatArray, seed: int) -> tuple[FloatArray, BoolArray]:
    """Fit a forest; return what each tree says of counts, and which of the periods it was fitted to.

    Both are (trees, periods), the latter of ``periods``.
    """
    forest = RandomForestRegressor(TREES, max_features=1.0 / 3.0, min_samples_leaf=5, random_state=seed)
    forest.fit(periods.counts, periods.metric)
    asked = np.ascontiguousarray(counts, np.float32)
    says = np.stack([tree.tree_.predict(asked)[:, 0] for tree in forest.estimators_])
    seen = np.zeros((TREES, len(periods)), np.bool_)
    for tree, drawn in enumerate(forest.estimators_samples_):
        seen[tree, drawn] = True
    return says, seen
