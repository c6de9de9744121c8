"""Decomposition: a subroutine's rise as a sum of what each cause, traffic and chance made of it.

Layer by layer each stack goes from what was expected to what was seen: renames, traffic, the causes, and what
is left. Factors that lie over one another share a rise by the logarithmic mean (LMDI: Ang, Energy Policy 32,
2004), so that the parts add up exactly, whatever their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.explain.cause_sets import CauseSets
from pipeline.analysis.explain.selection import Fit
from pipeline.model import BoolArray, FloatArray

_TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Samples of each stack after the change, by how much is taken into account."""

    expected: FloatArray  # (stacks,) as on other days at these hours
    renamed: FloatArray  # in the stacks that each became
    traffic: FloatArray  # with the traffic of their entries
    fitted: FloatArray  # with the causes
    seen: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """Parts of the rise of some stacks, in shares of all samples; they add up to the rise."""

    rise: float
    renamed: float  # what stacks took over from those that vanished at their places
    causes: FloatArray  # (causes,)
    traffic: float
    left: float  # not explained: chance, or too little to be a cause


def cause_amounts(sets: CauseSets, causes: Sequence[int], fit: Fit, layers: Layers) -> FloatArray:
    """Return the samples that each cause adds to each stack: (causes, stacks).

    A stack that a cause makes what it is owes all of its change to that cause.
    """
    amounts = np.zeros((len(causes), len(layers.seen)))
    change = layers.fitted - layers.traffic
    mean = _logarithmic_mean(layers.fitted, layers.traffic)
    for row, cause in enumerate(causes):
        stacks = sets.of(cause)
        own = stacks[fit.owner[stacks] == row]
        amounts[row, own] = change[own]
        if np.isfinite(fit.factors[row]):
            scaled = stacks[fit.owner[stacks] < 0]
            amounts[row, scaled] = mean[scaled] * np.log(fit.factors[row])
    return amounts


def decompose(layers: Layers, amounts: FloatArray, rows: BoolArray) -> Decomposition:
    """Return the parts of the rise of some stacks.

    Args:
        layers: Samples of all stacks.
        amounts: (causes, stacks) as ``cause_amounts`` returns them.
        rows: (stacks,) whose rise.
    """
    total = max(float(layers.seen.sum()), 1.0)
    causes = amounts[:, rows].sum(axis=1) / total
    rise = float((layers.seen - layers.expected)[rows].sum()) / total
    renamed = float((layers.renamed - layers.expected)[rows].sum()) / total
    traffic = float((layers.traffic - layers.renamed)[rows].sum()) / total
    return Decomposition(rise, renamed, causes, traffic, rise - renamed - traffic - float(causes.sum()))


def _logarithmic_mean(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return (a − b) / ln(a / b), between both; a where they are equal."""
    a, b = np.maximum(one, _TINY), np.maximum(other, _TINY)
    ratio = np.log(a / b)
    equal = np.abs(ratio) < _TINY
    return np.asarray(np.where(equal, a, (a - b) / np.where(equal, 1.0, ratio)))
