"""Series and stacks of one service as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

from pipeline.model.arrays import FloatArray
from pipeline.model.metric_kind import MetricKind

Direction = Literal["up", "down"]
"""The way in which a regression moves: a rise in gCPU, a drop in throughput."""


Detector = Literal["short_term", "long_term", "kdd2018"]
"""What looks for change points: FBDetect §5.4.2, §5.4.5, or the scaled CUSUM of the KDD 2018 paper."""


class SeriesKey(NamedTuple):
    """What names a series within its service, whatever store, stack or message it stands in."""

    kind: MetricKind
    name: str


@dataclass(frozen=True, slots=True)
class SharedVariancePrior:
    """What the noise of a service's gCPU series is like at each level, and what that says of one of them."""

    log_levels: FloatArray  # (knots,) ascending
    log_variances: FloatArray  # (knots,) of a mean of exposure 1, see detect.noise
    degrees_of_freedom: float  # degrees of freedom that it is worth to each series


@dataclass(frozen=True, slots=True)
class SeriesMatrix:
    """Series × windows of one service, gathered for a scan.

    For gCPU ``samples[i, j]`` of ``totals[j]`` samples held series i in window j, and a window with a total
    of 0 has no data. For service-level metrics ``samples`` holds the mean value of each window, ``totals``
    is 1, and a window without points is NaN.
    """

    start: float
    resolution_s: float
    kinds: tuple[MetricKind, ...]  # (series,)
    names: tuple[str, ...]  # (series,)
    samples: FloatArray  # (series, windows)
    totals: FloatArray  # (windows,)
    share_factor: FloatArray | None = None  # (windows,) by which all shares moved: detect.share_normalisation
    noise: SharedVariancePrior | None = None  # of all the service's series: detect.noise.shared_prior

    @property
    def series(self) -> tuple[SeriesKey, ...]:
        """The keys of the rows: (series,)."""
        return tuple(map(SeriesKey, self.kinds, self.names))

    def moments(self, interval: tuple[float, float] | None, first: int = 0) -> tuple[float, float] | None:
        """Return the times of two edges of windows, counted from the first; None if there is no interval."""
        if interval is None:
            return None
        begin, end = (self.start + (first + edge) * self.resolution_s for edge in interval)
        return begin, end


@final
@dataclass(frozen=True, slots=True)
class StackMatrix:
    """Distinct stacks of one service with their sample counts in two spans of time, before and after.

    ``total_before`` and ``total_after`` count all the service's samples in the same spans, so that a
    quotient of the two is a gCPU ratio.
    """

    stacks: tuple[tuple[str, ...], ...]  # root first
    before: FloatArray  # (stacks,)
    after: FloatArray  # (stacks,)
    total_before: float
    total_after: float
