"""What arrives from outside: profiles, metrics and changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, get_args

import numpy as np
import orjson

from pipeline.codec import fields
from pipeline.errors import InvalidMessage
from pipeline.model import Annotation, AnnotationKind, Change, IntArray, MetricPoints, Profile
from pipeline.units import DAY_S, HOUR_S

MAX_INTERVAL_S = DAY_S
MAX_COUNT = 2**40  # in all of a profile: far above any host's interval, so that no sum of many overflows

MAX_ELEMENTS = 2**23
"""Most frames and annotations in all stacks of a profile: about as many as a message of 16 MiB can spell."""

MAX_FRAME = 16 * 2**20
"""Longest name of a frame, in characters: only the message bounds it. Long ones are cut when they are counted
(``pipeline.frames.cut_name``), so that one broken symbol does not cost a host's whole interval."""

MAX_FRAME_ANNOTATIONS = 16
"""Most annotations of one frame; each is an element of every stack with that frame."""

MAX_ID = 200
"""Longest id of a profile, in characters."""

MAX_METRIC = 1e100
"""Largest value of a metric, either sign: squares and sums of many stay finite."""

MAX_CONTENT = 32 * 1024
"""Longest text of a diff that a change may carry, in characters: senders cut it there."""

FUTURE_S = HOUR_S
"""How far ahead of the receiver's clock a message may be: a later one would end every window early."""


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
    if profile.annotations:
        message["annotations"] = [
            {"frame": a.frame, "kind": a.kind, "value": a.value} for a in profile.annotations
        ]
    if profile.release:
        message["release"] = profile.release
    if profile.labels:
        message["labels"] = dict(profile.labels)
    if profile.id:
        message["id"] = profile.id
    return orjson.dumps(message)


def decode_profile(value: bytes | None, *, now: float | None = None) -> Profile:
    """Decode and check a profile. ``now`` (epoch seconds) bounds its times; None does not.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = fields.parse_object(value, max_depth=None)
    start, end = fields.moment(raw, "start"), fields.moment(raw, "end")
    if not start <= end <= start + MAX_INTERVAL_S:
        raise InvalidMessage("end: should be at or after start, by at most a day")
    _not_ahead(end, "end", now)
    frames = fields.texts(raw, "frames", optional=False, limit=MAX_FRAME)
    stack_frames, stack_starts = _stacks(fields.listing(raw, "stacks"), len(frames))
    counts = _integers(fields.listing(raw, "counts"), "counts")
    if len(counts) != len(stack_starts) - 1:
        raise InvalidMessage(f"counts: {len(counts)} of them for {len(stack_starts) - 1} stacks")
    if counts.size and (counts.min() < 0 or counts.max() > MAX_COUNT):
        raise InvalidMessage(f"counts: should be between 0 and {MAX_COUNT}")
    if counts.sum(dtype=np.float64) > MAX_COUNT:
        raise InvalidMessage(f"counts: more than {MAX_COUNT} samples in all")
    annotations = _annotations(fields.listing(raw, "annotations", optional=True), len(frames))
    _check_elements(stack_frames, annotations, len(frames))
    return Profile(
        service=fields.text(raw, "service", limit=200),
        host=fields.text(raw, "host", limit=400),
        start=start,
        end=end,
        frames=frames,
        stack_frames=stack_frames,
        stack_starts=stack_starts,
        counts=counts,
        annotations=annotations,
        release=fields.text(raw, "release", ""),
        labels=fields.mapping_of_text(raw, "labels"),
        id=fields.text(raw, "id", "", limit=MAX_ID),
    )


def encode_metric_points(points: MetricPoints) -> bytes:
    """Encode points of a metric; the inverse of decode_metric_points."""
    pairs = np.column_stack([points.timestamps, points.values]).tolist()
    message: dict[str, Any] = {"service": points.service, "metric": points.metric, "points": pairs}
    if points.setup:
        message["setup"] = True
    return orjson.dumps(message)


def decode_metric_points(value: bytes | None, *, now: float | None = None) -> MetricPoints:
    """Decode and check points of a metric: ``points`` is a list of ``[time, value]``.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    raw = fields.parse_object(value, max_depth=None)
    points = fields.listing(raw, "points")
    if not points:
        raise InvalidMessage("points: empty")
    timestamps, values = np.empty(len(points)), np.empty(len(points))
    for index, point in enumerate(points):
        if not isinstance(point, list) or len(point) != 2:
            raise InvalidMessage(f"points[{index}]: should be a pair of time and value")
        timestamps[index] = fields.to_moment(point[0], f"points[{index}][0]")
        values[index] = fields.to_number(point[1], f"points[{index}][1]")
    if len(beyond := np.flatnonzero(np.abs(values) > MAX_METRIC)):
        raise InvalidMessage(f"points[{beyond[0]}][1]: should be within {MAX_METRIC:g} of 0")
    _not_ahead(float(timestamps.max()), "points", now)
    return MetricPoints(
        service=fields.text(raw, "service", limit=200),
        metric=fields.text(raw, "metric", limit=400),
        timestamps=timestamps,
        values=values,
        setup=fields.flag(raw, "setup"),
    )


def encode_change(change: Change) -> bytes:
    """Encode a change; the inverse of decode_change."""
    return orjson.dumps(change_to_json(change))


def change_to_json(change: Change) -> dict[str, Any]:
    """Return a change as the JSON object of a ``changes`` message."""
    return {
        "id": change.id,
        "service": change.service,
        "time": change.time,
        "title": change.title,
        "author": change.author,
        "summary": change.summary,
        "files": list(change.files),
        "subroutines": list(change.subroutines),
        "gates": list(change.gates),
        "content": change.content,
    }


def decode_change(value: bytes | None, *, now: float | None = None) -> Change:
    """Decode and check a change.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return change_from_json(fields.parse_object(value, max_depth=None), now=now)


def change_from_json(raw: dict[str, Any], *, now: float | None = None) -> Change:
    """Check a change that is already parsed."""
    time = fields.moment(raw, "time")
    _not_ahead(time, "time", now)
    return Change(
        id=fields.text(raw, "id", limit=400),
        service=fields.text(raw, "service", limit=200),
        time=time,
        title=fields.text(raw, "title", ""),
        author=fields.text(raw, "author", ""),
        summary=fields.text(raw, "summary", "", limit=100_000),
        files=fields.texts(raw, "files"),
        subroutines=fields.texts(raw, "subroutines"),
        gates=fields.texts(raw, "gates"),
        content=fields.text(raw, "content", "", limit=MAX_CONTENT),
    )


def _not_ahead(moment: float, field: str, now: float | None) -> None:
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


def _check_elements(stack_frames: IntArray, annotations: Sequence[Annotation], frames: int) -> None:
    """Bound what counting makes of a profile: every annotation is an element of each stack with its frame."""
    elements = len(stack_frames)
    if annotations:
        more = np.bincount([annotation.frame for annotation in annotations], minlength=frames)
        if more.max() > MAX_FRAME_ANNOTATIONS:
            raise InvalidMessage(f"annotations: more than {MAX_FRAME_ANNOTATIONS} of frame {more.argmax()}")
        elements += int(more[stack_frames].sum())
    if elements > MAX_ELEMENTS:
        raise InvalidMessage(f"stacks: {elements} frames and annotations, more than {MAX_ELEMENTS}")


def _integers(values: list[Any], field: str) -> IntArray:
    if not set(map(type, values)) <= {int}:  # exactly: numpy would take True for 1
        raise InvalidMessage(f"{field}: should be integers")
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        raise InvalidMessage(f"{field}: beyond 64 bits") from None


def _annotations(raw: list[Any], frames: int) -> tuple[Annotation, ...]:
    found = []
    for index, item in enumerate(raw):
        where = f"annotations[{index}]"
        if not isinstance(item, dict):
            raise InvalidMessage(f"{where}: should be an object")
        try:
            frame, kind, value = (
                fields.integer(item, "frame"),
                fields.text(item, "kind"),
                fields.text(item, "value"),
            )
        except InvalidMessage as error:
            raise InvalidMessage(f"{where}.{error}") from None
        if frame >= frames:
            raise InvalidMessage(f"{where}.frame: index {frame} outside {frames} frames")
        if kind not in get_args(AnnotationKind):
            raise InvalidMessage(f"{where}.kind: should be endpoint or metadata, not {kind[:40]!r}")
        found.append(Annotation(frame, "endpoint" if kind == "endpoint" else "metadata", value))
    return tuple(found)
