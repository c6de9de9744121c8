"""The funnel of a run, and that it knows every step of the stages."""

from __future__ import annotations

from dataclasses import replace

from pipeline.backtest.funnel import count_funnel, ledger_lines
from pipeline.model import Scan
from pipeline.model.steps import FUNNEL, funnel_steps
from tests.support.builders import build_candidate, build_dropped

SCAN = Scan("shop", "live", 1.7e9, 1.7e9 + 30, 1.7e9 + 45, 1.7e9 + 50, 7)


def test_every_step_is_counted_in_order() -> None:
    candidate = build_candidate()
    dropped = [
        build_dropped(candidate, s, 1.0, 2.0, "r") for s in ("som_dedup", "went_away", "went_away", "new")
    ]
    scans = [
        replace(SCAN, candidates=(candidate,), dropped=tuple(dropped[:3])),
        replace(SCAN, dropped=(dropped[3],)),
    ]
    funnel = count_funnel(scans)
    assert (funnel.scans, funnel.series, funnel.change_points, funnel.reported) == (2, 14, 5, 1)
    left = dict(funnel.remaining)
    assert (left["went_away"], left["threshold"], left["som_dedup"], left["new"]) == (3, 3, 2, 1)
    assert [line["step"] for line in ledger_lines(scans)] == ["som_dedup", "went_away", "went_away", "new"]


def test_an_optional_step_has_a_line_where_it_drops_something() -> None:
    seasonal = build_dropped(build_candidate(), "seasonality", 1.0, 2.0, "seasonal")
    plain, with_seasonal = count_funnel([SCAN]), count_funnel([replace(SCAN, dropped=(seasonal,))])
    assert tuple(dict(plain.remaining)) == FUNNEL
    steps = tuple(dict(with_seasonal.remaining))
    assert steps == funnel_steps(["seasonality"])
    assert steps.index("went_away") + 1 == steps.index("seasonality") == steps.index("threshold") - 1
