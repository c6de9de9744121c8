"""Throughput of the aggregate stage into the store: samples and messages a second."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from loadgen.bench.profiles import INTERVAL_S, START, draw_profiles
from loadgen.bench.result import Result
from loadgen.bench.workers import run_smidgen
from pipeline.clock import system_clock
from pipeline.codec.inputs import encode_profile
from pipeline.embedded.stack import EmbeddedStack
from pipeline.errors import SmidgenError
from pipeline.kafka import Packet, Producer, ProducerOptions, as_broker
from pipeline.model import Record
from pipeline.processes import Child
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from pipeline.topics import Topics, load_topics

MESSAGES = 3000
BATCH = 500
SAMPLES = 1000
DEADLINE_S = 300.0


def measure_aggregate(advance: Callable[[], None]) -> list[Result]:
    """Time the stage by itself, and a worker from Kafka to the store, on an embedded stack.

    Args:
        advance: Called after each part.
    """
    topics = load_topics()
    with EmbeddedStack() as stack, closing(open_store(stack.store)) as store:
        values = _encoded("bench-stage")
        alone = _stage_alone(store, values)
        advance()
        run_smidgen("topics", "apply", "--broker", stack.broker)
        asyncio.run(_publish(stack.broker, topics, _encoded("bench-worker")))
        advance()
        whole = _worker(stack, store)
        advance()
    setup = {
        "messages": float(MESSAGES),
        "samples_per_message": float(SAMPLES),
        "bytes_per_message": sum(map(len, values)) / len(values),
    }
    return [
        Result("aggregate stage alone", alone, setup),
        Result("aggregate worker, Kafka to store", whole, setup),
    ]


def _encoded(service: str) -> list[bytes]:
    return [encode_profile(p) for p in draw_profiles(MESSAGES, service=service, samples=SAMPLES)]


def _rates(messages: int, seconds: float) -> dict[str, float]:
    return {"messages/s": messages / seconds, "samples/s": messages * SAMPLES / seconds}


def _stage_alone(store: Store, values: Sequence[bytes]) -> dict[str, float]:
    stage = AggregateStage(
        store=store, clock=system_clock, streams=one_stream("bench"), window_s=60.0, stack_window_s=600.0
    )
    began = time.perf_counter()
    for first in range(0, len(values), BATCH):
        batch = [
            Record("profiles", 0, first + i, stage.inputs["profiles"](value))
            for i, value in enumerate(values[first : first + BATCH])
        ]
        stage.handle(batch)
    return _rates(len(values), time.perf_counter() - began)


async def _publish(broker: str, topics: Topics, values: Sequence[bytes]) -> None:
    packets = [Packet("profiles", f"bench/host-{i % 50}".encode(), value) for i, value in enumerate(values)]
    # The embedded broker refuses idempotent producers.
    producer = await Producer.open(as_broker(broker), topics, ProducerOptions(idempotent=False, linger_ms=0))
    try:
        await producer.send_packets(packets)
    finally:
        await producer.close()


def _worker(stack: EmbeddedStack, store: Store) -> dict[str, float]:
    """Return rates between the first and the last count that appears, so that start-up is left out."""
    arguments = ("--broker", stack.broker, "--store", stack.store, "--no-idempotent-producer")
    with _running("worker", "aggregate", *arguments, "--log-level", "error") as process:
        first_at = first = 0.0
        deadline = time.perf_counter() + DEADLINE_S
        while (counted := _counted(store)) < MESSAGES * SAMPLES:
            now = time.perf_counter()
            if not process.running or now > deadline:
                words = process.last_words()
                raise SmidgenError(f"bench: the worker counted {counted:.0f} samples and stopped: {words}")
            if counted and not first_at:
                first_at, first = now, counted
            time.sleep(0.05)
        seconds = max(time.perf_counter() - first_at, 1e-9)
    return _rates(MESSAGES - round(first / SAMPLES), seconds)


def _counted(store: Store) -> float:
    span_s = (MESSAGES // 50 + 1) * INTERVAL_S
    start = START // 60 * 60
    return float(store.series("gcpu", "bench-worker", start, start + span_s + 600, 60.0).totals.sum())


@contextmanager
def _running(*arguments: str) -> Iterator[Child]:
    child = Child([sys.executable, "-m", "pipeline", *arguments])
    try:
        child.drain()
        yield child
    finally:
        child.stop(20.0)
