"""The seven models of ServiceLab (§4.2), and that of trials' differences by Student."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from scipy import special

from pipeline.model import FloatArray
from pipeline.trials.estimate import Estimates, Experiments, relative_of_roots, trial_differences
from pipeline.trials.history import interval_test
from pipeline.trials.permutation import permutation_test
from pipeline.trials.student import t_test


@dataclass(frozen=True, slots=True)
class Model:
    """How the difference of two sides is estimated and tested."""

    name: str
    about: str
    """One sentence: what it compares, and for what it is."""
    estimate: Callable[[Experiments, float], Estimates]
    """Takes experiments and alpha."""
    from_history: bool = False
    """Whether it needs A/A tests of the past."""


_ROUNDING = 1e-12
"""Share of a mean that its error has by rounding alone."""


def _roots(experiments: Experiments) -> Experiments:
    return replace(experiments, a=np.sqrt(experiments.a), b=np.sqrt(experiments.b))


def _squared(estimates: Estimates) -> Estimates:
    return Estimates(
        relative_of_roots(estimates.difference),
        relative_of_roots(estimates.low),
        relative_of_roots(estimates.high),
        estimates.p_value,
    )


def _paired(differences: FloatArray, alpha: float) -> Estimates:
    trials = differences.shape[1]
    mean = differences.mean(axis=1)
    if trials < 2:
        return Estimates.unbounded(mean)
    error = differences.std(axis=1, ddof=1) / np.sqrt(trials)
    half = special.stdtrit(trials - 1, 1.0 - alpha / 2.0) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        p_value = 2.0 * special.stdtr(trials - 1, -np.abs(mean) / error)
    # Differences without a spread show no noise, yet of equal sides their signs alone are chance.
    constant = error <= _ROUNDING * np.abs(mean)
    p_value = np.where(constant, np.where(mean == 0, 1.0, 2.0 ** (1 - trials)), p_value)
    half = np.where(constant, np.where((p_value <= alpha) | (mean == 0), 0.0, np.inf), half)
    return Estimates(mean, mean - half, mean + half, p_value)


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
        lambda experiments, alpha: _paired(trial_differences(experiments), alpha),
    ),
)

MODELS = MappingProxyType({model.name: model for model in _ALL})
"""Name → model. The first seven are the paper's."""
