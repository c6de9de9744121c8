"""Noise that the subroutines of a service have in common, estimated once for a scan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.analysis.detect.count_histories import CountHistories
from pipeline.analysis.detect.noise.shared_prior import fit_shared_prior
from pipeline.analysis.detect.short_term import ScanConfig, WindowIndexes, count_histories
from pipeline.model import SeriesMatrix
from pipeline.model.metric_kind import is_gcpu


def with_shared_prior(
    matrix: SeriesMatrix,
    windows: WindowIndexes,
    *,
    config: ScanConfig | None = None,
    histories: CountHistories | None = None,
) -> SeriesMatrix:
    """Return gCPU series with a prior of their noise, fitted to subroutines of all levels of gCPU.

    The choice of subroutines does not depend on the order of rows. A service with too few of them is returned
    without a prior, and so are service-level metrics, which have no noise in common.
    """
    config = config or ScanConfig()
    if not matrix.kinds or not is_gcpu(matrix.kinds[0]):
        return matrix
    counts = matrix.samples[:, : windows.analysis].sum(axis=1)
    # As many blocks as the noise is measured on: see pipeline.analysis.statistics.long_run_noise.batch_means.
    blocks = max(windows.analysis / max(windows.end - windows.analysis, 1), config.normalise.noise.min_blocks)
    enough = counts >= config.shared_prior.min_samples * blocks
    plain = np.array([kind == "subroutine" for kind in matrix.kinds], dtype=np.bool_)
    usable = np.flatnonzero(plain & enough)
    if len(usable) < config.shared_prior.min_series:
        return matrix
    ranked = sorted(usable.tolist(), key=lambda row: (counts[row], matrix.names[row]))
    ranks = np.linspace(0, len(ranked) - 1, min(len(ranked), config.shared_prior.most_series)).round()
    rows = np.sort([ranked[int(rank)] for rank in ranks])
    histories = histories or count_histories(matrix, windows, config)
    if histories is None:
        return matrix
    variance, degrees = histories.sample_noise(rows)
    return replace(
        matrix, noise=fit_shared_prior(histories.scale[rows], variance, degrees, config.shared_prior)
    )
