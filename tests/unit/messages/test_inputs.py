from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from pipeline.messages.inputs import (
    FUTURE_S,
    change_from_row,
    change_to_row,
    decode_change,
    decode_feedback,
    encode_change,
    encode_silence,
    silence_of_row,
    silence_to_row,
)
from pipeline.messages.measurements import decode_metric_points, decode_profile, encode_profile
from pipeline.messages.schema.inputs import MAX_CONTENT, MAX_COUNT, MAX_FRAME
from pipeline.model import Annotation, Change, ExpectedCost, Profile, Silence
from pipeline.model.errors import InvalidMessage
from tests.support.builders import build_profile
from tests.unit.messages.test_schema_messages import refused_by_schema

T0 = 1_760_000_000.0

PROFILE: dict[str, Any] = {
    "service": "shop",
    "host": "web-1",
    "start": T0,
    "end": T0 + 10,
    "frames": ["main", "shop.pricing.total", "json.dumps"],
    "stacks": [[0, 1], [0, 1, 2], [0]],
    "counts": [5, 3, 2],
    "annotations": [{"frame": 1, "kind": "endpoint", "value": "/checkout"}],
    "release": "v12",
    "labels": {"zone": "a"},
}
METRIC: dict[str, Any] = {"service": "shop", "metric": "throughput", "points": [[T0, 1.5], [T0 + 1, 2]]}
CHANGE: dict[str, Any] = {"id": "c0ffee", "service": "shop", "time": T0, "title": "Sort prices"}

Decoder = Callable[..., object]
KINDS: dict[str, tuple[Decoder, dict[str, Any]]] = {
    "profile": (decode_profile, PROFILE),
    "metric": (decode_metric_points, METRIC),
    "change": (decode_change, CHANGE),
}
DELETED = object()


def altered(kind: str, alteration: dict[str, Any]) -> bytes:
    raw = {**KINDS[kind][1], **alteration}
    return orjson.dumps({key: value for key, value in raw.items() if value is not DELETED})


def reason(decode: Decoder, value: bytes | None, **arguments: Any) -> str:
    with pytest.raises(InvalidMessage) as caught:
        decode(value, **arguments)
    assert len(str(caught.value)) < 500, "a reason is a line, not a copy of the message"
    return str(caught.value)


def test_a_profile_is_flattened() -> None:
    profile = decode_profile(orjson.dumps(PROFILE))
    assert profile.stack_frames.tolist() == [0, 1, 0, 1, 2, 0]
    assert profile.stack_starts.tolist() == [0, 2, 5, 6]
    assert profile.counts.tolist() == [5, 3, 2]
    assert {profile.stack_frames.dtype, profile.stack_starts.dtype, profile.counts.dtype} == {np.dtype("i8")}
    assert profile.annotations == (Annotation(1, "endpoint", "/checkout"),)
    assert (profile.service, profile.host, profile.release) == ("shop", "web-1", "v12")
    assert profile.labels == {"zone": "a"}


def test_a_broken_symbol_does_not_cost_an_interval() -> None:
    # It is cut where it is counted, see pipeline.model.frames.
    name = "x" * 1_000_000
    assert decode_profile(encode_profile(build_profile({f"main;{name}": 5}))).frames[1] == name


def test_a_profile_without_samples_is_valid() -> None:
    profile = decode_profile(
        altered("profile", {"frames": [], "stacks": [], "counts": [], "annotations": []})
    )
    assert profile.stack_starts.tolist() == [0]
    assert profile.counts.size == 0


def test_times_may_be_iso() -> None:
    iso = {"start": "2025-10-09T08:53:20Z", "end": "2025-10-09T10:53:30+02:00"}
    profile = decode_profile(altered("profile", iso))
    assert (profile.start, profile.end) == (T0, T0 + 10)


def test_a_change_needs_no_more_than_identity_and_time() -> None:
    change = decode_change(orjson.dumps({"id": "1", "service": "s", "time": T0}))
    assert change == Change(id="1", service="s", time=T0, title="")


def test_a_change_may_announce_its_cost() -> None:
    announced = [{"cost": 0.001, "subroutine": "shop.pricing.*"}, {"cost": 0.5}]
    raw = {"id": "1", "service": "s", "time": T0, "expected": announced}
    change = decode_change(orjson.dumps(raw))
    assert change.expected == (ExpectedCost(0.001, "shop.pricing.*"), ExpectedCost(0.5))
    assert decode_change(encode_change(change)) == change
    assert change_from_row(orjson.loads(orjson.dumps(change_to_row(change)))) == change
    row = orjson.loads(orjson.dumps(change_to_row(replace(change, expected=()))))
    assert (row["expected"], change_from_row(row).expected) == ("", ())
    assert change_from_row({name: value for name, value in row.items() if name != "expected"}).expected == ()


MUTE = {"kind": "muted", "id": "m", "service": "s", "time": T0, "owner": "ada", "end": T0 + 60}
EXPECTATION = {"kind": "expected", "id": "e", "service": "s", "time": T0, "cost": 0.001, "subroutine": "a.*"}


def test_silences_survive_and_begin_when_they_are_made_unless_they_say_otherwise() -> None:
    muted = decode_feedback(orjson.dumps(MUTE))
    assert muted == Silence("m", "s", "muted", T0, T0, T0 + 60, owner="ada")
    expected = decode_feedback(
        orjson.dumps({**EXPECTATION, "start": T0 + 5, "removed": "2026-01-31T00:00:00Z"})
    )
    assert isinstance(expected, Silence)
    assert (expected.start, expected.end, expected.cost) == (T0 + 5, None, 0.001)
    of_metric = decode_feedback(orjson.dumps({**EXPECTATION, "cost": 20.0, "measure": "metric"}))
    assert isinstance(of_metric, Silence)
    assert (of_metric.cost, of_metric.is_of_metric, expected.is_of_metric) == (20.0, True, False)
    for silence in (muted, expected, of_metric):
        assert isinstance(silence, Silence)
        assert decode_feedback(encode_silence(silence)) == silence
        assert silence_of_row(silence_to_row(silence)) == silence


@pytest.mark.parametrize(
    ("message", "changes", "reason"),
    [
        pytest.param(MUTE, {"end": None}, "end: missing", id="a mute without an end"),
        pytest.param(MUTE, {"owner": " "}, "owner: missing", id="a mute of nobody"),
        pytest.param(MUTE, {"end": T0}, "end: should be after start", id="an end before the start"),
        pytest.param(MUTE, {"cost": 0.1}, "cost: of expectations alone", id="a mute with a cost"),
        pytest.param(MUTE, {"change": "c"}, "change: of expectations alone", id="a mute of a change"),
        pytest.param(
            MUTE, {"kind": "maybe"}, "kind: should be expected, muted or verdict, not 'maybe'", id="a kind"
        ),
        pytest.param(EXPECTATION, {"cost": None}, "cost: missing", id="no cost"),
        pytest.param(EXPECTATION, {"subroutine": ""}, "subroutine: missing, and", id="about nothing"),
        pytest.param(
            MUTE, {"measure": "relative"}, "measure: of expectations alone", id="a mute of a metric"
        ),
        pytest.param(EXPECTATION, {"measure": "much"}, "measure: should be cpu, metric or", id="a measure"),
        pytest.param(
            EXPECTATION, {"measure": "metric", "change": "c0ffee"}, "subroutine: should name", id="of both"
        ),
        pytest.param(EXPECTATION, {"time": T0 + 8000}, "time: 8000 s in the future", id="from the future"),
    ],
)
def test_a_wrong_silence_names_its_field(
    message: dict[str, object], changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode_feedback(orjson.dumps({**message, **changes}), now=T0)
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize("cost", [0, -0.1, 1.1, "0.1%"])
def test_a_cost_is_a_share(cost: object) -> None:
    with pytest.raises(InvalidMessage, match="cost"):
        decode_feedback(orjson.dumps({**EXPECTATION, "cost": cost}))


def test_only_what_is_there_is_written() -> None:
    bare = Profile(
        "s", "h", T0, T0, (), np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64), np.empty(0, np.int64)
    )
    assert set(orjson.loads(encode_profile(bare))) == {
        "service", "host", "start", "end", "frames", "stacks", "counts",
    }  # fmt: skip
    assert orjson.loads(encode_change(decode_change(orjson.dumps(CHANGE))))["files"] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(None, "empty message", id="tombstone"),
        pytest.param(b"", "empty message", id="empty"),
        pytest.param(b"{", "not JSON: ", id="truncated"),
        pytest.param(b"\xff\xfe", "not JSON: ", id="not UTF-8"),
        pytest.param(b"[1]", "should be a JSON object, not a list", id="list"),
        pytest.param(b"null", "should be a JSON object, not null", id="null"),
        pytest.param(b'"x"', "should be a JSON object, not a string", id="string"),
        pytest.param(b"[" * 5000, "not JSON: ", id="endless nesting"),
        pytest.param(b'{"service": NaN}', "not JSON: ", id="NaN"),
    ],
)
def test_what_is_not_an_object(kind: str, value: bytes | None, message: str) -> None:
    assert reason(KINDS[kind][0], value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        *(("profile", field) for field in ("service", "host", "start", "end", "frames", "stacks", "counts")),
        *(("metric", field) for field in ("service", "metric", "points")),
        *(("change", field) for field in ("service", "id", "time")),
    ],
)
@pytest.mark.parametrize("how", [DELETED, None], ids=["left out", "null"])
def test_a_missing_field_is_named(kind: str, field: str, how: object) -> None:
    assert reason(KINDS[kind][0], altered(kind, {field: how})) == f"{field}: missing"


@pytest.mark.parametrize(
    ("kind", "alteration", "message"),
    [
        # Names
        ("profile", {"service": 5}, "service: should be a string, not an integer"),
        ("profile", {"service": ""}, "service: empty"),
        ("profile", {"service": "s" * 201}, "service: longer than 200 characters"),
        ("profile", {"host": ["h"]}, "host: should be a string, not a list"),
        ("profile", {"host": "h" * 401}, "host: longer than 400 characters"),
        ("profile", {"release": 7}, "release: should be a string, not an integer"),
        ("profile", {"labels": []}, "labels: should be an object, not a list"),
        ("profile", {"labels": {"zone": 1}}, "labels.zone: should be a string, not an integer"),
        ("profile", {"labels": {"": "a"}}, "labels: a name is empty"),
        ("metric", {"metric": True}, "metric: should be a string, not a boolean"),
        ("change", {"id": 3.5}, "id: should be a string, not a number"),
        ("change", {"title": {}}, "title: should be a string, not an object"),
        ("change", {"files": "a.py"}, "files: should be a list, not a string"),
        ("change", {"subroutines": ["a", 1]}, "subroutines[1]: should be a string, not an integer"),
        ("change", {"gates": [None]}, "gates[0]: should be a string, not null"),
        ("change", {"summary": "s" * 100_001}, "summary: longer than 100000 characters"),
        ("change", {"content": "s" * (MAX_CONTENT + 1)}, f"content: longer than {MAX_CONTENT} characters"),
        ("change", {"content": ["+x"]}, "content: should be a string, not a list"),
        # Times
        ("profile", {"start": T0 * 1000}, "start: 1.76e+12 is not a time between 2000 and 2100"),
        ("profile", {"start": -1}, "start: -1 is not a time"),
        ("profile", {"start": 0}, "start: 0 is not a time"),
        ("profile", {"start": "yesterday"}, "start: not an ISO 8601 time: 'yesterday'"),
        ("profile", {"start": "0001-01-01T00:00:00+23:59"}, "start: -6.2"),
        ("profile", {"start": True}, "start: should be a number, not a boolean"),
        ("profile", {"end": [T0]}, "end: should be a number, not a list"),
        ("profile", {"end": T0 - 1}, "end: should be at or after start"),
        ("profile", {"end": T0 + 86_401}, "end: should be at or after start, by at most a day"),
        ("metric", {"points": [[T0, 1], [4.2e9, 1]]}, "points[1][0]: 4.2e+09 is not a time"),
        ("change", {"time": "2026-13-01"}, "time: not an ISO 8601 time"),
        # Stacks and counts
        ("profile", {"frames": "main"}, "frames: should be a list, not a string"),
        ("profile", {"frames": ["a", "b", 3]}, "frames[2]: should be a string, not an integer"),
        ("profile", {"frames": ["a", "b", "c" * (MAX_FRAME + 1)]}, "frames[2]: longer than 16777216"),
        ("profile", {"stacks": {}}, "stacks: should be a list, not an object"),
        ("profile", {"stacks": [[0], 1, [2]]}, "stacks[1]: should be a list of indexes into frames"),
        ("profile", {"stacks": [[0], [3], [2]]}, "stacks: index 3 outside 3 frames"),
        ("profile", {"stacks": [[0], [-1], [2]]}, "stacks: index -1 outside 3 frames"),
        ("profile", {"stacks": [[0], [1.0], [2]]}, "stacks: should be integers"),
        ("profile", {"stacks": [[0], [True], [2]]}, "stacks: should be integers"),
        ("profile", {"stacks": [[0], [None], [2]]}, "stacks: should be integers"),
        ("profile", {"stacks": [[0], [[1]], [2]]}, "stacks: should be integers"),
        ("profile", {"stacks": [[0], [2**64 - 1], [2]]}, "stacks: beyond 64 bits"),
        ("profile", {"counts": [5, 3]}, "counts: 2 of them for 3 stacks"),
        ("profile", {"counts": [5, 3, 2, 1]}, "counts: 4 of them for 3 stacks"),
        ("profile", {"counts": [5, -3, 2]}, f"counts: should be between 0 and {MAX_COUNT}"),
        ("profile", {"counts": [5, MAX_COUNT + 1, 2]}, f"counts: should be between 0 and {MAX_COUNT}"),
        ("profile", {"counts": [5, 2**63, 2]}, "counts: beyond 64 bits"),
        ("profile", {"counts": [5, 3.5, 2]}, "counts: should be integers"),
        ("profile", {"counts": [5, True, 2]}, "counts: should be integers"),
        ("profile", {"counts": [5, "3", 2]}, "counts: should be integers"),
        ("profile", {"counts": [[5], [3], [2]]}, "counts: should be integers"),
        ("profile", {"counts": 10}, "counts: should be a list, not an integer"),
        # Annotations
        ("profile", {"annotations": {}}, "annotations: should be a list, not an object"),
        ("profile", {"annotations": ["x"]}, "annotations[0]: should be an object"),
        ("profile", {"annotations": [{}]}, "annotations[0].frame: missing"),
        (
            "profile",
            {"annotations": [{"frame": 3, "kind": "endpoint", "value": "v"}]},
            "annotations[0].frame: index 3 outside 3 frames",
        ),
        (
            "profile",
            {"annotations": [{"frame": -1, "kind": "endpoint", "value": "v"}]},
            "annotations[0].frame: should be a whole number of at least 0",
        ),
        (
            "profile",
            {"annotations": [{"frame": 0, "kind": "url", "value": "v"}]},
            "annotations[0].kind: should be endpoint or metadata, not 'url'",
        ),
        (
            "profile",
            {"annotations": [{"frame": 0, "kind": "metadata", "value": ""}]},
            "annotations[0].value: empty",
        ),
        # Points
        ("metric", {"points": []}, "points: empty"),
        ("metric", {"points": {}}, "points: should be a list, not an object"),
        ("metric", {"points": [5]}, "points[0]: should be a pair of time and value"),
        ("metric", {"points": [[T0]]}, "points[0]: should be a pair of time and value"),
        ("metric", {"points": [[T0, None]]}, "points[0][1]: missing"),
        ("metric", {"points": [[T0, "1"]]}, "points[0][1]: should be a number, not a string"),
        ("metric", {"setup": 1}, "setup: should be true or false, not an integer"),
    ],
)
def test_a_wrong_field_is_named(kind: str, alteration: dict[str, Any], message: str) -> None:
    said = reason(KINDS[kind][0], altered(kind, alteration))
    assert said.startswith(message)
    refused_by_schema("metric-points" if kind == "metric" else kind, altered(kind, alteration), said)


@pytest.mark.parametrize(
    ("kind", "field"), [("profile", "end"), ("metric", "points"), ("change", "time")], ids=list(KINDS)
)
def test_a_time_ahead_of_the_clock_is_refused(kind: str, field: str) -> None:
    decode, message = KINDS[kind]
    latest = {"profile": T0 + 10, "metric": T0 + 1, "change": T0}[kind]
    decode(orjson.dumps(message), now=latest - FUTURE_S)
    late = reason(decode, orjson.dumps(message), now=latest - FUTURE_S - 5)
    assert late == f"{field}: 3605 s in the future"


def test_a_large_message_is_read_whole() -> None:
    stacks = 100_000
    value = altered("profile", {"stacks": [[0, 1, 2]] * stacks, "counts": [1] * stacks})
    assert decode_profile(value).counts.sum() == stacks
