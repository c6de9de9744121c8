"""Trials with truth: points of both sides, of kinds that services have, on machines that differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pipeline.model import FloatArray, IntArray

LEVEL = 100.0
"""Mean of every metric, in its unit."""

Shape = tuple[int, int, int]
"""Experiments, trials, points."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Generator of the points of one side."""

    name: str
    about: str
    draw: Callable[[np.random.Generator, Shape], FloatArray]
    """Points with a mean of LEVEL: of the shape."""
    machines: float = 0.0
    """Relative deviation between the machines of a trial's sides."""
    shared: float = 0.0
    """Relative deviation between trials that both sides of one share."""
    requests: float = 0.0
    """Deviation of the logarithm of requests' costs, if both sides serve the same ones in the same order."""


def _normal(rng: np.random.Generator, shape: Shape) -> FloatArray:
    return rng.normal(LEVEL, 0.1 * LEVEL, shape)


def _lognormal(rng: np.random.Generator, shape: Shape) -> FloatArray:
    return LEVEL * rng.lognormal(-0.5, 1.0, shape)


def _pareto(rng: np.random.Generator, shape: Shape) -> FloatArray:
    return LEVEL * 1.5 / 2.5 * (1.0 + rng.pareto(2.5, shape))


def _bimodal(rng: np.random.Generator, shape: Shape) -> FloatArray:
    slow = rng.random(shape) < 0.2
    noise: FloatArray = rng.normal(LEVEL / 1.4, 0.05 * LEVEL / 1.4, shape)
    return np.where(slow, 3.0 * noise, noise)


def _counter(rng: np.random.Generator, shape: Shape) -> FloatArray:
    return LEVEL / 2.0 * rng.poisson(2.0, shape).astype(np.float64)


def _correlated(rng: np.random.Generator, shape: Shape) -> FloatArray:
    noise = rng.normal(0.0, 0.05 * LEVEL, shape)
    for point in range(1, shape[2]):
        noise[:, :, point] += 0.8 * noise[:, :, point - 1]
    return LEVEL + noise


def _warm_up(rng: np.random.Generator, shape: Shape) -> FloatArray:
    length = rng.uniform(2.0, 8.0, (*shape[:2], 1))
    return _normal(rng, shape) * (1.0 + 0.5 * np.exp(-np.arange(shape[2]) / length))


def _disturbed(rng: np.random.Generator, shape: Shape) -> FloatArray:
    sides = (*shape[:2], 1)
    off = np.where(rng.random(sides) < 0.15, rng.normal(0.0, 0.03, sides), 0.0)
    return rng.normal(LEVEL, 0.02 * LEVEL, shape) * (1.0 + off)


_ALL = (
    Distribution("normal", "Normal noise of 10 %.", _normal),
    Distribution("lognormal", "Costs of requests over two decades.", _lognormal),
    Distribution("pareto", "A tail whose third moment is infinite (exponent 2.5).", _pareto),
    Distribution("bimodal", "A fifth of the requests cost three times as much.", _bimodal),
    Distribution("counter", "Small counts, such as calls per request.", _counter),
    Distribution("correlated", "Each point follows the last (0.8).", _correlated),
    Distribution("machines", "Machines of the two sides differ by 1 %.", _normal, machines=0.01),
    Distribution("shared", "Trials differ by 5 %, both sides by as much.", _normal, shared=0.05),
    Distribution("warm-up", "The first points cost up to half more.", _warm_up),
    Distribution("requests", "Both sides serve the same requests.", _normal, requests=1.0),
    Distribution("disturbed", "One side in seven is off by some percent for a whole trial.", _disturbed),
)

DISTRIBUTIONS = MappingProxyType({each.name: each for each in _ALL})
"""Name → distribution."""


def draw_sides(
    distribution: Distribution, rng: np.random.Generator, shape: Shape, regression: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return points of side A and of side B of experiments, each of shape ``shape``.

    Args:
        distribution: Distribution of the points.
        rng: Random numbers.
        shape: Experiments, trials, points.
        regression: Relative extra cost of side B.
    """
    trials = (*shape[:2], 1)
    shared = 1.0 + distribution.shared * rng.standard_normal(trials)
    spread = distribution.requests
    served = rng.lognormal(-(spread**2) / 2.0, spread, shape) if spread else 1.0
    sides = []
    for factor in (1.0, 1.0 + regression):
        machine = 1.0 + distribution.machines * rng.standard_normal(trials)
        sides.append(distribution.draw(rng, shape) * served * shared * machine * factor)
    return sides[0], sides[1]


def matched(distribution: Distribution, shape: Shape) -> IntArray | None:
    """Return the points of both sides that share a request, as Experiments has it; None if none do."""
    return np.broadcast_to(np.arange(shape[2]), shape) if distribution.requests else None


def draw_covariate(rng: np.random.Generator, noise: FloatArray, correlation: float) -> FloatArray:
    """Return differences of a covariate that side B does not change, of the shape of ``noise``.

    Args:
        rng: Random numbers.
        noise: Differences of the trials without a regression, in standard deviations.
        correlation: Correlation of the covariate with ``noise``.
    """
    independent = np.sqrt(1.0 - correlation**2) * rng.standard_normal(noise.shape)
    result: FloatArray = 0.01 * (correlation * noise + independent)
    return result
