"""Scans of services whose samples are the work of their requests, with and without the step ``request_mix``.

``python -m tests.support.served_scans`` prints the table of docs/maths/traffic-shift.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.search import SearchResult
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.analysis.mix.request_decision import KEY
from pipeline.model import Record, RequestCounts, SeriesKey, TypeCounts
from pipeline.settings.workloads import load_workloads
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.gather.counted_rows import request_columns
from pipeline.stages.mix_search import Searched, find_at_constant_mix
from pipeline.stages.scanner import search_config
from pipeline.storage.arrays import ArrayStore
from tests.support.served import END, HISTORY, WINDOW_S, Served, keys, serve

(WORKLOAD,) = load_workloads(("frontfaas-small",))
SERVICE = "shop"
WITHOUT: Without = frozenset({KEY})
CASES = ("a campaign", "steps", "a campaign and steps", "steps that fewer requests hide")


@dataclass(frozen=True, slots=True)
class Case:
    """A service with the series that cost more from AT on."""

    served: Served
    truth: frozenset[SeriesKey] = frozenset()


def draw(case: str, seed: int) -> Case:
    """Draw a service in which the mix of requests moves, or steps come, or both."""
    rng = np.random.default_rng((seed, 2))
    served = serve(seed, gain=0.0 if case == "steps" else 0.5)
    if case == "a campaign":
        return Case(served)
    large = np.flatnonzero(served.levels > 0.002)
    rows = sorted(rng.choice(large, 6, replace=False).tolist())
    gains = rng.uniform(0.05, 0.15, len(rows))
    if case == CASES[-1]:
        fell = (served.moved < 0.98) & (served.levels * (1 - served.moved) > 0.0003)
        rows = np.flatnonzero(fell)[:6].tolist()
        gains = 1 / served.moved[rows] - 1
    return Case(served.with_steps(rows, gains, seed), frozenset(keys(rows)))


def store_of(served: Served, *, with_requests: bool = True) -> ArrayStore:
    """Return a store that holds the requests of a service."""
    store, requests = ArrayStore(), served.requests
    if with_requests:
        counted = [
            RequestCounts(SERVICE, "", float(start), requests.width_s, _types(served, window), "v1")
            for window, start in enumerate(requests.starts)
        ]
        columns = request_columns(
            [Record("requests", 0, row, message) for row, message in enumerate(counted)]
        )
        lines = len(columns["service"])
        stamps = {"stream": ["log"] * lines, "topic": ["requests"] * lines}
        store.insert("requests", {**columns, **stamps})
    return store


def _types(served: Served, window: int) -> tuple[TypeCounts, ...]:
    counts = served.requests.requests[:, window]
    return tuple(
        TypeCounts(name, int(many)) for name, many in zip(served.requests.types, counts, strict=True) if many
    )


def searched(served: Served) -> Searched:
    """Return the windows of a scan that ends with the data."""
    return Searched(SERVICE, WORKLOAD, served.matrix, WindowIndexes(HISTORY, END - 36, END))


def scan(served: Served, store: ArrayStore, without: Without = NOTHING) -> SearchResult:
    """Return the result of one scan."""
    return find_at_constant_mix(store, searched(served), search_config(WORKLOAD, END * WINDOW_S), without)


def counted(case: str, seed: int, without: Without) -> tuple[int, int, int]:
    """Return the numbers of unchanged series found, of changed series found, and of all changed series."""
    drawn = draw(case, seed)
    candidates = {
        candidate.series for candidate in scan(drawn.served, store_of(drawn.served), without).candidates
    }
    return len(candidates - drawn.truth), len(candidates & drawn.truth), len(drawn.truth)


def main(seeds: int = 20) -> None:
    """Print the table."""
    for case in CASES:
        cells = []
        for without in (WITHOUT, NOTHING):
            sums = np.sum([counted(case, seed, without) for seed in range(1, seeds + 1)], axis=0)
            cells.append(sums.tolist())
        (false, hits, _), (false_with, hits_with, steps) = cells
        print(f"| {case} | {false} | {false_with} | {hits} of {steps} | {hits_with} of {steps} |")


if __name__ == "__main__":
    main()
