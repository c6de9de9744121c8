from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from pipeline.model import SeriesKey, StackMatrix, StrataMatrix, Stratum
from pipeline.model.errors import ConfigError
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery
from pipeline.views.dashboard import Login, Sources
from pipeline.views.dashboard.board import Snapshot
from pipeline.views.dashboard.figures import MOST_POINTS, SPANS, _arrange_names, span_of
from pipeline.views.dashboard.flames import annotated, within
from pipeline.views.dashboard.pages.explorer import SampleSender, senders_of
from pipeline.views.dashboard.pages.services import _once, funnel_of, read_day
from pipeline.views.dashboard.selection import read_view
from pipeline.views.dashboard.service_state import service_state
from pipeline.views.dashboard.site import Site
from pipeline.views.report.figures import series_figure
from pipeline.views.report.windows import DrawnSeries, ScanWindows
from tests.support.looked_into import WEEKLY
from tests.unit.views.dashboard.test_query import DAY_S, NOW

WINDOWS = ScanWindows(600.0, NOW - 5 * DAY_S, NOW - DAY_S, NOW - DAY_S / 4, NOW)


@pytest.mark.parametrize("span", SPANS)
def test_a_drawn_span_holds_its_change_and_has_few_points(span: str) -> None:
    change = NOW - DAY_S / 2
    start, end, resolution = span_of(WINDOWS, change, span, NOW + DAY_S)
    assert start < change < end
    assert (end - start) / resolution <= MOST_POINTS + 1
    assert resolution % WINDOWS.resolution_s == 0
    assert (start - WINDOWS.start) % resolution == 0


def test_the_funnel_adds_up() -> None:
    stages = funnel_of(["", "went_away", "threshold", "went_away", ""])
    assert [(one.step, one.dropped, one.left) for one in stages] == [("went_away", 2, 3), ("threshold", 1, 2)]
    assert funnel_of([]) == []


def test_a_day_is_the_given_one_or_that_of_the_last_scan() -> None:
    assert str(read_day("2026-01-31", None, NOW)[0]) == "2026-01-31"
    assert read_day("", DAY_S * 1.5, NOW)[1] == DAY_S
    with pytest.raises(ConfigError, match="day: should be as"):
        read_day("yesterday", None, NOW)


def test_a_view_reads_its_address() -> None:
    view = read_view({"span": "1h", "against": "week", "end": "2026-01-12T00:00"}, "shop", NOW)
    assert (view.service, view.end - view.start) == ("shop", 3600.0)
    assert view.before == (view.start - 7 * DAY_S, view.end - 7 * DAY_S)
    alone = read_view({}, "shop", NOW)
    assert alone.end == NOW
    assert alone.before[0] == alone.before[1]
    for given in ({"span": "2y"}, {"against": "none"}, {"end": "noon"}, {"end": "1970-01-12"}):
        with pytest.raises(ConfigError, match=f"{next(iter(given))}: "):
            read_view(given, "shop", NOW)


def test_stacks_within_an_element_keep_the_totals_of_the_service() -> None:
    frames = (("main", "endpoint=/a", "x"), ("main", "y"))
    stacks = StackMatrix(frames, np.array([1.0, 2.0]), np.array([3.0, 4.0]), 3.0, 7.0)
    chosen = within(stacks, "x")
    assert chosen.stacks == frames[:1]
    assert (chosen.total_before, chosen.total_after) == (3.0, 7.0)
    (endpoint,) = annotated(stacks)
    assert (endpoint.subroutine, endpoint.before, endpoint.after) == ("endpoint=/a", 1 / 3, 3 / 7)


def test_senders_are_counted_by_host_release_or_label() -> None:
    strata = StrataMatrix(
        start=0.0,
        resolution_s=10.0,
        strata=(Stratum("h1", "v1", (("region", "east"),)), Stratum("h2", "v2", (("region", "east"),))),
        totals=np.array([[10.0, 10.0], [60.0, 20.0]]),
        series=(SeriesKey("subroutine", "x"),),
        samples=np.array([[5.0, 20.0]]),
        counted=(0.0, 20.0),
    )
    assert senders_of(strata, "region") == [SampleSender("east", 100.0, 1.0, 0.25)]
    assert [(one.name, one.share, one.gcpu) for one in senders_of(strata, "release")] == [
        ("v2", 0.8, 0.25),
        ("v1", 0.2, 0.25),
    ]
    assert senders_of(strata, "colour")[0].name == "(not said)"


def test_a_service_says_what_keeps_it_from_being_judged() -> None:
    scans = [
        {"workload": "a", "time": 10.0, "series": 5, "candidates": 0},
        {"workload": "a", "time": 20.0, "series": 5, "candidates": 2},
        {"workload": "b", "time": 15.0, "series": 5, "candidates": 0},
    ]
    lacking = {"code": "no_history", "value": 0.3, "bound": 0.5}
    unjudged = [
        {"workload": "b", "time": 15.0, "series": 5, **lacking},
        {"workload": "a", "time": 20.0, "series": 2, **lacking},
        {"workload": "a", "time": 10.0, "series": 5, **lacking},
    ]
    state = service_state("shop", scans, unjudged, 3.0)
    assert (state.last_scan, state.series) == (20.0, 5)
    assert [(one.name, one.judged, one.scans) for one in state.workloads] == [("a", True, 2), ("b", False, 1)]
    assert len(state.gaps) == 1
    assert state.gaps[0].startswith("b: no_history: 30%")
    assert service_state("new", [], [], 0.0).gaps[0].startswith("not scanned yet")


@pytest.mark.slow
async def test_a_regression_that_is_newer_than_the_snapshot_is_looked_for(
    looked_into: tuple[ArrayStore, float],
) -> None:
    """Whoever follows an alert at once sees its page; ids that nobody has are looked for once a second."""
    store, end = looked_into
    moment = [end]
    site = Site(Sources(store, {WEEKLY.name: WEEKLY}, clock=lambda: moment[0]), Login())
    (event, *_) = [row["id"] for row in store.rows(RowQuery("regressions", None))]
    assert await site.find("none") is None
    version = site.board.snapshot.version
    found = await site.find(event)
    assert found
    assert found.id == event
    site.board.snapshot = Snapshot(version=version)
    assert await site.find(event) is None  # within the second
    moment[0] += 1.0
    both = await asyncio.gather(site.find(event), site.find(event))
    assert all(both), "the second waits for the first"


def test_a_candidate_of_many_scans_is_one_line() -> None:
    def row(metric: str, step: str, time: float) -> dict[str, Any]:
        return {"workload": "live", "metric_kind": "subroutine", "metric": metric, "step": step, "time": time}

    rows = [
        row("a", "went_away", 3),
        row("a", "went_away", 2),
        row("b", "went_away", 2),
        row("a", "threshold", 1),
        row("a", "went_away", 1),
    ]
    assert [(line["metric"], line["step"], line["time"], line["scans"]) for line in _once(rows)] == [
        ("a", "went_away", 3, 3),
        ("b", "went_away", 2, 1),
        ("a", "threshold", 1, 1),
    ]


CHANGE: dict[str, str | None] = {"change point": None}


@pytest.mark.parametrize(
    ("start", "end", "names"),
    [
        (
            NOW - 5 * DAY_S,
            NOW,
            {"historical": "left", "analysis": "left", "extended": "left", "change point": None},
        ),
        (NOW - 91 * DAY_S, NOW, {"change point": "right"}),
        (NOW - DAY_S, NOW + 60 * DAY_S, {"change point": "left"}),
    ],
    ids=["scan", "a quarter before", "two months after"],
)
def test_names_of_windows_do_not_pile_up(start: float, end: float, names: dict[str, str | None]) -> None:
    line = DrawnSeries(np.array([start, end]), np.array([0.1, 0.2]), ratio=True)
    figure = series_figure(line, WINDOWS, NOW - DAY_S / 2, 0.1, 0.2)
    _arrange_names(figure, WINDOWS, start, end)
    assert {note.text: note.xanchor for note in figure.layout.annotations} == names
