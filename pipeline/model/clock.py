"""Time at the edge: logic takes a clock or a number, it never reads the machine's clock itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from pipeline.model.errors import InvalidMessage

Clock = Callable[[], float]
"""Returns the present as seconds since the epoch."""


def system_clock() -> float:
    """Return the machine's time, in seconds since the epoch."""
    return time.time()


def to_iso(epoch_s: float) -> str:
    """Write seconds since the epoch as ISO 8601 in UTC, such as ``2026-01-31T12:00:00.000Z``."""
    stamp = datetime.fromtimestamp(epoch_s, tz=UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def from_iso(text: str) -> float:
    """Read an ISO 8601 time; one without an offset is taken as UTC.

    Raises:
        InvalidMessage: the text is not a time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidMessage(f"not an ISO 8601 time: {text[:40]!r} (one is 2026-01-31T12:00)") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
