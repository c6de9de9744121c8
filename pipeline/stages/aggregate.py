"""aggregate: profiles, metrics, requests and changes into the store, every sample counted exactly once.

Every counted row carries the last offset that its block covers. A partition that is new to this process
resumes after the highest offset in the store, per table, and what lies below is skipped; so neither a
kill between INSERT and commit nor a rebalance loses or doubles anything. What is retried, or comes too late
from a former owner, is taken once; see pipeline.stages.blocks. ``totals`` comes last of the tables: what it
covers, all of them do.

What a service brings beyond its quota is refused or folded, see pipeline.counting.quota.admission; that is
counted too, in ``totals`` and under the name ``(other)``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pipeline.counting.count import Counts, count_samples
from pipeline.counting.distinct_stacks import MAX_CHARACTERS, MAX_ELEMENTS, OutOfRoom, StackRoom
from pipeline.counting.names import Naming, Namings
from pipeline.counting.quota.admission import Admission, Refused
from pipeline.counting.quota.limits import Quotas
from pipeline.counting.vocabulary import MOST_LABELS, Vocabulary
from pipeline.messages import inputs, measurements
from pipeline.messages.requests import decode_requests
from pipeline.model import MetricMetadata, MetricPoints, Outgoing, Profile, Record
from pipeline.model.clock import Clock
from pipeline.model.errors import StoreUnavailable
from pipeline.model.frames import cut_name
from pipeline.stages.abilities import Assignable, Counted, Positioned
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.batches import by_partition
from pipeline.stages.blocks import MAX_ROWS, Blocks, Overtaken
from pipeline.stages.gather.admission import gather_admission
from pipeline.stages.gather.counted_rows import (
    COUNTED_COLUMNS,
    Columns,
    CountedColumns,
    change_columns,
    feedback_columns,
    last_offsets,
    metadata_columns,
    metric_columns,
    request_columns,
)
from pipeline.stages.gather.streams import COUNTED_TOPICS, position_columns, stored_up_to
from pipeline.stages.gather.symbols import is_noted, was_counted
from pipeline.stages.progress import progress_messages
from pipeline.stages.quota_report import QuotaReport
from pipeline.stages.senders import CountedHosts
from pipeline.storage.interface import Store
from pipeline.telemetry.metrics import LIMITED_INPUT

MOST_ROUNDS = 10
"""Times that one call restarts a batch because another worker has continued its partitions."""

MOST_NAMED = 10_000
"""Most services whose stored symbols are remembered; those of other services are stored again."""

MOST_SAID = 100_000
"""Most metrics whose stored metadata are remembered, in the same way."""

logger = logging.getLogger(__name__)


class AggregateStage(Stage, Assignable, Positioned, Counted):
    """The stage that counts stack samples, stores all other input, and publishes progress on ``windows``."""

    name = "aggregate"
    limits = LIMITED_INPUT

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        streams: Mapping[str, str],
        window_s: float,
        stack_window_s: float,
        quotas: Quotas | None = None,
        namings: Namings | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._streams = streams
        self._window_s = window_s
        self._stack_window_s = stack_window_s
        self._blocks = Blocks(store, clock, streams)
        self._admission = Admission(streams, quotas or Quotas(), window_s)
        self._decide: Mapping[str, Callable[[Sequence[Record]], list[Record]]] = {
            "profiles": self._admission.profiles,
            "metrics": self._admission.metrics,
            "requests": self._admission.requests,
        }
        self._senders = CountedHosts(store)
        self._namings = namings or Namings()
        self._said: dict[tuple[str, str], MetricMetadata] = {}  # last stored, by service and metric
        self._shown: dict[str, set[str]] = {}  # by service, the symbols with a stored example
        self._vocabulary = Vocabulary()
        self._report = QuotaReport(clock)
        self.limited: Counter[str] = Counter()
        self.inputs: Mapping[str, Decoder] = {
            "profiles": lambda value: measurements.decode_profile(value, now=clock()),
            "metrics": lambda value: measurements.decode_metric_points(value, now=clock()),
            "requests": lambda value: decode_requests(value, now=clock()),
            "changes": lambda value: inputs.decode_change(value, now=clock()),
            "feedback": lambda value: inputs.decode_feedback(value, now=clock()),
        }

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget resume offsets: another process may have stored more meanwhile."""
        self._blocks.forget(topic, partitions)
        self._admission.forget(topic, partitions)
        if topic == "profiles":
            self._senders.forget(partitions)

    def stored_up_to(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Return the offsets up to which messages were counted or noted as passed; 0 without any."""
        return stored_up_to(self._store, self._streams[topic], topic, partitions)

    def passed(self, topic: str, last: Mapping[int, int]) -> None:
        """Note the offsets up to which partitions were read, if no counted row shows them."""
        table = COUNTED_TOPICS.get(topic)
        covered = self._blocks.covered(table) if table else {}
        uncounted = {p: offset for p, offset in last.items() if offset > covered.get((topic, p), -1)}
        if uncounted:
            columns = position_columns(self._streams[topic], topic, uncounted, self._clock())
            self._store.insert("positions", columns)

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Store a batch of one topic and return its progress."""
        for _ in range(MOST_ROUNDS):
            try:
                return self._handle(batch)
            except Overtaken as overtaken:
                logger.warning("%s: %s; going on from there", batch[0].topic, overtaken)
                self.assigned(batch[0].topic, overtaken.partitions)
            except StoreUnavailable:  # it is unknown how much of the batch is stored
                self.assigned(batch[0].topic, [record.partition for record in batch])
                raise
        raise StoreUnavailable(f"others count the same partitions of {batch[0].topic}, round after round")

    def _handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        topic = batch[0].topic
        if topic == "changes":
            self._store.insert("changes", change_columns([record.payload for record in batch]))
            return []
        if topic == "feedback":
            for said, columns in feedback_columns([record.payload for record in batch]).items():
                self._store.insert(said, columns)
            return []
        table = COUNTED_TOPICS[topic]
        fresh = self._blocks.fresh([table], batch)[table]
        if topic == "profiles":
            fresh = self._by_symbols(fresh)
        gather_admission(self._store, self._streams, self._admission, batch, fresh)
        decided = self._decide[topic](fresh)
        known = [record for record in batch if self._admission.knows(record)]
        self._save_names()
        if topic == "metrics":
            self._save_metadata(decided)
            self._blocks.insert(decided, {"metrics": metric_columns})
        elif topic == "requests":
            self._blocks.insert(decided, {"requests": request_columns})
        else:
            self._senders.describe(decided)
            if decided:
                self._count(decided)
        waits: Mapping[tuple[str, int], float] = {}
        if topic == "profiles":
            waits = self._senders.note(known, self._clock(), self._admission.limited)
        self._report.move(self._admission.limited, self.limited)
        return progress_messages(known, self._clock(), waits)

    def _by_symbols(self, records: Sequence[Record]) -> list[Record]:
        """Return profiles by symbols; the naming and its symbols are stored before any profile is counted."""
        converted: list[Record] = []
        examples: dict[tuple[str, str], tuple[float, str]] = {}
        for record in records:
            profile: Profile = record.payload
            naming = self._namings.of(profile.service)
            if profile.service not in self._shown:
                self._note_naming(profile, naming)
            by_symbols = naming.profile(profile)
            if by_symbols is profile:
                converted.append(record)
                continue
            converted.append(replace(record, payload=by_symbols))
            shown = self._shown[profile.service]
            for symbol, name in zip(by_symbols.frames, profile.frames, strict=True):
                if symbol != name and symbol not in shown:
                    shown.add(symbol)
                    examples[profile.service, symbol] = (profile.start, cut_name(name))
        if examples:
            self._store.insert(
                "symbols",
                {
                    "service": [service for service, _ in examples],
                    "symbol": [symbol for _, symbol in examples],
                    "time": [time for time, _ in examples.values()],
                    "name": [name for _, name in examples.values()],
                },
            )
        return converted

    def _note_naming(self, profile: Profile, naming: Naming) -> None:
        """Note the time from which a service is counted by its naming, unless that is noted already."""
        service = profile.service
        if not is_noted(self._store, service, naming.version):
            before = was_counted(self._store, self._streams["profiles"], service)
            row = {
                "service": service,
                "time": profile.start,
                "version": naming.version,
                "before": int(before),
            }
            self._store.insert("naming", {name: [value] for name, value in row.items()})
        self._shown[service] = set()
        while len(self._shown) > MOST_NAMED:
            del self._shown[next(iter(self._shown))]

    def _save_names(self) -> None:
        rows = self._admission.unsaved()
        if rows and len(rows["service"]):
            self._store.insert("names", rows)
        self._admission.saved()

    def _save_metadata(self, records: Sequence[Record]) -> None:
        """Store metadata of metrics that are new to this process, before the points."""
        new: dict[tuple[str, str], MetricPoints] = {}
        for record in records:
            points: MetricPoints | Refused = record.payload
            if isinstance(points, MetricPoints) and points.metadata:
                new[points.service, points.metric] = points
        changed = {key: points for key, points in new.items() if self._said.get(key) != points.metadata}
        if changed:
            self._store.insert("metric_metadata", metadata_columns(list(changed.values())))
            self._said |= {key: points.metadata for key, points in changed.items()}
            while len(self._said) > MOST_SAID:
                del self._said[next(iter(self._said))]

    def _count(self, batch: Sequence[Record]) -> None:
        """Count a batch and insert the counts; large ones in halves."""
        counted: dict[tuple[tuple[int, int], ...], Counts] = {}  # tables nearly always need the same ones
        room = StackRoom(MAX_ELEMENTS, MAX_CHARACTERS) if len(batch) > 1 else None
        if len(self._vocabulary) > MOST_LABELS:
            self._vocabulary = Vocabulary()

        def count(records: Sequence[Record]) -> Counts:
            profiles = [record for record in records if isinstance(record.payload, Profile)]
            key = tuple((r.partition, r.offset) for r in profiles)
            if key not in counted:
                counted[key] = count_samples(
                    [record.payload for record in profiles],
                    [record.partition for record in profiles],
                    window_s=self._window_s,
                    stack_window_s=self._stack_window_s,
                    vocabulary=self._vocabulary,
                    room=room,
                )
            return counted[key]

        partitions = by_partition(batch)
        try:
            much = max(count(records).rows for records in partitions) > MAX_ROWS
        except OutOfRoom:
            much = True
        if much and len(batch) > 1:
            counted.clear()
            self._count(batch[: len(batch) // 2])
            self._count(batch[len(batch) // 2 :])
            return
        room = None  # the records that a table lacks are a part of the batch

        def rows(columns: CountedColumns, records: Sequence[Record]) -> Columns:
            return columns(count(records), records, last_offsets(records), self._window_s)

        for tables in COUNTED_COLUMNS:
            self._blocks.insert(batch, {table: partial(rows, columns) for table, columns in tables.items()})
        self._admission.use(batch)
        for records in partitions:
            self._admission.note_shortened(records, count(records).shortened)
