"""Messages of protocol buffers, compiled from the few fields of a public schema that are read.

Fields that are not declared are skipped, and kept by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from pipeline.model.errors import InvalidMessage

Fields = Mapping[str, tuple[int, str, bool]]
"""Of each field of a message: number, type, and whether it repeats."""

_SCALARS = {
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "sint32": descriptor_pb2.FieldDescriptorProto.TYPE_SINT32,
    "sint64": descriptor_pb2.FieldDescriptorProto.TYPE_SINT64,
    "fixed64": descriptor_pb2.FieldDescriptorProto.TYPE_FIXED64,
    "sfixed64": descriptor_pb2.FieldDescriptorProto.TYPE_SFIXED64,
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
}
TEXT_IN_BYTES, TEXT_IN_JSON = (
    descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
)
"""Types of a text: as bytes, one that is not UTF-8 can be read, too, but JSON spells bytes otherwise."""


def text_of(value: bytes) -> str:
    """Return a text of a message, which may not be UTF-8."""
    return value.decode("utf-8", errors="replace")


class Schema:
    """A public schema: its messages, compiled when they are first used from the few fields that are read.

    Args:
        name: Name in errors, such as ``OTLP metrics``.
        messages: Fields of each message; a type that is no scalar is one of the messages.
    """

    def __init__(self, name: str, messages: Mapping[str, Fields]) -> None:
        self._name = name
        self._messages = messages

    def __getitem__(self, message: str) -> Any:
        """Return the class of a message."""
        return self._binary[message]

    def read(self, message: str, body: bytes) -> Any:
        """Read a message.

        Raises:
            InvalidMessage: it is none.
        """
        try:
            return self[message].FromString(body)
        except DecodeError:
            raise InvalidMessage(f"no protocol buffer of {self._name}") from None

    def read_json(self, message: str, body: bytes) -> Any:
        """Read a message in the JSON of protocol buffers.

        Raises:
            InvalidMessage: it is none.
        """
        try:
            spelt = json_format.Parse(body, self.as_json[message](), ignore_unknown_fields=True)
        except (json_format.ParseError, ValueError, RecursionError):  # also of bytes that are not UTF-8
            raise InvalidMessage(f"no JSON of {self._name}") from None
        return self.read(message, spelt.SerializeToString())

    @cached_property
    def as_json(self) -> Mapping[str, Any]:
        """The same messages with texts that have to be UTF-8, as in JSON."""
        return _compile(f"{self._name} in JSON", self._messages, TEXT_IN_JSON)

    @cached_property
    def _binary(self) -> Mapping[str, Any]:
        return _compile(self._name, self._messages, TEXT_IN_BYTES)


def _compile(name: str, messages: Mapping[str, Fields], text: int) -> Mapping[str, Any]:
    identifier = re.sub(r"\W+", "_", name)
    file = descriptor_pb2.FileDescriptorProto(
        name=f"smidgen/{identifier}.proto", package=f"smidgen.{identifier}", syntax="proto3"
    )
    for message, fields in messages.items():
        declared = file.message_type.add(name=message)
        for field, (number, type_, repeats) in fields.items():
            added = declared.field.add(name=field, number=number)
            added.label = added.LABEL_REPEATED if repeats else added.LABEL_OPTIONAL
            if type_ == "text":
                added.type = text
            elif type_ in _SCALARS:
                added.type = _SCALARS[type_]
            else:
                added.type, added.type_name = added.TYPE_MESSAGE, f".{file.package}.{type_}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{message}"))
        for message in messages
    }


def walk_fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, wire type and content of a message's fields, as far as the bytes go.

    The content of a field that is no bytes is empty, that of the last one may be cut. What cannot be a
    message ends in a field of number 0.
    """
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        content = b""
        if wire == 0:
            _, position = _varint(data, position)
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        elif wire == 2:
            length, position = _varint(data, position)
            content = data[position : position + length]
            position += length
        else:
            number = 0
        yield number, wire, content
        if number == 0:
            return


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position and the position after it; what is cut ends there."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            break
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            break
    return value, position
