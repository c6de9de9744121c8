"""Input of scores: truth rows, reported events, and the change points of a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.model.metric_kind import is_gcpu

Outcome = Literal["true_positive", "repeated", "allowed", "false_positive"]
"""Outcome of an event: the first of a truth row, a further one of the same row, one of a row that may be
reported or not, or one of no such row."""

EXPECTED_KINDS = ("regression", "gradual", "new_feature")
"""Kinds of truth that are to be reported. A new feature has a real cost and no single root cause."""

ALLOWED_KINDS = ("aborted_rollout", "experiment")
"""Kinds of truth that may be reported or not: they have a real cost, and end by themselves."""

UNEXPECTED_KINDS = ("cost_shift", "transient", "seasonal", "improvement", "mix_shift")
"""Kinds of truth that are not to be reported: an event that they explain is a false alarm of that kind."""


@dataclass(frozen=True, slots=True)
class TruthRow:
    """One injected happening of a service. Times are epoch seconds, ``delta`` is a gCPU ratio.

    ``until`` is the end of the onset: later than ``start`` for slow growth, and the end of transients.
    """

    id: str
    kind: str
    expected: bool
    service: str
    series: tuple[str, ...]  # series where it acts, nearest the cause first, callers last
    metric_kind: str
    start: float
    until: float
    delta: float
    change: str | None  # the root cause's id
    changes: tuple[str, ...] = ()  # all changes involved, if there is no single root cause
    standard_error: float | None = None  # of ``delta`` over ten hours, from sampling alone
    subkind: str = ""  # form of its kind
    stages: tuple[float, ...] = ()  # begin of each stage of a rollout; empty for sudden onsets

    @property
    def allowed(self) -> bool:
        """Whether an event of it counts neither as right nor as wrong."""
        return not self.expected and self.kind in ALLOWED_KINDS

    @property
    def gcpu(self) -> bool:
        """Whether ``delta`` is a gCPU ratio."""
        return is_gcpu(self.metric_kind)


@dataclass(frozen=True, slots=True)
class ScoredEvent:
    """The scored fields of one reported regression."""

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
        """Return the metric and the group's members, without duplicates."""
        return tuple(dict.fromkeys((self.metric, *self.group)))


@dataclass(frozen=True, slots=True)
class Events:
    """The events of one file: those to score, and numbers of lines left out."""

    events: tuple[ScoredEvent, ...]
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
    """Number of change points after one step (FBDetect Table 5)."""

    step: str
    remaining: int


@dataclass(frozen=True, slots=True)
class RunFunnel:
    """Funnel of a run: the series scanned, and the change points after each step, in order."""

    scans: int
    series: int  # series scanned, counted once per scan
    steps: tuple[FunnelStep, ...]
