"""Load of the fault suite in a store, counted correctly or with one profile wrong."""

from __future__ import annotations

from dataclasses import replace

from loadgen.bench.faults.load import FaultLoad
from loadgen.bench.faults.truth import STACK_WINDOW_S, WINDOW_S
from pipeline.messages.records import columns_of
from pipeline.model import Record
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.interface import Store


def count_load(store: Store, load: FaultLoad, *, without: int = -1, twice: int = -1) -> None:
    """Count a load's messages, with one profile left out or counted again, and add its truth's rows."""
    stage = AggregateStage(
        store=store,
        clock=lambda: 2e9,
        streams=one_stream("s"),
        window_s=WINDOW_S,
        stack_window_s=STACK_WINDOW_S,
    )
    records: dict[str, list[Record]] = {"changes": [], "metrics": [], "profiles": []}
    profiles = 0
    for message in (message for batch in load.batches for message in batch):
        copies = 1
        if message.topic == "profiles":
            copies = 0 if profiles == without else 2 if profiles == twice else 1
            profiles += 1
        payload = stage.inputs[message.topic](message.value)
        for number in range(copies):
            if number:
                payload = replace(payload, id="another")  # otherwise the repeat would be recognised
            position = len(records[message.topic])
            records[message.topic].append(Record(message.topic, 0, position, payload))
    for batch in records.values():
        stage.handle(batch)
    add_rows(store, load)


def add_rows(store: Store, load: FaultLoad) -> None:
    """Add the rows that stages make of a load."""
    for truth in load.truths:
        whose = {"service": truth.dataset.service}
        for table, rows in truth.rows.items():
            if rows:
                store.insert(table, columns_of([{**whose, **row} for row in rows]))
