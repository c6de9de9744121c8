"""Services that the stages have scanned, in a store, for the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.backtest.run import plan_scans
from pipeline.counting.count import stack_ids
from pipeline.messages.scans import encode_progress
from pipeline.model import Progress
from pipeline.model.units import HOUR_S
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload
from pipeline.stages.factory import SCAN_STAGES
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import CountTable, RowQuery, RowTable, Store
from pipeline.storage.strata_points import strata_columns

WEEKLY_FIELDS: Mapping[str, Any] = {
    **{"name": "weekly", "resolution": "10m", "rerun_interval": "6h", "historical": "5d"},
    **{"analysis": "12h", "extended": "6h", "threshold": {"absolute": 0.0005}},
}
WEEKLY = Workload.model_validate(WEEKLY_FIELDS)
"""Small enough for a test, and large enough that windows can be seen."""

SHOP: Mapping[str, Any] = {
    **{"name": "shop", "service": "shop", "duration": "9d", "samples_per_minute": 6},
    **{"graph": {"subroutines": 120, "endpoints": 8}, "servers": {"count": 400}},
    "hosts": {"count": 12, "regions": {"east": 0.4, "west": 0.35, "north": 0.25}},
    "changes": {"count": 160, "release_every": "8h"},
    "inject": [
        {"kind": "step", "count": 5, "delta": [0.004, 0.04], "between": [0.68, 0.95], "no_culprit": 0},
        {"kind": "transient", "count": 6, "delta": [0.004, 0.04]},
        {"kind": "cost_shift", "count": 3, "delta": [0.004, 0.02], "between": [0.68, 0.95]},
    ],
}
SEARCH: Mapping[str, Any] = {
    **{"name": "search", "service": "search", "duration": "9d", "samples_per_minute": 6},
    **{"graph": {"subroutines": 80, "endpoints": 5}, "servers": {"count": 90}},
    "changes": {"count": 80},
    "inject": [
        {"kind": "step", "count": 3, "delta": [0.004, 0.03], "between": [0.68, 0.95], "no_culprit": 0},
        {"kind": "cascade", "count": 1, "delta": [0.005, 0.02], "between": [0.68, 0.95]},
    ],
}

SENDERS_S = 6 * HOUR_S
"""Windows of counts by stratum: a scan's analysis and extended windows hold at least two."""

_LOG = {"stream": "test", "topic": "profiles"}


def look_into(
    store: Store, scenario: Mapping[str, Any] = SHOP, *, seed: int = 3, end: float = 0.0
) -> Dataset:
    """Simulate a service, run the stages over it, and put all results into a store.

    The last window ends before ``end``, epoch seconds, unless ``end`` is 0.
    """
    drawn = simulate(Scenario.model_validate(scenario), seed).dataset
    dataset = _moved(drawn, end) if end else drawn
    arrays = ArrayStore(dataset)
    flow = Flow(
        arrays,
        [WEEKLY],
        settings=Settings(),
        clock=lambda: dataset.end,
        stages=[name for name in SCAN_STAGES if name != "aggregate"],
    )
    plan = plan_scans(dataset, [WEEKLY], idle_s=Settings().partition_idle_s)
    for watermark, _ in plan.watermarks:
        progress = Progress(dataset.service, "profiles", 0, watermark, plan.earliest)
        flow.send("windows", [encode_progress(progress)])
    noted = {"service": dataset.service, "time": dataset.start, "version": "1", "before": 0}
    store.insert("naming", {name: [value] for name, value in noted.items()})
    for table in get_args(RowTable):
        if table not in ("names", "naming", "logs", "positions", "outcomes", "memory", "strata"):
            _copy(arrays, store, table)
    _count(store, dataset)
    return dataset


def _moved(dataset: Dataset, end: float) -> Dataset:
    step = dataset.stack_window_s
    by = float(np.floor((end - dataset.end) / step) * step)
    return replace(
        dataset,
        start=dataset.start + by,
        end=dataset.end + by,
        changes=tuple(replace(change, time=change.time + by) for change in dataset.changes),
        metrics=tuple(replace(points, timestamps=points.timestamps + by) for points in dataset.metrics),
    )


def _copy(arrays: ArrayStore, store: Store, table: RowTable) -> None:
    rows = arrays.rows(RowQuery(table, None))
    if rows:
        store.insert(table, {name: [row[name] for row in rows] for name in rows[0]})


def _count(store: Store, dataset: Dataset) -> None:
    """Insert the counts as aggregate would."""
    windows = dataset.start + dataset.window_s * np.arange(len(dataset.totals))
    _insert(store, "totals", dataset, windows, dataset.totals[None], {"messages": 0, "stacks": 0})
    kinds, names = dataset.kinds, dataset.names
    for kind in set(kinds):
        rows = [row for row, row_kind in enumerate(kinds) if row_kind == kind]
        own = {"kind": kind}
        _insert(
            store,
            "gcpu",
            dataset,
            windows,
            dataset.samples[rows],
            own,
            subroutine=[names[row] for row in rows],
        )
    starts = dataset.start + dataset.stack_window_s * np.arange(dataset.stack_samples.shape[1])
    _insert(
        store,
        "stacks",
        dataset,
        starts,
        dataset.stack_samples,
        {"width_s": dataset.stack_window_s},
        stack_id=stack_ids(dataset.stacks).tolist(),
        frames=[list(stack) for stack in dataset.stacks],
    )
    if not dataset.strata:
        return
    store.insert("strata", strata_columns(dataset))
    ids = [stratum.id for stratum in dataset.strata]
    _insert(store, "strata_totals", dataset, windows, dataset.stratum_totals, {}, stratum=ids)
    _count_senders(store, dataset, ids)


def _count_senders(store: Store, dataset: Dataset, ids: Sequence[int]) -> None:
    """Insert stacks and endpoints by stratum: each stratum has its share of the samples of every stack.

    Windows have SENDERS_S, so that some lie wholly after a change.
    """
    stacks, endpoints = stack_ids(dataset.stacks).tolist(), np.array(dataset.kinds) == "endpoint"
    names = np.array(dataset.names)[endpoints].tolist()
    rng = np.random.default_rng(11)
    for first in np.arange(0.0, dataset.end - dataset.start, SENDERS_S).tolist():
        fine, coarse = (
            slice(round(first / width_s), round((first + SENDERS_S) / width_s))
            for width_s in (dataset.window_s, dataset.stack_window_s)
        )
        totals = dataset.stratum_totals[:, fine].sum(axis=1)
        present = np.flatnonzero(totals).tolist()
        if not present:
            continue
        shares = totals[present] / totals.sum()
        table: CountTable
        for table, own, sums in (
            ("strata_stacks", {"stack_id": stacks}, dataset.stack_samples[:, coarse]),
            ("strata_gcpu", {"subroutine": names}, np.nan_to_num(dataset.samples[endpoints][:, fine])),
        ):
            counts = rng.multinomial(sums.sum(axis=1).astype(np.int64), shares)
            rows, columns = np.nonzero(counts)
            ((name, values),) = own.items()
            same = {"service": dataset.service, "window": dataset.start + first, "width_s": SENDERS_S}
            same |= {"kind": "endpoint"} if table == "strata_gcpu" else {}
            same |= {**_LOG, "partition": 0, "last_offset": 0}
            filled: dict[str, Any] = {key: [value] * len(rows) for key, value in same.items()}
            filled[name] = [values[row] for row in rows]
            filled["stratum"] = [ids[present[column]] for column in columns]
            store.insert(table, {**filled, "samples": counts[rows, columns].tolist()})


def _insert(
    store: Store,
    table: Any,
    dataset: Dataset,
    windows: Any,
    counts: Any,
    own: Mapping[str, Any],
    **by_row: Sequence[Any],
) -> None:
    counts = np.nan_to_num(counts)
    rows, columns = np.nonzero(counts)
    for first in range(0, len(rows), 200_000):
        part = slice(first, first + 200_000)
        row, column = rows[part], columns[part]
        size = len(row)
        same = {"service": dataset.service, **own, **_LOG, "partition": 0, "last_offset": 0}
        store.insert(
            table,
            {
                **{name: [value] * size for name, value in same.items()},
                **{name: [values[index] for index in row] for name, values in by_row.items()},
                "window": windows[column],
                "samples": counts[row, column].astype(np.int64),
            },
        )
