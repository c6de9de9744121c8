"""Thresholds that verdicts propose, and how well a setting parts right events from wrong ones.

The curves are those of KDD 2018 §3.2, the events those of its loop, §3.3.

A proposal keeps every event that is right, or such a share of them as is asked for, and drops as many wrong
ones as it can. It can only be higher than the threshold that the events came through: of what that dropped
nobody has said anything (§3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.analysis.feedback.precision import Judged, Share
from pipeline.analysis.feedback.state import Reported

Measure = Literal["absolute", "relative"]
"""How large a change is: in the series' unit, or as a share of its level before."""


@dataclass(frozen=True, slots=True)
class ThresholdConfig:
    """From how many verdicts on a threshold is proposed, and what it may cost."""

    least_right: int = 10  # with all of them kept, at least 72 % would be (Wilson, 95 %)
    least_dropped: int = 2  # wrong ones: of one nothing follows
    margin: float = 0.9  # of the smallest right one that stays: the next may be a little smaller
    keep: float = 1.0  # share of the right ones that stay at least


@dataclass(frozen=True, slots=True)
class Point:
    """One setting on the ROC curve: what passes if at least ``bound`` is asked for."""

    bound: float
    kept: float  # share of the right ones
    passed: float  # share of the wrong ones


@dataclass(frozen=True, slots=True)
class Roc:
    """The receiver operating characteristic of one setting."""

    setting: str
    points: tuple[Point, ...]  # from the highest bound to the lowest
    area: float  # under the curve: 0.5 parts nothing, 1 everything; NaN without both kinds


@dataclass(frozen=True, slots=True)
class Proposal:
    """A threshold of a workload for a service; ``comparison`` says what it would have changed."""

    workload: str
    service: str
    measure: Measure
    present: float
    proposed: float | None  # None: too few verdicts, or nothing to gain
    kept: Share  # right ones, at the proposed threshold
    dropped: Share  # wrong ones
    rocs: tuple[Roc, ...] = ()


def size_of(reported: Reported, measure: Measure) -> float:
    """Return how large an event's change is; infinite as a share of nothing."""
    delta = abs(reported.delta)
    if measure == "absolute":
        return delta
    return delta / abs(reported.before) if reported.before else float("inf")


def propose_thresholds(
    judged: Sequence[Judged],
    present: Mapping[str, tuple[Measure, float]],
    config: ThresholdConfig | None = None,
) -> tuple[Proposal, ...]:
    """Return what verdicts propose for each workload and service that has any, in the order of their names.

    Args:
        judged: Events of which people said whether they are right.
        present: The threshold of each workload that is known.
        config: From how many verdicts on, and which share of the right ones stays.
    """
    config = config or ThresholdConfig()
    keys = sorted({(one.reported.workload, one.reported.service) for one in judged})
    return tuple(
        _propose(
            [one for one in judged if (one.reported.workload, one.reported.service) == (workload, service)],
            present[workload],
            config,
        )
        for workload, service in keys
        if workload in present
    )


def rocs_of(judged: Sequence[Judged], measure: Measure) -> tuple[Roc, ...]:
    """Return how well size and significance part right events from wrong ones."""
    return (
        roc("threshold", judged, lambda one: size_of(one.reported, measure)),
        roc("significance", judged, lambda one: -one.p_value),
    )


def roc(setting: str, judged: Sequence[Judged], score: Callable[[Judged], float]) -> Roc:
    """Return how well a score parts right events from wrong ones; a higher one is more surely right."""
    right = [score(one) for one in judged if one.right]
    wrong = [score(one) for one in judged if not one.right]
    if not right or not wrong:
        return Roc(setting, (), float("nan"))
    bounds = sorted({*right, *wrong}, reverse=True)
    points = tuple(
        Point(
            bound,
            sum(value >= bound for value in right) / len(right),
            sum(value >= bound for value in wrong) / len(wrong),
        )
        for bound in bounds
    )
    # Mann and Whitney: how often a right one scores above a wrong one, ties half.
    wins = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
    return Roc(setting, points, wins / (len(right) * len(wrong)))


def _propose(
    judged: Sequence[Judged],
    present: tuple[Measure, float],
    config: ThresholdConfig,
) -> Proposal:
    measure, now = present
    right = sorted(size_of(one.reported, measure) for one in judged if one.right)
    wrong = [size_of(one.reported, measure) for one in judged if not one.right]
    given_up = int((1 - config.keep) * len(right) + 1e-9)  # 0.05 of 20 is one, whatever binary fractions say
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
