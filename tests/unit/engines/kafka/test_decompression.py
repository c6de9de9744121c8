from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cramjam
import pytest
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import READ_UNCOMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from pipeline.files.unpacking import UnpackError, gunzip, unsnappy
from pipeline.kafka import guard_batches
from pipeline.kafka.decompression import MAX_POLL_BYTES, BoundedResult, decoding_modules
from pipeline.messages.fields import UNREADABLE, parse_object
from pipeline.model.errors import InvalidMessage

LIMIT = 1024**2
BOMB = bytes(32 * LIMIT)
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
}
HEADER = struct.Struct(">qiibIhiqqqhii")  # of a batch in Kafka's second format
ATTRIBUTES = 21  # where what the checksum covers begins


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard with a small bound, and put everything back."""
    monkeypatch.setattr(fetcher, "MemoryRecords", fetcher.MemoryRecords)
    for module in decoding_modules():
        for codec in CODECS:
            if hasattr(module, f"{codec}_decode"):
                monkeypatch.setattr(module, f"{codec}_decode", getattr(module, f"{codec}_decode"))
    guard_batches(LIMIT)


def built(codec: str | None, values: list[bytes], *, magic: int = 2) -> bytes:
    """A batch as a producer builds it."""
    kind = 0 if codec is None else CODECS[codec]
    if magic < 2:
        old = LegacyRecordBatchBuilder(magic, kind, 2**30)
        for offset, value in enumerate(values):
            old.append(offset, 1000, b"k", value)
        return bytes(old.build())
    builder = DefaultRecordBatchBuilder(
        2, kind, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=2**30
    )
    for offset, value in enumerate(values):
        builder.append(offset, 1000, b"k", value, [])
    return bytes(builder.build())


def forged(codec: str, payload: bytes, *, count: int = 1, base: int = 0) -> bytes:
    """A batch with a right checksum around any payload."""
    rest = struct.pack(">hiqqqhii", CODECS[codec], count - 1, 1000, 1000, -1, -1, -1, count) + payload
    length = HEADER.size - 12 + len(payload)
    return struct.pack(">qiibI", base, length, -1, 2, checksum(rest)) + rest


def checksum(covered: bytes) -> int:
    return int(calc_crc32c(covered))


def consumed(data: bytes, position: int = 0) -> list[Any]:
    """What a consumer makes of fetched bytes, the way the library's fetcher does."""
    records = PartitionRecords(
        TopicPartition("t", 0), fetcher.MemoryRecords(data), [], position, None, None, True, READ_UNCOMMITTED
    )
    found = list(records)
    assert records.next_fetch_offset > position, "the next fetch would bring the same batch again"
    return found


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [None, *CODECS])
def test_ordinary_batches_are_as_before(codec: str | None, magic: int) -> None:
    if codec == "zstd" and magic < 2 or codec == "lz4" and magic == 0:
        pytest.skip("that format of batches does not know that compression")
    values = [b"one", b"", b"x" * 100_000, bytes(range(256)) * 2000]
    assert [r.value for r in consumed(built(codec, values, magic=magic))] == values


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_becomes_one_message_that_says_so(codec: str) -> None:
    packed = PACK[codec](BOMB)
    good = built("zstd", [b"after"])
    bomb = forged(codec, packed, count=7, base=0)
    after = struct.pack(">q", 7) + good[8:]
    found = consumed(bomb + after)
    assert [r.offset for r in found] == [6, 7]
    assert found[1].value == b"after"
    assert found[0].value == (
        UNREADABLE
        + f"batch of offsets 0 to 6: its {len(packed)} bytes of {codec} "
        f"unpack to more than {LIMIT} bytes".encode()
    )


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_a_bomb_in_the_first_format(codec: str) -> None:
    found = consumed(built(codec, [bytes(2 * LIMIT)], magic=1))
    assert len(found) == 1
    assert found[0].value.startswith(UNREADABLE)


def test_exactly_the_bound_is_taken() -> None:
    inner = built(None, [b"x" * (LIMIT - 100)])[HEADER.size :]
    packed = PACK["zstd"](inner + bytes(LIMIT - len(inner)))  # records, then nothing up to the bound
    assert consumed(forged("zstd", packed))[0].value == b"x" * (LIMIT - 100)
    packed = PACK["zstd"](inner + bytes(LIMIT - len(inner) + 1))
    assert consumed(forged("zstd", packed))[0].value.startswith(UNREADABLE)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "payload", [b"", b"garbage", b"\xff" * 50, bytes(50)], ids=["empty", "text", "ones", "zeros"]
)
def test_damaged_compression_stops_nobody(codec: str, payload: bytes) -> None:
    for data in (payload, PACK[codec](payload), PACK[codec](b"x" * 1000)[:-6]):
        found = consumed(forged(codec, data, count=3))
        assert [r.offset for r in found] == [2]
        assert found[0].value.startswith(UNREADABLE + b"batch of offsets 0 to 2: ")


def test_a_header_whose_name_is_not_utf8_stops_nobody() -> None:
    builder = DefaultRecordBatchBuilder(
        2, 0, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=2**20
    )
    for offset in range(3):
        builder.append(offset, 1000, None, b"value", [("name", b"")])
    whole = bytearray(builder.build())
    second = whole.index(b"name", whole.index(b"name") + 1)
    whole[second : second + 4] = b"\xff\xfe\xfd\xfc"
    whole[17:21] = struct.pack(">I", checksum(bytes(whole[ATTRIBUTES:])))
    found = consumed(bytes(whole))
    assert [(r.offset, r.value[:10]) for r in found] == [(0, b"value"), (2, UNREADABLE[:10])]
    assert b"UnicodeDecodeError" in found[1].value


def test_a_stand_in_is_refused_with_its_reason() -> None:
    value = consumed(forged("zstd", PACK["zstd"](BOMB)))[0].value
    with pytest.raises(InvalidMessage, match=r"^unreadable batch of offsets 0 to 0: its \d+ bytes of zstd"):
        parse_object(value)


def test_a_position_within_the_batch_is_kept() -> None:
    found = consumed(forged("zstd", PACK["zstd"](BOMB), count=5), position=3)
    assert [r.offset for r in found] == [4]


def test_gzip_of_several_members() -> None:
    assert gunzip(gzip.compress(b"a" * 10) + gzip.compress(b"b") + bytes(8), 11) == b"a" * 10 + b"b"
    with pytest.raises(UnpackError, match="more than 10 bytes"):
        gunzip(gzip.compress(b"a" * 10) + gzip.compress(b"b"), 10)


def test_snappy_as_java_writes_it() -> None:
    block = bytes(cramjam.snappy.compress_raw(b"a" * 10))
    packed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + 2 * (struct.pack(">i", len(block)) + block)
    assert unsnappy(packed, 20) == b"a" * 20
    for damaged in (packed[:-1], packed[:17], packed[:16] + struct.pack(">i", -1)):
        with pytest.raises(UnpackError, match="damaged snappy"):
            unsnappy(damaged, 20)
    with pytest.raises(UnpackError, match="more than 19 bytes"):
        unsnappy(packed, 19)


def test_a_head_that_promises_gigabytes_takes_no_memory() -> None:
    with pytest.raises(UnpackError, match="unpack to more than"):
        unsnappy(b"\xff\xff\xff\xff\x0f" + b"a" * 10, LIMIT)


@pytest.mark.parametrize(
    ("sizes", "max_records", "taken"),
    [
        pytest.param([10] * 5, 3, 3, id="so many messages"),
        pytest.param([10] * 5, None, 5, id="all there are"),
        pytest.param([MAX_POLL_BYTES // 4] * 9, None, 4, id="so many bytes"),
        pytest.param([2 * MAX_POLL_BYTES, 1], None, 1, id="a large one alone"),
        pytest.param([], None, 0, id="none"),
    ],
)
def test_a_poll_gives_what_is_there_up_to_a_bound(
    sizes: list[int], max_records: int | None, taken: int
) -> None:
    messages = iter([SimpleNamespace(key=None, value=bytes(size)) for size in sizes])
    result: Any = BoundedResult.__new__(BoundedResult)
    result.getone = lambda: next(messages, None)
    assert len(result.getall(max_records)) == taken
