"""Lists that grow with a service, cut to a room in an event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import orjson

Item = TypeVar("Item")


def fitting(items: Sequence[Item], room_bytes: int) -> list[Item]:
    """Return as many of the first items as fit a room when they are encoded."""
    found: list[Item] = []
    for item in items:
        room_bytes -= len(orjson.dumps(item)) + 1  # and a comma
        if room_bytes < 0:
            break
        found.append(item)
    return found
