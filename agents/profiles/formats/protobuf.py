"""Messages of protocol buffers, compiled from the few fields of a public schema that are read.

Fields that are not declared are skipped, and kept by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

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
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
}


def text_of(value: bytes) -> str:
    """Return the text of a field declared as bytes; one declared as text is refused unless it is UTF-8."""
    return value.decode("utf-8", errors="replace")


def with_texts(messages: Mapping[str, Fields], type_: str) -> Mapping[str, Fields]:
    """Return a schema whose bytes are of another type, such as string, which JSON spells otherwise."""
    return {
        message: {
            name: (number, type_ if kind == "bytes" else kind, repeats)
            for name, (number, kind, repeats) in fields.items()
        }
        for message, fields in messages.items()
    }


def compile_messages(name: str, messages: Mapping[str, Fields]) -> Mapping[str, Any]:
    """Return the classes of a schema's messages; a type that is no scalar is one of them."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"smidgen/{name}.proto", package=f"smidgen.{name}", syntax="proto3"
    )
    for message, fields in messages.items():
        declared = file.message_type.add(name=message)
        for field, (number, type_, repeats) in fields.items():
            added = declared.field.add(name=field, number=number)
            added.label = added.LABEL_REPEATED if repeats else added.LABEL_OPTIONAL
            if type_ in _SCALARS:
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
