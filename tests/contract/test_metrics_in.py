"""Metrics of other systems and of access logs, in every store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format
from agents.metrics import MetricMap, read_otlp_metrics
from agents.metrics.conversion import Conversion
from pipeline.messages.measurements import encode_metric_points
from pipeline.model import Outgoing, Record
from pipeline.stages.aggregate import AggregateStage
from pipeline.storage.interface import RequestQuery, SeriesQuery, Store
from tests.support.metric_senders import add_metric, add_point, otlp_request

T0 = 1_700_000_010.0
BOUNDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


def aggregated(store: Store, service: str, *batches: Sequence[Outgoing]) -> None:
    """Hand batches of messages to the stage as a partition has them."""
    stage = AggregateStage(
        store=store,
        clock=lambda: T0 + 10_000,
        streams=dict.fromkeys(("metrics", "requests"), service),
        window_s=60.0,
        stack_window_s=600.0,
    )
    logs: dict[str, list[Record]] = {topic: [] for topic in ("metrics", "requests")}
    for batch in batches:
        for topic, log in logs.items():
            values = [message.value for message in batch if message.topic == topic]
            first = len(log)
            log += [Record(topic, 0, first + i, stage.inputs[topic](v)) for i, v in enumerate(values)]
            if values:
                stage.handle(log[first:])


def test_a_latency_that_rises_has_its_p99_in_the_store(store: Store, service_name: str) -> None:
    conversion = Conversion(MetricMap(wait=20.0))
    rng = np.random.default_rng(7)
    counts = np.zeros((2, len(BOUNDS) + 1), dtype=np.int64)
    took: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
    for step in range(80):
        slowness = 1.0 if step <= 40 else 4.0
        both = slowness * rng.lognormal(-2.5, 0.5, (2, 300))
        took.append(both.ravel())
        for host in range(2):
            counts[host] += np.histogram(both[host], (0, *BOUNDS, np.inf))[0]
            request = otlp_request(service_name)
            data = add_metric(request, "http.server.request.duration", "s").histogram
            data.aggregation_temporality = 2
            point = add_point(
                data, T0 + 15 * step, T0 - 500, bucket_counts=counts[host].tolist(), explicit_bounds=BOUNDS
            )
            label = point.attributes.add(key=b"host.name")
            label.value.string_value = b"ab"[host : host + 1]
            conversion.take(read_otlp_metrics(request.SerializeToString()).readings, T0 + 15 * step)
    messages = [
        Outgoing("metrics", "", encode_metric_points(points)) for points in conversion.close(T0 + 1200)
    ]
    aggregated(store, service_name, messages)
    found = store.series(SeriesQuery("service", service_name, T0 + 30, T0 + 1170, 30.0))
    rows = dict(zip(found.names, found.samples, strict=True))
    assert rows["http.server.request.duration.rate"][1:-1] == pytest.approx(600 / 15)
    p99 = rows["http.server.request.duration.p99"]
    known = np.flatnonzero(np.isfinite(p99))
    assert len(known) >= 35
    for window in known.tolist():
        step = 2 * (window + 1)
        exact = np.quantile(np.concatenate(took[step + 1 : step + 3]), 0.99)
        bucket = int(np.searchsorted(BOUNDS, exact))
        assert (0.0, *BOUNDS)[bucket] <= p99[window] <= BOUNDS[bucket]


def test_a_log_that_is_sent_twice_counts_once(store: Store, service_name: str) -> None:
    tally = RequestTally(TallyOptions(service_name, "h1"), line_format("json"), RequestTypes())
    tally.add(
        [f'{{"ts": {T0 + i}, "method": "GET", "path": "/cart/{i}", "status": 200}}' for i in range(120)]
    )
    messages = tally.finish()
    other = RequestTally(TallyOptions(service_name, "h1"), line_format("json"), RequestTypes())
    other.add(
        [f'{{"ts": {T0 + i / 3}, "method": "GET", "path": "/cart/1", "status": 200}}' for i in range(360)]
    )
    aggregated(store, service_name, messages, other.finish(), messages, messages)
    found = store.series(SeriesQuery("setup", service_name, T0 + 30, T0 + 90, 30.0))
    rows = dict(zip(found.names, found.samples, strict=True))
    assert rows["requests{GET /cart/:id}"].tolist() == [2, 2]  # the mean of both logs, each once
    assert store.series(SeriesQuery("service", service_name, T0, T0 + 120, 30.0)).names == ()
    counted = store.counts(RequestQuery(service_name, T0, T0 + 120, ("",)))
    assert counted.types == ("GET /cart/:id",)
    assert counted.starts.tolist() == [T0 + 30, T0 + 60]
    assert counted.requests.tolist() == [[120, 120]]  # the sum of both, each once
