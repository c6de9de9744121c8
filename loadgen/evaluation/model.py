"""What is scored: truth rows, reported events, and the change points of a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.model.metric_kind import is_gcpu

Outcome = Literal["true_positive", "repeated", "allowed", "false_positive"]
"""What became of an event: the first of a truth row, a further one of the same row, of a row that may be
reported or not, or of no such row."""

EXPECTED_KINDS = ("regression", "gradual", "new_feature")
"""Kinds of truth that are to be reported. A new feature costs what it costs, and has no single root cause."""

ALLOWED_KINDS = ("aborted_rollout", "experiment")
"""Kinds of truth that may be reported or not: they do cost what they cost, and end by themselves."""

UNEXPECTED_KINDS = ("cost_shift", "transient", "seasonal", "improvement", "mix_shift")
"""Kinds of truth that are not to be reported: an event that they explain is a false alarm of that kind."""


@dataclass(frozen=True, slots=True)
class TruthRow:
    """One thing that was done to a service. Times are epoch seconds, ``delta`` is a gCPU ratio.

    ``until`` is when its onset ends: later than ``start`` for what grows slowly, and the end of what ends.
    """

    id: str
    kind: str
    expected: bool
    service: str
    series: tuple[str, ...]  # where it acts, nearest the cause first, callers last
    metric_kind: str
    start: float
    until: float
    delta: float
    change: str | None  # the root cause's id
    changes: tuple[str, ...] = ()  # all that had a part in it, where there is no one root cause
    standard_error: float | None = None  # of ``delta`` over ten hours, from sampling alone
    subkind: str = ""  # which form of its kind it is
    stages: tuple[float, ...] = ()  # when each stage of a rollout begins; empty for what comes at once

    @property
    def allowed(self) -> bool:
        """Whether it may be reported or not, and counts neither way."""
        return not self.expected and self.kind in ALLOWED_KINDS

    @property
    def gcpu(self) -> bool:
        """Whether ``delta`` is a gCPU ratio."""
        return is_gcpu(self.metric_kind)


@dataclass(frozen=True, slots=True)
class Event:
    """One reported regression, as far as it is scored."""

    id: str
    service: str
    workload: str
    metric_kind: str
    metric: str
    kind: str  # short_term or long_term
    change_time: float
    detected_time: float
    before: float
    after: float
    delta: float
    p_value: float
    group: tuple[str, ...] = ()  # member metrics, without ``metric``
    suspects: tuple[str, ...] = ()  # ids of changes, most likely first
    interval: tuple[float, float] | None = None  # of the change time; None from versions without it

    @property
    def series(self) -> tuple[str, ...]:
        """Return the metric and the group's members, each once."""
        return tuple(dict.fromkeys((self.metric, *self.group)))


@dataclass(frozen=True, slots=True)
class Events:
    """The events of one file: those to score, and how many lines were left out of it."""

    events: tuple[Event, ...]
    replayed: int = 0  # lines that repeat an earlier event, id and content
    other: int = 0  # events of other types, such as updates


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One candidate that a step dropped."""

    service: str
    workload: str
    scan_end: float
    metric_kind: str
    metric: str
    change_time: float
    delta: float
    p_value: float
    step: str
    statistic: float
    bound: float
    reason: str
    group: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """How many change points are left after one step (FBDetect Table 5)."""

    step: str
    remaining: int


@dataclass(frozen=True, slots=True)
class Funnel:
    """A run's funnel: what was scanned, and what each step left of it, in the order of the steps."""

    scans: int
    series: int  # series scanned, each once for every scan
    steps: tuple[FunnelStep, ...]
