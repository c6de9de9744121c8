"""Comparison of two results of the accuracy suite, run by run: on equal fleets only the code differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.evaluation.suite.runs import FIGURES, Figure, Run, figure_of, mean_json, pooled
from loadgen.harness import Mean, mean_of

POOLED = ("precision", "recall", "repeated", "false_positive_rate", "top_1", "top_3")
"""Figures of all common runs together that a comparison shows."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A figure of a scenario that changed: the mean of the paired differences."""

    scenario: str
    figure: Figure
    old: float
    new: float
    difference: Mean

    @property
    def better(self) -> bool:
        """Whether the figure moved in the better direction."""
        return (self.difference.value > 0) == self.figure.higher_is_better

    @property
    def sure(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True, slots=True)
class SuiteDifference:
    """Changes between two results, over the runs that both have."""

    common: int
    moved: tuple[Moved, ...]
    old: Mapping[str, Any]  # pooled over the common runs
    new: Mapping[str, Any]

    @property
    def worse(self) -> bool:
        """Whether precision or recall over all common runs fell."""
        return any(
            (self.new[name]["value"] or 0.0) < (self.old[name]["value"] or 0.0)
            for name in ("precision", "recall")
        )

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        return {
            "common_runs": self.common,
            "worse": self.worse,
            "all": {name: {"old": self.old[name], "new": self.new[name]} for name in POOLED},
            "moved": [
                {
                    "scenario": change.scenario,
                    "figure": change.figure.name,
                    "old": change.old,
                    "new": change.new,
                    "difference": mean_json(change.difference),
                    "better": change.better,
                    "sure": change.sure,
                }
                for change in self.moved
            ],
        }


def compare_suites(old: Sequence[Run], new: Sequence[Run]) -> SuiteDifference:
    """Pair runs of the same scenario and seed, and return the changed figures."""
    before = {(run["scenario"], run["seed"]): run for run in old}
    pairs = [(before[key], run) for run in new if (key := (run["scenario"], run["seed"])) in before]
    moved = []
    for scenario in dict.fromkeys(run["scenario"] for _, run in pairs):
        for figure in FIGURES:
            change = _moved(scenario, figure, [pair for pair in pairs if pair[1]["scenario"] == scenario])
            if change is not None:
                moved.append(change)
    return SuiteDifference(
        common=len(pairs),
        moved=tuple(moved),
        old=pooled([fleet_run for fleet_run, _ in pairs]),
        new=pooled([fleet_run for _, fleet_run in pairs]),
    )


def _moved(scenario: str, figure: Figure, pairs: Sequence[tuple[Run, Run]]) -> Moved | None:
    values = [(figure_of(old_value, figure), figure_of(new_value, figure)) for old_value, new_value in pairs]
    both = [
        (old_value, new_value)
        for old_value, new_value in values
        if old_value is not None and new_value is not None
    ]
    difference = mean_of(new_value - old_value for old_value, new_value in both)
    if difference is None or all(old_value == new_value for old_value, new_value in both):
        return None
    old, new = (sum(side) / len(both) for side in zip(*both, strict=True))
    return Moved(scenario, figure, old, new, difference)
