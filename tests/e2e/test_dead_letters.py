"""A broken deploy, its dead letters, and their replay: nothing is lost and nothing counted twice."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from pipeline.kafka import Entry
from pipeline.storage.interface import Store
from tests.e2e.dead_letters import (
    broken_worker,
    copies,
    dead_letters,
    dlq,
    header,
    make_dead_letters,
    wait_all_read,
)
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish,
    publish_load,
    read_all,
)

pytestmark = pytest.mark.e2e


def test_a_broken_deploy_stops_the_stage_and_a_replay_after_the_fix_counts_everything_once(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = [build_load(f"{service_name}-{n}", 30, hosts=3, seed=n) for n in range(4)]
    rest = [build_load(load.service, 2, hosts=3, seed=10 + n) for n, load in enumerate(loads)]
    going_on = Load(service_name, tuple(profile for load in rest for profile in load.profiles))
    for load in loads:
        publish_load(own_broker, load)
    scanned: dict[str, list[Any]] = {
        "service": [load.service for load in loads],
        "workload": ["live"] * 4,
        "time": [time.time() - 60] * 4,
    }
    shared_store.insert("scans", {**scanned, "series": [1] * 4, "candidates": [0] * 4})
    refuses = "profile.service[-1] != '3'"  # one service of four is well
    settings = {"dead_letter_after": "1s", "dead_letter_min": "20"}
    with broken_worker(monkeypatch, own_broker, store_dsn, refuses, **settings) as worker:
        deadline = time.monotonic() + 240
        while worker.process.poll() is None:  # agents go on sending
            assert time.monotonic() < deadline, worker.log
            publish_load(own_broker, going_on)
            for number, load in enumerate(rest):
                loads[number] = Load(load.service, (*loads[number].profiles, *load.profiles))
            time.sleep(0.5)
        assert worker.process.returncode == 1
        assert "Traceback" not in worker.log
        lines = [line for line in worker.log.splitlines() if " ERROR pipeline" in line]
        assert len(lines) == 1, lines
        (line,) = lines
        assert re.search(
            r"aggregate: stopping, most of profiles is bad: 3 of 4 sources \(.*\) send nothing usable: "
            r"\d+ messages refused; the last one: counts: of a form .* Nothing of this batch is acknowledged",
            line,
        )
    kept = dead_letters(own_broker)
    # What is refused in the batch that stops it comes again: that batch is not acknowledged.
    assert 0 < len(kept) < sum(len(load.profiles) for load in loads), "the rest stays on its topic"

    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        done = dlq(own_broker, "replay")
        assert (done.returncode, done.stdout) == (
            0,
            f"sent {len(dead_letters(own_broker))} dead letters\n",
        ), done
        wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    for load in loads:
        assert_counted(shared_store, load)


def test_a_flood_of_garbage_from_one_service_or_under_invented_names_stops_nobody(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = build_load(service_name, 40)
    publish_load(own_broker, load)
    rng = random.Random(1)
    garbage: list[tuple[bytes | None, bytes | None]] = [(b"hostile/h", b"garbage")] * 500
    garbage += [(f"invented-{rng.randrange(300)}/h".encode(), b"{}") for _ in range(500)]
    garbage += [(None, b"")] * 100
    monkeypatch.setenv("SMIDGEN_DEAD_LETTER_AFTER", "1s")
    monkeypatch.setenv("SMIDGEN_DEAD_LETTER_MIN", "1")
    with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=200) as worker:
        wait_all_read(own_broker, worker)
        for _ in range(4):  # over much longer than a second
            publish(own_broker, garbage)
            wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    assert_counted(shared_store, load)
    assert len(dead_letters(own_broker)) == 4 * len(garbage)


@pytest.mark.kafka
def test_copies_of_a_replayed_dead_letter_are_counted_once(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a client library makes them that did not hear the broker's answer, at once or much later."""
    load = build_load(service_name, 60, hosts=3)
    make_dead_letters(monkeypatch, own_broker, store_dsn, [load])
    assert dlq(own_broker, "replay").returncode == 0
    replayed = [entry for entry in read_all(own_broker, "profiles") if header(entry, "replay")]
    asyncio.run(send_again(own_broker, replayed[:40]))
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        worker.kill()
    asyncio.run(send_again(own_broker, replayed))
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    assert sum(copies(own_broker).values()) == 160
    assert_counted(shared_store, load)


async def send_again(broker: str, entries: Sequence[Entry]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    for e in entries:
        await producer.send_and_wait(
            TOPICS["profiles"].name, e.value, key=e.key, partition=e.partition, headers=list(e.headers)
        )
    await producer.stop()
