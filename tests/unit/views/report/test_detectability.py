"""What a workload detects in thin data: a size, or none, and never an error or a number without sense."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import FloatArray, MetricKind, SeriesMatrix
from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import known_workloads
from pipeline.storage.interface import SeriesQuery, Store
from pipeline.views.report.detectability import Outlook, outlooks_of, sizes_of

LIVE = known_workloads(())["live"]
WINDOWS = round(LIVE.span_s / LIVE.resolution_s)
END = 1_760_000_000.0


class OneMatrix:
    """A store of one matrix."""

    def __init__(self, samples: FloatArray, totals: FloatArray) -> None:
        names = tuple(f"f{number}" for number in range(len(samples)))
        kinds: list[MetricKind] = ["subroutine"] * len(names)
        start = END - LIVE.span_s
        self._matrix = SeriesMatrix(start, LIVE.resolution_s, tuple(kinds), names, samples, totals)

    def series(self, _: SeriesQuery) -> SeriesMatrix:
        return self._matrix


def looked(samples: Any, totals: Any) -> list[Outlook]:
    matrix = np.atleast_2d(np.asarray(samples, dtype=np.float64)), np.asarray(totals, dtype=np.float64)
    _, outlooks = outlooks_of(cast(Store, OneMatrix(*matrix)), "shop", LIVE, END)
    return outlooks


def drawn(totals: FloatArray, gcpu: float = 0.2) -> FloatArray:
    return np.random.default_rng(1).binomial(totals.astype(int), gcpu, (20, WINDOWS)).astype(np.float64)


@given(st.data())
def test_thin_data_give_sizes_within_a_share_of_the_service(data: st.DataObject) -> None:
    totals = np.zeros(WINDOWS)
    for window in data.draw(st.lists(st.integers(0, WINDOWS - 1), max_size=12)):
        totals[window] = data.draw(st.integers(1, 200))
    shares = data.draw(st.lists(st.sampled_from([0.0, 0.01, 0.5, 1.0]), min_size=1, max_size=4))
    samples = np.floor(np.array(shares)[:, None] * totals)
    try:
        outlooks = looked(samples, totals)
    except ConfigError:
        assert not samples.any()
        return
    for outlook in outlooks:
        assert 0 < outlook.gcpu <= 1
        assert 1 <= outlook.dispersion < 1e6
        for size in (outlook.after_analysis, outlook.after_extended):
            assert size is None or 0 < size <= 1


def test_what_every_sample_holds_has_no_noise() -> None:
    totals = np.full(WINDOWS, 50.0)
    totals[:30] = 0
    assert [outlook.dispersion for outlook in looked(totals, totals)] == [1.0] * 3


def test_a_pause_does_not_count_as_traffic() -> None:
    totals = np.full(WINDOWS, 50.0)
    steady = looked(drawn(totals), totals)[1].after_extended
    totals[40:] = 0
    paused = looked(drawn(totals), totals)[1].after_extended
    assert steady is not None
    assert paused == pytest.approx(steady, rel=0.15)


def test_only_sizes_that_a_workload_reports_are_shown() -> None:
    assert sizes_of(LIVE) == (0.05, 0.5)
    assert math.isclose(min(sizes_of(known_workloads(())["frontfaas-small"])), 0.00005)
