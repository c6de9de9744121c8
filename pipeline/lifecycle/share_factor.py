"""The factor by which all shares of a service have moved between two spans.

A subroutine whose share fell back may not have changed at all: the rest of the service grew. So the shares of
the service's largest subroutines are compared, as they were just before a regression and as they are now.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.detect.share_normalisation import ShareNormalisationConfig, with_share_factor
from pipeline.lifecycle.state import Series
from pipeline.model import SeriesMatrix


def largest_subroutines(matrix: SeriesMatrix) -> list[Series]:
    """Return the subroutines with most samples in a matrix of one window, the largest first."""
    order = np.argsort(-matrix.samples[:, 0], kind="stable").tolist()
    names: list[Series] = [
        (matrix.kinds[i], matrix.names[i]) for i in order if matrix.kinds[i] == "subroutine"
    ]
    return names[: ShareNormalisationConfig().most_series]


def share_factor(then: SeriesMatrix, now: SeriesMatrix) -> float:
    """Return what the shares of most series were multiplied by; 1 where too few are known.

    Args:
        then: Subroutines in one window, before.
        now: The same subroutines in one window as long; one without a sample may be missing in either.
    """
    columns: dict[Series, list[float]] = {}
    for column, matrix in enumerate((then, now)):
        for kind, name, count in zip(matrix.kinds, matrix.names, matrix.samples[:, 0].tolist(), strict=True):
            columns.setdefault((kind, name), [0.0, 0.0])[column] = count
    both = replace(
        then,
        kinds=tuple("subroutine" for _ in columns),
        names=tuple(name for _, name in columns),
        samples=np.array(list(columns.values())).reshape(len(columns), 2),
        totals=np.concatenate([then.totals, now.totals]),
    )
    share_factor = with_share_factor(both, history=1).share_factor
    return 1.0 if share_factor is None else float(share_factor[1])
