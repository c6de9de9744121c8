"""A simulated fleet through Kafka: the store holds what the data set does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.backtest.dataset import read_dataset
from pipeline.cli import run
from pipeline.storage.interface import RowQuery, SeriesQuery, StackQuery, Store, StrataQuery
from tests.e2e.worker_process import WorkerProcess, is_idempotent, wait_until

pytestmark = pytest.mark.e2e

SCENARIO = """
name: published
service: {service}
duration: 1h
window: 1m
stack_window: 10m
samples_per_minute: 20
graph: {{subroutines: 40, endpoints: 3}}
servers: {{count: 10}}
late: {{share: 0.2, delay: 5m}}
changes: {{count: 9, release_every: 20m}}
inject:
  - {{kind: step, delta: [0.05, 0.1], between: [0.5, 0.6]}}
"""


def test_the_store_holds_what_the_data_set_does(
    own_broker: str, store_dsn: str, shared_store: Store, service_name: str, tmp_path: Path
) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO.format(service=service_name))
    arguments = ["loadgen", "fleet", "--scenario", str(tmp_path / "scenario.yaml"), "--seed", "3"]
    arguments += ["--out", str(tmp_path / "data"), "--publish", "--broker", own_broker]
    assert run([*arguments, *([] if is_idempotent(own_broker) else ["--no-idempotent-producer"])]) == 0
    data = read_dataset(tmp_path / "data")

    def arrived() -> bool:
        series = shared_store.series(SeriesQuery("gcpu", service_name, data.start, data.end, 60.0))
        metrics = shared_store.series(SeriesQuery("service", service_name, data.start, data.end, 60.0))
        changes = shared_store.rows(RowQuery("changes", service_name, data.start - 1e6, data.end))
        complete = series.totals.sum() == data.totals.sum() and len(changes) == len(data.changes)
        return complete and not np.isnan(metrics.samples).any() and len(metrics.names) == 7

    with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=500) as worker:
        wait_until(arrived, "all that was published", worker)
        assert worker.stop() == 0
    matrix = shared_store.series(SeriesQuery("gcpu", service_name, data.start, data.end, 60.0))
    assert matrix.names == data.names
    assert np.array_equal(matrix.samples, data.samples)
    assert np.array_equal(matrix.totals, data.totals)
    middle = data.start + 1800
    stacks = shared_store.counts(StackQuery(service_name, (data.start, middle), (middle, data.end)))
    expected = dict(zip(data.stacks, data.stack_samples[:, :3].sum(axis=1), strict=True))
    assert dict(zip(stacks.stacks, stacks.before, strict=True)) == {
        stack: expected[stack] for stack in stacks.stacks
    }


HOSTS = SCENARIO.replace(
    "late: {{share: 0.2, delay: 5m}}", "hosts: {{count: 3, regions: {{a: 0.7, b: 0.3}}}}"
)


def test_the_store_holds_who_sent_what(
    own_broker: str, store_dsn: str, shared_store: Store, service_name: str, tmp_path: Path
) -> None:
    (tmp_path / "scenario.yaml").write_text(HOSTS.format(service=service_name))
    arguments = ["loadgen", "fleet", "--scenario", str(tmp_path / "scenario.yaml"), "--seed", "3"]
    arguments += ["--out", str(tmp_path / "data"), "--publish", "--broker", own_broker]
    assert run([*arguments, *([] if is_idempotent(own_broker) else ["--no-idempotent-producer"])]) == 0
    data = read_dataset(tmp_path / "data")

    def arrived() -> bool:
        totals = shared_store.counts(StrataQuery(service_name, data.start, data.end, 60.0, [])).totals
        return bool(totals.sum() == data.totals.sum())

    with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=500) as worker:
        wait_until(arrived, "all that was published", worker)
        assert worker.stop() == 0
    found = shared_store.counts(StrataQuery(service_name, data.start, data.end, 60.0))
    assert found.strata == data.strata
    assert len(found.strata) == 3 * 3  # hosts and releases
    assert np.array_equal(found.totals, data.stratum_totals)
