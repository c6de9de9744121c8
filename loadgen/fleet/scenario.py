"""Scenario files: what to simulate. docs/examples/scenario.yaml explains every key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from loadgen.fleet.hosts_spec import HostsSpec, RolloutSpec, Share, ShiftSpec
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.settings.config import Seconds

PRESETS = Path(__file__).with_name("presets")

ServiceName = Annotated[str, Field(min_length=1, max_length=200)]

MOST_WINDOWS = 100_000
MOST_SAMPLES = 5e8
"""Counts of a window are kept in 32 bits, with room for spikes."""

InjectionKind = Literal[
    "step",
    "gradual",
    "scoped",
    "cascade",
    "improvement",
    "transient",
    "spike_then_step",
    "seasonal",
    "cost_shift",
    "new_feature",
    "service_metric",
    "refactoring",
    "cron",
    "library",
    "experiment",
    "hit_ratio",
]

Language = Literal["python", "go", "java", "cpp", "rust", "javascript", "php"]

TYPES: Mapping[str, tuple[str, ...]] = {
    "scoped": ("endpoint", "metadata"),
    "transient": (
        "server_failure",
        "maintenance",
        "load_spike",
        "rolling_update",
        "canary",
        "traffic_shift",
    ),
    "seasonal": ("daily", "weekly"),
    "cost_shift": ("move", "rename", "inline", "split", "extract", "class_refactor"),
    "service_metric": ("throughput", "latency", "errors"),
    "refactoring": ("modules", "package", "wrapper", "middleware", "runtime", "restless"),
    "cron": ("daily", "weekly"),
    "library": ("modified", "upgraded"),
    "experiment": ("hosts", "requests"),
}
"""Types that the injections of a group may take in turn; all of them unless it says so."""

DELTAS: Mapping[str, tuple[float, float]] = {
    "step": (0.00005, 0.04),  # FBDetect §1: regressions down to 0.005 %; the upper end
    "gradual": (0.0005, 0.02),
    "scoped": (0.0002, 0.02),
    "cascade": (0.0005, 0.02),
    "improvement": (0.0001, 0.02),
    "transient": (0.0005, 0.04),
    "spike_then_step": (0.0005, 0.01),
    "seasonal": (0.002, 0.02),
    "cost_shift": (0.0001, 0.02),
    "new_feature": (0.002, 0.03),
    "service_metric": (0.05, 0.3),
    "hit_ratio": (0.002, 0.02),
    "refactoring": (0.1, 1.0),
    "cron": (0.01, 0.1),
    "library": (0.3, 0.9),
    "experiment": (0.002, 0.02),
}
"""The sizes of each kind, as gCPU ratio; for service_metric relative to the metric, for library to what it
costs, for refactoring the share of the names, or of the endpoints, that it touches, for experiment on the
hosts or requests that have the variant."""

DURATIONS: Mapping[str, tuple[float, float]] = {
    "gradual": (2 * 86_400.0, 6 * 86_400.0),
    "transient": (30.0, 12 * 3600.0),  # FBDetect §1: seconds to hours
    "spike_then_step": (3600.0, 4 * 3600.0),
    "cron": (1800.0, 5400.0),
    "experiment": (86_400.0, 3 * 86_400.0),
}
"""How long a rise, a transient, a spike, a run of a job or an experiment lasts, in seconds."""

CAUSED = ("step", "gradual", "scoped", "cascade", "spike_then_step", "service_metric")
"""Kinds that may lack a root cause, or have one of configuration."""


def _moment(value: object) -> float:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, str):
        try:
            return from_iso(value)
        except InvalidMessage as error:
            raise ValueError(str(error)) from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError("should be an ISO 8601 time or seconds since the epoch")


class GraphSpec(StrictModel):
    """The service's code: who calls whom, and how cost is spread over it."""

    subroutines: int = Field(default=300, ge=20, le=50_000)
    endpoints: int = Field(default=12, ge=2, le=500)
    profile: str | None = None  # a profile file whose stacks are the call tree, instead of a drawn one
    language: Language = "python"  # how names of a drawn graph are spelt
    annotated: bool = True  # whether stacks show their endpoint
    shared: Share = 0.15  # subroutines of libraries, called from many others
    metadata: Share = 0.3  # endpoints whose requests have a metadata value
    recursive: Share = 0.02
    spread: float = Field(default=1.6, gt=0, le=6)  # of the logarithm of costs; unused with median_gcpu
    median_gcpu: float | None = Field(default=None, gt=0, lt=0.1)
    floor_gcpu: float = Field(default=0.00001, ge=0, lt=0.01)  # §5.1: non-trivial from 0.001 % on

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.endpoints * 4 > self.subroutines:
            raise ValueError("subroutines: should be at least four for every endpoint")
        return self


class GenerationSpec(StrictModel):
    """Servers of one kind."""

    share: float = Field(gt=0, le=1)
    cpu: float = Field(gt=0, le=1)  # mean utilisation
    variance: float = Field(ge=0, le=1)  # of one server's utilisation in one window
    regression: float = Field(default=1.0, gt=0)  # how large a regression is here, in CPU, to the mean


PAPER_GENERATIONS = (
    GenerationSpec(share=0.5, cpu=0.4, variance=0.01, regression=0.6),
    GenerationSpec(share=0.5, cpu=0.6, variance=0.02, regression=1.4),
)
"""FBDetect §5.1: servers at 40 % and at 60 %, halves; regressions of 0.003 % on one, 0.007 % on the other."""


class ServersSpec(StrictModel):
    """The machines and what is missing of them."""

    count: int = Field(default=5000, ge=1, le=10_000_000)
    generations: tuple[GenerationSpec, ...] = Field(default=PAPER_GENERATIONS, min_length=1)
    cost_spread: float = Field(default=0.02, ge=0, le=1)  # how differently generations run the same stack
    missing: Share = 0.01  # servers that report nothing, on average
    missing_windows: int = Field(default=0, ge=0)  # windows in which nothing at all arrived

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = sum(generation.share for generation in self.generations)
        if abs(total - 1) > 1e-6:
            raise ValueError(f"generations: shares should add up to 1, not {total:g}")
        return self


class PeriodSpec(StrictModel):
    """A span with another load than usual: a gap, a holiday, a sale."""

    at: Share  # where it starts, as a share of the whole span
    length_s: Seconds = Field(alias="length", gt=0)
    level: float = Field(default=0.0, ge=0, le=100)  # times the usual load; 0 is a gap without data
    mix: float = Field(default=0.0, ge=0, le=3)  # sd of the logarithm of each endpoint's factor


class LoadSpec(StrictModel):
    """Cycles of load, and of the mix of endpoints."""

    daily: Share = 0.3
    weekly: Share = 0.1  # how much lower the load is at weekends
    mix_daily: Share = 0.03
    mix_weekly: Share = 0.02
    hours: tuple[float, float] = (0.0, 24.0)  # of the day, UTC, in which the service runs
    every: int = Field(default=1, ge=1, le=1000)  # data in one window of so many
    clock_change: Share | None = None  # from this share of the span on, days begin an hour earlier
    periods: tuple[PeriodSpec, ...] = ()
    shifts: tuple[ShiftSpec, ...] = ()  # of traffic between endpoints
    requests: float = Field(
        default=0.0, ge=0
    )  # that an endpoint gets in a minute, on average; 0: no access log

    @model_validator(mode="after")
    def _runs(self) -> Self:
        if not 0 <= self.hours[0] < self.hours[1] <= 24:
            raise ValueError("hours: should be [from, to] within 0 and 24")
        return self


class NoiseSpec(StrictModel):
    """Noise besides that of sampling."""

    dispersion: float = Field(default=1.0, ge=0)  # times the over-dispersion that servers' variance implies
    drift: float = Field(default=0.005, ge=0, le=1)  # slow wandering of a stack's cost, relative
    mix_drift: float = Field(default=0.005, ge=0, le=1)  # the same of an endpoint's traffic
    correlation_s: Seconds = Field(default=7200.0, alias="correlation", gt=0)


class LateSpec(StrictModel):
    """Data that arrives late."""

    share: Share = 0.0
    delay_s: Seconds = Field(default=1800.0, alias="delay", gt=0)


class ChangesSpec(StrictModel):
    """The stream of deployed changes."""

    count: int = Field(default=500, ge=0, le=100_000)
    release_every_s: Seconds = Field(default=10_800.0, alias="release_every", gt=0)  # §5.5.2: three hours
    config: Share = 0.2  # share of configuration changes
    elsewhere: Share = 0.0  # share of root causes that modify a caller of what gets slower, not itself


class InjectionSpec(StrictModel):
    """One group of injections of the same kind."""

    kind: InjectionKind
    name: str = Field(default="", max_length=100)  # the kind, unless given; seeds the group's draws
    count: int = Field(default=1, ge=0, le=10_000)
    delta: tuple[float, float] | None = None
    between: tuple[Share, Share] = (0.2, 0.9)  # where they start, as shares of the whole span
    duration_s: tuple[Seconds, Seconds] | None = Field(default=None, alias="duration")
    types: tuple[str, ...] = ()
    no_culprit: Share = 0.1  # share without a change that caused it
    config: Share = 0.2  # share whose cause is a gate that a configuration change flips
    rollout: RolloutSpec | None = None  # how its release reaches the hosts; all of them at once unless given
    only: dict[str, str] = {}  # labels of the hosts that it befalls; all of them unless given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key, allowed in (("types", TYPES), ("duration_s", DURATIONS)):
            if key in self.model_fields_set and self.kind not in allowed:
                raise ValueError(f"{key.removesuffix('_s')}: means nothing for kind {self.kind}")
        for key in ("no_culprit", "config"):
            if key in self.model_fields_set and self.kind not in CAUSED:
                raise ValueError(f"{key}: means nothing for kind {self.kind}")
        for key in ("rollout", "only"):
            if getattr(self, key) and self.kind != "step":
                raise ValueError(f"{key}: means nothing for kind {self.kind}")
        if self.rollout and self.only:
            raise ValueError("only: a rollout reaches all hosts")
        for chosen in self.types:
            if chosen not in TYPES[self.kind]:
                raise ValueError(f"types: {chosen!r} is none of {', '.join(TYPES[self.kind])}")
        for key in ("delta", "between", "duration_s"):
            low, high = getattr(self, key) or (1.0, 1.0)
            if low > high or (low <= 0 and key != "between"):
                raise ValueError(f"{key.removesuffix('_s')}: should be [low, high] with low above 0")
        if self.delta and self.delta[1] >= 1 and (self.kind != "refactoring" or self.delta[1] > 1):
            raise ValueError("delta: should be below 1, the whole service")
        return self

    @property
    def key(self) -> str:
        """The name that seeds this group's draws and begins its ids."""
        return self.name or self.kind

    @property
    def sizes(self) -> tuple[float, float]:
        """Smallest and largest delta."""
        return self.delta or DELTAS[self.kind]

    @property
    def lengths_s(self) -> tuple[float, float]:
        """Shortest and longest duration."""
        return self.duration_s or DURATIONS[self.kind]

    def type_of(self, ordinal: int) -> str:
        """Return the type of the group's injection ``ordinal``: they take turns."""
        types = self.types or TYPES[self.kind]
        return types[ordinal % len(types)]


class Scenario(StrictModel):
    """Everything about one simulation but its seed."""

    name: str = Field(min_length=1, max_length=100)
    service: ServiceName = "shop"
    siblings: tuple[ServiceName, ...] = ()  # further services, which have the same libraries
    start: Annotated[float, BeforeValidator(_moment)] = 1_767_571_200.0  # Monday, 5 January 2026
    duration_s: Seconds = Field(default=14 * 86_400.0, alias="duration", gt=0)
    window_s: Seconds = Field(default=600.0, alias="window", gt=0)
    stack_window_s: Seconds = Field(default=3600.0, alias="stack_window", gt=0)
    samples_per_minute: float = Field(default=1.0, gt=0)  # of a server at the mean utilisation; §5.2
    graph: GraphSpec = GraphSpec()
    servers: ServersSpec = ServersSpec()
    load: LoadSpec = LoadSpec()
    noise: NoiseSpec = NoiseSpec()
    late: LateSpec = LateSpec()
    hosts: HostsSpec | None = None  # none are kept apart unless given
    changes: ChangesSpec = ChangesSpec()
    inject: tuple[InjectionSpec, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.duration_s % self.stack_window_s or self.stack_window_s % self.window_s:
            raise ValueError("duration: should be whole stack windows, and a stack window whole windows")
        if len({self.service, *self.siblings}) <= len(self.siblings):
            raise ValueError("siblings: each service should be named once")
        if self.start % self.stack_window_s:
            raise ValueError("start: should be a multiple of the stack window")
        if not EARLIEST_S <= self.start < self.start + self.duration_s < LATEST_S:
            raise ValueError("start: should lie between 2000 and 2100, and the end too")
        if self.windows > MOST_WINDOWS:
            raise ValueError(f"duration: {self.windows} windows are more than {MOST_WINDOWS}")
        samples = self.servers.count * self.samples_per_minute * self.window_s / 60
        if samples > MOST_SAMPLES:
            raise ValueError(f"servers: {samples:.3g} samples in a window are more than {MOST_SAMPLES:.0e}")
        self._check_hosts()
        keys = [group.key for group in self.inject]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"inject: two groups are called {key!r}; give one a name")
        return self

    def _check_hosts(self) -> None:
        staged = [group for group in self.inject if group.rollout or group.kind == "experiment"]
        if self.hosts is None and (staged or any(group.only for group in self.inject)):
            raise ValueError("hosts: rollouts, experiments and what befalls some hosts only need them")
        if len(staged) > 1:
            raise ValueError("inject: only one group can have a rollout or be an experiment")
        if self.hosts and (self.siblings or self.late.share):
            raise ValueError("hosts: go with neither siblings nor late.share; give hosts.late")
        for clock in self.hosts.clocks if self.hosts else ():
            if clock.offset_s % self.window_s:
                raise ValueError(f"hosts: clocks: offset should be whole windows of {self.window_s:g} s")
        for group in self.inject:
            if group.rollout and group.rollout.by == "region" and not (self.hosts and self.hosts.regions):
                raise ValueError("inject: rollout: by region needs hosts.regions")
            for label, value in group.only.items():
                values = {"region": self.hosts.regions, "machine": self.hosts.machines} if self.hosts else {}
                if value not in values.get(label, {}):
                    raise ValueError(f"inject: only: no host has {label} {value!r}")

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return round(self.duration_s / self.window_s)

    def of_each_service(self) -> tuple[Scenario, ...]:
        """Return the scenario of every service: this one, and the same of its siblings."""
        services = (self.service, *self.siblings)
        return tuple(
            self.model_copy(update={"service": name, "siblings": tuple(s for s in services if s != name)})
            for name in services
        )


def preset_names() -> tuple[str, ...]:
    """Return the names of the scenarios that come with the package."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yaml")))


def load_scenario(named: str) -> Scenario:
    """Read a scenario from a preset's name or a file.

    Raises:
        ConfigError: there is none, or ``file:line: key: what is wrong`` for the first mistake.
    """
    path = PRESETS / f"{named}.yaml" if named in preset_names() else Path(named)
    if not path.exists():
        raise ConfigError(f"no scenario {named!r}: neither a file nor one of {', '.join(preset_names())}")
    raw = read_yaml(path)
    try:
        return Scenario.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        line = _line_of(path, error.errors(include_url=False)[0]["loc"])
    return validate(Scenario, raw, f"{path}:{line}")


def _line_of(path: Path, location: tuple[int | str, ...]) -> int:
    """Return the line of the last key of ``location`` that the file has."""
    node: Any = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    line = 1
    for step in location:
        entry: Any = None
        if isinstance(node, yaml.MappingNode):
            entry = next((pair for pair in node.value if pair[0].value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            entry = (node.value[step], node.value[step])
        if entry is None:
            break
        line = entry[0].start_mark.line + 1
        node = entry[1]
    return int(line)
