"""Bounded decompression of batches of messages; one that cannot be unpacked stops nobody.

A broker bounds a batch as it is sent, compressed; a few kilobytes of zstd unpack to gigabytes. And a broker
takes batches that the client library then fails on, again at every try: damaged compression, the name of a
header that is no UTF-8. Either would end every worker that reads the partition. Here such a batch becomes one
message that says what was wrong, at the batch's last offset, and goes the way of every message that cannot be
used: to the dead letters. The batch itself stays in the log.

And what is unpacked is handed out in portions: a megabyte as it was sent may hold a hundred messages of four,
and the library gives all that it has at once.
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
"""Most that a batch may unpack to: four messages of the largest size. Producers make smaller ones."""

MAX_POLL_BYTES = 8 * 1024**2
"""A poll takes no further message of a partition once it has so much of it.

A batch of a worker is made of polls, and each of its partitions is a row of INSERTs: large polls make few."""

Decode = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class _StandIn:
    """The one message that stands for a batch; the attributes are those of the library's records."""

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
        except Exception as error:  # whatever a hostile batch makes of the library
            yield self._stand_in(error)

    def _stand_in(self, error: Exception) -> _StandIn:
        last = self._batch.next_offset - 1
        first = getattr(self._batch, "base_offset", last)  # the first format has no such things
        reason = str(error) if isinstance(error, UnpackError) else f"{type(error).__name__}: {error}"
        return _StandIn(
            offset=last,
            timestamp=max(0, getattr(self._batch, "max_timestamp", None) or 0),
            timestamp_type=getattr(self._batch, "timestamp_type", None) or 0,
            value=UNREADABLE
            + f"batch of offsets {min(first, last)} to {last}: {reason[:500]}".encode(errors="replace"),
        )


class GuardedRecords:
    """What a fetch returned, batch by batch, in place of the library's MemoryRecords."""

    __slots__ = ("_records",)

    def __init__(self, data: bytes) -> None:
        self._records = MemoryRecords(data)

    def size_in_bytes(self) -> int:
        """Return how much is left of what was fetched."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """Return whether another whole batch is there."""
        return bool(self._records.has_next())

    def next_batch(self) -> _Batch | None:
        """Return the next batch, None behind the last."""
        batch = self._records.next_batch()
        return None if batch is None else _Batch(batch)


class BoundedResult(fetcher.FetchResult):  # type: ignore[misc]
    """What is left of a fetch of one partition, taken in portions bounded by their bytes."""

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
    """Bound what consumers of this process unpack and take at once, and let no batch fail one.

    The library has no setting for any of it, so its functions are replaced; to call again sets another bound.
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
