"""Simulated histories of one benchmark: steps of known size at known commits, under three kinds of noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pipeline.model import FloatArray

COMMITS = 80
REPETITIONS = 10
"""Runs of a commit, as benchstat's documentation advises."""

APART = 15
"""Commits between steps, and from a step to either end."""

_MOST_STEPS = 2
_OUTLIERS = 0.04
_OUTLIER = 10.0  # standard deviations of a run


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedHistory:
    """One benchmark over commits.

    Args:
        values: (commits, repetitions) results; a larger value is worse.
        changes: First commits of new levels.
    """

    values: FloatArray
    changes: tuple[int, ...]


def _repetitions(rng: np.random.Generator) -> FloatArray:
    return rng.normal(size=(COMMITS, REPETITIONS))


def _sessions(rng: np.random.Generator) -> FloatArray:
    return _repetitions(rng) + rng.normal(size=(COMMITS, 1))


def _outliers(rng: np.random.Generator) -> FloatArray:
    strays = rng.random((COMMITS, 1)) < _OUTLIERS
    return _repetitions(rng) + _OUTLIER * strays


NOISES: MappingProxyType[str, Callable[[np.random.Generator], FloatArray]] = MappingProxyType(
    {"repetitions": _repetitions, "sessions": _sessions, "outliers": _outliers}
)
"""Name → (commits, repetitions) noise, with a standard deviation of 1 between runs.

In ``sessions`` all runs of a commit share a further part of the same size, as on one machine on one day. In
``outliers`` one commit of 25 is slower in all of its runs and the next one is not.
"""


def draw_history(kind: str, noise: float, step: float, rng: np.random.Generator) -> SimulatedHistory:
    """Return a history with one or two steps, each up or down.

    Args:
        kind: Name of the noise.
        noise: Standard deviation of a run, relative.
        step: Relative size of a step; 0 for a history without steps.
        rng: Draws commits, directions and noise.
    """
    changes: tuple[int, ...] = ()
    level = np.ones(COMMITS)
    if step:
        room = COMMITS - 2 * APART
        wanted = int(rng.integers(1, _MOST_STEPS + 1))
        # Of two steps, each lies in its own half, so that they are far enough apart.
        width = (room - (wanted - 1) * APART) // wanted
        changes = tuple(
            APART + number * (width + APART) + int(rng.integers(width)) for number in range(wanted)
        )
        for change in changes:
            level[change:] *= 1.0 + step if rng.random() < 0.5 else 1.0 / (1.0 + step)
    return SimulatedHistory(100.0 * level[:, None] * (1.0 + noise * NOISES[kind](rng)), changes)
