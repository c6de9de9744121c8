"""The seven models of ServiceLab (§4.2), two more on differences of trials, and those on requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from pipeline.experiments.trials.estimate import Estimates, Experiments, relative_of_roots, trial_differences
from pipeline.experiments.trials.history import interval_test
from pipeline.experiments.trials.pairs import paired_by_request
from pipeline.experiments.trials.permutation import permutation_test
from pipeline.experiments.trials.signed_rank import signed_rank_test
from pipeline.experiments.trials.student import paired_t_test, t_test
from pipeline.experiments.trials.typical import paired_by_request_trimmed


@dataclass(frozen=True, slots=True)
class Model:
    """A method that estimates and tests the difference of two sides."""

    name: str
    about: str
    """One sentence: the compared values and the use of the model."""
    estimate: Callable[[Experiments, float], Estimates]
    """Takes experiments and alpha."""
    from_history: bool = False
    """Whether it needs A/A tests of the past."""
    by_request: bool = False
    """Whether it needs to know which points are of the same request."""
    by_name: bool = False
    """Whether the choice leaves it out: that tries regressions of all points, and the model misses others."""


BY_REQUEST = "paired-by-request"
"""The model of pairs of points."""


def _roots(experiments: Experiments) -> Experiments:
    return replace(experiments, a=np.sqrt(experiments.a), b=np.sqrt(experiments.b))


def _squared(estimates: Estimates) -> Estimates:
    return Estimates(
        relative_of_roots(estimates.difference),
        relative_of_roots(estimates.low),
        relative_of_roots(estimates.high),
        estimates.p_value,
    )


_ALL = (
    Model("t-test-none", "Student's t-test of all points: single trials.", t_test),
    Model(
        "t-test-sqrt",
        "The same of square roots: few requests cost most.",
        lambda experiments, alpha: _squared(t_test(_roots(experiments), alpha)),
    ),
    Model(
        "t-test-outlier-elim",
        "The same without the largest points.",
        lambda experiments, alpha: t_test(experiments, alpha, "elim"),
    ),
    Model(
        "t-test-outlier-cap",
        "The same with the largest points capped (winsorised).",
        lambda experiments, alpha: t_test(experiments, alpha, "cap"),
    ),
    Model(
        "permutation-test-none",
        "Signs of trials' differences flipped: six trials or more, any distribution.",
        lambda experiments, alpha: permutation_test(trial_differences(experiments), alpha),
    ),
    Model(
        "permutation-test-sqrt",
        "The same of square roots.",
        lambda experiments, alpha: _squared(permutation_test(trial_differences(_roots(experiments)), alpha)),
    ),
    Model(
        "confidence-interval-none",
        "Trials' differences against those of A/A tests of two weeks: noisy metrics, few trials.",
        lambda experiments, alpha: interval_test(trial_differences(experiments), experiments.history, alpha),
        from_history=True,
    ),
    Model(
        "paired-t-test",
        "Student's t-test of trials' differences: what differs between trials does not count.",
        lambda experiments, alpha: paired_t_test(trial_differences(experiments), alpha),
    ),
    Model(
        "signed-rank",
        "Ranks of trials' differences: some trials are disturbed as a whole; six trials or more.",
        lambda experiments, alpha: signed_rank_test(trial_differences(experiments), alpha),
    ),
    Model(
        BY_REQUEST,
        "Points of the same request: both sides served the same requests.",
        paired_by_request,
        by_request=True,
    ),
    Model(
        "paired-by-request-trimmed",
        "The typical ratio of such points: long tails of noise, and a change of most requests.",
        paired_by_request_trimmed,
        by_request=True,
        by_name=True,
    ),
)

MODELS = MappingProxyType({model.name: model for model in _ALL})
"""Name → model. The first seven are the paper's."""
