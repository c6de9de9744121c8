"""Comparison of two runs over the same data: regressions only one reports, and where the other lost them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.evaluation.matching import Tolerances, cheapest_pairs
from loadgen.evaluation.model import Event, LedgerLine
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.steps import STEPS

_POSITIONS = {step.key: number for number, step in enumerate(STEPS)}


@dataclass(frozen=True, slots=True)
class Lone:
    """An event that only one run has, and its fate in the other run.

    ``lost`` is the line of the other run's ledger that passed most steps; None if there is no ledger or
    nothing was detected.
    """

    event: Event
    lost: LedgerLine | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """Events of two runs: pairs that report the same regression, and unpaired events of either run."""

    both: tuple[tuple[Event, Event], ...]
    only_a: tuple[Lone, ...]
    only_b: tuple[Lone, ...]

    @property
    def same(self) -> bool:
        """Whether both runs report the same regressions."""
        return not self.only_a and not self.only_b


def compare_events(
    a: Sequence[Event],
    b: Sequence[Event],
    *,
    tolerances: Tolerances,
    ledger_a: Iterable[LedgerLine] = (),
    ledger_b: Iterable[LedgerLine] = (),
) -> Difference:
    """Pair the events of two runs, one to one.

    Equal ids are the same event. Runs with different settings give different ids, so the remaining events are
    paired by service, kind of metric, a common series (the metric itself before groups) and change times
    within the tolerance. The pairing has as many pairs as possible, and of those pairings the least cost. The
    order of events does not matter.
    """
    ids = {event.id for event in a} & {event.id for event in b}
    first_a, rest_a = _divide(a, ids)
    first_b, rest_b = _divide(b, ids)
    both = [(first_a[key], first_b[key]) for key in sorted(ids)]
    pairs = _pair(rest_a, rest_b, tolerances)
    both += [(rest_a[i], rest_b[j]) for i, j in pairs]
    only_a = [event for i, event in enumerate(rest_a) if i not in dict(pairs)]
    only_b = [event for j, event in enumerate(rest_b) if j not in {index_b for _, index_b in pairs}]
    return Difference(
        both=tuple(sorted(both, key=lambda pair: _key(pair[0]))),
        only_a=_explained(only_a, ledger_b, tolerances),
        only_b=_explained(only_b, ledger_a, tolerances),
    )


def _divide(events: Sequence[Event], ids: set[str]) -> tuple[dict[str, Event], list[Event]]:
    """Return the first event of each of ``ids``, and the remaining events in a canonical order."""
    first: dict[str, Event] = {}
    rest = []
    for event in sorted(events, key=_key):
        if event.id in ids and event.id not in first:
            first[event.id] = event
        else:
            rest.append(event)
    return first, rest


def _pair(a: Sequence[Event], b: Sequence[Event], tolerances: Tolerances) -> list[tuple[int, int]]:
    costs = np.full((len(a), len(b)), np.inf)
    for i, event_a in enumerate(a):
        for j, event_b in enumerate(b):
            tolerance = max(tolerances.of(event_a.workload), tolerances.of(event_b.workload))
            costs[i, j] = _cost(event_a, event_b, tolerance)
    return cheapest_pairs(costs)


def _cost(a: Event, b: Event, tolerance: float) -> float:
    shared = set(a.series) & set(b.series)
    gap = abs(a.change_time - b.change_time)
    same = (a.service, a.delta > 0) == (b.service, b.delta > 0)
    service_level = is_gcpu(a.metric_kind) != is_gcpu(b.metric_kind)
    if not same or service_level or not shared or gap > tolerance:
        return math.inf
    overlap = len(shared) / len(set(a.series) | set(b.series))
    return (0.0 if a.metric == b.metric else 2.0 - overlap) + (gap / tolerance if tolerance else 0.0)


def _explained(
    events: Sequence[Event], ledger: Iterable[LedgerLine], tolerances: Tolerances
) -> tuple[Lone, ...]:
    """Return each event with the other run's ledger line of its series that passed most steps."""
    wanted = {(event.service, event.metric) for event in events}
    lines: dict[tuple[str, str], list[LedgerLine]] = {}
    for line in ledger:
        for series in (line.metric, *line.group):
            if (line.service, series) in wanted:
                lines.setdefault((line.service, series), []).append(line)
    explained = []
    for event in events:
        near = [
            line
            for line in lines.get((event.service, event.metric), ())
            if abs(line.change_time - event.change_time) <= tolerances.of(event.workload)
        ]
        explained.append(Lone(event, max(near, key=_progress, default=None)))
    return tuple(explained)


def _progress(line: LedgerLine) -> tuple[int, float, str]:
    """Order lines by the step that dropped them, and at the same step by nearness to its bound."""
    return _POSITIONS.get(line.step, len(STEPS)), -abs(line.statistic - line.bound), line.metric


def _key(event: Event) -> tuple[str, float, str, float, str]:
    return (event.service, event.change_time, event.metric, event.detected_time, event.id)
