"""A mixed linear model of two releases, for few periods: each cost may have changed, and most by little.

Requests have the costs that explain both releases (fixed effects), and changes of all of them at once, drawn
from one normal distribution (random effects). How wide that has to be is the evidence of a change: the
restricted likelihood against that of no width (Patterson and Thompson 1971). There is one width for all
types, so that few periods say something of many types. Costs one by one (``costs``) need twice as many
periods of each release as there are types.

The chance of such evidence is that of residuals with signs at random, as it is of costs: noise grows with the
load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from pipeline.model import FloatArray
from pipeline.releases.bootstrap import Dependence, dependent_signs
from pipeline.releases.costs import AS_LIKELY, BASE, DRAWS, EVERY, cost_columns
from pipeline.releases.fit import equalised, orthonormal
from pipeline.releases.periods import NotCompared, Releases

_RISEN = 2000
"""Draws of the changes' joint distribution, for which of them is the largest."""

_POWERS = np.arange(-4.0, 8.0, 0.25)
"""Of ten: variances of the random effects that are tried, as multiples of the noise's."""

_FREE = 10
"""Fewest periods beyond the fixed effects."""


@dataclass(frozen=True, slots=True)
class MixedComparison:
    """What the mixed model says.

    Args:
        p: Chance of changes as large, of equal releases.
        share: What all changes make of the metric at the new release's load.
        likely: Type, BASE or EVERY → probability that it rose most, the likeliest first; together AS_LIKELY.
    """

    p: float
    share: float
    likely: dict[str, float]


def compare_mixed(releases: Releases, rng: np.random.Generator) -> MixedComparison:
    """Compare two releases by a mixed model.

    Args:
        releases: Readable.
        rng: Where signs come from, and draws of the changes.

    Raises:
        NotCompared: too few periods of both.
    """
    metric = np.concatenate([releases.old.metric, releases.new.metric])
    common, changed = cost_columns(releases, metric)
    fixed = orthonormal(common)
    if len(metric) < fixed.shape[1] + _FREE:
        many = f"{len(metric)} periods, fewer than {fixed.shape[1] + _FREE}"
        raise NotCompared(f"both releases have {many}", "few_periods", len(metric), fixed.shape[1] + _FREE)
    sizes = np.sqrt(np.square(changed).sum(axis=0))
    adds = np.flatnonzero(sizes > 0.0)
    columns = changed[:, adds] / sizes[adds]
    fit = MixedFit.of(metric, fixed, columns)
    along, _ = _parts(metric[:, None], fixed, fit.sides)
    apart = metric - fixed @ (fixed.T @ metric) - fit.sides @ along[:, 0]
    load = changed[len(releases.old) :].mean(axis=0)[adds] / sizes[adds]
    level = abs(float(releases.new.metric.mean())) or 1.0
    drawn = rng.multivariate_normal(fit.means, fit.covariance, _RISEN, method="svd") * load
    chances = np.bincount(drawn.argmax(axis=1), minlength=len(adds)) / _RISEN
    order = np.argsort(-chances, kind="stable")
    count = int(np.searchsorted(np.cumsum(chances[order]), AS_LIKELY)) + 1
    names = (BASE, *releases.types, EVERY)
    return MixedComparison(
        p=fit.chance(metric, fixed, Dependence.of(apart, len(releases.old)), rng),
        share=float(fit.means @ load / level),
        likely={names[adds[each]]: float(chances[each]) for each in order[:count]},
    )


@dataclass(frozen=True, slots=True)
class MixedFit:
    """A mixed model with one width of random effects, by restricted maximum likelihood.

    Args:
        sides: (periods, directions) orthonormal, in which random effects show beyond the fixed ones.
        sizes: (directions,) how much.
        means: (columns,) of the random effects, conditional on the metric.
        covariance: (columns, columns) likewise.
    """

    sides: FloatArray
    sizes: FloatArray
    means: FloatArray
    covariance: FloatArray

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
        covariance = noise * width * (np.eye(len(turns.T)) - (turns.T * (1.0 - 1.0 / spread)) @ turns)
        return cls(sides, sizes, np.asarray(means), np.asarray(covariance))

    def chance(
        self, metric: FloatArray, fixed: FloatArray, noise: Dependence, rng: np.random.Generator
    ) -> float:
        """Return the chance of as much evidence without a change."""
        left = metric - fixed @ (fixed.T @ metric)
        errors = equalised(left, fixed)
        seen = self._evidence(left[:, None], fixed)[0]
        larger = sum(
            int((self._evidence(errors[:, None] * signs, fixed) >= seen).sum())
            for signs in dependent_signs(noise, rng, DRAWS)
        )
        return (1 + larger) / (1 + DRAWS)

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
