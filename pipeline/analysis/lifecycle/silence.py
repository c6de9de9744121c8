"""Decisions on silences: regressions that people expected or muted, and those beyond that.

An expectation silences the announced cost: the regressions that it is about are added up, each with its
uncertainty, and what makes the sum significantly larger than the announced cost is reported. A mute silences
the series that it names until it ends; other rising members of a group stay visible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from pipeline.analysis.stacks import StackIndex
from pipeline.model import AppliedSilence, Candidate, Decision, Silence
from pipeline.model.frames import element
from pipeline.model.metric_kind import is_gcpu

ERRORS = 2.0
"""Standard errors by which a rise must exceed an announced cost to be reported."""

OTHERS_ERRORS = 3.0
"""Standard errors by which a member must rise beside muted subroutines: a group has many members."""

SHORTEST_CHANGE = 7
"""Fewest characters that name a change's id, as git shortens ids."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Part of an announced cost that one regression uses."""

    regression: str  # its id
    silence: str  # id of the expectation
    size: float  # share of the service's CPU
    error: float  # standard error of that


@dataclass(frozen=True, slots=True)
class SilenceEvidence:
    """Input of one scan's decisions on silences."""

    now: float  # end of the scan, epoch seconds
    silences: tuple[Silence, ...]
    spendings: tuple[Spending, ...] = ()  # of all regressions so far that are still there

    def with_spending(self, case: SilenceCase, decision: SilenceDecision) -> SilenceEvidence:
        """Return it after one more regression was decided on."""
        more = (
            Spending(case.id, applied.silence.id, decision.size, decision.error)
            for applied in decision.applied
            if applied.silence.kind == "expected"
        )
        spendings = (spending for spending in self.spendings if spending.regression != case.id)
        return replace(self, spendings=(*spendings, *more))


@dataclass(frozen=True, slots=True, eq=False)
class SilenceCase:
    """A regression with the properties that silences depend on."""

    id: str
    candidate: Candidate  # with its group
    suspects: frozenset[str] = frozenset()  # ids of its first suspect and of what that switches
    stacks: StackIndex | None = None  # around its change point; None where they were not asked for


@dataclass(frozen=True, slots=True)
class SilenceDecision:
    """Decisions of silences on a regression, in order; the last may have dropped it."""

    decisions: tuple[Decision, ...]
    applied: tuple[AppliedSilence, ...]  # as many; each decision's silence
    size: float = 0.0  # part of an expectation that it uses
    error: float = 0.0

    @property
    def silent(self) -> bool:
        """Whether the regression is silenced."""
        return any(not decision.passed for decision in self.decisions)


def decide_silence(case: SilenceCase, evidence: SilenceEvidence) -> SilenceDecision:
    """Return the decisions of silences on a regression; none if no silence is about it."""
    size, error = size_of(case.candidate)
    judged = [_expected(case, evidence)]
    if judged[0] is None or judged[0][0].passed:
        judged.append(_muted(case, running_mutes(evidence)))
    items = [item for item in judged if item is not None]
    decisions, applied = tuple(item for item, _ in items), tuple(item for _, item in items)
    return SilenceDecision(decisions, applied, size, error)


def is_in_force(silence: Silence, now: float) -> bool:
    """Return whether a silence is known to a scan that ends now."""
    return silence.time <= now and (silence.removed is None or now < silence.removed)


def matches(silence: Silence, candidate: Candidate) -> bool:
    """Return whether a silence is about a series."""
    return not silence.subroutine or fnmatchcase(candidate.metric, silence.subroutine)


def running_mutes(evidence: SilenceEvidence) -> list[Silence]:
    """Return the mutes of a service that are running when the scan ends."""
    now = evidence.now
    return [
        silence
        for silence in evidence.silences
        if silence.kind == "muted"
        and is_in_force(silence, now)
        and silence.start <= now
        and (silence.end is None or now < silence.end)
    ]


def asks_for_stacks(candidate: Candidate, evidence: SilenceEvidence) -> bool:
    """Return whether the decision needs the stacks around a change point: to leave out muted members."""
    mutes = running_mutes(evidence)
    return any(matches(mute, candidate) for mute in mutes) and any(
        is_gcpu(member.metric_kind) and not any(matches(mute, member) for mute in mutes)
        for member in candidate.group
    )


def size_of(candidate: Candidate) -> tuple[float, float]:
    """Return the size of a regression as a share of the service's CPU, and its standard error.

    It is the rise of the member with the largest certain rise: the representative of a group may rise less.
    For a service-level metric it is the change in its own unit.
    """
    own = standard_error(candidate)
    if not is_gcpu(candidate.metric_kind):
        return abs(candidate.delta), own
    rises = [(candidate.delta, own)]
    for member in candidate.group:
        if is_gcpu(member.metric_kind):
            # Members of a stored event have no statistic; the noise of counts goes with the level's root.
            scale = math.sqrt(max(member.after, 0.0) / candidate.after) if candidate.after > 0 else 1.0
            rises.append((member.delta, standard_error(member) or own * max(scale, 1.0)))
    return max(rises, key=lambda rise: rise[0] - ERRORS * rise[1])


def standard_error(candidate: Candidate) -> float:
    """Return the standard error of a candidate's rise; 0 where its statistic is not known.

    The statistic of a step is the square of the rise in standard errors, that of a slow rise the rise itself.
    """
    if candidate.statistic <= 0:
        return 0.0
    errors = candidate.statistic if candidate.kind == "long_term" else math.sqrt(candidate.statistic)
    return abs(candidate.delta) / errors


def _expected(case: SilenceCase, evidence: SilenceEvidence) -> tuple[Decision, AppliedSilence] | None:
    """Compare a regression with its announced costs; the one with most room left counts."""
    candidate = case.candidate
    own_unit = not is_gcpu(candidate.metric_kind)
    if not own_unit and candidate.delta <= 0:
        return None
    judged = [
        (*_total(case, silence, evidence), silence)
        for silence in evidence.silences
        if silence.kind == "expected"
        and silence.is_of_metric == own_unit
        and is_in_force(silence, evidence.now)
        and _is_expected_by(case, silence)
    ]
    if not judged:
        return None
    total, bound, silence = max(judged, key=lambda row: (row[1] - row[0], row[2].id))
    within = total <= bound
    decision = Decision("expected", not within, total, bound, "within" if within else "beyond", (silence.id,))
    return decision, AppliedSilence(silence, total, announced(silence, candidate))


def _total(case: SilenceCase, expectation: Silence, evidence: SilenceEvidence) -> tuple[float, float]:
    """Return the cost that regressions use of an announcement, this one included, and its upper bound."""
    size, error = size_of(case.candidate)
    spendings = [
        spending
        for spending in evidence.spendings
        if spending.silence == expectation.id and spending.regression != case.id
    ]
    variance = error**2 + sum(spending.error**2 for spending in spendings)
    allowed = announced(expectation, case.candidate)
    return size + sum(spending.size for spending in spendings), allowed + ERRORS * math.sqrt(variance)


def announced(expectation: Silence, candidate: Candidate) -> float:
    """Return an announced cost as a share of the service's CPU, or in the unit of the candidate's metric."""
    if expectation.measure == "relative":
        return expectation.cost * abs(candidate.before)
    return expectation.cost


def _is_expected_by(case: SilenceCase, expectation: Silence) -> bool:
    """Return whether an expectation is about a regression.

    A change's cost covers the regressions that it is suspected of; without suspects, the named ones in its
    time.
    """
    candidate = case.candidate
    members = (candidate,) if expectation.is_of_metric else (candidate, *candidate.group)
    named = any(matches(expectation, member) for member in members)
    if not named:
        return False
    if expectation.change and case.suspects:
        return any(_is_named(suspect, expectation.change) for suspect in case.suspects)
    if expectation.change and not expectation.subroutine:
        return False
    earliest, latest = candidate.change_time_span
    return latest >= expectation.start and (expectation.end is None or earliest < expectation.end)


def _is_named(change: str, name: str) -> bool:
    return change == name or (len(name) >= SHORTEST_CHANGE and change.startswith(name))


def _muted(case: SilenceCase, mutes: Sequence[Silence]) -> tuple[Decision, AppliedSilence] | None:
    """Compare a regression with the running mutes; the mute that ends last counts."""
    about = [mute for mute in mutes if matches(mute, case.candidate)]
    if not about:
        return None
    last = max(about, key=lambda mute: (mute.end or math.inf, mute.id))
    beside = _largest_beside(case, mutes)
    if beside is None:
        return Decision("muted", False, 0.0, 0.0, "muted", (last.id, last.owner)), AppliedSilence(last)
    member, rise, bound = beside
    if rise > bound:
        decision = Decision("muted", True, rise, bound, "others", (last.id, last.owner, member.metric))
    else:
        decision = Decision("muted", False, rise, bound, "muted", (last.id, last.owner))
    return decision, AppliedSilence(last)


def _largest_beside(case: SilenceCase, mutes: Sequence[Silence]) -> tuple[Candidate, float, float] | None:
    """Return the unmuted member that rises most, its unmuted rise, and the standard error of that."""
    every = (case.candidate, *case.candidate.group)
    muted = [member for member in every if any(matches(mute, member) for mute in mutes)]
    beside = [
        (member, *_rise_beside(member, muted, case)) for member in case.candidate.group if member not in muted
    ]
    return max(beside, key=lambda row: row[1] - row[2], default=None)


def _rise_beside(member: Candidate, muted: Sequence[Candidate], case: SilenceCase) -> tuple[float, float]:
    """Return a member's rise in stacks without any muted subroutine, and its standard error.

    Without stacks, as of service-level metrics, nothing of its rise is known to be theirs; of gCPU, what
    the largest muted one rises by.
    """
    own = standard_error(member) or standard_error(case.candidate)
    index = case.stacks
    if not is_gcpu(member.metric_kind):
        return abs(member.delta), 0.0
    if index is None or not index.matrix.total_before or not index.matrix.total_after:
        return member.delta - max(muted_member.delta for muted_member in muted), OTHERS_ERRORS * own
    apart = index.holding([element(*member.series)])
    apart &= ~index.holding([element(*muted_member.series) for muted_member in muted])
    variance = own**2
    for counts, total in (
        (index.matrix.before, index.matrix.total_before),
        (index.matrix.after, index.matrix.total_after),
    ):
        share = float(np.sum(counts[apart])) / total
        variance += share * (1.0 - share) / total
    return float(np.sum(index.rise[apart])), OTHERS_ERRORS * math.sqrt(variance)
