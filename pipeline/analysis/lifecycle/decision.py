"""Updates by one scan of open regressions: escalated, joined by further series, resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.analysis.lifecycle.courses import Courses
from pipeline.analysis.lifecycle.escalation import has_escalated
from pipeline.analysis.lifecycle.recovery import (
    Return,
    ReturnConfig,
    find_drop,
    judge_returned,
    reference_shift_s,
    span_s,
)
from pipeline.analysis.lifecycle.state import OpenRegression, Update
from pipeline.model import Candidate, Change, Scan
from pipeline.model.metric_kind import is_gcpu


@dataclass(frozen=True, slots=True)
class LifecycleConfig:
    """Settings of a workload: spans and sizes; exactly one threshold is set."""

    resolution_s: float
    historical_s: float
    absolute: float | None = None  # detection threshold, in the series' unit
    relative: float | None = None  # or as a share of the level that was reported last
    recovery: ReturnConfig = field(default_factory=ReturnConfig)


@dataclass(frozen=True, slots=True)
class LifecycleEvidence:
    """Input of the decision of one scan."""

    scan: Scan
    followed: tuple[OpenRegression, ...]  # of the scan's workload, newest first
    elsewhere: tuple[OpenRegression, ...]  # of other workloads, joined by candidates of the scan
    courses: Courses | None  # of those followed, from ``courses_start`` on; None if that asks for none


@dataclass(frozen=True, slots=True)
class Fallback:
    """A regression whose series has fallen back to the level before it, or seems to."""

    regression: OpenRegression
    time: float  # when it fell
    level: float  # since then
    share_factor: float = 1.0  # by which all shares moved since before the regression: see share_factor
    changes: tuple[Change, ...] = ()  # deployed just before it fell


def judged_since(scan: Scan, config: LifecycleConfig) -> float:
    """Return the time from which on a series must have returned to count as resolved at a scan."""
    return scan.end - span_s(scan.end - scan.analysis_start, config.historical_s)


def courses_start(scan: Scan, followed: Sequence[OpenRegression], config: LifecycleConfig) -> float | None:
    """Return the start of the courses that the decision needs; None if it needs none."""
    since = judged_since(scan, config)
    starts = [
        min(regression.candidate.change_time, since - _shift_s(regression, scan, config))
        for regression in _old(followed, since)
    ]
    for candidate in _escalating(scan):
        if any(
            regression.member(candidate.series) not in (None, regression.candidate) for regression in followed
        ):
            starts.append(candidate.change_time)
    return min(starts, default=None)


def find_fallbacks(evidence: LifecycleEvidence, config: LifecycleConfig) -> list[Fallback]:
    """Return regressions whose series seem to have returned; the share factor may still explain it."""
    fallbacks = []
    for regression in _old(evidence.followed, judged_since(evidence.scan, config)):
        returned = _judge_returned(evidence, regression, config)
        time = _drop_time(evidence, regression, config) if returned.returned else None
        if time:
            fallbacks.append(Fallback(regression, time, returned.level))
    return fallbacks


def confirm_fallbacks(
    evidence: LifecycleEvidence, fallbacks: Sequence[Fallback], config: LifecycleConfig
) -> list[Fallback]:
    """Return the fallbacks that hold after division by their share factors: these are resolved."""
    return [
        fallback
        for fallback in fallbacks
        if _judge_returned(evidence, fallback.regression, config, fallback.share_factor).returned
    ]


def decide_updates(
    evidence: LifecycleEvidence, fallbacks: Sequence[Fallback], config: LifecycleConfig
) -> list[Update]:
    """Return one update for each regression with news in a scan, the resolved ones last.

    Args:
        evidence: What was gathered.
        fallbacks: Those of ``confirm_fallbacks``, with changes filled in.
        config: Of the scan's workload.
    """
    resolved = [_resolution(evidence.scan, fallback) for fallback in fallbacks]
    gone = {update.regression.id for update in resolved}
    left = [regression for regression in evidence.followed if regression.id not in gone]
    escalated = _escalations(evidence, left, config)
    return [*_with_joined(evidence.scan, [*left, *evidence.elsewhere], escalated), *resolved]


def fixing_changes(
    changes: tuple[Change, ...], series: frozenset[str], *, most: int = 3
) -> tuple[Change, ...]:
    """Return the changes that may have ended a regression, the latest first.

    Only those that modify a subroutine of the regression: recency alone credits nobody.
    """
    credited = [change for change in changes if series & set(change.subroutines)]
    return tuple(sorted(credited, key=lambda change: (-change.time, change.id))[:most])


def _old(followed: Sequence[OpenRegression], since: float) -> list[OpenRegression]:
    """Return the regressions that began before the span in which a return must hold."""
    return [regression for regression in followed if regression.candidate.change_time <= since]


def _shift_s(regression: OpenRegression, scan: Scan, config: LifecycleConfig) -> float:
    """Return how far before the scan the reference course of the same hours lies; 0 if there is none."""
    change_time = regression.candidate.change_time
    earliest = change_time - config.historical_s
    return reference_shift_s(judged_since(scan, config), scan.end, change_time, earliest) or 0.0


def _judge_returned(
    evidence: LifecycleEvidence, regression: OpenRegression, config: LifecycleConfig, factor: float = 1.0
) -> Return:
    """Judge the level of a regression's own metric, with all shares divided by a factor."""
    courses, scan, reported = _known(evidence.courses), evidence.scan, regression.candidate
    since, shift_s = judged_since(scan, config), _shift_s(regression, scan, config)
    values, weights = courses.of(reported, since, scan.end)
    expected = courses.of(reported, since - shift_s, scan.end - shift_s)[0] if shift_s else None
    return judge_returned(
        values / factor,
        weights,
        before=reported.before,
        after=reported.after,
        expected=expected,
        config=config.recovery,
    )


def _drop_time(
    evidence: LifecycleEvidence, regression: OpenRegression, config: LifecycleConfig
) -> float | None:
    """Return the time when a series fell by a large part of a regression at once; None if it never did."""
    scan, reported = evidence.scan, regression.candidate
    values, weights = _known(evidence.courses).of(reported, reported.change_time, scan.end)
    upward = values if reported.delta > 0 else -values
    span = round((scan.end - judged_since(scan, config)) / config.resolution_s)
    index, drop = find_drop(upward, weights, span=span)
    if drop < config.recovery.drop * abs(reported.delta):
        return None
    return reported.change_time + index * config.resolution_s


def _resolution(scan: Scan, fallback: Fallback) -> Update:
    regression = fallback.regression
    every = (regression.candidate, *regression.candidate.group)
    return Update(
        kind="resolved",
        regression=regression,
        service=scan.service,
        workload=scan.workload,
        time=scan.end,
        change_time=fallback.time,
        level=fallback.level,
        changes=fixing_changes(fallback.changes, frozenset(candidate.metric for candidate in every)),
    )


def _escalating(scan: Scan) -> list[Candidate]:
    """Return the candidates that may escalate a regression, the largest rise first.

    The filter stage reports candidates beyond an earlier one, the dedup stage those that join a regression
    again.
    """
    every = [*scan.grown, *(joined.candidate for joined in scan.joined)]
    return sorted(every, key=lambda c: (-abs(c.delta), c.series))


def _escalations(
    evidence: LifecycleEvidence, left: Sequence[OpenRegression], config: LifecycleConfig
) -> list[Update]:
    """Return one update for each regression of which a series has escalated beyond what was reported."""
    scan = evidence.scan
    updates: dict[str, Update] = {}
    # The series that rose most represents a group; but a regression's own metric precedes its group.
    elsewhere = {joined.candidate: joined.regression for joined in scan.joined}
    for candidate in _escalating(scan):
        series = candidate.series
        # If several regressions have the series, the newest one has escalated.
        regression = next(
            (open_regression for open_regression in left if open_regression.member(series)), None
        )
        # A metric that has joined another regression has escalated with that one.
        if (
            regression
            and not is_gcpu(series.kind)
            and elsewhere.get(candidate, regression.id) != regression.id
        ):
            continue
        if regression is None:
            continue
        member, reported = regression.member(series), regression.last_level(series)
        own = member is regression.candidate
        if member is None or reported is None or (regression.id in updates and not own):
            continue
        if has_escalated(
            candidate,
            before=member.before,
            reported=reported,
            absolute=config.absolute,
            relative=config.relative,
        ):
            updates[regression.id] = Update(
                kind="updated",
                regression=regression,
                service=scan.service,
                workload=scan.workload,
                time=scan.end,
                change_time=candidate.change_time,
                level=candidate.after if own else _level_since(evidence, regression, candidate.change_time),
                escalated=replace(candidate, before=reported),
            )
    return list(updates.values())


def _level_since(evidence: LifecycleEvidence, regression: OpenRegression, time: float) -> float:
    """Return the level of a regression's own metric since a member of its group has escalated."""
    values, weights = _known(evidence.courses).of(regression.candidate, time, evidence.scan.end)
    measured = weights > 0
    return (
        float(np.average(values[measured], weights=weights[measured]))
        if measured.any()
        else regression.own_level
    )


def _with_joined(scan: Scan, followed: Sequence[OpenRegression], updates: Sequence[Update]) -> list[Update]:
    """Return the updates of a scan for series that joined regressions, one update a regression.

    A series that already belongs to the regression, for instance by another workload, is no news.
    """
    by_id = {update.regression.id: update for update in updates}
    for regression in followed:
        news = [j.candidate for j in scan.joined if j.regression == regression.id]
        news = [c for c in news if regression.member(c.series) is None]
        if not news:
            continue
        update = by_id.get(regression.id) or Update(
            kind="updated",
            regression=regression,
            service=scan.service,
            workload=scan.workload,
            time=scan.end,
            change_time=news[0].change_time,
            level=regression.own_level,
        )
        by_id[regression.id] = replace(update, joined=tuple(news))
    return list(by_id.values())


def _known(courses: Courses | None) -> Courses:
    if courses is None:
        raise ValueError("the evidence lacks the courses that courses_start asks for")
    return courses
