"""The filters one after the other, on plain values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.filters import FilterConfig, FilterEvidence, Known, decide_filters
from pipeline.analysis.filters.decision import filter_of
from pipeline.model import Candidate, Scan, SeriesMatrix
from pipeline.model.steps import FILTERS, Step
from tests.support.builders import build_candidate

WINDOWS, CHANGE = 300, 260
CONFIG = FilterConfig(1800.0, 48 * 1800.0, absolute=0.01)


def at(window: int) -> float:
    return window * 1800.0


STEP = build_candidate("shop.step", before=0.1, after=0.2, change_time=at(CHANGE))
GONE = build_candidate("shop.gone", before=0.1, after=0.2, change_time=at(CHANGE))
SMALL = build_candidate("shop.step", before=0.1, after=0.105, change_time=at(CHANGE))
CHANCE = replace(STEP, p_value=0.5)
SLOW_GONE = replace(GONE, kind="long_term")
EARLIER = Known(replace(STEP, change_time=at(CHANGE - 1)), at(WINDOWS - 4))


def evidence(*candidates: Candidate, known: tuple[Known, ...] = ()) -> FilterEvidence:
    window = np.arange(WINDOWS)
    stays = np.where(window >= CHANGE, 0.2, 0.1)
    returns = np.where((window >= CHANGE) & (window < CHANGE + 10), 0.2, 0.1)
    totals = np.full(WINDOWS, 50_000.0)
    samples = np.random.default_rng(5).binomial(50_000, np.array([stays, returns])).astype(np.float64)
    names = ("shop.step", "shop.gone")
    matrix = SeriesMatrix(0.0, 1800.0, ("subroutine", "subroutine"), names, samples, totals)
    scan = Scan("shop", "w", 0.0, at(240), at(288), at(WINDOWS), 100, candidates)
    return FilterEvidence(scan, matrix, known)


@pytest.mark.parametrize(
    ("candidate", "known", "dropped_by"),
    [
        pytest.param(STEP, (), None, id="a lasting step"),
        pytest.param(GONE, (), "went_away", id="it went away"),
        pytest.param(SLOW_GONE, (), None, id="a slow rise is not asked whether it went away"),
        pytest.param(SMALL, (), "threshold", id="too small"),
        pytest.param(CHANCE, (), "significance", id="may be chance"),
        pytest.param(STEP, (EARLIER,), "same_regression", id="known already"),
    ],
)
def test_the_first_filter_that_objects_drops(
    candidate: Candidate, known: tuple[Known, ...], dropped_by: str | None
) -> None:
    found = decide_filters(evidence(candidate, known=known), CONFIG)
    assert [line.decision.step for line in found.dropped] == ([dropped_by] if dropped_by else [])
    assert len(found.passed) == (dropped_by is None)
    assert found.escalated == ()


def test_what_passes_carries_every_decision_in_the_order_of_the_registry() -> None:
    (passed,) = decide_filters(evidence(STEP), CONFIG).passed
    assert [decision.step for decision in passed.passed] == [
        step.key for step in FILTERS if not step.optional
    ]


def test_an_optional_step_is_asked_where_it_is_named() -> None:
    (passed,) = decide_filters(evidence(STEP), replace(CONFIG, optional=("seasonality",))).passed
    assert [decision.step for decision in passed.passed] == [step.key for step in FILTERS]


def test_a_step_that_is_left_out_is_not_asked() -> None:
    found = decide_filters(evidence(GONE, CHANCE), CONFIG, without={"went_away", "significance"})
    assert [candidate.metric for candidate in found.passed] == ["shop.gone", "shop.step"]


@pytest.mark.parametrize("step", FILTERS, ids=lambda step: step.key)
def test_every_filter_of_the_registry_is_a_module(step: Step) -> None:
    assert callable(filter_of(step))
