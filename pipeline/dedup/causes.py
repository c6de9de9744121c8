"""What may have made regressions rise, through stacks and changes, and whether two of them have it in common.

``cause`` and ``caller`` of the features by which regressions are merged (see pipeline.dedup.across_scans).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array

from pipeline.dedup.rules import Feature, PairwiseConfig
from pipeline.frames import element, series_of
from pipeline.model import FloatArray, IntArray
from pipeline.stacks import (
    Series,
    StackIndex,
    alike_shares,
    explained_shares,
    measure_rises,
    membership,
    rows_of,
    shares_given,
    sum_sets_below,
)


@dataclass(frozen=True, slots=True)
class Causes:
    """What stands at or below a series in most of its rise: each with the share of the rise."""

    subroutines: Mapping[str, float]
    changes: Mapping[str, float]  # by id, of those deployed just before it


def causes_of(
    frames: StackIndex,
    series: Sequence[Series],
    modified: Mapping[str, Sequence[str]],
    deployed: Sequence[Collection[str]],
    config: PairwiseConfig | None = None,
) -> list[Causes]:
    """Return what may have made each series rise.

    Args:
        frames: Stack counts before and after, from ``index_stacks``.
        series: (n,) of gCPU, or others, of which nothing is found.
        modified: The subroutines that each change modified, by its id.
        deployed: (n,) ids of the changes deployed just before each began to rise: of all that were deployed
            at any time, some modified any two subroutines.
        config: Settings.
    """
    config = config or PairwiseConfig()
    rises = measure_rises(frames, series)
    ids = sorted(set().union(*deployed))
    through = sum_sets_below(frames, rises.rows, [modified[one] for one in ids])
    is_subroutine = np.array([series_of(name)[0] == "subroutine" for name in frames.names], dtype=np.bool_)
    found = []
    for place, (row, size) in enumerate(zip(rises.rows.tolist(), rises.size.tolist(), strict=True)):
        names, rise = rises.through(place)
        asked = is_subroutine[names] | (names == row)
        span = slice(through.indptr[place], through.indptr[place + 1])
        subroutines = _most_of(frames.names, names[asked], rise[asked], size, config.most)
        if size:
            subroutines[frames.names[row]] = 1.0
        by_change = _most_of(ids, through.indices[span], through.data[span], size, config.most)
        before = deployed[place]
        found.append(Causes(subroutines, {one: share for one, share in by_change.items() if one in before}))
    return found


def cause_similarities(
    frames: StackIndex,
    series: Sequence[Series],
    causes: Sequence[Causes],
    config: PairwiseConfig | None = None,
) -> dict[Feature, FloatArray]:
    """Return what stacks say of whether regressions have one cause: ``cause`` and ``caller``.

    Args:
        frames: Stack counts before and after, from ``index_stacks``.
        series: (n,)
        causes: (n,) from ``causes_of``.
        config: Settings.
    """
    config = config or PairwiseConfig()
    matrix = frames.matrix
    holds, change = membership(frames, series), frames.rise
    level = holds @ (matrix.after / max(matrix.total_after, 1.0))
    explained = np.minimum(explained_shares(holds, change), 1.0)
    alike = alike_shares(holds, matrix.before / max(matrix.total_before, 1.0), change)
    explained = np.where(level < config.rare, explained, np.minimum(explained, alike))
    # A caller that something below explains is no cause itself.
    own = [not cause.subroutines.keys() - {element(*s)} for s, cause in zip(series, causes, strict=True)]
    callers = np.where(np.array(own)[None, :], explained, 0.0)
    callers = _with_all_behind(callers, frames, series, causes, config)
    common = np.maximum(
        _common([cause.subroutines for cause in causes]), _common([cause.changes for cause in causes])
    )
    return {"cause": common, "caller": np.maximum(callers, callers.T)}


def _with_all_behind(
    callers: FloatArray,
    frames: StackIndex,
    series: Sequence[Series],
    causes: Sequence[Causes],
    config: PairwiseConfig,
) -> FloatArray:
    """Let a caller explain no more of a rise than of what is behind that one: (n, n).

    What is below both may have risen in other callers' stacks too, and then this one is not the reason.
    """
    pairs = np.argwhere(callers >= config.most)
    found = callers.copy()
    if not len(pairs):
        return found
    number = {name: place for place, name in enumerate(frames.names)}
    own = np.flatnonzero(frames.first)
    ones = np.ones(len(own))
    holds = coo_array((ones, (frames.label[own], frames.stack[own])), (len(number), len(frames.rise))).tocsr()
    names = sorted({number[name] for one in set(pairs[:, 0].tolist()) for name in causes[one].subroutines})
    others = sorted(set(pairs[:, 1].tolist()))
    weighted = holds[names] * frames.rise[None, :]
    given = (weighted @ holds[rows_of(frames, [series[other] for other in others])].T).toarray()
    shares = shares_given(given, np.asarray(weighted.sum(axis=1))[:, None])
    row, column = ({key: place for place, key in enumerate(keys)} for keys in (names, others))
    for one, other in pairs.tolist():
        behind = [row[number[name]] for name in causes[one].subroutines]
        found[one, other] = min(callers[one, other], float(shares[behind, column[other]].min(initial=1.0)))
    return found


def _most_of(
    names: Sequence[str], places: IntArray, rises: FloatArray, whole: float, least: float
) -> dict[str, float]:
    """Return the things through which most of a rise comes, each with its share."""
    if not whole:
        return {}
    shares = rises / whole
    most = shares >= least
    return {
        names[place]: min(share, 1.0)
        for place, share in zip(places[most].tolist(), shares[most].tolist(), strict=True)
    }


def _common(below: Sequence[Mapping[str, float]]) -> FloatArray:
    holders: dict[str, list[int]] = {}
    for place, things in enumerate(below):
        for thing in things:
            holders.setdefault(thing, []).append(place)
    similarity = np.zeros((len(below), len(below)))
    for thing, rows in holders.items():
        shares = np.array([below[row][thing] for row in rows])
        block = np.ix_(rows, rows)
        similarity[block] = np.maximum(similarity[block], np.minimum.outer(shares, shares))
    return similarity
