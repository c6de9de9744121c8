"""The gCPU attribution of a regression to changes (FBDetect §5.4.9, Table 4), with its uncertainty."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.stacks import StackIndex
from pipeline.analysis.statistics.robust import overdispersion
from pipeline.counting.names import forms_of
from pipeline.model import BoolArray, FloatArray, Int32Array, StackMatrix
from pipeline.model.frames import MODULE


@dataclass(frozen=True, slots=True)
class AttributionConfig:
    """Criteria for attribution beyond noise."""

    errors: float = 3.0  # standard errors that a change's share of the rise must exceed: one-sided 0.00135
    min_count: float = 10.0  # samples on both sides together from which a stack shows the noise


@dataclass(frozen=True, slots=True)
class Attribution:
    """Share of a regression that the subroutines modified by a change explain.

    ``fraction`` is L/R of the paper, ``error`` its standard error. ``nearness`` is the same sum of rises with
    each stack divided by its distance: 1 where it ends in a modified frame, 1/2 where one frame stands below
    it, and so on. ``rank`` is how many subroutines of the service come as near, 1 for the nearest of all;
    ``chance`` the probability that one of as many, drawn from the service's, would, and 1 where L is no more
    than noise. Only modified subroutines that occur in the service's stacks are counted: tests, and code that
    never runs, could not have come near.
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
"""Attribution of a change that modifies nothing that runs, whatever the stacks show."""


@dataclass(frozen=True, slots=True, eq=False)
class CallDistances:
    """Distances of subroutines from the ends of stacks, computed once for all changes.

    Of a subroutine that recurs in a stack the last element counts. Entries are ordered by label, then stack.
    """

    index: StackIndex
    label: Int32Array  # (entries,)
    stack: Int32Array  # (entries,)
    nearness: FloatArray  # (entries,) 1 / (1 + subroutines below it in the stack)
    owners: frozenset[str]  # modules and classes of the subroutines

    def nearest(self, subroutines: Collection[str]) -> FloatArray:
        """Return the nearness of ``subroutines`` to each stack's end, 0 in stacks without them: (stacks,)."""
        nearest = np.zeros(self.index.stacks)
        for name in self._known(subroutines):
            number = self.index.labels[name]
            # Use the labels' own type: numpy would convert all labels for each query.
            span = np.array([number, number + 1], dtype=self.label.dtype)
            entries = slice(*np.searchsorted(self.label, span).tolist())
            np.maximum.at(nearest, self.stack[entries], self.nearness[entries])
        return nearest

    def known(self, subroutines: Collection[str]) -> int:
        """Return how many of ``subroutines`` occur in any stack."""
        return len(self._known(subroutines))

    def are_definitions(self, subroutines: Collection[str]) -> bool:
        """Return whether all of ``subroutines`` are bodies of modules and classes that no stack holds.

        Such bodies ran at import. Stacks do not show which code reads the constants and attributes they
        define.
        """
        return not self._known(subroutines) and all(
            name in self.owners or name.rpartition(".")[2] == MODULE for name in subroutines
        )

    def nearness_of_all(self, regressed: BoolArray) -> FloatArray:
        """Return the rise of regressed stacks, each divided by its distance: (subroutines,)."""
        rise = np.where(regressed[self.stack], self.index.rise[self.stack] * self.nearness, 0.0)
        sums = np.bincount(self.label, rise, minlength=len(self.index.names))
        return sums[self.index.subroutine].astype(np.float64, copy=False)

    def _known(self, subroutines: Collection[str]) -> set[str]:
        labels = self.index.labels
        forms = (form for name in subroutines for form in forms_of(name))
        return {form for form in forms if form in labels and self.index.subroutine[labels[form]]}


def call_distances(index: StackIndex) -> CallDistances:
    """Measure how near each stack's end its subroutines stand; annotations are no calls."""
    is_subroutine = index.subroutine[index.label]
    passed = np.concatenate([[0], np.cumsum(is_subroutine, dtype=np.int32)], dtype=np.int32)
    last = index.by_label[(index.last & is_subroutine)[index.by_label]]
    stack = index.stack[last]
    callees = passed[index.starts[stack + 1]] - passed[last + 1]
    names = (name for name, named in zip(index.names, index.subroutine.tolist(), strict=True) if named)
    return CallDistances(
        index=index,
        label=index.label[last],
        stack=stack,
        nearness=np.asarray(1.0 / (1.0 + callees), dtype=np.float64),
        owners=frozenset(name.rpartition(".")[0] for name in names),
    )


def attribute(
    distances: CallDistances,
    regressed: BoolArray,
    changes: Sequence[Collection[str]],
    config: AttributionConfig | None = None,
) -> tuple[Attribution, ...] | None:
    """Attribute a regression to each of several changes.

    The variance of a rise is that of two binomial shares, times the over-dispersion that the stacks outside
    the regression show (the median of their squared rises in standard errors, which a few true changes
    among them do not move).

    Args:
        distances: Of the subroutines in the stacks before and after the change point.
        regressed: (stacks,) which stacks hold the regressed series.
        changes: The subroutines that each change modified.
        config: Settings.

    Returns:
        One for each change; None where the stacks show no rise beyond noise that could be attributed.
    """
    config = config or AttributionConfig()
    index = distances.index
    variance = _variances(index.matrix) * _dispersion(index, ~regressed, config)
    whole, spread = float(index.rise[regressed].sum()), float(variance[regressed].sum())
    if whole <= config.errors * spread**0.5 or whole <= 0:
        return None
    background = np.sort(distances.nearness_of_all(regressed) / whole)
    attributions = []
    for subroutines in changes:
        nearest = distances.nearest(subroutines)
        touched = regressed & (nearest > 0)
        part, noise = float(index.rise[touched].sum()), float(variance[touched].sum())
        rest = whole - part
        # The delta method on L/(L + rest), whose two sums share no stack.
        error = (rest**2 * noise + part**2 * (spread - noise)) ** 0.5 / whole**2
        nearness = float((index.rise * nearest)[touched].sum()) / whole
        significant = part > config.errors * noise**0.5 and nearness > 0
        above = len(background) - int(np.searchsorted(background, nearness * (1 - 1e-9)))
        rank = max(above, 1)
        count = distances.known(subroutines)
        chance = _chance(rank / (len(background) + 1), count) if significant else 1.0
        attributions.append(Attribution(part / whole, error, nearness, rank, chance))
    return tuple(attributions)


def _chance(of_one: float, subroutines: int) -> float:
    """Return the probability that any of several subroutines does what one does with ``of_one``."""
    return float(-np.expm1(subroutines * np.log1p(-of_one))) if of_one < 1 else 1.0


def _variances(matrix: StackMatrix) -> FloatArray:
    """Return the sampling variance of each stack's rise: (stacks,)."""
    totals = matrix.total_before + matrix.total_after
    if not matrix.total_before or not matrix.total_after:
        return np.zeros(len(matrix.stacks))
    share = (matrix.before + matrix.after) / totals
    return share * (1 - share) * (1 / matrix.total_before + 1 / matrix.total_after)


def _dispersion(index: StackIndex, outside: BoolArray, config: AttributionConfig) -> float:
    """Return the over-dispersion of stacks outside a regression, relative to sampling, 1 at least.

    Where a regression takes more of the whole, every other share shrinks by one factor: that is not noise.
    """
    matrix = index.matrix
    usable = outside & (matrix.before + matrix.after >= config.min_count)
    left = float(matrix.before[outside].sum())
    if not usable.any() or not left or not matrix.total_after:
        return 1.0
    before, after = matrix.before / matrix.total_before, matrix.after / matrix.total_after
    shrunk = float(after[outside].sum() / before[outside].sum())
    squares = (after - shrunk * before)[usable] ** 2 / _variances(matrix)[usable]
    return overdispersion(squares)
