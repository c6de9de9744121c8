"""Files of speedscope as stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest

from agents.profiles.formats import AUTO, Measure, ProfileSource, find_format, parse, read_profile
from agents.profiles.formats.speedscope import SpeedscopeFormat
from pipeline.model.errors import ConfigError
from tests.support.profile_files import speedscope

SPEEDSCOPE = SpeedscopeFormat()
EVENTS = [
    {"type": "O", "frame": 0, "at": 0},
    {"type": "O", "frame": 1, "at": 2},
    {"type": "C", "frame": 1, "at": 5},
    {"type": "C", "frame": 0, "at": 6},
]


def sampled(**fields: object) -> dict[str, object]:
    return {"type": "sampled", "unit": "none", "samples": [[0, 1], [0]], "weights": [3, 1], **fields}


def evented(*events: object, **fields: object) -> dict[str, object]:
    return {"type": "evented", "unit": "none", "startValue": 0, "endValue": 9, "events": events, **fields}


def test_files_and_lines_are_read_and_a_frame_without_a_name_is_unknown() -> None:
    records = list(read_profile(SPEEDSCOPE, ProfileSource.of(speedscope())).records)
    assert records == [(("main (/srv/app.go:5)", "work"), 3), (("main (/srv/app.go:5)",), 1)]
    document = {"shared": {"frames": [{"name": "main"}, {"name": " "}]}, "profiles": [sampled()]}
    assert dict(parse(SPEEDSCOPE, orjson.dumps(document)).stacks) == {("main", "[unknown]"): 3, ("main",): 1}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_passed_over(encoding: str) -> None:
    data = speedscope().decode().encode(encoding)
    assert parse(find_format(AUTO, data), data).samples == 4


@pytest.mark.parametrize(
    ("profile", "stacks", "measure"),
    [
        pytest.param(evented(*EVENTS), {("main",): 3, ("main", "work"): 3}, Measure(), id="events"),
        pytest.param(
            evented(*EVENTS[:2], {"type": "C", "frame": 0, "at": 6}, {"type": "C", "frame": 1, "at": 6}),
            {("main",): 2, ("main", "work"): 4},
            Measure(),
            id="closed at one time in the wrong order",
        ),
        pytest.param(
            sampled(unit="seconds", weights=[0.03, 0.01]),
            {("main", "work"): 3, ("main",): 1},
            Measure("weight", "seconds", 0.01),
            id="a sampler's seconds: the smallest is the period",
        ),
        pytest.param(
            sampled(unit="milliseconds", weights=[2.5, 1]),
            {("main", "work"): 2, ("main",): 2},
            Measure("weight", "milliseconds"),
            id="measured time has no period",
        ),
        pytest.param(
            sampled(unit="bytes", weights=[1024, 512]),
            {("main", "work"): 2, ("main",): 1},
            Measure("bytes", "bytes", 512),
            id="bytes",
        ),
    ],
)
def test_what_counts(
    profile: Mapping[str, object], stacks: Mapping[tuple[str, ...], int], measure: Measure
) -> None:
    parsed = parse(SPEEDSCOPE, speedscope(profile))
    assert (parsed.stacks, parsed.measure) == (stacks, measure)


def test_threads_add_up_and_another_unit_has_to_be_asked_for() -> None:
    profiles = [sampled(), sampled(), sampled(unit="bytes", weights=[20, 10])]
    data = speedscope(profiles=profiles)
    assert parse(SPEEDSCOPE, data).samples == 8
    assert parse(SPEEDSCOPE, data).left_out == {"bytes": 2}
    assert parse(SPEEDSCOPE, data, "bytes").measure == Measure("bytes", "bytes", 10)
    with pytest.raises(ConfigError, match="has no value 'seconds': there are count, bytes"):
        parse(SPEEDSCOPE, data, "seconds")


@pytest.mark.parametrize(
    ("profiles", "fields", "measure", "samples", "left_out"),
    [
        pytest.param(
            [("wall", "nanoseconds"), ("cpu", "nanoseconds")],
            {},
            Measure("cpu", "nanoseconds", 1),
            4,
            {"wall": 2},
            id="CPU before the wall",
        ),
        pytest.param(
            [("alloc_space", "bytes"), ("inuse_space", "bytes")],
            {},
            Measure("alloc_space", "bytes", 1),
            4,
            {"inuse_space": 2},
            id="two types of memory",
        ),
        pytest.param(
            [("inuse_objects", "none")], {}, Measure("inuse_objects"), 4, {}, id="no samples of CPU"
        ),
        pytest.param(
            [("Wall", "milliseconds")], {}, Measure("wall", "milliseconds", 1), 4, {}, id="the wall"
        ),
        pytest.param([("wall", "none"), ("main", "none")], {}, Measure(), 8, {}, id="a thread called wall"),
        pytest.param(
            [("cache-misses", "none")], {"exporter": "smidgen"}, Measure("cache-misses"), 4, {}, id="ours"
        ),
        pytest.param(
            [("cache-misses", "none")], {"exporter": "x"}, Measure("cache-misses"), 4, {}, id="another"
        ),
        pytest.param(
            [("native", "none")], {"exporter": "smidgen"}, Measure("native"), 4, {}, id="our native"
        ),
        pytest.param([("native", "none")], {"exporter": "x"}, Measure(), 4, {}, id="a thread called native"),
    ],
)
def test_profiles_that_are_named_by_types_are_not_added_up(
    profiles: Sequence[tuple[str, str]],
    fields: Mapping[str, object],
    measure: Measure,
    samples: int,
    left_out: Mapping[str, int],
) -> None:
    named = [sampled(name=name, unit=unit) for name, unit in profiles]
    data = speedscope(None, profiles=named, **fields)
    parsed = parse(SPEEDSCOPE, data)
    assert (parsed.measure, parsed.samples, parsed.left_out) == (measure, samples, left_out)
    value = measure.type if measure != Measure() else "count"
    assert parse(SPEEDSCOPE, data, value).measure == measure


@pytest.mark.parametrize(
    ("leaf", "type_"), [("UNMANAGED_CODE_TIME", "wall"), ("CPU_TIME", "wall"), ("f", "weight")]
)
def test_dotnet_trace_samples_threads_that_wait(leaf: str, type_: str) -> None:
    shared = {"frames": [{"name": "Main()"}, {"name": leaf}]}
    profile = evented(*EVENTS, unit="milliseconds", name="Thread (12)")
    parsed = parse(SPEEDSCOPE, speedscope(profile, shared=shared))
    assert parsed.measure == Measure(type_, "milliseconds")
    assert (
        parse(SPEEDSCOPE, speedscope(profile, shared=shared), "milliseconds").samples == parsed.samples == 6
    )


@pytest.mark.parametrize(
    ("units", "unit", "samples", "left_out"),
    [
        pytest.param(("bytes", "seconds"), "seconds", 3, {"bytes": 2}, id="time before memory"),
        pytest.param(("seconds", "none"), "count", 30, {"seconds": 2}, id="counts before time"),
        pytest.param(("milliseconds", "seconds"), "milliseconds", 3, {"seconds": 2}, id="two units of time"),
        pytest.param(("bytes", "objects"), "bytes", 3, {"objects": 2}, id="the first of no clock"),
    ],
)
def test_the_usual_unit_counts_and_the_others_are_named(
    units: Sequence[str], unit: str, samples: int, left_out: Mapping[str, int]
) -> None:
    profiles = [sampled(unit=unit, weights=[20, 10]) for unit in units]
    parsed = parse(SPEEDSCOPE, speedscope(profiles=profiles))
    assert (parsed.measure.unit, parsed.samples, parsed.left_out) == (unit, samples, left_out)


@pytest.mark.parametrize(
    ("profile", "invalid", "where"),
    [
        pytest.param(sampled(samples=[[0, 9], [-1]]), 2, "profile 1: sample 1", id="beyond the table"),
        pytest.param(sampled(samples=[[True], ["0"]]), 2, "profile 1: sample 1", id="no numbers"),
        pytest.param(sampled(samples=[0, None]), 2, "profile 1: sample 1", id="no stacks"),
        pytest.param(sampled(weights=[-1, 1e300]), 2, "profile 1: sample 1", id="no weights"),
        pytest.param(sampled(weights=[1]), 1, "profile 1: has 2 samples and 1 weights", id="too few weights"),
        pytest.param(evented(EVENTS[2]), 1, "profile 1: event 1: closes no frame", id="nothing is open"),
        pytest.param(
            evented(*EVENTS[:2], {"type": "C", "frame": 0, "at": 3}, {"type": "C", "frame": 1, "at": 6}),
            1,
            "profile 1: event 4: a frame was closed around others",
            id="closed around a frame that stays open",
        ),
        pytest.param(evented(EVENTS[0]), 1, "profile 1: event 1: leaves frames open", id="left open"),
        pytest.param(evented(EVENTS[1], EVENTS[0]), 2, "profile 1: event 2: has no time", id="back in time"),
        pytest.param(evented(1, {"at": 1}), 2, "profile 1: event 1", id="no events"),
    ],
)
def test_what_makes_no_sense_is_invalid(profile: Mapping[str, Any], invalid: int, where: str) -> None:
    parsed = parse(SPEEDSCOPE, speedscope(profile))
    assert parsed.invalid == invalid
    assert parsed.first_invalid.startswith(where)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(speedscope()[:-1], "not readable as JSON", id="cut"),
        pytest.param(b"[" * 100_000, "not readable as JSON", id="nested too deeply"),
        pytest.param(orjson.dumps({"profiles": []}), "has no profiles", id="no profiles"),
        pytest.param(b"3", "has no profiles", id="a number"),
    ],
)
def test_damage_is_one_invalid_record(data: bytes, why: str) -> None:
    parsed = parse(SPEEDSCOPE, data)
    assert (dict(parsed.stacks), parsed.invalid) == ({}, 1)
    assert why in parsed.first_invalid
