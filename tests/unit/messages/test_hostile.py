"""Messages that are small to send and would be large, endless or wrong to work with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.evaluation.reading import read_events
from pipeline.messages.events import decode_event
from pipeline.messages.fields import MAX_DEPTH, parse_object
from pipeline.messages.measurements import (
    MAX_ELEMENTS,
    MAX_FRAME_ANNOTATIONS,
    decode_metric_points,
    decode_profile,
)
from pipeline.messages.scans import decode_progress, decode_scan
from pipeline.messages.schema.inputs import MAX_COUNT, MAX_METRIC
from pipeline.messages.schema.scans import MAX_PARTS
from pipeline.model.errors import ConfigError, InvalidMessage

T0 = 1_760_000_000.0
PROFILE: dict[str, Any] = {
    "service": "shop", "host": "h", "start": T0, "end": T0 + 10,
    "frames": ["a", "b"], "stacks": [[0, 1], [0]], "counts": [1, 2],
}  # fmt: skip
SCAN: dict[str, Any] = {
    "service": "s", "workload": "w", "start": T0, "analysis_start": T0, "analysis_end": T0, "end": T0,
    "series": 1, "candidates": [],
}  # fmt: skip
PROGRESS = {"service": "s", "topic": "t", "partition": 0, "watermark": T0, "earliest": T0}


def reason(decode: Callable[[bytes], object], message: dict[str, Any]) -> str:
    with pytest.raises(InvalidMessage) as caught:
        decode(orjson.dumps(message))
    return str(caught.value)


def annotated(count: int, frame: int = 0) -> list[dict[str, Any]]:
    return [{"frame": frame, "kind": "endpoint", "value": f"/{number}"} for number in range(count)]


def test_counts_whose_sum_would_overflow_when_many_are_added() -> None:
    message = {**PROFILE, "counts": [MAX_COUNT, 1]}
    assert reason(decode_profile, message) == f"counts: more than {MAX_COUNT} samples in all"
    most = decode_profile(orjson.dumps({**PROFILE, "counts": [MAX_COUNT - 1, 1]}))
    assert most.counts.sum() == MAX_COUNT


def test_many_annotations_of_one_frame() -> None:
    """Each is an element of every stack with the frame: 10,000 of each would be 100 million."""
    message = {**PROFILE, "annotations": annotated(MAX_FRAME_ANNOTATIONS + 1, frame=1)}
    assert reason(decode_profile, message) == f"annotations: more than {MAX_FRAME_ANNOTATIONS} of frame 1"
    decode_profile(orjson.dumps({**PROFILE, "annotations": annotated(MAX_FRAME_ANNOTATIONS)}))


def test_stacks_that_grow_when_they_are_annotated() -> None:
    deep = [0] * (MAX_ELEMENTS // MAX_FRAME_ANNOTATIONS)
    message = {**PROFILE, "stacks": [deep, []], "annotations": annotated(MAX_FRAME_ANNOTATIONS)}
    assert "frames and annotations, more than" in reason(decode_profile, message)
    decode_profile(orjson.dumps({**message, "annotations": annotated(MAX_FRAME_ANNOTATIONS - 1)}))


def test_a_stack_2000_frames_deep_is_nothing_special() -> None:
    message = {**PROFILE, "frames": [f"f{n}" for n in range(2000)], "stacks": [[*range(2000)], [0] * 2000]}
    assert decode_profile(orjson.dumps(message)).stack_frames.shape == (4000,)


@pytest.mark.parametrize("value", [MAX_METRIC * 1.01, -1e308])
def test_a_metric_whose_square_is_infinite(value: float) -> None:
    message = {"service": "s", "metric": "m", "points": [[T0, 0], [T0, value]]}
    assert reason(decode_metric_points, message) == "points[1][1]: should be within 1e+100 of 0"


def test_numbers_that_the_store_cannot_hold() -> None:
    assert reason(decode_progress, {**PROGRESS, "partition": 2**63}) == (
        "partition: 9223372036854775808 is more than 9223372036854775807"
    )
    assert "series: " in reason(decode_scan, {**SCAN, "series": 2**64 - 1})


def test_a_scan_of_more_parts_than_fit_into_memory() -> None:
    assert (
        reason(decode_scan, {**SCAN, "part": 0, "parts": MAX_PARTS + 1}) == "parts: 10001 is more than 10000"
    )
    assert decode_scan(orjson.dumps({**SCAN, "part": 0, "parts": MAX_PARTS})).parts == MAX_PARTS


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_depth_is_bounded_where_json_is_kept() -> None:
    parse_object(orjson.dumps({"a": nested(MAX_DEPTH - 1)}))
    with pytest.raises(InvalidMessage, match=f"nested deeper than {MAX_DEPTH}"):
        parse_object(orjson.dumps({"a": nested(MAX_DEPTH)}))
    parse_object(b'{"a": "' + b"[{" * 1000 + b'"}')  # in a text they are only characters
    parse_object(b'{"a": [' + b"[]," * 1000 + b"[]]}")  # beside each other they are not deep


def test_an_event_too_deep_to_be_written_again(tmp_path: Path) -> None:
    """The parser takes 1024 levels, the writer 254: what lies between could be read and not be kept."""
    head = b'{"specversion": "1.0", "id": "i", "type": "smidgen.regression.detected", "source": "s", '
    value = head + b'"time": "t", "data": {"x": ' + b"[" * 300 + b"]" * 300 + b"}}"
    with pytest.raises(InvalidMessage, match="nested deeper"):
        decode_event(value)
    path = tmp_path / "events.jsonl"
    path.write_bytes(value)
    with pytest.raises(ConfigError, match=r"events\.jsonl:1: nested deeper"):
        read_events(path)
