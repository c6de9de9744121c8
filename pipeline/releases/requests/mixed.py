"""A mixed linear model of two releases, for few periods: each cost may change, most of them by little.

Requests have the costs that explain both releases (fixed effects), and changes of all of them at once, drawn
from one normal distribution (random effects). The evidence of a change is how much likelier the metric is
with a width above 0 than with none, by the restricted likelihood (Patterson and Thompson 1971). There is one
width for all types, so that few periods say something of many types. Costs one by one (``costs``) need twice
as many periods of each release as there are types.

The p-value comes from a bootstrap of residuals with random signs, as that of ``costs`` does, since noise
grows with the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from pipeline.analysis.statistics.bootstrap import Dependence, dependent_signs, sign_flip_chance
from pipeline.analysis.statistics.fit import equalised, orthonormal
from pipeline.model import FloatArray
from pipeline.releases.requests.compare import RequestCompareConfig, draws_needed, judge_metrics
from pipeline.releases.requests.costs import AS_LIKELY, BASE, DRAWS, EVERY, cost_columns
from pipeline.releases.requests.periods import NotCompared, Releases

_RISEN = 2000
"""Draws of the changes' joint distribution, for which of them is the largest."""

_POWERS = np.arange(-4.0, 8.0, 0.25)
"""Powers of ten: tried variances of the random effects, as multiples of the variance of the noise."""

_UNSEEN = 1e-12
"""Share of a change that the metric determines up to which the change cannot be seen: rounding."""

_FREE = 10
"""Fewest periods beyond the fixed effects."""


@dataclass(frozen=True, slots=True)
class MixedChange:
    """The change of one type's cost.

    Args:
        type: Of request, BASE or EVERY.
        change: New less old cost, in the metric's unit a request; of BASE, a period; of EVERY, relative. It
            is the type's own, among random changes of the others: nothing draws it towards them. NaN if it
            cannot be seen.
        error: Its standard error, at the width of all changes that fits best.
        chance: Probability that this one rose most.
    """

    type: str
    change: float
    error: float
    chance: float


@dataclass(frozen=True, slots=True)
class MixedComparison:
    """Result of the mixed model.

    Args:
        p: Chance of changes as large, of equal releases; ``compare_mixed_releases`` adjusts it for the
            number of metrics.
        share: What all changes make of the metric at the new release's load.
        changes: Of every type that can be seen, the one that most likely rose most first.
    """

    p: float
    share: float
    changes: tuple[MixedChange, ...]

    @property
    def likely(self) -> dict[str, float]:
        """Type, BASE or EVERY → probability that it rose most, the likeliest first; together AS_LIKELY."""
        together = np.cumsum([change.chance for change in self.changes])
        count = int(np.searchsorted(together, AS_LIKELY)) + 1
        return {change.type: change.chance for change in self.changes[:count]}

    def slower(self, alpha: float) -> bool:
        """Whether costs rose significantly, taken together."""
        return self.p <= alpha and self.share > 0.0


def compare_mixed_releases(
    metrics: Mapping[str, Releases], config: RequestCompareConfig
) -> dict[str, MixedComparison | NotCompared]:
    """Compare the releases by each metric, as ``compare_releases`` does by costs one by one.

    No load is left out: of few periods, those of the next release mostly differ from all of them.

    Args:
        metrics: Name → the periods of both releases, with that metric.
        config: How.
    """
    draws = draws_needed(len(metrics), config.alpha)

    def judge(releases: Releases) -> MixedComparison:
        return compare_mixed(releases.readable(), np.random.default_rng(config.seed), draws)

    results, adjusted = judge_metrics(metrics, judge)
    return results | {name: replace(comparison, p=p) for name, (comparison, p) in adjusted.items()}


def compare_mixed(releases: Releases, rng: np.random.Generator, draws: int = DRAWS) -> MixedComparison:
    """Compare two releases by a mixed model.

    Args:
        releases: Readable.
        rng: Where signs come from, and draws of the changes.
        draws: Most of the bootstrap.

    Raises:
        NotCompared: too few periods of both.
    """
    metric = np.concatenate([releases.old.metric, releases.new.metric])
    common, changed = cost_columns(releases, metric)
    fixed = orthonormal(common)
    _require_periods(len(metric), fixed)
    sizes = np.sqrt(np.square(changed).sum(axis=0))
    adds = np.flatnonzero(sizes > 0.0)
    columns = changed[:, adds] / sizes[adds]
    fit = MixedFit.of(metric, fixed, columns)
    along, _ = _parts(metric[:, None], fixed, fit.sides)
    apart = metric - fixed @ (fixed.T @ metric) - fit.sides @ along[:, 0]
    load = changed[len(releases.old) :].mean(axis=0)[adds] / sizes[adds]
    names = [(BASE, *releases.types, EVERY)[column] for column in adds]
    changes = _changes(fit, names, sizes[adds], load, rng)
    signs = dependent_signs(Dependence.of(apart, len(releases.old)), rng, draws)
    level = abs(float(releases.new.metric.mean())) or 1.0
    return MixedComparison(fit.chance(metric, fixed, signs), float(fit.means @ load / level), changes)


def _changes(
    fit: MixedFit, names: Sequence[str], sizes: FloatArray, load: FloatArray, rng: np.random.Generator
) -> tuple[MixedChange, ...]:
    """Return the changes of the fit's columns, which were divided by ``sizes``, at the mean ``load``."""
    drawn = rng.multivariate_normal(fit.means, fit.covariance, _RISEN, method="svd") * load
    chances = np.bincount(drawn.argmax(axis=1), minlength=len(names)) / _RISEN
    own, errors = fit.own()
    changes, errors = own / sizes, errors / sizes
    order = np.argsort(-chances, kind="stable")
    return tuple(
        MixedChange(names[column], float(changes[column]), float(errors[column]), float(chances[column]))
        for column in order
    )


def mixed_judges(releases: Releases) -> bool:
    """Return whether there are enough periods for ``compare_mixed``."""
    try:
        readable = releases.readable()
        metric = np.concatenate([readable.old.metric, readable.new.metric])
        _require_periods(len(metric), orthonormal(cost_columns(readable, metric)[0]))
    except NotCompared:
        return False
    return True


def _require_periods(periods: int, fixed: FloatArray) -> None:
    fewest = fixed.shape[1] + _FREE
    if periods < fewest:
        text = f"both releases have {periods} periods, fewer than {fewest}"
        raise NotCompared(text, "few_periods", periods, fewest)


@dataclass(frozen=True, slots=True)
class MixedFit:
    """A mixed model with one width of random effects, by restricted maximum likelihood.

    Args:
        sides: (periods, directions) orthonormal, in which random effects show beyond the fixed ones.
        sizes: (directions,) how much.
        means: (columns,) of the random effects, conditional on the metric.
        covariance: (columns, columns) likewise.
        seen: (columns,) how much of each mean the metric says, from 0 to 1; the width says the rest.
    """

    sides: FloatArray
    sizes: FloatArray
    means: FloatArray
    covariance: FloatArray
    seen: FloatArray

    @classmethod
    def of(cls, metric: FloatArray, fixed: FloatArray, columns: FloatArray) -> MixedFit:
        """Fit it; ``fixed`` is orthonormal."""
        sides, sizes, turns = np.linalg.svd(columns - fixed @ (fixed.T @ columns), full_matrices=False)
        along, rest = _parts(metric[:, None], fixed, sides)
        free = len(metric) - fixed.shape[1]
        width = (
            10.0
            ** optimize.minimize_scalar(
                lambda power: _deviance(along, rest, sizes, free, 10.0**power)[0],
                bounds=(_POWERS[0], _POWERS[-1]),
                method="bounded",
            ).x
        )
        spread = 1.0 + width * np.square(sizes)
        noise = float(rest[0] + (np.square(along[:, 0]) / spread).sum()) / free
        means = turns.T @ (width * sizes * along[:, 0] / spread)
        says = (turns.T * (1.0 - 1.0 / spread)) @ turns
        covariance = noise * width * (np.eye(len(says)) - says)
        return cls(sides, sizes, np.asarray(means), np.asarray(covariance), np.diag(says))

    def own(self) -> tuple[FloatArray, FloatArray]:
        """Return each change as a fixed effect, the others random, and its standard error: both (columns,).

        A random effect is drawn towards 0, the more the fewer periods there are, and its interval with it.
        """
        seen = np.where(self.seen > _UNSEEN, self.seen, np.nan)
        return self.means / seen, np.sqrt(np.maximum(np.diag(self.covariance), 0.0) / seen)

    def chance(self, metric: FloatArray, fixed: FloatArray, signs: Iterable[FloatArray]) -> float:
        """Return the chance of as much evidence without a change; ``signs`` are (periods, draws) in parts."""
        left = metric - fixed @ (fixed.T @ metric)
        errors = equalised(left, fixed)
        seen = float(self._evidence(left[:, None], fixed)[0])
        return sign_flip_chance(seen, (self._evidence(errors[:, None] * part, fixed) for part in signs))

    def _evidence(self, metrics: FloatArray, fixed: FloatArray) -> FloatArray:
        """Return by how much the best width is likelier than none: (draws,), of metrics (periods, draws)."""
        along, rest = _parts(metrics, fixed, self.sides)
        free = len(metrics) - fixed.shape[1]
        widths = (0.0, *10.0**_POWERS)
        deviances = np.array([_deviance(along, rest, self.sizes, free, width) for width in widths])
        return np.asarray(deviances[0] - deviances.min(axis=0))


def _parts(metrics: FloatArray, fixed: FloatArray, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return metrics along the directions, (directions, draws), and squares beyond these and ``fixed``."""
    along = sides.T @ metrics
    rest = np.square(metrics - fixed @ (fixed.T @ metrics)).sum(axis=0) - np.square(along).sum(axis=0)
    return along, np.maximum(rest, np.finfo(np.float64).tiny)


def _deviance(along: FloatArray, rest: FloatArray, sizes: FloatArray, free: int, width: float) -> FloatArray:
    """Return minus twice the restricted log likelihood of a width, but for a constant: (draws,)."""
    spread = 1.0 + width * np.square(sizes)
    squares = rest + (np.square(along) / spread[:, None]).sum(axis=0)
    return np.asarray(free * np.log(squares) + np.log(spread).sum())
