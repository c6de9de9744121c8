"""Explanation of a cluster of candidates: its causes, and what each makes of every candidate's rise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np

from pipeline.analysis.explain.cause_sets import Reading, find_cause_sets
from pipeline.analysis.explain.decomposition import Decomposition, Layers, cause_amounts, decompose
from pipeline.analysis.explain.moves import find_moves
from pipeline.analysis.explain.noise import dispersion_of_sets
from pipeline.analysis.explain.selection import fit_causes, select_causes
from pipeline.analysis.explain.traffic import ENOUGH, find_entries, traffic_factors
from pipeline.analysis.stacks import StackIndex, usual_factors
from pipeline.model import FloatArray, StackMatrix


@dataclass(frozen=True, slots=True)
class ExplanationConfig:
    """Settings of the explanation."""

    slack: float = 4.0
    """Gain that a cause must bring beyond twice the logarithm of the number of possible ones, which is what
    the best of them brings by chance: a chance of about one in ten that any of a cluster's is."""

    min_days: int = 3  # of two, one on which something else changed would be half


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of what happened to the stacks.

    Args:
        readings: The ways to read it, the plainest first: stacks cannot distinguish them.
        amount: What it adds, as a share of all samples.
        error: Standard error of the amount.
        factor: By what it scales its stacks; NaN for own costs.
        moved_from: What lost as much beside it; None where its cost came from nowhere.
    """

    readings: tuple[Reading, ...]
    amount: float
    error: float
    factor: float
    moved_from: Reading | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The subroutines that it may be, the plainest reading first."""
        return tuple(dict.fromkeys(reading.name for reading in self.readings))


@dataclass(frozen=True, eq=False)  # without slots: what is asked of it is kept
class Explanation:
    """The few causes that turn the stacks before a change into those after it."""

    causes: tuple[Cause, ...]
    index: StackIndex
    layers: Layers
    amounts: FloatArray  # (causes, stacks) samples

    def of(self, label: str) -> Decomposition:
        """Return the parts of the rise of a label."""
        return decompose(self.layers, self.amounts, self.index.holding([label]))

    @cached_property
    def named(self) -> frozenset[str]:
        """All subroutines that some cause may be."""
        return frozenset(name for cause in self.causes for name in cause.names)


def explain(
    index: StackIndex, days: Sequence[StackMatrix], config: ExplanationConfig | None = None
) -> Explanation:
    """Explain what became of the stacks.

    Args:
        index: Of the stacks before and after the change, both sides at their own counts.
        days: Stacks at the same hours of earlier days; what the index does not know counts in totals alone.
        config: Settings.
    """
    config = config or ExplanationConfig()
    before, after = _days(index, days)
    usual = np.ones(index.stacks)
    if len(before) >= config.min_days:
        usual = usual_factors(index, before, after)
    else:
        before = after = np.zeros((0, index.stacks))
    seen = index.matrix.after
    scale = index.matrix.total_after / max(index.matrix.total_before, 1.0)
    expected = index.matrix.before * usual * scale
    entries = find_entries(index, after, before * usual)
    factors = traffic_factors(index, entries, np.vstack([seen, after]), np.vstack([expected, before * usual]))
    sets = find_cause_sets(index, seen + expected, ENOUGH)
    # Twice the noise is what two equal spans have; a longer one before is known better.
    dispersion = dispersion_of_sets(sets, after, before * usual * factors[1:]) * (1 + scale) / 2
    base = expected * factors[0]
    least = 2 * math.log(max(len(sets), 2)) + config.slack
    chosen = select_causes(sets, seen, base, dispersion, least)
    fit = fit_causes(sets, chosen, seen, base)
    layers = Layers(expected, base, fit.samples, seen)
    amounts = cause_amounts(sets, chosen, fit, layers)
    moves = find_moves(sets, chosen, seen, base, dispersion)
    total = max(float(seen.sum()), 1.0)
    causes = tuple(
        Cause(
            readings=tuple(sets.readings(cause)),
            amount=float(amounts[row].sum()) / total,
            error=math.sqrt(float(dispersion[cause] * fit.samples[sets.of(cause)].sum())) / total,
            factor=math.nan if sets.is_own[cause] else float(fit.factors[row]),
            moved_from=next(sets.readings(moves[cause].neighbour)) if cause in moves else None,
        )
        for row, cause in enumerate(chosen)
    )
    return Explanation(causes, index, layers, amounts)


def _days(index: StackIndex, days: Sequence[StackMatrix]) -> tuple[FloatArray, FloatArray]:
    """Return samples before and after on each day: (days, stacks), sides scaled to those after the change."""
    days = [day for day in days if day.total_before and day.total_after]
    row_of = {stack: row for row, stack in enumerate(index.matrix.stacks)}
    before, after = np.zeros((2, len(days), index.stacks))
    for number, day in enumerate(days):
        rows = np.fromiter(map(row_of.get, day.stacks, repeat(-1)), np.int64, len(day.stacks))
        present = rows >= 0
        scale = day.total_after / day.total_before
        before[number, rows[present]] = day.before[present] * scale
        after[number, rows[present]] = day.after[present]
    return before, after
