"""The flow without Kafka: every message goes straight from stage to stage, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pipeline.messages.assembler import whole_scans
from pipeline.messages.events import decode_event
from pipeline.messages.scans import decode_scan
from pipeline.model import Outgoing, Record, Scan
from pipeline.model.clock import Clock
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload
from pipeline.stages.abilities import handle_whole
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Stage
from pipeline.stages.factory import SCAN_STAGES, StageNeeds, build_stage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.interface import Store


class Flow:
    """All stages over one store, driven in the order of what is sent; keeps what each topic received.

    Messages are encoded and decoded on the way from stage to stage, as they are on topics, so that numbers
    are the same. Nothing runs by itself: ``send`` returns when nothing is left to do.
    """

    def __init__(
        self,
        store: Store,
        workloads: Iterable[Workload],
        *,
        settings: Settings,
        clock: Clock,
        stream: str = "log",
        stages: Iterable[str] = SCAN_STAGES,
        without: Without = NOTHING,
    ) -> None:
        self.store = store
        self._needs = StageNeeds(
            settings=settings,
            workloads=tuple(workloads),
            store=store,
            streams=one_stream(stream),
            clock=clock,
            without=without,
        )
        self.stages: dict[str, Stage] = {}
        for name in stages:
            self.restart(name)
        self.topics: dict[str, list[Outgoing]] = defaultdict(list)
        self._offsets: dict[tuple[str, int], int] = defaultdict(int)

    def restart(self, name: str) -> None:
        """Replace a stage by a new one, as after a crash: it knows only what is in the store."""
        self.stages[name] = build_stage(name, self._needs)

    def send(self, topic: str, values: Iterable[bytes], *, partition: int = 0) -> None:
        """Hand messages to the stages that read their topic, as one batch, and on until nothing is left."""
        first, values = self._offsets[topic, partition], list(values)
        self._offsets[topic, partition] += len(values)
        for stage in [stage for stage in self.stages.values() if topic in stage.inputs]:
            decode = stage.inputs[topic]
            records = [Record(topic, partition, offset, decode(v)) for offset, v in enumerate(values, first)]
            if batch := whole_scans(records):
                self.forward(handle_whole(stage, batch))

    def forward(self, outgoing: Iterable[Outgoing]) -> None:
        """Put messages on their topics, and through the stages that read them."""
        outgoing = list(outgoing)
        for message in outgoing:
            self.topics[message.topic].append(message)
        for name in dict.fromkeys(message.topic for message in outgoing):
            self.send(name, [message.value for message in outgoing if message.topic == name])

    def scans(self, topic: str) -> list[Scan]:
        """Return the scans a topic received."""
        parts = [Record(topic, 0, 0, decode_scan(message.value)) for message in self.topics[topic]]
        return [record.payload for record in whole_scans(parts)]

    def events(self) -> list[dict[str, Any]]:
        """Return the events that were reported."""
        return [decode_event(message.value) for message in self.topics["regressions"]]
