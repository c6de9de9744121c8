"""The evidence of deduplication: all that is asked of a scan's candidates, as frozen values."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from pipeline.analysis.cost_shift.scan import LabelGroups, StackEvidence
from pipeline.analysis.cost_shift.stack_history import StackHistory
from pipeline.analysis.dedup.rules import PairwiseConfig
from pipeline.analysis.detect.expected import values_and_weights
from pipeline.analysis.explain.explanation import Explanation, explain
from pipeline.analysis.mix.within import RiseWithin
from pipeline.analysis.rootcause import first_announcements
from pipeline.analysis.stacks import CarriedOver, StackIndex, against_control, carry_over
from pipeline.model import Candidate, Change, FloatArray, Scan, SeriesKey, SeriesMatrix
from pipeline.model.frames import element
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import DAY_S

TOLERANCE_WINDOWS = 2
"""By how many windows an estimated change point may be early."""

EARLY_WINDOWS = 6
"""By how many windows the change point of a part that hardly stands out may be early."""

MOST_MEMBERS = 100
"""Members of a group that are remembered: so many parts of one release are no chance already."""


@dataclass(frozen=True, slots=True)
class DedupConfig:
    """What a workload says of deduplication, and what is left out to measure its worth."""

    resolution_s: float
    analysis_s: float
    lookback_s: float
    source: Literal["gcpu", "service"] = "gcpu"  # of the workload's series
    grouping: Literal["cause", "explained", "som", "kdd2018"] = "cause"  # of the candidates of one scan
    pairwise: PairwiseConfig = field(default_factory=PairwiseConfig)
    cost_domains: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name and patterns of subroutines
    without: frozenset[str] = frozenset()  # keys of pipeline.model.steps

    @property
    def explains(self) -> bool:
        """Whether the explanation of the stacks decides first."""
        return self.grouping == "explained" and self.runs("explanation")

    def runs(self, step: str) -> bool:
        """Return whether a step or constraint is not left out."""
        return step not in self.without


@dataclass(frozen=True, slots=True)
class Reported:
    """A candidate that was passed on, by an earlier scan or earlier in this one, and its event."""

    candidate: Candidate
    event: str = ""  # the id of the regression that it is part of; empty where that is not kept
    scan_end: float = 0.0  # of the scan that passed it on, epoch seconds
    seen_until: float = math.inf  # where that scan stopped to look for change points, epoch seconds
    leads: bool = True  # whether the event is named after it; else it has joined the event
    onset: tuple[float, float] | None = None  # between which times it began, where that was kept


@dataclass(frozen=True, slots=True)
class ReportHistory:
    """What was reported before: the candidates that events are named after or joined, and group members."""

    regressions: Sequence[Reported] = ()
    members: Sequence[Reported] = ()

    def since(self, moment: float) -> ReportHistory:
        """Return what changed from a moment on."""
        regressions, members = (
            [reported for reported in some if reported.candidate.change_time >= moment]
            for some in (self.regressions, self.members)
        )
        return ReportHistory(regressions, members)


class Deployed:
    """The deployed changes of a service, for questions by time."""

    def __init__(self, changes: Sequence[Change] = ()) -> None:
        self._changes = sorted(changes, key=lambda change: (change.time, change.id))
        self._times = [change.time for change in self._changes]

    @property
    def first_times(self) -> FloatArray:
        """When each change was deployed first, ascending: (changes,)."""
        return np.array([change.time for change in first_announcements(self._changes)], dtype=np.float64)

    def before(
        self, candidates: Sequence[Candidate], config: DedupConfig, *, early: int = EARLY_WINDOWS
    ) -> list[tuple[Change, ...]]:
        """Return the changes deployed just before each change point, or in its interval, oldest first.

        Args:
            candidates: Whose change points.
            config: How long before counts.
            early: By how many windows a change point may be early.
        """
        latest_s = early * config.resolution_s
        return [
            first_announcements(
                self._changes[
                    bisect_left(
                        self._times,
                        min(candidate.change_time - config.lookback_s, candidate.change_time_span[0]),
                    ) : bisect_right(self._times, candidate.change_time + latest_s)
                ]
            )
            for candidate in candidates
        ]


class ScanLevels:
    """Levels of series over the windows of a scan."""

    def __init__(self, matrices: Sequence[SeriesMatrix] = ()) -> None:
        self._rows: dict[SeriesKey, FloatArray] = {}
        self.starts: FloatArray = np.zeros(0)  # (windows,) epoch seconds
        for matrix in matrices:
            windows = np.arange(matrix.samples.shape[1], dtype=np.float64)
            self.starts = np.asarray(matrix.start + matrix.resolution_s * windows, dtype=np.float64)
            values = values_and_weights(matrix)[0]
            self._rows |= dict(zip(matrix.series, values, strict=True))

    def of(self, series: Sequence[SeriesKey]) -> FloatArray:
        """Return levels: (series, windows); NaN where there is no data."""
        unknown = np.full(len(self.starts), np.nan)
        rows = [self._rows.get(key, unknown) for key in series]
        return np.array(rows, dtype=np.float64).reshape(len(series), len(self.starts))


@dataclass(frozen=True, eq=False)  # without slots: what is made of the stacks is kept
class Cluster:
    """Candidates whose change points are near each other."""

    candidates: Sequence[Candidate]
    stacks: StackEvidence
    inserted_frames: bool = True  # whether the cost before stands in the stacks that each became

    @cached_property
    def carried(self) -> CarriedOver:
        """The stacks by which candidates are compared: steps against what is usual at these hours.

        A slow rise is in the earlier days too, so it is compared with the hours just before.
        """
        index = self.stacks.index
        if all(candidate.kind != "long_term" for candidate in self.candidates):
            index = against_control(index, self.stacks.days)
        return carry_over(index) if self.inserted_frames else CarriedOver(index)

    @cached_property
    def explanation(self) -> Explanation | None:
        """The causes of what became of the stacks; None without any."""
        labels = [element(*candidate.series) for candidate in self.candidates]
        return None if self.history is None else explain(self.history, labels)

    @property
    def index(self) -> StackIndex:
        """The stacks of ``carried``."""
        return self.carried.index

    @cached_property
    def history(self) -> StackHistory | None:
        """The stacks with those of earlier days on one list; None without any."""
        return self.stacks.history(self.carried) if self.stacks.index.stacks else None

    def having(self, candidates: Sequence[Candidate]) -> Cluster:
        """Return some of the candidates in the same stacks."""
        some = replace(self, candidates=candidates)
        known = self.__dict__
        some.__dict__.update((key, known[key]) for key in ("carried", "history") if key in known)
        return some


@dataclass(frozen=True, slots=True, eq=False)
class DedupEvidence:
    """All that deduplication looks at in one scan."""

    scan: Scan
    event_of: Callable[[Candidate], str]  # the id of the event that a candidate of the scan would be
    clusters: Sequence[Cluster]
    history: ReportHistory = field(default_factory=ReportHistory)
    deployed: Deployed = field(default_factory=Deployed)
    levels: ScanLevels = field(default_factory=ScanLevels)
    label_groups: LabelGroups | None = None  # finds cost domains of a user's own
    watched_s: float = 0.0  # before the scan's end: of what time history and changes are
    rises: Mapping[Candidate, RiseWithin] = field(default_factory=dict)  # within those who send samples


def members_of(reported: Reported) -> list[Reported]:
    """Return the members of a group that is passed on, the largest if they are many."""
    return [
        replace(reported, candidate=member, leads=False) for member in largest_members(reported.candidate)
    ]


def largest_members(leader: Candidate) -> list[Candidate]:
    """Return the subroutines of a group that are worth to know of, the largest if they are many."""
    members = [member for member in leader.group if member.metric_kind == "subroutine"]
    return sorted(members, key=lambda member: (-abs(member.delta), member.metric))[:MOST_MEMBERS]


def cluster_by_time(candidates: Sequence[Candidate], gap_s: float) -> list[list[Candidate]]:
    """Put candidates together whose change points follow each other by at most ``gap_s``."""
    clusters: list[list[Candidate]] = []
    for candidate in sorted(candidates, key=lambda c: (c.change_time, c.series)):
        if clusters and candidate.change_time - clusters[-1][-1].change_time <= gap_s:
            clusters[-1].append(candidate)
        else:
            clusters.append([candidate])
    return clusters


def asked_features(rules: PairwiseConfig, candidates: Sequence[Candidate]) -> frozenset[str]:
    """Return the features that a rule about some pair of these candidates looks at."""
    gcpu = {is_gcpu(candidate.metric_kind) for candidate in candidates}
    present = {"any": True, "gcpu": True in gcpu, "service": False in gcpu, "mixed": len(gcpu) == 2}
    return frozenset(feature for rule in rules.rules if present[rule.between] for feature in rule.bounds)


def find_reach(
    reported: Sequence[Reported],
    candidates: Sequence[Candidate],
    labels: Mapping[str, int],
    config: DedupConfig,
) -> list[Reported]:
    """Return the reported ones that candidates may be part of: by time, or as they rise through them.

    Args:
        reported: By earlier scans.
        candidates: Of this scan.
        labels: What stands in the stacks around them.
        config: Windows.
    """
    return [
        known
        for known in reported
        if any(may_be_one(known.candidate, candidate, config) for candidate in candidates)
        or (known.candidate.metric_kind == "subroutine" and known.candidate.metric in labels)
    ]


def may_be_one(known: Candidate, candidate: Candidate, config: DedupConfig) -> bool:
    """Return whether two changes are near enough in time to be one.

    A slow candidate is the rise over all that the scan sees; when a slow one began is known to a day.
    """
    of_gcpu = is_gcpu(known.metric_kind) and is_gcpu(candidate.metric_kind)
    if of_gcpu and (known.delta > 0) != (candidate.delta > 0):
        return False
    if candidate.kind == "long_term":
        return True
    return abs(known.change_time - candidate.change_time) <= reach_s(config, slow=known.kind == "long_term")


def reach_s(config: DedupConfig, *, slow: bool) -> float:
    """Return how far apart the change points of one regression may lie, in seconds."""
    return max(config.analysis_s, DAY_S) if slow else config.analysis_s
