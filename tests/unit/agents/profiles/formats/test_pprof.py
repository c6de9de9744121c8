"""pprof's protocol buffers as stacks."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agents.gateway import pprof_upload
from agents.gateway.base import DecodeSetup, Request
from agents.profiles.formats import AUTO, Measure, ProfileSource, find_format, parse
from agents.profiles.formats.pprof import PPROF, PprofFormat
from pipeline.model.errors import InvalidMessage
from tests.support.gateway_requests import NOW, libdatadog_pprof
from tests.support.paths import REAL_DATA

SAMPLES = REAL_DATA / "profiles"
COUNTS, TIMES = ("samples", "count"), ("cpu", "nanoseconds")
DATADOG = ("cpu-time", "nanoseconds")


class Builder:
    """A profile with one function a name, and one location a tuple of names, the inlined one first."""

    def __init__(self, types: Sequence[tuple[str, str]] = (COUNTS, TIMES), period: int = 0) -> None:
        self.profile: Any = PPROF["Profile"]()
        self.strings = [""]
        for type_, unit in types:
            self.profile.sample_type.add(type=self.string(type_), unit=self.string(unit))
        self.profile.period = period

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def location(self, *names: str, file: str = "", mapping: str = "") -> int:
        location = self.profile.location.add(id=len(self.profile.location) + 1)
        for name in names:
            function = self.profile.function.add(id=len(self.profile.function) + 1, name=self.string(name))
            function.filename = self.string(file)
            location.line.add(function_id=function.id)
        if mapping:
            found = self.profile.mapping.add(id=len(self.profile.mapping) + 1, filename=self.string(mapping))
            location.mapping_id = found.id
        return int(location.id)

    def sample(self, locations: Sequence[int], *values: int) -> Builder:
        self.profile.sample.add(location_id=locations, value=values)
        return self

    def bytes(self) -> bytes:
        del self.profile.string_table[:]
        self.profile.string_table.extend(text.encode() for text in self.strings)
        return bytes(self.profile.SerializeToString())


def build(types: Sequence[tuple[str, str]], values: Sequence[int], period: int = 0) -> bytes:
    builder = Builder(types, period)
    return builder.sample([builder.location("f"), builder.location("main")], *values).bytes()


@pytest.mark.parametrize(
    ("unit", "period_unit", "value", "period", "measure"),
    [
        pytest.param("ns", "ns", 30_000_000, 10_000_000, Measure("cpu", TIMES[1], 1e7), id="short"),
        pytest.param("millisecond", "ms", 30, 10, Measure("cpu", "milliseconds", 10), id="singular"),
        pytest.param(
            "microseconds", TIMES[1], 30_000, 10_000_000, Measure("cpu", "microseconds", 1e4), id="two units"
        ),
        pytest.param(
            "s", "milliseconds", 3, 1000, Measure("cpu", "seconds", 1), id="seconds by milliseconds"
        ),
        pytest.param(TIMES[1], "bytes", 3, 512, Measure("cpu", TIMES[1], 0), id="no time as a period"),
    ],
)
def test_units_of_time_may_be_short_and_periods_have_another(
    unit: str, period_unit: str, value: int, period: int, measure: Measure
) -> None:
    builder = Builder([("cpu", unit)], period)
    builder.profile.period_type.type = builder.string("cpu")
    builder.profile.period_type.unit = builder.string(period_unit)
    parsed = parse(PprofFormat(), builder.sample([builder.location("f")], value).bytes())
    assert (parsed.measure, parsed.samples) == (measure, 3)


@pytest.mark.parametrize(
    ("types", "values", "period", "count"),
    [
        pytest.param((COUNTS, TIMES), (3, 30_000_000), 10_000_000, 3, id="counts beside times"),
        pytest.param((TIMES, COUNTS), (30_000_000, 3), 10_000_000, 3, id="in either order"),
        pytest.param((TIMES,), (30_000_000,), 10_000_000, 3, id="times alone, by the period"),
        pytest.param((("wall", "nanoseconds"),), (20,), 10, 2, id="time on the wall"),
        pytest.param((("alloc_space", "bytes"),), (7,), 0, 7, id="something else: the first value"),
        pytest.param((COUNTS, DATADOG), (3, 40), 10, 4, id="CPU time of Datadog before its counts"),
    ],
)
def test_what_counts(
    types: Sequence[tuple[str, str]], values: Sequence[int], period: int, count: int
) -> None:
    assert parse(PprofFormat(), build(types, values, period)).stacks == {("main", "f"): count}


HEAP = tuple(
    (f"{when}_{what}", unit)
    for when in ("alloc", "inuse")
    for what, unit in (("objects", "count"), ("space", "bytes"))
)


@pytest.mark.parametrize(
    ("default", "chosen"),
    [("alloc_space", "alloc_space"), ("", "inuse_space"), ("gone", "inuse_space")],
)
def test_the_value_that_a_file_says_is_usual_is_read_or_else_the_last(default: str, chosen: str) -> None:
    builder = Builder(HEAP)
    builder.profile.default_sample_type = builder.string(default)
    builder.sample([builder.location("main")], 10, 640, 1, 64)
    assert parse(PprofFormat(), builder.bytes()).measure.type == chosen


@pytest.mark.parametrize(
    ("type_", "measure", "asks"),
    [
        pytest.param(("samples", "samples"), Measure(), False, id="samples of samples"),
        pytest.param(("samples", "counts"), Measure(), False, id="plural"),
        pytest.param(("samples", ""), Measure(), False, id="samples without a unit"),
        pytest.param(("sample", "Count"), Measure("sample"), False, id="singular, capital"),
        pytest.param(("cpu", ""), Measure("cpu", ""), True, id="a type that may be time"),
        pytest.param(("cpu", "NanoSeconds"), Measure("cpu", "nanoseconds", 1e7), False, id="a capital"),
        pytest.param(
            ("cpu", "\N{GREEK SMALL LETTER MU}s"), Measure("cpu", "microseconds", 1e4), False, id="mu"
        ),
    ],
)
def test_units_of_values_in_other_spellings(type_: tuple[str, str], measure: Measure, asks: bool) -> None:
    builder = Builder([type_], 10_000_000)
    builder.profile.period_type.unit = builder.string("nanoseconds")
    data = builder.sample([builder.location("f")], 30_000_000).bytes()
    assert parse(PprofFormat(), data).measure == measure
    assert (not measure.per_sample) is asks
    sent = Request("/", data, NOW, query={"service": "shop", "rate": "100"})
    if asks:
        with pytest.raises(InvalidMessage, match="cpu are without a unit, and no period"):
            pprof_upload.decode(sent, DecodeSetup())
    else:
        (part,) = pprof_upload.decode(sent, DecodeSetup()).parts
        assert part.samples == round(30_000_000 / measure.per_sample)


@pytest.mark.parametrize(
    ("change", "about"),
    [
        pytest.param(
            lambda builder: builder.sample([1], -4, 0), "negative values, as the difference", id="-diff_base"
        ),
        pytest.param(
            lambda builder: builder.strings.__setitem__(0, "main"), "first of its strings", id="a table"
        ),
    ],
)
def test_profiles_that_are_refused(change: Callable[[Builder], object], about: str) -> None:
    builder = Builder()
    builder.sample([builder.location("f")], 5, 0)
    change(builder)
    parsed = parse(PprofFormat(), builder.bytes())
    assert (parsed.samples, parsed.invalid) == (0, 1)
    assert about in parsed.first_invalid


@pytest.mark.parametrize(
    ("drop", "keep", "stack", "left"),
    [
        pytest.param("malloc|new.*", "", "main work malloc arena", "main work", id="with what it called"),
        pytest.param("mall", "", "main malloc", "main malloc", id="whole names alone"),
        pytest.param("malloc.*", "malloc_trim", "main malloc_trim f", "main malloc_trim f", id="kept"),
        pytest.param("malloc", "", "malloc main malloc f", "malloc main", id="not before a caller"),
        pytest.param("malloc", "", "malloc", "malloc", id="nothing else"),
        pytest.param("operator new", "", "main operator~new(unsigned) f", "main", id="without arguments"),
        pytest.param("A::.*", "", "main A::(anonymous~namespace)::f(B) g", "main", id="a namespace"),
        pytest.param("work", "", "main outer/work/inner g", "main outer", id="inlined"),
        pytest.param("outer", "", "main outer/work g", "main", id="what others were inlined into"),
        pytest.param("work", "", "outer/work main g", "outer main g", id="inlined, before a caller"),
        pytest.param("", "work", "main work", "main work", id="none"),
    ],
)
def test_dropped_frames_are_left_out_with_what_they_called(
    drop: str, keep: str, stack: str, left: str
) -> None:
    """Of a location ``outer/work/inner`` each function was inlined into the one before it."""
    builder = Builder()
    builder.profile.drop_frames, builder.profile.keep_frames = builder.string(drop), builder.string(keep)
    names = [location.replace("~", " ").split("/")[::-1] for location in stack.split()]
    builder.sample([builder.location(*location) for location in reversed(names)], 2, 0)
    frames = tuple(frame.replace("~", " ") for frame in left.split())
    assert parse(PprofFormat(), builder.bytes()).stacks == {frames: 2}


def test_a_pattern_of_frames_that_is_not_read_is_refused() -> None:
    builder = Builder()
    builder.profile.drop_frames = builder.string("a{2}")
    parsed = parse(PprofFormat(), builder.sample([builder.location("aa")], 2, 0).bytes())
    assert parsed.samples == 0
    assert "drop_frames: '{2}' is not read in a pattern; `pprof -proto` writes" in parsed.first_invalid


def test_a_period_in_microseconds_is_a_rate() -> None:
    builder = Builder([COUNTS], 10_000)
    builder.profile.period_type.unit = builder.string("microseconds")
    data = builder.sample([builder.location("f")], 3).bytes()
    assert PprofFormat().read(ProfileSource.of(data), "").recorded.rate_hz == pytest.approx(100)


def test_a_period_of_a_nanosecond_is_none() -> None:
    """libdatadog writes it: nanoseconds would pass for samples."""
    reading = PprofFormat().read(ProfileSource.of(libdatadog_pprof()), "")
    assert (reading.measure.period, reading.recorded.rate_hz) == (0, 0)


def test_a_file_that_begins_with_its_samples_is_recognised() -> None:
    assert find_format(AUTO, libdatadog_pprof()[:40]).name == "pprof"


@pytest.mark.parametrize("samples", [2, 10_000])
def test_a_file_may_have_all_its_samples_before_all_tables(samples: int) -> None:
    builder = Builder()
    frames = [builder.location("work"), builder.location("main")]
    for _ in range(samples):
        builder.sample(frames, 1, 0)
    profile = PPROF["Profile"].FromString(builder.bytes())
    first = PPROF["Profile"](sample=profile.sample)
    profile.ClearField("sample")
    data = first.SerializeToString() + profile.SerializeToString()
    assert find_format(AUTO, ProfileSource.of(data).head).name == "pprof"
    assert parse(PprofFormat(), data).stacks == {("main", "work"): samples}


def test_names_of_frames_and_inlined_ones_under_what_they_were_inlined_into() -> None:
    builder = Builder()
    locations = [
        builder.location("inlined", "outer"),
        builder.location("work", file="/srv/shop/cart.py"),
        builder.location(mapping="/lib/libc.so.6"),
        builder.location(),
    ]
    stack = ("[unknown]", "[libc.so.6]", "work (/srv/shop/cart.py)", "outer", "inlined")
    assert parse(PprofFormat(), builder.sample(locations, 2, 0).bytes()).stacks == {stack: 2}


def test_equal_stacks_add_up_and_the_rest_is_counted_apart() -> None:
    builder = Builder()
    f = builder.location("f")
    builder.sample([f], 2, 0).sample([f], 3, 0).sample([], 4, 0).sample([f], 0, 0)
    builder.sample([99], 1, 0).sample([f], -1, 0).sample([f])
    parsed = parse(PprofFormat(), builder.bytes())
    assert parsed.stacks == {("f",): 5}
    assert (parsed.frameless, parsed.invalid) == (4, 3)
    assert parsed.first_invalid.startswith("sample 5")


GOOD = build((COUNTS,), (1,))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(gzip.compress(GOOD)[:-9], "cut", id="cut"),
        pytest.param(b"\x1f\x8bjunk", "gzip", id="no gzip"),
        pytest.param(gzip.compress(b"\x0a\xff\xff\xff"), "protocol buffer", id="no protocol buffer"),
        pytest.param(gzip.compress(b""), "protocol buffer", id="empty"),
    ],
)
def test_damage_is_an_invalid_record(data: bytes, why: str) -> None:
    parsed = parse(PprofFormat(), data)
    assert (dict(parsed.stacks), parsed.invalid) == ({}, 1)
    assert why in parsed.first_invalid


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared profiles are not beside this checkout")
def test_a_real_profile_of_go() -> None:
    parsed = parse(PprofFormat(), (SAMPLES / "simple.prof").read_bytes())
    assert ("runtime.main", "main.main", "main.delta", "main.beta") in parsed.stacks
