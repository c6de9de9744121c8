"""Bisection under noise: the commit of a range that makes a step, by few builds and runs."""

from pipeline.experiments.bisection.belief import Belief, BeliefConfig, Measured, believe
from pipeline.experiments.bisection.choice import Costs, next_version
from pipeline.experiments.bisection.search import ENDS, Outcome, Record, SearchConfig, Standing, standing_of
from pipeline.experiments.bisection.suspects import prior_of, suspect_range

__all__ = [
    "ENDS",
    "Belief",
    "BeliefConfig",
    "Costs",
    "Measured",
    "Outcome",
    "Record",
    "SearchConfig",
    "Standing",
    "believe",
    "next_version",
    "prior_of",
    "standing_of",
    "suspect_range",
]
