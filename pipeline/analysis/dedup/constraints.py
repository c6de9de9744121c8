"""The constraints of deduplication: which pairs may be one regression at all, whatever they have in common.

Each is a pure function of what is known of the pairs, with one entry in ``pipeline.model.steps`` under its
key. They apply in their order: some allow pairs, some forbid them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.analysis.dedup.evidence import TOLERANCE_WINDOWS, reach_s
from pipeline.analysis.dedup.pairs import Pairs
from pipeline.model import BoolArray, FloatArray, IntArray
from pipeline.model.frames import element
from pipeline.model.units import DAY_S

_LEAST_DAYS = 3
_MOST_DAYS = 7
"""Earlier days that say what is usual at some hours."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One rule on pairs."""

    key: str
    effect: Literal["allow", "forbid"]
    holds: Callable[[Pairs], BoolArray]  # (n, n), symmetric


def may_be_one(pairs: Pairs) -> BoolArray:
    """Return which pairs may be one regression: (n, n)."""
    may = np.zeros((len(pairs.candidates),) * 2, dtype=np.bool_)
    for constraint in CONSTRAINTS:
        if pairs.config.runs(constraint.key):
            holds = constraint.holds(pairs)
            may = may | holds if constraint.effect == "allow" else may & ~holds
    return may


def same_time(pairs: Pairs) -> BoolArray:
    """Return which changes are near enough in time to be one, and move the same way.

    A change point may be placed anywhere in the analysis window; when a slow rise began is known to a day.
    Two whose intervals overlap may be further apart, if one change modified what both rise through. As gCPU
    goes up, a service's metric may go down, and as one metric goes up, another one: all of them got worse.
    """
    slow = pairs.slow[:, None] | pairs.slow[None, :]
    reach = np.where(slow, reach_s(pairs.config, slow=True), reach_s(pairs.config, slow=False))
    within = np.abs(pairs.times[:, None] - pairs.times[None, :]) <= reach
    spans = np.array([candidate.change_time_span for candidate in pairs.candidates]).reshape(-1, 2)
    overlap = (spans[:, None, 0] <= spans[None, :, 1]) & (spans[None, :, 0] <= spans[:, None, 1])
    within |= overlap & _share_a_change(pairs)
    rises = pairs.deltas > 0
    same_way = (rises[:, None] == rises[None, :]) | ~(pairs.gcpu[:, None] & pairs.gcpu[None, :])
    return np.asarray(within & same_way)


def _share_a_change(pairs: Pairs) -> BoolArray:
    """Return which pairs rise through what one change modified, deployed just before both: (n, n)."""
    names = sorted(set().union(*(cause.changes for cause in pairs.causes)))
    has = np.array([[name in cause.changes for name in names] for cause in pairs.causes], dtype=np.int64)
    has = has.reshape(len(pairs.causes), len(names))
    return np.asarray(has @ has.T > 0)


def late_callers(pairs: Pairs) -> BoolArray:
    """Return which candidates rise through a reported regression, though their change points are far apart.

    Its callers do, however much later: their noise is more, so that they are found later and at less certain
    times; and if it grows, they do. What steps by more than twice as much, more than a day later, has mostly
    another cause. If the reported one is a candidate itself, it goes on rising, as what grows slowly looks
    like one step after another, if it did so within a day and no change that was deployed just before
    modified what it rises through: such a change would be a cause of its own.
    """
    late = np.zeros((len(pairs.candidates),) * 2, dtype=np.bool_)
    anew = {pairs.series[row]: row for row in range(pairs.known, len(pairs.candidates))}
    for row in np.flatnonzero(pairs.gcpu[: pairs.known]).tolist():
        known, label = pairs.candidates[row], element(*pairs.series[row])
        for new in range(pairs.known, len(pairs.candidates)):
            candidate = pairs.candidates[new]
            if (candidate.delta > 0) != (known.delta > 0) or label not in pairs.causes[new].subroutines:
                continue
            soon = candidate.change_time - known.change_time <= reach_s(pairs.config, slow=True)
            steps = not (pairs.slow[row] or pairs.slow[new])
            if steps and not soon and abs(candidate.delta) > 2 * abs(known.delta):
                continue
            again = anew.get(pairs.series[row])
            if again is not None and not _goes_on(pairs, row, new, again, soon=soon):
                continue
            late[row, new] = late[new, row] = True
    return late


def _goes_on(pairs: Pairs, row: int, new: int, again: int, *, soon: bool) -> bool:
    """Return whether a reported regression that is a candidate again has only gone on rising."""
    known, risen = pairs.candidates[row], pairs.candidates[again]
    # What was taken back and comes again does not go on.
    stayed = abs(risen.before - known.after) < abs(risen.before - known.before)
    goes_on = (soon and stayed) or bool(pairs.slow[new])
    return goes_on and not pairs.causes[new].changes and not pairs.causes[again].changes


def onset_order(pairs: Pairs) -> BoolArray:
    """Return which steps began when a reported regression had risen already.

    The stacks around do not show it, since a caller that rose an hour before for another reason rises with
    them too. Such a step is another regression if all of this holds:

    - A change deployed just before it modified what it rises through, and not what the known one does.
    - It began when the scan that reported the known one had stopped to look.
    - The known one had risen by most of its rise when it began; or what had been reported of its series
      before, as part of the same event, had.
    - Nothing below it explains it, the known one least of all; or the known one's series has stepped again by
      more than twice as much. Less than that is growth.

    What began after the one that an event is named after is no part of the event, though others that joined
    it have risen since by the same step.
    """
    keys = [(known.event, *key) for known, key in zip(pairs.reported, pairs.series, strict=False)]
    begun_after = _begun_after(pairs)
    apart = {(keys[row], new) for row, new in begun_after if _had_risen(pairs, row, new)}
    found = [(row, new) for row, new in begun_after if (keys[row], new) in apart]
    events = {
        (pairs.reported[row].event, new)
        for row, new in found
        if pairs.reported[row].leads and pairs.reported[row].event
    }
    found += [
        (row, new)
        for row, known in enumerate(pairs.reported)
        for new in range(pairs.known, len(pairs.candidates))
        if (known.event, new) in events
    ]
    forbidden = np.zeros((len(pairs.candidates),) * 2, dtype=np.bool_)
    for row, new in found:
        forbidden[row, new] = forbidden[new, row] = True
    return forbidden


def _begun_after(pairs: Pairs) -> list[tuple[int, int]]:
    """Return pairs of a reported one and a step of which all holds but that the reported one had risen."""
    first_seen: dict[tuple[str, str, str], float] = {}
    keys = [(known.event, *key) for known, key in zip(pairs.reported, pairs.series, strict=False)]
    for key, known in zip(keys, pairs.reported, strict=True):
        first_seen[key] = min(known.seen_until, first_seen.get(key, known.seen_until))
    rows = [*enumerate(pairs.candidates), *((member.row, member.candidate) for member in pairs.members)]
    sizes = [(row, c.series, abs(c.delta)) for row, c in rows if row >= pairs.known]
    steps = [
        (new, pairs.causes[new].subroutines.keys() <= {element(*pairs.series[new])})
        for new in range(pairs.known, len(pairs.candidates))
        if not pairs.slow[new] and pairs.causes[new].changes
    ]
    tolerance_s = TOLERANCE_WINDOWS * pairs.config.resolution_s
    found = []
    for row in np.flatnonzero(~pairs.slow[: pairs.known]).tolist():
        series, seen_until = pairs.series[row], first_seen[keys[row]]
        larger = {new for new, key, size in sizes if key == series and size > 2 * abs(pairs.deltas[row])}
        for new, itself in steps:
            if pairs.causes[new].changes.keys() <= pairs.causes[row].changes.keys():
                continue
            anew = new in larger or (itself and element(*series) not in pairs.causes[new].subroutines)
            if anew and pairs.times[new] - seen_until > tolerance_s:
                found.append((row, new))
    return found


def _had_risen(pairs: Pairs, row: int, new: int) -> bool:
    """Return whether a reported one was nearer its level after than before when a step began.

    What is reported as soon as it is seen is often dated hours before it began. Levels are held against what
    is usual at these hours, or against the level before where too few days are known.
    """
    known, step_s = pairs.candidates[row], pairs.config.resolution_s
    between = np.flatnonzero(
        (pairs.starts >= known.change_time) & (pairs.starts + step_s <= pairs.times[new])
    )
    seen = pairs.levels[row][between]
    between, seen = between[np.isfinite(seen)], seen[np.isfinite(seen)]
    if not len(seen):
        return False
    rises = seen - known.before
    earlier = _earlier_days(pairs.levels[row], between, day=round(DAY_S / step_s))
    if len(earlier) >= _LEAST_DAYS:
        rises = seen - np.median(earlier, axis=0)
    return bool(rises.mean() * np.sign(known.delta) > abs(known.delta) / 2)


def _earlier_days(levels: FloatArray, windows: IntArray, *, day: int) -> FloatArray:
    """Return the levels at the same hours of the days before, as far as all are known: (days, windows)."""
    days = [windows - back * day for back in range(1, _MOST_DAYS + 1)] if day else []
    found = [levels[earlier] for earlier in days if earlier[0] >= 0]
    known = [row for row in found if np.isfinite(row).all()]
    return np.array(known, dtype=np.float64).reshape(len(known), len(windows))


CONSTRAINTS: tuple[Constraint, ...] = (
    Constraint("same_time", "allow", same_time),
    Constraint("late_callers", "allow", late_callers),
    Constraint("onset_order", "forbid", onset_order),
)
"""In the order in which they apply."""
