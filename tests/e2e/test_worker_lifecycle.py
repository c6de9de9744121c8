"""Lifecycle of a worker process: start, requested stop, crash, and end when it cannot continue."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from pipeline.cli import run
from pipeline.kafka import apply_topics, check_topics
from pipeline.kafka import topics as broker_topics
from pipeline.model import Outgoing, Record
from pipeline.model.clock import system_clock
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics
from pipeline.stages.base import Decoder, Stage
from pipeline.storage.interface import Store
from pipeline.worker import app
from pipeline.worker.service import Service
from tests.contract.rows import offsets
from tests.e2e.worker_process import (
    TOPICS,
    FailingStore,
    WorkerProcess,
    assert_counted,
    build_load,
    committed,
    is_idempotent,
    publish,
    publish_load,
    read_all,
    stream_of,
    wait_done,
    wait_until,
)

pytestmark = pytest.mark.e2e


def test_sigterm_in_the_middle_of_a_batch_finishes_it_or_leaves_it_to_the_next(
    own_broker: str,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """First the INSERT ends a little after the signal, then (another worker) it hangs for good."""
    monkeypatch.setenv("SMIDGEN_DRAIN", "2m")
    load = build_load(service_name, 100)
    ends = publish_load(own_broker, load)
    reached, release, second = threading.Event(), threading.Event(), threading.Event()

    def fault(number: int) -> Callable[[bool], None] | None:
        def hold(done: bool) -> None:
            if not done:
                reached.set()
                release.wait(300)

        return hold if number == 4 or (second.is_set() and not reached.is_set()) else None

    with FailingStore(store_dsn, fault) as failing:
        with WorkerProcess(own_broker, failing.url, "aggregate") as worker:
            assert reached.wait(240), worker.log
            threading.Timer(1.0, release.set).start()
            assert worker.stop() == 0
            assert "stopped" in worker.log
            assert "going on without" not in worker.log
        # Whatever is in the store is committed too: both batches, the one that was under way included.
        log = stream_of(own_broker)
        stored = offsets(shared_store, "totals", log)
        done = committed(own_broker, "aggregate", "profiles", ends)
        assert stored
        assert {partition: done[partition] for partition in stored} == {
            partition: offset + 1 for partition, offset in stored.items()
        }
        reached.clear()
        release.clear()
        second.set()
        monkeypatch.setenv("SMIDGEN_DRAIN", "2s")
        with WorkerProcess(own_broker, failing.url, "aggregate") as worker:
            assert reached.wait(240), worker.log
            began = time.monotonic()
            assert worker.stop() == 0
            assert time.monotonic() - began < 120
            assert "finishing the batch takes more than" in worker.log
        release.set()
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_done(own_broker, ends, worker)
        assert worker.stop() == 0
    assert_counted(shared_store, load)


def test_an_idle_worker_stops_at_once(
    own_broker: str, store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it would have minutes for a batch."""
    monkeypatch.setenv("SMIDGEN_DRAIN", "10m")
    with WorkerProcess(own_broker, store_dsn, "all") as worker:
        worker.wait_ready()
        assert "ready: aggregate, detect, releases, filter, dedup, rootcause" in worker.log
        began = time.monotonic()
        assert worker.stop() == 0
        assert time.monotonic() - began < 60


@pytest.fixture(autouse=True)
def short_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "SESSION_TIMEOUT_S", 6.0)


def text(value: bytes | None) -> str:
    return (value or b"").decode()


@dataclass
class Relay(Stage):
    """Passes text from one topic to another and does what ``act`` says with each batch."""

    name: str
    inputs: Mapping[str, Decoder]
    output: str | None = None
    act: Callable[[Sequence[Record]], None] = lambda _: None
    seen: list[str] = field(default_factory=list)

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        self.act(batch)
        self.seen += [record.payload for record in batch]
        if self.output is None:
            return []
        return [Outgoing(self.output, record.payload, record.payload.encode()) for record in batch]


def serve(broker: str, *stages: Relay) -> int:
    settings = Settings(broker=broker, batch_wait=0.1, idempotent_producer=is_idempotent(broker))
    return asyncio.run(_serve(settings, stages))


async def _serve(settings: Settings, stages: Sequence[Relay]) -> int:
    return await asyncio.wait_for(Service(settings, TOPICS, stages, system_clock).run(), 240)


def stop_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.kafka
def test_several_stages_in_one_process_hand_on_to_each_other(own_broker: str) -> None:
    def stop(batch: Sequence[Record]) -> None:
        if len(last.seen) + len(batch) == 50:
            stop_this_process()

    first = Relay("first", {"profiles": text}, output="windows")
    last = Relay("last", {"windows": text}, act=stop)
    sent = [f"m{number}" for number in range(50)]
    ends = publish(own_broker, [(m.encode(), m.encode()) for m in sent])
    assert serve(own_broker, first, last) == 0
    assert sorted(last.seen) == sorted(sent)
    assert committed(own_broker, "first", "profiles", ends) == ends


@pytest.mark.kafka
def test_a_stage_that_fails_stops_the_process_and_keeps_its_batch(own_broker: str) -> None:
    def fail(batch: Sequence[Record]) -> None:
        raise ZeroDivisionError("a bug in a stage")

    ends = publish(own_broker, [(b"k", b"v")] * 3)
    assert serve(own_broker, Relay("clumsy", {"profiles": text}, act=fail)) == 1
    assert set(committed(own_broker, "clumsy", "profiles", ends).values()) == {0}
    again = Relay("clumsy", {"profiles": text}, act=lambda batch: stop_this_process())
    assert serve(own_broker, again) == 0
    assert again.seen == ["v"] * 3


@pytest.mark.kafka
def test_nothing_in_the_buffers_is_committed_on_the_way_out(own_broker: str) -> None:
    slow = Relay("slow", {"profiles": text}, act=lambda batch: stop_this_process())
    ends = publish(own_broker, [(b"k", f"{number}".encode()) for number in range(3000)])
    assert serve(own_broker, slow) == 0
    (partition,) = ends
    done = committed(own_broker, "slow", "profiles", ends)[partition]
    assert 0 < len(slow.seen) < 3000, "the rest should still be in the buffers"
    assert done <= len(slow.seen)


def test_topics_are_created_once_and_drift_is_reported(own_broker: str) -> None:
    assert asyncio.run(check_topics(own_broker, TOPICS)) == []
    assert asyncio.run(apply_topics(own_broker, TOPICS)) == ([], [])
    assert read_all(own_broker, "feedback") == []


def test_a_created_topic_may_take_its_time_to_appear(
    own_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker that is asked need not be the one that has confirmed it."""
    late = TOPICS["feedback"].model_copy(update={"name": "late-feedback"})
    asked = itertools.count()
    listed = AIOKafkaAdminClient.list_topics

    async def list_topics(client: AIOKafkaAdminClient) -> list[str]:
        names: list[str] = await listed(client)
        return [name for name in names if name != late.name or next(asked) > 20]

    monkeypatch.setattr(AIOKafkaAdminClient, "list_topics", list_topics)
    monkeypatch.setattr(broker_topics, "_APPEAR_S", 0.02)
    monkeypatch.setattr(broker_topics, "_PAUSE_S", 0.01)
    topics = Topics({**TOPICS, late.name: late})
    assert asyncio.run(apply_topics(own_broker, topics)) == ([f"{late.name}: created"], [])
    assert next(asked) > 20


@pytest.mark.kafka
def test_reading_ends_with_the_newest_message(own_broker: str) -> None:
    publish(own_broker, [(f"{n}".encode(), f"{n}".encode()) for n in range(40)], "regressions")
    wait_until(lambda: len(read_all(own_broker, "regressions")) == 40, "all messages read")
    assert sorted(int(e.value or b"") for e in read_all(own_broker, "regressions")) == list(range(40))


def test_events_tail_prints_events_as_json_and_skips_what_is_none(
    own_broker: str, capfd: pytest.CaptureFixture[str]
) -> None:
    events = [
        {
            **dict.fromkeys(("specversion", "type", "source", "time"), "x"),
            "id": f"{number}",
            "data": {"service": "shop" if number % 2 else "other", "metric": "m"},
        }
        for number in range(6)
    ]
    values = [orjson.dumps(event) for event in events]
    publish(own_broker, [(b"shop", b"not an event"), *[(b"shop", value) for value in values]], "regressions")
    capfd.readouterr()  # what the producer of this test had to say
    command = ["events", "tail", "--broker", own_broker, "--no-follow"]
    assert run([*command, "--json", "--service", "shop"]) == 0
    out, err = capfd.readouterr()
    assert [orjson.loads(line)["id"] for line in out.splitlines()] == ["1", "3", "5"]
    assert "offset 0: not JSON" in err
    assert err.count("\n") == 1
    assert run([*command, "--count", "2"]) == 0
    assert capfd.readouterr().out.count("  id ") == 2
    assert run([*command, "--count", "7"]) == 1
    assert run(["events", "tail", "--broker", own_broker, "--timeout", "1s", "--service", "none"]) == 0
