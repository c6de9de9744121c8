"""Which regressions a scan has to follow."""

from __future__ import annotations

import pytest

from pipeline.analysis.lifecycle import OpenRegression, Update, UpdateKind
from pipeline.messages.events import encode_event, regression_event, update_event
from pipeline.messages.lifecycle import regression_columns, update_columns
from pipeline.model import Regression, Scan
from pipeline.stages.gather.lifecycle import open_regressions
from pipeline.storage.arrays import ArrayStore
from tests.support.builders import build_candidate

T0 = 1_700_000_000.0
HOUR_S = 3600.0
FOUND = build_candidate("shop.f", change_time=T0)
REPORTED = Regression("r", "shop", "live", FOUND, T0 + HOUR_S)


def scan(hours: float, workload: str = "live") -> Scan:
    end = T0 + hours * HOUR_S
    return Scan("shop", workload, end - HOUR_S, end - HOUR_S, end, end, series=1)


def store_with(*updates: tuple[UpdateKind, float, str]) -> ArrayStore:
    """A store with a regression that was reported after an hour, and updates of it by hours and workload."""
    store = ArrayStore()
    store.insert("regressions", regression_columns([REPORTED], [encode_event(regression_event(REPORTED))]))
    for kind, hours, workload in updates:
        time = T0 + hours * HOUR_S
        update = Update(kind, OpenRegression("r", FOUND), "shop", workload, time, time, 0.5)
        store.insert("updates", update_columns([update], [encode_event(update_event(update))]))
    return store


@pytest.mark.parametrize(
    ("updates", "now", "is_open"),
    [
        pytest.param([], scan(1), False, id="by the scan itself"),
        pytest.param([], scan(2), True, id="by an earlier scan"),
        pytest.param([("updated", 2, "live")], scan(3), True, id="updated"),
        pytest.param([("resolved", 2, "live")], scan(3), False, id="resolved before"),
        pytest.param([("resolved", 3, "live")], scan(3), True, id="resolved by the scan itself, made again"),
        pytest.param([("resolved", 4, "live")], scan(3), False, id="a later scan was first to resolve it"),
        pytest.param([("updated", 4, "live")], scan(3), True, id="updated later"),
    ],
)
def test_nothing_comes_after_a_resolution(
    updates: list[tuple[UpdateKind, float, str]], now: Scan, is_open: bool
) -> None:
    store = store_with(*updates)
    assert [one.id for one in open_regressions(store, now)] == ["r"] * is_open
    if now.end > T0 + HOUR_S:
        # Asked for by its id, as a scan of another workload does that has found what belongs to it.
        assert [one.id for one in open_regressions(store, now, regression="r")] == ["r"] * is_open


def test_levels_are_those_of_earlier_scans() -> None:
    (one,) = open_regressions(store_with(("updated", 4, "live")), scan(3))
    assert one.levels == {}
