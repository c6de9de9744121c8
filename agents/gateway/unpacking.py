"""Bodies of requests, unpacked within a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agents.gateway.base import Refusal
from pipeline.files.unpacking import UnpackError, gunzip, inflate, unsnappy, unzstd

UNPACKERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": inflate,
    "zstd": unzstd,
    "snappy": unsnappy,
}
"""By Content-Encoding."""


def unpack_body(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return a body without its Content-Encoding.

    Raises:
        Refusal: the encoding is not known, or the body is damaged or unpacks to more than ``max_bytes``.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in UNPACKERS:
        raise Refusal(415, "encoding", f"Content-Encoding: should be one of {', '.join(UNPACKERS)}")
    try:
        return UNPACKERS[encoding](body, max_bytes)
    except UnpackError as error:
        if "more than" in str(error):
            raise Refusal(413, "too_large", str(error)) from None
        raise Refusal(400, "malformed", str(error)) from None
