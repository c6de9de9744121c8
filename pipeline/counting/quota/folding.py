"""Types of requests beyond a quota, folded into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from pipeline.model import TypeCounts
from pipeline.model.frames import OTHER


def folded_types(types: Sequence[TypeCounts], known: Collection[str]) -> tuple[TypeCounts, ...]:
    """Return the types that are known as they are, and one for all others together."""
    kept = [each for each in types if each.type in known]
    folded = [each for each in types if each.type not in known]
    if not folded:
        return tuple(kept)
    times: Counter[int] = Counter()
    for each in folded:
        times.update(dict(each.times))
    other = TypeCounts(
        type=OTHER,
        requests=sum(each.requests for each in folded),
        responses=tuple(np.sum([each.responses for each in folded], axis=0).tolist()),
        times=tuple(sorted(times.items())),
    )
    return (*kept, other)
