"""Which regression of a group is shown for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.model import BoolArray, FloatArray

_MOST_OF_IT = 0.7
"""What rises by so much of what the largest does is as good a name for it."""


def choose_representative(
    members: Sequence[int], sizes: FloatArray, *, preferred: BoolArray, depths: FloatArray
) -> int:
    """Return the member that stands for a group: of those that rise most, the nearest to the cause.

    That is one that a deployed change modified if there is any (PotentialRootCauseFound of FBDetect §5.4.7),
    and then the deepest.

    Args:
        members: Indexes of the group's regressions.
        sizes: (n,) how large the regressions are, not negative.
        preferred: (n,) whether a change deployed just before modified them.
        depths: (n,) how deep they stand in stacks.
    """
    own = np.asarray(members)
    largest: list[int] = own[sizes[own] >= _MOST_OF_IT * sizes[own].max()].tolist()
    return max(largest, key=lambda i: (bool(preferred[i]), float(depths[i]), float(sizes[i]), -i))
