"""Chunks of Java flight recordings: events described by metadata, which refer to pools of constants.

A recording is one chunk after the other, each whole in itself: a header of 68 bytes, events, and among these
the pools of constants and the description of all types. Numbers are 7 bits a byte, lowest first, the ninth
byte 8 bits. Everything that a file says of its own sizes is checked before it is believed.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from agents.profiles.formats.source import Damaged

MAGIC = b"FLR\0"
HEADER = struct.Struct(">4sHHqqqqqqqI")
MAX_CHUNK_BYTES = 2**30
"""Most bytes of a chunk: the JVM begins a new one after 12 MB."""

_COMPRESSED = 1
_METADATA, _CHECKPOINT = 0, 1
_DEEPEST = 32
_FIXED = {"boolean": 1, "byte": 1, "float": 4, "double": 8}
_NUMBERS = ("short", "char", "int", "long")
_STRING = "java.lang.String"


class Header(NamedTuple):
    """The header of a chunk, positions from its beginning."""

    size: int
    constants: int
    metadata: int
    ticks_per_s: int


@dataclass(slots=True)
class _Field:
    name: str
    type: int
    constant: bool
    repeats: bool


@dataclass(slots=True)
class Type:
    """A type with its fields, in the order in which they are written."""

    id: int
    name: str
    fields: list[_Field] = field(default_factory=list)


class _Element(NamedTuple):
    name: str
    attributes: dict[str, str]
    children: list[_Element]


def read_header(data: bytes) -> Header:
    """Return what the first bytes of a chunk say.

    Raises:
        Damaged: they are no such header, or of a chunk that cannot be.
    """
    if len(data) < HEADER.size:
        raise Damaged("cut within the header of a chunk")
    magic, major, _, size, constants, metadata, _, _, _, ticks_per_s, features = HEADER.unpack_from(data)
    if magic != MAGIC or major not in (1, 2):
        raise Damaged("not a chunk of a flight recording, or of another version")
    if not features & _COMPRESSED:
        raise Damaged("a chunk whose numbers are not compressed")
    if not HEADER.size < size <= MAX_CHUNK_BYTES:
        raise Damaged(f"a chunk of {size} bytes, as of a recording that has not ended")
    if not all(HEADER.size <= position < size for position in (constants, metadata)):
        raise Damaged("a chunk without constants or types")
    return Header(size, constants, metadata, max(ticks_per_s, 1))


class Chunk:
    """The events of a chunk.

    Args:
        data: The whole chunk.
        kept: Names of the types whose constants are needed.
    """

    def __init__(self, data: bytes, kept: Collection[str]) -> None:
        self.header = read_header(data)
        self._data = data
        self._left = 4 * len(data) + 10_000  # values: each but an empty one has a byte
        self.types = self._read_types()
        self._kept = kept

    def events(self, wanted: Mapping[int, Type]) -> Iterator[tuple[Type, int, dict[str, Any] | None]]:
        """Yield the events of some types: type, position, and fields, None if they make no sense."""
        position = HEADER.size
        while position < len(self._data):
            size, after = self._number(position)
            if size <= 0 or position + size > len(self._data):
                raise Damaged(f"byte {position}: an event of {size} bytes")
            kind, after = self._number(after)
            if kind in wanted:
                try:
                    fields, end = self._struct(wanted[kind], after, 0)
                    yield wanted[kind], position, fields if end <= position + size else None
                except (Damaged, IndexError, struct.error):
                    yield wanted[kind], position, None
            position += size

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of events of each type by its name, without reading them."""
        position, counts = HEADER.size, Counter[int]()
        while position < len(self._data):
            size, after = self._number(position)
            if size <= 0 or position + size > len(self._data):
                raise Damaged(f"byte {position}: an event of {size} bytes")
            counts[self._number(after)[0]] += 1
            position += size
        return Counter({self.types[id_].name: count for id_, count in counts.items() if id_ in self.types})

    def constant(self, type_: int, key: Any) -> Any:
        """Return a constant by its type and number, None if there is none."""
        return self._constants.get(type_, {}).get(key) if isinstance(key, int) else None

    def _read_types(self) -> dict[int, Type]:
        """Return the types by their numbers."""
        try:
            position = self._after_event_header(self.header.metadata, _METADATA)
            for _ in range(3):  # start, duration, id
                _, position = self._number(position)
            count, position = self._count(position)
            strings = []
            for _ in range(count):
                text, position = self._text(position)
                strings.append(text if isinstance(text, str) else "")
            root, _ = self._element(position, strings, 0)
        except (IndexError, struct.error):
            raise Damaged("cut within the description of types") from None
        return {
            type_.id: type_
            for metadata in root.children
            if metadata.name == "metadata"
            for type_ in map(_type, metadata.children)
            if type_
        }

    def _element(self, position: int, strings: list[str], depth: int) -> tuple[_Element, int]:
        if depth > _DEEPEST:
            raise Damaged("a description of types that is nested too deeply")
        name, position = self._number(position)
        count, position = self._count(position)
        attributes = {}
        for _ in range(count):
            key, position = self._number(position)
            value, position = self._number(position)
            attributes[strings[key]] = strings[value]
        count, position = self._count(position)
        children = []
        for _ in range(count):
            child, position = self._element(position, strings, depth + 1)
            children.append(child)
        return _Element(strings[name], attributes, children), position

    @cached_property
    def _constants(self) -> dict[int, dict[int, Any]]:
        """All pools of constants, read when one is needed: each says how far before it the next one is."""
        pools: dict[int, dict[int, Any]] = {}
        position, seen = self.header.constants, set[int]()
        try:
            while position not in seen:
                seen.add(position)
                position += self._read_pools(position, pools)
                if not HEADER.size <= position < len(self._data):
                    raise Damaged(f"byte {position}: no constants there")
        except (IndexError, struct.error):
            raise Damaged("cut within the constants") from None
        return pools

    def _read_pools(self, start: int, into: dict[int, dict[int, Any]]) -> int:
        """Read the pools of one event, and return how far away the next such event is."""
        position = self._after_event_header(start, _CHECKPOINT)
        for _ in range(2):  # start, duration
            _, position = self._number(position)
        delta, position = self._number(position)
        position += 1  # flags
        pools, position = self._count(position)
        for _ in range(pools):
            id_, position = self._number(position)
            count, position = self._count(position)
            type_ = self.types.get(id_)
            if type_ is None:
                raise Damaged(f"byte {position}: constants of an unknown type")
            pool = into.setdefault(id_, {}) if type_.name in self._kept else {}
            for _ in range(count):
                key, position = self._number(position)
                pool[key], position = self._value(type_, position, 0)
        return delta

    def _after_event_header(self, position: int, expected: int) -> int:
        _, position = self._number(position)
        kind, position = self._number(position)
        if kind != expected:
            raise Damaged(f"byte {position}: another event than the header says")
        return position

    def _value(self, type_: Type, position: int, depth: int) -> tuple[Any, int]:
        """Return a value of a type, and the position after it."""
        if type_.name in _NUMBERS:
            return self._number(position)
        if type_.name == _STRING:
            return self._text(position)
        if size := _FIXED.get(type_.name):
            self._data[position + size - 1]  # else it is cut
            return self._data[position] if size == 1 else None, position + size
        return self._struct(type_, position, depth)

    def _struct(self, type_: Type, position: int, depth: int) -> tuple[dict[str, Any], int]:
        if depth > _DEEPEST:
            raise Damaged("values that are nested too deeply")
        values_by_name = {}
        for member in type_.fields:
            its_type = self.types.get(member.type)
            count = 1
            if member.repeats:
                count, position = self._count(position)
            self._left -= count
            if self._left < 0 or its_type is None:
                raise Damaged(f"byte {position}: a value of an unknown type, or of no bytes")
            values = []
            for _ in range(count):
                if member.constant:
                    value, position = self._number(position)
                else:
                    value, position = self._value(its_type, position, depth + 1)
                values.append(value)
            values_by_name[member.name] = values if member.repeats else values[0]
        return values_by_name, position

    def _number(self, position: int) -> tuple[int, int]:
        data = self._data
        byte = data[position]
        position += 1
        if byte < 0x80:
            return byte, position
        value, shift = byte & 0x7F, 7
        while shift < 56:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
        value |= data[position] << 56
        return value - 2**64 if value >= 2**63 else value, position + 1

    def _count(self, position: int) -> tuple[int, int]:
        """Return how many values follow: no more than there are bytes."""
        count, position = self._number(position)
        if not 0 <= count <= len(self._data) - position:
            raise Damaged(f"byte {position}: {count} values, more than there are bytes")
        return count, position

    def _text(self, position: int) -> tuple[str | int | None, int]:
        """Return a text, or the number of the constant that it is."""
        kind = self._data[position]
        position += 1
        if kind in (0, 1):
            return "" if kind else None, position
        if kind == 2:
            return self._number(position)
        length, position = self._count(position)
        if kind == 4:
            characters = []
            for _ in range(length):
                code, position = self._number(position)
                characters.append(chr(code) if 0 <= code < 0x110000 else "\ufffd")
            return "".join(characters), position
        if kind not in (3, 5):
            raise Damaged(f"byte {position}: a text of no encoding")
        content = self._data[position : position + length]
        return content.decode("utf-8" if kind == 3 else "latin-1", errors="replace"), position + length


def _type(element: _Element) -> Type | None:
    """Return the type that an element describes."""
    id_ = element.attributes.get("id", "")
    if element.name != "class" or not id_.isdecimal():
        return None
    fields = [
        _Field(
            about.get("name", ""),
            int(about.get("class", "")) if about.get("class", "").isdecimal() else -1,
            about.get("constantPool") == "true",
            about.get("dimension", "0") != "0",
        )
        for about in (child.attributes for child in element.children if child.name == "field")
    ]
    return Type(int(id_), element.attributes.get("name", ""), fields)
