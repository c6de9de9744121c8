"""What happened at the same time a week before, taken out of a change.

Ten days of history hold one earlier weekend: too little to decompose, enough to compare with. A level that
rose by as much at the same hour of last week has not regressed.
"""

from __future__ import annotations

import numpy as np

from pipeline.detect.change_point import Family, Sums, ratio, signed_roots
from pipeline.model import FloatArray


def without_week(
    sums: Sums, week_ago: Sums, deviation: FloatArray, family: Family, *, doubt: float = 2.0
) -> tuple[Sums, FloatArray]:
    """Return sums whose change is less by last week's, and by how much that widens the change's noise.

    Last week's change is noisy too; taking all of it out would make every comparison so. It is shrunk by the
    positive-part James-Stein factor 1 - doubt / z², z its own root: nothing of what may be chance, nearly all
    of what is certain.

    Args:
        sums: On both sides of each split, (series, splits).
        week_ago: The same, a week earlier.
        deviation: (series, 1) of noise, by which roots are standardised.
        family: What is observed.
        doubt: Squared roots below which a change counts for nothing.

    Returns:
        Sums, and (series, splits) factors of the noise's deviation.
    """
    roots = signed_roots(week_ago, family) / deviation
    kept = np.maximum(0.0, 1 - doubt / np.maximum(roots**2, 1e-300))
    left, right = (ratio(week_ago.left, week_ago.left_exposure), ratio(week_ago.right, week_ago.right_exposure))
    if family == "values":
        shifted = sums.right - kept * (right - left) * sums.right_exposure
        return Sums(sums.left, sums.left_exposure, shifted, sums.right_exposure), np.sqrt(1 + kept**2)
    # Half a count more keeps what was not seen at all from weighing infinitely.
    left = (week_ago.left + 0.5) / np.maximum(week_ago.left_exposure, 0.5)
    right = (week_ago.right + 0.5) / np.maximum(week_ago.right_exposure, 0.5)
    grown = (right / left) ** kept
    return Sums(sums.left, sums.left_exposure, sums.right, sums.right_exposure * grown), np.sqrt(1 + kept**2)
