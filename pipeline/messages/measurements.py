"""Measurements from outside: profiles, and points of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import orjson

from pipeline.messages import fields
from pipeline.messages.inputs import not_ahead
from pipeline.messages.records import check, plain, read
from pipeline.messages.schema import inputs as shapes
from pipeline.messages.schema.inputs import MAX_COUNT, MAX_METRIC
from pipeline.model import Annotation, FloatArray, IntArray, MetricPoints, Profile
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import DAY_S

MAX_INTERVAL_S = DAY_S

MAX_ELEMENTS = 2**23
"""Most frames and annotations in all stacks of a profile: about as many as a message of 16 MiB can hold."""

MAX_FRAME_ANNOTATIONS = 16
"""Most annotations of one frame; each is an element of every stack with that frame."""


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """Return a profile as the JSON object of a ``profiles`` message."""
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
    return message


def encode_profile(profile: Profile) -> bytes:
    """Encode a profile; the inverse of decode_profile."""
    return orjson.dumps(profile_to_json(profile))


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
