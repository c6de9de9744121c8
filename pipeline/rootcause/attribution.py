"""The gCPU attribution of a regression to changes (FBDetect §5.4.9, Table 4), with its uncertainty."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray, StackMatrix
from pipeline.stacks.index import holding_any, share_changes
from pipeline.stacks.labels import MODULE, series_of

_MEDIAN_CHI2 = 0.4549
"""Median of chi-squared with one degree of freedom."""


@dataclass(frozen=True, slots=True)
class AttributionConfig:
    """When attribution counts as more than noise."""

    errors: float = 3.0  # standard errors that a change's share of the rise must exceed: one-sided 0.00135
    min_count: float = 10.0  # samples on both sides together from which a stack tells of the noise


@dataclass(frozen=True, slots=True)
class Attribution:
    """How much of a regression the subroutines that a change modified explain.

    ``fraction`` is L/R of the paper, ``error`` its standard error. ``nearness`` is the same sum of rises
    with each stack divided by its distance: 1 where it ends in a modified frame, 1/2 where one frame stands
    below it, and so on. ``rank`` is how many subroutines of the service come as near, 1 for the nearest of
    all; ``chance`` the probability that one of as many, drawn from the service's, would, and 1 where L is no
    more than noise. As many are those that occur in the service's stacks: tests, and code that never runs,
    could not have come near.
    """

    fraction: float
    error: float
    nearness: float
    rank: int
    chance: float

    @property
    def counted(self) -> float:
        """The fraction between 0 and 1, 0 where it is no more than noise."""
        return min(max(self.fraction, 0.0), 1.0) if self.chance < 1 else 0.0


NO_PART = Attribution(fraction=0.0, error=0.0, nearness=0.0, rank=1, chance=1.0)
"""Of a change that modifies nothing that runs, whatever the stacks show."""


def attributed_fraction(
    matrix: StackMatrix, regressed: BoolArray, subroutines: Collection[str]
) -> float | None:
    """Return L/R: the fraction of a regression from stacks that hold a modified subroutine.

    R is the rise of the regressed series; L the rise of those of its stacks that also hold one of
    ``subroutines``. In the paper's Table 4 a change of A and E explains 80 % of B's regression.

    Args:
        matrix: Stack counts before and after the change point.
        regressed: (stacks,) which stacks hold the regressed series.
        subroutines: Names that the change modified.

    Returns:
        The fraction, above 1 where other stacks fell, negative where the change's stacks fell; None where
        the stacks show no rise that could be attributed.
    """
    rise = share_changes(matrix)
    whole = float(rise[regressed].sum())
    if whole <= 0:
        return None
    touched = holding_any(matrix.stacks, set(subroutines))
    return float(rise[regressed & touched].sum()) / whole


class StackIndex:
    """Which subroutine stands where in which stack: what attributing many changes asks again and again."""

    def __init__(self, matrix: StackMatrix) -> None:
        self.matrix = matrix
        self.rise: FloatArray = share_changes(matrix)
        self.labels: dict[str, int] = {}
        places: dict[tuple[int, int], int] = {}  # (label, stack) → frames below the deepest such frame
        for column, stack in enumerate(matrix.stacks):
            below = 0
            for label in reversed(stack):
                if series_of(label)[0] == "subroutine":
                    row = self.labels.setdefault(label, len(self.labels))
                    places.setdefault((row, column), below)
                    below += 1
        keys = np.array(list(places), dtype=np.int64).reshape(len(places), 2)
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        self.rows: IntArray = keys[order, 0]
        self.columns: IntArray = keys[order, 1]
        self.near: FloatArray = 1.0 / (1.0 + np.array(list(places.values()), dtype=np.float64)[order])
        self._first = np.searchsorted(self.rows, np.arange(len(self.labels) + 1))
        self._owners = frozenset(label.rpartition(".")[0] for label in self.labels)

    def nearest(self, subroutines: Collection[str]) -> FloatArray:
        """Return how near each stack's end a frame of ``subroutines`` stands, 0 without: (stacks,)."""
        found = np.zeros(len(self.matrix.stacks))
        for name in subroutines:
            row = self.labels.get(name)
            if row is not None:
                part = slice(self._first[row], self._first[row + 1])
                np.maximum.at(found, self.columns[part], self.near[part])
        return found

    def known(self, subroutines: Collection[str]) -> int:
        """Return how many of ``subroutines`` occur in any stack."""
        return sum(name in self.labels for name in set(subroutines))

    def are_definitions(self, subroutines: Collection[str]) -> bool:
        """Tell whether all of ``subroutines`` are bodies of modules and classes that no stack holds.

        They ran at import. What reads a constant or an attribute that they define, stacks do not tell.
        """
        return all(
            name not in self.labels and (name in self._owners or name.rpartition(".")[2] == MODULE)
            for name in subroutines
        )

    def nearness_of_all(self, regressed: BoolArray) -> FloatArray:
        """Return the rise of regressed stacks, each divided by its distance, by label: (labels,)."""
        weights = np.where(regressed[self.columns], self.rise[self.columns] * self.near, 0.0)
        return np.bincount(self.rows, weights, minlength=len(self.labels)).astype(np.float64, copy=False)


def attribute(
    index: StackIndex,
    regressed: BoolArray,
    changes: Sequence[Collection[str]],
    config: AttributionConfig | None = None,
) -> tuple[Attribution, ...] | None:
    """Attribute a regression to each of several changes.

    The variance of a rise is that of two binomial shares, times the over-dispersion that the stacks outside
    the regression show (the median of their squared rises in standard errors, which a few true changes
    among them do not move).

    Args:
        index: Of the stack counts before and after the change point.
        regressed: (stacks,) which stacks hold the regressed series.
        changes: The subroutines that each change modified.
        config: Settings.

    Returns:
        One for each change; None where the stacks show no rise beyond noise that could be attributed.
    """
    config = config or AttributionConfig()
    variance = _variances(index.matrix) * _dispersion(index, ~regressed, config)
    whole, spread = float(index.rise[regressed].sum()), float(variance[regressed].sum())
    if whole <= config.errors * spread**0.5 or whole <= 0:
        return None
    background = np.sort(index.nearness_of_all(regressed) / whole)
    found = []
    for subroutines in changes:
        nearest = index.nearest(subroutines)
        touched = regressed & (nearest > 0)
        part, noise = float(index.rise[touched].sum()), float(variance[touched].sum())
        rest = whole - part
        # The delta method on L/(L + rest), whose two sums share no stack.
        error = (rest**2 * noise + part**2 * (spread - noise)) ** 0.5 / whole**2
        near = float((index.rise * nearest)[touched].sum()) / whole
        told = part > config.errors * noise**0.5 and near > 0
        above = len(background) - int(np.searchsorted(background, near * (1 - 1e-9)))
        rank = max(above, 1)
        chance = _chance(rank / (len(background) + 1), index.known(subroutines)) if told else 1.0
        found.append(Attribution(part / whole, error, near, rank, chance))
    return tuple(found)


def _chance(of_one: float, subroutines: int) -> float:
    """Return how likely one of so many subroutines is to do what each does with probability ``of_one``."""
    return float(-np.expm1(subroutines * np.log1p(-of_one))) if of_one < 1 else 1.0


def _variances(matrix: StackMatrix) -> FloatArray:
    """Return the sampling variance of each stack's rise: (stacks,)."""
    totals = matrix.total_before + matrix.total_after
    if not matrix.total_before or not matrix.total_after:
        return np.zeros(len(matrix.stacks))
    share = (matrix.before + matrix.after) / totals
    return share * (1 - share) * (1 / matrix.total_before + 1 / matrix.total_after)


def _dispersion(index: StackIndex, others: BoolArray, config: AttributionConfig) -> float:
    """Return by what the stacks outside a regression vary more than sampling explains, 1 at least.

    Where a regression takes more of the whole, every other share shrinks alike: that is not noise.
    """
    matrix = index.matrix
    told = others & (matrix.before + matrix.after >= config.min_count)
    left = float(matrix.before[others].sum())
    if not told.any() or not left or not matrix.total_after:
        return 1.0
    before, after = matrix.before / matrix.total_before, matrix.after / matrix.total_after
    shrunk = float(after[others].sum() / before[others].sum())
    squares = (after - shrunk * before)[told] ** 2 / _variances(matrix)[told]
    return max(1.0, float(np.median(squares)) / _MEDIAN_CHI2)
