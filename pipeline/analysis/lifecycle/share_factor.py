"""The factor by which all shares of a service have moved between two spans.

The share of an unchanged subroutine falls when the rest of the service grows. So the shares of the service's
largest subroutines just before a regression are compared with those of now.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.analysis.detect import share_normalisation
from pipeline.model import SeriesKey, SeriesMatrix


def largest_subroutines(matrix: SeriesMatrix) -> list[SeriesKey]:
    """Return the subroutines with most samples in a matrix of one window, the largest first."""
    order = np.argsort(-matrix.samples[:, 0], kind="stable").tolist()
    series = matrix.series
    subroutines = [series[i] for i in order if series[i].kind == "subroutine"]
    return subroutines[: share_normalisation.ShareNormalisationConfig().most_series]


def share_factor(then: SeriesMatrix, now: SeriesMatrix) -> float:
    """Return the factor by which the shares of most series moved; 1 if too few are known.

    Args:
        then: Subroutines in one window, before.
        now: The same subroutines in one window as long; one without a sample may be missing in either.
    """
    columns: dict[SeriesKey, list[float]] = {}
    for column, matrix in enumerate((then, now)):
        for key, count in zip(matrix.series, matrix.samples[:, 0].tolist(), strict=True):
            columns.setdefault(key, [0.0, 0.0])[column] = count
    both = replace(
        then,
        kinds=tuple(key.kind for key in columns),
        names=tuple(key.name for key in columns),
        samples=np.array(list(columns.values())).reshape(len(columns), 2),
        totals=np.concatenate([then.totals, now.totals]),
    )
    factor = share_normalisation.share_factor(both, history=1)
    return 1.0 if factor is None else float(factor[1])
