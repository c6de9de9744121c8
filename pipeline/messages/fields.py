"""Typed access to the fields of an untrusted JSON object."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from pipeline.model.clock import from_iso
from pipeline.model.errors import InvalidMessage

MAX_NAME = 4096
"""Longest name of a service, host, metric or frame, in characters."""

UNREADABLE = b"unreadable "
"""How a value begins that stands for messages which could not be unpacked; the rest of it says why."""

MAX_DEPTH = 50
"""How deep JSON may be nested where it is kept as it came, lists and objects within each other."""

MAX_INTEGER = 2**63 - 1
"""Largest whole number: what the store holds."""

EARLIEST_S = 946_684_800.0  # 2000-01-01: an earlier time is a clock or unit error
LATEST_S = 4_102_444_800.0  # 2100-01-01: catches milliseconds sent as seconds


def parse_object(value: bytes | None, *, max_depth: int | None = MAX_DEPTH) -> dict[str, Any]:
    """Parse one JSON object, nested at most ``max_depth`` deep.

    None is for who takes every field apart: the parser's own bound, 1024, is then the only one, and looking
    at every value once more is saved.

    Raises:
        InvalidMessage: empty, not JSON (truncated, not UTF-8), nested too deeply, or not an object.
    """
    if not value:
        raise InvalidMessage("empty message")
    try:
        raw = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        if value.startswith(UNREADABLE):
            raise InvalidMessage(value[:1000].decode(errors="replace")) from None
        raise InvalidMessage(f"not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise InvalidMessage(f"should be a JSON object, not {kind_of(raw)}")
    if max_depth is not None and value.count(b"[") + value.count(b"{") > max_depth:
        _check_depth(raw, max_depth)
    return raw


def text(raw: Mapping[str, Any], field: str, default: str | None = None, *, limit: int = MAX_NAME) -> str:
    """Return a string field; without a default it must be there and not empty."""
    value = raw.get(field, default)
    if value is None:
        raise InvalidMessage(f"{field}: missing")
    if not isinstance(value, str):
        raise InvalidMessage(f"{field}: should be a string, not {kind_of(value)}")
    if len(value) > limit:
        raise InvalidMessage(f"{field}: longer than {limit} characters")
    if default is None and not value:
        raise InvalidMessage(f"{field}: empty")
    return value


def texts(
    raw: Mapping[str, Any], field: str, *, optional: bool = True, limit: int = MAX_NAME
) -> tuple[str, ...]:
    """Return a field that is a list of strings."""
    values = listing(raw, field, optional=optional)
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidMessage(f"{field}[{index}]: should be a string, not {kind_of(value)}")
        if len(value) > limit:
            raise InvalidMessage(f"{field}[{index}]: longer than {limit} characters")
    return tuple(values)


def listing(raw: Mapping[str, Any], field: str, *, optional: bool = False) -> list[Any]:
    """Return a field that is a list."""
    value = raw.get(field)
    if value is None:
        if optional:
            return []
        raise InvalidMessage(f"{field}: missing")
    if not isinstance(value, list):
        raise InvalidMessage(f"{field}: should be a list, not {kind_of(value)}")
    return value


def mapping_of_text(raw: Mapping[str, Any], field: str) -> dict[str, str]:
    """Return an optional field that is an object of named strings."""
    value = raw.get(field, {})
    if not isinstance(value, dict):
        raise InvalidMessage(f"{field}: should be an object, not {kind_of(value)}")
    for name, item in value.items():
        if not name:
            raise InvalidMessage(f"{field}: a name is empty")
        if not isinstance(item, str):
            raise InvalidMessage(f"{field}.{name[:100]}: should be a string, not {kind_of(item)}")
    return value


def number(raw: Mapping[str, Any], field: str) -> float:
    """Return a finite number."""
    return _named(to_number, raw.get(field), field)


def integer(raw: Mapping[str, Any], field: str, default: int | None = None) -> int:
    """Return a whole number that is not negative."""
    value = raw.get(field, default)
    if value is None:
        raise InvalidMessage(f"{field}: missing")
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidMessage(f"{field}: should be a whole number of at least 0, not {kind_of(value)}")
    if value > MAX_INTEGER:
        raise InvalidMessage(f"{field}: {value} is more than {MAX_INTEGER}")
    return value


def flag(raw: Mapping[str, Any], field: str) -> bool:
    """Return an optional boolean, false where it is left out."""
    value = raw.get(field, False)
    if not isinstance(value, bool):
        raise InvalidMessage(f"{field}: should be true or false, not {kind_of(value)}")
    return value


def moment(raw: Mapping[str, Any], field: str) -> float:
    """Return a time as epoch seconds; it may be written so or as ISO 8601."""
    return _named(to_moment, raw.get(field), field)


def to_number(value: object) -> float:
    """Check one finite number."""
    if value is None:
        raise InvalidMessage("missing")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidMessage(f"should be a number, not {kind_of(value)}")
    if not math.isfinite(value):
        raise InvalidMessage("should be finite")
    return float(value)


def to_moment(value: object) -> float:
    """Check one time, epoch seconds or ISO 8601."""
    seconds = from_iso(value) if isinstance(value, str) else to_number(value)
    if not EARLIEST_S <= seconds < LATEST_S:
        raise InvalidMessage(f"{seconds:g} is not a time between 2000 and 2100 in epoch seconds")
    return seconds


def _named(check: Callable[[object], float], value: object, field: str) -> float:
    """Put the field's name before what a check complains of."""
    try:
        return check(value)
    except InvalidMessage as error:
        raise InvalidMessage(f"{field}: {error}") from None


def _check_depth(raw: dict[str, Any], max_depth: int) -> None:
    """Raise InvalidMessage if lists and objects are nested deeper; level by level, so it needs no stack."""
    level: list[dict[str, Any] | list[Any]] = [raw]
    for _ in range(max_depth):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise InvalidMessage(f"nested deeper than {max_depth}")


def kind_of(value: object) -> str:
    """Return what JSON calls a value's type, with its article."""
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)
