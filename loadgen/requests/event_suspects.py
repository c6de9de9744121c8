"""Suspects of the event of a request that costs more, in a drawn release: the stage's own ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.source.changes import Described
from agents.source.routes import Application, Reaches
from loadgen.requests.source import ReleaseCase
from pipeline.analysis.rootcause import (
    ChangeTexts,
    ClusterEvidence,
    RankingConfig,
    ScanEvidence,
    change_words,
    compact,
    find_causes,
)
from pipeline.model import Candidate, Change, CostlierRequests, Scan, SeriesMatrix
from pipeline.settings.workloads import RELEASE_COSTS
from pipeline.stages.gather.suspects import cause_config

_BEGUN = 1_700_000_100.0
"""When the release was deployed, epoch seconds: a multiple of a window."""

_WINDOW_S = 300.0
_BEFORE = 48
_AFTER = 6
"""Windows of the look before the release and since."""


@dataclass(frozen=True, slots=True)
class EventSuspects:
    """Ids of commits, the likeliest first: all that the event ranks, and those that it names."""

    ranked: tuple[str, ...]
    named: tuple[str, ...]


def suspects_of_event(case: ReleaseCase, application: Application) -> EventSuspects:
    """Return the suspects of a case's event.

    As in production the commits are announced together at deployment, with their distance from each route
    (`smidgen changes --routes`); nothing else is known of the service.

    Args:
        case: A release, and the type that costs more.
        application: Its source.
    """
    drawn = [Described(replace(change, time=_BEGUN)) for change in case.changes]
    changes = tuple(suspect.change for suspect in Reaches(application).describe(drawn))
    scan = _scan(case.request)
    evidence = ClusterEvidence(_common(scan, changes), scan.candidates, None)
    every = RankingConfig(min_confidence=0.0, min_share=0.0, most=len(changes))
    return EventSuspects(_ids(evidence, every), _ids(evidence, RankingConfig()))


def _ids(evidence: ClusterEvidence, ranking: RankingConfig) -> tuple[str, ...]:
    workload = RELEASE_COSTS.as_scanned(evidence.common.scan)
    (cause,) = find_causes(evidence, cause_config(workload, ranking))
    return tuple(suspect.change.id for suspect in cause.suspects)


def _scan(request: str) -> Scan:
    """Return the look that finds 5 % more, of one type for sure."""
    end = _BEGUN + _AFTER * _WINDOW_S
    costlier = CostlierRequests(request, "new", "old", 0.05, 0.005, chances=(1.0,))
    candidate = Candidate(
        metric_kind="service",
        metric="cpu",
        kind="short_term",
        change_time=_BEGUN,
        before=1.0,
        after=1.05,
        p_value=0.001,
        statistic=100.0,
        passed=(costlier.decision(),),
        change_time_interval=(_BEGUN, _BEGUN + _WINDOW_S),
    )
    start = _BEGUN - _BEFORE * _WINDOW_S
    windows = (start, _BEGUN, end, end)
    return Scan(
        "shop", RELEASE_COSTS.name, *windows, series=1, candidates=(candidate,), resolution_s=_WINDOW_S
    )


def _common(scan: Scan, changes: Sequence[Change]) -> ScanEvidence:
    windows = _BEFORE + _AFTER
    nothing = SeriesMatrix(scan.start, _WINDOW_S, (), (), np.empty((0, windows)), np.ones(windows))
    return ScanEvidence(
        scan=scan,
        announced=tuple(changes),
        history=tuple(changes),
        texts=ChangeTexts([compact(change_words(change)) for change in changes]),
        gates={},
        series=nothing,
        setup=nothing,
    )
