"""Comparison of reported events with deployments: the right event, once, and nothing else; pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.target.history import CommitKind
from pipeline.messages.events import DETECTED
from pipeline.model import Decision, Dropped
from pipeline.model.clock import from_iso
from pipeline.model.units import counted


@dataclass(frozen=True, slots=True)
class DemoDeployment:
    """A commit that was deployed, with the time at which it took over (epoch seconds)."""

    sha: str
    title: str
    kind: CommitKind
    time: float


@dataclass(frozen=True, slots=True)
class EventSummary:
    """Summary of an event."""

    id: str
    metric: str
    before: float
    after: float
    change_time: float
    suspect: str  # id of the change ranked first; empty if there is none
    score: float


@dataclass(frozen=True, slots=True)
class ReportedDeployments:
    """Findings parallel to the deployments: those reported about each.

    ``problems`` holds a sentence for each mismatch; none means passed.
    """

    findings: tuple[tuple[EventSummary, ...], ...]
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the slow commit was reported once, correctly, and nothing else was."""
        return not self.problems


def judge(
    deployments: Sequence[DemoDeployment],
    events: Sequence[Mapping[str, Any]],
    subroutine: str,
    dead_letters: Sequence[str] = (),
    *,
    dropped: Sequence[Dropped] = (),
) -> ReportedDeployments:
    """Compare the reported events with the deployments.

    Args:
        deployments: Deployments in order; exactly one of kind ``slow``.
        events: CloudEvents in order of arrival; only detected regressions count, and repeats count again.
        subroutine: The subroutine that the slow commit made slower.
        dead_letters: Reasons of dead letters; there should be none.
        dropped: Candidates that a step dropped, oldest first: why the slow commit was not reported.
    """
    detected = [finding_of(event) for event in events if event["type"] == DETECTED]
    slow = next(index for index, release in enumerate(deployments) if release.kind == "slow")
    about: list[list[EventSummary]] = [[] for _ in deployments]
    problems: list[str] = []
    for finding in detected:
        about[_deployment_of(finding, deployments, subroutine, slow)].append(finding)
    for index, (deployment, findings) in enumerate(zip(deployments, about, strict=True)):
        if index != slow:
            problems += [
                f"{finding.metric} was reported after {deployment.title!r}, which is {deployment.kind}"
                for finding in findings
            ]
    own = [line.decision for line in dropped if line.candidate.metric == subroutine]
    problems += _problems_with_slow(deployments[slow], about[slow], subroutine, own)
    if dead_letters:
        count = counted(len(dead_letters), "dead letter")
        problems.append(f"{count}, the first by {dead_letters[0]}")
    return ReportedDeployments(
        findings=tuple(tuple(findings) for findings in about), problems=tuple(problems)
    )


def finding_of(event: Mapping[str, Any]) -> EventSummary:
    """Return the summary of a regression's event."""
    data = event["data"]
    first = data["root_causes"][0] if data["root_causes"] else None
    return EventSummary(
        id=event["id"],
        metric=data["metric"],
        before=data["before"],
        after=data["after"],
        change_time=from_iso(data["change_time"]),
        suspect=first["change"]["id"] if first else "",
        score=first["score"] if first else 0.0,
    )


def _deployment_of(
    finding: EventSummary, deployments: Sequence[DemoDeployment], subroutine: str, slow: int
) -> int:
    """Return the deployment that an event is about.

    It is chosen by the subroutine made slower, else by the change ranked first, else by time: the last
    deployment before the change point.
    """
    if finding.metric == subroutine:
        return slow
    shas = [deployment.sha for deployment in deployments]
    if finding.suspect in shas:
        return shas.index(finding.suspect)
    before = [i for i, deployment in enumerate(deployments) if deployment.time <= finding.change_time]
    return before[-1] if before else 0


def _problems_with_slow(
    slow: DemoDeployment, findings: Sequence[EventSummary], subroutine: str, dropped: Sequence[Decision]
) -> list[str]:
    if not findings:
        return [f"the slow commit {slow.title!r} was not reported: {_why_not(subroutine, dropped)}"]
    problems = []
    if len(findings) > 1:
        problems.append(f"the slow commit was reported {len(findings)} times")
    for finding in findings:
        if finding.metric != subroutine:
            problems.append(f"it was reported as {finding.metric} instead of {subroutine}")
        if finding.suspect != slow.sha:
            ranked = finding.suspect[:9] or "no change"
            problems.append(f"{ranked} was ranked first instead of {slow.sha[:9]}")
    return problems


def _why_not(subroutine: str, dropped: Sequence[Decision]) -> str:
    """Write which steps dropped the candidates of a subroutine, and the last one's numbers."""
    if not dropped:
        return f"{subroutine} had no change point in any scan"
    counts = Counter(decision.step for decision in dropped)
    steps = ", ".join(f"{count} by {step}" for step, count in counts.most_common())
    last = dropped[-1]
    numbers = f"{last.step}: {last.statistic:.3g} against {last.bound:.3g}"
    return f"{counted(len(dropped), 'candidate')} of {subroutine} dropped, {steps}; the last by {numbers}"
