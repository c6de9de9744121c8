"""The search for the commit of a step: its record, the next measurement, and the rule that ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from pipeline.experiments.bisection.belief import Belief, BeliefConfig, MeasuredVersions, believe
from pipeline.experiments.bisection.choice import MeasurementCosts, next_version
from pipeline.model import FloatArray

ENDS = 3
"""Measurements of the first and of the last version before any other: fewer cannot show the noise."""


class SearchOutcome(StrEnum):
    """State of a search."""

    OPEN = "open"
    FOUND = "found"
    NONE = "none"
    """No commit of the range makes a step that counts."""
    SPENT = "spent"
    """The budget ended before the posterior was reached."""
    UNMEASURED = "unmeasured"
    """The first or the last version cannot be measured."""


@dataclass(frozen=True, slots=True)
class BisectionConfig:
    """Rules that end a search, and its assumptions."""

    confidence: float = 0.95
    """Posterior at which the search ends."""
    builds: int | None = None
    """Most versions that are built, those that fail among them; None is no bound."""
    runs: int | None = None
    """Most measurements."""
    belief: BeliefConfig = field(default_factory=BeliefConfig)


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """All that was done so far. Version 0 is the code before the range, version i that with commit i.

    Args:
        measured: Version and value of each measurement, in order.
        skipped: Versions that could not be built or measured.
        build_s: Seconds that builds took, those that failed among them.
        run_s: Seconds that measurements took.
        ready: Versions that are built and still there.
    """

    measured: Sequence[tuple[int, float]] = ()
    skipped: frozenset[int] = frozenset()
    build_s: Sequence[float] = ()
    run_s: Sequence[float] = ()
    ready: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """The state of a search, by its record.

    Args:
        outcome: How the search stands.
        next: The version to measure next; None if it is over.
        none: Probability that no commit makes a step.
        commits: (commits,) probability that each does.
        group: (commits,) of those that no version that can be measured lies between the same number.
        belief: With the levels; None until both ends are measured.
    """

    outcome: SearchOutcome
    next: int | None
    none: float
    commits: FloatArray
    group: tuple[int, ...]
    belief: Belief | None

    @property
    def likeliest(self) -> tuple[int, ...]:
        """The commits, from 0 on, of the group that holds most of the posterior."""
        best = int(np.bincount(self.group, weights=self.commits).argmax())
        return tuple(number for number, group in enumerate(self.group) if group == best)


def standing_of(record: SearchRecord, prior: FloatArray, config: BisectionConfig) -> SearchState:
    """Return how a search stands, and which version it should measure next.

    Both ends come first, in turn. Then it is the version from which most is learnt of the step in each
    second: of one that is not built yet, its build is part of the cost.

    Args:
        record: What was done so far.
        prior: (commits,) how likely each commit is if one makes the step; its sum is 1.
        config: When it is over.
    """
    last = len(prior)
    group = _groups(record.skipped, last)
    if record.skipped & {0, last}:
        return _standing(SearchOutcome.UNMEASURED, None, prior, config, group)
    counts = np.bincount([version for version, _ in record.measured], minlength=last + 1)
    allowed = _allowed(record, config)
    if min(counts[0], counts[last]) < ENDS:
        end = 0 if counts[0] <= counts[last] else last
        spent = end not in allowed
        return _standing(
            SearchOutcome.SPENT if spent else SearchOutcome.OPEN, None if spent else end, prior, config, group
        )
    version, value = (np.array(column) for column in zip(*record.measured, strict=True))
    belief = believe(MeasuredVersions(version, value), prior, config.belief)
    most = float(np.bincount(group, weights=belief.commits).max())
    follows = None
    if max(most, belief.none) >= config.confidence:
        outcome = SearchOutcome.FOUND if most > belief.none else SearchOutcome.NONE
    else:
        follows = next_version(belief, _costs(record, allowed, last + 1))
        outcome = SearchOutcome.SPENT if follows is None else SearchOutcome.OPEN
    return SearchState(outcome, follows, belief.none, belief.commits, group, belief)


def _standing(
    outcome: SearchOutcome,
    follows: int | None,
    prior: FloatArray,
    config: BisectionConfig,
    group: tuple[int, ...],
) -> SearchState:
    """Return the standing before any measurement: the assumptions alone."""
    none = config.belief.none
    return SearchState(outcome, follows, none, (1.0 - none) * prior, group, None)


def _groups(skipped: frozenset[int], commits: int) -> tuple[int, ...]:
    """Return a number for each commit: the same for those between which no version can be measured."""
    able = [version not in skipped for version in range(1, commits)]
    return (0, *np.cumsum(able).tolist())


def _allowed(record: SearchRecord, config: BisectionConfig) -> frozenset[int] | range:
    """Return the versions that the budget allows to be measured."""
    if config.runs is not None and len(record.run_s) >= config.runs:
        return frozenset()
    if config.builds is not None and len(record.build_s) >= config.builds:
        return record.ready
    return range(1 << 62)


def _costs(record: SearchRecord, allowed: frozenset[int] | range, versions: int) -> MeasurementCosts:
    """Return costs in seconds: their averages so far."""
    run, build = (max(float(np.mean(item)), 1e-6) if item else 1.0 for item in (record.run_s, record.build_s))
    costs = np.array(
        [
            np.inf
            if item in record.skipped or item not in allowed
            else 0.0
            if item in record.ready
            else build
            for item in range(versions)
        ]
    )
    return MeasurementCosts(run, costs)
