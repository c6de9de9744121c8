"""The comparison that Liao et al. (§2) improve on: response times by type, release against release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipeline.model import FloatArray

LARGE = 0.474
"""Of Cliff's delta (Romano et al. 2006)."""


@dataclass(frozen=True, slots=True)
class SlowerType:
    """A type of request whose response times differ.

    Args:
        type: Of request.
        delta: Cliff's delta, from -1 to 1; above 0 the new release is slower.
        p: Chance of the difference between equal releases (Mann-Whitney).
        slower: Whether the difference is significant, large, and the new mean is higher.
    """

    type: str
    delta: float
    p: float
    slower: bool


def compare_response_times(
    old: Mapping[str, FloatArray], new: Mapping[str, FloatArray], alpha: float = 0.05
) -> list[SlowerType]:
    """Return every type that both releases have, the slower ones first (§2).

    Args:
        old: Type → (requests,) response times in the old release, in any unit.
        new: The same in the new release.
        alpha: Level of each test.
    """
    found = []
    for type_ in sorted(set(old) & set(new)):
        before, after = old[type_], new[type_]
        if not len(before) or not len(after):
            continue
        statistic, p = stats.mannwhitneyu(after, before, alternative="two-sided")
        delta = 2.0 * float(statistic) / (len(before) * len(after)) - 1.0
        worse = float(np.mean(after)) > float(np.mean(before))
        found.append(SlowerType(type_, delta, float(p), bool(p <= alpha and delta > LARGE and worse)))
    return sorted(found, key=lambda each: (not each.slower, -each.delta, each.type))
