"""Each constraint of deduplication as a truth table, and a new one in three places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.dedup import constraints
from pipeline.analysis.dedup.causes import Causes
from pipeline.analysis.dedup.constraints import (
    CONSTRAINTS,
    Constraint,
    late_callers,
    may_be_one,
    onset_order,
    same_time,
)
from pipeline.analysis.dedup.evidence import Reported
from pipeline.analysis.dedup.pairs import Pairs
from pipeline.model import BoolArray, Candidate, steps
from pipeline.model.units import DAY_S, HOUR_S
from tests.support.builders import build_candidate
from tests.support.dedup import pairs_of

T0 = 1_700_000_000.0
KNOWN = build_candidate("lib.slow", before=0.10, after=0.12, change_time=T0)
STEP = build_candidate("cart.total", before=0.20, after=0.22, change_time=T0 + 60.0)
CAUSE = {"D1": 1.0}


def pair(
    known: Candidate,
    candidate: Candidate,
    *more: Candidate,
    through: Mapping[str, float] | None = None,
    changes: Mapping[str, float] | None = None,
    seen_until: float = T0,
    levels: tuple[float, ...] = (),
) -> Pairs:
    """A reported regression and new ones; ``through`` and ``changes`` are those of the first new one."""
    every = [known, candidate, *more]
    causes = [Causes({c.metric: 1.0}, {}) for c in every]
    causes[1] = Causes({candidate.metric: 1.0, **(through or {})}, changes or {})
    windows = len(levels)
    return replace(
        pairs_of({}, [c.metric_kind != "service" for c in every]),
        candidates=every,
        reported=[Reported(known, "E1", seen_until=seen_until)],
        series=[c.series for c in every],
        causes=causes,
        times=np.array([c.change_time for c in every]),
        deltas=np.array([c.delta for c in every]),
        slow=np.array([c.kind == "long_term" for c in every]),
        levels=np.array([levels] + [[np.nan] * windows] * (len(every) - 1)).reshape(len(every), windows),
        starts=np.asarray(T0 + 60.0 * np.arange(windows), dtype=np.float64),
    )


def slow(candidate: Candidate) -> Candidate:
    return replace(candidate, kind="long_term")


def later(candidate: Candidate, seconds: float) -> Candidate:
    return replace(candidate, change_time=T0 + seconds)


def falling(candidate: Candidate) -> Candidate:
    return replace(candidate, after=candidate.before / 2)


def of_service(candidate: Candidate) -> Candidate:
    return replace(candidate, metric_kind="service")


@pytest.mark.parametrize(
    ("known", "candidate", "holds"),
    [
        pytest.param(KNOWN, STEP, True, id="a minute apart"),
        pytest.param(KNOWN, later(STEP, HOUR_S), True, id="an analysis window apart"),
        pytest.param(KNOWN, later(STEP, HOUR_S + 1), False, id="more than that"),
        pytest.param(KNOWN, slow(later(STEP, DAY_S)), True, id="a slow rise begins within a day"),
        pytest.param(slow(KNOWN), later(STEP, DAY_S + 1), False, id="and not later"),
        pytest.param(KNOWN, falling(STEP), False, id="the other way"),
        pytest.param(of_service(falling(KNOWN)), STEP, True, id="a metric may fall as gCPU rises"),
    ],
)
def test_same_time(known: Candidate, candidate: Candidate, holds: bool) -> None:
    assert same_time(pair(known, candidate))[0, 1] == holds


@pytest.mark.parametrize(
    ("begin", "changes", "holds"),
    [
        pytest.param(-60.0, CAUSE, True, id="the intervals overlap, and they share a change"),
        pytest.param(-60.0, {"D2": 1.0}, False, id="they share none"),
        pytest.param(60.0, CAUSE, False, id="the intervals are apart"),
    ],
)
def test_same_time_of_what_one_change_modified(
    begin: float, changes: Mapping[str, float], holds: bool
) -> None:
    interval = (T0 + begin, T0 + 12 * HOUR_S)
    pairs = pair(KNOWN, replace(later(STEP, 9 * HOUR_S), change_time_interval=interval), changes=changes)
    own = Causes({KNOWN.metric: 1.0}, CAUSE)
    assert same_time(replace(pairs, causes=[own, pairs.causes[1]]))[0, 1] == holds


AGAIN = replace(KNOWN, before=0.12, after=0.14, change_time=T0 + 7200.0)
TAKEN_BACK = replace(AGAIN, before=0.10, after=0.12)
THROUGH = {"lib.slow": 0.9}


@pytest.mark.parametrize(
    ("pairs", "holds"),
    [
        pytest.param(pair(KNOWN, later(STEP, 5 * DAY_S), through=THROUGH), True, id="a caller, days later"),
        pytest.param(pair(KNOWN, later(STEP, 5 * DAY_S)), False, id="that does not rise through it"),
        pytest.param(pair(KNOWN, falling(STEP), through=THROUGH), False, id="the other way"),
        pytest.param(
            pair(KNOWN, replace(later(STEP, 5 * DAY_S), after=0.3), through=THROUGH),
            False,
            id="twice as much, days later",
        ),
        pytest.param(
            pair(KNOWN, replace(later(STEP, HOUR_S), after=0.3), through=THROUGH),
            True,
            id="twice as much, soon",
        ),
        pytest.param(
            pair(KNOWN, later(STEP, 7200.0), AGAIN, through=THROUGH), True, id="what is known goes on rising"
        ),
        pytest.param(
            pair(KNOWN, later(STEP, 7200.0), AGAIN, through=THROUGH, changes=CAUSE),
            False,
            id="unless a change modified what rises",
        ),
        pytest.param(
            pair(KNOWN, later(STEP, 7200.0), TAKEN_BACK, through=THROUGH),
            False,
            id="or it had been taken back",
        ),
        pytest.param(
            pair(of_service(KNOWN), later(STEP, 5 * DAY_S), through=THROUGH),
            False,
            id="a metric calls nothing",
        ),
    ],
)
def test_late_callers(pairs: Pairs, holds: bool) -> None:
    assert late_callers(pairs)[0, 1] == holds


RISEN = (0.12,) * 10
NOT_YET = (0.10,) * 10
NEXT = later(STEP, 600.0)


@pytest.mark.parametrize(
    ("pairs", "holds"),
    [
        pytest.param(pair(KNOWN, NEXT, changes=CAUSE, levels=RISEN), True, id="the known one had risen"),
        pytest.param(pair(KNOWN, NEXT, changes=CAUSE, levels=NOT_YET), False, id="it had not"),
        pytest.param(pair(KNOWN, NEXT, changes=CAUSE), False, id="nobody knows"),
        pytest.param(pair(KNOWN, NEXT, levels=RISEN), False, id="no change modified the step"),
        pytest.param(
            pair(KNOWN, NEXT, changes=CAUSE, levels=RISEN, through=THROUGH), False, id="it rises through it"
        ),
        pytest.param(
            pair(KNOWN, NEXT, changes=CAUSE, levels=RISEN, seen_until=T0 + 550.0),
            False,
            id="the scan that reported it was still looking",
        ),
        pytest.param(
            pair(KNOWN, slow(NEXT), changes=CAUSE, levels=RISEN), False, id="a slow rise has no onset"
        ),
        pytest.param(
            pair(
                KNOWN,
                replace(KNOWN, before=0.12, after=0.20, change_time=T0 + 600.0),
                changes=CAUSE,
                levels=RISEN,
            ),
            True,
            id="the known one steps again by more than twice as much",
        ),
    ],
)
def test_onset_order(pairs: Pairs, holds: bool) -> None:
    assert onset_order(pairs)[0, 1] == holds


def test_what_the_change_of_the_known_one_modified_began_with_it() -> None:
    pairs = pair(KNOWN, NEXT, changes=CAUSE, levels=RISEN)
    own = Causes({KNOWN.metric: 1.0}, CAUSE)
    assert not onset_order(replace(pairs, causes=[own, pairs.causes[1]])).any()


def test_what_began_after_the_leader_is_no_part_of_its_event() -> None:
    """The second one that is known has risen by the new step itself."""
    pairs = pair(KNOWN, NEXT, NEXT, changes=CAUSE, levels=RISEN)
    causes = [pairs.causes[0], pairs.causes[2], pairs.causes[1]]
    pairs = replace(pairs, reported=[pairs.reported[0], Reported(STEP, "E1", leads=False)], causes=causes)
    assert onset_order(pairs)[:2, 2].all()
    joined = replace(pairs, reported=[replace(pairs.reported[0], leads=False), pairs.reported[1]])
    assert onset_order(joined)[:2, 2].tolist() == [True, False]


@pytest.mark.parametrize(
    ("level", "holds"), [pytest.param(0.15, True, id="risen"), pytest.param(0.13, False, id="not yet")]
)
def test_levels_are_held_against_what_is_usual_at_these_hours(level: float, holds: bool) -> None:
    """It is 0.13 at this hour of every day, which is above the level after the step at others."""
    day = round(DAY_S / 60.0)
    levels = np.full(4 * day + 10, 0.10)
    for start in range(0, 4 * day, day):
        levels[start : start + 10] = 0.13
    levels[4 * day :] = level
    pairs = pair(KNOWN, NEXT, changes=CAUSE, levels=tuple(levels))
    assert bool(onset_order(replace(pairs, starts=pairs.starts - 4 * DAY_S))[0, 1]) == holds


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda constraint: constraint.key)
def test_a_constraint_is_symmetric_and_registered(constraint: Constraint) -> None:
    found = constraint.holds(pair(KNOWN, NEXT, changes=CAUSE, levels=RISEN))
    assert (found == found.T).all()
    assert constraint.key in steps.CONSTRAINTS


def test_what_is_left_out_neither_allows_nor_forbids() -> None:
    pairs = pair(KNOWN, NEXT, changes=CAUSE, levels=RISEN)
    assert not may_be_one(pairs)[0, 1]
    without = replace(pairs, config=replace(pairs.config, without=frozenset({"onset_order"})))
    assert may_be_one(without)[0, 1]
    nothing = replace(pairs, config=replace(pairs.config, without=frozenset({"same_time", "late_callers"})))
    assert not may_be_one(nothing).any()


def test_a_new_constraint_is_a_function_and_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def same_package(pairs: Pairs) -> BoolArray:
        packages = np.array([name.partition(".")[0] for _, name in pairs.series])
        return np.asarray(packages[:, None] != packages[None, :])

    added = (*CONSTRAINTS, Constraint("same_package", "forbid", same_package))
    monkeypatch.setattr(constraints, "CONSTRAINTS", added)
    assert not may_be_one(pair(KNOWN, STEP))[0, 1]
    assert may_be_one(pair(KNOWN, replace(STEP, metric="lib.fast")))[0, 1]
