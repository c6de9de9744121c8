"""Datasets by symbols: the names that a live run counts under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pipeline.backtest.counts import summed
from pipeline.backtest.dataset import Dataset
from pipeline.counting.names import Naming
from pipeline.counting.names.merging import added_rows, overcounts, symbol_rows, symbol_stacks
from pipeline.model import FloatArray, IntArray, SeriesKey
from pipeline.model.strata import StratumCounts


def with_symbols(dataset: Dataset, naming: Naming) -> Dataset:
    """Return a dataset whose subroutines are symbols; the same object if they were.

    A live run counts a sample once for a symbol, however many frames of its stack have that symbol. A dataset
    has counts by frames, so that sums over them are scaled by what its stacks say, stack window by
    stack window.
    """
    series = list(map(SeriesKey, dataset.kinds, dataset.names))
    named, row = symbol_rows(series, naming)
    stacks, stack_row = symbol_stacks(dataset.stacks, naming)
    if named is series and stacks is dataset.stacks:
        return dataset
    row_of = {key: number for number, key in enumerate(named)}
    starts = np.arange(len(dataset.totals)) * dataset.window_s
    stack_window = (starts // dataset.stack_window_s).astype(np.int64)
    shares = overcounts(dataset.stacks, dataset.stack_samples, naming)
    scales = {
        row_number: share
        for symbol, share in shares.items()
        if (row_number := row_of.get(SeriesKey("subroutine", symbol))) is not None
    }

    def merged(samples: FloatArray, totals: FloatArray) -> FloatArray:
        found = added_rows(samples, row, len(named))
        for row_number, share in scales.items():
            found[row_number] *= share[np.minimum(stack_window, len(share) - 1)]
        return np.minimum(np.rint(found), totals)

    return replace(
        dataset,
        kinds=tuple(kind for kind, _ in named),
        names=tuple(name for _, name in named),
        samples=merged(dataset.samples, dataset.totals),
        stacks=stacks,
        stack_samples=added_rows(dataset.stack_samples, stack_row, len(stacks)),
        stratum_samples=None
        if dataset.stratum_samples is None
        else _merged(dataset.stratum_samples, row, scales),
        late=tuple(replace(part, samples=merged(part.samples, part.totals)) for part in dataset.late),
    )


def _merged(counts: StratumCounts, row: IntArray, scales: Mapping[int, FloatArray]) -> StratumCounts:
    """Add up counts by the symbols that series have; ``scales`` are (stack windows,) of symbols."""
    merged = summed(row[counts.series], counts.stratum, counts.window, counts.samples)
    samples = merged.samples
    for symbol, share in scales.items():
        chosen = merged.series == symbol
        samples[chosen] *= share[np.minimum(merged.window[chosen], len(share) - 1)]
    return replace(merged, samples=np.rint(samples))
