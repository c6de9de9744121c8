"""Quotas: the amounts that a service may send before the rest is refused or folded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from pipeline.files.validation import StrictModel
from pipeline.model.units import MINUTE_S

PERIOD_S = 5 * MINUTE_S
"""Span of event time over which messages and stacks are counted against a quota; names are over a day."""

Usage = tuple[int, int]
"""Messages, and stacks in them."""


class Quota(StrictModel):
    """Quota of one service in one partition, far more than any host's agents send.

    Quotas of trials are for a service in all.
    """

    names: int = Field(default=200_000, ge=0)  # new ones a day, beside as many known from the day before
    messages: int = Field(default=300_000, ge=0)  # in PERIOD_S of event time
    stacks: int = Field(default=30_000_000, ge=0)  # in the messages of PERIOD_S
    hosts: int = Field(default=16, ge=0)  # counted separately in a day, beside as many from the day before
    strata: int = Field(default=100, ge=0)  # combinations of release and labels, in the same way
    trial_sides: int = Field(default=5_000, ge=0)  # messages of trials in a day of event time
    trial_points: int = Field(default=20_000_000, ge=0)  # points in them
    experiment_points: int = Field(default=2_000_000, ge=0)  # points of one experiment in all


class PartitionQuota(StrictModel):
    """Quota of all services together in one partition and day."""

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
