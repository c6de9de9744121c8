"""Types of request that cost more in the new release, and their additional cost.

A metric such as CPU adds up what requests cost: a base, and the requests of each type times their cost.
Squares and products of the load's main directions are in it too: a busy machine does less for the same,
caches do more, and types may cost more together. One such fit holds for both releases; a change is a type
that costs something else in the new one. Changes are looked for one at a time, as long as one is found: of
the types that could explain the difference by a change of their own, that one comes first which explains it
best. All of them by one factor is one more: a slower machine is not the fault of a type. A factor on all of
them that fades is a warm-up, which any release has: it is not reported as a change.

Liao et al. (§5) ask forests instead, which cannot say anything beyond the load that they saw, and so take
other load for another release (docs/release-requests.md has both).

Each period is weighted by the part that earlier periods do not predict (see ``noise``). Chances come from a
wild bootstrap by blocks (Shao 2010; Davidson and Flachaire 2008): residuals of the fit without a further
change keep their place and their size, and get a sign at random, the same one for periods that follow one
another and are still similar. So neither load that drifts, nor noise that grows with it or that lasts for
minutes, is taken for a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from scipy import special

from pipeline.analysis.statistics.bootstrap import Dependence, dependent_signs, sign_flip_chance
from pipeline.analysis.statistics.fit import coefficients, equalised, lengths, orthonormal
from pipeline.analysis.statistics.long_run_noise.autoregression import estimate_noise
from pipeline.model import FloatArray
from pipeline.releases.requests.day import day_columns
from pipeline.releases.requests.periods import Releases
from pipeline.releases.requests.response_times import Shifts, log_evidence, response_shifts
from pipeline.releases.requests.warm_up import warm_up_columns

BASE = ""
"""The type that stands for the use without requests."""

EVERY = "*"
"""The type that stands for all requests and the base together, by one factor: another machine or runtime."""

_SPELT = {BASE: "(without requests)", EVERY: "(every request)"}

DRAWS = 999
_PARTS_OF_ERRORS = 4
"""Number of parts of the draws that calibrate columns of different errors."""

_ENOUGH = 20
"""Number of draws above the observed gain at which the bootstrap stops: no level in use is reached."""

MOST_CHANGES = 5
_PERIODS_A_TERM = 20.0
"""Smallest number of periods for each term of curvature."""

_MOST_DIRECTIONS = 15
"""Largest number of load directions: 120 terms of curvature bound the memory that years of periods take."""

AS_LIKELY = 0.95
"""Probability that the types named for one change hold together."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """A type whose cost differs between the releases.

    Args:
        type: Type of request, BASE or EVERY.
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
    """Comparison of two releases by the costs of requests.

    Args:
        changes: Significant changes, in the order of their search.
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
    """Return a type as people read it; BASE and EVERY stand in brackets, as no request does."""
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
    parts = _Parts.of(metric, common, changed, len(names), len(releases.old))
    shifts = response_shifts(releases.old, releases.new)
    chosen, p_none = _find_steps(parts, shifts, rng, alpha, draws)
    whole = parts.explained([step.column for step in chosen])
    sizes = coefficients(whole, metric)
    errors = _errors(whole, parts, rng)[common.shape[1] :]
    load = changed[len(releases.old) :].mean(axis=0) / (abs(float(releases.new.metric.mean())) or 1.0)
    every = [
        (step, float(size), float(error), float(load[step.column]))
        for step, size, error in zip(chosen, sizes[common.shape[1] :], errors, strict=True)
    ]
    changes = tuple(
        CostChange(
            type=names[step.column],
            change=size,
            error=error,
            p=step.p,
            share=size * many,
            share_error=error * many,
            likely={names[column]: chance for column, chance in step.likely.items()},
        )
        for step, size, error, many in every
        if step.column < len(names)
    )
    warm_up = sum(size * many for step, size, _, many in every if step.column >= len(names))
    p = next((step.p for step in chosen if step.column < len(names)), p_none)
    old = dict(zip(names, [*map(float, sizes[: len(names) - 1]), 1.0], strict=True))
    alone = dict(zip(names, map(float, _errors_alone(parts, whole, sizes, rng)), strict=True))
    return CostComparison(changes, p, warm_up, old, alone, _r_squared(metric, metric - whole @ sizes))


@dataclass(frozen=True, slots=True)
class _Parts:
    """A metric and the columns that explain it.

    Args:
        metric: (periods,) of the old release, then of the new one.
        common: (periods, terms) of both releases.
        changed: (periods, columns) what may change, and behind that what fades.
        lasting: How many of those columns do not fade: BASE, types, EVERY.
        dependence: Of noise that is left.
        old: How many periods are of the old release.
    """

    metric: FloatArray
    common: FloatArray
    changed: FloatArray
    lasting: int
    dependence: Dependence
    old: int

    @classmethod
    def of(
        cls, metric: FloatArray, common: FloatArray, changed: FloatArray, lasting: int, old: int
    ) -> _Parts:
        apart = orthonormal(np.column_stack([common, changed]))
        dependence = Dependence.of(metric - apart @ (apart.T @ metric), old)
        return cls(metric, common, changed, lasting, dependence, old)

    def explained(self, chosen: Sequence[int]) -> FloatArray:
        """Return the columns that both releases have in common, and chosen changes: (periods, columns)."""
        return np.column_stack([self.common, self.changed[:, chosen]])

    def whitened(self) -> _Parts:
        """Return whitened parts: each period without what earlier periods predict (see ``noise``)."""
        noise = estimate_noise(self.metric, np.column_stack([self.common, self.changed]), self.old)
        metric = noise.whiten(self.metric[:, None])[:, 0]
        common, changed = noise.whiten(self.common), noise.whiten(self.changed)
        return _Parts.of(metric, common, changed, self.lasting, self.old)


@dataclass(frozen=True, slots=True)
class _Step:
    """The best further change: its column, its chance, and the columns that are about as likely."""

    column: int
    p: float
    likely: dict[int, float]


def cost_columns(releases: Releases, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the common columns (base, types, curvature, time of day), and the columns that may change.

    What may change is of the requests that the new release got itself, and of its share of the base and the
    curvature. Of EVERY that is all of them at the costs that explain both releases.
    """
    counts = np.concatenate([releases.old.counts, releases.new.counts])
    common = load_columns(counts)
    curvature = common[:, 1 + counts.shape[1] :]
    own = np.column_stack([releases.new.share, releases.new.served])
    bent = curvature[len(releases.old) :] * releases.new.share[:, None]
    costs = coefficients(common, metric)
    changed = np.column_stack([own, np.column_stack([own, bent]) @ costs])
    common = np.column_stack([common, day_columns(common @ costs, releases.old, releases.new)])
    return common, np.concatenate([np.zeros((len(releases.old), changed.shape[1])), changed])


def load_columns(counts: FloatArray) -> FloatArray:
    """Return the columns that explain a metric: a base, requests by type, and curvature: (periods, terms)."""
    return np.column_stack([np.ones(len(counts)), counts, _curvature(counts)])


def _curvature(counts: FloatArray) -> FloatArray:
    """Return squares and products of the main directions of the load: (periods, terms).

    As many directions as leave _PERIODS_A_TERM periods for each term (a response surface of second order).
    """
    most = int((np.sqrt(1.0 + 8.0 * len(counts) / _PERIODS_A_TERM) - 1.0) / 2.0)
    centred = (counts - counts.mean(axis=0)) / lengths(counts - counts.mean(axis=0))
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    vary = int((sizes > sizes[0] * 1e-6).sum())
    directions = left[:, : min(most, _MOST_DIRECTIONS, vary)] * np.sqrt(len(counts))
    first, second = np.triu_indices(directions.shape[1])
    return np.asarray(directions[:, first] * directions[:, second])


def _find_steps(
    parts: _Parts, shifts: Shifts, rng: np.random.Generator, alpha: float, draws: int
) -> tuple[list[_Step], float]:
    """Return the changes one by one, MOST_CHANGES at most, and what fades; and the chance of no change."""
    steps: list[_Step] = []
    white: _Parts | None = None
    while sum(step.column < parts.lasting for step in steps) < MOST_CHANGES:
        chosen = [step.column for step in steps]
        p = _chance(parts, chosen, rng, draws)
        if p > alpha:
            return steps, p
        white = white or parts.whitened()  # most releases change nothing, and need none
        likely = _likely(white, chosen, shifts)
        steps.append(_Step(next(iter(likely)), p, likely))
    return steps, 1.0


def _chance(parts: _Parts, chosen: Sequence[int], rng: np.random.Generator, draws: int) -> float:
    """Return the chance that any further column gains as much, of releases with the chosen changes alone.

    The largest gain counts, in units of each column's error.
    """
    fresh = _Fresh.of(parts.explained(chosen), parts.changed)
    residuals = fresh.beyond(parts.metric)
    gains = fresh.columns.T @ residuals
    drawn_parts = _drawn(fresh.basis, fresh.columns, residuals, parts.dependence, rng, draws)
    first = np.concatenate(list(islice(drawn_parts, _PARTS_OF_ERRORS)), axis=1)
    errors = np.maximum(first.std(axis=1), np.finfo(np.float64).tiny)[:, None]
    bound = float((np.abs(gains)[:, None] / errors).max())
    largest = ((np.abs(part) / errors).max(axis=0) for part in chain([first], drawn_parts))
    return sign_flip_chance(bound, largest, _ENOUGH)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """The part of columns that the chosen ones do not explain.

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

    def beyond(self, metric: FloatArray) -> FloatArray:
        """Return the residuals of a metric: (periods,)."""
        return np.asarray(metric - self.basis @ (self.basis.T @ metric))


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
    errors = equalised(residuals, basis)
    for part in dependent_signs(noise, rng, draws):
        yield columns.T @ (errors[:, None] * part)


def _errors_alone(
    parts: _Parts, whole: FloatArray, sizes: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the standard error of each change alone: (columns,); ``sizes`` are of the fit of ``whole``."""
    fresh = _Fresh.of(parts.common, parts.changed[:, : parts.lasting])
    left = parts.metric - whole @ sizes
    drawn = list(_drawn(fresh.basis, fresh.columns, left, parts.dependence, rng, DRAWS))
    return np.asarray(np.concatenate(drawn, axis=1).std(axis=1) / fresh.sizes)


def _likely(white: _Parts, chosen: Sequence[int], shifts: Shifts) -> dict[int, float]:
    """Return the columns that hold AS_LIKELY of the probability that a further change is theirs.

    All columns are equally likely a priori. Whitened periods and response times are the evidence; chances
    come from the periods as they are.
    """
    fresh = _Fresh.of(white.explained(chosen), white.changed)
    residuals = fresh.beyond(white.metric)
    gains = fresh.columns.T @ residuals
    squares = float(residuals @ residuals) - np.square(gains)
    floor = max(float(squares.max()) * 1e-12, np.finfo(np.float64).tiny)
    last = white.lasting - 1
    evidence = np.zeros(len(gains))
    evidence[1:last] = log_evidence(shifts, np.sign(gains[1:last]))
    independent = len(residuals) / white.dependence.memory
    evidence -= independent / 2.0 * np.log(np.maximum(squares, floor))
    if evidence.argmax() <= last:  # then it is one of those that do not fade
        evidence = evidence[: white.lasting]
    chances = special.softmax(evidence)
    order = np.argsort(-chances, kind="stable")
    count = int(np.searchsorted(np.cumsum(chances[order]), AS_LIKELY)) + 1
    return {int(column): float(chances[column]) for column in order[:count]}


def _errors(columns: FloatArray, parts: _Parts, rng: np.random.Generator) -> FloatArray:
    """Return the standard errors of the coefficients of columns: (columns,)."""
    scale = lengths(columns)
    left, sizes, right = np.linalg.svd(columns / scale, full_matrices=False)
    regular = sizes > sizes[0] * 1e-9
    basis, solve = left[:, regular], right[regular].T / sizes[regular] / scale[:, None]
    residuals = parts.metric - basis @ (basis.T @ parts.metric)
    drawn = np.concatenate(list(_drawn(basis, basis, residuals, parts.dependence, rng, DRAWS)), axis=1)
    return np.asarray((solve @ drawn).std(axis=1))


def _r_squared(metric: FloatArray, left: FloatArray) -> float:
    variance = float(np.square(metric - metric.mean()).sum())
    return 1.0 - float(left @ left) / variance if variance else 0.0
