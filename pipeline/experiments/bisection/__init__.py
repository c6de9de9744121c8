"""Bisection under noise: the commit of a range that makes a step, by few builds and runs."""

from pipeline.experiments.bisection.belief import Belief, BeliefConfig, MeasuredVersions, believe
from pipeline.experiments.bisection.choice import MeasurementCosts, next_version
from pipeline.experiments.bisection.search import (
    ENDS,
    BisectionConfig,
    SearchOutcome,
    SearchRecord,
    SearchState,
    standing_of,
)
from pipeline.experiments.bisection.suspects import prior_of, suspect_range

__all__ = [
    "ENDS",
    "Belief",
    "BeliefConfig",
    "MeasurementCosts",
    "MeasuredVersions",
    "SearchOutcome",
    "SearchRecord",
    "BisectionConfig",
    "SearchState",
    "believe",
    "next_version",
    "prior_of",
    "standing_of",
    "suspect_range",
]
