"""Types of requests beyond a quota, folded into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from pipeline.model import TypeCounts
from pipeline.model.frames import OTHER


def folded_types(types: Sequence[TypeCounts], known: Collection[str]) -> tuple[TypeCounts, ...]:
    """Return the known types unchanged, and one type for all others together."""
    admitted = [counts for counts in types if counts.type in known]
    folded = [counts for counts in types if counts.type not in known]
    if not folded:
        return tuple(admitted)
    times: Counter[int] = Counter()
    for counts in folded:
        times.update(dict(counts.times))
    rest = TypeCounts(
        type=OTHER,
        requests=sum(counts.requests for counts in folded),
        responses=tuple(np.sum([counts.responses for counts in folded], axis=0).tolist()),
        times=tuple(sorted(times.items())),
    )
    return (*admitted, rest)
