"""What one service did over a span of time, as arrays: what a backtest reads and a simulation writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson

from pipeline.backtest.tables import Columns, Texts, read_parquet, write_parquet
from pipeline.codec import fields
from pipeline.codec.inputs import change_to_json, decode_change
from pipeline.errors import ConfigError, InvalidMessage, file_errors
from pipeline.gcpu.count import stack_ids
from pipeline.model import (
    METRIC_KINDS,
    Change,
    FloatArray,
    IntArray,
    MetricKind,
    MetricPoints,
    SeriesKey,
    is_gcpu,
)

VERSION = 1
_OWN_KEYS = ("version", "service", "start", "end", "window_s", "stack_window_s")
_Line = TypeVar("_Line")


@dataclass(frozen=True, slots=True)
class Dataset:
    """One service's counts, metrics, changes and, where it was simulated, its truth.

    Window j of ``samples`` starts at ``start + j * window_s``, stack window k of ``stack_samples`` at
    ``start + k * stack_window_s``; ``start`` and ``end`` are epoch seconds, ``end`` is not included.
    """

    service: str
    start: float
    end: float
    window_s: float
    stack_window_s: float
    kinds: tuple[MetricKind, ...]  # (series,)
    names: tuple[str, ...]  # (series,)
    samples: FloatArray  # (series, windows) counts
    totals: FloatArray  # (windows,) all samples of the service; 0 = no data
    stacks: tuple[tuple[str, ...], ...]  # root first, with annotations as in pipeline.frames
    stack_samples: FloatArray  # (stacks, stack windows)
    metrics: tuple[MetricPoints, ...]
    changes: tuple[Change, ...]
    truth: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)  # further keys of dataset.json

    @property
    def series(self) -> tuple[SeriesKey, ...]:
        """The keys of the rows: (series,)."""
        return tuple(map(SeriesKey, self.kinds, self.names))


MOST_POINTS = 2 * 10**8
"""Largest matrix of a dataset, series × windows: 1.6 GB."""


def check_size(series: int, windows: int, where: str) -> None:
    """Refuse what would not fit into memory, as one wrong timestamp makes of a small file.

    Raises:
        ConfigError: ``where`` and how many windows that would be.
    """
    if max(series, 1) * windows > MOST_POINTS:
        raise ConfigError(f"{where}: {windows} windows of {series} series are more than fit into memory")


def window_count(start: float, end: float, width_s: float) -> int:
    """Return how many windows of a width cover [start, end)."""
    return max(0, int(np.ceil(min((end - start) / width_s, 2.0**62) - 1e-9)))  # the width may be 1e-300


def write_dataset(dataset: Dataset, path: Path) -> None:
    """Write a dataset as a folder, which is made if it is not there; see docs/backtest.md for the files.

    Raises:
        ConfigError: the folder cannot be written to.
    """
    head = {
        **{"version": VERSION, "service": dataset.service, "start": dataset.start, "end": dataset.end},
        **{"window_s": dataset.window_s, "stack_window_s": dataset.stack_window_s},
        **{key: value for key, value in dataset.meta.items() if key not in _OWN_KEYS},
    }
    with file_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        (path / "dataset.json").write_bytes(orjson.dumps(head, option=orjson.OPT_INDENT_2) + b"\n")
        _write_lines(path / "changes.jsonl", [change_to_json(change) for change in dataset.changes])
        _write_lines(path / "truth.jsonl", [dict(row) for row in dataset.truth])
    _write_counts(dataset, path)
    _write_stacks(dataset, path)
    _write_metrics(dataset, path)


def read_dataset(path: Path) -> Dataset:
    """Read a folder that ``write_dataset`` or ``smidgen loadgen fleet`` wrote.

    Series come sorted by kind and name; one without a sample in the whole span is absent. Metrics, stacks,
    changes and truth may be missing.

    Raises:
        ConfigError: the file and the row, line or key that is wrong.
    """
    head = _read_head(path / "dataset.json")
    service = fields.text(head, "service")
    start, end, window_s = head["start"], head["end"], head["window_s"]
    for key in ("window_s", "stack_window_s"):
        check_size(1, window_count(start, end, head[key]), f"{path / 'dataset.json'}: {key}")
    totals = _read_totals(
        path / "totals.parquet", service, start, window_s, window_count(start, end, window_s)
    )
    kinds, names, samples = _read_series(path / "series.parquet", service, start, window_s, totals)
    width = head["stack_window_s"]
    stacks, stack_samples = _read_stacks(path, service, start, width, window_count(start, end, width))
    return Dataset(
        service=service,
        start=start,
        end=end,
        window_s=window_s,
        stack_window_s=width,
        kinds=kinds,
        names=names,
        samples=samples,
        totals=totals,
        stacks=stacks,
        stack_samples=stack_samples,
        metrics=_read_metrics(path / "metrics.parquet", service),
        changes=read_changes(path / "changes.jsonl") if (path / "changes.jsonl").exists() else (),
        truth=_read_lines(path / "truth.jsonl", fields.parse_object)
        if (path / "truth.jsonl").exists()
        else (),
        meta={key: value for key, value in head.items() if key not in _OWN_KEYS},
    )


def read_changes(path: Path) -> tuple[Change, ...]:
    """Read JSON lines of ``changes`` messages.

    Raises:
        ConfigError: the file, line and key that is wrong.
    """
    return _read_lines(path, decode_change)


def _read_lines(path: Path, decode: Callable[[bytes], _Line]) -> tuple[_Line, ...]:
    found = []
    with file_errors(path):
        lines = path.read_bytes().splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(decode(line))
        except InvalidMessage as error:
            raise ConfigError(f"{path}:{number}: {error}") from None
    return tuple(found)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n" for row in rows))


def _read_head(path: Path) -> dict[str, Any]:
    with file_errors(path):
        content = path.read_bytes()
    try:
        head = fields.parse_object(content)
        if head.get("version") != VERSION:
            raise InvalidMessage(f"version: should be {VERSION}")
        fields.text(head, "service", limit=200)
        head |= {key: fields.moment(head, key) for key in ("start", "end")}
        if head["end"] <= head["start"]:
            raise InvalidMessage("end: should be after start")
        head |= {key: fields.number(head, key) for key in ("window_s", "stack_window_s")}
        for key in ("window_s", "stack_window_s"):
            if head[key] <= 0:
                raise InvalidMessage(f"{key}: should be above 0")
    except InvalidMessage as error:
        raise ConfigError(f"{path}: {error}") from None
    return head


# Counts


def _write_counts(dataset: Dataset, path: Path) -> None:
    row, position = np.nonzero(dataset.samples)
    only = np.zeros(len(row), dtype=np.int64)
    kinds = sorted(set(dataset.kinds))
    kind_of = np.array([kinds.index(kind) for kind in dataset.kinds], dtype=np.int64)
    write_parquet(
        path / "series.parquet",
        {
            "service": Texts(only, (dataset.service,)),
            "metric_kind": Texts(kind_of[row], tuple(kinds)),
            "metric": Texts(row, dataset.names),
            "timestamp": dataset.start + position * dataset.window_s,
            "samples": dataset.samples[row, position].astype(np.int64),
            "total": dataset.totals[position].astype(np.int64),
        },
    )
    known = np.flatnonzero(dataset.totals)
    write_parquet(
        path / "totals.parquet",
        {
            "service": Texts(np.zeros(len(known), dtype=np.int64), (dataset.service,)),
            "timestamp": dataset.start + known * dataset.window_s,
            "total": dataset.totals[known].astype(np.int64),
        },
    )


def _read_totals(path: Path, service: str, start: float, window_s: float, windows: int) -> FloatArray:
    columns = read_parquet(path)
    _check_service(columns, service)
    position = _positions(columns, start, window_s, windows)
    counts = columns.numbers("total")
    _check_counts(columns, "total", counts)
    _check_once(columns, position)
    totals = np.zeros(windows)
    totals[position] = counts
    return totals


def _read_series(
    path: Path, service: str, start: float, window_s: float, totals: FloatArray
) -> tuple[tuple[MetricKind, ...], tuple[str, ...], FloatArray]:
    columns = read_parquet(path)
    _check_service(columns, service)
    position = _positions(columns, start, window_s, len(totals))
    counts = columns.numbers("samples")
    _check_counts(columns, "samples", counts)
    total = columns.numbers("total")
    if len(wrong := np.flatnonzero(total != totals[position])):
        first = int(wrong[0])
        columns.refuse(
            first, "total", f"{total[first]:.0f} here, {totals[position[first]]:.0f} in totals.parquet"
        )
    if len(wrong := np.flatnonzero(counts > total)):
        first = int(wrong[0])
        columns.refuse(first, "samples", f"{counts[first]:.0f} of a total of {total[first]:.0f}")
    kinds, names = columns.texts("metric_kind"), columns.texts("metric")
    allowed = {kind for kind in METRIC_KINDS if is_gcpu(kind)}
    for code, kind in enumerate(kinds.values):
        if kind not in allowed and code in kinds.codes:
            columns.refuse(int(np.flatnonzero(kinds.codes == code)[0]), "metric_kind", f"unknown: {kind!r}")
    key = names.codes * len(kinds.values) + kinds.codes
    used, row = np.unique(key, return_inverse=True)
    series = [
        (kinds.values[k % len(kinds.values)], names.values[k // len(kinds.values)]) for k in used.tolist()
    ]
    order = sorted(range(len(series)), key=series.__getitem__)
    row = np.argsort(order)[row]
    _check_once(columns, row * len(totals) + position)
    samples = np.zeros((len(order), len(totals)))
    samples[row, position] = counts
    return tuple(series[i][0] for i in order), tuple(series[i][1] for i in order), samples


# Stacks


def _write_stacks(dataset: Dataset, path: Path) -> None:
    ids = stack_ids(dataset.stacks)
    row, position = np.nonzero(dataset.stack_samples)
    write_parquet(
        path / "stacks.parquet",
        {
            "service": Texts(np.zeros(len(row), dtype=np.int64), (dataset.service,)),
            "stack_id": ids[row],
            "timestamp": dataset.start + position * dataset.stack_window_s,
            "samples": dataset.stack_samples[row, position].astype(np.int64),
        },
    )
    write_parquet(path / "frames.parquet", {"stack_id": ids, "frames": [list(s) for s in dataset.stacks]})


def _read_stacks(
    path: Path, service: str, start: float, width_s: float, windows: int
) -> tuple[tuple[tuple[str, ...], ...], FloatArray]:
    if not (path / "stacks.parquet").exists():
        return (), np.zeros((0, windows))
    columns, dictionary = read_parquet(path / "stacks.parquet"), read_parquet(path / "frames.parquet")
    _check_service(columns, service)
    position = _positions(columns, start, width_s, windows)
    counts = columns.numbers("samples")
    _check_counts(columns, "samples", counts)
    known, frames = dictionary.numbers("stack_id", np.uint64), dictionary.lists("frames")
    order = np.argsort(known, kind="stable")
    _check_once(dictionary, known, "stack_id")
    wanted = columns.numbers("stack_id", np.uint64)
    found = np.searchsorted(known[order], wanted)
    unknown = np.isin(wanted, known, invert=True)
    if unknown.any():
        columns.refuse(int(np.flatnonzero(unknown)[0]), "stack_id", "not in frames.parquet")
    row = order[found]
    _check_once(columns, row * windows + position)
    samples = np.zeros((len(frames), windows))
    samples[row, position] = counts
    return tuple(frames), samples


# Metrics


def _write_metrics(dataset: Dataset, path: Path) -> None:
    sizes = [len(points.values) for points in dataset.metrics]
    of_row = np.repeat(np.arange(len(sizes)), sizes)
    nothing = np.empty(0)
    write_parquet(
        path / "metrics.parquet",
        {
            "service": Texts(np.zeros(len(of_row), dtype=np.int64), (dataset.service,)),
            "metric": Texts(of_row, tuple(points.metric for points in dataset.metrics)),
            "timestamp": np.concatenate([nothing, *(points.timestamps for points in dataset.metrics)]),
            "value": np.concatenate([nothing, *(points.values for points in dataset.metrics)]),
            "setup": np.array([points.setup for points in dataset.metrics], dtype=np.bool_)[of_row],
        },
    )


def _read_metrics(path: Path, service: str) -> tuple[MetricPoints, ...]:
    if not path.exists():
        return ()
    columns = read_parquet(path)
    _check_service(columns, service)
    names, setup = columns.texts("metric"), columns.flags("setup")
    timestamps, values = columns.numbers("timestamp"), columns.numbers("value")
    check_moments(columns, timestamps)
    found = []
    key = names.codes * 2 + setup
    order = np.lexsort((timestamps, key))
    bounds = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = order[first:last]
        name = names.values[int(names.codes[rows[0]])]
        found.append(MetricPoints(service, name, timestamps[rows], values[rows], bool(setup[rows[0]])))
    return tuple(sorted(found, key=lambda points: (points.metric, points.setup)))


# Checks


def check_moments(columns: Columns, timestamps: FloatArray) -> None:
    """Check that times lie between 2000 and 2100.

    Raises:
        ConfigError: the row of the first one that does not.
    """
    outside = (timestamps < fields.EARLIEST_S) | (timestamps >= fields.LATEST_S)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        columns.refuse(row, "timestamp", f"{timestamps[row]:g} is not between 2000 and 2100 in epoch seconds")


def _check_service(columns: Columns, service: str) -> None:
    services = columns.texts("service")
    for code, name in enumerate(services.values):
        if name != service and code in services.codes:
            row = int(np.flatnonzero(services.codes == code)[0])
            columns.refuse(row, "service", f"{name!r}, where dataset.json has {service!r}")


def _positions(columns: Columns, start: float, width_s: float, windows: int) -> IntArray:
    timestamps = columns.numbers("timestamp")
    exact = (timestamps - start) / width_s
    position: IntArray = np.rint(exact).astype(np.int64)
    wrong = (np.abs(exact - position) > 1e-3) | (position < 0) | (position >= windows)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        columns.refuse(row, "timestamp", f"{timestamps[row]:.3f} is no start of a window of the dataset")
    return position


def _check_counts(columns: Columns, name: str, counts: FloatArray) -> None:
    if len(wrong := np.flatnonzero(counts < 0)):
        columns.refuse(int(wrong[0]), name, "negative")


def _check_once(columns: Columns, keys: Any, name: str = "timestamp") -> None:
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(again):
        columns.refuse(int(order[again + 1].min()), name, "stands in an earlier row already")
