"""By which rules regressions are merged (FBDetect §5.4.8): what a workload file may say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.dedup.releases import ReleaseConfig

Between = Literal["any", "gcpu", "service", "mixed"]
"""Which pairs a rule is for: any, both gCPU, both service-level metrics, or one of each."""

Feature = Literal["cause", "caller", "release", "stacks", "correlation", "metric_id"]


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Two regressions are one if all of these similarities reach their bounds."""

    bounds: Mapping[Feature, float]
    between: Between = "any"


DEFAULT_RULES = (
    MergeRule({"cause": 0.7}, between="gcpu"),
    MergeRule({"caller": 0.7}, between="gcpu"),
    MergeRule({"release": 0.99}, between="gcpu"),
    MergeRule({"stacks": 0.7}, between="gcpu"),
    MergeRule({"correlation": 0.9}, between="service"),
)
"""One of them is enough. Most of a rise is 0.7 of it, since what is found of it is an estimate.

None is for gCPU and a service-level metric: two large steps of one hour correlate whatever made them, and who
waits for a drop of throughput should not have to look for it in an update. Users may add one.
"""


@dataclass(frozen=True, slots=True)
class PairwiseConfig:
    """Settings of the merging."""

    rules: tuple[MergeRule, ...] = DEFAULT_RULES
    most: float = 0.7  # share of a rise that is most of it
    rare: float = 0.05  # gCPU below which a common caller is no chance
    release: ReleaseConfig = ReleaseConfig()
