"""Explanation of a cluster of candidates: its causes, and what each makes of every candidate's rise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.cost_shift.daily_noise import MIN_DAYS
from pipeline.analysis.cost_shift.stack_history import StackHistory
from pipeline.analysis.explain.cause_sets import Reading, find_cause_sets
from pipeline.analysis.explain.decomposition import Decomposition, Layers, cause_amounts, decompose
from pipeline.analysis.explain.moves import find_moves
from pipeline.analysis.explain.noise import Compared, noise_of_sets
from pipeline.analysis.explain.renames import Renames, find_renames
from pipeline.analysis.explain.selection import fit_causes, select_causes
from pipeline.analysis.explain.traffic import ENOUGH, find_entries, traffic_factors
from pipeline.analysis.stacks import StackIndex, usual_factors
from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class ExplanationConfig:
    """Settings of the explanation."""

    slack: float = 4.0
    """Gain that a cause must bring beyond twice the logarithm of the number of possible ones, which is what
    the best of them brings by chance: a chance of about one in ten that any of a cluster's is."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of what happened to the stacks.

    Args:
        readings: The ways to read it, the plainest first: stacks cannot distinguish them.
        amount: What it adds where it is, as a share of all samples.
        error: Standard error of the amount.
        factor: By what it scales its stacks; NaN for own costs and for new work.
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


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The few causes that turn the stacks before a change into those after it."""

    causes: tuple[Cause, ...]
    index: StackIndex
    layers: Layers
    amounts: FloatArray  # (causes, stacks) samples; of what moved, what was lost elsewhere too
    per_sample: float = 2.0  # variance by sampling alone of a sum less its expectation
    drift: float = 0.0  # typical standard deviation beyond sampling, relative
    renames: Renames | None = None

    def of(self, label: str) -> Decomposition:
        """Return the parts of the rise of a label."""
        return decompose(self.layers, self.amounts, self.index.holding([label]))

    def error_of(self, label: str) -> float:
        """Return the standard error of the rise of a label, as a share of all samples."""
        expected = float(self.layers.expected[self.index.holding([label])].sum())
        variance = self.per_sample * max(expected, 1.0) + (self.drift * expected) ** 2
        return math.sqrt(variance) / max(float(self.layers.seen.sum()), 1.0)

    def former(self, label: str) -> str:
        """Return the name that a label took most of its cost over from; empty for none."""
        return self.renames.former(label, self.layers.expected) if self.renames else ""


def explain(
    history: StackHistory, candidates: Sequence[str] = (), config: ExplanationConfig | None = None
) -> Explanation:
    """Explain what became of the stacks.

    Args:
        history: Stacks before and after the change, and at the same hours of earlier days.
        candidates: Labels that are known to have risen, by more than these stacks: fewer are tried, so less
            is asked of them.
        config: Settings.
    """
    config = config or ExplanationConfig()
    index = history.index
    renames = find_renames(history)
    compared, expected = _compared(history, renames)
    factors = traffic_factors(index, find_entries(index, compared), compared)
    followed = replace(compared, expected=compared.expected * factors)
    seen, base = compared.seen[0], followed.expected[0]
    sets = find_cause_sets(index, seen + compared.expected[0], ENOUGH)
    noise = noise_of_sets(sets, followed)
    asked = sets.named(candidates)
    least = np.full(len(sets), noise.least(_bound(len(sets), config)))
    least[asked] = noise.least(_bound(int(asked.sum()), config))
    # What scales more than half of all samples is the scale itself, since shares add up to one.
    least[~sets.is_own & (2 * sets.sums(base) > base.sum())] = math.inf
    chosen = select_causes(sets, seen, base, noise.dispersion, least)
    moves = find_moves(sets, chosen, seen, base, noise)
    every = list(dict.fromkeys([*chosen, *moves.values()]))
    fit = fit_causes(sets, every, seen, base)
    layers = Layers(expected, compared.expected[0], base, fit.samples, seen)
    amounts = dict(zip(every, cause_amounts(sets, every, fit, layers), strict=True))
    left = [cause for cause in chosen if cause not in moves.values()]  # the lost is part of what won it
    ratio = float(compared.ratio[0])
    counted = sets.sums(fit.samples + ratio * base) / (1 + ratio)
    errors = np.sqrt(noise.dispersion * counted)
    total = max(float(seen.sum()), 1.0)
    factor = dict(zip(every, fit.factors.tolist(), strict=True))
    causes = tuple(
        Cause(
            readings=tuple(sets.readings(cause)),
            amount=float(amounts[cause].sum()) / total,
            error=float(errors[cause]) / total,
            factor=factor[cause],
            moved_from=next(sets.readings(moves[cause])) if cause in moves else None,
        )
        for cause in left
    )
    netted = [amounts[cause] + (amounts[moves[cause]] if cause in moves else 0.0) for cause in left]
    return Explanation(
        causes=causes,
        index=index,
        layers=layers,
        amounts=np.array(netted).reshape(len(left), index.stacks),
        per_sample=float(compared.per_sample[0]),
        drift=noise.drift,
        renames=renames,
    )


def _bound(sets: int, config: ExplanationConfig) -> float:
    """Return what the best of some sets gains by chance, and the slack."""
    return 2 * math.log(max(sets, 2)) + config.slack


def _compared(history: StackHistory, renames: Renames) -> tuple[Compared, FloatArray]:
    """Return the samples of all rows, and those that row 0 is expected to have under the names before."""
    rows = len(history.before) if len(history.before) > MIN_DAYS else 1
    totals = history.samples_after[:rows, None]
    before, seen = history.before[:rows] * totals, history.after[:rows] * totals
    plain, before = before[0], renames.made(before)
    if rows > 1:
        seen = np.vstack([seen[:1], renames.made(seen[1:])])
        usual = usual_factors(history.index, before[1:], seen[1:])
        plain, before = plain * usual, before * usual
    return Compared(seen, before, history.samples_before[:rows], history.dispersion), plain
