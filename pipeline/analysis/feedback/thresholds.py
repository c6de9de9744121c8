"""Thresholds that verdicts propose, and ROC curves of right and wrong events.

The curves are those of KDD 2018 §3.2, the events those of its loop, §3.3.

A proposal keeps all right events, or a requested share of them, and drops as many wrong ones as possible. It
can only raise the present threshold: people never judged the candidates that this dropped (§3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.analysis.feedback.precision import AnsweredEvent, Share
from pipeline.analysis.feedback.state import Reported

Measure = Literal["absolute", "relative"]
"""Size of a change: in the series' unit, or as a share of its level before."""


@dataclass(frozen=True, slots=True)
class ThresholdConfig:
    """Number of verdicts that a proposal requires, and its limits."""

    least_right: int = 10  # if all of them are kept, at least 72 % would be (Wilson, 95 %)
    least_dropped: int = 2  # wrong events: one is no evidence
    margin: float = 0.9  # share of the smallest right event's size: the next one may be a little smaller
    keep: float = 1.0  # share of the right ones that stay at least


@dataclass(frozen=True, slots=True)
class RocPoint:
    """A point on the ROC curve: events of at least ``bound`` pass."""

    bound: float
    kept: float  # share of the right ones
    passed: float  # share of the wrong ones


@dataclass(frozen=True, slots=True)
class Roc:
    """The receiver operating characteristic of one setting."""

    setting: str
    points: tuple[RocPoint, ...]  # from the highest bound to the lowest
    area: float  # area under the curve: 0.5 for chance, 1 for perfect separation; NaN without both kinds


@dataclass(frozen=True, slots=True)
class Proposal:
    """A threshold of a workload for a service; ``comparison`` holds its effect on past events."""

    workload: str
    service: str
    measure: Measure
    present: float
    proposed: float | None  # None: too few verdicts, or nothing to gain
    kept: Share  # right ones, at the proposed threshold
    dropped: Share  # wrong ones
    rocs: tuple[Roc, ...] = ()


def size_of(reported: Reported, measure: Measure) -> float:
    """Return the size of an event's change; infinite as a share of nothing."""
    delta = abs(reported.delta)
    if measure == "absolute":
        return delta
    return delta / abs(reported.before) if reported.before else float("inf")


def propose_thresholds(
    judged: Sequence[AnsweredEvent],
    present: Mapping[str, tuple[Measure, float]],
    config: ThresholdConfig | None = None,
) -> tuple[Proposal, ...]:
    """Return the proposal for each workload and service with verdicts, in the order of their names.

    Args:
        judged: Events of which people said whether they are right.
        present: The threshold of each workload that is known.
        config: From how many verdicts on, and which share of the right ones stays.
    """
    config = config or ThresholdConfig()
    keys = sorted({(event.reported.workload, event.reported.service) for event in judged})
    return tuple(
        _propose(
            [
                event
                for event in judged
                if (event.reported.workload, event.reported.service) == (workload, service)
            ],
            present[workload],
            config,
        )
        for workload, service in keys
        if workload in present
    )


def rocs_of(judged: Sequence[AnsweredEvent], measure: Measure) -> tuple[Roc, ...]:
    """Return the ROC curves of size and significance for right and wrong events."""
    return (
        roc("threshold", judged, lambda event: size_of(event.reported, measure)),
        roc("significance", judged, lambda event: -event.p_value),
    )


def roc(setting: str, judged: Sequence[AnsweredEvent], score: Callable[[AnsweredEvent], float]) -> Roc:
    """Return the ROC curve of a score; a higher score is more surely right."""
    right = [score(event) for event in judged if event.right]
    wrong = [score(event) for event in judged if not event.right]
    if not right or not wrong:
        return Roc(setting, (), float("nan"))
    bounds = sorted({*right, *wrong}, reverse=True)
    points = tuple(
        RocPoint(
            bound,
            sum(value >= bound for value in right) / len(right),
            sum(value >= bound for value in wrong) / len(wrong),
        )
        for bound in bounds
    )
    # Mann and Whitney: the probability that a right event scores above a wrong one; ties count half.
    wins = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
    return Roc(setting, points, wins / (len(right) * len(wrong)))


def _propose(
    judged: Sequence[AnsweredEvent],
    present: tuple[Measure, float],
    config: ThresholdConfig,
) -> Proposal:
    measure, now = present
    right = sorted(size_of(event.reported, measure) for event in judged if event.right)
    wrong = [size_of(event.reported, measure) for event in judged if not event.right]
    given_up = int((1 - config.keep) * len(right) + 1e-9)  # 0.05 of 20 is one, whatever rounding does
    bound = config.margin * right[given_up] if right else 0.0
    dropped = sum(size < bound for size in wrong)
    enough = len(right) >= config.least_right and dropped >= config.least_dropped and bound > now
    proposed = bound if enough else None
    first = judged[0].reported
    return Proposal(
        workload=first.workload,
        service=first.service,
        measure=measure,
        present=now,
        proposed=proposed,
        kept=Share(sum(size >= bound for size in right) if enough else len(right), len(right)),
        dropped=Share(dropped if enough else 0, len(wrong)),
        rocs=rocs_of(judged, measure),
    )
