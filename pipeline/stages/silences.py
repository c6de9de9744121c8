"""Silences in the last stage: findings of a scan are compared with expectations and mutes, then reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from pipeline.analysis.lifecycle import (
    LifecycleEvidence,
    Silenced,
    SilenceDecision,
    SilencedNews,
    SilencedState,
    SilenceEvidence,
    Update,
    as_found_now,
    decide_news,
    decide_silence,
    share_left,
)
from pipeline.messages.events import late_event, regression_event
from pipeline.model import Change, Dropped, Regression, Scan
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.silences import SilencedSoFar, gather_silences, silence_case
from pipeline.storage.interface import Store

Event = Mapping[str, Any]


@dataclass(slots=True)
class SilencedScan:
    """The events to report of a scan, and the silenced regressions to note."""

    reported: list[Regression] = field(default_factory=list)  # found by this scan
    late: list[tuple[Regression, Event]] = field(default_factory=list)  # found and silenced by earlier scans
    updates: list[Update] = field(default_factory=list)  # of reported regressions
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[tuple[Regression, SilencedState, SilenceDecision, Event]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FoundInScan:
    """Findings of a scan: new regressions, and updates of earlier ones, silenced ones included."""

    scan: Scan
    workload: Workload | None
    regressions: Sequence[Regression]
    so_far: SilencedSoFar
    lifecycle: LifecycleEvidence | None
    updates: Sequence[Update]
    changes: Callable[[], Sequence[Change]]


def apply_silences(store: Store, found: FoundInScan) -> SilencedScan:
    """Decide which findings of a scan silences keep from being reported.

    Raises:
        StoreUnavailable: nothing was decided.
    """
    followed = {entry.regression.id: entry for entry in found.so_far.followed}
    result = SilencedScan(updates=[entry for entry in found.updates if entry.regression.id not in followed])
    if not found.regressions and not followed:
        return result
    evidence = gather_silences(store, found.scan, found.so_far.spendings, found.changes)
    updates = {entry.regression.id: entry for entry in found.updates}
    for entry in followed.values():
        evidence = _follow(store, found, entry, updates.get(entry.regression.id), evidence, result)
    for regression in found.regressions:
        evidence = _hold(store, found, regression, evidence, result)
    return result


def _hold(
    store: Store, found: FoundInScan, regression: Regression, evidence: SilenceEvidence, result: SilencedScan
) -> SilenceEvidence:
    """Decide on a regression that the scan found; return the evidence for the next one."""
    candidate = regression.candidate
    suspects = frozenset(
        change.id for suspect in regression.suspects[:1] for change in (suspect.change, *suspect.switches)
    )
    case = silence_case(store, found.scan, found.workload, regression, suspects, evidence)
    decision = decide_silence(case, evidence)
    passed = tuple(step_decision for step_decision in decision.decisions if step_decision.passed)
    judged = replace(candidate, passed=(*candidate.passed, *passed))
    if decision.silent:
        last = decision.decisions[-1]
        result.dropped.append(Dropped(judged, last))
        event = regression_event(replace(regression, candidate=judged), found.scan)
        result.notes.append((regression, _state(last.step), decision, event))
    else:
        regression = replace(regression, candidate=judged, silences=decision.applied)
        result.reported.append(regression)
        if decision.applied:
            result.notes.append((regression, "reported", decision, {}))
    return evidence.with_spending(case, decision)


def _follow(
    store: Store,
    found: FoundInScan,
    one: Silenced,
    update: Update | None,
    evidence: SilenceEvidence,
    result: SilencedScan,
) -> SilenceEvidence:
    """Decide on a regression that an earlier scan silenced; return the evidence for the next one."""
    scan = found.scan
    now = Regression(one.regression.id, scan.service, one.workload, as_found_now(one, update), scan.end)
    case = silence_case(store, scan, found.workload, now, one.suspects, evidence)
    courses = found.lifecycle.courses if found.lifecycle and one.workload == scan.workload else None
    left = share_left(one, courses, scan)
    if update is None and left is None and one.workload != scan.workload:
        return evidence  # scans of its own workload follow it
    news = decide_news(one, case, update, left, evidence)
    if news.noted:
        _note(found, news, now, result)
    return evidence.with_spending(case, news.decision) if news.noted else evidence


def _note(found: FoundInScan, news: SilencedNews, now: Regression, result: SilencedScan) -> None:
    stored = orjson.loads(found.so_far.events[now.id])
    if news.state == "reported":
        passed = (*now.candidate.passed, *news.decision.decisions)
        now = replace(now, candidate=replace(now.candidate, passed=passed), silences=news.decision.applied)
        event = late_event(stored, now, news.joined)
        result.late.append((now, event))
    else:
        event = late_event(stored, now, news.joined)
    result.notes.append((now, news.state, news.decision, event))


def _state(step: str) -> SilencedState:
    return "expected" if step == "expected" else "muted"
