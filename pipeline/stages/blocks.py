"""Blocks of counted rows: how far each table covers the log, and INSERTs that go on from there.

An INSERT holds the rows of one partition and carries a deduplication token that names the offset it continues
from. So of two blocks that continue from the same offset, of this process and of another owner before or
after it, the store takes one. It knows the latest tokens alone, and takes no block that comes long after it
was asked for that offset.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import orjson
import xxhash

from pipeline.model import Record
from pipeline.model.clock import Clock
from pipeline.stages.batches import by_partition
from pipeline.stages.gather.counted_rows import Columns, last_offsets
from pipeline.stages.inserts import Inserts
from pipeline.storage.interface import CountTable, Extent, Store

MAX_ROWS = 400_000
"""Most rows in one INSERT, so that it stays one block, which ClickHouse applies whole or not at all."""

FRESH_S = 5.0
"""How long it may be since the store was asked how far a partition is counted: a worker that stands still for
longer may have lost the partition, since the group gives up a silent one after 6 s at the earliest."""

RowsOf = Callable[[Sequence[Record]], Columns]
"""Makes the rows of a table of records of one partition."""


class Overtaken(Exception):
    """Another process has stored a block in the place of one of these partitions' blocks."""

    def __init__(self, partitions: Collection[int]) -> None:
        super().__init__(f"another worker has counted partitions {sorted(partitions)} further")
        self.partitions = tuple(partitions)


class Blocks:
    """What one process knows of how far the counted tables go, and the blocks that it adds to them."""

    def __init__(self, store: Store, clock: Clock, streams: Mapping[str, str]) -> None:
        self._store = store
        self._clock = clock
        self._streams = streams
        self._resume: dict[CountTable, dict[tuple[str, int], int]] = defaultdict(dict)
        self._covered: dict[CountTable, dict[tuple[str, int], int]] = defaultdict(dict)  # by stored rows
        self._refused: Counter[tuple[CountTable, str, int, int]] = Counter()  # blocks that left no rows
        # When, by our clock and the store's; by table, topic and partition.
        self._asked: dict[tuple[CountTable, str, int], tuple[float, float]] = {}

    def forget(self, topic: str, partitions: Collection[int]) -> None:
        """Forget where partitions go on: another process may have stored more meanwhile."""
        for offsets in self._resume.values():
            for log, partition in [key for key in offsets if key[0] == topic]:
                if partition in partitions:
                    del offsets[log, partition]

    def covered(self, table: CountTable) -> Mapping[tuple[str, int], int]:
        """Return the last offsets that stored rows of a table cover, by topic and partition."""
        return self._covered[table]

    def fresh(
        self, tables: Collection[CountTable], batch: Sequence[Record]
    ) -> dict[CountTable, list[Record]]:
        """Return the records of one topic that tables do not cover yet; the store is asked once for all."""
        if not batch:
            return dict.fromkeys(tables, [])
        self._know(tables, batch[0].topic, {record.partition for record in batch})
        return {
            table: [r for r in batch if r.offset > self._resume[table].get((r.topic, r.partition), -1)]
            for table in tables
        }

    def insert(self, batch: Sequence[Record], tables: Mapping[CountTable, RowsOf]) -> None:
        """Insert what tables do not hold yet of a batch of one topic; afterwards they cover the batch.

        Blocks of different partitions and tables do not need one another: several are inserted at once.

        Raises:
            Overtaken: others have gone on with some partitions, which are to be forgotten; the call may be
                repeated then.
            StoreUnavailable: all partitions are to be forgotten: what the store took of them is not known.
        """
        fresh = {table: records for table, records in self.fresh(tables, batch).items() if records}
        with Inserts(self._store, MAX_ROWS) as inserts:
            sent = {
                table: [
                    own[0].partition
                    for own in by_partition(records)
                    if self._begin(inserts, table, own, tables[table](own))
                ]
                for table, records in fresh.items()
            }
        stored = self._stored(sent, batch[0].topic) if batch else {}
        overtaken = {
            p for table, records in fresh.items() for p in self._confirm(table, records, sent[table], stored)
        }
        if overtaken:
            raise Overtaken(overtaken)

    def _begin(self, inserts: Inserts, table: CountTable, own: Sequence[Record], rows: Columns) -> bool:
        """Begin to insert the rows of one partition; False if there are none."""
        size = len(rows["partition"])
        if not size:
            return False
        log, partition = own[0].topic, own[0].partition
        position = {"stream": [self._streams[log]] * size, "topic": [log] * size}
        inserts.await_room(size)
        covered = self._covered[table][log, partition]
        # Other blocks may have taken their time.
        if not self._is_fresh(table, log, partition):
            (stored,) = self._stored({table: [partition]}, log).values()
            if stored != covered:
                raise Overtaken([partition])
        token = self._token(table, (log, partition), covered)
        _, asked_at = self._asked[table, log, partition]
        inserts.begin(table, {**rows, **position}, token=token, asked_at=asked_at)
        return True

    def _confirm(
        self,
        table: CountTable,
        records: Sequence[Record],
        sent: Sequence[int],
        stored: Mapping[tuple[CountTable, int], int],
    ) -> list[int]:
        """Note that a table covers records, by rows those of ``sent``; return where others do."""
        log, last = records[0].topic, last_offsets(records)
        covered = self._covered[table]
        overtaken = [partition for partition in sent if stored[table, partition] != last[partition]]
        if overtaken:
            self._refused.update(
                (table, log, partition, covered[log, partition])
                for partition in overtaken
                if stored[table, partition] == covered[log, partition]
            )
            return overtaken
        covered.update({(log, partition): last[partition] for partition in sent})
        self._resume[table].update({(log, partition): number for partition, number in last.items()})
        return []

    def _know(self, tables: Collection[CountTable], log: str, partitions: Collection[int]) -> None:
        """Ask the store where tables go on, unless that is known and fresh."""
        missing = {
            table: [
                partition
                for partition in partitions
                if (log, partition) not in self._resume[table] or not self._is_fresh(table, log, partition)
            ]
            for table in tables
        }
        for (table, partition), offset in self._stored(missing, log).items():
            self._resume[table][log, partition] = self._covered[table][log, partition] = offset

    def _is_fresh(self, table: CountTable, log: str, partition: int) -> bool:
        return 0 <= self._clock() - self._asked[table, log, partition][0] <= FRESH_S

    def _stored(
        self, partitions: Mapping[CountTable, Collection[int]], log: str
    ) -> dict[tuple[CountTable, int], int]:
        """Return the last offset that a table's rows of a partition cover; -1 where it has none."""
        asked = [table for table, chosen in partitions.items() if chosen]
        if not asked:
            return {}
        now = self._clock()
        stored: dict[tuple[CountTable, int], int] = {}
        for table, extents in self._store.extents(asked, self._streams[log]).items():
            for partition in partitions[table]:
                stored[table, partition] = extents.get((log, partition), Extent(-1)).last_offset
                self._asked[table, log, partition] = (now, extents.asked_at)
        return stored

    def _token(self, table: CountTable, at: tuple[str, int], covered: int) -> str:
        """Name a block by the place in the log that it continues from.

        If the store took a block of that name and has no rows of it, they were deleted: it gets a number.
        """
        name = [self._streams[at[0]], *at, covered, *filter(None, [self._refused[table, *at, covered]])]
        return f"{table}-{xxhash.xxh3_128_hexdigest(orjson.dumps(name))}"
