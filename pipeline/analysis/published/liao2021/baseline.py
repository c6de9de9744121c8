"""Response times by type of request, release against release: the baseline of Liao et al. (2021, §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipeline.model import FloatArray

LARGE = 0.474
"""Cliff's delta from which on a difference is large (Romano et al. 2006)."""


@dataclass(frozen=True, slots=True)
class SlowerType:
    """A type of request whose response times differ.

    Args:
        type: Of request.
        delta: Cliff's delta, from -1 to 1; above 0 the new release is slower.
        p: Chance of the difference between equal releases (Mann-Whitney).
        slower: True if the difference is significant and large, and the new mean is higher.
    """

    type: str
    delta: float
    p: float
    slower: bool


def compare_response_times(
    old: Mapping[str, FloatArray], new: Mapping[str, FloatArray], alpha: float = 0.05
) -> list[SlowerType]:
    """Return the types with response times in both releases, the slower first (§2).

    Args:
        old: Type → (requests,) response times in the old release, in any unit.
        new: The same in the new release.
        alpha: Level of each test.
    """
    compared = []
    for type_ in sorted(set(old) & set(new)):
        before, after = old[type_], new[type_]
        if not len(before) or not len(after):
            continue
        statistic, p = stats.mannwhitneyu(after, before, alternative="two-sided")
        delta = 2.0 * float(statistic) / (len(before) * len(after)) - 1.0
        worse = float(np.mean(after)) > float(np.mean(before))
        compared.append(SlowerType(type_, delta, float(p), bool(p <= alpha and delta > LARGE and worse)))
    return sorted(compared, key=lambda type_: (not type_.slower, -type_.delta, type_.type))
