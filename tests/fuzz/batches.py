"""Batches as a consumer fetches them, unpacked by the library under our guard."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import READ_UNCOMMITTED, PartitionRecords
from aiokafka.errors import KafkaError
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from pipeline.kafka import guard_batches
from pipeline.kafka.decompression import GuardedRecords, decoding_modules

LIMIT = 1024**2
CODECS = ("gzip", "snappy", "lz4", "zstd")
_HEADER = 61
_COVERED = 21  # where what the checksum covers begins


@contextmanager
def _guarded() -> Iterator[None]:
    """Guard for a while: other tests of this process have larger batches."""
    positions: list[tuple[object, str]] = [(fetcher, "MemoryRecords")]
    positions += [(module, f"{codec}_decode") for module in decoding_modules() for codec in CODECS]
    before = [
        (position, name, getattr(position, name)) for position, name in positions if hasattr(position, name)
    ]
    guard_batches(LIMIT)
    try:
        yield
    finally:
        for position, name, value in before:
            setattr(position, name, value)


def consume(data: bytes) -> None:
    """Check that one batch with a right length and checksum, as every broker asks, fails no consumer."""
    if len(data) < _HEADER or data[16] != 2:
        return
    covered = data[_COVERED:]
    whole = struct.pack(">qiib", 0, len(data) - 12, -1, 2) + struct.pack(">I", calc_crc32c(covered)) + covered
    with _guarded():
        _unpack(whole)


def _unpack(whole: bytes) -> None:
    records = PartitionRecords(
        TopicPartition("t", 0), GuardedRecords(whole), [], 0, None, None, True, READ_UNCOMMITTED
    )
    try:
        assert sum(len(record.value or b"") for record in records) <= 2 * LIMIT
    except KafkaError as error:  # of the frame around the batch, which a broker makes
        raise AssertionError(str(error)) from error
