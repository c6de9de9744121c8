"""Flood of malformed messages: what a broken or hostile producer sends, as fast as it can."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

import numpy as np
import orjson

from pipeline.kafka import Packet, Producer, ProducerOptions, as_broker
from pipeline.topics import Topics

_TOPICS = ("profiles", "metrics", "changes")
_IN_FLIGHT = 5_000


def malformed(rng: np.random.Generator) -> bytes:
    """Return bytes that no input topic takes."""
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


class Flood:
    """A thread that publishes ``number`` malformed messages; nothing if that is 0."""

    def __init__(self, broker: str, topics: Topics, number: int, seed: int) -> None:
        self._broker = broker
        self._topics = topics
        self._number = number
        self._seed = seed
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._thread.join()
            if self.failure:
                raise self.failure

    def _run(self) -> None:
        try:
            asyncio.run(self._publish())
        except Exception as error:  # raised again where the flood is waited for
            self.failure = error

    async def _publish(self) -> None:
        if not self._number:
            return
        rng = np.random.default_rng(self._seed)
        options = ProducerOptions(idempotent=False, linger_ms=20)
        producer = await Producer.open(as_broker(self._broker), self._topics, options)
        try:
            for first in range(0, self._number, _IN_FLIGHT):
                numbers = range(first, min(first + _IN_FLIGHT, self._number))
                await producer.send_packets([self._packet(number, rng) for number in numbers])
        finally:
            await producer.close()

    def _packet(self, number: int, rng: np.random.Generator) -> Packet:
        name = _TOPICS[number % len(_TOPICS)]
        partition = int(rng.integers(self._topics[name].partitions))
        return Packet(name, None, malformed(rng), partition=partition)
