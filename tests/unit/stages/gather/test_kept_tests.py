"""Kept tests out of what the store has of regressions, verdicts, changes and trials."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.messages.records import columns_of
from pipeline.model import VerdictKind
from pipeline.settings.workloads import Workload, known_workloads
from pipeline.stages.gather.kept_tests import gather_kept
from pipeline.stages.gather.reported import due_s
from pipeline.storage.arrays import ArrayStore
from tests.support.fixed_regressions import (
    CAUSE,
    T,
    insert_regression,
    insert_resolution,
    insert_trials,
    insert_verdict,
)


@pytest.fixture(scope="module")
def workloads() -> dict[str, Workload]:
    (one,) = list(known_workloads(()).values())[:1]
    return {"hours": one}


def test_a_fixed_regression_leaves_a_test_with_all_that_is_known(workloads: dict[str, Workload]) -> None:
    store = ArrayStore()
    insert_regression(store, modified=("shop.price", "shop.unrelated"))
    insert_trials(store)
    assert gather_kept(store, "shop", workloads) == ()
    insert_verdict(store, "fixed")
    (kept,) = gather_kept(store, "shop", workloads)
    assert (kept.regression, kept.service, kept.cause) == ("r1", "shop", CAUSE)
    assert (kept.metric_kind, kept.metric) == ("subroutine", "shop.cart")
    assert kept.threshold == pytest.approx(0.02)
    assert kept.subroutines == ("shop.cart", "shop.price")
    assert kept.experiments == ("pr-1",)
    (trials,) = kept.trials
    assert trials.metric == "cpu"
    assert trials.needed in range(1, 5)
    assert gather_kept(store, "other", workloads) == ()


@pytest.mark.parametrize(
    ("said", "fixing", "causes"),
    [
        ([], ["fix-1"], [CAUSE]),
        ([], [], []),
        ([("cause", "another")], ["fix-1"], ["another"]),
        ([("expected", "")], ["fix-1"], []),
    ],
    ids=["ended by a change", "gone, and why is not known", "a person named the cause", "planned"],
)
def test_a_resolution_by_a_change_is_a_fix(
    said: list[tuple[VerdictKind, str]], fixing: list[str], causes: list[str], workloads: dict[str, Workload]
) -> None:
    store = ArrayStore()
    insert_regression(store)
    insert_resolution(store, *fixing)
    for kind, subject in said:
        insert_verdict(store, kind, subject)
    assert [one.cause for one in gather_kept(store, "shop", workloads)] == causes


@pytest.mark.parametrize(("named", "modified"), [("abc12", True), ("abd12", False)])
def test_a_cause_may_be_named_by_the_beginning_of_its_id(
    named: str, workloads: dict[str, Workload], *, modified: bool
) -> None:
    store = ArrayStore()
    insert_regression(store, modified=("shop.price",))
    insert_verdict(store, "cause", named)
    insert_verdict(store, "fixed")
    (kept,) = gather_kept(store, "shop", workloads)
    assert kept.subroutines == (("shop.cart", "shop.price") if modified else ("shop.cart",))


def test_what_scans_still_see_is_not_fixed(workloads: dict[str, Workload]) -> None:
    store = ArrayStore()
    insert_regression(store)
    insert_verdict(store, "fixed")
    end = T + 7200.0 + due_s(workloads["hours"])
    store.insert("scans", columns_of([scan_row(end - 1.0)]))
    assert len(gather_kept(store, "shop", workloads)) == 1
    store.insert("scans", columns_of([scan_row(end)]))
    assert gather_kept(store, "shop", workloads) == ()


def scan_row(time: float) -> dict[str, Any]:
    return {"service": "shop", "workload": "hours", "time": time, "series": 1, "candidates": 0}
