"""Rows of every table, as tests of stores insert them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.model import RESPONSE_CLASSES, Stratum
from pipeline.storage.interface import CountTable, SeriesQuery, Store

MINUTE = 60.0
T0 = 1_700_000_040.0  # a whole minute
STREAM = "stream-a"
NASTY = [
    "'; DROP TABLE gcpu; --",
    "a\\'b\"c`d",
    "tab\tnewline\nreturn\rnull\0end",
    "{service:String}",
    "%s %(service)s $1",
    "größe.λ.関数.🙂",
    " leading and trailing ",
    "",
]

Columns = dict[str, Any]

LATE_S = 30.0
"""Seconds after an answer of ``extents`` in which a shared store accepts counted rows."""


def position(rows: int, *, partition: int = 0, offset: int = 0, stream: str = STREAM) -> Columns:
    return {
        "stream": [stream] * rows,
        "topic": ["profiles"] * rows,
        "partition": [partition] * rows,
        "last_offset": [offset] * rows,
    }


def gcpu(service: str, counts: Sequence[tuple[str, float, int]], **where: Any) -> Columns:
    return {
        "service": [service] * len(counts),
        "kind": ["subroutine"] * len(counts),
        "subroutine": [name for name, _, _ in counts],
        "window": [window for _, window, _ in counts],
        "samples": [samples for _, _, samples in counts],
        **position(len(counts), **where),
    }


def totals(service: str, counts: Sequence[tuple[float, int]], **where: Any) -> Columns:
    return {
        "service": [service] * len(counts),
        "window": [window for window, _ in counts],
        "samples": [samples for _, samples in counts],
        **position(len(counts), **where),
    }


def stacks(service: str, counts: Sequence[tuple[tuple[str, ...], float, int]], width: float = 600) -> Columns:
    return {
        "service": [service] * len(counts),
        "stack_id": [hash(stack) % 2**64 for stack, _, _ in counts],
        "frames": [list(stack) for stack, _, _ in counts],
        "window": [window for _, window, _ in counts],
        "width_s": [width] * len(counts),
        "samples": [samples for _, _, samples in counts],
        **position(len(counts)),
    }


def strata_totals(service: str, counts: Sequence[tuple[Stratum, float, int]], **where: Any) -> Columns:
    """Rows of samples by stratum at seconds after T0."""
    return {
        "service": [service] * len(counts),
        "stratum": [stratum.id for stratum, _, _ in counts],
        "window": [T0 + at for _, at, _ in counts],
        "samples": [samples for _, _, samples in counts],
        **position(len(counts), **where),
    }


def strata_gcpu(service: str, counts: Sequence[tuple[str, Stratum, float, int]], **where: Any) -> Columns:
    """Rows of subroutines by stratum in windows of two minutes, at seconds after T0."""
    return {
        "service": [service] * len(counts),
        "kind": ["subroutine"] * len(counts),
        "subroutine": [name for name, _, _, _ in counts],
        "stratum": [stratum.id for _, stratum, _, _ in counts],
        "window": [T0 + at for _, _, at, _ in counts],
        "width_s": [2 * MINUTE] * len(counts),
        "samples": [samples for _, _, _, samples in counts],
        **position(len(counts), **where),
    }


def strata_stacks(
    service: str, counts: Sequence[tuple[tuple[str, ...], Stratum, float, int]], **where: Any
) -> Columns:
    """Rows of stacks by stratum in windows of two minutes, at seconds after T0."""
    return {
        "service": [service] * len(counts),
        "stratum": [stratum.id for _, stratum, _, _ in counts],
        "stack_id": [hash(stack) % 2**64 for stack, _, _, _ in counts],
        "window": [T0 + at for _, _, at, _ in counts],
        "width_s": [2 * MINUTE] * len(counts),
        "samples": [samples for _, _, _, samples in counts],
        **position(len(counts), **where),
    }


def metrics(service: str, points: Sequence[tuple[str, float, float]], setup: int = 0) -> Columns:
    return {
        "service": [service] * len(points),
        "metric": [metric for metric, _, _ in points],
        "setup": [setup] * len(points),
        "time": [time for _, time, _ in points],
        "value": [value for _, _, value in points],
        **position(len(points)),
    }


def requests(service: str, counts: Sequence[tuple[str, str, float, int]], **where: Any) -> Columns:
    """Rows of requests by release and type in periods of half a minute, at seconds after T0."""
    size = len(counts)
    return {
        "service": [service] * size,
        "release": [release for release, _, _, _ in counts],
        "type": [name for _, name, _, _ in counts],
        "window": [T0 + at for _, _, at, _ in counts],
        "width_s": [MINUTE / 2] * size,
        "requests": [many for _, _, _, many in counts],
        **{f"responses_{each}": [0] * size for each in RESPONSE_CLASSES},
        "times": [{-3: many, 700: 1} for _, _, _, many in counts],
        **position(size, **where),
    }


def change(service: str, number: str, time: float, **given: Any) -> Columns:
    row = {
        **{"id": number, "service": service, "time": time, "title": f"change {number}", "author": "Ada"},
        **{"summary": "", "files": ["a.py", "b.py"], "subroutines": ["a.f"], "gates": [], "content": ""},
        **given,
    }
    return {name: [value] for name, value in row.items()}


def offsets(store: Store, table: CountTable, stream: str, topic: str = "profiles") -> dict[int, int]:
    """Return the last offset of each partition of a topic."""
    found = store.extents([table], stream)[table]
    return {partition: extent.last_offset for (log, partition), extent in found.items() if log == topic}


def total_samples(store: Store, service: str) -> float:
    return float(store.series(SeriesQuery("gcpu", service, T0, T0 + 100 * MINUTE, MINUTE)).samples.sum())
