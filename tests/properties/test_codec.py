from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.messages.events import decode_event, encode_event, regression_event, regression_id
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.inputs import decode_change, encode_change
from pipeline.messages.measurements import (
    decode_metric_points,
    decode_profile,
    encode_metric_points,
    encode_profile,
)
from pipeline.messages.scans import (
    decode_progress,
    decode_scan,
    encode_progress,
    encode_scan,
    join_scan,
    split_scan,
)
from pipeline.messages.schema.inputs import MAX_METRIC
from pipeline.model import (
    Annotation,
    Candidate,
    Change,
    CostlierRequests,
    Decision,
    Dropped,
    MetricPoints,
    Profile,
    Progress,
    Regression,
    Scan,
    Suspect,
)
from pipeline.model.errors import InvalidMessage

# Text of any script, without lone surrogates, which neither UTF-8 nor JSON can carry.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
name = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
names = st.lists(text, max_size=4).map(tuple)
moment = st.floats(EARLIEST_S, LATEST_S, exclude_max=True)
finite = st.floats(-1e300, 1e300)  # metrics are at most 1e100: the difference of two is a number
integers = st.integers(0, 2**40)
value = st.floats(-MAX_METRIC, MAX_METRIC)
counts = st.integers(0, 2**37)  # of at most six stacks: together within a profile's bound


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    frames = tuple(draw(st.lists(text, max_size=6)))
    index = st.integers(0, len(frames) - 1) if frames else st.nothing()
    stacks = draw(st.lists(st.lists(index, max_size=5 if frames else 0), max_size=6))
    start = draw(moment.filter(lambda t: t < LATEST_S - 86_400))
    annotation = st.builds(Annotation, index, st.sampled_from(["endpoint", "metadata"]), name)
    return Profile(
        service=draw(name),
        host=draw(name),
        start=start,
        end=start + draw(st.floats(0, 86_000)),
        frames=frames,
        stack_frames=np.array([i for stack in stacks for i in stack], dtype=np.int64),
        stack_starts=np.cumsum([0, *map(len, stacks)], dtype=np.int64),
        counts=np.array(draw(st.lists(counts, min_size=len(stacks), max_size=len(stacks))), dtype=np.int64),
        annotations=tuple(draw(st.lists(annotation, max_size=3 if frames else 0))),
        release=draw(text),
        labels=draw(st.dictionaries(text.filter(bool), text, max_size=3)),
    )


@st.composite
def metric_points(draw: st.DrawFn) -> MetricPoints:
    pairs = draw(st.lists(st.tuples(moment, value), min_size=1, max_size=6))
    return MetricPoints(
        service=draw(name),
        metric=draw(name),
        timestamps=np.array([t for t, _ in pairs], dtype=np.float64),
        values=np.array([v for _, v in pairs], dtype=np.float64),
        setup=draw(st.booleans()),
        unit=draw(st.sampled_from(["", "ms", "{request}/s"])),
        kind=draw(st.sampled_from(["", "latency", "of one's own"])),
        direction=draw(st.sampled_from(["", "up", "down", "none"])),
    )


changes = st.builds(
    Change,
    id=name,
    service=name,
    time=moment,
    title=text,
    author=text,
    summary=text,
    files=names,
    subroutines=names,
    gates=names,
    content=text,
)
progresses = st.builds(
    Progress, service=name, topic=name, partition=integers, watermark=moment, earliest=moment
)
passes = st.builds(
    Decision,
    step=name,
    passed=st.just(True),
    statistic=finite,
    bound=finite,
    code=st.just("dearer"),
    subjects=st.lists(name, max_size=4).map(tuple),
    requests=st.none()
    | st.builds(
        CostlierRequests,
        type=name,
        release=name,
        former_release=name,
        share=finite,
        share_error=finite,
        or_types=st.lists(name, max_size=4).map(tuple),
        chances=st.lists(st.floats(0, 1), max_size=4).map(tuple),
    ),
)
flat_candidates = st.builds(
    Candidate,
    metric_kind=st.sampled_from(["subroutine", "endpoint", "metadata", "service"]),
    metric=name,
    kind=st.sampled_from(["short_term", "long_term"]),
    change_time=moment,
    before=finite,
    after=finite,
    p_value=finite,
    statistic=finite,
    passed=st.lists(passes, max_size=2).map(tuple),
)
candidates = st.builds(
    lambda candidate, group: Candidate(
        candidate.metric_kind, candidate.metric, candidate.kind, candidate.change_time, candidate.before,
        candidate.after, candidate.p_value, candidate.statistic, tuple(group), candidate.passed,
    ),
    flat_candidates,
    st.lists(flat_candidates, max_size=3),
)  # fmt: skip
decisions = st.builds(
    Decision, name, st.just(False), finite, finite, st.sampled_from(["", "text"]), st.tuples(name)
)
drops = st.builds(Dropped, candidate=candidates, decision=decisions)
scans = st.builds(
    Scan,
    service=name,
    workload=name,
    start=moment,
    analysis_start=moment,
    analysis_end=moment,
    end=moment,
    series=integers,
    candidates=st.lists(candidates, max_size=5).map(tuple),
    dropped=st.lists(drops, max_size=5).map(tuple),
)
ratio = st.floats(0, 1)
regressions = st.builds(
    Regression,
    id=name,
    service=name,
    workload=name,
    candidate=st.builds(Candidate, st.just("subroutine"), name, st.just("short_term"), moment, ratio, ratio,
                        ratio, ratio),
    detected_time=moment,
    suspects=st.lists(
        st.builds(Suspect, changes, ratio, st.dictionaries(name, ratio, max_size=2)), max_size=2
    ).map(tuple),
)  # fmt: skip


def plain(profile: Profile) -> dict[str, Any]:
    """Spell a profile in lists, which compare by value."""
    raw = {field: getattr(profile, field) for field in Profile.__slots__}
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in raw.items()}


@given(profiles())
def test_profiles_survive(profile: Profile) -> None:
    assert plain(decode_profile(encode_profile(profile))) == plain(profile)


@given(metric_points())
def test_metric_points_survive(points: MetricPoints) -> None:
    decoded = decode_metric_points(encode_metric_points(points))
    assert (decoded.service, decoded.metric, decoded.setup) == (points.service, points.metric, points.setup)
    np.testing.assert_array_equal(decoded.timestamps, points.timestamps)
    np.testing.assert_array_equal(decoded.values, points.values)


@given(changes)
def test_changes_survive(change: Change) -> None:
    assert decode_change(encode_change(change)) == change


@given(progresses)
def test_progress_survives(progress: Progress) -> None:
    assert decode_progress(encode_progress(progress)) == progress


@given(scans)
def test_scans_survive(scan: Scan) -> None:
    assert decode_scan(encode_scan(scan)) == scan


@given(scans, st.integers(1, 4))
def test_a_cut_scan_is_whole_again(scan: Scan, max_items: int) -> None:
    parts = split_scan(scan, max_items)
    assert all(len(part.candidates) + len(part.dropped) <= max_items for part in parts)
    assert join_scan([decode_scan(encode_scan(part)) for part in parts]) == scan


@given(regressions)
def test_events_survive(regression: Regression) -> None:
    event = regression_event(regression)
    assert decode_event(encode_event(event)) == event


@given(name, name, flat_candidates, moment)
def test_ids_repeat(service: str, workload: str, candidate: Candidate, end: float) -> None:
    first = regression_id(service, workload, candidate, end)
    assert first == regression_id(service, workload, candidate, end)
    assert len(first) == 32


# Whatever arrives, a decoder returns a value or says InvalidMessage: anything else would stop a worker.

Decoder = Callable[[bytes | None], object]
T0 = 1_760_000_000.0
_CANDIDATE = {
    "metric_kind": "subroutine", "metric": "m", "kind": "short_term", "change_time": T0, "before": 0.1,
    "after": 0.2, "p_value": 0.0, "statistic": 9.0,
}  # fmt: skip
_VALID: dict[str, tuple[Decoder, dict[str, Any]]] = {
    "profile": (
        decode_profile,
        {
            "service": "s", "host": "h", "start": T0, "end": T0 + 1, "frames": ["a", "b"],
            "stacks": [[0, 1], [0]], "counts": [1, 2], "release": "r", "labels": {"a": "b"},
            "annotations": [{"frame": 0, "kind": "endpoint", "value": "v"}],
        },
    ),
    "metric": (decode_metric_points, {"service": "s", "metric": "m", "points": [[T0, 1.0]], "setup": True}),
    "change": (decode_change, {"id": "i", "service": "s", "time": T0, "title": "t", "files": ["f"]}),
    "progress": (
        decode_progress,
        {"service": "s", "topic": "t", "partition": 0, "watermark": T0, "earliest": T0},
    ),
    "scan": (
        decode_scan,
        {
            "service": "s", "workload": "w", "start": T0, "analysis_start": T0, "analysis_end": T0, "end": T0,
            "series": 1, "part": 0, "parts": 1, "candidates": [{**_CANDIDATE, "group": [_CANDIDATE]}],
            "dropped": [{"candidate": _CANDIDATE, "step": "s", "statistic": 0.1, "bound": 0.2}],
        },
    ),
    "event": (
        decode_event,
        {"specversion": "1.0", "id": "i", "type": "t", "source": "s", "time": "n", "data": {}},
    ),
}  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=10),
    st.sampled_from([T0, "2025-10-09T08:53:20Z", "9999-12-31T23:59:59-23:59", "short_term", -0.0, 2**63]),
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def positions(node: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a JSON document."""
    items = list(node.items()) if isinstance(node, dict) else []
    items = list(enumerate(node)) if isinstance(node, list) else items
    return [found for key, child in items for found in [(*path, key), *positions(child, (*path, key))]]


def with_replaced(node: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = with_replaced(node[path[0]], path[1:], value)
    return copy


def decode_or_refuse(decode: Decoder, value: bytes | None) -> None:
    with contextlib.suppress(InvalidMessage):
        decode(value)


@pytest.mark.parametrize("kind", _VALID)
def test_the_messages_that_are_altered_under_are_valid(kind: str) -> None:
    decode, message = _VALID[kind]
    decode(orjson.dumps(message))


@pytest.mark.parametrize("kind", _VALID)
@given(value=st.none() | st.binary(max_size=60))
def test_any_bytes(kind: str, value: bytes | None) -> None:
    decode_or_refuse(_VALID[kind][0], value)


@pytest.mark.parametrize("kind", _VALID)
@given(document=documents)
def test_any_document(kind: str, document: object) -> None:
    # The standard library writes what others may send: NaN, lone surrogates, integers of any size.
    decode_or_refuse(_VALID[kind][0], json.dumps(document).encode())


@pytest.mark.parametrize("kind", _VALID)
@given(data=st.data())
def test_a_valid_message_with_one_value_replaced(kind: str, data: st.DataObject) -> None:
    decode, message = _VALID[kind]
    path = data.draw(st.sampled_from(positions(message)))
    broken = with_replaced(message, path, data.draw(documents))
    decode_or_refuse(decode, json.dumps(broken).encode())


@pytest.mark.parametrize("kind", _VALID)
@given(data=st.data())
def test_a_valid_message_cut_short_is_refused(kind: str, data: st.DataObject) -> None:
    decode, message = _VALID[kind]
    encoded = orjson.dumps(message)
    length = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(InvalidMessage):
        decode(encoded[:length])
