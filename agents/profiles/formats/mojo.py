"""MOJO: what Austin writes in binary, events of numbers and texts that refer to one another.

A file begins with ``MOJ`` and its version (1 to 4). A number has its sign and 6 bits in the first byte, then
7 bits a byte, lowest first; a text ends in NUL. Strings and frames belong to the process of the last stack,
those before the first stack to every process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.profiles.formats.austin import austin_frame, austin_measure, chosen_metric
from agents.profiles.formats.base import MAX_WEIGHT, Invalid, Measure, Reading, Record, Sample
from agents.profiles.formats.source import MAX_LINE, Damaged, ProfileSource

_MAGIC = b"MOJ"
_KNOWN = (1, 2, 3, 4)
_METADATA, _STACK, _FRAME, _FRAME_INVALID, _FRAME_REF, _FRAME_KERNEL = range(1, 7)
_GC, _IDLE, _TIME, _MEMORY, _STRING, _STRING_REF, _STACK_REPEAT = range(7, 14)
_UNKNOWN = 1
_LONGEST = 10
_NO_FRAME = ("", False)


class MojoFormat:
    """Samples of Austin as MOJO."""

    name = "mojo"
    content = "samples of Austin (MOJO)"

    def recognises(self, head: bytes) -> bool:
        """Take what begins with its magic bytes and a version."""
        return head.startswith(_MAGIC) and head[3:4] != b"" and head[3] in _KNOWN

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one metric, see ``AustinFormat``."""
        about = _Events(_Bytes(iter((source.head,)))).about()
        measure = austin_measure(about, value)
        return Reading(measure, _Events(_Bytes(source.chunks())).records(measure))


class _Bytes:
    """Numbers and texts out of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._data = chunks, b""
        self._position = self._before = 0

    @property
    def offset(self) -> int:
        return self._before + self._position

    def byte(self) -> int | None:
        """Return the next byte, None at the end."""
        while self._position >= len(self._data):
            self._before, self._position = self._before + len(self._data), 0
            self._data = next(self._chunks, b"")
            if not self._data:
                return None
        self._position += 1
        return self._data[self._position - 1]

    def number(self) -> int:
        first = self._needed()
        value, shift, byte = first & 0x3F, 6, first
        for _ in range(_LONGEST):
            if byte < 0x80:
                return -value if first & 0x40 else value
            byte = self._needed()
            value |= (byte & 0x7F) << shift
            shift += 7
        raise Damaged(f"byte {self.offset}: a number of too many bytes")

    def text(self) -> str:
        """Return the text up to the next NUL."""
        content = bytearray()
        while byte := self._needed():
            content.append(byte)
            end = self._data.find(b"\0", self._position)
            end = len(self._data) if end < 0 else end
            content += self._data[self._position : end]
            self._position = end
            if len(content) > MAX_LINE:
                raise Damaged(f"byte {self.offset}: a text without an end")
        return content.decode("utf-8", errors="replace")

    def _needed(self) -> int:
        byte = self.byte()
        if byte is None:
            raise Damaged(f"byte {self.offset}: cut within an event")
        return byte


@dataclass
class _Running:
    """The sample whose events are being read."""

    process: int
    thread: str
    frames: list[str] = field(default_factory=list)
    native: list[bool] = field(default_factory=list)
    kernel: list[str] = field(default_factory=list)
    time: int = 0
    memory: int | None = None
    idle: bool = False
    wrong: bool = False


class _Events:
    """The events of a file, and what they define."""

    def __init__(self, content: _Bytes) -> None:
        self._content = content
        self._strings: dict[tuple[int, int], str] = {}
        self._frames: dict[tuple[int, int], tuple[str, bool]] = {}
        self._before: dict[tuple[int, str], tuple[list[str], list[bool]]] = {}
        self._running: _Running | None = None
        for _ in _MAGIC:
            content.byte()
        self._version = content.number()

    def about(self) -> dict[str, str]:
        """Return what describes the profile: the events before the first stack."""
        metadata = {}
        try:
            while self._content.byte() == _METADATA:
                name = self._content.text()
                metadata[name] = self._content.text()
        except Damaged:  # the same will be said where the samples are read
            pass
        return metadata

    def records(self, measure: Measure) -> Iterator[Record]:
        """Yield the samples."""
        number = 0
        while (event := self._content.byte()) is not None:
            if event == _STACK:
                if self._running:
                    number += 1
                    yield self._ended(number, measure)
                self._begin()
            else:
                self._read(event)
        if self._running:
            yield self._ended(number + 1, measure)

    def _begin(self) -> None:
        content = self._content
        process = content.number()
        if self._version >= 3:
            content.number()  # the interpreter
        self._running = _Running(process, content.text())

    def _read(self, event: int) -> None:
        """Read one event other than a stack.

        Raises:
            Damaged: there is no such event, so that nothing after it makes sense.
        """
        content = self._content
        running = self._running or _Running(0, "")
        if event == _METADATA:
            content.text(), content.text()
        elif event == _FRAME:
            self._define(running.process)
        elif event == _FRAME_REF:
            key = content.number()
            frame, native = self._frames.get((running.process, key)) or self._frames.get((0, key), _NO_FRAME)
            running.wrong |= not frame
            running.frames.append(frame)
            running.native.append(native)
        elif event == _FRAME_KERNEL:
            running.kernel.append(f"{content.text()}_[k]")
        elif event in (_FRAME_INVALID, _GC):
            running.frames.append("[INVALID]" if event == _FRAME_INVALID else "[GC]")
            running.native.append(False)
        elif event == _IDLE:
            running.idle = True
        elif event == _TIME:
            running.time = content.number()
        elif event == _MEMORY:
            running.memory = content.number()
        elif event == _STRING:
            key = content.number()
            self._strings[running.process, key] = content.text()
        elif event == _STRING_REF:
            content.number()
        elif event == _STACK_REPEAT:
            self._repeat(running)
        else:
            raise Damaged(f"byte {content.offset}: no event of number {event}")

    def _define(self, process: int) -> None:
        content = self._content
        key, file, scope, line = (content.number() for _ in range(4))
        for _ in range(3 if self._version > 1 else 0):
            content.number()  # the last line, and columns
        path, name = self._string(process, file), self._string(process, scope)
        native = not path.endswith(".py") and not path.startswith("<")
        self._frames[process, key] = (austin_frame(path, name, line) if name else "", native)

    def _string(self, process: int, key: int) -> str:
        if key == _UNKNOWN:
            return "<unknown>"
        return self._strings.get((process, key)) or self._strings.get((0, key), "")

    def _repeat(self, running: _Running) -> None:
        """Put the thread's former frames in front, without the native ones at their end."""
        frames, native = self._before.get((running.process, running.thread), ([], []))
        interpreted = len(frames)
        while interpreted and native[interpreted - 1]:
            interpreted -= 1
        running.frames[:0], running.native[:0] = frames[:interpreted], native[:interpreted]

    def _ended(self, number: int, measure: Measure) -> Record:
        running = self._running
        assert running is not None
        self._before[running.process, running.thread] = (running.frames, running.native)
        time = running.time if running.memory is None or running.time else 0
        weight = chosen_metric(measure.type, time, running.idle, running.memory)
        if running.wrong or not 0 <= weight <= MAX_WEIGHT:
            return Invalid(f"sample {number}: of a frame that is not defined, or no metric")
        return Sample((*running.frames, *reversed(running.kernel)), weight)
