"""What is left of a regression without those that are known to rise below it (beyond FBDetect §5.4.8).

A caller of what grows slowly becomes a candidate hours or days after it, by the growth and by its own noise
together. Most of its rise need not come from below then; but if what does not is no change by itself, nothing
is new.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.stacks import StackIndex, measure_rises, membership, rows_of
from pipeline.model import BoolArray, SeriesKey, StackMatrix


@dataclass(frozen=True, slots=True)
class ExplainedRise:
    """Which known regression explains a rise, the share that it explains, and the share that is enough."""

    known: int
    share: float
    bound: float


def explain_by_known(
    frames: StackIndex,
    series: SeriesKey,
    known: Sequence[SeriesKey],
    *,
    p_value: float,
    chance: float,
    most: float = 0.7,
    significance: float = 0.01,
) -> ExplainedRise | None:
    """Return the known regression without which a rise would be no change point; None if there is none.

    A rise of z standard errors of which a share s comes through something else has (1 - s) z left.

    Args:
        frames: Stack counts before and after the change, from ``index_stacks``.
        series: What rose.
        known: What is known to have risen. It explains what comes through it, at or below the series, if it
            goes on rising between the same two spans.
        p_value: Of the rise.
        chance: p-value up to which what is left would be a change point.
        most: Share from which on both rise through one thing. Whether they are one regression then is not
            for this to say, since the known one may have risen anew.
        significance: Of the known one's rise.
    """
    if not known or p_value >= chance:
        return None
    rises = measure_rises(frames, [series])
    names, rise = rises.through(0)
    size = float(rises.size[0])
    if not size:
        return None
    rows = rows_of(frames, known)
    own = np.where(rows == rises.rows[0], -1, rows)
    shares = np.zeros(len(frames.names) + 1)  # the last is for what no stack holds
    shares[names] = rise / size
    bound = 1.0 - float(special.ndtri(chance) / special.ndtri(max(p_value, 1e-300)))
    for position in np.argsort(-shares[own], kind="stable").tolist():
        share = float(shares[own[position]])
        if share <= bound:
            return None
        if share >= most:
            continue
        own_stacks, known_stacks = membership(frames, [series, known[position]])
        if _goes_on(frames.matrix, own_stacks & known_stacks, np.sign(size), significance):
            return ExplainedRise(position, min(share, 1.0), bound)
    return None


def _goes_on(matrix: StackMatrix, holds: BoolArray, sign: float, significance: float) -> bool:
    """Return whether the share of some stacks rose by more than chance, by the samples in them."""
    before, after = float(matrix.before[holds].sum()), float(matrix.after[holds].sum())
    share = (before + after) / (matrix.total_before + matrix.total_after)
    error = math.sqrt(share * (1 - share) * (1 / matrix.total_before + 1 / matrix.total_after))
    rise = sign * (after / matrix.total_after - before / matrix.total_before)
    return rise > -float(special.ndtri(significance)) * error
