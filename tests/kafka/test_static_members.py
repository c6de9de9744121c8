"""Workers with names on Apache Kafka: they keep their partitions while they restart, each name is one's."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cli import run
from pipeline.storage.interface import Store
from tests.e2e.worker_process import (
    BrokerUrl,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    wait_done,
)
from tests.kafka.asking import ends
from tests.kafka.test_more_partitions import raised_copy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def moves(worker: WorkerProcess) -> int:
    """Return how often a worker's partitions were taken from it."""
    return worker.log.count("smidgen-aggregate: rebalanced")


def test_a_worker_with_a_name_restarts_and_nothing_moves(
    kafka_broker: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str, tmp_path: Path
) -> None:
    """Nothing is taken from the other one; new partitions are seen though the group's leader has restarted.

    Who joins under a name ends whoever had it before, in one line.
    """
    loads = [build_load(service_name, 60, hosts=40, seed=seed) for seed in (1, 2, 3)]
    more = ("--topics", raised_copy(tmp_path, profiles=14))

    def worker(name: str, *more: str) -> WorkerProcess:
        return WorkerProcess(kafka_broker, store_dsn, "aggregate", more=("--instance", name, *more))

    def count(load: Load, *workers: WorkerProcess) -> None:
        publish_load(kafka_broker, load)
        wait_done(kafka_broker, ends(kafka_broker, "profiles"), *workers)

    with worker("a") as a, worker("b") as b:
        count(loads[0], a, b)
        before = moves(a), moves(b)
        assert a.stop() == 0
        with worker("a") as a_again:
            a_again.wait_ready()
            assert b.stop() == 0
            with worker("b") as b_again:
                count(loads[1], a_again, b_again)
                assert (moves(a), moves(b), moves(a_again), moves(b_again)) == (*before, 0, 0)
                assert run(["topics", "apply", "--broker", kafka_broker, *more]) == 0
                count(loads[2], a_again, b_again)
                assert moves(a_again) + moves(b_again) > 0, "for the new partitions, once or once for each"
                with worker("b", *more) as twin:
                    assert b_again.process.wait(240) == 1
                    errors = [line for line in b_again.log.splitlines() if " ERROR pipeline" in line]
                    assert [line.partition("smidgen-aggregate: ")[2] for line in errors] == [
                        "another worker has joined as instance b; this one ends"
                    ]
                    twin.wait_ready()
    assert_counted(shared_store, Load(service_name, tuple(p for load in loads for p in load.profiles)))
