"""Changes, and feedback of people: the messages from outside that are no measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import xxhash

from pipeline.messages import fields
from pipeline.messages.records import check, plain, read
from pipeline.messages.schema import inputs as shapes
from pipeline.messages.verdicts import encode_verdict, verdict_from_json
from pipeline.model import (
    Change,
    Outgoing,
    Silence,
    Verdict,
)
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import HOUR_S

NEVER_S = fields.LATEST_S
"""Value in columns for a time that never comes."""

_MOMENTS = ("start", "end", "removed")  # of a silence

FUTURE_S = HOUR_S
"""Seconds by which a message may be ahead of the receiver's clock: a later one would end windows early."""


def encode_change(change: Change) -> bytes:
    """Encode a change; the inverse of decode_change."""
    return orjson.dumps(change)


def change_to_json(change: Change) -> dict[str, Any]:
    """Return a change as the JSON object of a ``changes`` message."""
    return plain(change)


def decode_change(value: bytes | None, *, now: float | None = None) -> Change:
    """Decode and check a change.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return change_from_json(fields.parse_object(value, max_depth=None), now=now)


def change_to_row(change: Change) -> dict[str, Any]:
    """Return a change as a row of the table ``changes``, where lists of records are JSON texts."""
    row = plain(change)
    return row | {name: orjson.dumps(row[name]).decode() if row[name] else "" for name in _TEXTS}


def change_from_row(row: Mapping[str, Any]) -> Change:
    """Return a change of a row of the table ``changes``."""
    return change_from_json({**row, **{name: orjson.loads(row.get(name) or b"[]") for name in _TEXTS}})


_TEXTS = ("expected", "routes")
"""Fields of a change that are JSON in its row."""


def encode_silence(silence: Silence) -> bytes:
    """Encode an expectation or a mute; the inverse of decode_feedback."""
    filled = {name: value for name, value in plain(silence).items() if value}
    return orjson.dumps(
        {name: value for name, value in filled.items() if (name, value) != ("measure", "cpu")}
    )


def with_id(silence: Silence) -> Silence:
    """Return a silence with an id, derived from its content unless it has one."""
    if silence.id:
        return silence
    prefix = "expect" if silence.kind == "expected" else "mute"
    return replace(silence, id=f"{prefix}-{xxhash.xxh3_64_hexdigest(encode_silence(silence))[:12]}")


def encode_feedback(said: Silence | Verdict) -> bytes:
    """Encode a silence or a verdict; the inverse of decode_feedback."""
    return encode_verdict(said) if isinstance(said, Verdict) else encode_silence(said)


def feedback_message(said: Silence | Verdict) -> Outgoing:
    """Return a silence or a verdict as a message, keyed by its service."""
    return Outgoing("feedback", said.service, encode_feedback(said))


def decode_feedback(value: bytes | None, *, now: float | None = None) -> Silence | Verdict:
    """Decode and check the feedback of a person: an expectation, a mute or a verdict.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    parsed = fields.parse_object(value, max_depth=None)
    if check(shapes.Feedback, parsed)["kind"] == "verdict":
        verdict = verdict_from_json(parsed)
        not_ahead(verdict.time, "time", now)
        return verdict
    raw = check(shapes.Silence, parsed)
    not_ahead(raw["time"], "time", now)
    silence = read(Silence, {**raw, "start": raw.get("start") or raw["time"], "cost": raw.get("cost") or 0.0})
    _check_silence(silence)
    return silence


def silence_to_row(silence: Silence) -> dict[str, Any]:
    """Return an expectation or a mute as a row of the table ``silences``."""
    row = plain(silence)
    moments = {f"{name}_time": row.pop(name) for name in _MOMENTS}
    return {**row, **{name: NEVER_S if moment is None else moment for name, moment in moments.items()}}


def silence_of_row(row: Mapping[str, Any]) -> Silence:
    """Return an expectation or a mute of a row of the table ``silences``."""
    own: dict[str, Any] = dict(row)
    for name in _MOMENTS:
        moment = own.pop(f"{name}_time")
        own[name] = None if moment >= NEVER_S else moment
    return Silence(**own)


def _check_silence(silence: Silence) -> None:
    """Refuse a silence that lacks what its kind must have."""
    if silence.end is not None and silence.end <= silence.start:
        raise InvalidMessage("end: should be after start")
    if silence.kind == "muted":
        if not silence.owner.strip():
            raise InvalidMessage("owner: missing")
        if silence.end is None:
            raise InvalidMessage("end: missing")
        if silence.cost or silence.change:
            raise InvalidMessage(f"{'cost' if silence.cost else 'change'}: of expectations alone")
        if silence.is_of_metric:
            raise InvalidMessage("measure: of expectations alone")
    elif not silence.cost:
        raise InvalidMessage("cost: missing")
    elif silence.measure == "cpu" and silence.cost > 1:
        raise InvalidMessage("cost: should be at most 1, a share of the service's CPU")
    elif silence.is_of_metric and (silence.change or not silence.subroutine):
        raise InvalidMessage("subroutine: should name the metric, and there can be no change")
    elif not (silence.subroutine or silence.change):
        raise InvalidMessage("subroutine: missing, and there is no change either")


def change_from_json(raw: dict[str, Any], *, now: float | None = None) -> Change:
    """Check a change that is already parsed."""
    change = read(Change, {"title": "", **check(shapes.Change, raw)})
    not_ahead(change.time, "time", now)
    return change


def not_ahead(moment: float, field: str, now: float | None) -> None:
    """Refuse a time more than FUTURE_S ahead of the receiver's clock ``now``; with None refuse nothing.

    Raises:
        InvalidMessage: the time is too far ahead.
    """
    if now is not None and moment > now + FUTURE_S:
        raise InvalidMessage(f"{field}: {moment - now:.0f} s in the future")
