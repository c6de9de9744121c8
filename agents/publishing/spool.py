"""Spool: messages on disk, in order and within a bound, which outlive an outage and the agent.

A folder of segments, ``NNNNNNNNNNNNNNNN.spool``, numbered as they were begun. A segment is a magic number
and records; a record is the lengths of its two parts, the stack samples in it, a checksum of all, the head
(topic, key and headers as JSON) and the message's value. Segments are only appended to, by the process
that began them; reading one ends at the first record that is not whole, which a crash may have left. A
segment is removed when all of it was sent: after a crash some of its messages are sent again, and count
once by their ids.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections import deque
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, BinaryIO

import orjson
import xxhash

from agents.publishing.pending import Pending, Tally
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError, file_errors

MAGIC = b"SMSPOOL1"
SUFFIX = ".spool"
SEGMENTS = 16
"""Number of segments into which the bound is divided: the oldest is dropped as a whole."""

MAX_SEGMENT_BYTES = 8 * 1024**2

SPARE_BYTES = 64 * 1024
"""Bytes that the blocks of a file system may take besides."""

DIGITS = 16
FIRST = 10**12
"""Number of the first segment: what is put in front of all gets a smaller one."""

_LENGTHS = struct.Struct("<IIQ")  # of the head, of the value; samples
_CHECKSUM = struct.Struct("<Q")
RECORD_BYTES = _LENGTHS.size + _CHECKSUM.size


def open_segment(path: Path) -> FileIO:
    """Begin a segment; what is written to it is with the operating system at once."""
    return path.open("xb", buffering=0)


def _head(message: Outgoing) -> bytes:
    headers = [[name, value.decode("latin-1")] for name, value in message.headers]
    return orjson.dumps([message.topic, message.key, headers])


def disk_bytes(pending: Pending) -> int:
    """Return what a message takes on disk at most: its record, in a segment of its own."""
    return len(MAGIC) + RECORD_BYTES + len(_head(pending.message)) + len(pending.message.value)


def encode_record(pending: Pending) -> bytes:
    """Return the bytes of a record."""
    message = pending.message
    head = _head(message)
    lengths = _LENGTHS.pack(len(head), len(message.value), pending.samples)
    checksum = _CHECKSUM.pack(xxhash.xxh3_64_intdigest(lengths + head + message.value))
    return b"".join((lengths, checksum, head, message.value))


def read_record(file: IO[bytes], left: int) -> tuple[Pending, int] | None:
    """Read the next record and its size; None at the end, or if what follows is not whole.

    Args:
        file: at the beginning of a record.
        left: bytes from there to the end of the file.
    """
    fixed = file.read(RECORD_BYTES)
    if len(fixed) < RECORD_BYTES:
        return None
    lengths, checksum = fixed[: _LENGTHS.size], fixed[_LENGTHS.size :]
    head_bytes, value_bytes, samples = _LENGTHS.unpack(lengths)
    size = RECORD_BYTES + head_bytes + value_bytes
    if size > left:  # also a length that no memory would hold
        return None
    head, value = file.read(head_bytes), file.read(value_bytes)
    if _CHECKSUM.pack(xxhash.xxh3_64_intdigest(lengths + head + value)) != checksum:
        return None
    topic, key, headers = orjson.loads(head)
    pairs = tuple((name, text.encode("latin-1")) for name, text in headers)
    return Pending(Outgoing(topic, key, value, pairs), samples), size


@dataclass(slots=True)
class _Segment:
    path: Path
    size: int = 0
    unread: Tally = Tally()  # in records that were not taken yet
    position: int = len(MAGIC)  # of the next record to take


class Spool:
    """A queue on disk of at most ``max_bytes``; the oldest messages make room for the newest.

    Not for several threads at once.

    Raises:
        ConfigError: the folder cannot be made or written to, or another process has it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._segment_bytes = min(MAX_SEGMENT_BYTES, max(max_bytes // SEGMENTS, 1))
        self._segments: deque[_Segment] = deque()
        self._writing: FileIO | None = None
        self._reading: BinaryIO | None = None
        self._taken: tuple[Path, int] | None = None  # position of the message that was taken last
        self._damaged = Tally()
        with file_errors(f"spool: {folder}"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("ab")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise ConfigError(f"spool: {folder}: another process has it") from None
            paths = sorted(folder.glob(f"{'[0-9]' * DIGITS}{SUFFIX}"))
            self._segments.extend(_surveyed(path) for path in paths)
        self._next = int(paths[-1].stem) + 1 if paths else FIRST

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(segment.size for segment in self._segments)

    @property
    def free(self) -> int:
        """Bytes that can be added before anything is dropped."""
        return max(self._max_bytes - self.size, 0)

    def check_disk(self, size: int) -> None:
        """Look whether the disk has so many bytes.

        Raises:
            OSError: it has not, or the folder is gone.
        """
        status = os.statvfs(self._folder)
        if size > status.f_bavail * status.f_frsize - SPARE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @property
    def waiting_bytes(self) -> int:
        """Bytes on disk of messages that were not taken yet."""
        return sum(max(segment.size - segment.position, 0) for segment in self._segments)

    @property
    def waiting(self) -> Tally:
        """Messages that were not taken yet."""
        return sum((segment.unread for segment in self._segments), Tally())

    @property
    def damaged(self) -> Tally:
        """Messages that could not be read, as far as they can be counted."""
        return self._damaged

    def append(self, pending: Pending) -> Tally:
        """Add a message at the end; return what was dropped for it, the oldest segments first.

        A message larger than the whole spool is itself what is dropped.

        Raises:
            OSError: it cannot be written; then it is not in the spool, and the rest is as it was.
        """
        record = encode_record(pending)
        if len(MAGIC) + len(record) > self._max_bytes:
            return Tally(1, pending.samples)
        dropped = Tally()
        while self._segments and self.size + len(MAGIC) + len(record) > self._max_bytes:
            dropped += self._drop_oldest()
        segment = self._segment_for(len(record))
        assert self._writing is not None
        try:
            _write(self._writing, record)
        except OSError:
            self._abandon(segment)
            raise
        segment.size += len(record)
        segment.unread = segment.unread.plus(pending)
        return dropped

    def prepend(self, pending: Pending) -> None:
        """Add a message in front of all others, in a segment of its own.

        Raises:
            OSError: it cannot be written.
        """
        first = int(self._segments[0].path.stem) if self._segments else self._next
        path = self._folder / f"{first - 1:0{DIGITS}d}{SUFFIX}"
        with open_segment(path) as file:
            data = MAGIC + encode_record(pending)
            _write(file, data)
            self._segments.appendleft(_Segment(path, len(data), Tally().plus(pending)))
        self._stop_reading()

    def put_back(self, pending: Pending) -> bool:
        """Make the message that was taken last the next one again; return whether it is still there."""
        segment = self._segments[0] if self._segments else None
        if segment is None or self._taken is None or segment.path != self._taken[0]:
            return False
        segment.position = self._taken[1]
        segment.unread = segment.unread.plus(pending)
        self._taken = None
        return True

    def take(self) -> Pending | None:
        """Return the oldest message that was not taken yet, None if there is none.

        A segment is removed once the message after its last one is asked for.
        """
        while self._segments:
            segment = self._segments[0]
            if self._reading is None:
                self._reading = segment.path.open("rb")
            self._reading.seek(segment.position)
            if record := read_record(self._reading, segment.size - segment.position):
                pending, size = record
                self._taken = (segment.path, segment.position)
                segment.position += size
                segment.unread = segment.unread.minus(Tally(1, pending.samples))
                return pending
            lost = self._drop_oldest()
            self._damaged += lost
        return None

    def close(self) -> None:
        """Write everything to the disk itself, and let others have the folder."""
        self._end_segment()
        self._stop_reading()
        self._lock.close()

    def _segment_for(self, record_bytes: int) -> _Segment:
        full = self._segments and self._segments[-1].size + record_bytes > self._segment_bytes
        if self._writing is None or full:
            self._end_segment()
            path = self._folder / f"{self._next:0{DIGITS}d}{SUFFIX}"
            writing = open_segment(path)
            try:
                _write(writing, MAGIC)
            except OSError:
                writing.close()
                path.unlink(missing_ok=True)
                raise
            self._next += 1
            self._writing = writing
            self._segments.append(_Segment(path, len(MAGIC)))
        return self._segments[-1]

    def _abandon(self, segment: _Segment) -> None:
        """Cut off what was written of a record, and write no more to this segment."""
        assert self._writing is not None
        with contextlib.suppress(OSError):
            self._writing.truncate(segment.size)
        with contextlib.suppress(OSError):
            self._writing.close()
        self._writing = None

    def _end_segment(self) -> None:
        if self._writing:
            with contextlib.suppress(OSError):
                os.fsync(self._writing.fileno())
            self._writing.close()
            self._writing = None

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading.close()
            self._reading = None

    def _drop_oldest(self) -> Tally:
        segment = self._segments.popleft()
        self._stop_reading()
        if not self._segments:
            self._end_segment()
        segment.path.unlink(missing_ok=True)
        return segment.unread


def _surveyed(path: Path) -> _Segment:
    """Return a segment that was left behind, its messages counted without reading them."""
    size = path.stat().st_size
    segment = _Segment(path, size)
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            segment.position = size  # nothing of it can be read
            return segment
        position = len(MAGIC)
        while len(fixed := file.read(RECORD_BYTES)) == RECORD_BYTES:
            head_bytes, value_bytes, samples = _LENGTHS.unpack(fixed[: _LENGTHS.size])
            position += RECORD_BYTES + head_bytes + value_bytes
            if position > size:
                break
            file.seek(head_bytes + value_bytes, os.SEEK_CUR)
            segment.unread += Tally(1, samples)
    return segment


def _write(file: FileIO, data: bytes) -> None:
    """Write all of it: a disk that is nearly full takes a part, and refuses the rest."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
