"""The request id that a replay puts on its requests, and finds on downstream calls: W3C's ``traceparent``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADER = re.compile(r"[0-9a-f]{2}-([0-9a-f]{16})([0-9a-f]{16})-[0-9a-f]{16}-[0-9a-f]{2}.*")


@dataclass(frozen=True, slots=True)
class Trace:
    """Ids of the requests of one replay: its own 16 hexadecimal digits, then the number of the request."""

    run: str

    def header(self, index: int) -> bytes:
        """Return the last header line of a request, with the line that ends the head."""
        return f"traceparent: 00-{self.run}{index:016x}-{index + 1:016x}-01\r\n\r\n".encode()

    def index_of(self, traceparent: str) -> int | None:
        """Return the number of the request that a call belongs to; None if it names none of this replay."""
        match = _HEADER.fullmatch(traceparent.strip().lower())
        return int(match[2], 16) if match and match[1] == self.run else None
