"""Record of new releases compared by their requests: events and ledger of several services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loadgen.requests.simulate import PERIOD_S, PRESETS, Preset, simulate
from pipeline.backtest.flow import Flow
from pipeline.messages.ledger import entry_from_row, entry_to_json
from pipeline.messages.measurements import encode_metric_points
from pipeline.messages.requests import encode_requests
from pipeline.model import FloatArray, MetricPoints, RequestCounts, TypeCounts
from pipeline.releases.requests import Releases
from pipeline.settings.config import Settings
from pipeline.settings.workloads import load_workloads
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery

START = 1_700_000_010.0
STAGES = ("aggregate", "releases", "dedup", "rootcause")
_PLAIN = replace(PRESETS["plain"], old=240, new=120)

SERVICES: Mapping[str, tuple[Preset, float]] = {
    "dearer": (_PLAIN, 0.2),
    "small": (_PLAIN, 0.03),
    "same": (_PLAIN, 0.0),
    "busier": (replace(_PLAIN, drift=0.5), 0.15),
    "unseen": (replace(_PLAIN, drift=2.0), 0.1),
    "few": (replace(_PLAIN, old=20), 0.2),
    "correlated": (replace(_PLAIN, types=20, scenarios=3, memory=0.5), 0.2),
    "constant": (_PLAIN, 0.0),
    "silent": (_PLAIN, 0.2),
}
"""Service → how it behaves, and what the new release makes its metric rise by.

The metric of ``constant`` is made constant, ``silent`` sends none.
"""


def recorded_releases() -> dict[str, list[Any]]:
    """Return the events and the ledger's rows of all services."""
    store = ArrayStore()
    flow = Flow(
        store,
        load_workloads(("frontfaas-small",)),
        settings=Settings(),
        clock=lambda: START + 1e6,
        stages=STAGES,
    )
    for number, (service, (preset, share)) in enumerate(SERVICES.items()):
        releases = simulate(preset, np.random.default_rng((3, number)), share).releases
        if service != "silent":
            flow.send("metrics", [_metric(service, releases)])
        requests = list(_requests(service, releases))
        for first in range(0, len(requests), 10):
            flow.send("requests", requests[first : first + 10])
    ledger = [entry_to_json(entry_from_row(row)) for row in store.rows(RowQuery("ledger", None))]
    return {"events": flow.events(), "ledger": ledger}


def _metric(service: str, releases: Releases) -> bytes:
    values: FloatArray = np.concatenate([releases.old.metric, releases.new.metric])
    if service == "constant":
        values = np.full_like(values, 0.5)
    times = START + PERIOD_S * (np.arange(len(values), dtype=np.float64) + 0.5)
    return encode_metric_points(MetricPoints(service, "cpu", times, values))


def _requests(service: str, releases: Releases) -> Iterator[bytes]:
    counts = np.concatenate([releases.old.counts, releases.new.counts])
    for period, row in enumerate(counts.astype(int).tolist()):
        release = "v1" if period < len(releases.old) else "v2"
        types = tuple(
            TypeCounts(name, count) for name, count in zip(releases.types, row, strict=True) if count
        )
        start = START + PERIOD_S * period
        yield encode_requests(RequestCounts(service, f"host of {release}", start, PERIOD_S, types, release))
