"""Selection of changes that are worth an experiment (ServiceLab §3.1, DiffSuggester), and kept tests."""

from pipeline.experiments.selection.budget import Budget, ExperimentWorth, worth_of
from pipeline.experiments.selection.chance import Chance, Example, learn_chance
from pipeline.experiments.selection.impact import EndpointImpact, Impact, impact_of, score_of, touched_share
from pipeline.experiments.selection.kept import (
    FixedRegression,
    KeptTest,
    MetricTrials,
    is_fixed,
    keep_test,
    touched_tests,
)

__all__ = [
    "Budget",
    "Chance",
    "EndpointImpact",
    "Example",
    "FixedRegression",
    "Impact",
    "KeptTest",
    "MetricTrials",
    "ExperimentWorth",
    "impact_of",
    "is_fixed",
    "keep_test",
    "learn_chance",
    "score_of",
    "touched_share",
    "touched_tests",
    "worth_of",
]
