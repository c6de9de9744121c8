"""What one service did over a span of time, as arrays: what a backtest reads and a simulation writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.model import Change, FloatArray, MetricKind, MetricPoints


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
    stacks: tuple[tuple[str, ...], ...]  # root first, with annotations as in pipeline.gcpu.labels
    stack_samples: FloatArray  # (stacks, stack windows)
    metrics: tuple[MetricPoints, ...]
    changes: tuple[Change, ...]
    truth: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)  # further keys of dataset.json
