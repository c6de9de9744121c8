"""A backtest against real workers: the same events, ids included, as ``smidgen worker all`` publishes."""

from __future__ import annotations

import orjson
import pytest

from pipeline.backtest.run import plan_scans, run_backtest
from pipeline.messages.inputs import encode_change
from pipeline.messages.measurements import encode_profile
from pipeline.settings.workloads import load_workloads
from pipeline.storage.interface import RowQuery, Store
from tests.e2e.worker_process import WorkerProcess, publish, read_all, wait_done, wait_until
from tests.support.fleets import BASE, SLOWER, START, as_dataset, record

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]


def test_workers_publish_the_events_of_a_backtest(
    own_broker: str,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live = load_workloads(["live"])
    for name, value in {"WORKLOADS": "live", "WINDOW": "1s", "STACK_WINDOW": "1s"}.items():
        monkeypatch.setenv(f"SMIDGEN_{name}", value)
    recording = record(service_name, [(60, BASE), (60, SLOWER)], metrics=False)
    dataset = as_dataset(recording)
    wanted = run_backtest(dataset, live).events
    scans = plan_scans(dataset, live, idle_s=0).scans
    broker = own_broker
    with WorkerProcess(broker, store_dsn, "all") as worker:
        key = f"{service_name}/h1".encode()
        ends = publish(broker, [(key, encode_change(c)) for c in recording.changes], topic="changes")
        wait_done(broker, ends, worker, topic="changes")
        publish(broker, [(key, encode_profile(p)) for p in recording.profiles])
        wait_until(
            lambda: len(shared_store.rows(RowQuery("scans", service_name, START, START + 200))) == scans,
            f"{scans} scans",
            worker,
        )
        wait_until(lambda: len(read_all(broker, "unique")) == scans, f"{scans} scans at rootcause", worker)
        wait_until(lambda: len(read_all(broker, "regressions")) >= len(wanted), "the events", worker)
        assert worker.stop() == 0
        published = [orjson.loads(entry.value or b"") for entry in read_all(broker, "regressions")]
    assert [e["data"]["metric"] for e in wanted] == ["cart.tax"]
    assert published == list(wanted)
