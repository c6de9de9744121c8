"""The ranking of changes deployed just before a regression by their relevance to it (FBDetect §5.4.9).

The paper weighs several factors and adds them up to a change's relevance, and suggests changes only where it
is confident enough. Here each factor is evidence: the logarithm of how much likelier it is of the root cause
than of any other change of the service. Then the weighted sum is the logarithm of odds, and the odds of all
candidates, against each other and against "none of them", give every change a probability of being the root
cause: its confidence. That is a conditional logit, which is Bayes' rule where the factors are
independent; weights below 1 allow for what they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeline.analysis.rootcause.attribution import Attribution
from pipeline.analysis.rootcause.change_kind import says_something
from pipeline.analysis.rootcause.onset import Deployments
from pipeline.model import Change, FloatArray, IntArray, Suspect


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence on each candidate change: parallel sequences."""

    changes: tuple[Change, ...]
    deployments: Deployments
    attributions: tuple[Attribution | None, ...]  # None: no stacks that rose, or no subroutines are known
    similarity: FloatArray  # cosine of texts, 0 to 1
    similarity_chance: FloatArray  # share of the service's changes with a similarity as large
    correlation: FloatArray  # with a set-up metric that the change names, 0 to 1; NaN: there is none
    trials: FloatArray  # evidence of trials before the release, in nats; 0: there were none
    without: frozenset[str] = frozenset()  # keys of the factors that were left out


@dataclass(frozen=True, slots=True)
class RankingConfig:
    """Weights of the evidence, and how many suspects are named; the paper gives no numbers.

    The weights make the root causes of simulated fleets likeliest, drawn towards what they would be if the
    evidence were independent and exact, 1, and 0 for the constants. ``loadgen.evaluation.relevance`` finds
    them, and docs/maths/suspects.md says of which fleets.
    """

    base: float = -0.85  # log odds that any candidate is the cause
    deployment: float = 0.75
    attribution: float = 1.15
    rank: float = 1.65  # further from the nearest one: a caller of the regressed code, most often
    noise: float = -3.4  # a change that modified something, but nothing that rose
    text: float = 1.0
    correlation: float = 5.1
    trial: float = 1.0  # simulated fleets have none: as if independent and exact
    min_confidence: float = 2 / 3  # that the root cause is named: a wrong suggestion costs two missed ones
    min_share: float = 0.05  # minimum confidence of a change that is named beside a likelier one
    most: int = 3  # §5.5.3: a suggestion is right if the root cause is among the first three


FEATURES = ("base", "deployment", "attribution", "rank", "noise", "text", "correlation", "trial")
"""Names of the columns of ``features``, each the weight of that name in RankingConfig."""


def leave_out(evidence: Evidence, factors: frozenset[str]) -> Evidence:
    """Return the evidence as if some factors were unknown of every change, which favours no change.

    Args:
        evidence: Of all factors.
        factors: Keys of ``pipeline.model.steps``; those that are no factors are ignored.
    """
    size = len(evidence.changes)
    without = frozenset(factors) & frozenset(_UNKNOWN)
    unknown = {name: of(size) for key in sorted(without) for name, of in _UNKNOWN[key].items()}
    return replace(evidence, **unknown, without=evidence.without | without)


_UNKNOWN: Mapping[str, Mapping[str, Callable[[int], Any]]] = {
    "factor_attribution": {"attributions": lambda size: (None,) * size},
    "factor_recency": {"deployments": lambda size: Deployments(np.zeros(size), np.zeros(size))},
    "factor_text": {"similarity": np.zeros, "similarity_chance": np.ones},
    "factor_correlation": {"correlation": lambda size: np.full(size, np.nan)},
    "factor_trial": {"trials": np.zeros},
}
"""Factor → its value in the evidence of `count` changes if nothing is known of it."""


def features(evidence: Evidence) -> FloatArray:
    """Return what the weights multiply: (changes, FEATURES).

    Evidence is in nats. The text of a change repeats what stacks attribute to it, since a title names the
    modified code; so the text counts for the part that is not attributed.
    """
    beyond_noise = [part if part is not None and part.chance < 1 else None for part in evidence.attributions]
    chance = np.array([1.0 if part is None else part.chance for part in beyond_noise])
    rank = np.array([1.0 if part is None else part.rank for part in beyond_noise])
    attributed = np.array([0.0 if part is None else part.counted for part in beyond_noise])
    noise = [part is not None and part.chance >= 1 for part in evidence.attributions]
    return np.column_stack(
        [
            np.ones(len(evidence.changes)),
            evidence.deployments.evidence,
            -np.log(chance),
            -np.log(rank),
            np.array(noise, dtype=np.float64),
            -np.log(evidence.similarity_chance) * (1 - attributed),
            np.nan_to_num(evidence.correlation),
            evidence.trials,
        ]
    )


def weights_of(config: RankingConfig) -> FloatArray:
    """Return the weights in the order of FEATURES."""
    return np.array([getattr(config, name) for name in FEATURES], dtype=np.float64)


def confidences(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Return each change's probability of being the root cause: (changes,); the rest to 1 is that of none.

    Before any evidence one change is as likely as another, and their sum does not grow with their number.

    Args:
        table: (changes, FEATURES).
        weights: (FEATURES,).
    """
    if not len(table):
        return np.zeros(0)
    relevance = table @ weights - np.log(len(table))
    whole = np.logaddexp(np.logaddexp.reduce(relevance), 0.0)
    return np.asarray(np.exp(relevance - whole), dtype=np.float64)


def rank_over_cases(
    cases: Sequence[tuple[float, Evidence]], config: RankingConfig | None = None
) -> tuple[Suspect, ...]:
    """Return the changes that may have caused a regression, the likeliest first.

    The regression may be one of several, the cases. A suspect's score is its confidence over the cases; its
    factors are those of the case that gives it most: ``attribution``, the fraction of the regression from
    stacks that hold a modified subroutine (0 where that is noise); ``recency``, how well the series' rise
    fits the time of the deployment, relative to the best time; ``text``, the cosine of the texts;
    ``correlation``, with a set-up metric that the change names; ``trial``, what trials say, in nats. A factor
    that could not be computed is absent.

    A change of which nothing is known but when it was deployed may be the root cause as well as another, and
    takes its part of the confidence; but it is not named, since nothing besides its time could speak for it.

    Args:
        cases: At least one: its probability, and its evidence, on the same changes in every case.
        config: Weights.

    Returns:
        Empty if the confidence that the root cause is among them is under ``min_confidence``.
    """
    config = config or RankingConfig()
    tables = [features(evidence) for _, evidence in cases]
    weights = weights_of(config)
    confidence, best = over_cases([p for p, _ in cases], [confidences(table, weights) for table in tables])
    changes = cases[0][1].changes
    described = [i for i, change in enumerate(changes) if says_something(change)]
    order = sorted(described, key=lambda i: (-float(confidence[i]), -changes[i].time, changes[i].id))
    order = order[: config.most]
    if sum(confidence[i] for i in order) < config.min_confidence:
        return ()
    named = [i for n, i in enumerate(order) if n == 0 or confidence[i] >= config.min_share]
    return tuple(
        Suspect(
            changes[i],
            float(confidence[i]),
            _factors(cases[best[i]][1], i),
            evidence=_weighed(tables[best[i]][i]),
        )
        for i in named
    )


def over_cases(
    probabilities: Sequence[float], confidence: Sequence[FloatArray] | Sequence[Sequence[float]]
) -> tuple[FloatArray, IntArray]:
    """Return each change's confidence over cases, and its case of highest confidence: (changes,) both.

    Args:
        probabilities: Of each case, one at least; they count as parts of their sum, which is above 0.
        confidence: (changes,) of each case, if it is that one.
    """
    parts = np.asarray(probabilities)[:, None] / sum(probabilities) * np.asarray(confidence)
    return parts.sum(axis=0), parts.argmax(axis=0)


def _weighed(row: FloatArray) -> dict[str, float]:
    """Return the products of weights and features of one change, without the constant and without zeros."""
    return {name: float(value) for name, value in zip(FEATURES, row, strict=True) if value and name != "base"}


def _factors(evidence: Evidence, index: int) -> dict[str, float]:
    attribution = evidence.attributions[index]
    factors = {} if attribution is None else {"attribution": attribution.counted}
    factors["recency"] = float(evidence.deployments.recency[index])
    factors["text"] = float(evidence.similarity[index])
    if np.isfinite(evidence.correlation[index]):
        factors["correlation"] = float(evidence.correlation[index])
    if evidence.trials[index]:
        factors["trial"] = float(evidence.trials[index])
    return {name: value for name, value in factors.items() if f"factor_{name}" not in evidence.without}


def candidate_changes(
    changes: Sequence[Change], change_time: float, *, lookback_s: float, tolerance_s: float
) -> tuple[Change, ...]:
    """Return the changes that were deployed immediately before a change point, oldest first.

    Of a change that was announced several times in that span, by each host or restart, the first counts.

    Args:
        changes: Deployed changes of the service.
        change_time: Start of the first window of the new regime, epoch seconds.
        lookback_s: How long before it a change may have been deployed.
        tolerance_s: How long after it, since a change point is only as exact as its windows.
    """
    near = [c for c in changes if change_time - lookback_s <= c.time <= change_time + tolerance_s]
    return first_announcements(near)


def first_announcements(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the first of each id, oldest first: every host of a deployment may announce it."""
    first: dict[str, Change] = {}
    for change in sorted(changes, key=lambda change: (change.time, change.id)):
        first.setdefault(change.id, change)
    return tuple(first.values())
