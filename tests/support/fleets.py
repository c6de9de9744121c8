"""Small service over time: its messages as agents would send them, and the dataset of their counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.backtest.dataset import Dataset
from pipeline.counting.count import count_samples
from pipeline.messages.inputs import encode_change
from pipeline.messages.measurements import encode_metric_points, encode_profile
from pipeline.model import Change, MetricPoints, Profile
from pipeline.settings.workloads import Workload
from tests.support.builders import build_change, build_profile

START = 1_700_000_000.0
LIVE = Workload.model_validate(
    {
        **{"name": "live", "resolution": "1s", "rerun_interval": "5s", "historical": "30s"},
        **{"analysis": "15s", "extended": "5s", "threshold": {"absolute": 0.03}},
    }
)
"""Windows of seconds that are the same in every scan, as the preset's are not."""
THROUGHPUT = Workload.model_validate(
    {
        **{"name": "throughput", "series": "service", "direction": "down", "resolution": "1s"},
        **{"rerun_interval": "5s", "historical": "30s", "analysis": "15s", "extended": "5s"},
        "threshold": {"relative": 0.05},
    }
)

BASE = {
    "main;endpoint=/cart;cart.price": 0.10,
    "main;endpoint=/cart;cart.price;cart.tax": 0.10,
    "main;endpoint=/find;search.find": 0.20,
    "main;loop": 0.30,
    "main;pages.render": 0.30,
}
SLOWER = {**BASE, "main;endpoint=/cart;cart.price;cart.tax": 0.19}


@dataclass(frozen=True)
class Recording:
    """Stack samples of one service, second by second."""

    profiles: tuple[Profile, ...]
    points: tuple[MetricPoints, ...]
    changes: tuple[Change, ...]

    def messages(self) -> Iterator[tuple[str, list[bytes]]]:
        """Yield (topic, messages) of five seconds at a time, changes before what they do."""
        yield "changes", [encode_change(change) for change in self.changes]
        for first in range(0, len(self.profiles), 5):
            yield "profiles", [encode_profile(p) for p in self.profiles[first : first + 5]]
            if self.points:
                yield "metrics", [encode_metric_points(p) for p in self.points[first : first + 5]]


def record(
    service: str, mixes: Sequence[tuple[int, Mapping[str, float]]], *, metrics: bool = True, seed: int = 1
) -> Recording:
    """Draw a service whose mix of stacks changes; each mix lasts some seconds and begins with a change."""
    rng = np.random.default_rng(seed)
    profiles, points, changes = [], [], []
    second = 0
    for number, (seconds, mix) in enumerate(mixes):
        changes.append(build_change(f"c{number}", ["cart.tax"], time=START + second, service=service))
        share = np.array(list(mix.values()))
        for _ in range(seconds):
            counts = rng.multinomial(1000, share / share.sum())
            stacks = {stack: int(n) for stack, n in zip(mix, counts, strict=True)}
            profiles.append(build_profile(stacks, service=service, start=START + second))
            level = rng.normal(100.0 - 20 * (number % 2), 2)
            if metrics:
                at = np.array([START + second + 0.5])
                points.append(MetricPoints(service, "throughput", at, np.array([level])))
            second += 1
    return Recording(tuple(profiles), tuple(points), tuple(changes))


def as_dataset(recording: Recording) -> Dataset:
    """Return the counts of a recording by windows of a second."""
    profiles = recording.profiles
    counts = count_samples(profiles, [0] * len(profiles), window_s=1.0, stack_window_s=1.0)
    windows = len(profiles)
    position = (counts.cells.windows - START).astype(int)
    stack_position = (counts.stack_cells.windows - START).astype(int)
    samples, totals = np.zeros((len(counts.names), windows)), np.zeros(windows)
    samples[counts.series_index, position[counts.series_cell]] = counts.series_samples
    totals[position] = counts.total_samples
    stacks = np.zeros((len(counts.stacks), windows))
    stacks[counts.stack_index, stack_position[counts.stack_cell]] = counts.stack_samples
    dataset = Dataset(
        service=profiles[0].service,
        start=START,
        end=START + windows,
        window_s=1.0,
        stack_window_s=1.0,
        kinds=counts.kinds,
        names=counts.names,
        samples=samples,
        totals=totals,
        stacks=counts.stacks,
        stack_samples=stacks,
        metrics=(),
        changes=recording.changes,
    )
    if not recording.points:
        return dataset
    times = np.concatenate([points.timestamps for points in recording.points])
    values = np.concatenate([points.values for points in recording.points])
    return replace(dataset, metrics=(MetricPoints(dataset.service, "throughput", times, values),))
