"""Tells new steps from regressions that were told before and had risen when the steps began."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.dedup.causes import Causes
from pipeline.detect.expected import values_and_weights
from pipeline.frames import element
from pipeline.model import BoolArray, Candidate, Scan
from pipeline.stacks import Series
from pipeline.stages.gather.evidence import TOLERANCE_WINDOWS, rows_of_series
from pipeline.storage.interface import Store
from pipeline.workloads import Workload


def begun_later(
    store: Store,
    scan: Scan,
    candidates: Sequence[Candidate],
    causes: Sequence[Causes],
    told: Sequence[tuple[str, float]],
    members: Sequence[tuple[int, Candidate]],
    workload: Workload,
) -> BoolArray:
    """Tell which steps are not what was told before: (n, n).

    The stacks around them cannot tell, since a caller that rose an hour before for another reason rises with
    them too. Such a step is another regression if all of this holds:

    - A change deployed just before it modified what it rises through.
    - It began when the scan that told of the known one had stopped to look.
    - The known one had risen by most of its rise when it began; or what had been told of its series before,
      as part of the same event, had.
    - Nothing below it explains it, the known one least of all; or the known one's series has stepped again by
      more than twice as much. Less than that is growth.

    Args:
        store: Where series are.
        scan: The present scan.
        candidates: (n,) of this and of earlier scans.
        causes: (n,) of each.
        told: For each of the first of the candidates, which earlier scans passed on, its event, and up to
            when the first of those scans looked for change points that told of its series as part of that.
        members: Other members of groups, each with the place of one that stands for it.
        workload: Of the scan.
    """
    pairs = _begun_after(candidates, causes, told, members, workload)
    known_as = [
        (event, one.metric_kind, one.metric) for (event, _), one in zip(told, candidates, strict=False)
    ]
    apart = {(known_as[row], place) for row, place in _risen_before(store, scan, candidates, pairs, workload)}
    found = np.zeros((len(candidates), len(candidates)), dtype=np.bool_)
    for row, place in pairs:
        if (known_as[row], place) in apart:
            found[row, place] = found[place, row] = True
    return found


def _begun_after(
    candidates: Sequence[Candidate],
    causes: Sequence[Causes],
    told: Sequence[tuple[str, float]],
    members: Sequence[tuple[int, Candidate]],
    workload: Workload,
) -> list[tuple[int, int]]:
    """Return pairs of a known one and a step of which all holds but that the known one had risen."""
    again: dict[Series, list[tuple[int, float]]] = {}
    for place, one in [*enumerate(candidates), *members]:
        if place >= len(told):
            again.setdefault((one.metric_kind, one.metric), []).append((place, abs(one.delta)))
    steps = [
        (place, one.change_time, causes[place].subroutines.keys() <= {element(one.metric_kind, one.metric)})
        for place, one in enumerate(candidates[len(told) :], start=len(told))
        if one.kind != "long_term" and causes[place].changes
    ]
    tolerance_s = TOLERANCE_WINDOWS * workload.resolution_s
    pairs = []
    for row, (known, (_, seen_until)) in enumerate(zip(candidates, told, strict=False)):
        if known.kind == "long_term":
            continue
        series = (known.metric_kind, known.metric)
        larger = {place for place, delta in again.get(series, ()) if delta > 2 * abs(known.delta)}
        for place, change_time, itself in steps:
            anew = place in larger or (itself and element(*series) not in causes[place].subroutines)
            if anew and change_time - seen_until > tolerance_s:
                pairs.append((row, place))
    return pairs


def _risen_before(
    store: Store,
    scan: Scan,
    candidates: Sequence[Candidate],
    pairs: Sequence[tuple[int, int]],
    workload: Workload,
) -> list[tuple[int, int]]:
    """Return those pairs whose first one was nearer its level after than before when the second one began.

    What is told as soon as it is seen is often dated hours before it began.
    """
    names = sorted({(candidates[row].metric_kind, candidates[row].metric) for row, _ in pairs})
    if not names:
        return []
    matrix = store.series("gcpu", scan.service, scan.start, scan.end, workload.resolution_s, names)
    rows, values = rows_of_series(matrix), values_and_weights(matrix)[0]
    starts = scan.start + workload.resolution_s * np.arange(values.shape[1])
    found = []
    for row, place in pairs:
        known, one = candidates[row], candidates[place]
        number = rows.get((known.metric_kind, known.metric))
        between = (starts >= known.change_time) & (starts + workload.resolution_s <= one.change_time)
        seen = values[number][between] if number is not None else np.zeros(0)
        seen = seen[np.isfinite(seen)]
        if len(seen) and abs(seen.mean() - known.after) < abs(seen.mean() - known.before):
            found.append((row, place))
    return found
