"""Messages from outside: profiles, metrics, changes, and feedback of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import orjson
import xxhash

from pipeline.messages import fields
from pipeline.messages.records import check, plain, read
from pipeline.messages.schema import inputs as shapes
from pipeline.messages.schema.inputs import MAX_COUNT, MAX_METRIC
from pipeline.messages.verdicts import encode_verdict, verdict_from_json
from pipeline.model import (
    Annotation,
    Change,
    FloatArray,
    IntArray,
    MetricPoints,
    Outgoing,
    Profile,
    Silence,
    Verdict,
)
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import DAY_S, HOUR_S

MAX_INTERVAL_S = DAY_S

MAX_ELEMENTS = 2**23
"""Most frames and annotations in all stacks of a profile: about as many as a message of 16 MiB can hold."""

MAX_FRAME_ANNOTATIONS = 16
"""Most annotations of one frame; each is an element of every stack with that frame."""

NEVER_S = fields.LATEST_S
"""Value in columns for a time that never comes."""

_MOMENTS = ("start", "end", "removed")  # of a silence

FUTURE_S = HOUR_S
"""Seconds by which a message may be ahead of the receiver's clock: a later one would end windows early."""


def encode_profile(profile: Profile) -> bytes:
    """Encode a profile; the inverse of decode_profile."""
    starts = profile.stack_starts.tolist()
    flat = profile.stack_frames.tolist()
    message: dict[str, Any] = {
        "service": profile.service,
        "host": profile.host,
        "start": profile.start,
        "end": profile.end,
        "frames": profile.frames,
        "stacks": [flat[a:b] for a, b in zip(starts, starts[1:], strict=False)],
        "counts": profile.counts.tolist(),
    }
    for field in ("annotations", "release", "labels", "rate_hz", "id"):
        if value := getattr(profile, field):
            message[field] = value
    return orjson.dumps(message)


def decode_profile(value: bytes | None, *, now: float | None = None) -> Profile:
    """Decode and check a profile. ``now`` (epoch seconds) bounds its times; None does not.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = check(shapes.Profile, fields.parse_object(value, max_depth=None))
    start, end = raw["start"], raw["end"]
    if not start <= end <= start + MAX_INTERVAL_S:
        raise InvalidMessage("end: should be at or after start, by at most a day")
    not_ahead(end, "end", now)
    frames = len(raw["frames"])
    stack_frames, stack_starts = _stacks(fields.listing(raw, "stacks"), frames)
    profile = read(
        Profile,
        {
            **{name: item for name, item in raw.items() if name != "stacks"},
            "stack_frames": stack_frames,
            "stack_starts": stack_starts,
            "counts": _counts(fields.listing(raw, "counts"), len(stack_starts) - 1),
            "labels": fields.mapping_of_text(raw, "labels"),
        },
    )
    _check_elements(stack_frames, profile.annotations, frames)
    return profile


def encode_metric_points(points: MetricPoints) -> bytes:
    """Encode points of a metric; the inverse of decode_metric_points."""
    pairs = np.column_stack([points.timestamps, points.values]).tolist()
    message: dict[str, Any] = {"service": points.service, "metric": points.metric, "points": pairs}
    if points.setup:
        message["setup"] = True
    message |= {name: text for name, text in plain(points.metadata).items() if text}
    if points.id:
        message["id"] = points.id
    return orjson.dumps(message)


def decode_metric_points(value: bytes | None, *, now: float | None = None) -> MetricPoints:
    """Decode and check points of a metric: ``points`` is a list of ``[time, value]``.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = check(shapes.MetricPoints, fields.parse_object(value, max_depth=None))
    timestamps, values = _points(fields.listing(raw, "points"))
    not_ahead(float(timestamps.max()), "points", now)
    other_fields = {name: item for name, item in raw.items() if name != "points"}
    return read(MetricPoints, {**other_fields, "timestamps": timestamps, "values": values})


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


def _stacks(stacks: list[Any], frames: int) -> tuple[IntArray, IntArray]:
    """Flatten stacks into (frame indexes, starts), checking every index."""
    for index, stack in enumerate(stacks):
        if not isinstance(stack, list):
            raise InvalidMessage(f"stacks[{index}]: should be a list of indexes into frames")
    flat = _integers(list(chain.from_iterable(stacks)), "stacks")
    if flat.size and (flat.min() < 0 or flat.max() >= frames):
        raise InvalidMessage(
            f"stacks: index {flat.max() if flat.max() >= frames else flat.min()} outside {frames} frames"
        )
    starts = np.zeros(len(stacks) + 1, dtype=np.int64)
    np.cumsum([len(stack) for stack in stacks], out=starts[1:])
    return flat, starts


def _counts(counts: list[Any], stacks: int) -> IntArray:
    numbers = _integers(counts, "counts")
    if len(numbers) != stacks:
        raise InvalidMessage(f"counts: {len(numbers)} of them for {stacks} stacks")
    if numbers.size and (numbers.min() < 0 or numbers.max() > MAX_COUNT):
        raise InvalidMessage(f"counts: should be between 0 and {MAX_COUNT}")
    if numbers.sum(dtype=np.float64) > MAX_COUNT:
        raise InvalidMessage(f"counts: more than {MAX_COUNT} samples in all")
    return numbers


def _points(points: list[Any]) -> tuple[FloatArray, FloatArray]:
    """Split pairs of time and value into two arrays."""
    if not points:
        raise InvalidMessage("points: empty")
    timestamps, values = np.empty(len(points)), np.empty(len(points))
    for index, point in enumerate(points):
        if not isinstance(point, list) or len(point) != 2:
            raise InvalidMessage(f"points[{index}]: should be a pair of time and value")
        column = 0
        try:
            timestamps[index] = fields.to_moment(point[0])
            column = 1
            values[index] = fields.to_number(point[1])
        except InvalidMessage as error:
            raise InvalidMessage(f"points[{index}][{column}]: {error}") from None
    if len(beyond := np.flatnonzero(np.abs(values) > MAX_METRIC)):
        raise InvalidMessage(f"points[{beyond[0]}][1]: should be within {MAX_METRIC:g} of 0")
    return timestamps, values


def _check_elements(stack_frames: IntArray, annotations: Sequence[Annotation], frames: int) -> None:
    """Bound the elements to count: every annotation is an element of each stack with its frame."""
    elements = len(stack_frames)
    if annotations:
        for index, annotation in enumerate(annotations):
            if annotation.frame >= frames:
                where = f"annotations[{index}].frame"
                raise InvalidMessage(f"{where}: index {annotation.frame} outside {frames} frames")
        per_frame = np.bincount([annotation.frame for annotation in annotations], minlength=frames)
        if per_frame.max() > MAX_FRAME_ANNOTATIONS:
            raise InvalidMessage(
                f"annotations: more than {MAX_FRAME_ANNOTATIONS} of frame {per_frame.argmax()}"
            )
        elements += int(per_frame[stack_frames].sum())
    if elements > MAX_ELEMENTS:
        raise InvalidMessage(f"stacks: {elements} frames and annotations, more than {MAX_ELEMENTS}")


def _integers(values: list[Any], field: str) -> IntArray:
    if not set(map(type, values)) <= {int}:  # exactly: numpy would take True for 1
        raise InvalidMessage(f"{field}: should be integers")
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        raise InvalidMessage(f"{field}: beyond 64 bits") from None
