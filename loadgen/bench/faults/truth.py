"""Truth of a load: counts added up from its messages, and the events and rows of an undisturbed run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.backtest.run import plan_scans
from pipeline.counting.count import STRATUM_STACK_WINDOWS
from pipeline.messages.inputs import decode_change
from pipeline.messages.measurements import decode_metric_points, decode_profile
from pipeline.messages.records import columns_of
from pipeline.messages.scans import decode_scan, encode_progress, split_scan
from pipeline.model import MetricPoints, Outgoing, Profile, Progress, SeriesKey, Stratum
from pipeline.model.frames import frame_elements, series_of
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload
from pipeline.stages.factory import SCAN_STAGES
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery, RowTable, Table
from pipeline.storage.schema import EVER

WINDOW_S = 300.0
STACK_WINDOW_S = 600.0
SENDER_WINDOW_S = STRATUM_STACK_WINDOWS * STACK_WINDOW_S

PART_ITEMS = 2
"""Candidates, dropped ones included, in one message of a scan: so few that most scans with any are cut."""

ROW_TABLES: tuple[RowTable, ...] = (
    *("changes", "metric_metadata", "scans", "unjudged", "memory"),
    *("ledger", "regressions", "updates", "outcomes"),
)
"""Tables whose rows an undisturbed run determines."""


@dataclass(frozen=True)
class Truth:
    """Final contents of the store and of the topic of events for one service."""

    dataset: Dataset
    events: tuple[Mapping[str, Any], ...]
    rows: Mapping[RowTable, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Rows of ROW_TABLES."""
    parted: int = 0
    """Scans that come in parts where a part has at most PART_ITEMS."""
    certain_until: float = math.inf
    """The last end of a scan that is certain to run: later scans depend on clocks that are behind."""

    @property
    def samples(self) -> int:
        """All samples sent."""
        return int(self.dataset.totals.sum())


def undisturbed(counted: Counted, workloads: Sequence[Workload]) -> Truth:
    """Return the events and rows that all stages but aggregate derive from complete counts, in event time."""
    settings, dataset = Settings(), counted.dataset
    plan = plan_scans(dataset, workloads, idle_s=settings.partition_idle_s)
    store = ArrayStore(dataset)
    for table, rows in counted.senders.items():
        store.insert(table, columns_of(rows))
    flow = Flow(store, workloads, settings=settings, clock=lambda: dataset.end, stages=SCAN_STAGES[1:])
    for watermark, _ in plan.watermarks:
        progress = Progress(dataset.service, "profiles", 0, watermark, plan.earliest)
        flow.send("windows", [encode_progress(progress)])
    scans = [decode_scan(message.value) for message in flow.topics["change-points"]]
    return Truth(
        dataset,
        tuple(flow.events()),
        {table: store.rows(RowQuery(table, dataset.service, *EVER)) for table in ROW_TABLES},
        parted=sum(len(split_scan(scan, PART_ITEMS)) > 1 for scan in scans),
    )


def published_truth(drawn: Truth, published: Iterable[Outgoing], workloads: Sequence[Workload]) -> Truth:
    """Return the truth of those messages of a service that are on its topics: agents were killed."""
    profiles, changes = [], set()
    points: dict[str, list[MetricPoints]] = {}
    for message in published:
        if message.topic == "profiles":
            profiles.append(decode_profile(message.value))
        elif message.topic == "changes":
            changes.add(decode_change(message.value).id)
        elif message.topic == "metrics":
            part = decode_metric_points(message.value)
            points.setdefault(part.metric, []).append(part)
    before = drawn.dataset
    counted = recount(
        replace(
            before,
            changes=tuple(change for change in before.changes if change.id in changes),
            metrics=tuple(
                _joined(series, points[series.metric]) for series in before.metrics if series.metric in points
            ),
        ),
        profiles,
        before.start,
    )
    return undisturbed(counted, workloads)


def _joined(whole: MetricPoints, parts: Sequence[MetricPoints]) -> MetricPoints:
    timestamps, first = np.unique(np.concatenate([part.timestamps for part in parts]), return_index=True)
    values = np.concatenate([part.values for part in parts])[first]
    return replace(whole, timestamps=timestamps, values=values)


@dataclass(frozen=True)
class Counted:
    """Counts of one service, added up from its messages."""

    dataset: Dataset
    senders: Mapping[Table, Sequence[Mapping[str, Any]]]
    """Rows of the samples' senders."""


@dataclass
class _Tally:
    """Counts by window: in all, by series, by stack, by sender."""

    totals: Counter[int] = field(default_factory=Counter)
    senders: Counter[tuple[Stratum, float]] = field(default_factory=Counter)
    by_sender: Counter[tuple[Stratum, SeriesKey, float]] = field(default_factory=Counter)
    series: Counter[tuple[SeriesKey, int]] = field(default_factory=Counter)
    stacks: Counter[tuple[tuple[str, ...], int]] = field(default_factory=Counter)

    def add(self, profile: Profile, start: float) -> None:
        """Count a profile, whole, in the windows that hold the middle of its interval."""
        middle = (profile.start + profile.end) / 2 - start
        window, stack_window = int(middle // WINDOW_S), int(middle // STACK_WINDOW_S)
        sender, wide = profile.sender, (profile.start + profile.end) / 2 // SENDER_WINDOW_S * SENDER_WINDOW_S
        elements = frame_elements(profile.frames, profile.annotations)
        for (first, last), count in zip(
            pairwise(profile.stack_starts.tolist()), profile.counts.tolist(), strict=True
        ):
            stack = tuple(e for frame in profile.stack_frames[first:last].tolist() for e in elements[frame])
            self.totals[window] += count
            self.senders[sender, start + window * WINDOW_S] += count
            self.stacks[stack, stack_window] += count
            for label in set(stack):
                self.series[series_of(label), window] += count
                self.by_sender[sender, series_of(label), wide] += count

    def sender_rows(self, service: str) -> dict[Table, list[dict[str, Any]]]:
        """Return the senders of the samples in the form of the store's rows."""
        position = {"service": service, "stream": "", "topic": "profiles", "partition": 0, "last_offset": 0}
        first: dict[Stratum, float] = {}
        for (stratum, window), _ in self.senders.items():
            first[stratum] = min(window, first.get(stratum, window))
        return {
            "strata": [{**s.row, "service": service, "time": window} for s, window in first.items()],
            "strata_totals": [
                {**position, "stratum": stratum.id, "window": window, "samples": samples}
                for (stratum, window), samples in self.senders.items()
            ],
            "strata_gcpu": [
                {
                    **{**position, "stratum": stratum.id, "kind": key.kind, "subroutine": key.name},
                    **{"window": window, "width_s": SENDER_WINDOW_S, "samples": samples},
                }
                for (stratum, key, window), samples in self.by_sender.items()
            ],
        }


def recount(simulated: Dataset, profiles: Sequence[Profile], start: float) -> Counted:
    """Replace a data set's counts by those of profiles, from ``start`` on.

    Wrong clocks may have moved profiles to other windows, and profiles may have been lost with killed agents.
    """
    tally = _Tally()
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
    dataset = replace(
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
    return Counted(dataset, tally.sender_rows(simulated.service))
