"""Rules: the targets of alerts."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from pipeline.delivery.alerts.alert import Alert
from pipeline.files.validation import StrictModel
from pipeline.model import MetricKind
from pipeline.settings.config import Seconds


def parse_share(value: object) -> float:
    """Read a share, ``0.1%`` or a number from 0 to 1.

    Raises:
        ValueError: it is neither.
    """
    try:
        percent = isinstance(value, str) and value.rstrip().endswith("%")
        share = float(str(value).rstrip().rstrip("%")) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if isinstance(value, bool) or not 0 <= share < float("inf"):
        raise ValueError(f"should be a share such as 0.1%, not {str(value)[:40]!r}")
    return share


Share = Annotated[float, BeforeValidator(parse_share)]
_OF_REGRESSIONS = ("workloads", "metric_kinds", "min_size", "min_waste", "min_suspect_score", "unanswered")
"""Properties that verdicts on trials lack: a rule about these alone cannot require them."""

Globs = Annotated[tuple[str, ...], Field(min_length=1)]
Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Unanswered(StrictModel):
    """Targets to alert as well if nobody answers."""

    after_s: Seconds = Field(alias="after", gt=0)
    to: Names


RuleEvent = Literal["regression", "trial-fail", "trial-not-enough"]


class AlertRule(StrictModel):
    """Conditions on an alert, and its targets. Conditions that are not given are not checked."""

    name: str = ""
    events: Annotated[tuple[RuleEvent, ...], Field(min_length=1)] = ("regression",)
    services: Globs = ("*",)
    subroutines: Globs = ("*",)
    workloads: Globs = ("*",)
    owners: Globs | None = None
    metric_kinds: Annotated[tuple[MetricKind, ...], Field(min_length=1)] | None = None
    min_size: Share = 0.0
    min_relative: Share = 0.0
    min_waste: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    min_confidence: Share = 0.0
    min_suspect_score: Share = 0.0
    to: Names
    urgent: bool = False
    unanswered: Unanswered | None = None
    stop: bool = False

    @model_validator(mode="after")
    def _shares(self) -> Self:
        for name in ("min_confidence", "min_suspect_score"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name}: should be at most 1")
        if "regression" not in self.events:
            for name in _OF_REGRESSIONS:
                if name in self.model_fields_set:
                    raise ValueError(f"{name}: of regressions alone, for which this rule's events do not ask")
        return self


def matches(rule: AlertRule, alert: Alert) -> bool:
    """Return whether a rule matches an alert: of a verdict on trials, one of its metrics."""
    return alert.about in rule.events and any(_matches(rule, by_metric) for by_metric in alert.by_metric())


def _matches(rule: AlertRule, alert: Alert) -> bool:
    """Return whether a rule matches one metric; an unknown value does not reach a bound.

    A size in shares of CPU is checked only for such shares. A series that is new has risen by any share.
    """
    return (
        _any(rule.services, alert.service)
        and _any(rule.subroutines, alert.metric)
        and _any(rule.workloads, alert.workload)
        and (rule.owners is None or any(_any(rule.owners, owner) for owner in alert.owners))
        and (rule.metric_kinds is None or alert.metric_kind in rule.metric_kinds)
        and (not alert.is_share or alert.size >= rule.min_size)
        and (alert.relative is None or abs(alert.relative) >= rule.min_relative)
        and _reaches(alert.waste_servers, rule.min_waste)
        and _reaches(alert.confidence, rule.min_confidence)
        and _reaches(alert.suspect.score if alert.suspect else None, rule.min_suspect_score)
    )


def matching(rules: Sequence[AlertRule], alert: Alert) -> tuple[AlertRule, ...]:
    """Return the rules that match an alert, in order, up to the first that stops."""
    chosen = []
    for rule in rules:
        if matches(rule, alert):
            chosen.append(rule)
            if rule.stop:
                break
    return tuple(chosen)


def _any(globs: Sequence[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _reaches(value: float | None, bound: float) -> bool:
    return bound == 0 or (value is not None and value >= bound)
