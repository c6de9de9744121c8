"""pprof: profiles of Go and of many other samplers, a protocol buffer, mostly compressed (gzip).

The fields are those of ``perftools.profiles.Profile``, version 3; those that say nothing of stacks are not
declared here, and are skipped.
"""

from __future__ import annotations

import zlib
from collections import Counter
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from agents.formats.base import Stack, StackSamples

MAX_BYTES = 2**30
"""Most bytes of a profile without compression: far beyond any real one, and what memory bears."""

_GZIP = b"\x1f\x8b"
_TYPES = {
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
}
_MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {  # field: number, type, whether it repeats
    "ValueType": {"type": (1, "int64", False), "unit": (2, "int64", False)},
    "Sample": {"location_id": (1, "uint64", True), "value": (2, "int64", True)},
    "Mapping": {"id": (1, "uint64", False), "filename": (5, "int64", False)},
    "Line": {"function_id": (1, "uint64", False)},
    "Location": {
        "id": (1, "uint64", False),
        "mapping_id": (2, "uint64", False),
        "line": (4, "Line", True),
    },
    "Function": {
        "id": (1, "uint64", False),
        "name": (2, "int64", False),
        "system_name": (3, "int64", False),
        "filename": (4, "int64", False),
    },
    "Profile": {
        "sample_type": (1, "ValueType", True),
        "sample": (2, "Sample", True),
        "mapping": (3, "Mapping", True),
        "location": (4, "Location", True),
        "function": (5, "Function", True),
        "string_table": (6, "bytes", True),
        "period_type": (11, "ValueType", False),
        "period": (12, "int64", False),
    },
}


class PprofFormat:
    """Protocol buffers of pprof."""

    name = "pprof"
    content = "samples of pprof (a protocol buffer, perhaps compressed)"

    def recognises(self, data: bytes) -> bool:
        """Take what is compressed, or begins as the first field of a profile does and can be read."""
        if data.startswith(_GZIP):
            return True
        return data.startswith(b"\x0a") and b"\0" in data[:4096] and _profile(data) is not None

    def parse(self, data: bytes) -> StackSamples:
        """Read the samples; a file that is cut or damaged counts as one invalid record."""
        try:
            profile = _profile(_unpacked(data))
        except ValueError as error:
            return StackSamples({}, invalid=1, first_invalid=str(error))
        if profile is None:
            return StackSamples({}, invalid=1, first_invalid="no protocol buffer of pprof")
        return _Reader(profile).read()


class _Reader:
    """The tables of a profile: what a location's frames are called."""

    def __init__(self, profile: Any) -> None:
        self._profile = profile
        self._text = [text.decode("utf-8", errors="replace") for text in profile.string_table]
        self._functions = {function.id: function for function in profile.function}
        self._mappings = {mapping.id: self._string(mapping.filename) for mapping in profile.mapping}
        self._frames = {location.id: self._named(location) for location in profile.location}

    def read(self) -> StackSamples:
        """Return the stacks, root first, with how often each was sampled."""
        column, unit = self._column()
        stacks: Counter[Stack] = Counter()
        frameless = invalid = 0
        first_invalid = ""
        for number, sample in enumerate(self._profile.sample, start=1):
            frames = [self._frames.get(location) for location in sample.location_id]
            count = round(sample.value[column] / unit) if column < len(sample.value) else -1
            known = [frame for frame in frames if frame is not None]
            if count < 0 or len(known) < len(frames):
                invalid += 1
                first_invalid = first_invalid or f"sample {number}: its values or locations are unknown"
            elif not any(known):
                frameless += count
            elif count:
                # The leaf comes first, and of a location the frame that was inlined.
                stacks[tuple(name for frame in known for name in frame)[::-1]] += count
        return StackSamples(dict(stacks), frameless, invalid, first_invalid)

    def _column(self) -> tuple[int, int]:
        """Return which value counts samples, and by what to divide it: time without counts by the period."""
        types = [(self._string(type_.type), self._string(type_.unit)) for type_ in self._profile.sample_type]
        for column, (type_, unit) in enumerate(types):
            if unit == "count" and type_ in ("samples", "sample", "events"):
                return column, 1
        for column, (type_, _) in enumerate(types):
            if type_ in ("cpu", "wall") and self._profile.period > 0:
                return column, self._profile.period
        return 0, 1

    def _named(self, location: Any) -> tuple[str, ...]:
        """Return the frames of a location, the inlined one first."""
        functions = [self._functions.get(line.function_id) for line in location.line]
        names = [
            self._string(function.name) or self._string(function.system_name)
            for function in functions
            if function
        ]
        files = [self._string(function.filename) for function in functions if function]
        if not any(names):
            binary = self._mappings.get(location.mapping_id, "").rpartition("/")[2]
            return (f"[{binary}]" if binary else "[unknown]",)
        # Of Python a function's module is needed; other languages' names are whole.
        return tuple(
            f"{name} ({file})" if file.endswith(".py") else name
            for name, file in zip(names, files, strict=True)
            if name
        )

    def _string(self, number: int) -> str:
        return self._text[number] if 0 <= number < len(self._text) else ""


@cache
def _message() -> Any:
    """Return the class of profiles."""
    file = descriptor_pb2.FileDescriptorProto(
        name="smidgen/pprof.proto", package="smidgen.pprof", syntax="proto3"
    )
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for field, (number, type_, repeats) in fields.items():
            added = declared.field.add(name=field, number=number)
            added.label = added.LABEL_REPEATED if repeats else added.LABEL_OPTIONAL
            if type_ in _TYPES:
                added.type = _TYPES[type_]
            else:
                added.type, added.type_name = added.TYPE_MESSAGE, f".{file.package}.{type_}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.Profile"))


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"not readable as gzip: {error}") from None
    if unpacking.unconsumed_tail:
        raise ValueError(f"has more than {MAX_BYTES} bytes once it is unpacked")
    if not unpacking.eof:
        raise ValueError("cut: the end of the compressed file is missing")
    return unpacked


def _profile(data: bytes) -> Any | None:
    try:
        profile = _message().FromString(data)
    except DecodeError:
        return None
    return profile if len(profile.string_table) and len(profile.sample_type) else None
