"""Load that faults strike: messages of simulated services, and their exact truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import yaml

from loadgen.bench.faults.truth import STACK_WINDOW_S, WINDOW_S, Truth, published_truth, recount, undisturbed
from loadgen.fleet.publish import messages
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.messages.measurements import decode_profile, encode_profile
from pipeline.model import Outgoing, Profile
from pipeline.settings.workloads import Workload

LATE_S = 600.0

WORKLOAD: Mapping[str, Any] = {
    **{"name": "faults", "resolution": "5m", "rerun_interval": "30m", "historical": "6h", "analysis": "1h"},
    **{"extended": "30m", "threshold": {"absolute": 0.01}, "lateness": "15m"},
}
"""Scans often, and waits longer than any data here is late: so its events are determined."""

FLEET: Mapping[str, Mapping[str, Any]] = {
    "faulty": {},
    "faulty-wide": {"hosts": 4, "subroutines": 400, "samples_per_minute": 300.0, "steps": 8},
    "faulty-small": {"hosts": 2, "subroutines": 20},
}
"""The services of a load, and what differs from its shape: one has far more series, and most events."""

START = 1_767_571_200.0  # Monday, 5 January 2026


@dataclass(frozen=True)
class Shape:
    """Size of a load, and the faults of its agents."""

    windows: int = 200
    hosts: int = 12
    samples_per_minute: float = 40.0
    subroutines: int = 60
    late: float = 0.0
    """Share of the profiles that come LATE_S after their window."""
    skewed: tuple[float, ...] = ()
    """Seconds by which the clocks of hosts are ahead, in turn."""
    repeated: float = 0.0
    """Share of the profiles that an agent publishes twice."""
    steps: int | None = None
    """Number of subroutines that become slower; by default two, or one in 50 windows."""
    steps_from: float = 0.5
    """Share of the span before which no regression begins."""
    start: float = START
    past_s: float = 0.0
    """How long before the start changes were deployed, as often as afterwards; they come first."""


@dataclass(frozen=True)
class Load:
    """Messages in the order in which they are sent, by windows, with the truth of each service."""

    batches: tuple[tuple[Outgoing, ...], ...]
    truths: tuple[Truth, ...]
    odd: tuple[int, ...] = ()
    """Number of messages of each batch that are late, repeated or from a host whose clock is wrong."""

    @property
    def truth(self) -> Truth:
        """The truth of the only service."""
        (truth,) = self.truths
        return truth

    @property
    def messages(self) -> int:
        """Number of messages."""
        return sum(len(batch) for batch in self.batches)

    @property
    def samples(self) -> int:
        """All samples sent."""
        return sum(truth.samples for truth in self.truths)

    @property
    def events(self) -> int:
        """Number of events that an undisturbed run reports."""
        return sum(len(truth.events) for truth in self.truths)

    @property
    def parted(self) -> int:
        """Number of scans that come in parts."""
        return sum(truth.parted for truth in self.truths)

    def of_service(self, service: str) -> tuple[tuple[Outgoing, ...], ...]:
        """Return the messages of one service, by windows."""
        return tuple(tuple(m for m in batch if _service_of(m) == service) for batch in self.batches)

    def as_published(self, published: Callable[[Outgoing], bool]) -> Load:
        """Return the load with the truth of only those messages that are on their topics."""
        truths = []
        for truth in self.truths:
            sent = chain.from_iterable(self.of_service(truth.dataset.service))
            truths.append(published_truth(truth, filter(published, sent), workloads()))
        return replace(self, truths=tuple(truths))


def workloads() -> tuple[Workload, ...]:
    """Return the workloads that scan the load."""
    return (Workload.model_validate(dict(WORKLOAD)),)


def workload_file() -> str:
    """Return the workloads as the text of a workload file."""
    return yaml.safe_dump(dict(WORKLOAD))


def build_load(shape: Shape, seed: int, service: str = "faulty") -> Load:
    """Draw a load of one service. The same shape and seed give the same messages and the same truth.

    The counts are added up from the messages sent, by code other than that under test; the events are those
    of an undisturbed run over these counts.
    """
    scenario = _scenario(shape, service)
    fleet = simulate(scenario, seed)
    fleet = replace(fleet, dataset=_with_past(fleet.dataset, shape.past_s))
    rng = np.random.default_rng(seed)
    batches: list[tuple[Outgoing, ...]] = []
    odd: list[int] = []
    profiles: list[Profile] = []
    again: list[Outgoing] = []
    for number, batch in enumerate(messages(fleet, scenario, seed)):
        sent, again = again, []
        odd.append(len(sent))
        for message in batch:
            if message.topic != "profiles":
                sent.append(message)
                continue
            drawn = decode_profile(message.value)
            profile = replace(_skewed(drawn, shape), id=f"{seed}-{len(profiles)}")
            profiles.append(profile)
            message = replace(message, value=encode_profile(profile))
            sent.append(message)
            late = drawn.start < fleet.dataset.start + number * WINDOW_S
            twice = rng.random() < shape.repeated
            if twice:
                (sent if rng.random() < 0.5 else again).append(message)  # at once, or with the next window
            odd[-1] += late or twice or profile.start != drawn.start
        batches.append(tuple(sent))
    batches[-1] += tuple(again)
    counted = recount(fleet.dataset, profiles, fleet.dataset.start - STACK_WINDOW_S)  # clocks may be behind
    truth = undisturbed(counted, workloads())
    if shape.skewed:
        latest = {profile.host: profile.end for profile in profiles}
        truth = replace(truth, certain_until=min(latest.values()) - max(w.wait_s for w in workloads()))
    return Load(tuple(batches), (truth,), tuple(odd))


def build_fleet(shape: Shape, seed: int) -> Load:
    """Draw the load of all services of FLEET, window by window."""
    return together(
        [
            build_load(replace(shape, **differing), seed + number, service)
            for number, (service, differing) in enumerate(FLEET.items())
        ]
    )


def together(loads: Sequence[Load]) -> Load:
    """Return the loads of several services as one."""
    windows = zip_longest(*(load.batches for load in loads), fillvalue=())
    return Load(
        tuple(tuple(chain.from_iterable(parts)) for parts in windows),
        tuple(truth for load in loads for truth in load.truths),
        tuple(sum(parts) for parts in zip_longest(*(load.odd for load in loads), fillvalue=0)),
    )


def _service_of(message: Outgoing) -> str:
    return message.key.partition("/")[0]


def _scenario(shape: Shape, service: str) -> Scenario:
    duration_s = -(-shape.windows * WINDOW_S // STACK_WINDOW_S) * STACK_WINDOW_S
    steps = shape.steps or max(2, shape.windows // 50)
    return Scenario.model_validate(
        {
            **{"name": "faults", "service": service, "start": shape.start, "duration": duration_s},
            **{"window": WINDOW_S, "stack_window": STACK_WINDOW_S},
            "samples_per_minute": shape.samples_per_minute,
            "graph": {"subroutines": shape.subroutines, "endpoints": 4},
            "servers": {"count": shape.hosts, "missing": 0.0},
            "load": {"daily": 0.1, "weekly": 0.0, "mix_daily": 0.0, "mix_weekly": 0.0},
            "noise": {"drift": 0.001, "mix_drift": 0.001},
            "late": {"share": shape.late, "delay": LATE_S},
            "changes": {"count": max(10, shape.windows // 4), "release_every": "30m"},
            "inject": [
                {"kind": "step", "count": steps, "delta": [0.04, 0.1], "between": [shape.steps_from, 0.9]}
            ],
        }
    )


def _with_past(dataset: Dataset, past_s: float) -> Dataset:
    """Add changes deployed before the start: the same changes as afterwards, under other ids."""
    span_s = dataset.end - dataset.start
    earlier_changes = [
        replace(change, id=f"{change.id}-{again}", time=change.time - again * span_s)
        for again in range(1, 1 + math.ceil(past_s / span_s))
        for change in dataset.changes
        if change.time - again * span_s >= dataset.start - past_s
    ]
    earlier_changes.sort(key=lambda change: (change.time, change.id))
    return replace(dataset, changes=(*earlier_changes, *dataset.changes))


def _skewed(profile: Profile, shape: Shape) -> Profile:
    if not shape.skewed:
        return profile
    by = shape.skewed[int(profile.host.rpartition("-")[2]) % len(shape.skewed)]
    return replace(profile, start=profile.start + by, end=profile.end + by)
