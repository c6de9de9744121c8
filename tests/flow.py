"""The flow without Kafka: every message goes straight from stage to stage, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pipeline.clock import Clock
from pipeline.codec.events import decode_event
from pipeline.codec.scans import decode_scan
from pipeline.config import Settings
from pipeline.model import Outgoing, Record, Scan
from pipeline.stages.base import Stage
from pipeline.stages.factory import STAGES, build_stage
from pipeline.storage.interface import Store
from pipeline.workloads import Workload


class Flow:
    """All stages over one store; keeps what each topic received."""

    def __init__(
        self,
        store: Store,
        workloads: Iterable[Workload],
        *,
        settings: Settings,
        clock: Clock,
        stream: str = "log",
    ) -> None:
        self._arguments: dict[str, Any] = {
            "settings": settings,
            "workloads": tuple(workloads),
            "store": store,
            "stream": stream,
            "clock": clock,
        }
        self.stages: dict[str, Stage] = {}
        for name in STAGES:
            self.restart(name)
        self.topics: dict[str, list[Outgoing]] = defaultdict(list)
        self._offsets: dict[tuple[str, int], int] = defaultdict(int)

    def restart(self, name: str) -> None:
        """Replace a stage by a new one, as after a crash: it knows only what is in the store."""
        self.stages[name] = build_stage(name, **self._arguments)

    def send(self, topic: str, values: Iterable[bytes], *, partition: int = 0) -> None:
        """Hand messages to the stage that reads their topic, as one batch, and on until nothing is left."""
        stage = next((s for s in self.stages.values() if topic in s.inputs), None)
        batch = []
        for value in values:
            offset = self._offsets[topic, partition]
            self._offsets[topic, partition] += 1
            payload = stage.inputs[topic](value) if stage else None
            batch.append(Record(topic, partition, offset, payload))
        if not stage or not batch:
            return
        outgoing = stage.handle(batch)
        stage.settled()
        for message in outgoing:
            self.topics[message.topic].append(message)
        for name in dict.fromkeys(message.topic for message in outgoing):
            self.send(name, [message.value for message in outgoing if message.topic == name])

    def scans(self, topic: str) -> list[Scan]:
        """Return the scans a topic received."""
        return [decode_scan(message.value) for message in self.topics[topic]]

    def events(self) -> list[dict[str, Any]]:
        """Return the events that were reported."""
        return [decode_event(message.value) for message in self.topics["regressions"]]
