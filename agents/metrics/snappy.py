"""Snappy's block format, within a bound: remote write has no other compression."""

from __future__ import annotations

import cramjam

from pipeline.errors import InvalidMessage

MAX_DECOMPRESSED_BYTES = 64 * 1024**2
"""Largest request: Prometheus sends 2,000 samples by default, a tenth of a megabyte."""


def decompressed(body: bytes, most: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Return what a block of Snappy holds.

    Raises:
        InvalidMessage: it is no such block, or says that it is larger than ``most`` bytes.
    """
    try:
        size = cramjam.snappy.decompress_raw_len(body)
        if size > most:
            raise InvalidMessage(f"{size} bytes, more than {most}, when decompressed")
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError:
        raise InvalidMessage("no block of Snappy") from None
