"""Protocol of the data of one service that a store of arrays loads."""

from __future__ import annotations

from typing import Protocol

from pipeline.model import (
    Change,
    FloatArray,
    MetricPoints,
    RequestCounts,
    SeriesKey,
    Silence,
    Stratum,
    StratumCounts,
)
from pipeline.storage.points import Frames


class ServiceArrays(Protocol):
    """Data of one service to load; pipeline.backtest.dataset.Dataset is an implementation."""

    @property
    def service(self) -> str:
        """Name of the service."""

    @property
    def start(self) -> float:
        """Start of the first window and of the first stack window, epoch seconds."""

    @property
    def window_s(self) -> float:
        """Width of a window."""

    @property
    def stack_window_s(self) -> float:
        """Width of a stack window."""

    @property
    def series(self) -> tuple[SeriesKey, ...]:
        """(series,)."""

    @property
    def samples(self) -> FloatArray:
        """(series, windows) counts."""

    @property
    def totals(self) -> FloatArray:
        """(windows,) all samples of the service."""

    @property
    def stacks(self) -> tuple[Frames, ...]:
        """(stacks,) root first."""

    @property
    def stack_samples(self) -> FloatArray:
        """(stacks, stack windows)."""

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """(strata,) who sent the samples; none where that is not known."""

    @property
    def stratum_totals(self) -> FloatArray:
        """(strata, windows) all samples."""

    @property
    def stratum_samples(self) -> StratumCounts | None:
        """Counts of series by stratum and stack window; None where they are not known."""

    @property
    def metrics(self) -> tuple[MetricPoints, ...]:
        """Service-level metrics."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Deployed changes."""

    @property
    def requests(self) -> tuple[RequestCounts, ...]:
        """Requests by type and period."""

    @property
    def silences(self) -> tuple[Silence, ...]:
        """Expectations and mutes."""
