"""Weights of the ranking of suspects, learned from confirmed causes and drawn to the shipped weights.

If every commit is titled with a ticket's number, texts deserve no weight; if changes have no known
subroutines, attribution deserves none. The ranking is a conditional logit, so confirmed causes have a
likelihood under its weights. A normal prior stands around the shipped weights, and the weights of the highest
posterior count. They equal the shipped ones without a confirmation, and few move them little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.rootcause import FEATURES, RankingConfig, weights_of
from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The suspects that an event named with the evidence on each, and the change that was confirmed."""

    evidence: Mapping[str, Mapping[str, float]]  # by change; of each the features that are not 0, in nats
    cause: str  # perhaps none of them


@dataclass(frozen=True, slots=True)
class LearningConfig:
    """Strength of the prior of the weights."""

    deviation: float = 0.2  # of the prior of each weight: some 25 confirmations weigh as much
    held: tuple[str, ...] = ("base",)  # the probability of any cause cannot be learned from causes alone
    steps: int = 50  # of Newton's method; a handful suffices
    most: int = 500  # largest number of confirmations, the latest ones


_CLOSE = 1e-9
"""Largest step of all weights at which the iteration has converged."""


def learn_ranking(
    shipped: RankingConfig, confirmations: Sequence[Confirmation], config: LearningConfig | None = None
) -> RankingConfig:
    """Return the ranking with the weights that confirmed causes make likeliest.

    Args:
        shipped: What the weights are drawn to; it is returned as it is without a confirmation.
        confirmations: Oldest first; those without evidence say nothing.
        config: How firmly.
    """
    config = config or LearningConfig()
    cases = [_case(confirmation) for confirmation in confirmations[-config.most :] if confirmation.evidence]
    if not cases:
        return shipped
    prior = weights_of(shipped)
    weights = _likeliest(cases, prior, config)
    # Evidence for a change never becomes evidence against it, however often it was misleading.
    signed = np.where(prior >= 0, np.maximum(weights, 0.0), np.minimum(weights, 0.0))
    return replace(shipped, **dict(zip(FEATURES, signed.tolist(), strict=True)))


def _case(confirmation: Confirmation) -> tuple[FloatArray, int]:
    """Return the features of an event's suspects and the index of its cause; -1 if it is none of them."""
    names = list(confirmation.evidence)
    rows = [
        [1.0 if name == "base" else float(confirmation.evidence[change].get(name, 0.0)) for name in FEATURES]
        for change in names
    ]
    return np.array(rows), names.index(confirmation.cause) if confirmation.cause in names else -1


def _likeliest(
    cases: Sequence[tuple[FloatArray, int]], prior: FloatArray, config: LearningConfig
) -> FloatArray:
    """Return the weights of the highest posterior, by Newton's method with steps halved until they help."""
    free = np.array([name not in config.held for name in FEATURES])
    precision = 1.0 / config.deviation**2
    weights = prior.copy()

    def loss(at: FloatArray) -> float:
        surprise = sum(_surprise(table, cause, at) for table, cause in cases)
        return surprise + 0.5 * precision * float(((at - prior) ** 2).sum())

    best = loss(weights)
    for _ in range(config.steps):
        slope, curvature = _derivatives(cases, weights)
        slope += precision * (weights - prior)
        curvature += precision * np.eye(len(prior))
        step = np.zeros(len(prior))
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        while (trial_loss := loss(weights - step)) > best and np.abs(step).max() > _CLOSE:
            step /= 2
        if trial_loss > best or np.abs(step).max() <= _CLOSE:
            break
        weights, best = weights - step, trial_loss
    return weights


def _surprise(table: FloatArray, cause: int, weights: FloatArray) -> float:
    """Return the surprise at a cause, in nats: minus the log of its confidence, or of that of no cause."""
    relevance = table @ weights - np.log(len(table))
    whole = float(np.logaddexp(np.logaddexp.reduce(relevance), 0.0))
    return whole - (float(relevance[cause]) if cause >= 0 else 0.0)


def _derivatives(
    cases: Sequence[tuple[FloatArray, int]], weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return gradient and Hessian of the surprise at all causes: (FEATURES,) and its square."""
    slope, curvature = np.zeros(len(weights)), np.zeros((len(weights), len(weights)))
    for table, cause in cases:
        relevance = table @ weights - np.log(len(table))
        shares = np.exp(relevance - np.logaddexp(np.logaddexp.reduce(relevance), 0.0))
        mean = shares @ table
        slope += mean - (table[cause] if cause >= 0 else 0.0)
        curvature += (table.T * shares) @ table - np.outer(mean, mean)
    return slope, curvature
