"""The load that faults strike: a simulated service's messages, and what must come of them, to the unit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import yaml

from loadgen.fleet.publish import messages
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.run import run_backtest
from pipeline.codec.inputs import decode_profile, encode_profile
from pipeline.frames import frame_elements, series_of
from pipeline.model import Outgoing, Profile, SeriesKey
from pipeline.workloads import Workload

WINDOW_S = 300.0
STACK_WINDOW_S = 600.0
LATE_S = 600.0

WORKLOAD: Mapping[str, Any] = {
    **{"name": "faults", "resolution": "5m", "rerun_interval": "30m", "historical": "6h", "analysis": "1h"},
    **{"extended": "30m", "threshold": {"absolute": 0.01}, "lateness": "15m"},
}
"""Scans often, and waits for late data longer than anything here is late: so its events are determined."""

START = 1_767_571_200.0  # Monday, 5 January 2026


@dataclass(frozen=True)
class Shape:
    """How large a load is, and what its agents do wrong."""

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
    steps_from: float = 0.5
    """Share of the span before which no regression begins."""
    start: float = START
    past_s: float = 0.0
    """How long before the start changes were deployed, as often as afterwards; they come first."""


@dataclass(frozen=True)
class Truth:
    """What the store and the topic of events must hold in the end."""

    dataset: Dataset
    events: tuple[Mapping[str, Any], ...]

    @property
    def samples(self) -> int:
        """All samples sent."""
        return int(self.dataset.totals.sum())


@dataclass(frozen=True)
class Load:
    """Messages in the order in which they are sent, by windows, with the truth."""

    shape: Shape
    seed: int
    batches: tuple[tuple[Outgoing, ...], ...]
    truth: Truth

    @property
    def messages(self) -> int:
        """How many messages there are."""
        return sum(len(batch) for batch in self.batches)


def workloads() -> tuple[Workload, ...]:
    """Return what the load is scanned by."""
    return (Workload.model_validate(dict(WORKLOAD)),)


def workload_file() -> str:
    """Return the same as the text of a workload file."""
    return yaml.safe_dump(dict(WORKLOAD))


def build_load(shape: Shape, seed: int, service: str = "faulty") -> Load:
    """Draw a load. The same shape and seed give the same messages and the same truth.

    The counts are added up from the messages that are sent, by other code than the one under test; the
    events are those of a backtest of these counts.
    """
    scenario = _scenario(shape, service)
    fleet = simulate(scenario, seed)
    fleet = replace(fleet, dataset=_with_past(fleet.dataset, shape.past_s))
    rng = np.random.default_rng(seed)
    batches: list[tuple[Outgoing, ...]] = []
    profiles: list[Profile] = []
    again: list[Outgoing] = []
    for batch in messages(fleet, scenario, seed):
        sent, again = again, []
        for message in batch:
            if message.topic != "profiles":
                sent.append(message)
                continue
            profile = replace(_skewed(decode_profile(message.value), shape), id=f"{seed}-{len(profiles)}")
            profiles.append(profile)
            message = replace(message, value=encode_profile(profile))
            sent.append(message)
            if rng.random() < shape.repeated:
                (sent if rng.random() < 0.5 else again).append(message)  # at once, or with the next window
        batches.append(tuple(sent))
    batches[-1] += tuple(again)
    dataset = _recount(fleet.dataset, profiles)
    found = run_backtest(dataset, workloads())
    return Load(shape, seed, tuple(batches), Truth(dataset, tuple(found.events)))


def _scenario(shape: Shape, service: str) -> Scenario:
    duration_s = -(-shape.windows * WINDOW_S // STACK_WINDOW_S) * STACK_WINDOW_S
    steps = max(2, shape.windows // 50)
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
    """Add what was deployed before the start: the same changes as afterwards, under other ids."""
    span_s = dataset.end - dataset.start
    past = [
        replace(change, id=f"{change.id}-{again}", time=change.time - again * span_s)
        for again in range(1, 1 + math.ceil(past_s / span_s))
        for change in dataset.changes
        if change.time - again * span_s >= dataset.start - past_s
    ]
    past.sort(key=lambda change: (change.time, change.id))
    return replace(dataset, changes=(*past, *dataset.changes))


def _skewed(profile: Profile, shape: Shape) -> Profile:
    if not shape.skewed:
        return profile
    by = shape.skewed[int(profile.host.rpartition("-")[2]) % len(shape.skewed)]
    return replace(profile, start=profile.start + by, end=profile.end + by)


@dataclass
class _Tally:
    """Counts by window: in all, by series, by stack."""

    totals: Counter[int] = field(default_factory=Counter)
    series: Counter[tuple[SeriesKey, int]] = field(default_factory=Counter)
    stacks: Counter[tuple[tuple[str, ...], int]] = field(default_factory=Counter)

    def add(self, profile: Profile, start: float) -> None:
        """Count a profile, whole, in the windows that hold the middle of its interval."""
        middle = (profile.start + profile.end) / 2 - start
        window, stack_window = int(middle // WINDOW_S), int(middle // STACK_WINDOW_S)
        elements = frame_elements(profile.frames, profile.annotations)
        for (first, last), count in zip(
            pairwise(profile.stack_starts.tolist()), profile.counts.tolist(), strict=True
        ):
            stack = tuple(e for frame in profile.stack_frames[first:last].tolist() for e in elements[frame])
            self.totals[window] += count
            self.stacks[stack, stack_window] += count
            for label in set(stack):
                self.series[series_of(label), window] += count


def _recount(simulated: Dataset, profiles: Sequence[Profile]) -> Dataset:
    """Replace a data set's counts by those of profiles: clocks may have moved them to other windows."""
    tally = _Tally()
    start = simulated.start - STACK_WINDOW_S  # clocks may be behind
    for profile in profiles:
        tally.add(profile, start)
    windows = max(tally.totals) + 1
    windows += windows % 2
    end = start + windows * WINDOW_S
    rows = sorted({key for key, _ in tally.series})
    stacks = sorted({stack for stack, _ in tally.stacks})
    row_of = {row: position for position, row in enumerate(rows)}
    column_of = {stack: position for position, stack in enumerate(stacks)}
    samples, totals = np.zeros((len(rows), windows)), np.zeros(windows)
    stack_samples = np.zeros((len(stacks), windows // 2))
    for (key, window), count in tally.series.items():
        samples[row_of[key], window] = count
    for window, count in tally.totals.items():
        totals[window] = count
    for (stack, window), count in tally.stacks.items():
        stack_samples[column_of[stack], window] = count
    return replace(
        simulated,
        start=start,
        end=end,
        kinds=tuple(kind for kind, _ in rows),
        names=tuple(name for _, name in rows),
        samples=samples,
        totals=totals,
        stacks=tuple(stacks),
        stack_samples=stack_samples,
    )
