"""Which types of request cost more in the new release, and how much.

A metric such as CPU adds up what requests cost: a base, and the requests of each type times their cost.
Squares and products of the load's main directions are in it too: a busy machine does less for the same,
caches do more, and types may cost more together. One such fit holds for both releases; a change is a type
that costs something else in the new one. Changes are looked for one at a time, as long as one is found: of
the types that could explain the difference by a change of their own, that one comes first which explains it
best. All of them by one factor is one more: a slower machine is not the fault of a type. All of them by a
factor that fades is a warm-up, which any release has: what it explains is no change.

Liao et al. (§5) ask forests instead, which cannot say anything beyond the load that they saw, and so take
other load for another release (docs/release-requests.md has both).

Chances come from a wild bootstrap by blocks (Shao 2010; Davidson and Flachaire 2008): residuals of the fit
without a further change keep their place and their size, and get a sign at random, the same one for periods
that follow one another. So neither load that drifts, nor noise that grows with it or that lasts for minutes,
is taken for a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from scipy import special

from pipeline.model import FloatArray
from pipeline.releases.bootstrap import Dependence, dependent_signs
from pipeline.releases.day import day_columns
from pipeline.releases.periods import Releases
from pipeline.releases.response_times import Shifts, log_evidence, response_shifts
from pipeline.releases.warm_up import warm_up_columns

BASE = ""
"""The type that stands for what is used without requests."""

EVERY = "*"
"""The type that stands for all requests and the base together, by one factor: another machine or runtime."""

_SPELT = {BASE: "(without requests)", EVERY: "(every request)"}

DRAWS = 999
_PARTS_OF_ERRORS = 4
"""Of draws, by which columns of different errors are compared."""

_ENOUGH = 20
"""Draws larger than what was seen, after which it is no change at any level that is in use."""

MOST_CHANGES = 5
_PERIODS_A_TERM = 20.0
"""Of curvature."""

_MOST_DIRECTIONS = 15
"""Of the load; 120 terms of curvature, so that years of periods take no more memory for it than a day's."""

AS_LIKELY = 0.95
"""Types of so much probability together are named for one change."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """A type whose cost differs between the releases.

    Args:
        type: Of request, BASE or EVERY.
        change: New less old cost, in the metric's unit a request; of BASE, a period; of EVERY, relative.
        error: Standard error of the change.
        p: Chance that any type seems to change as much, of releases without this change.
        share: What the change makes of the metric at the new release's load; 0.01 is 1 %.
        share_error: Its standard error.
        likely: Type → probability that it is this one, of a single change; the likeliest first.
    """

    type: str
    change: float
    error: float
    p: float
    share: float
    share_error: float
    likely: dict[str, float]


@dataclass(frozen=True, slots=True)
class CostComparison:
    """Two releases compared by what requests cost.

    Args:
        changes: Those found, in the order of finding.
        p: Chance that any type seems to change as much as the first, of equal releases.
        warm_up: Share of the new release's metric that it used more as it had just begun; 0 if none is seen.
        old: Type or BASE → its cost in the old release; negative ones are 0 within their noise. EVERY has 1.
        errors: Type, BASE or EVERY → standard error of a change of that one alone; NaN if it cannot be seen.
        r_squared: How much of the metric's variance the costs explain, of both releases.
    """

    changes: tuple[CostChange, ...]
    p: float
    warm_up: float
    old: dict[str, float]
    errors: dict[str, float]
    r_squared: float


def spelt(type_: str) -> str:
    """Return a type as people read it; BASE and EVERY are in brackets, which no request is."""
    return _SPELT.get(type_, type_)


def compare_costs(
    releases: Releases, rng: np.random.Generator, alpha: float = 0.05, draws: int = DRAWS
) -> CostComparison:
    """Return which types cost something else in the new release, at most MOST_CHANGES.

    Chances are those of the largest difference of all types (Westfall and Young 1993): they hold for all
    types together.

    Args:
        releases: Readable, with any types, also such as always come together.
        rng: Where the signs come from.
        alpha: Level at which a further change counts.
        draws: Most of the bootstrap, for a chance.
    """
    metric = np.concatenate([releases.old.metric, releases.new.metric])
    common, changed = cost_columns(releases, metric)
    names = (BASE, *releases.types, EVERY)
    changed = np.column_stack([changed, warm_up_columns(changed[:, -1], len(releases.old))])
    shifts = response_shifts(releases.old, releases.new)
    apart = orthonormal(np.column_stack([common, changed]))
    noise = Dependence.of(metric - apart @ (apart.T @ metric), len(releases.old))
    chosen: list[int] = []
    steps: list[_Step] = []
    while sum(column < len(names) for column in chosen) < MOST_CHANGES:
        explained = np.column_stack([common, changed[:, chosen]])
        step = _best_change(metric, explained, changed, shifts, noise, rng, draws)
        steps.append(step)
        if step.p > alpha:
            break
        chosen.append(step.column)
    whole = np.column_stack([common, changed[:, chosen]])
    fitted = _Fit.of(whole, metric)
    sizes = fitted.coefficients[common.shape[1] :]
    errors = _errors(whole, metric, noise, rng)[common.shape[1] :]
    load = changed[len(releases.old) :].mean(axis=0) / (abs(float(releases.new.metric.mean())) or 1.0)
    changes = tuple(
        CostChange(
            type=names[step.column],
            change=float(size),
            error=float(error),
            p=step.p,
            share=float(size * load[step.column]),
            share_error=float(error * load[step.column]),
            likely={names[each]: chance for each, chance in step.likely.items()},
        )
        for step, size, error in zip(steps, sizes, errors, strict=False)
        if step.column < len(names)
    )
    p = next((step.p for step in steps if step.column < len(names) or step.p > alpha), 1.0)
    warm_up = sum(
        float(size * load[column]) for column, size in zip(chosen, sizes, strict=True) if column >= len(names)
    )
    old = dict(zip(names, [*map(float, fitted.coefficients[: len(names) - 1]), 1.0], strict=True))
    left = metric - whole @ fitted.coefficients
    fresh = _Fresh.of(common, changed[:, : len(names)])
    alone = _deviations(fresh.basis, fresh.columns, left, noise, rng) / fresh.sizes
    errors_alone = dict(zip(names, map(float, alone), strict=True))
    return CostComparison(changes, p, warm_up, old, errors_alone, fitted.r_squared)


@dataclass(frozen=True, slots=True)
class _Step:
    """The best further change: its column and chance, and which columns are as likely."""

    column: int
    p: float
    likely: dict[int, float]


def cost_columns(releases: Releases, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what both releases have in common (base, types, curvature, time of day), and what may change.

    What may change is of the requests that the new release got itself, and of its share of the base and the
    curvature. Of EVERY that is all of them at the costs that explain both releases.
    """
    counts = np.concatenate([releases.old.counts, releases.new.counts])
    common = load_columns(counts)
    curvature = common[:, 1 + counts.shape[1] :]
    own = np.column_stack([releases.new.share, releases.new.served])
    bent = curvature[len(releases.old) :] * releases.new.share[:, None]
    costs = _Fit.of(common, metric).coefficients
    changed = np.column_stack([own, np.column_stack([own, bent]) @ costs])
    common = np.column_stack([common, day_columns(common @ costs, releases.old, releases.new)])
    return common, np.concatenate([np.zeros((len(releases.old), changed.shape[1])), changed])


def load_columns(counts: FloatArray) -> FloatArray:
    """Return what a metric is made of: a base, requests by type, and curvature: (periods, terms)."""
    return np.column_stack([np.ones(len(counts)), counts, _curvature(counts)])


def _curvature(counts: FloatArray) -> FloatArray:
    """Return squares and products of the main directions of the load: (periods, terms).

    As many directions as leave _PERIODS_A_TERM periods for each term (a response surface of second order).
    """
    most = int((np.sqrt(1.0 + 8.0 * len(counts) / _PERIODS_A_TERM) - 1.0) / 2.0)
    centred = (counts - counts.mean(axis=0)) / _scale(counts - counts.mean(axis=0))
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    vary = int((sizes > sizes[0] * 1e-6).sum())
    directions = left[:, : min(most, _MOST_DIRECTIONS, vary)] * np.sqrt(len(counts))
    first, second = np.triu_indices(directions.shape[1])
    return np.asarray(directions[:, first] * directions[:, second])


def _best_change(
    metric: FloatArray,
    explained: FloatArray,
    changed: FloatArray,
    shifts: Shifts,
    noise: Dependence,
    rng: np.random.Generator,
    draws: int,
) -> _Step:
    """Return the type that most likely changed, by what is explained and by response times.

    The chance is that of the largest gain of any type: response times do not count for it.
    """
    fresh = _Fresh.of(explained, changed)
    residuals = metric - fresh.basis @ (fresh.basis.T @ metric)
    gains = fresh.columns.T @ residuals
    p = _chance(fresh, gains, residuals, noise, rng, draws)
    independent = len(residuals) / noise.memory
    lasting = len(shifts.shift) + 2  # types, BASE and EVERY; what fades comes behind them
    evidence = np.zeros(len(gains))
    evidence[1 : lasting - 1] = log_evidence(shifts, np.sign(gains[1 : lasting - 1]))
    left = float(residuals @ residuals) - np.square(gains)
    likely = _likely(left, independent, evidence)
    best = next(iter(likely))
    if best < lasting:  # then it is one of those
        likely = _likely(left[:lasting], independent, evidence[:lasting])
    return _Step(best, p, likely)


def _chance(
    fresh: _Fresh,
    gains: FloatArray,
    residuals: FloatArray,
    noise: Dependence,
    rng: np.random.Generator,
    draws: int,
) -> float:
    """Return the chance of a gain as large as the largest, in units of each column's error.

    Drawing ends once _ENOUGH draws were larger: what is no change takes few (Besag and Clifford 1991).
    """
    parts = _drawn(fresh.basis, fresh.columns, residuals, noise, rng, draws)
    first = np.concatenate(list(islice(parts, _PARTS_OF_ERRORS)), axis=1)
    errors = np.maximum(first.std(axis=1), np.finfo(np.float64).tiny)[:, None]
    bound = float((np.abs(gains)[:, None] / errors).max())
    larger, drawn = 0, 0
    for part in chain([first], parts):
        larger += int(((np.abs(part) / errors).max(axis=0) >= bound).sum())
        drawn += part.shape[1]
        if larger >= _ENOUGH:
            break
    return (1 + larger) / (1 + drawn)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """What columns add to what is explained already.

    Args:
        basis: (periods, terms) orthonormal, of what is explained.
        columns: (periods, columns) of length 1; 0 where a column adds nothing.
        sizes: (columns,) their lengths before; NaN there.
    """

    basis: FloatArray
    columns: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, explained: FloatArray, columns: FloatArray) -> _Fresh:
        basis = orthonormal(explained)
        fresh = columns - basis @ (basis.T @ columns)
        sizes = np.sqrt(np.square(fresh).sum(axis=0))
        adds = sizes > 1e-6 * np.sqrt(np.square(columns).sum(axis=0))
        return cls(basis, fresh / np.where(adds, sizes, np.inf), np.where(adds, sizes, np.nan))


def _drawn(
    basis: FloatArray,
    columns: FloatArray,
    residuals: FloatArray,
    noise: Dependence,
    rng: np.random.Generator,
    draws: int,
) -> Iterator[FloatArray]:
    """Yield what columns would gain by residuals of a fit with signs at random: (columns, draws), in parts.

    Args:
        basis: (periods, terms) orthonormal, of the fit.
        columns: (periods, columns) of length 1.
        residuals: (periods,) of the old release, then of the new one.
        noise: Which periods have the same sign.
        rng: Where the signs come from.
        draws: How many there are.
    """
    errors = residuals / np.sqrt(np.maximum(1.0 - np.square(basis).sum(axis=1), 0.1))
    for part in dependent_signs(noise, rng, draws):
        yield columns.T @ (errors[:, None] * part)


def _deviations(
    basis: FloatArray, columns: FloatArray, residuals: FloatArray, noise: Dependence, rng: np.random.Generator
) -> FloatArray:
    """Return the deviation of such gains: (columns,)."""
    parts = _drawn(basis, columns, residuals, noise, rng, DRAWS)
    return np.asarray(np.concatenate(list(parts), axis=1).std(axis=1))


def _likely(squares: FloatArray, independent: float, evidence: FloatArray) -> dict[int, float]:
    """Return the columns that hold AS_LIKELY of the probability that the change is theirs.

    Before, all are as likely.

    Args:
        squares: (columns,) squared residuals that are left if it is that column's.
        independent: As how many independent periods there are.
        evidence: (columns,) of response times, as the logarithm of a Bayes factor.
    """
    floor = max(float(squares.max()) * 1e-12, np.finfo(np.float64).tiny)
    chances = special.softmax(evidence - independent / 2.0 * np.log(np.maximum(squares, floor)))
    order = np.argsort(-chances, kind="stable")
    count = int(np.searchsorted(np.cumsum(chances[order]), AS_LIKELY)) + 1
    return {int(each): float(chances[each]) for each in order[:count]}


def _errors(
    columns: FloatArray, metric: FloatArray, noise: Dependence, rng: np.random.Generator
) -> FloatArray:
    """Return the standard errors of the coefficients: (columns,)."""
    scale = _scale(columns)
    left, sizes, right = np.linalg.svd(columns / scale, full_matrices=False)
    kept = sizes > sizes[0] * 1e-9
    basis, solve = left[:, kept], right[kept].T / sizes[kept] / scale[:, None]
    residuals = metric - basis @ (basis.T @ metric)
    drawn = np.concatenate(list(_drawn(basis, basis, residuals, noise, rng, DRAWS)), axis=1)
    return np.asarray((solve @ drawn).std(axis=1))


@dataclass(frozen=True, slots=True)
class _Fit:
    """Least squares; of columns that explain one another, the smallest coefficients."""

    coefficients: FloatArray
    r_squared: float

    @classmethod
    def of(cls, columns: FloatArray, metric: FloatArray) -> _Fit:
        scale = _scale(columns)
        scaled, *_ = np.linalg.lstsq(columns / scale, metric, rcond=1e-9)
        left = metric - columns @ (scaled / scale)
        variance = float(np.square(metric - metric.mean()).sum())
        return cls(scaled / scale, 1.0 - float(left @ left) / variance if variance else 0.0)


def orthonormal(columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what the columns span."""
    left, sizes, _ = np.linalg.svd(columns / _scale(columns), full_matrices=False)
    return np.asarray(left[:, sizes > sizes[0] * 1e-9])


def _scale(columns: FloatArray) -> FloatArray:
    scale = np.sqrt(np.square(columns).sum(axis=0))
    scale[scale == 0.0] = 1.0
    return np.asarray(scale)
