"""Bisection under noise: which commit of a range makes a step, by as few builds and runs as it takes."""

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
