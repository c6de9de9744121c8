"""Course of a silenced regression: it stays silent, is gone, or is reported later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pipeline.analysis.lifecycle.courses import Courses
from pipeline.analysis.lifecycle.silence import (
    SilenceCase,
    SilenceDecision,
    SilenceEvidence,
    decide_silence,
    is_in_force,
)
from pipeline.analysis.lifecycle.state import OpenRegression, Update
from pipeline.model import AppliedSilence, Candidate, Decision, Scan

SilencedState = Literal["expected", "muted", "reported", "gone"]
"""Reason: the step that silences a regression; its report under an announced cost; or its return."""

THERE = 0.5
"""Share of a regression that must remain for a late report."""


@dataclass(frozen=True, slots=True)
class Silenced:
    """A regression that was found and has not been reported."""

    regression: OpenRegression
    workload: str
    state: SilencedState
    silence: str  # id of what silenced it
    suspects: frozenset[str]  # ids of its first suspect and of what that switches


@dataclass(frozen=True, slots=True)
class SilencedNews:
    """Findings of a scan on a silenced regression."""

    candidate: Candidate  # as it is now: escalated, joined by others
    joined: int  # number of series that joined it in this scan
    state: SilencedState
    decision: SilenceDecision
    noted: bool  # whether anything has to be recorded


def decide_news(
    one: Silenced,
    case: SilenceCase,
    update: Update | None,
    share_left: float | None,
    evidence: SilenceEvidence,
) -> SilencedNews:
    """Return the decision of a scan on a silenced regression.

    A regression under an announced cost stays silent, whatever is found beside it, until it escalates or the
    announcement is taken back. A late report requires that it is still there: it escalates, others join it,
    or at least half of it is left. Until then it waits.

    Args:
        one: As earlier scans left it.
        case: It as silences look at it, with what this scan found.
        update: What this scan would report of it if it had been reported; None without news.
        share_left: How much of it is left in the scan's last windows; None where there is no data.
        evidence: Silences and spendings.
    """
    joined = len(update.joined) if update else 0
    if update and update.kind == "resolved":
        return SilencedNews(case.candidate, 0, "gone", SilenceDecision((), ()), True)
    if update is None and one.state == "expected" and not _is_taken_back(one, evidence):
        return SilencedNews(case.candidate, 0, one.state, SilenceDecision((), ()), False)
    decision = decide_silence(case, evidence)
    if decision.silent:
        return SilencedNews(case.candidate, joined, _step(decision), decision, update is not None)
    if update is None and (share_left is None or share_left < THERE):
        return SilencedNews(case.candidate, joined, one.state, decision, False)
    return SilencedNews(case.candidate, joined, "reported", _with_end(one, decision, evidence), True)


def share_left(one: Silenced, courses: Courses | None, scan: Scan) -> float | None:
    """Return the share of a regression left in the windows that a scan looks at; None without data."""
    candidate = one.regression.candidate
    if courses is None or not candidate.delta:
        return None
    values, weights = courses.of(candidate, scan.analysis_start, scan.end)
    measured = weights > 0
    if not measured.any():
        return None
    return float(np.average(values[measured], weights=weights[measured]) - candidate.before) / candidate.delta


def as_found_now(one: Silenced, update: Update | None) -> Candidate:
    """Return a silenced regression's candidate with a scan's findings: a new level, further members."""
    candidate = one.regression.candidate
    if update is None:
        return candidate
    if update.escalated and update.escalated.series == candidate.series:
        candidate = replace(candidate, after=update.escalated.after)
    elif update.escalated:
        candidate = replace(candidate, group=_escalated(candidate.group, update.escalated))
    return replace(candidate, group=(*candidate.group, *update.joined))


def _escalated(group: Sequence[Candidate], member: Candidate) -> tuple[Candidate, ...]:
    return tuple(
        replace(series, after=member.after) if series.series == member.series else series for series in group
    )


def _is_taken_back(silenced: Silenced, evidence: SilenceEvidence) -> bool:
    return any(
        silence.id == silenced.silence and not is_in_force(silence, evidence.now)
        for silence in evidence.silences
    )


def _step(decision: SilenceDecision) -> SilencedState:
    return "expected" if decision.decisions[-1].step == "expected" else "muted"


def _with_end(silenced: Silenced, decision: SilenceDecision, evidence: SilenceEvidence) -> SilenceDecision:
    """Return the decision with the end of the regression's silence, unless the decision names it."""
    if any(item.step == silenced.state for item in decision.decisions):
        return decision
    silence = next((item for item in evidence.silences if item.id == silenced.silence), None)
    code = "removed" if silenced.state == "expected" else "ended"
    ended = Decision(
        silenced.state, True, code=code, subjects=(silenced.silence, silence.owner if silence else "?")
    )
    applied: tuple[AppliedSilence, ...] = (AppliedSilence(silence),) if silence else ()
    return replace(decision, decisions=(ended, *decision.decisions), applied=(*applied, *decision.applied))
