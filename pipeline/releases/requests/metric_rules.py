"""Metrics that requests add up to: chosen by unit and kind, or by name where these are not conclusive.

CPU and I/O are spent by requests, so that a period uses what its requests cost. A level such as memory in use
does not add up: a period holds memory that requests of hours took, and a restart frees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field, model_validator

from pipeline.files.validation import StrictModel
from pipeline.model import MetricMetadata

_Globs = Annotated[tuple[str, ...] | None, Field(min_length=1)]


class MetricRule(StrictModel):
    """Metrics whose unit, kind and name match one glob of each list that is given.

    An empty glob is for metrics that say nothing. Upper and lower case of names and kinds are the same.
    """

    unit: _Globs = None
    kind: _Globs = None
    name: _Globs = None

    @model_validator(mode="after")
    def _says_something(self) -> MetricRule:
        if self.unit is self.kind is self.name is None:
            raise ValueError("give at least one of unit, kind, name")
        return self

    def takes(self, name: str, metadata: MetricMetadata) -> bool:
        """Return whether the rule selects a metric, by its name and metadata."""
        return (
            _matches(self.unit, metadata.unit)
            and _matches(_lower(self.kind), metadata.plain_kind)
            and _matches(_lower(self.name), name.lower())
        )


CPU_AND_IO: tuple[MetricRule, ...] = (
    MetricRule(unit=("{cpu}", "{core}", "{cores}", "s/s", "ms/s", "us/s", "ns/s")),
    MetricRule(unit=("By/s", "?By/s", "?iBy/s", "{operation}/s", "{operations}/s", "{read}/s", "{write}/s")),
    # Units of shares and times do not show what is measured: only the name does.
    MetricRule(kind=("usage", "utilization", "cost", ""), name=("*cpu*",)),
)
"""The metrics of a service without rules of its own."""


@dataclass(frozen=True, slots=True)
class ReleaseMetrics:
    """Rules that select the metrics by which the releases of each service are compared."""

    default: tuple[MetricRule, ...] = CPU_AND_IO
    services: Mapping[str, tuple[MetricRule, ...]] = field(default_factory=dict)

    def takes(self, service: str, name: str, metadata: MetricMetadata, worse: str | None = None) -> bool:
        """Return whether a metric is compared: a rule takes it, and a rise of it may be a regression.

        Args:
            service: Whose metric.
            name: Of the metric.
            metadata: What is said of it.
            worse: In which direction it gets worse by that; None where it does not say.
        """
        rules = self.services.get(service, self.default)
        return worse in (None, "up") and any(rule.takes(name, metadata) for rule in rules)


def _matches(globs: tuple[str, ...] | None, text: str) -> bool:
    return globs is None or any(fnmatchcase(text, glob) for glob in globs)


def _lower(globs: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if globs is None else tuple(glob.lower() for glob in globs)
