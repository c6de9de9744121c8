"""One scan: a matrix of series in, the candidates among them out (FBDetect §5.4.1, short-term path)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.detect.change_point import ChangePointConfig, find_change_points
from pipeline.model import Candidate, Direction, FloatArray, SeriesMatrix


@dataclass(frozen=True, slots=True)
class Windows:
    """How a matrix divides into windows (FBDetect Figure 11), as indexes of columns."""

    analysis: int  # the historical window ends, the analysis window begins
    extended: int  # the analysis window ends, the extended window begins; equals ``end`` without one
    end: int


def values_and_weights(matrix: SeriesMatrix) -> tuple[FloatArray, FloatArray]:
    """Return levels (series, windows) and what each point weighs (broadcastable); no data weighs 0.

    A gCPU ratio's variance is inverse to the samples it was taken from, so it weighs as many.
    """
    if matrix.kinds and matrix.kinds[0] == "service":
        return matrix.samples, np.isfinite(matrix.samples).astype(np.float64)
    values = np.divide(
        matrix.samples, matrix.totals, out=np.full(matrix.samples.shape, np.nan), where=matrix.totals > 0
    )
    return values, matrix.totals


def find_candidates(
    matrix: SeriesMatrix,
    windows: Windows,
    *,
    direction: Direction = "up",
    config: ChangePointConfig | None = None,
    min_history: float = 0.5,
) -> tuple[Candidate, ...]:
    """Find the series whose mean changed for the worse in the analysis window.

    A change point is looked for where the historical and the analysis window leave enough points on either
    side. The extended window takes no part in it: it is there to confirm later what was found without it.

    Args:
        matrix: All series of a service.
        windows: Where the analysis and the extended window begin.
        direction: Which way is worse.
        config: Settings of the change-point detector.
        min_history: Share of the historical window that must have data: the baseline of a service that has
            only just appeared is its start-up.

    Returns:
        One candidate for each series that rejects "one mean throughout", in the matrix's order.
    """
    config = config or ChangePointConfig()
    values, weights = values_and_weights(matrix)
    weights = np.broadcast_to(weights, values.shape)
    found = find_change_points(
        values[:, : windows.extended],
        weights[:, : windows.extended],
        first=windows.analysis,
        last=windows.extended - 1,
        config=config,
    )
    worse = found.after > found.before if direction == "up" else found.after < found.before
    known = (weights[:, : windows.analysis] > 0).mean(axis=1) >= min_history
    chosen = np.flatnonzero(known & (found.index >= 0) & (found.p_value < config.significance) & worse)
    return tuple(
        Candidate(
            metric_kind=matrix.kinds[i],
            metric=matrix.names[i],
            kind="short_term",
            change_time=matrix.start + float(found.index[i]) * matrix.resolution_s,
            before=float(found.before[i]),
            after=float(found.after[i]),
            p_value=float(found.p_value[i]),
            statistic=float(found.statistic[i]),
        )
        for i in chosen.tolist()
    )
