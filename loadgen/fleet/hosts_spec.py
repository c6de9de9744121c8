"""Scenario keys of hosts, releases and rollouts: who sends samples, and who runs what when."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.files.validation import StrictModel
from pipeline.settings.config import Seconds

Share = Annotated[float, Field(ge=0, le=1)]
Label = Annotated[str, Field(min_length=1, max_length=100)]

MOST_HOSTS = 64
"""Hosts that are kept apart."""

Style = Literal["staged", "canary", "blue_green", "rolling"]
Reach = Literal["host", "region", "percent"]


class RateSpec(StrictModel):
    """Hosts that take more samples, or fewer, from a moment on."""

    share: float = Field(gt=0, le=1)  # of the hosts, at least one
    factor: float = Field(gt=0, le=1000)
    at: Share = 0.0  # of the whole span
    over_s: Seconds = Field(default=0.0, alias="over", ge=0)  # host by host within this time


class DrainSpec(StrictModel):
    """A region whose load leaves for a while."""

    region: Label
    at: Share
    length_s: Seconds = Field(alias="length", gt=0)
    ramp_s: Seconds = Field(default=1200.0, alias="ramp", ge=0)
    taken: bool = True  # whether the other regions take the load


class ArrivalSpec(StrictModel):
    """A machine type that replaces others, host by host."""

    machine: Label
    share: float = Field(gt=0, le=1)  # of the hosts
    at: Share
    over_s: Seconds = Field(alias="over", ge=0)


class ClockSpec(StrictModel):
    """Hosts whose clocks are off: by how much their timestamps are too late, or too early below 0."""

    share: float = Field(gt=0, le=1)  # of the hosts, at least one
    offset_s: float = Field(alias="offset")


class HabitSpec(StrictModel):
    """Hosts whose profiles always come late."""

    share: float = Field(gt=0, le=1)  # of the hosts, at least one
    delay_s: Seconds = Field(alias="delay", gt=0)


class ShiftSpec(StrictModel):
    """Requests that move from one endpoint to another."""

    at: Share
    share: float = Field(gt=0, le=1)  # of the traffic of the endpoint that they leave
    length_s: Seconds | None = Field(default=None, alias="length", gt=0)  # for good unless given
    over_s: Seconds = Field(default=3600.0, alias="over", ge=0)


class HostsSpec(StrictModel):
    """Hosts that report by name, where they are, and how differently they run the same code."""

    count: int = Field(default=20, ge=1, le=MOST_HOSTS)
    named: bool = True  # whether profiles say which host they are of
    regions: dict[Label, float] = {}  # shares of the hosts
    machines: dict[Label, float] = {}  # shares of the hosts
    machine_spread: float = Field(default=0.05, ge=0, le=1)  # sd of the logarithm of each stack's cost
    region_spread: float = Field(default=0.0, ge=0, le=1)
    region_mix: float = Field(default=0.2, ge=0, le=3)  # sd of the logarithm of each endpoint's traffic
    host_mix: float = Field(default=0.0, ge=0, le=3)
    region_daily: Share = 0.0  # amplitude of a region's share of the load, with a phase of its own
    pods: bool = False  # names change with every release and restart
    churn: float = Field(default=0.0, ge=0, le=48)  # restarts of a pod a day, at random
    least_hosts: float = Field(default=1.0, gt=0, le=1)  # share of hosts that run when the load is lowest
    rate_hz: float | None = Field(default=None, gt=0, le=1e6)  # that profiles state; none unless given
    rates: tuple[RateSpec, ...] = ()
    drains: tuple[DrainSpec, ...] = ()
    arrivals: tuple[ArrivalSpec, ...] = ()
    clocks: tuple[ClockSpec, ...] = ()
    late: HabitSpec | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for key in ("regions", "machines"):
            shares = getattr(self, key)
            if shares and (abs(sum(shares.values()) - 1) > 1e-6 or min(shares.values()) <= 0):
                raise ValueError(f"{key}: shares should be above 0 and add up to 1")
        for drain in self.drains:
            if drain.region not in self.regions:
                raise ValueError(f"drains: {drain.region!r} is none of the regions")
            if drain.taken and len(self.regions) == 1:
                raise ValueError(
                    f"drains: no other region takes the load of {drain.region!r}; say taken: false"
                )
        if (self.churn or self.least_hosts < 1) and not self.pods:
            raise ValueError("pods: hosts that come and go should be pods")
        return self


class RolloutSpec(StrictModel):
    """How a release reaches the hosts."""

    style: Style = "staged"
    by: Reach = "host"
    stages: tuple[float, ...] = (0.05, 0.25, 0.5, 1.0)  # shares of the hosts, or of the requests
    length_s: tuple[Seconds, Seconds] = Field(default=(8 * 3600.0, 12 * 3600.0), alias="length")
    aborted: Share = 0.0  # share of the rollouts that go back
    abort_after: int = Field(default=2, ge=1)  # stages; all of them: rolled back

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if not self.stages or list(self.stages) != sorted(set(self.stages)) or self.stages[0] <= 0:
            raise ValueError("stages: shares should rise from above 0")
        if self.stages[-1] != 1:
            raise ValueError("stages: the last share should be 1")
        if self.abort_after > len(self.stages) and self.aborted:
            raise ValueError(f"abort_after: there are {len(self.stages)} stages")
        if not 0 < self.length_s[0] <= self.length_s[1]:
            raise ValueError("length: should be [low, high] with low above 0")
        if self.by != "host" and self.style != "staged":
            raise ValueError(f"by: means nothing for style {self.style}")
        return self
