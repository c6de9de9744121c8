"""The story of a candidate in words: its series, and each step with its measurement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.messages.events import UPDATED
from pipeline.messages.ledger import LedgerEntry
from pipeline.model import Candidate, CostlierRequests, Decision, DomainDecision, DomainFinding
from pipeline.model.clock import to_iso
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.steps import code_of, sentence, step_of
from pipeline.model.units import format_duration

FINDINGS: Mapping[DomainFinding, str] = {
    "shifted": "did not rise with it: the cost came from within",
    "rose": "rose with it: the cost is new",
    "too large": "is too large to show such a change above its own noise",
    "new": "did not exist before: there was no cost in it to move",
}
"""Decisions of cost domains (§5.4.6) in words, the most important first."""

_MOST_DOMAINS = 8


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step's decision, ready to be shown."""

    name: str
    passed: bool
    asks: str
    numbers: str  # statistic and bound, and what they are
    answer: str


@dataclass(frozen=True, slots=True)
class CandidateStory:
    """A candidate's story in the order in which it happened."""

    headline: str
    outcome: str
    reported: bool
    facts: tuple[tuple[str, str], ...]  # label and text
    steps: tuple[ExplainedStep, ...]
    domains: tuple[str, ...]  # decisions of its cost domains
    suspects: tuple[str, ...]
    explanations: tuple[str, ...]  # explanations by set-up metrics
    later: tuple[str, ...]  # updates of a reported candidate


def explain(
    entry: LedgerEntry,
    *,
    event: Mapping[str, Any] | None = None,
    updates: Sequence[Mapping[str, Any]] = (),
    frame: str = "",
) -> CandidateStory:
    """Explain a candidate in words.

    Args:
        entry: From the ledger.
        event: The event of a reported one, which has its suspects; None if it was dropped or is gone.
        updates: Later events of it, oldest first.
        frame: A name that samplers gave its symbol; empty if none is known.
    """
    candidate = entry.candidate
    ratio = is_gcpu(candidate.metric_kind)
    before, after = level(candidate.before, ratio=ratio), level(candidate.after, ratio=ratio)
    verb = "rose" if candidate.delta > 0 else "fell"
    of = " of the service's CPU" if ratio else ""
    dropped = entry.dropped
    outcome = f"Step {dropped.step} dropped it: {sentence(dropped)}." if dropped else "It was reported."
    return CandidateStory(
        headline=f"{candidate.metric} {verb} from {before} to {after}{of}",
        outcome=outcome,
        reported=dropped is None,
        facts=(*_facts(entry, frame, ratio=ratio), *_silences((event or {}).get("data", {}))),
        steps=_steps(entry),
        domains=_domains(candidate.domains),
        suspects=tuple(_suspect(raw) for raw in (event or {}).get("data", {}).get("root_causes") or []),
        explanations=tuple(
            _explanation(raw) for raw in (event or {}).get("data", {}).get("explanations") or []
        ),
        later=tuple(_update(raw, ratio=ratio) for raw in updates),
    )


def level(value: float, *, ratio: bool) -> str:
    """Write a level: gCPU in per cent, anything else in its own unit."""
    return f"{value * 100:.4g} %" if ratio else f"{value:.6g}"


def moment(epoch_s: float) -> str:
    """Write a time for people: UTC, to the second."""
    return f"{to_iso(epoch_s)[:19].replace('T', ' ')} UTC"


def number(value: float) -> str:
    """Write a statistic with enough digits to compare it."""
    if value and abs(value) < 1e-4:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.4g}"


def _facts(entry: LedgerEntry, frame: str, *, ratio: bool) -> tuple[tuple[str, str], ...]:
    candidate, scan = entry.candidate, entry.scan
    relative = f"{candidate.relative:+.1%}" if math.isfinite(candidate.relative) else "new"
    size = f"{candidate.delta * 100:+.4g} points" if ratio else f"{candidate.delta:+.6g}"
    windows = [
        f"history {format_duration(scan.analysis_start - scan.start)}",
        f"analysis {format_duration(scan.analysis_end - scan.analysis_start)}",
        *(
            [f"extended {format_duration(scan.end - scan.analysis_end)}"]
            if scan.end > scan.analysis_end
            else []
        ),
    ]
    facts = [
        ("id", entry.id),
        ("service", scan.service),
        ("series", f"{candidate.metric}, {candidate.metric_kind}"),
        *([("frame", frame)] if frame else []),
        (
            "change",
            f"{size} ({relative}) at {moment(candidate.change_time)}, {candidate.kind.replace('_', '-')}",
        ),
        *([("between", between(interval))] if (interval := candidate.change_time_interval) else []),
        ("scan", f"{scan.workload}, up to {moment(scan.end)}: {', '.join(windows)}"),
        *([("partial", f"silent partitions: {silent}")] if (silent := scan.silent_partitions) else []),
    ]
    facts += [("requests", _requests(request)) for request in candidate.costlier_requests]
    if candidate.group:
        names = ", ".join(member.metric for member in candidate.group[:8])
        more = f" and {len(candidate.group) - 8} more" if len(candidate.group) > 8 else ""
        facts.append(("with", names + more))
    return tuple(facts)


def _requests(request: CostlierRequests) -> str:
    """Write a costlier type, and the types that it may be instead, each with its probability if known."""
    named = [f"{type_} {request.likely[type_]:.0%}" if request.likely else type_ for type_ in request.types]
    return " or ".join(named)


def _silences(data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the silences about a regression, as facts."""
    ratio = is_gcpu(data.get("metric_kind", "subroutine"))
    return tuple(
        (str(silence.get("kind", "")), describe_silence(silence, ratio=ratio))
        for silence in data.get("silences") or ()
    )


def describe_silence(raw: Mapping[str, Any], *, ratio: bool = True) -> str:
    """Describe a silence: cost or mute, owner, and end; ``ratio`` writes costs in per cent."""
    parts = [f"{raw.get('id', '?')}, of {raw.get('subroutine') or 'whatever it is about'}"]
    if raw.get("cost") is not None:
        total = raw.get("total")
        parts.append(f"{level(raw['cost'], ratio=ratio)} announced")
        parts += [f"{level(total, ratio=ratio)} taken"] if total is not None else []
    parts += [f"by {raw['owner']}"] if raw.get("owner") else []
    parts += [f"until {str(raw['end'])[:16].replace('T', ' ')} UTC"] if raw.get("end") else []
    parts += [str(raw["reason"])] if raw.get("reason") else []
    return ", ".join(parts)


def between(interval: tuple[float, float]) -> str:
    """Return the moments that a change lies between."""
    begin, end = interval
    return f"{moment(begin)} and {moment(end)}, with 95 % confidence"


def _steps(entry: LedgerEntry) -> tuple[ExplainedStep, ...]:
    candidate = entry.candidate
    detected = ExplainedStep(
        name="change point",
        passed=True,
        asks="Is there one level before and another after? (§5.4.2, §5.4.5)",
        numbers=f"statistic {number(candidate.statistic)}, p-value {number(candidate.p_value)}",
        answer="the levels differ",
    )
    decisions = [*candidate.passed, *([entry.dropped] if entry.dropped else [])]
    return (detected, *(_step(decision, candidate) for decision in decisions))


def _step(decision: Decision, candidate: Candidate) -> ExplainedStep:
    step, code = step_of(decision.step), code_of(decision)
    # Both are 0 if a step had nothing to compare with, such as no earlier regression.
    compared = decision.statistic != 0 or decision.bound != 0
    if step.judges_domains and decision.passed:
        compared = compared and bool(candidate.domains)
    numbers = f"{number(decision.statistic)} against {number(decision.bound)}" if compared else ""
    measures = code.measures or (step.measures_passed if decision.passed else "") or step.measures
    if numbers and measures:
        numbers += f" ({measures})"
    without = step.passes if compared else step.passes_alone or step.passes
    answer = sentence(decision) or (without if decision.passed else "")
    return ExplainedStep(decision.step, decision.passed, step.question, numbers, answer)


def in_order(said: Sequence[DomainDecision]) -> list[DomainDecision]:
    """Return the decisions of cost domains in the order of reading."""
    return sorted(said, key=lambda domain: list(FINDINGS).index(domain.finding))


def _domains(decisions: Sequence[DomainDecision]) -> tuple[str, ...]:
    listed = in_order(decisions)
    more = [f"and {len(listed) - _MOST_DOMAINS} more"] if len(listed) > _MOST_DOMAINS else []
    return (*map(_domain, listed[:_MOST_DOMAINS]), *more)


def _domain(domain: DomainDecision) -> str:
    moved = f"{level(domain.before, ratio=True)} → {level(domain.after, ratio=True)}"
    text = f"{domain.domain} ({moved}) {FINDINGS[domain.finding]}"
    if domain.finding in ("new", "too large"):  # nothing could be measured
        return text
    return f"{text}; {domain.statistic:.0%} of the rise that a regression brings, against {domain.bound:.0%}"


def _suspect(raw: Mapping[str, Any]) -> str:
    change = raw.get("change") or {}
    by = f" by {change['author']}" if change.get("author") else ""
    score = raw.get("score")
    rated = f", score {score:.2f}" if isinstance(score, int | float) else ""
    switches = "".join(f"; it switches {_titled(switched)}" for switched in raw.get("switches") or ())
    return f"{_titled(change)}{by}{rated}{switches}"


def _titled(change: Mapping[str, Any]) -> str:
    return f"{str(change.get('id', '?'))[:12]} {change.get('title', '')}"


def _explanation(raw: Mapping[str, Any]) -> str:
    """Write the explanation by a set-up metric; missing parts are left out."""
    parts = [str(raw.get("metric", "?"))]
    numbers = [raw.get(name) for name in ("before", "after", "explained", "correlation")]
    if all(isinstance(value, int | float) for value in numbers):
        before, after, explained, correlation = (float(value) for value in numbers if value is not None)
        parts.append(f"went from {number(before)} to {number(after)}")
        parts.append(f"at {str(raw.get('change_time', '?'))[:19].replace('T', ' ')} UTC")
        parts.append(f"and makes {explained:.0%} of the change (correlation {correlation:.2f})")
    return " ".join(parts)


def _update(event: Mapping[str, Any], *, ratio: bool) -> str:
    data = event["data"]
    what = update_words(data) if event["type"] == UPDATED else "resolved"
    share = f"{data['share_remaining']:.0%} of the change"
    time = str(data["change_time"])[:19].replace("T", " ")
    fix = "".join(
        f", by {change['id'][:12]} {change.get('title', '')}"
        for change in (data.get("resolved_by") or [])[:1]
    )
    return f"{what} since {time} UTC: {level(data['level'], ratio=ratio)}, {share}{fix}"


def update_words(data: Mapping[str, Any]) -> str:
    """Write what an update says of a regression: that it escalated, that series joined, or both."""
    joined = [str(series["metric"]) for series in data.get("joined") or []]
    size = data.get("joined_size", len(joined))
    more = f" and {size - 3} more" if size > 3 else ""
    listed = [
        *(["escalated"] if data.get("grown") else []),
        *([f"joined by {', '.join(joined[:3])}{more}"] if joined else []),
    ]
    return ", ".join(listed) or "updated"
