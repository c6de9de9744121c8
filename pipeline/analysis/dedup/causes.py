"""What may have made regressions rise, through stacks and changes, and whether two of them have it in common.

``cause`` and ``caller`` of the features by which regressions are merged (see
``pipeline.analysis.dedup.pairs``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.dedup.rules import ROUNDING, Feature, PairwiseConfig
from pipeline.analysis.stacks import (
    StackIndex,
    explained_shares,
    measure_rises,
    membership,
    shares_in_step,
    sum_descendant_sets,
)
from pipeline.model import FloatArray, IntArray, SeriesKey
from pipeline.model.frames import element, series_of


@dataclass(frozen=True, slots=True)
class Causes:
    """What stands at or below a series in most of its rise: each with the share of the rise."""

    subroutines: Mapping[str, float]
    changes: Mapping[str, float]  # by id, of those deployed just before it


def causes_of(
    index: StackIndex,
    series: Sequence[SeriesKey],
    modified: Mapping[str, Sequence[str]],
    deployed: Sequence[Collection[str]],
    config: PairwiseConfig | None = None,
) -> list[Causes]:
    """Return what may have made each series rise.

    Args:
        index: Of the stacks before and after.
        series: (n,) of gCPU, or others, of which nothing is found.
        modified: The subroutines that each change modified, by its id.
        deployed: (n,) ids of the changes deployed just before each began to rise: of all that were deployed
            at any time, some modified any two subroutines.
        config: Settings.
    """
    config = config or PairwiseConfig()
    rises = measure_rises(index, series)
    ids = sorted(set().union(*deployed))
    through = sum_descendant_sets(index, rises.rows, [modified[one] for one in ids])
    is_subroutine = np.array([series_of(name).kind == "subroutine" for name in index.names], dtype=np.bool_)
    found = []
    for position, (row, size) in enumerate(zip(rises.rows.tolist(), rises.size.tolist(), strict=True)):
        names, rise = rises.through(position)
        asked = is_subroutine[names] | (names == row)
        span = slice(through.indptr[position], through.indptr[position + 1])
        subroutines = _most_of(index.names, names[asked], rise[asked], size, config.most)
        if size:
            subroutines[index.names[row]] = 1.0
        by_change = _most_of(ids, through.indices[span], through.data[span], size, config.most)
        before = deployed[position]
        if not size:  # no stack shows the rise: what modified the subroutine itself may have made it
            label = element(*series[position])
            by_change = {change: 1.0 for change in before if label in modified[change]}
        found.append(Causes(subroutines, {one: share for one, share in by_change.items() if one in before}))
    return found


def cause_similarities(
    index: StackIndex,
    series: Sequence[SeriesKey],
    causes: Sequence[Causes],
) -> dict[Feature, FloatArray]:
    """Return what stacks say of whether regressions have one cause: ``cause`` and ``caller``.

    Args:
        index: Of the stacks before and after.
        series: (n,)
        causes: (n,) from ``causes_of``.
    """
    matrix = index.matrix
    holds, change = membership(index, series), index.rise
    in_step = shares_in_step(holds, matrix.before / max(matrix.total_before, 1.0), change)
    explained = np.minimum(explained_shares(holds, change), in_step)
    # A caller that something below explains is no cause itself.
    itself = [not cause.subroutines.keys() - {element(*s)} for s, cause in zip(series, causes, strict=True)]
    callers = np.where(np.array(itself)[None, :], explained, 0.0)
    common = np.maximum(
        _common([cause.subroutines for cause in causes]), _common([cause.changes for cause in causes])
    )
    return {"cause": common, "caller": np.maximum(callers, callers.T)}


def _most_of(
    names: Sequence[str], positions: IntArray, rises: FloatArray, whole: float, least: float
) -> dict[str, float]:
    """Return the things through which most of a rise comes, each with its share."""
    if not whole:
        return {}
    shares = rises / whole
    most = shares >= least - ROUNDING
    return {
        names[position]: min(share, 1.0)
        for position, share in zip(positions[most].tolist(), shares[most].tolist(), strict=True)
    }


def _common(descendants: Sequence[Mapping[str, float]]) -> FloatArray:
    holders: dict[str, list[int]] = {}
    for position, things in enumerate(descendants):
        for thing in things:
            holders.setdefault(thing, []).append(position)
    similarity = np.zeros((len(descendants), len(descendants)))
    for thing, rows in holders.items():
        shares = np.array([descendants[row][thing] for row in rows])
        block = np.ix_(rows, rows)
        similarity[block] = np.maximum(similarity[block], np.minimum.outer(shares, shares))
    return similarity
