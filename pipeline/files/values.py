"""Values written as text by people: names of services, shares, durations, addresses, pairs."""

from __future__ import annotations

import re

from pipeline.model.units import parse_duration_s

SERVICE = re.compile(r"\w[\w.:@-]{0,199}")
_SHARE = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d{1,2})?)\s*(%?)")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})")


def service_name(text: str) -> str:
    """Check the name of a service."""
    if not SERVICE.fullmatch(text):
        raise ValueError(f"should be of a-z, A-Z, 0-9 and . _ - : @, at most 200, not {text[:40]!r}")
    return text


def pairs(values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Read texts LEFT=RIGHT, each part of one character at least; the last = parts them.

    Raises:
        ValueError: a text is none.
    """
    found = []
    for text in values:
        left, equals, right = text.rpartition("=")
        if not (left and equals and right and text.isprintable()):
            raise ValueError(f"should be LEFT=RIGHT, not {text[:80]!r}")
        found.append((left, right))
    return tuple(found)


def share_of(text: str) -> float:
    """Read a share such as 0.005% or 0.00005.

    Raises:
        ValueError: it is not between 0 and 1.
    """
    match = _SHARE.fullmatch(text.strip())
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise ValueError(f"should be a share such as 0.005% or 0.00005, not {text[:40]!r}")
    return share


def duration_s_of(text: str) -> float:
    """Read a duration of up to an hour; a plain number is seconds."""
    seconds = parse_duration_s(float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text)
    if not 0 < seconds <= 3600:
        raise ValueError("should be more than 0 and at most 1h")
    return seconds


def address_of(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    found = _ADDRESS.fullmatch(text)
    if not found or int(found[2]) > 65_535:
        raise ValueError(f"should be HOST:PORT, not {text[:80]!r}")
    return found[1].strip("[]"), int(found[2])
