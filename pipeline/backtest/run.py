"""Backtests: the stages over a dataset, in event time, with every scan as in a live run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.backtest.late import LateService, StoreInThePast
from pipeline.backtest.symbols import with_symbols
from pipeline.messages.ledger import entry_from_row, reported_entries
from pipeline.messages.scans import encode_progress
from pipeline.model import Dropped, Progress, Scan
from pipeline.model.steps import LAST
from pipeline.settings.config import Settings
from pipeline.settings.names import read_namings
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.factory import SCAN_STAGES
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery, Store


@dataclass(frozen=True, slots=True)
class Backtest:
    """The result of a backtest: scans of the last stage and CloudEvents, in order."""

    scans: tuple[Scan, ...]
    events: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The schedule of a service's scans: the watermarks that make scans due, with their numbers of scans."""

    earliest: float
    watermarks: tuple[tuple[float, int], ...]  # (event time, scans due), ascending

    @property
    def scans(self) -> int:
        """Number of all scans."""
        return sum(due for _, due in self.watermarks)


def plan_scans(dataset: Dataset, workloads: Sequence[Workload], *, idle_s: float) -> ScanPlan:
    """Return the schedule of the detect stage for a dataset.

    As in a live run, the source that lags most delays scans, unless it lags by more than ``idle_s``.
    """
    spans = _source_spans(dataset)
    if not spans:
        return ScanPlan(dataset.start, ())
    earliest = min(start for start, _ in spans)
    latest = max(end for _, end in spans)
    low = min(end for _, end in spans if end >= latest - max(idle_s, dataset.window_s))
    due: dict[float, int] = {}
    for workload in workloads:
        # Summed as in the stage, so that both round in the same way.
        first = math.floor(earliest / workload.rerun_interval_s) * workload.rerun_interval_s
        end = first + workload.rerun_interval_s
        while end + workload.wait_s <= low:
            due[end + workload.wait_s] = due.get(end + workload.wait_s, 0) + 1
            end += workload.rerun_interval_s
    return ScanPlan(earliest, tuple(sorted(due.items())))


def run_backtest(
    dataset: Dataset,
    workloads: Sequence[Workload],
    *,
    settings: Settings | None = None,
    advance: Callable[[int], None] | None = None,
    without: Without = NOTHING,
) -> Backtest:
    """Run every stage except aggregate over a dataset; the result is that of streaming the same input.

    Args:
        dataset: One service.
        workloads: What to scan it by.
        settings: Only ``partition_idle_s`` and ``names`` matter.
        advance: Called with the number of scans that have been made since the last call.
        without: Steps to leave out, to measure their worth.

    Raises:
        ConfigError: a workload's setting that a stage refuses.
    """
    settings = settings or Settings()
    detected = detect_scans(dataset, workloads, settings=settings, advance=advance, without=without)
    return judge_scans(dataset, workloads, detected, settings=settings, without=without)


def detect_scans(
    dataset: Dataset,
    workloads: Sequence[Workload],
    *,
    settings: Settings,
    advance: Callable[[int], None] | None = None,
    without: Without = NOTHING,
) -> Iterator[list[bytes]]:
    """Yield what the detect stage sends, one batch for each step of event time: the first half of a backtest.

    Nothing that later stages do comes back to it, so what it found can be judged more than once.

    Args and errors are those of ``run_backtest``; ``advance`` is called when a batch has been taken.
    """
    plan = plan_scans(dataset, workloads, idle_s=settings.partition_idle_s)
    flow = _flow(dataset, workloads, settings, ("detect",), without)
    for watermark, due in plan.watermarks:
        _set_back(flow, watermark)
        progress = Progress(dataset.service, "profiles", 0, watermark, plan.earliest)
        flow.send("windows", [encode_progress(progress)])
        yield [message.value for message in flow.topics["change-points"]]
        flow.topics.clear()
        if advance:
            advance(due)


def judge_scans(
    dataset: Dataset,
    workloads: Sequence[Workload],
    detected: Iterable[Sequence[bytes]],
    *,
    settings: Settings,
    without: Without = NOTHING,
) -> Backtest:
    """Run the stages after detect over what ``detect_scans`` found: the second half of a backtest.

    Args:
        dataset: As it was given to ``detect_scans``.
        workloads: As they were given to ``detect_scans``.
        detected: What that yielded.
        settings: The stages' settings.
        without: Steps to leave out; what detection lacked, and any step of the funnel.

    Raises:
        ConfigError: a workload's setting that a stage refuses.
    """
    later = tuple(name for name in SCAN_STAGES if name not in ("aggregate", "detect"))
    flow = _flow(dataset, workloads, settings, later, without)
    scans: list[Scan] = []
    events: list[dict[str, Any]] = []
    times = iter(plan_scans(dataset, workloads, idle_s=settings.partition_idle_s).watermarks)
    for batch in detected:
        _set_back(flow, next(times, (dataset.end, 0))[0])
        flow.send("change-points", batch)
        scans += flow.scans("unique")
        events += flow.events()
        flow.topics.clear()
    return Backtest(tuple(_as_reported(scans, flow.store)), tuple(events))


def _as_reported(scans: Sequence[Scan], store: Store) -> Iterator[Scan]:
    """Yield scans without the candidates that the last stage dropped, as its ledger says."""
    by_id = {
        row["id"]: entry_from_row(row)
        for step in LAST
        for row in store.rows(RowQuery("ledger", None, equal={"step": step}))
    }
    for scan in scans:
        silent = [entry for item in reported_entries(scan) if (entry := by_id.get(item.id))]
        if not silent:
            yield scan
            continue
        dropped = [Dropped(entry.candidate, entry.dropped) for entry in silent if entry.dropped]
        gone = {entry.candidate.series: entry.candidate.kind for entry in silent}
        left = tuple(item for item in scan.candidates if gone.get(item.series) != item.kind)
        yield replace(scan, candidates=left, dropped=(*scan.dropped, *dropped))


def _flow(
    dataset: Dataset,
    workloads: Sequence[Workload],
    settings: Settings,
    stages: Sequence[str],
    without: Without,
) -> Flow:
    naming = read_namings(settings.names).of(dataset.service)
    named = with_symbols(dataset, naming)
    store: Store = ArrayStore(named)
    if named.late:
        what = LateService(named.service, named.start, named.window_s, named.series, named.strata, named.late)
        store = StoreInThePast(store, what)
    noted = {"service": dataset.service, "time": dataset.start, "version": naming.version, "before": 0}
    store.insert("naming", {name: [value] for name, value in noted.items()})
    return Flow(
        store,
        workloads,
        settings=settings,
        clock=lambda: dataset.end,  # stands still: no partition falls silent in the middle of a file
        stages=stages,
        without=without,
    )


def _set_back(flow: Flow, now: float) -> None:
    """Let stages see the data that had arrived when the watermark was ``now``."""
    if isinstance(flow.store, StoreInThePast):
        flow.store.now = now


def _source_spans(dataset: Dataset) -> list[tuple[float, float]]:
    """Return the time that each topic's data would cover: of profiles up to the last window's end."""
    spans = []
    known = np.flatnonzero(dataset.totals)
    if len(known):
        first, last = (dataset.start + int(known[i]) * dataset.window_s for i in (0, -1))
        spans.append((first, last + dataset.window_s))
    times = [points.timestamps for points in dataset.metrics if len(points.timestamps)]
    if times:
        spans.append((float(min(t.min() for t in times)), float(max(t.max() for t in times))))
    return spans
