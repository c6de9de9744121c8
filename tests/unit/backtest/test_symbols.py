from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from pipeline.backtest.dataset import Dataset
from pipeline.backtest.symbols import with_symbols
from pipeline.counting.names import Naming
from pipeline.model.strata import StratumCounts

RAW = Dataset(
    service="s",
    start=0.0,
    end=240.0,
    window_s=60.0,
    stack_window_s=120.0,
    kinds=("endpoint", "subroutine", "subroutine", "subroutine"),
    names=("/f(int)", "a(int)", "a(long)", "main"),
    samples=np.array([[1, 1, 1, 1], [4, 4, 2, 3], [2, 2, 0, 0], [4, 4, 2, 3]], dtype=float),
    totals=np.array([4.0, 4.0, 2.0, 3.0]),
    stacks=(("main", "a(int)", "a(long)"), ("main", "a(int)")),
    stack_samples=np.array([[4.0, 0.0], [4.0, 5.0]]),
    metrics=(),
    changes=(),
)


def test_a_sample_counts_once_for_a_symbol() -> None:
    named = with_symbols(RAW, Naming())
    assert named.names == ("/f(int)", "a", "main")
    assert_allclose(named.samples, [[1, 1, 1, 1], [4, 4, 2, 3], [4, 4, 2, 3]])
    assert named.stacks == (("main", "a", "a"), ("main", "a"))
    assert (named.samples <= named.totals).all()


def test_a_dataset_of_symbols_is_not_copied() -> None:
    assert with_symbols(RAW, Naming(rules=())) is RAW
    named = with_symbols(RAW, Naming())
    assert with_symbols(named, Naming()) is named


def test_a_dataset_without_stacks() -> None:
    bare = replace(RAW, stacks=(), stack_samples=np.zeros((0, 2)))
    assert_allclose(with_symbols(bare, Naming()).samples[1], [4, 4, 2, 3])


def test_strata_count_once_for_a_symbol_too() -> None:
    entries = [(1, 0, 0, 5), (1, 1, 0, 3), (1, 0, 1, 5), (2, 0, 0, 3), (2, 1, 0, 1), (3, 0, 0, 8)]
    series, stratum, window, samples = np.array(entries).T
    counts = StratumCounts(series, stratum, window, samples.astype(float))
    named = with_symbols(replace(RAW, stratum_samples=counts), Naming()).stratum_samples
    assert named is not None
    assert named.series.tolist() == [1, 1, 1, 2]
    assert (named.stratum.tolist(), named.window.tolist()) == ([0, 0, 1, 0], [0, 1, 0, 0])
    assert named.samples.tolist() == [5, 5, 3, 8]  # of 8 and 4 samples by both names, 8 of the symbol
