"""Throughput of the aggregate stage into the store, beside that of ClickHouse without it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from loadgen.bench.clickhouse_alone import measure_alone
from loadgen.bench.profiles import INTERVAL_S, START, draw_profiles
from loadgen.bench.statements import ask
from loadgen.bench.usage import processor_s, require_proc
from loadgen.harness import Result, run_smidgen
from pipeline.embedded.stack import EmbeddedStack
from pipeline.kafka import Packet, Producer, ProducerOptions, as_broker
from pipeline.messages.measurements import encode_profile
from pipeline.model import Profile, Record
from pipeline.model.clock import system_clock
from pipeline.model.errors import SmidgenError
from pipeline.processes import Child
from pipeline.settings.topics import Topics, load_topics
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.connect import open_store
from pipeline.storage.interface import SeriesQuery, Store

MESSAGES = 6000
BATCH = 500
SAMPLES = 1000
ALONE = 600
"""Messages for ClickHouse alone: as JSON rows they are four times as large."""
DEADLINE_S = 300.0
PARTS = 4


def measure_aggregate(advance: Callable[[], None]) -> list[Result]:
    """Time the stage by itself, a worker from Kafka to the store, and ClickHouse alone, on an embedded stack.

    Args:
        advance: Called after each part, ``PARTS`` times.
    """
    require_proc("aggregate")
    topics = load_topics()
    with EmbeddedStack() as stack, closing(open_store(stack.store)) as store:
        values = _encoded("bench-stage", MESSAGES // 2)
        alone = _stage_alone(store, values)
        advance()
        run_smidgen("topics", "apply", "--broker", stack.broker)
        asyncio.run(_publish(stack.broker, topics, _encoded("bench-worker", MESSAGES)))
        advance()
        whole = _worker(stack, store)
        advance()
        peer = measure_alone(stack.store, stack.pids["store"], _profiles("bench-alone", ALONE))
        advance()
    setup = {
        "messages": float(MESSAGES),
        "samples_per_message": float(SAMPLES),
        "bytes_per_message": sum(map(len, values)) / len(values),
    }
    ratios = {
        "times its samples/s": whole["samples/s"] / peer["samples/s"],
        "times its samples/CPU s, worker and store": (
            whole["samples/CPU s of worker and store"] / peer["samples/CPU s of the store"]
        ),
    }
    return [
        Result("aggregate stage alone", alone, setup),
        Result("aggregate worker, Kafka to store", whole, setup),
        Result("ClickHouse alone, JSON rows and a view", peer, {**setup, "messages": float(ALONE)}),
        Result("aggregate worker against ClickHouse alone", ratios),
    ]


def _profiles(service: str, messages: int) -> list[Profile]:
    return draw_profiles(messages, service=service, samples=SAMPLES)


def _encoded(service: str, messages: int) -> list[bytes]:
    return [encode_profile(profile) for profile in _profiles(service, messages)]


def _rates(messages: int, seconds: float, processor_s: Mapping[str, float]) -> dict[str, float]:
    samples = messages * SAMPLES
    used = {f"samples/CPU s of {who}": samples / max(taken, 1e-9) for who, taken in processor_s.items()}
    return {"messages/s": messages / seconds, "samples/s": samples / seconds, **used}


def _stage_alone(store: Store, values: Sequence[bytes]) -> dict[str, float]:
    stage = AggregateStage(
        store=store, clock=system_clock, streams=one_stream("bench"), window_s=60.0, stack_window_s=600.0
    )
    began, used = time.perf_counter(), time.process_time()
    for first in range(0, len(values), BATCH):
        batch = [
            Record("profiles", 0, first + i, stage.inputs["profiles"](value))
            for i, value in enumerate(values[first : first + BATCH])
        ]
        stage.handle(batch)
    used = time.process_time() - used
    return _rates(len(values), time.perf_counter() - began, {"the stage": used})


async def _publish(broker: str, topics: Topics, values: Sequence[bytes]) -> None:
    packets = [Packet("profiles", f"bench/host-{i % 50}".encode(), value) for i, value in enumerate(values)]
    # The embedded broker refuses idempotent producers.
    producer = await Producer.open(as_broker(broker), topics, ProducerOptions(idempotent=False, linger_ms=0))
    try:
        await producer.send_packets(packets)
    finally:
        await producer.close()


def _worker(stack: EmbeddedStack, store: Store) -> dict[str, float]:
    """Return rates between the first and the last count that appears, so that start-up is excluded."""
    arguments = ("--broker", stack.broker, "--store", stack.store, "--no-idempotent-producer")
    with _running("worker", "aggregate", *arguments, "--log-level", "error") as process:
        pids = (process.pid, stack.pids["store"])
        first_at = first = 0.0
        used, inserts = [0.0, 0.0], 0
        deadline = time.perf_counter() + DEADLINE_S
        now = time.perf_counter()
        while (counted := _counted(store)) < MESSAGES * SAMPLES:
            if not process.running or now > deadline:
                words = process.last_words()
                raise SmidgenError(f"bench: the worker counted {counted:.0f} samples and stopped: {words}")
            if counted and not first_at:
                first_at, first, used = now, counted, list(map(processor_s, pids))
                inserts = _inserts(stack.store)
            # Polling takes processor time of the store, which is measured: at most a twentieth of the time.
            time.sleep(max(0.05, 20 * (time.perf_counter() - now)))
            now = time.perf_counter()
        seconds = max(time.perf_counter() - first_at, 1e-9)
        worker, engine = (processor_s(pid) - before for pid, before in zip(pids, used, strict=True))
    taken = {"the worker": worker, "worker and store": worker + engine}
    messages = MESSAGES - round(first / SAMPLES)
    more = 1000 * (_inserts(stack.store) - inserts) / max(1, messages)
    return {**_rates(messages, seconds, taken), "INSERTs/1,000 messages": more}


def _inserts(dsn: str) -> int:
    return int(ask(dsn, "SELECT sum(value) FROM system.events WHERE event = 'InsertQuery'"))


def _counted(store: Store) -> float:
    span_s = (MESSAGES // 50 + 1) * INTERVAL_S
    start = START // 60 * 60
    # A query for no series returns only the totals, which the store answers at once.
    return float(
        store.series(SeriesQuery("gcpu", "bench-worker", start, start + span_s + 600, 60.0, ())).totals.sum()
    )


@contextmanager
def _running(*arguments: str) -> Iterator[Child]:
    child = Child([sys.executable, "-m", "pipeline", *arguments])
    try:
        child.drain()
        yield child
    finally:
        child.stop(20.0)
