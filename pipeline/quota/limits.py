"""How much a service may send before the rest is refused or folded, and the file that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from pipeline.errors import ConfigError
from pipeline.units import MINUTE_S
from pipeline.validation import StrictModel, read_yaml, validate

PERIOD_S = 5 * MINUTE_S
"""Span of event time over which messages and stacks are counted against a quota; names are over a day."""


class Quota(StrictModel):
    """What one service may bring to one partition; far more than any host's agents send."""

    names: int = Field(default=200_000, ge=0)  # new ones a day, beside as many known from the day before
    messages: int = Field(default=300_000, ge=0)  # in PERIOD_S of event time
    stacks: int = Field(default=30_000_000, ge=0)  # in the messages of PERIOD_S


class PartitionQuota(StrictModel):
    """What all services together may bring to one partition in a day."""

    services: int = Field(default=5_000, ge=0)
    names: int = Field(default=1_000_000, ge=0)  # new ones


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quota of every service."""

    default: Quota = Quota()
    services: Mapping[str, Quota] = field(default_factory=dict)
    partition: PartitionQuota = PartitionQuota()

    def of(self, service: str) -> Quota:
        """Return a service's quota."""
        return self.services.get(service, self.default)


class _File(StrictModel):
    default: Quota = Quota()
    services: dict[str, dict[str, Any]] = {}
    partition: PartitionQuota = PartitionQuota()


def read_quotas(path: Path) -> Quotas:
    """Read a quotas file; what a service leaves out is as in ``default``.

    Raises:
        ConfigError: it cannot be read, or the key that is wrong.
    """
    raw = read_yaml(path)
    file = validate(_File, {} if raw is None else raw, str(path))
    inherited = file.default.model_dump()
    services = {}
    for service, given in file.services.items():
        if not service:
            raise ConfigError(f"{path}: services: a service's name should not be empty")
        services[service] = validate(Quota, {**inherited, **given}, f"{path}: services.{service[:100]}")
    return Quotas(file.default, services, file.partition)
