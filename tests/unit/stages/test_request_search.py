"""A scan at the usual mix of requests: a campaign is none, what fewer requests hide is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.detect.search import find_change_points
from pipeline.analysis.mix.standardise import standardise
from pipeline.model import SeriesMatrix
from pipeline.stages.ablation import NOTHING
from pipeline.stages.gather.request_mix import RequestMixStore, find_request_mix
from pipeline.stages.mix_search import find_at_constant_mix
from pipeline.stages.scanner import search_config
from pipeline.storage.interface import Answer, CountQuery, RequestQuery, SeriesQuery, Store
from pipeline.storage.view import StoreView
from tests.support.served import AT, END, WINDOW_S, serve
from tests.support.served_scans import (
    CASES,
    SERVICE,
    WITHOUT,
    WORKLOAD,
    counted,
    draw,
    scan,
    searched,
    store_of,
)


class Watched(StoreView):
    """A store with the series of one matrix, that counts what it is asked of requests."""

    def __init__(self, store: Store, matrix: SeriesMatrix) -> None:
        super().__init__(store)
        self.matrix = matrix
        self.asked: list[tuple[float, float]] = []

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return some windows of the matrix; longer ones are whole numbers of its own."""
        times = round(query.resolution_s / WINDOW_S)
        first, last = round(query.start / WINDOW_S), round(query.end / WINDOW_S)
        samples, totals = self.matrix.samples[:, first:last], self.matrix.totals[first:last]
        return replace(
            self.matrix,
            start=query.start,
            resolution_s=query.resolution_s,
            samples=samples.reshape(len(samples), -1, times).sum(axis=2),
            totals=totals.reshape(-1, times).sum(axis=1),
        )

    def counts(self, query: CountQuery[Answer]) -> Answer:
        """Return what the store holds."""
        if isinstance(query, RequestQuery):
            self.asked.append((query.start, query.end))
        return self._store.counts(query)


@pytest.mark.parametrize(("case", "found"), [(CASES[2], 5), (CASES[3], 4)])
def test_worth(case: str, found: int) -> None:
    without, within = counted(case, 1, WITHOUT), counted(case, 1, NOTHING)
    assert within[0] < without[0]
    assert without[1] < within[1]
    assert within[1] >= found


def test_what_a_campaign_moves_is_dropped_with_its_numbers() -> None:
    served = draw("a campaign", 1).served
    found = scan(served, store_of(served))
    dropped = [one for one in found.dropped if one.decision.step == "request_mix"]
    assert dropped
    for one in dropped:
        assert one.decision.statistic < one.decision.bound
        assert one.decision.code == "types"
    assert "GET /0" in {one.decision.subjects[0] for one in dropped}
    without = scan(served, store_of(served), WITHOUT)
    assert {one.candidate.series for one in dropped} & {one.series for one in without.candidates}
    assert not without.dropped


@pytest.mark.parametrize("seed", [1, 2])
def test_without_requests_a_scan_decides_as_before_and_asks_once(seed: int) -> None:
    served = draw("a campaign and steps", seed).served
    store = Watched(store_of(served, with_requests=False), served.matrix)
    config = search_config(WORKLOAD, END * WINDOW_S)
    found = find_at_constant_mix(store, searched(served), config, NOTHING)
    assert found.candidates == find_change_points(served.matrix, searched(served).windows, config).candidates
    assert len(store.asked) == 1
    view = RequestMixStore(store, searched(served).requests)
    for _ in range(2):
        matrix = view.series(SeriesQuery("gcpu", SERVICE, 0.0, END * WINDOW_S, WINDOW_S))
        assert (matrix.samples == served.matrix.samples).all()
    assert len(store.asked) == 2


def test_stages_see_what_the_detector_saw() -> None:
    served = serve(1, gain=0.5)
    store = Watched(store_of(served), served.matrix)
    span = searched(served).requests
    found = find_request_mix(store, span, served.matrix)
    assert found is not None
    constant = standardise(served.matrix, found.mix.series, found.mix.factors)
    view = RequestMixStore(store, span)
    for start, end, times in ((0, END, 1), (AT, END, 1), (AT - 36, END, 6)):
        matrix = view.series(SeriesQuery("gcpu", SERVICE, start * WINDOW_S, end * WINDOW_S, times * WINDOW_S))
        wanted = constant.samples[:, start:end].reshape(len(matrix.names), -1, times).sum(axis=2)
        np.testing.assert_allclose(matrix.samples, wanted, rtol=0.005 if times > 1 else 1e-9)
    assert (
        view.series(SeriesQuery("service", SERVICE, 0.0, END * WINDOW_S, WINDOW_S)).samples
        == served.matrix.samples
    ).all()
