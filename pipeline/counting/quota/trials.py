"""Quotas of trials: how many sides a service may send in a day, and how many points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipeline.counting.quota.limits import Quota

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of trials of one service, as far as quotas ask."""

    experiment: str
    time: float
    points: int
    digest: str


Message = TypeVar("Message")


def admit_trials(
    messages: Sequence[tuple[Sent, Message]], stored: Iterable[Sent], quota: Quota
) -> tuple[list[Message], int]:
    """Return the messages that are new and within a service's quota, and how many are refused.

    What is stored is neither: it has come before, and counts. A day is one of event time.

    Args:
        messages: In the order in which they came.
        stored: What the store has of the service.
        quota: Of the service.
    """
    known: set[tuple[str, str]] = set()
    sides: Counter[float] = Counter()
    points: Counter[float] = Counter()
    of_experiment: Counter[str] = Counter()

    def count(sent: Sent) -> None:
        known.add((sent.experiment, sent.digest))
        sides[sent.time // DAY_S] += 1
        points[sent.time // DAY_S] += sent.points
        of_experiment[sent.experiment] += sent.points

    for sent in stored:
        count(sent)
    admitted: list[Message] = []
    refused = 0
    for sent, message in messages:
        if (sent.experiment, sent.digest) in known:
            continue
        day = sent.time // DAY_S
        if (
            sides[day] >= quota.trial_sides
            or points[day] + sent.points > quota.trial_points
            or of_experiment[sent.experiment] + sent.points > quota.experiment_points
        ):
            refused += 1
            continue
        count(sent)
        admitted.append(message)
    return admitted, refused
