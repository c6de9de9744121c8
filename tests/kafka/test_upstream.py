"""Detect asks the broker how far aggregate has read what it counts."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.analysis.detect.idleness import Readings
from pipeline.kafka import as_broker
from pipeline.worker.upstream import UpstreamWatch
from tests.e2e.worker_process import TOPICS, BrokerUrl, WorkerProcess, build_load, publish_load, wait_done

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.mark.kafka
def test_a_partition_is_read_once_aggregate_has_committed_it(
    own_broker: BrokerUrl, store_dsn: str, service_name: str
) -> None:
    clock = [100.0]
    readings = Readings()
    watch = UpstreamWatch(as_broker(own_broker), TOPICS, readings, lambda: clock[0], 300.0)

    def measured(now: float) -> dict[tuple[str, int], float]:
        clock[0] = now
        asyncio.run(watch.measure())
        return dict(readings.read_up_to(0, 10**9))

    counted = ("profiles", "metrics", "requests")
    empty = {(name, p): 100.0 for name in counted for p in range(TOPICS[name].partitions)}
    assert measured(100.0) == empty, "there is nothing to read"
    loads = [build_load(service_name, 40, seed=seed) for seed in (1, 2)]
    for load in loads:  # the embedded broker hides what was published together last
        ends = publish_load(own_broker, load)
    waiting = {("profiles", partition) for partition, end in ends.items() if end}
    assert len(waiting) > 1
    for position, moment in measured(200.0).items():
        assert moment == (100.0 if position in waiting else 200.0), position
    with WorkerProcess(own_broker, store_dsn, "aggregate", "detect") as worker:
        wait_done(own_broker, ends, worker)
        assert set(measured(300.0).values()) == {300.0}
        assert worker.stop() == 0, worker.log
        assert "is not known" not in worker.log
