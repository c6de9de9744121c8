"""Bounded decompression of batches of messages; a batch that cannot be unpacked stops no worker.

A broker bounds the compressed size of a batch, but a few kilobytes of zstd can unpack to gigabytes. A broker
also accepts batches on which the client library fails at every try: damaged compression, or a header's name
that is not UTF-8. Either would stop every worker that reads the partition. Here such a batch becomes one
message with the error, at the batch's last offset, which becomes a dead letter like every message that cannot
be used. The batch itself stays in the log.

Unpacked messages are returned in portions: a compressed megabyte may hold a hundred messages of four
megabytes, and the library returns all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record import default_records, legacy_records
from aiokafka.record.memory_records import MemoryRecords

from pipeline.files.unpacking import UnpackError, gunzip, unlz4, unsnappy, unzstd
from pipeline.messages.fields import UNREADABLE

MAX_BATCH_BYTES = 64 * 1024**2
"""Most bytes of an unpacked batch: four messages of the largest size. Producers make smaller batches."""

MAX_POLL_BYTES = 8 * 1024**2
"""A poll takes no further message of a partition once it has so much of it.

A batch of a worker is made of polls, and each of its partitions is a row of INSERTs: large polls make few."""

Decode = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class _StandIn:
    """The message that stands for a batch; its attributes are those of the library's records."""

    offset: int
    timestamp: int
    timestamp_type: int
    value: bytes
    key: bytes | None = None
    checksum: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class _Batch:
    """One batch of the library's, whose iteration never fails."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except Exception as error:  # any error that a hostile batch causes in the library
            yield self._stand_in(error)

    def _stand_in(self, error: Exception) -> _StandIn:
        last = self._batch.next_offset - 1
        first = getattr(self._batch, "base_offset", last)  # the first format has no such attribute
        reason = str(error) if isinstance(error, UnpackError) else f"{type(error).__name__}: {error}"
        return _StandIn(
            offset=last,
            timestamp=max(0, getattr(self._batch, "max_timestamp", None) or 0),
            timestamp_type=getattr(self._batch, "timestamp_type", None) or 0,
            value=UNREADABLE
            + f"batch of offsets {min(first, last)} to {last}: {reason[:500]}".encode(errors="replace"),
        )


class GuardedRecords:
    """The result of a fetch, batch by batch, instead of the library's MemoryRecords."""

    __slots__ = ("_records",)

    def __init__(self, data: bytes) -> None:
        self._records = MemoryRecords(data)

    def size_in_bytes(self) -> int:
        """Return the bytes left of the fetched data."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """Return whether another whole batch follows."""
        return bool(self._records.has_next())

    def next_batch(self) -> _Batch | None:
        """Return the next batch; None after the last."""
        batch = self._records.next_batch()
        return None if batch is None else _Batch(batch)


class BoundedResult(fetcher.FetchResult):  # type: ignore[misc]
    """The rest of a fetch of one partition, taken in portions of bounded size."""

    def getall(self, max_records: int | None = None) -> list[Any]:
        """Return the next messages: at least one if there are any."""
        taken: list[Any] = []
        size = 0
        while size < MAX_POLL_BYTES and len(taken) != max_records:
            message = self.getone()
            if message is None:
                break
            taken.append(message)
            size += len(message.key or b"") + len(message.value or b"")
        return taken


def guard_batches(max_bytes: int = MAX_BATCH_BYTES) -> None:
    """Bound the data that consumers of this process unpack and take at once, and guard them from bad batches.

    The library has no setting for that, so its functions are replaced; another call sets another bound.
    """
    decoders: dict[str, Decode] = {
        "gzip_decode": lambda data: gunzip(data, max_bytes),
        "snappy_decode": lambda data: unsnappy(data, max_bytes),
        "lz4_decode": lambda data: unlz4(data, max_bytes),
        "zstd_decode": lambda data: unzstd(data, max_bytes),
    }
    for module in decoding_modules():
        for name, decode in decoders.items():
            if hasattr(module, name):  # zstd came with the second format of batches
                setattr(module, name, decode)
    fetcher.MemoryRecords = GuardedRecords
    fetcher.FetchResult = BoundedResult


def decoding_modules() -> Iterator[ModuleType]:
    """Yield the modules that unpack: those in Python, and the compiled ones where the library has them."""
    yield from (default_records, legacy_records)
    try:
        from aiokafka.record._crecords import default_records as compiled
        from aiokafka.record._crecords import legacy_records as compiled_legacy
    except ImportError:
        return
    yield from (compiled, compiled_legacy)
