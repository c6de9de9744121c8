"""What one scan says of open regressions, on plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.lifecycle import (
    Courses,
    LifecycleConfig,
    LifecycleEvidence,
    OpenRegression,
    confirm_fallbacks,
    courses_of,
    courses_start,
    decide_updates,
    find_fallbacks,
)
from pipeline.analysis.lifecycle.decision import fixing_changes
from pipeline.model import Candidate, FloatArray, Joined, Scan, SeriesKey, SeriesMatrix
from tests.support.builders import build_candidate, build_change

WINDOWS = 200
END = 200.0  # windows of one second
CONFIG = LifecycleConfig(1.0, 100.0, absolute=0.015)
SCAN = Scan("shop", "live", END - 60, END - 30, END - 10, END, series=9)
OWN = build_candidate("shop.f", before=0.1, after=0.2, change_time=100.0)
CALLER = build_candidate("shop.caller", before=0.3, after=0.4, change_time=100.0)
OPEN = OpenRegression("r", replace(OWN, group=(CALLER,)))


def course(*spans: tuple[int, float]) -> FloatArray:
    """Shares for so many windows each, with a little noise."""
    levels = np.concatenate([np.full(windows, share) for windows, share in spans])
    noise: FloatArray = np.random.default_rng(1).normal(0.0, 0.005, len(levels))
    return levels + noise


def courses(values: FloatArray) -> Courses:
    totals = np.full(len(values), 1000.0)
    samples = (values * totals)[None, :]
    start = END - len(values)
    matrix = SeriesMatrix(start, 1.0, ("subroutine",), ("shop.f",), samples, totals)
    return courses_of(matrix, END, service_level=False)


def evidence(
    values: FloatArray | None = None,
    *,
    scan: Scan = SCAN,
    followed: Sequence[OpenRegression] = (OPEN,),
    elsewhere: Sequence[OpenRegression] = (),
) -> LifecycleEvidence:
    known = None if values is None else courses(values)
    return LifecycleEvidence(scan, tuple(followed), tuple(elsewhere), known)


def further(one: Candidate, after: float) -> Candidate:
    return replace(one, before=one.after, after=after, change_time=180.0)


BACK = course((100, 0.1), (50, 0.2), (50, 0.1))
STILL = course((100, 0.1), (100, 0.2))


@pytest.mark.parametrize(
    ("values", "times"),
    [
        pytest.param(BACK, [150.0], id="back at the level before"),
        pytest.param(STILL, [], id="still there"),
        pytest.param(course((100, 0.1), (80, 0.2), (20, 0.1)), [], id="back for too short a time"),
        pytest.param(course((100, 0.1), (10, 0.2), (90, 0.1)), [110.0], id="back long ago"),
    ],
)
def test_what_has_fallen_back(values: FloatArray, times: list[float]) -> None:
    found = find_fallbacks(evidence(values), CONFIG)
    assert [fallback.time for fallback in found] == pytest.approx(times, abs=2.0)


@pytest.mark.parametrize(
    ("change_time", "found"),
    [pytest.param(170.0, 1, id="began before the span"), pytest.param(171.0, 0, id="began within it")],
)
def test_a_regression_within_the_judged_span_is_not_asked_about(change_time: float, found: int) -> None:
    young = replace(OPEN, candidate=replace(OWN, change_time=change_time))
    asked = courses_start(SCAN, [young], CONFIG)
    assert (asked is not None) == bool(found)


@pytest.mark.parametrize(
    ("factor", "kinds"),
    [
        pytest.param(1.0, ["resolved"], id="the series itself fell"),
        pytest.param(0.5, [], id="all shares halved: the rest of the service grew"),
    ],
)
def test_what_moved_all_shares_resolves_nothing(factor: float, kinds: list[str]) -> None:
    known = evidence(BACK)
    fixed = (build_change("fix", ["shop.f"]), build_change("other", ["shop.g"]))
    found = [replace(f, share_factor=factor, changes=fixed) for f in find_fallbacks(known, CONFIG)]
    updates = decide_updates(known, confirm_fallbacks(known, found, CONFIG), CONFIG)
    assert [update.kind for update in updates] == kinds
    for update in updates:
        assert update.level == pytest.approx(0.1, abs=0.01)
        assert [change.id for change in update.changes] == ["fix"]


@pytest.mark.parametrize(
    ("escalating", "wanted"),
    [
        pytest.param([further(OWN, 0.3)], ("shop.f", 0.3), id="its own metric"),
        pytest.param([further(OWN, 0.22)], None, id="by too little"),
        pytest.param([further(CALLER, 0.5)], ("shop.caller", 0.2), id="a member: the own level is read"),
        pytest.param(
            [further(CALLER, 0.9), further(OWN, 0.3)], ("shop.f", 0.3), id="its own metric before a member"
        ),
        pytest.param([further(build_candidate("shop.else"), 0.9)], None, id="a series of none"),
    ],
)
def test_what_has_escalated_is_updated(escalating: list[Candidate], wanted: tuple[str, float] | None) -> None:
    updates = decide_updates(evidence(STILL, scan=replace(SCAN, grown=tuple(escalating))), [], CONFIG)
    if wanted is None:
        assert updates == []
        return
    (update,) = updates
    assert update.escalated is not None
    assert (update.kind, update.escalated.metric) == ("updated", wanted[0])
    assert update.level == pytest.approx(wanted[1], abs=0.01)


def test_the_newest_regression_of_a_series_escalates() -> None:
    newer = replace(OPEN, id="newer")
    scan = replace(SCAN, grown=(further(OWN, 0.3),))
    (update,) = decide_updates(evidence(STILL, scan=scan, followed=(newer, OPEN)), [], CONFIG)
    assert update.regression.id == "newer"


@pytest.mark.parametrize(
    ("joining", "regression", "joined"),
    [
        pytest.param("shop.new", "r", ["shop.new"], id="a new series"),
        pytest.param("shop.caller", "r", [], id="one that it has already"),
        pytest.param("shop.new", "elsewhere", ["shop.new"], id="of another workload's regression"),
        pytest.param("shop.new", "gone", [], id="of a regression that is not known"),
    ],
)
def test_what_joins_a_regression_updates_it(joining: str, regression: str, joined: list[str]) -> None:
    scan = replace(SCAN, joined=(Joined(regression, build_candidate(joining, change_time=150.0)),))
    other = replace(OPEN, id="elsewhere", levels={SeriesKey("subroutine", "shop.f"): 0.25})
    updates = decide_updates(evidence(STILL, scan=scan, elsewhere=(other,)), [], CONFIG)
    assert [candidate.metric for update in updates for candidate in update.joined] == joined
    level = 0.25 if regression == "elsewhere" else 0.2
    assert [update.level for update in updates] == [level] * len(joined)


@pytest.mark.parametrize(("joins", "escalates"), [("r", True), ("elsewhere", False)])
def test_a_metric_that_got_worse_with_another_regression_has_not_escalated(
    joins: str, escalates: bool
) -> None:
    own = replace(OWN, metric_kind="service")
    followed = replace(OPEN, candidate=own)
    other = replace(OPEN, id="elsewhere", candidate=build_candidate("shop.other"))
    scan = replace(SCAN, joined=(Joined(joins, further(own, 0.3)),))
    found = evidence(STILL, scan=scan, followed=(followed,), elsewhere=(other,))
    updates = decide_updates(found, [], CONFIG)
    assert [update.regression.id for update in updates if update.escalated] == ["r"] * escalates
    assert [update.regression.id for update in updates if update.joined] == ["elsewhere"] * (not escalates)


def test_a_scan_without_news_needs_no_courses() -> None:
    young = replace(OPEN, candidate=replace(OWN, change_time=199.0))
    known = evidence(None, followed=(young,))
    assert courses_start(SCAN, known.followed, CONFIG) is None
    assert find_fallbacks(known, CONFIG) == []
    assert decide_updates(known, [], CONFIG) == []


def test_only_changes_of_its_subroutines_are_credited() -> None:
    changes = tuple(
        build_change(name, [subroutine], time=time)
        for name, subroutine, time in (("a", "shop.f", 1.0), ("b", "shop.g", 2.0), ("c", "shop.f", 3.0))
    )
    assert [change.id for change in fixing_changes(changes, frozenset({"shop.f"}))] == ["c", "a"]
    assert [change.id for change in fixing_changes(changes, frozenset({"shop.f"}), most=1)] == ["c"]
