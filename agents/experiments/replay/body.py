"""Bodies of answers: whether those of two sides are the same, whatever compressed them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

from agents.experiments.replay.connection import MAX_BODY_BYTES, ReplayedAnswer

_DIGEST_BYTES = 8
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS


def digests_of(answers: Sequence[ReplayedAnswer]) -> list[bytes]:
    """Return a digest of each body; bodies that differ are unpacked first, as gzip has a time in its head."""
    bodies = [answer.body for answer in answers]
    if len(set(bodies)) > 1:
        bodies = [_unpacked(answer) for answer in answers]
    return [hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() for body in bodies]


def _unpacked(answer: ReplayedAnswer) -> bytes:
    """Return a body without gzip or deflate; any other one as it is, and one that cannot be unpacked."""
    codings = [value.strip().lower() for value in answer.header("Content-Encoding")]
    if codings not in (["gzip"], ["x-gzip"], ["deflate"]):
        return answer.body
    unpacker = zlib.decompressobj(_ZLIB_OR_GZIP)
    try:
        body = unpacker.decompress(answer.body, MAX_BODY_BYTES)
    except zlib.error:
        return answer.body
    return body if unpacker.eof else answer.body
