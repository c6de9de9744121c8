"""By which rules regressions are merged (FBDetect §5.4.8): what a workload file may say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.analysis.dedup.releases import ReleaseConfig

Between = Literal["any", "gcpu", "service", "mixed"]
"""Which pairs a rule is for: any, both gCPU, both service-level metrics, or one of each."""

Feature = Literal["cause", "caller", "release", "stacks", "correlation", "metric_id", "onset"]


ROUNDING = 1e-9
"""By how much a share may miss its bound: sums of equal rises differ so far by their order."""


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Two regressions are one if all of these similarities reach their bounds."""

    bounds: Mapping[Feature, float]
    between: Between = "any"

    @property
    def is_of_group(self) -> bool:
        """Whether it asks for the overlap of stacks alone, which is that with a group."""
        return tuple(self.bounds) == ("stacks",) and self.between in ("any", "gcpu")


DEFAULT_RULES = (
    MergeRule({"cause": 0.7}, between="gcpu"),
    MergeRule({"caller": 0.7}, between="gcpu"),
    MergeRule({"release": 0.99}, between="gcpu"),
    MergeRule({"stacks": 0.7}, between="gcpu"),
    MergeRule({"correlation": 0.9}, between="service"),
    MergeRule({"onset": 0.95}, between="service"),
    MergeRule({"onset": 0.95}, between="mixed"),
)
"""One of them is enough. Most of a rise is 0.7 of it, since what is found of it is an estimate.

For gCPU and a service-level metric none is by correlation: two large steps of one hour correlate whatever
made them. That they begin together must be as sure as the intervals of their change times are.
"""


@dataclass(frozen=True, slots=True)
class PairwiseConfig:
    """Settings of the merging."""

    rules: tuple[MergeRule, ...] = DEFAULT_RULES
    most: float = 0.7  # share of a rise that is most of it
    release: ReleaseConfig = ReleaseConfig()

    def least_bound(self, *, gcpu: bool) -> float:
        """Return the lowest bound of any rule for two regressions of gCPU, or of service-level metrics."""
        kinds = ("any", "gcpu" if gcpu else "service")
        bounds = [bound for rule in self.rules if rule.between in kinds for bound in rule.bounds.values()]
        return min(bounds, default=self.most)
