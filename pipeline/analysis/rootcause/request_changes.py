"""Suspects of a request that costs more in a new release (Liao et al. 2021, §5 step 5), by source alone.

The paper lists the changes of any method along the request's call graph. Here they are ranked by the same
weights as the suspects of profiles (``pipeline.analysis.rootcause.ranking``), with the call graph in place of
stacks: how near a change comes to the request, and how improbable so near a change is at random. A method
that many requests reach is as far from each of them: were it slower, all of them would cost more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.rootcause.attribution import NO_PART, Attribution
from pipeline.analysis.rootcause.change_kind import modifies_no_code
from pipeline.analysis.rootcause.onset import Deployments
from pipeline.analysis.rootcause.ranking import Evidence, RankingConfig, confidences, features, weights_of
from pipeline.analysis.rootcause.text import ChangeTexts, chances, change_words, compact, regression_words
from pipeline.model import Change, FloatArray, Suspect

_KIND = "endpoint"
"""Noun for a request among the kinds of metrics, whose words count."""

_NEARLY_SURE = 1.0 - 1e-9
"""Chance of a change whose subroutines are not reached: just under 1."""


@dataclass(frozen=True, slots=True)
class RequestReach:
    """Subroutines that one type of request may run.

    Args:
        request: The type, such as ``GET /orders/:id``.
        depths: Subroutine → fewest calls from the handler, 0 for itself.
        requests: Subroutine → how many handlers reach it, 1 at least.
        subroutines: All of the source.
    """

    request: str
    depths: Mapping[str, int]
    requests: Mapping[str, int]
    subroutines: frozenset[str]

    @property
    def nearness(self) -> dict[str, float]:
        """Subroutine → 1 for the handler itself, 1/2 for what it calls, and so on, over its requests."""
        return {name: 1.0 / ((1 + depth) * self.requests.get(name, 1)) for name, depth in self.depths.items()}


def rank_request_changes(
    reach: RequestReach, changes: Sequence[Change], config: RankingConfig | None = None
) -> tuple[Suspect, ...]:
    """Return the changes of a release that modify what a request reaches, the likeliest first.

    A suspect's score is its probability to be the root cause, if any change of the release is. Its factors
    are ``attribution``, the share of the request's reach that it modifies, by nearness; ``nearness``, that of
    the nearest method; ``text``, the cosine of the texts. They were deployed together, so that their times
    say nothing.

    Args:
        reach: Of the request.
        changes: All of the release, also those that modify nothing of it: they take their part.
        config: Weights.
    """
    config = config or RankingConfig()
    nearness = reach.nearness
    parts = attribute_reach(reach, changes)
    texts = ChangeTexts([compact(change_words(change)) for change in changes])
    similarity = texts.similarities(request_words(reach.request, nearness))
    unknown = np.zeros(len(changes))
    evidence = Evidence(
        changes=tuple(changes),
        deployments=Deployments(unknown, unknown),
        attributions=parts,
        similarity=similarity,
        similarity_chance=chances(similarity),
        correlation=np.full(len(changes), np.nan),
        trials=unknown,
    )
    confidence = confidences(features(evidence), weights_of(config))
    confidence = confidence / (confidence.sum() or 1.0)  # the release costs more: some change made it so
    nearest = _nearest(nearness, changes)
    reached = [index for index in range(len(changes)) if nearest[index] > 0]
    order = sorted(reached, key=lambda i: (-confidence[i], -nearest[i], -changes[i].time, changes[i].id))
    return tuple(
        Suspect(
            changes[index],
            float(confidence[index]),
            {
                "attribution": part.counted if (part := parts[index]) else 0.0,
                "nearness": float(nearest[index]),
                "text": float(similarity[index]),
            },
        )
        for index in order
    )


def request_words(request: str, nearness: Mapping[str, float]) -> dict[str, float]:
    """Weigh the words of a request that costs more: its type, and the subroutines it runs, by nearness."""
    largest = max(nearness.values(), default=1.0)
    return regression_words(request, _KIND, {name: value / largest for name, value in nearness.items()})


def _nearest(nearness: Mapping[str, float], changes: Sequence[Change]) -> FloatArray:
    """Return the nearness of each change's nearest method, 0 without any: (changes,)."""
    return np.array(
        [max((nearness.get(name, 0.0) for name in change.subroutines), default=0.0) for change in changes]
    )


def attribute_reach(reach: RequestReach, changes: Sequence[Change]) -> tuple[Attribution | None, ...]:
    """Attribute the reach of a request to changes, by nearness.

    Returns:
        One for each change; None of those of which it is not known what they modify.
    """
    nearness = reach.nearness
    background = np.sort(np.array(list(nearness.values()), dtype=np.float64))
    whole = float(background.sum()) or 1.0
    attributions: list[Attribution | None] = []
    for change, nearest in zip(changes, _nearest(nearness, changes).tolist(), strict=True):
        if not nearest:
            silent = not change.subroutines and not modifies_no_code(change)
            attributions.append(None if silent else NO_PART)
            continue
        rank = max(len(background) - int(np.searchsorted(background, nearest * (1 - 1e-9))), 1)
        share = sum(nearness.get(name, 0.0) for name in set(change.subroutines)) / whole
        count = len(reach.subroutines.intersection(change.subroutines))
        single = rank / (len(reach.subroutines) + 1)
        chance = float(-np.expm1(max(count, 1) * np.log1p(-single)))
        attributions.append(Attribution(share, 0.0, nearest, rank, min(chance, _NEARLY_SURE)))
    return tuple(attributions)
