"""Counts in the store equal the samples published, to the unit, even if workers are killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.storage.interface import Store
from tests.e2e.worker_process import (
    FailingStore,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    stored_samples,
    wait_done,
    wait_until,
)

pytestmark = pytest.mark.e2e


def test_inserts_that_fail_or_whose_answer_is_lost_are_repeated_without_doubling(
    own_broker: str, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    faults = {2: "lost", 3: "lost", 5: "refused", 6: "refused", 8: "lost", 11: "lost", 15: "refused"}
    load = build_load(service_name, 120, hosts=4)
    ends = publish_load(own_broker, load)
    with (
        FailingStore(store_dsn, faults.get) as failing,
        WorkerProcess(own_broker, failing.url, "aggregate") as worker,
    ):
        wait_done(own_broker, ends, worker)
        assert failing.inserts > max(faults)
        assert worker.log.count("store unavailable") >= 3  # the driver itself repeats some lost ones
        assert worker.stop() == 0
    assert_counted(shared_store, load)


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_killed_in_the_middle_of_a_batch_again_and_again(
    own_broker: str, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    """SIGKILL around chosen INSERTs: before one, or once it is stored but not yet answered."""
    load = build_load(service_name, 200, hosts=4)
    ends = publish_load(own_broker, load)
    running: list[WorkerProcess] = []
    # A batch makes three INSERTs (totals, gcpu, stacks): these lie within one and at both of its ends.
    at = {2: True, 7: False, 12: True}

    def fault(number: int) -> Callable[[bool], None] | None:
        def kill(done: bool) -> None:
            if done == at[number]:
                running[-1].kill()

        return kill if number in at else None

    with FailingStore(store_dsn, fault) as failing:
        for number in at:
            with WorkerProcess(own_broker, failing.url, "aggregate") as worker:
                running.append(worker)
                wait_until(lambda w=worker: w.process.poll() is not None, f"the kill at INSERT {number}")  # type: ignore[misc]
                assert worker.process.returncode == -9, worker.log
                assert stored_samples(shared_store, service_name) < load.samples
        with WorkerProcess(own_broker, failing.url, "aggregate") as worker:
            wait_done(own_broker, ends, worker)
            assert worker.stop() == 0
    assert_counted(shared_store, load)


@pytest.mark.timeout(300)
def test_partitions_move_between_workers_under_load(
    own_broker: str, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    first, second, third = (build_load(service_name, 60, seed=seed) for seed in (1, 2, 3))
    publish_load(own_broker, first)
    with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=5) as one:
        wait_until(lambda: one.messages > 0, "the first worker at work", one)
        with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=5) as two:
            publish_load(own_broker, second)
            two.wait_ready()
            ends = publish_load(own_broker, third)
            wait_until(lambda: two.messages > 0, "the second worker at work", one, two)
            assert one.stop() == 0
            wait_done(own_broker, ends, two)
            assert two.stop() == 0
    everything = (*first.profiles, *second.profiles, *third.profiles)
    assert_counted(shared_store, Load(service_name, everything))
