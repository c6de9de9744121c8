"""Stacks around a change and at the same hours of earlier days, on one list of stacks.

Everything that decides whether cost has moved is a sum over some of these stacks, so a domain of any kind
is one mask, and its past is the same sum over the other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from pipeline.analysis.cost_shift.daily_noise import (
    DailyNoise,
    Movement,
    fit_daily_noise,
    moving_dispersion,
    sampling_dispersion,
)
from pipeline.analysis.stacks import StackIndex, index_stacks
from pipeline.model import BoolArray, FloatArray, IntArray, StackMatrix

_MANY = 100
"""Stacks from which on their median says what happened to all: of fewer, one change may be the majority."""

Stack = tuple[str, ...]

_ENOUGH = 30.0
"""Samples before from which on a stack's ratio has a meaningful median."""


@dataclass(frozen=True, slots=True, eq=False)
class StackHistory:
    """Shares of all samples before and after; row 0 is the change, the others are earlier days.

    ``share_factor`` is the factor by which each row's shares moved all together: shares add up to one, so a
    regression of 4 % lowers all others by 4 % (``detect.share_normalisation``). It is 1 where there are too
    few stacks.
    """

    index: StackIndex  # of the stacks of all rows
    before: FloatArray  # (1 + days, stacks)
    after: FloatArray  # (1 + days, stacks)
    samples_before: FloatArray  # (1 + days,)
    samples_after: FloatArray  # (1 + days,)
    share_factor: FloatArray  # (1 + days,)
    by_ratio: IntArray  # (usable stacks,) those with samples enough, by after / before of row 0
    dispersion: float  # variance of a count in units of what independent samples make
    daily_noise: DailyNoise
    nearer: FloatArray | None = None  # (before and after, stacks) shares in shorter spans, nearer the change
    nearer_samples: FloatArray | None = None  # (before and after,)

    def share_factor_outside(self, rows: BoolArray) -> float | None:
        """Return the factor by which the change moved the shares of all stacks but some.

        Args:
            rows: (stacks,) what is in question, and left out.

        Returns:
            None where there are too few other stacks.
        """
        chosen = self.by_ratio[~rows[self.by_ratio]]
        if len(chosen) < _MANY:
            return None
        return _middle(self.before[0, chosen], self.after[0, chosen])


def stack_history(
    index: StackIndex,
    days: Sequence[StackMatrix] = (),
    nearer: StackMatrix | None = None,
    earlier: Sequence[StackMatrix] = (),
) -> StackHistory:
    """Join the stacks around a change with those of earlier days.

    Args:
        index: Of the stacks before and after the change.
        days: The same of earlier days, at the same hours, the nearest first; those without samples on either
            side are left out.
        nearer: Stacks in shorter spans before and after the change, within those of the index.
        earlier: Stacks in spans as long as those of the index that follow each other, all before the change:
            of a service too young for days to be compared, they say by how much it moves by itself.
    """
    known = [index.matrix, *(day for day in days if day.total_before and day.total_after)]
    if nearer is not None and not (nearer.total_before and nearer.total_after):
        nearer = None
    rows, positions = _joined(known)
    before, after = np.zeros((2, len(known), len(rows)))
    for day, (each, position) in enumerate(zip(known, positions, strict=True)):
        before[day, position] = each.before / max(each.total_before, 1.0)
        after[day, position] = each.after / max(each.total_after, 1.0)
    samples_before = np.array([max(each.total_before, 1.0) for each in known])
    samples_after = np.array([max(each.total_after, 1.0) for each in known])

    ordered = [
        _by_ratio(b, a, np.flatnonzero((b * n >= _ENOUGH) & (a > 0)))  # what vanished was renamed or removed
        for b, a, n in zip(before, after, samples_before, strict=True)
    ]
    common = np.array([_common(b, a, order) for b, a, order in zip(before, after, ordered, strict=True)])
    whole = _extended(index, tuple(rows))
    expected = before * common[:, None]
    dispersion = max(
        sampling_dispersion(expected, after, samples_before, samples_after),
        moving_dispersion(_movements(index, earlier)) if earlier else 1.0,
    )
    return StackHistory(
        index=whole,
        before=before,
        after=after,
        samples_before=samples_before,
        samples_after=samples_after,
        share_factor=common,
        by_ratio=ordered[0],
        dispersion=dispersion,
        daily_noise=fit_daily_noise(
            whole.sums(expected), whole.sums(after), samples_before, samples_after, dispersion
        ),
        nearer=_nearer_shares(rows, nearer),
        nearer_samples=np.array([nearer.total_before, nearer.total_after]) if nearer else None,
    )


def _joined(matrices: Sequence[StackMatrix]) -> tuple[dict[Stack, int], list[IntArray]]:
    """Return all stacks of matrices, those of the first one first, and where each one's stand among them."""
    rows: dict[Stack, int] = {}
    positions = [
        np.fromiter(
            (rows.setdefault(stack, len(rows)) for stack in matrix.stacks), np.int64, len(matrix.stacks)
        )
        for matrix in matrices
    ]
    return rows, positions


def _extended(index: StackIndex, stacks: tuple[Stack, ...]) -> StackIndex:
    """Return the index of more stacks, of which those of a known index are the first."""
    if len(stacks) == index.stacks:
        return index
    padding = (0, len(stacks) - index.stacks)
    matrix = index.matrix
    before, after = np.pad(matrix.before, padding), np.pad(matrix.after, padding)
    return index_stacks(StackMatrix(stacks, before, after, matrix.total_before, matrix.total_after), index)


def _movements(index: StackIndex, earlier: Sequence[StackMatrix]) -> list[Movement]:
    """Return what labels did around the change, and from span to span before it."""
    matrices = [index.matrix, *earlier]
    rows, positions = _joined(matrices)
    counts = np.zeros((2, len(matrices), len(rows)))
    for number, (matrix, position) in enumerate(zip(matrices, positions, strict=True)):
        counts[0, number, position], counts[1, number, position] = matrix.before, matrix.after
    whole = _extended(index, tuple(rows))
    before, after = whole.sums(counts[0]), whole.sums(counts[1])
    return [
        Movement(before[number], after[number], matrix.total_before, matrix.total_after)
        for number, matrix in enumerate(matrices)
    ]


def _nearer_shares(rows: Mapping[Stack, int], nearer: StackMatrix | None) -> FloatArray | None:
    if nearer is None:
        return None
    shares = np.zeros((2, len(rows)))
    positions = np.fromiter(map(rows.get, nearer.stacks, repeat(-1)), np.int64, len(nearer.stacks))
    known = positions >= 0
    at = positions[known]
    shares[0, at], shares[1, at] = (
        nearer.before[known] / nearer.total_before,
        nearer.after[known] / nearer.total_after,
    )
    return shares


def _common(before: FloatArray, after: FloatArray, order: IntArray) -> float:
    return _middle(before[order], after[order]) if len(order) >= _MANY else 1.0


def _by_ratio(before: FloatArray, after: FloatArray, chosen: IntArray) -> IntArray:
    order: IntArray = chosen[np.argsort(after[chosen] / before[chosen], kind="stable")]
    return order


def _middle(before: FloatArray, after: FloatArray) -> float:
    """Return the median of after / before, ascending in it, a stack weighing as its ratio is certain."""
    weight = np.cumsum(np.sqrt(before))
    at = int(np.searchsorted(weight, weight[-1] / 2))
    return float(after[at] / before[at])
