"""A store in the past lacks exactly what had not arrived."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.late import LateService, StoreInThePast
from pipeline.backtest.run import run_backtest
from pipeline.backtest.symbols import with_symbols
from pipeline.counting.names import Naming
from pipeline.settings.workloads import Workload, load_workloads
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import SeriesQuery, StrataQuery

DELAY_S = 1800.0


@pytest.fixture(scope="module")
def data() -> Dataset:
    keys = {
        "name": "t",
        "duration": "1d",
        "samples_per_minute": 6,
        "graph": {"subroutines": 40, "endpoints": 3},
        "servers": {"count": 40},
        "hosts": {"count": 4, "late": {"share": 0.5, "delay": "30m"}},
        "changes": {"count": 0, "release_every": "6h"},
    }
    return simulate(Scenario.model_validate(keys, by_alias=True), 3).dataset


def in_the_past(data: Dataset, now: float) -> StoreInThePast:
    late = LateService("shop", data.start, data.window_s, data.series, data.strata, data.late)
    store = StoreInThePast(ArrayStore(data), late)
    store.now = now
    return store


@pytest.mark.parametrize("resolution_s", [600.0, 1800.0])
def test_what_was_on_its_way_is_not_there(data: Dataset, resolution_s: float) -> None:
    start, now = data.start + 6 * 3600, data.start + 12 * 3600
    (part,) = data.late
    past, whole = in_the_past(data, now), ArrayStore(data)
    found = past.series(SeriesQuery("gcpu", "shop", start, now, resolution_s))
    wanted = whole.series(SeriesQuery("gcpu", "shop", start, now, resolution_s))
    late = round(DELAY_S / resolution_s)
    np.testing.assert_array_equal(found.totals[:-late], wanted.totals[:-late])
    np.testing.assert_array_equal(found.samples[:, :-late], wanted.samples[:, :-late])
    end = round((now - data.start) / data.window_s)
    first = end - round(DELAY_S / data.window_s)
    missing = wanted.totals[-late:].sum() - found.totals[-late:].sum()
    assert missing == part.totals[first:end].sum() > 0.3 * wanted.totals[-late:].sum()
    row = wanted.series.index(data.series[2])
    gone = wanted.samples[row, -late:].sum() - found.samples[row, -late:].sum()
    assert gone == part.samples[2, first:end].sum()


def test_late_senders_are_not_there_yet(data: Dataset) -> None:
    now = data.start + 12 * 3600
    found = in_the_past(data, now).counts(StrataQuery("shop", data.start, now, 600.0))
    recent, before = found.totals[:, -3:].sum(axis=1), found.totals[:, -6:-3].sum(axis=1)
    assert (before > 0).sum() == 4
    assert ((recent == 0) & (before > 0)).sum() == 2


def test_in_the_end_everything_is_there(data: Dataset) -> None:
    found = in_the_past(data, float("inf")).series(SeriesQuery("gcpu", "shop", data.start, data.end, 600.0))
    np.testing.assert_array_equal(found.samples, data.samples)
    np.testing.assert_array_equal(found.totals, data.totals)
    metrics = in_the_past(data, data.start).series(
        SeriesQuery("service", "shop", data.start, data.end, 600.0)
    )
    assert metrics.samples.any()


def test_only_some_series(data: Dataset) -> None:
    now = data.start + 12 * 3600
    some = [data.series[5], data.series[1]]
    whole = in_the_past(data, now).series(SeriesQuery("gcpu", "shop", data.start, now, 600.0))
    found = in_the_past(data, now).series(SeriesQuery("gcpu", "shop", data.start, now, 600.0, some))
    rows = [whole.series.index(key) for key in found.series]
    np.testing.assert_array_equal(found.samples, whole.samples[rows])


def test_late_counts_have_symbols_too(data: Dataset) -> None:
    (part,) = data.late
    spelt = replace(data, names=tuple(f"{name}(int)" for name in data.names))
    named = with_symbols(spelt, Naming())
    (found,) = named.late
    assert found.samples.sum() == pytest.approx(part.samples.sum(), rel=0.01)


def short_workload() -> Workload:
    (chosen,) = load_workloads(["frontfaas-small"])
    return chosen.model_copy(update={"historical_s": 6 * 3600.0})


def test_a_backtest_of_hosts_that_are_never_late_is_the_same(data: Dataset) -> None:
    on_time = replace(data, late=tuple(replace(part, delay_s=0.0) for part in data.late))
    plain = run_backtest(replace(data, late=()), [short_workload()])
    assert run_backtest(on_time, [short_workload()]) == plain
    assert plain.scans
