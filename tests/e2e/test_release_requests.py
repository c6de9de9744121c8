"""From lines of access logs to the event of a release that costs more, through workers that are killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest

from pipeline.cli import run
from pipeline.messages.inputs import encode_change
from pipeline.messages.measurements import encode_metric_points
from pipeline.model import Change, FloatArray, MetricPoints
from pipeline.model.clock import to_iso
from pipeline.storage.interface import RequestQuery, RowQuery, SeriesQuery, Store
from tests.e2e.worker_process import BrokerUrl, WorkerProcess, publish, read_all, wait_until

pytestmark = pytest.mark.e2e

START = 1_700_000_010.0
PERIOD_S = 30.0
OLD, NEW = 90, 50
TYPES = ("/cart/17", "/", "/search?q=x")
COSTS = np.array([0.02, 0.01, 0.005])
RISE = np.array([0.3, 0.0, 0.0])
STAGES = ("aggregate", "releases", "dedup", "rootcause")
EVER = (0.0, 4e9)


def load() -> FloatArray:
    """Requests by period and type; the first and the last period of each log are not counted."""
    rng = np.random.default_rng(1)
    busy = np.exp(0.3 * rng.standard_normal((OLD + NEW, len(TYPES))))
    return rng.poisson(busy * [8, 10, 12]).astype(np.float64)


def write_log(path: Path, counts: FloatArray, first: int) -> Path:
    lines = []
    for period, row in enumerate(counts.astype(int).tolist(), first):
        for target, many in zip(TYPES, row, strict=True):
            lines += [
                {"time": to_iso(START + PERIOD_S * (period + (n + 0.5) / many)), "request": f"GET {target}"}
                for n in range(many)
            ]
    lines.sort(key=lambda line: line["time"])
    path.write_bytes(b"\n".join(orjson.dumps({**line, "status": 200}) for line in lines) + b"\n")
    return path


def cpu(counts: FloatArray) -> FloatArray:
    costs = COSTS * np.where(np.arange(len(counts))[:, None] < OLD, 1.0, 1.0 + RISE)
    noise = np.random.default_rng(2).standard_normal(len(counts))
    return np.asarray((0.1 + (counts * costs).sum(axis=1)) * (1.0 + 0.01 * noise))


def test_a_slower_release_is_one_event(
    own_broker: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str, tmp_path: Path
) -> None:
    counts = load()
    flags = ["--broker", own_broker, "--service", service_name, "--host", "web-1"]
    flags += [] if own_broker.idempotent else ["--no-idempotent-producer"]

    def send(release: str, first: int, last: int) -> None:
        path = write_log(tmp_path / f"{release}.log", counts[first:last], first)
        assert run(["agent", "logs", str(path), "--release", release, *flags]) == 0

    def counted() -> set[tuple[str, float]]:
        found = shared_store.counts(RequestQuery(service_name, START, START + PERIOD_S * (OLD + NEW)))
        rows, periods = np.nonzero(found.requests)
        return {(found.releases[row], found.starts[at]) for row, at in zip(rows, periods, strict=True)}

    def events() -> list[dict[str, object]]:
        return shared_store.rows(RowQuery("regressions", service_name, *EVER))

    times = np.asarray(START + PERIOD_S * (np.arange(OLD + NEW) + 0.5), np.float64)
    points = MetricPoints(service_name, "cpu", times, cpu(counts))
    change = Change("c0ffee", service_name, START + PERIOD_S * OLD - 20.0, "Carts are priced anew")
    publish(own_broker, [(service_name.encode(), encode_change(change))], "changes")
    publish(own_broker, [(f"{service_name}/cpu".encode(), encode_metric_points(points))], "metrics")
    publish(own_broker, [(b"shop/bad", b'{"service": "shop", "host": "h"}')], "requests")
    with WorkerProcess(own_broker, store_dsn, *STAGES, batch_size=3) as worker:
        send("v1", 0, OLD)
        wait_until(lambda: len(counted()) >= OLD // 3, "some periods", worker)
        worker.kill()
    span = (START, START + PERIOD_S * (OLD + NEW), PERIOD_S)
    with WorkerProcess(own_broker, store_dsn, *STAGES, batch_size=3) as worker:
        wait_until(lambda: len(counted()) == OLD - 2, "the old release", worker)
        wait_until(
            lambda: bool(shared_store.series(SeriesQuery("service", service_name, *span)).names),
            "CPU",
            worker,
        )
        send("v2", OLD, OLD + NEW)
        wait_until(lambda: bool(events()), "an event", worker)
        worker.kill()
    with WorkerProcess(own_broker, store_dsn, *STAGES) as worker:  # reads again what was not committed
        worker.wait_ready()
        send("v2", OLD, OLD + NEW)
        wait_until(lambda: len(counted()) == OLD + NEW - 4, "the new release", worker)
        wait_until(lambda: bool(read_all(own_broker, "regressions")), "the event on its topic", worker)
        assert worker.stop() == 0, worker.log

    found = shared_store.counts(RequestQuery(service_name, *span[:2], ("v1", "v2")))
    whole = [*range(1, OLD - 1), *range(OLD + 1, OLD + NEW - 1)]
    sums: Counter[str] = Counter()
    for name, many in zip(found.types, found.requests.sum(axis=1).tolist(), strict=True):
        sums[name] += many
    assert sorted(sums.values()) == sorted(counts[whole].sum(axis=0).tolist())

    sent = [orjson.loads(entry.value or b"") for entry in read_all(own_broker, "regressions")]
    assert {event["id"] for event in sent} == {events()[0]["id"]}  # a kill may publish it twice, as one
    data = sent[0]["data"]
    assert (data["workload"], data["metric"], data["kind"]) == ("release-costs", "cpu", "short_term")
    (dearer,) = data["requests"]
    assert (dearer["type"], dearer["release"], dearer["former_release"]) == ("GET /cart/:id", "v2", "v1")
    assert data["root_causes"][0]["change"]["id"] == "c0ffee"
    (ledger,) = shared_store.rows(RowQuery("ledger", service_name, *EVER))
    assert (ledger["id"], ledger["step"]) == (events()[0]["id"], "")
    refused = [dict(one.headers) for one in read_all(own_broker, "dead-letters") if one.key == b"shop/bad"]
    reasons = {(headers["topic"], headers["reason"]) for headers in refused}
    assert reasons == {(b"requests", b"start: missing")}
