"""Datasets: arrays of one service over a span of time, which backtests read and simulations write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson

from pipeline.backtest.checks import Grid, added, check_once, check_size, read_counts, window_count
from pipeline.backtest.counts import (
    read_series,
    read_strata,
    read_totals,
    write_series,
    write_strata,
    write_totals,
)
from pipeline.backtest.labels import label_names, read_labels
from pipeline.backtest.late import Late
from pipeline.backtest.metrics_table import read_metrics, write_metrics
from pipeline.backtest.tables import Texts, read_parquet, write_parquet
from pipeline.counting.count import stack_ids
from pipeline.messages import fields
from pipeline.messages.inputs import change_to_json, decode_change, decode_feedback, encode_silence
from pipeline.model import Change, FloatArray, MetricKind, MetricPoints, RequestCounts, SeriesKey, Silence
from pipeline.model.errors import ConfigError, InvalidMessage, file_errors
from pipeline.model.strata import Stratum, StratumCounts

VERSION = 1
_OWN_KEYS = ("version", "service", "start", "end", "window_s", "stack_window_s")
_Line = TypeVar("_Line")


@dataclass(frozen=True, slots=True)
class Dataset:
    """One service's counts, metrics, changes and silences, and its truth if it was simulated.

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
    stacks: tuple[tuple[str, ...], ...]  # root first, with annotations as in pipeline.model.frames
    stack_samples: FloatArray  # (stacks, stack windows)
    metrics: tuple[MetricPoints, ...]
    changes: tuple[Change, ...]
    truth: tuple[Mapping[str, Any], ...] = ()
    silences: tuple[Silence, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)  # further keys of dataset.json
    strata: tuple[Stratum, ...] = ()  # senders of the samples; empty if unknown
    stratum_totals: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (strata, windows)
    stratum_samples: StratumCounts | None = None  # by series and stack window; None if unknown
    late: tuple[Late, ...] = ()  # data that arrive late; not written to a folder
    requests: tuple[RequestCounts, ...] = ()  # by type and period; not written to a folder

    @property
    def series(self) -> tuple[SeriesKey, ...]:
        """The keys of the rows: (series,)."""
        return tuple(map(SeriesKey, self.kinds, self.names))


def write_dataset(dataset: Dataset, path: Path) -> None:
    """Write a dataset as a folder, created if it is missing; see docs/backtest.md for the files.

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
        if dataset.silences:
            lines = [encode_silence(silence) + b"\n" for silence in dataset.silences]
            (path / "feedback.jsonl").write_bytes(b"".join(lines))
    grid = Grid(dataset.service, dataset.start, dataset.window_s, len(dataset.totals))
    stack_grid = replace(grid, width_s=dataset.stack_window_s, windows=dataset.stack_samples.shape[1])
    totals = dataset.totals
    write_series(path / "series.parquet", grid, dataset.series, dataset.samples, totals)
    write_totals(path / "totals.parquet", grid, totals, dataset.strata, dataset.stratum_totals)
    if dataset.stratum_samples is not None:
        counts = dataset.stratum_samples
        write_strata(path / "strata.parquet", stack_grid, dataset.series, dataset.strata, counts)
    else:
        (path / "strata.parquet").unlink(missing_ok=True)  # from an earlier dataset here
    _write_stacks(dataset, path)
    write_metrics(dataset.service, dataset.metrics, path / "metrics.parquet")


def read_dataset(path: Path) -> Dataset:
    """Read a folder that ``write_dataset`` or ``smidgen loadgen fleet`` wrote.

    Series come sorted by kind and name; one without a sample in the whole span is absent. Metrics, stacks,
    changes, truth and feedback may be missing.

    Raises:
        ConfigError: the file and the row, line or key that is wrong.
    """
    head = _read_head(path / "dataset.json")
    service = fields.text(head, "service")
    start, end = head["start"], head["end"]
    for key in ("window_s", "stack_window_s"):
        check_size(1, window_count(start, end, head[key]), f"{path / 'dataset.json'}: {key}")
    grid, stack_grid = (
        Grid(service, start, head[key], window_count(start, end, head[key]))
        for key in ("window_s", "stack_window_s")
    )
    totals = read_totals(path / "totals.parquet", grid)
    counted = read_series(path / "series.parquet", totals, stack_grid)
    counted = read_strata(path / "strata.parquet", counted, totals, stack_grid)
    stacks, stack_samples = _read_stacks(path, stack_grid)
    return Dataset(
        service=service,
        start=start,
        end=end,
        window_s=grid.width_s,
        stack_window_s=stack_grid.width_s,
        kinds=tuple(key.kind for key in counted.series),
        names=tuple(key.name for key in counted.series),
        samples=counted.samples,
        totals=totals.whole,
        stacks=stacks,
        stack_samples=stack_samples,
        metrics=read_metrics(path / "metrics.parquet", service),
        changes=read_changes(path / "changes.jsonl") if (path / "changes.jsonl").exists() else (),
        truth=_read_lines(path / "truth.jsonl", fields.parse_object)
        if (path / "truth.jsonl").exists()
        else (),
        silences=read_feedback(path / "feedback.jsonl") if (path / "feedback.jsonl").exists() else (),
        meta={key: value for key, value in head.items() if key not in _OWN_KEYS},
        strata=totals.strata,
        stratum_totals=totals.by_stratum,
        stratum_samples=counted.by_stratum,
    )


def read_changes(path: Path) -> tuple[Change, ...]:
    """Read JSON lines of ``changes`` messages.

    Raises:
        ConfigError: the file, line and key that is wrong.
    """
    return _read_lines(path, decode_change)


def read_feedback(path: Path) -> tuple[Silence, ...]:
    """Read the expectations and mutes of JSON lines of ``feedback``; of one id the last line counts.

    Raises:
        ConfigError: the file, line and key that is wrong.
    """
    said = [one for one in _read_lines(path, decode_feedback) if isinstance(one, Silence)]
    return tuple({(one.service, one.id): one for one in said}.values())


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


def _read_stacks(path: Path, grid: Grid) -> tuple[tuple[tuple[str, ...], ...], FloatArray]:
    """Read the counts of stacks; those of rows that differ in labels alone add up."""
    if not (path / "stacks.parquet").exists():
        return (), np.zeros((0, grid.windows))
    columns, dictionary = read_parquet(path / "stacks.parquet"), read_parquet(path / "frames.parquet")
    position = grid.positions(columns)
    counts = read_counts(columns, "samples")
    labels = read_labels(columns, label_names(columns))
    known, frames = dictionary.numbers("stack_id", np.uint64), dictionary.lists("frames")
    order = np.argsort(known, kind="stable")
    check_once(dictionary, known, "stack_id")
    wanted = columns.numbers("stack_id", np.uint64)
    found = np.searchsorted(known[order], wanted)
    unknown = np.isin(wanted, known, invert=True)
    if unknown.any():
        columns.refuse(int(np.flatnonzero(unknown)[0]), "stack_id", "not in frames.parquet")
    cells = order[found] * grid.windows + position
    check_once(columns, cells * len(labels.strata) + labels.rows)
    return tuple(frames), added(cells, counts, (len(frames), grid.windows))
