"""Decisions on an experiment: pass, fail, or not enough trials."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pipeline.experiments.trials.estimate import Estimates


class MetricDecision(StrEnum):
    """Decision on one metric of an experiment."""

    PASS = "pass"
    FAIL = "fail"
    NOT_ENOUGH = "not enough"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Definition of a regression of a metric."""

    threshold: float
    """Relative difference from which on it is a regression: 0.01 is 1 %."""
    alpha: float = 0.05
    """Chance that sides of the same code differ significantly, in either direction."""
    direction: Literal["up", "down"] = "up"
    """Whether more is worse, as of costs, or less, as of throughput."""


def decide(estimates: Estimates, bounds: Bounds) -> list[MetricDecision]:
    """Return the decision on each experiment.

    fail: the difference is significant and as large as the threshold. pass: a regression of the threshold is
    excluded by the interval. Otherwise more trials are needed.
    """
    sign = 1.0 if bounds.direction == "up" else -1.0
    worse = sign * estimates.difference
    most = estimates.high if bounds.direction == "up" else -estimates.low
    fails = (estimates.p_value <= bounds.alpha) & (worse >= bounds.threshold)
    passes = most < bounds.threshold
    return [
        MetricDecision.FAIL if fail else MetricDecision.PASS if passed else MetricDecision.NOT_ENOUGH
        for fail, passed in zip(fails, passes, strict=True)
    ]
