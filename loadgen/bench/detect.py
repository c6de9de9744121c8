"""How many series a second the detect stage screens."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from loadgen.bench.result import Result
from pipeline.detect.scan import Windows, find_candidates
from pipeline.model import SeriesMatrix

SERIES = 4000
WINDOWS = Windows(analysis=1440, extended=1464, end=1500)  # ten days, four and six hours of 10-minute windows
ROUNDS = 5


def measure_detect(advance: Callable[[], None]) -> list[Result]:
    """Screen a matrix of noise several times; the middle time counts.

    Args:
        advance: Called after each round.
    """
    rng = np.random.default_rng(1)
    totals = np.full(WINDOWS.end, 1e6)
    shares = rng.pareto(1.0, (SERIES, 1)).clip(0.01, 100) * 1e-4
    samples = rng.poisson(shares * totals).astype(np.float64)
    kinds, names = ("subroutine",) * SERIES, tuple(f"service.subroutine{i}" for i in range(SERIES))
    matrix = SeriesMatrix(0.0, 600.0, kinds, names, samples, totals)  # type: ignore[arg-type]
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        find_candidates(matrix, WINDOWS)
        times.append(time.perf_counter() - began)
        advance()
    setup = {"series": float(SERIES), "windows": float(WINDOWS.end), "rounds": float(ROUNDS)}
    return [Result("detect", {"series/s": SERIES / float(np.median(times))}, setup)]
