"""The funnel of a run, and that it knows every step of the stages."""

from __future__ import annotations

from dataclasses import replace

from pipeline.backtest.funnel import STEPS, count_funnel, ledger_lines
from pipeline.model import Scan, steps
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


def test_the_steps_are_those_of_the_registry() -> None:
    assert STEPS == steps.FUNNEL
