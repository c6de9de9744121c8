"""Flood of malformed messages, as a broken or hostile producer sends them, at full speed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import orjson

from pipeline.kafka import Packet, Producer, ProducerOptions, as_broker
from pipeline.settings.topics import Topics

_TOPICS = ("profiles", "metrics", "changes")
_IN_FLIGHT = 5_000


def malformed(rng: np.random.Generator) -> bytes:
    """Return bytes that no input topic accepts."""
    name = f"n{rng.integers(1 << 30)}"
    forms = (
        bytes(rng.integers(0, 256, int(rng.integers(0, 60)), dtype=np.uint8)),
        b"{" * int(rng.integers(1, 200)),
        orjson.dumps({"service": name, "host": None}),
        orjson.dumps([name]),
        orjson.dumps({"service": "", "metric": name, "points": [[1, 2, 3]]}),
        orjson.dumps({"service": name, "start": 1e300, "end": 0, "id": 7, "time": "never"}),
        b'{"service": "\xff"}',
        b"null",
    )
    return forms[int(rng.integers(len(forms)))]


@contextmanager
def flood(broker: str, topics: Topics, number: int, seed: int) -> Iterator[None]:
    """Publish ``number`` malformed messages beside the ``with`` block, and wait for the last at its end.

    Raises:
        SmidgenError: not all of them were taken.
    """
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(lambda: asyncio.run(_publish(broker, topics, number, seed)))
        yield
        sent.result()


async def _publish(broker: str, topics: Topics, number: int, seed: int) -> None:
    if not number:
        return
    rng = np.random.default_rng(seed)
    options = ProducerOptions(idempotent=False, linger_ms=20)
    producer = await Producer.open(as_broker(broker), topics, options)
    try:
        for first in range(0, number, _IN_FLIGHT):
            names = [_TOPICS[i % len(_TOPICS)] for i in range(first, min(first + _IN_FLIGHT, number))]
            await producer.send_packets([_packet(name, topics, rng) for name in names])
    finally:
        await producer.close()


def _packet(name: str, topics: Topics, rng: np.random.Generator) -> Packet:
    partition = int(rng.integers(topics[name].partitions))
    return Packet(name, None, malformed(rng), partition=partition)
