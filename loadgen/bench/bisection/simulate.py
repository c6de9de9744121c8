"""A simulated range of commits, one of which makes a step, and ways to find it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from scipy import stats

from pipeline.experiments.bisection import (
    BeliefConfig,
    BisectionConfig,
    SearchOutcome,
    SearchRecord,
    standing_of,
)

LEVEL = 1000.0
"""Level of the code before the step, in standard deviations of one measurement."""

BUILD_RUNS = 10.0
"""Cost of a build, in runs."""

MOST_RUNS = 2000
"""Budget of one search."""

_ALPHA = 0.05
"""Level of the t-test with which plain searches compare a version with the first."""


def _heavy(rng: np.random.Generator) -> float:
    return float(rng.standard_t(3)) / math.sqrt(3.0)


def _outliers(rng: np.random.Generator) -> float:
    return float(rng.normal()) * (8.0 if rng.random() < 0.05 else 1.0)


NOISES: MappingProxyType[str, Callable[[np.random.Generator], float]] = MappingProxyType(
    {"normal": lambda rng: float(rng.normal()), "heavy tails": _heavy, "outliers": _outliers}
)
"""Name → one draw; of standard deviation 1, but for outliers, of which every twentieth has 8."""


@dataclass(slots=True)
class Range:
    """A range of commits that can be measured; counts the builds and runs that this takes."""

    commits: int
    cause: int  # first version of the new level; a number above the last version means no step
    step: float
    noise: Callable[[np.random.Generator], float]
    rng: np.random.Generator
    built: set[int] = field(default_factory=set)
    runs: int = 0

    def measure(self, version: int) -> float:
        """Measure a version once; build it first if it is not built."""
        self.built.add(version)
        self.runs += 1
        return LEVEL + (self.step if version >= self.cause else 0.0) + self.noise(self.rng)


Search = Callable[[Range], int | None]
"""Returns the version with which the new level begins; None if there is no step or it was not found."""


def by_posterior(threshold: float) -> Search:
    """Return the search of `smidgen trial bisect`, for steps of a threshold, in standard deviations."""
    config = BisectionConfig(runs=MOST_RUNS, belief=BeliefConfig(threshold=threshold / LEVEL))

    def search(span: Range) -> int | None:
        prior = np.full(span.commits, 1.0 / span.commits)
        measured: list[tuple[int, float]] = []
        while True:
            builds = [BUILD_RUNS] * len(span.built)
            record = SearchRecord(measured, frozenset(), builds, [1.0] * span.runs, frozenset(span.built))
            standing = standing_of(record, prior, config)
            if standing.next is None:
                break
            measured.append((standing.next, span.measure(standing.next)))
        return standing.likeliest[0] + 1 if standing.outcome is SearchOutcome.FOUND else None

    return search


def binary(repeats: int) -> Search:
    """Return a binary search that compares each version with the first: a t-test of ``repeats`` runs each."""

    def search(span: Range) -> int | None:
        first = [span.measure(0) for _ in range(repeats)]
        good, bad = 0, span.commits
        while bad - good > 1:
            middle = (good + bad) // 2
            if _slower(first, [span.measure(middle) for _ in range(repeats)]):
                bad = middle
            else:
                good = middle
        return bad

    return search


def chronological(repeats: int) -> Search:
    """Return a search that goes from commit to commit until one differs from the first version."""

    def search(span: Range) -> int | None:
        first = [span.measure(0) for _ in range(repeats)]
        return next(
            (
                version
                for version in range(1, span.commits + 1)
                if _slower(first, [span.measure(version) for _ in range(repeats)])
            ),
            None,
        )

    return search


def _slower(first: list[float], second: list[float]) -> bool:
    return bool(stats.ttest_ind(second, first, equal_var=False, alternative="greater").pvalue <= _ALPHA)


@dataclass(frozen=True, slots=True)
class SearchRow:
    """Results of one way to search: means over searches."""

    commits: int
    noise: str
    step: float  # in standard deviations of one run; 0 is no step
    search: str
    found: float
    """Share of searches that name the commit, or none if there is no step."""
    builds: float
    runs: float


def measure(commits: int, noise: str, step: float, searches: int, seed: int) -> list[SearchRow]:
    """Measure each way to search on the same ranges."""
    ways = {
        "posterior": by_posterior(step / 2.0 or 1.0),
        "binary, 5 runs each": binary(5),
        "binary, 10 runs each": binary(10),
        "in order, 5 runs each": chronological(5),
    }
    rows = []
    for name, search in ways.items():
        right, builds, runs = 0, 0, 0
        for number in range(searches):
            rng = np.random.default_rng((seed, commits, number))
            cause = int(rng.integers(1, commits + 1)) if step else commits + 1
            span = Range(commits, cause, step, NOISES[noise], rng)
            version = search(span)
            right += version == (cause if step else None)
            builds, runs = builds + len(span.built), runs + span.runs
        counts = (count / searches for count in (right, builds, runs))
        rows.append(SearchRow(commits, noise, step, name, *counts))
    return rows
