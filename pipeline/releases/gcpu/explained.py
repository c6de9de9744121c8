"""Changes that follow from others: callers rise with their callees, and other series lose share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray

_EXPLAINED = 0.5
"""Largest share of a change that may remain unexplained where others explain it."""

_BY_CHANCE = 2.0
"""Largest residual, in standard errors, of a change that others explain."""

_AS_MUCH = 0.01
"""Relative shortfall, from the best explanation, within which another change explains as much."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Significant changes of series, up and down: (series,) each."""

    change: FloatArray  # of gCPU
    error: FloatArray
    share: FloatArray  # gCPU
    depth: FloatArray  # elements from the root
    overlap: FloatArray  # (series, series) share of the row's samples that hold the column's series


def explained_by(changes: Changes) -> IntArray:
    """Return the index of the change that explains each change, or its own index: (series,).

    A series X that costs δ more raises another one, C, by δ (P(C | X) - C) / (1 - X): callers rise by what
    they hold of X, and what has no part in it loses its share of the whole. What X calls may have its part
    in it, or none where X itself does more: what is nearer holds. The change that explains the most of all
    is taken first, of those that explain as much the deepest, until less than half of each is left, or what
    chance does.
    """
    explanation = np.arange(len(changes.change))
    left, roots = changes.change.copy(), list[int]()
    follows = np.zeros((0, len(explanation)))
    while True:
        enough = np.maximum(_EXPLAINED * np.abs(changes.change), _BY_CHANCE * changes.error)
        still = np.flatnonzero(np.abs(left) > enough)
        still = still[~np.isin(still, roots)]
        if not len(still):
            break
        would = _following(changes, left, still)
        gain = ((left**2 - (left - would) ** 2) / changes.error**2).sum(axis=1)
        best = still[gain.max() - gain <= _AS_MUCH * abs(gain.max())]
        row = int(best[changes.depth[best].argmax()])
        roots.append(row)
        follows = np.vstack([follows, would[still == row]])
        left = left - follows[-1]
    if not roots:
        return explanation
    unexplained = np.setdiff1d(explanation, roots)
    explanation[unexplained] = np.array(roots, dtype=np.int64)[np.abs(follows[:, unexplained]).argmax(axis=0)]
    return explanation


def _following(changes: Changes, left: FloatArray, rows: IntArray) -> FloatArray:
    """Return by how much all series change with some: (rows, series)."""
    more = left[rows] / np.maximum(1.0 - changes.share[rows], 1e-9)
    with_part = more[:, None] * (changes.overlap[rows] - changes.share)
    without = np.where(changes.depth > changes.depth[rows, None], -more[:, None] * changes.share, with_part)
    return np.where(np.abs(left - with_part) <= np.abs(left - without), with_part, without)
