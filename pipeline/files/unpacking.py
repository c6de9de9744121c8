"""Bounded decompression of data from others: a few kilobytes of it may unpack to gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam

_FIRST_RATIO = 8  # of the room that is tried first to the packed size; most messages need less
_FIRST_BYTES = 64 * 1024
_GROWTH = 8
_TOO_SMALL = "failed to write whole buffer"  # how cramjam says that the room is used up
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class UnpackError(Exception):
    """It is damaged, or unpacks to more than the bound; the text says which."""


def gunzip(data: bytes, max_bytes: int) -> bytes:
    """Unpack gzip, of one member or several.

    Raises:
        UnpackError: it is damaged, or more than ``max_bytes``.
    """
    return _inflated(data, "gzip", 31, max_bytes)


def inflate(data: bytes, max_bytes: int) -> bytes:
    """Unpack what HTTP calls deflate: a stream of zlib.

    Raises:
        UnpackError: it is damaged, or more than ``max_bytes``.
    """
    return _inflated(data, "deflate", 15, max_bytes)


def unsnappy(data: bytes, max_bytes: int) -> bytes:
    """Unpack raw snappy, or the blocks of it that Java's library writes.

    Raises:
        UnpackError: it is damaged, or more than ``max_bytes``.
    """
    packed = bytes(data)
    blocks = _xerial_blocks(packed) if packed.startswith(_XERIAL) else iter([packed])
    parts, room = [], max_bytes
    try:
        for block in blocks:
            room -= cramjam.snappy.decompress_raw_len(block)  # what its head says, and the rest is held to
            if room < 0:
                raise _too_large("snappy", len(packed), max_bytes)
            parts.append(bytes(cramjam.snappy.decompress_raw(block)))
    except cramjam.DecompressionError as error:
        raise UnpackError(f"damaged snappy: {error}") from None
    return b"".join(parts)


def unlz4(data: bytes, max_bytes: int) -> bytes:
    """Unpack frames of lz4.

    Raises:
        UnpackError: they are damaged, or more than ``max_bytes``.
    """
    return _unpacked(cramjam.lz4.decompress_into, "lz4", data, max_bytes)


def unzstd(data: bytes, max_bytes: int) -> bytes:
    """Unpack frames of zstd.

    Raises:
        UnpackError: they are damaged, or more than ``max_bytes``.
    """
    return _unpacked(cramjam.zstd.decompress_into, "zstd", data, max_bytes)


def _inflated(data: bytes, name: str, window_bits: int, max_bytes: int) -> bytes:
    parts, room, rest = [], max_bytes, bytes(data)
    try:
        while True:
            member = zlib.decompressobj(wbits=window_bits)
            parts.append(member.decompress(rest, room + 1))
            room -= len(parts[-1])
            if room < 0:
                raise _too_large(name, len(data), max_bytes)
            if not member.eof:
                raise UnpackError(f"damaged {name}: it breaks off")
            rest = member.unused_data.lstrip(b"\0")
            if not rest:
                return b"".join(parts)
    except zlib.error as error:
        raise UnpackError(f"damaged {name}: {error}") from None


def _xerial_blocks(packed: bytes) -> Iterator[bytes]:
    position = _XERIAL_HEADER_BYTES
    while position < len(packed):
        size = int.from_bytes(packed[position : position + 4], "big", signed=True)
        position += 4
        if not 0 <= size <= len(packed) - position:
            raise UnpackError("damaged snappy: a block breaks off")
        yield packed[position : position + size]
        position += size


def _unpacked(
    decompress_into: Callable[[bytes, bytearray], int], name: str, data: Any, max_bytes: int
) -> bytes:
    """Unpack into room that grows up to ``max_bytes``: the format does not always say how much is needed."""
    packed = bytes(data)
    size = min(max(_FIRST_BYTES, _FIRST_RATIO * len(packed)), max_bytes)
    while True:
        room = bytearray(size)
        try:
            return bytes(memoryview(room)[: decompress_into(packed, room)])
        except cramjam.DecompressionError as error:
            if _TOO_SMALL not in str(error):
                raise UnpackError(f"damaged {name}: {error}") from None
        if size >= max_bytes:
            raise _too_large(name, len(packed), max_bytes)
        size = min(_GROWTH * size, max_bytes)


def _too_large(name: str, packed: int, max_bytes: int) -> UnpackError:
    return UnpackError(f"its {packed} bytes of {name} unpack to more than {max_bytes} bytes")
