"""The text of a profile file."""

from __future__ import annotations

import codecs

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_text(data: bytes) -> str:
    """Return text of UTF-8 or UTF-16, by its byte order mark or by the NUL bytes of the latter."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, errors="replace")
    head = data[:256]
    if len(head) >= 4:
        if not any(head[1::2]):
            return data.decode("utf-16-le", errors="replace")
        if not any(head[0::2]):
            return data.decode("utf-16-be", errors="replace")
    return data.decode("utf-8", errors="replace")
