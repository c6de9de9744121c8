"""A batch of one topic as columns of the tables that hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.counting.count import Cells, Counts
from pipeline.counting.quota.admission import Refused
from pipeline.messages.inputs import change_to_row, silence_to_row
from pipeline.messages.records import columns_of, plain
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import (
    RESPONSE_CLASSES,
    Change,
    MetricPoints,
    Profile,
    Record,
    RequestCounts,
    Silence,
    Verdict,
)
from pipeline.storage.interface import CountTable, RowTable

Columns = Mapping[str, Sequence[Any]]

REFUSED_POINTS = "smidgen.refused_points"
"""The set-up metric that says how many points of other metrics were refused, one point a message."""

_METRIC_COLUMNS = ("service", "metric", "setup", "time", "value", "partition", "last_offset")
_USED = ("messages", "stacks", "refused_messages", "refused_samples")


def last_offsets(records: Sequence[Record]) -> dict[int, int]:
    """Return the last offset of each partition that records come from."""
    last: dict[int, int] = {}
    for record in records:
        last[record.partition] = max(last.get(record.partition, -1), record.offset)
    return last


def _cell_columns(cells: Cells, index: Sequence[int], last: Mapping[int, int]) -> dict[str, Sequence[Any]]:
    partitions = cells.partitions.tolist()
    offsets = [last[partition] for partition in partitions]
    return {
        "service": [cells.services[i] for i in index],
        "window": cells.windows[index].tolist() if len(index) else [],
        "partition": [partitions[i] for i in index],
        "last_offset": [offsets[i] for i in index],
    }


def _total_columns(
    counts: Counts, records: Sequence[Record], last: Mapping[int, int], window_s: float
) -> Columns:
    """Return a row for every service, window and partition that a record speaks of, refused ones too."""
    cells = counts.cells
    positions = zip(cells.services, cells.windows.tolist(), cells.partitions.tolist(), strict=True)
    samples = dict(zip(positions, counts.total_samples.tolist(), strict=True))
    used: dict[tuple[str, float, int], list[int]] = {}
    for record in records:
        payload: Profile | Refused = record.payload
        window = (payload.start + payload.end) / 2 // window_s * window_s
        row = used.setdefault((payload.service, window, record.partition), [0] * len(_USED))
        more = (0, 0, 1, payload.samples) if isinstance(payload, Refused) else (1, len(payload.counts), 0, 0)
        row[:] = (have + added for have, added in zip(row, more, strict=True))
    return {
        "service": [service for service, _, _ in used],
        "window": [window for _, window, _ in used],
        "partition": [partition for _, _, partition in used],
        "last_offset": [last[partition] for _, _, partition in used],
        "samples": [samples.get(position, 0) for position in used],
        **{name: [row[i] for row in used.values()] for i, name in enumerate(_USED)},
    }


def _strata_total_columns(
    counts: Counts, records: Sequence[Record], last: Mapping[int, int], window_s: float
) -> Columns:
    """Return a row for every service, window, partition and stratum that brought samples."""
    samples: dict[tuple[str, float, int, int], int] = {}
    for record in records:
        if isinstance(profile := record.payload, Profile):
            window = (profile.start + profile.end) / 2 // window_s * window_s
            cell = (profile.service, window, record.partition, profile.sender.id)
            samples[cell] = samples.get(cell, 0) + int(profile.counts.sum())
    return {
        "service": [service for service, _, _, _ in samples],
        "stratum": [stratum for _, _, _, stratum in samples],
        "window": [window for _, window, _, _ in samples],
        "partition": [partition for _, _, partition, _ in samples],
        "last_offset": [last[partition] for _, _, partition, _ in samples],
        "samples": list(samples.values()),
    }


def _strata_gcpu_columns(
    counts: Counts, _records: Sequence[Record], last: Mapping[int, int], _window_s: float
) -> Columns:
    series, cells = counts.stratum_index.tolist(), counts.stratum_cell.tolist()
    return {
        **_cell_columns(counts.stratum_cells, cells, last),
        "kind": [counts.kinds[i] for i in series],
        "subroutine": [counts.names[i] for i in series],
        "stratum": [counts.stratum_cells.strata[i] for i in cells],
        "width_s": [counts.stratum_width_s] * len(series),
        "samples": counts.stratum_samples.tolist(),
    }


def _strata_stack_columns(
    counts: Counts, _records: Sequence[Record], last: Mapping[int, int], _window_s: float
) -> Columns:
    """Return the counts of stacks without their frames, which are in ``stacks`` by then."""
    cells = counts.stratum_stack_cell.tolist()
    return {
        **_cell_columns(counts.stratum_cells, cells, last),
        "stratum": [counts.stratum_cells.strata[i] for i in cells],
        "stack_id": counts.stack_ids[counts.stratum_stack_index].tolist(),
        "width_s": [counts.stratum_width_s] * len(cells),
        "samples": counts.stratum_stack_samples.tolist(),
    }


def _gcpu_columns(
    counts: Counts, _records: Sequence[Record], last: Mapping[int, int], _window_s: float
) -> Columns:
    series = counts.series_index.tolist()
    return {
        **_cell_columns(counts.cells, counts.series_cell.tolist(), last),
        "kind": [counts.kinds[i] for i in series],
        "subroutine": [counts.names[i] for i in series],
        "samples": counts.series_samples.tolist(),
    }


def _stack_columns(
    counts: Counts, _records: Sequence[Record], last: Mapping[int, int], _window_s: float
) -> Columns:
    stacks = counts.stack_index.tolist()
    return {
        **_cell_columns(counts.stack_cells, counts.stack_cell.tolist(), last),
        "stack_id": counts.stack_ids[counts.stack_index].tolist(),
        "frames": [counts.stacks[i] for i in stacks],
        "width_s": [counts.stack_width_s] * len(stacks),
        "samples": counts.stack_samples.tolist(),
    }


def metric_columns(records: Sequence[Record]) -> Columns:
    """Return a row for every point, and one for each message that was refused."""
    last = last_offsets(records)
    rows = []
    for record in records:
        points: MetricPoints | Refused = record.payload
        if isinstance(points, Refused):
            metric, setup, values = REFUSED_POINTS, True, [(points.end, float(points.samples))]
        else:
            metric, setup = points.metric, points.setup
            values = list(zip(points.timestamps.tolist(), points.values.tolist(), strict=True))
        position = (record.partition, last[record.partition])
        rows += [(points.service, metric, int(setup), *value, *position) for value in values]
    return dict(zip(_METRIC_COLUMNS, zip(*rows, strict=True), strict=True))


def request_columns(records: Sequence[Record]) -> Columns:
    """Return a row for every type of each message."""
    last = last_offsets(records)
    rows = []
    for record in records:
        counts: RequestCounts = record.payload
        common = {
            **{"service": counts.service, "release": counts.release, "window": counts.start},
            **{"width_s": counts.period_s, "partition": record.partition},
            "last_offset": last[record.partition],
        }
        rows += [
            {
                **common,
                **{"type": each.type, "requests": each.requests, "times": dict(each.times)},
                **{
                    f"responses_{name}": many
                    for name, many in zip(RESPONSE_CLASSES, each.responses, strict=True)
                },
            }
            for each in counts.types
        ]
    return columns_of(rows)


def metadata_columns(said: Sequence[MetricPoints]) -> Columns:
    """Return a row for what is said of each metric, one at least."""
    return columns_of(
        {
            "service": points.service,
            "metric": points.metric,
            "time": float(points.timestamps.min()),
            **plain(points.metadata),
        }
        for points in said
    )


def change_columns(changes: Sequence[Change]) -> Columns:
    """Return a row for every change."""
    return columns_of(map(change_to_row, changes))


def feedback_columns(said: Sequence[Silence | Verdict]) -> dict[RowTable, Columns]:
    """Return a row for every expectation, mute and verdict, by table."""
    rows: dict[RowTable, list[dict[str, Any]]] = {
        "silences": [silence_to_row(one) for one in said if isinstance(one, Silence)],
        "verdicts": [verdict_to_row(one) for one in said if isinstance(one, Verdict)],
    }
    return {table: columns_of(own) for table, own in rows.items() if own}


CountedColumns = Callable[[Counts, Sequence[Record], Mapping[int, int], float], Columns]
"""Makes rows of the counts of the records that are no Refused, the records themselves, the last offset of
each partition and the width of a window."""

COUNTED_COLUMNS: Sequence[Mapping[CountTable, CountedColumns]] = (
    {"stacks": _stack_columns, "gcpu": _gcpu_columns},
    {
        "strata_stacks": _strata_stack_columns,
        "strata_gcpu": _strata_gcpu_columns,
        "strata_totals": _strata_total_columns,
    },
    {"totals": _total_columns},  # the last: it says what all of them cover
)
"""The tables of counts, in the order in which they are written; tables of one step are written together."""
