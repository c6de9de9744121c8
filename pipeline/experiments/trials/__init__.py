"""Trials before a release: side A against side B, by the model that holds its errors (ServiceLab §4.2)."""

from pipeline.experiments.trials.choice import Choice, ChoiceConfig, choose
from pipeline.experiments.trials.covariate import Covariate
from pipeline.experiments.trials.decision import Bounds, MetricDecision, decide
from pipeline.experiments.trials.estimate import Estimates, Experiments, anytime_valid
from pipeline.experiments.trials.experiment import (
    Experiment,
    ExperimentSide,
    ExperimentState,
    WholeTrial,
    standing_of,
)
from pipeline.experiments.trials.models import MODELS, Model
from pipeline.experiments.trials.needed import half_widths, trials_needed
from pipeline.experiments.trials.verdict import (
    MetricVerdict,
    ModelConfig,
    Sides,
    differences_by_trial,
    judge_trials,
)
from pipeline.experiments.trials.warmup import discard_warm_up, warm_up_points

__all__ = [
    "MODELS",
    "Bounds",
    "Choice",
    "ChoiceConfig",
    "Covariate",
    "MetricDecision",
    "Estimates",
    "Experiment",
    "Experiments",
    "Model",
    "ModelConfig",
    "ExperimentSide",
    "Sides",
    "ExperimentState",
    "MetricVerdict",
    "WholeTrial",
    "anytime_valid",
    "choose",
    "decide",
    "differences_by_trial",
    "discard_warm_up",
    "half_widths",
    "judge_trials",
    "standing_of",
    "trials_needed",
    "warm_up_points",
]
