"""The map of metrics: the metrics that are taken, and their services, names and labels."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from agents.metrics.conventions import DEFAULTS
from agents.metrics.reading import Labels
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.units import parse_duration_s

OverHosts = Literal["mean", "sum", "max"]

SERVICE_LABELS = ("service.name", "service_name", "service", "app", "job")
"""Labels that name the service; the first one that a series has counts."""

_SERVICE = re.compile(r"\w[\w.:@-]{0,199}")
_MOST_REMEMBERED = 50_000


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Duration = Annotated[float, BeforeValidator(parse_duration_s)]
Globs = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class MetricRule(StrictModel):
    """A rule: metrics that are taken, and their names."""

    take: Annotated[Globs, Field(min_length=1)]
    where: dict[str, Globs] = {}
    name: str = Field(default="", max_length=200)
    labels: tuple[str, ...] = ()
    unit: str = Field(default="", max_length=100)
    kind: str = Field(default="", max_length=100)
    direction: Literal["", "up", "down", "none"] = ""
    over_hosts: OverHosts = "mean"
    quantiles: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = (0.5, 0.9, 0.99)
    errors: dict[str, Globs] = {}
    setup: bool = False

    def takes(self, name: str) -> bool:
        """Return whether the rule applies to a metric."""
        return any(fnmatch.fnmatchcase(name, glob) for glob in self.take)

    def named(self, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
        """Return a metric's name in messages, and the values of the labels that are kept, in braces."""
        values = [labels[label] for label in self.labels if labels.get(label)]
        return self.name or name.removesuffix("_total"), f"{{{' '.join(values)}}}" if values else ""

    def is_wanted(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series has the labels that ``where`` requires."""
        return all(_matches(labels.get(label, ""), globs) for label, globs in self.where.items())

    def is_error(self, labels: Mapping[str, str]) -> bool | None:
        """Return whether a series counts errors; None if it has no label that would show it."""
        matches = [_matches(labels[label], globs) for label, globs in self.errors.items() if label in labels]
        return any(matches) if matches else None


class MetricMap(StrictModel):
    """Settings for turning metrics of other systems into messages."""

    metrics: tuple[MetricRule, ...] = ()
    defaults: bool = True
    service: Annotated[Globs, Field(min_length=1)] = SERVICE_LABELS
    interval: Annotated[Duration, Field(ge=1, le=3600)] = 30.0
    wait: Annotated[Duration, Field(ge=0, le=3600)] = 75.0
    series_per_service: int = Field(default=200, ge=1, le=10_000)
    services: int = Field(default=1000, ge=1, le=100_000)
    readings: int = Field(default=500_000, ge=1000, le=10_000_000)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.defaults and not self.metrics:
            raise ValueError("takes nothing: give metrics, or leave out defaults: false")
        if not math.isclose(self.interval, round(self.interval)):
            raise ValueError("interval: should be of whole seconds")
        return self

    @property
    def rules(self) -> tuple[MetricRule, ...]:
        """The rules in order; the first one that takes a metric counts."""
        return (*self.metrics, *(_DEFAULT_RULES if self.defaults else ()))

    def service_of(self, labels: Mapping[str, str]) -> str:
        """Return the service of a series; empty if no label says one that can be a name.

        From ``namespace/name``, as OpenTelemetry spells a job's name, the name is taken.
        """
        value = next((labels[label] for label in self.service if labels.get(label)), "")
        name = value.rpartition("/")[2]
        return name if _SERVICE.fullmatch(name) else ""


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """The service and metric that a series belongs to."""

    rule: MetricRule
    service: str
    name: str
    values: str
    is_error: bool | None


class Targets:
    """Finds the targets of series; each name is matched with the rules once."""

    def __init__(self, metric_map: MetricMap) -> None:
        self._map = metric_map
        self._rules = metric_map.rules
        self._known: dict[str, tuple[MetricRule, ...]] = {}

    def is_taken(self, name: str) -> bool:
        """Return whether any rule applies to a metric."""
        return bool(self._of(name))

    def find(self, name: str, labels: Labels) -> MetricTarget | None:
        """Return the target of a series, None if the series is not wanted.

        The target has no service if the labels name none.
        """
        own = dict(labels)
        for rule in self._of(name):
            if rule.is_wanted(own):
                metric, values = rule.named(name, own)
                return MetricTarget(rule, self._map.service_of(own), metric, values, rule.is_error(own))
        return None

    def _of(self, name: str) -> tuple[MetricRule, ...]:
        if name not in self._known:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[name] = tuple(rule for rule in self._rules if rule.takes(name))
        return self._known[name]


def load_metric_map(path: Path | None) -> MetricMap:
    """Read a map of metrics; without a file, the one of the defaults.

    Raises:
        ConfigError: the file and the key that is wrong.
    """
    return MetricMap() if path is None else validate(MetricMap, read_yaml(path) or {}, str(path))


def _matches(value: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(value, glob) for glob in globs)


_DEFAULT_RULES = tuple(MetricRule.model_validate(rule) for rule in DEFAULTS)
