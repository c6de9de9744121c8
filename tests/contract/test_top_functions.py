"""Top functions of every store, by release."""

from __future__ import annotations

import pytest

from pipeline.model import Stratum
from pipeline.model.frames import element
from pipeline.storage.interface import Store
from pipeline.views.dashboard.top_functions import LATE_S, SPAN_S, TopFunction, read_top_functions
from tests.contract.rows import T0, stacks, strata_stacks, strata_totals

OLD, NEW = Stratum.of({}, host="a", release="v1"), Stratum.of({}, host="b", release="v2")
ADD, PAY = ("main", "shop.add"), ("main", "shop.pay", element("endpoint", "/pay"))
NOW = (T0 // SPAN_S + 1) * SPAN_S + LATE_S


def test_functions_of_a_release_are_those_that_run_themselves(store: Store, service_name: str) -> None:
    for stratum in (OLD, NEW):
        row = {**stratum.row, "service": service_name, "time": T0}
        store.insert("strata", {name: [value] for name, value in row.items()})
    store.insert("strata_totals", strata_totals(service_name, [(OLD, 0, 40), (NEW, 120, 20)]))
    store.insert("stacks", stacks(service_name, [(ADD, T0, 30), (PAY, T0, 30)]))
    counts = [(ADD, OLD, 0, 30), (PAY, OLD, 0, 10), (PAY, NEW, 120, 20)]
    store.insert("strata_stacks", strata_stacks(service_name, counts))
    assert list(read_top_functions(store, [service_name], NOW)) == [
        TopFunction(service_name, "v1", "shop.add", 0.75),
        TopFunction(service_name, "v1", "shop.pay", 0.25),
        TopFunction(service_name, "v2", "shop.pay", 1.0),
    ]
    assert len(list(read_top_functions(store, [service_name], NOW, 1))) == 2


def test_a_service_whose_senders_are_not_known_has_no_release(store: Store, service_name: str) -> None:
    store.insert("stacks", stacks(service_name, [(ADD, T0, 30), (PAY, T0, 10)], 60))
    found, _ = read_top_functions(store, [service_name, "absent"], NOW)
    assert (found.release, found.function) == ("", "shop.add")
    assert found.gcpu == pytest.approx(0.75)
