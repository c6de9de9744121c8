"""Precision by verdicts: the share of right events, in all and by service, workload and step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.analysis.feedback.state import Reported
from pipeline.model import Decision, Verdict, VerdictKind

RIGHT: tuple[VerdictKind, ...] = ("true", "expected", "fixed")
WRONG: tuple[VerdictKind, ...] = ("false", "cost-shift", "duplicate")
"""Classes of verdicts; FBDetect §5.5.2 counts cost shifts and duplicates as false positives, too."""

Z_95 = 1.959964
"""Standard errors on each side of a 95 % interval."""

Grouped = Literal["all", "service", "workload", "step", "step, near its bound"]


@dataclass(frozen=True, slots=True)
class AnsweredEvent:
    """An event that people called right or wrong, and the steps that it passed."""

    reported: Reported
    right: bool
    passed: tuple[Decision, ...] = ()
    p_value: float = 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """A share with Wilson's interval of 95 %."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """Hits over all; NaN of none."""
        return self.hits / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the share: the lower and the upper bound, 0 and 1 of none."""
        return wilson(self.hits, self.of)


@dataclass(frozen=True, slots=True)
class Precision:
    """Share of right events."""

    by: Grouped
    name: str
    right: Share


def wilson(hits: int, of: int, z: float = Z_95) -> tuple[float, float]:
    """Return Wilson's interval of a share (JASA 22, 1927); it holds for few of them, too."""
    if not of:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    centre = share + spread / 2
    half = math.sqrt(share * (1 - share) * spread + spread * spread / 4)
    return max(0.0, (centre - half) / (1 + spread)), min(1.0, (centre + half) / (1 + spread))


def is_right(state: Verdict | None, cause: Verdict | None = None) -> bool | None:
    """Return whether an event is right by its state; None where that says nothing of it.

    Naming the root cause confirms the event, unless its state says otherwise.
    """
    if state and state.verdict in WRONG:
        return False
    if (state and state.verdict in RIGHT) or cause:
        return True
    return None


def precision_table(judged: Sequence[AnsweredEvent]) -> tuple[Precision, ...]:
    """Return precision in all, by service, by workload and by step, each in the order of its names.

    A step's is that of the events which it let through; those near its bound are the half of them whose
    statistic was nearest to it, as a ratio: if most of those are false, the bound is too loose.
    """
    rows = [_of("all", "", judged)] if judged else []
    grouped: tuple[Grouped, ...] = ("service", "workload")
    for by in grouped:
        names = sorted({getattr(event.reported, by) for event in judged})
        rows += [
            _of(by, name, [event for event in judged if getattr(event.reported, by) == name])
            for name in names
        ]
    for step in _steps(judged):
        held = [(distance, event) for event in judged if (distance := _distance(event, step)) is not None]
        rows.append(_of("step", step, [event for _, event in held]))
        near = sorted((pair for pair in held if math.isfinite(pair[0])), key=lambda pair: pair[0])
        if len(near) > 1:
            rows.append(_of("step, near its bound", step, [event for _, event in near[: len(near) // 2]]))
    return tuple(rows)


def _of(by: Grouped, name: str, judged: Iterable[AnsweredEvent]) -> Precision:
    rights = [event.right for event in judged]
    return Precision(by, name, Share(sum(rights), len(rights)))


def _steps(judged: Sequence[AnsweredEvent]) -> list[str]:
    """Return the steps that judged any of the events, in the order of the pipeline."""
    return list(dict.fromkeys(decision.step for event in judged for decision in event.passed))


def _distance(event: AnsweredEvent, step: str) -> float | None:
    """Return the distance of an event from a step's bound, as a logarithm; None if it was not judged."""
    decisions = [decision for decision in event.passed if decision.step == step]
    if not decisions:
        return None
    statistic, bound = decisions[-1].statistic, decisions[-1].bound
    return abs(math.log(statistic / bound)) if statistic > 0 and bound > 0 else math.inf
