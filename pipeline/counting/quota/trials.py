"""Quotas of trials: bounds on the sides and points that a service may send in a day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipeline.counting.quota.limits import Quota

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Sent:
    """The properties of a message of trials that quotas need."""

    experiment: str
    time: float
    points: int
    digest: str


Message = TypeVar("Message")


def admit_trials(
    messages: Sequence[tuple[Sent, Message]], stored: Iterable[Sent], quota: Quota
) -> tuple[list[Message], int]:
    """Return the messages that are new and within a service's quota, and the number of refused ones.

    Messages that are stored already are neither, but count against the quota. Days are of event time.

    Args:
        messages: Messages in the order of arrival.
        stored: The service's messages in the store.
        quota: The service's quota.
    """
    seen: set[tuple[str, str]] = set()
    sides: Counter[float] = Counter()
    points: Counter[float] = Counter()
    of_experiment: Counter[str] = Counter()

    def count(sent: Sent) -> None:
        seen.add((sent.experiment, sent.digest))
        sides[sent.time // DAY_S] += 1
        points[sent.time // DAY_S] += sent.points
        of_experiment[sent.experiment] += sent.points

    for sent in stored:
        count(sent)
    admitted: list[Message] = []
    refused = 0
    for sent, message in messages:
        if (sent.experiment, sent.digest) in seen:
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
