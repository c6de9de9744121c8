"""Outcomes of experiments as alerts see them: verdicts on trials, cut to fit a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import xxhash

from pipeline.messages.records import field_names

TrialDecision = Literal["fail", "not enough", "pass"]

MOST_METRICS = 20
"""Most metrics that rules match and messages name: those with the largest differences."""

_MOST_RELEASES, _MOST_MACHINES = 5, 8
_LONGEST = 300
"""Characters of a machine's factors."""


@dataclass(frozen=True, slots=True)
class MetricOutcome:
    """Verdict on one metric. Differences are relative to side A; None is not known."""

    metric: str
    decision: TrialDecision
    threshold: float
    direction: Literal["up", "down"]
    model: str
    trials: int
    trials_needed: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    mean_a: float | None = None
    mean_b: float | None = None


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """Verdict on an experiment. ``metrics`` are those that led to its decision, of a pass all."""

    experiment: str
    decision: TrialDecision
    revision: int
    complete: bool
    trials: int
    expected_trials: int = 0  # 0 is not known
    releases_a: tuple[str, ...] = ()
    releases_b: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()  # as "A type=m5 (6)": side, factors, trials
    metrics: tuple[MetricOutcome, ...] = ()
    metrics_size: int = 0  # how many led to the decision, before the cut


def outcome_of(data: Mapping[str, Any]) -> TrialOutcome:
    """Read the data of a verdict's event.

    Raises:
        KeyError, TypeError, ValueError: it lacks what every verdict has.
    """
    deciding = [metric for metric in data["metrics"] if data["decision"] in ("pass", metric["decision"])]
    deciding.sort(key=lambda metric: -abs(metric["difference"] or 0.0))
    return TrialOutcome(
        experiment=str(data["experiment"]),
        decision=data["decision"],
        revision=int(data["revision"]),
        complete=bool(data["complete"]),
        trials=int(data["trials"]),
        expected_trials=int(data["expected_trials"] or 0),
        releases_a=tuple(map(str, data["releases_a"][:_MOST_RELEASES])),
        releases_b=tuple(map(str, data["releases_b"][:_MOST_RELEASES])),
        machines=tuple(map(_machine, data["machines"][:_MOST_MACHINES])),
        metrics=tuple(map(_metric, deciding[:MOST_METRICS])),
        metrics_size=len(deciding),
    )


def thread_id(service: str, experiment: str) -> str:
    """Derive what all verdicts on an experiment have in common, as updates have their regression."""
    return "trial-" + xxhash.xxh3_128_hexdigest("\n".join((service, experiment)).encode())


def _metric(row: Mapping[str, Any]) -> MetricOutcome:
    values: dict[str, Any] = {name: row.get(name) for name in field_names(MetricOutcome)}
    return MetricOutcome(**values)


def _machine(row: Mapping[str, Any]) -> str:
    factors = " ".join(f"{name}={value}" for name, value in row["factors"].items())
    return f"{row['side']} {factors[:_LONGEST]} ({row['trials']})"
