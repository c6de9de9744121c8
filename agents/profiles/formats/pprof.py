"""pprof: profiles of Go and of many other samplers, a protocol buffer, mostly compressed (gzip).

The fields are those of ``perftools.profiles.Profile``, version 3; those that say nothing of stacks are not
declared here, and are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agents.profiles.annotate import ANNOTATION_FILE, annotation_name
from agents.profiles.formats.base import (
    MAX_WEIGHT,
    Invalid,
    Measure,
    Reading,
    Record,
    Recorded,
    Sample,
    choose_value,
    converted,
    joined,
    unit_name,
    value_unit,
)
from agents.profiles.formats.cpu import clock_of, usual_value
from agents.profiles.formats.dropped_frames import DroppedFrames
from agents.profiles.formats.frames import file_name, join_frame
from agents.profiles.formats.protobuf import Schema, walk_fields
from agents.profiles.formats.source import Damaged, ProfileSource
from pipeline.model.errors import InvalidMessage

PPROF = Schema(
    "pprof",
    {
        "ValueType": {"type": (1, "int64", False), "unit": (2, "int64", False)},
        "Label": {"key": (1, "int64", False), "str": (2, "int64", False)},
        "Sample": {
            "location_id": (1, "uint64", True),
            "value": (2, "int64", True),
            "label": (3, "Label", True),
        },
        "Mapping": {"id": (1, "uint64", False), "filename": (5, "int64", False)},
        "Line": {"function_id": (1, "uint64", False), "line": (2, "int64", False)},
        "Location": {
            "id": (1, "uint64", False),
            "mapping_id": (2, "uint64", False),
            "line": (4, "Line", True),
        },
        "Function": {
            "id": (1, "uint64", False),
            "name": (2, "int64", False),
            "system_name": (3, "int64", False),
            "filename": (4, "int64", False),
        },
        "Profile": {
            "sample_type": (1, "ValueType", True),
            "sample": (2, "Sample", True),
            "mapping": (3, "Mapping", True),
            "location": (4, "Location", True),
            "function": (5, "Function", True),
            "string_table": (6, "text", True),
            "drop_frames": (7, "int64", False),
            "keep_frames": (8, "int64", False),
            "time_nanos": (9, "int64", False),
            "duration_nanos": (10, "int64", False),
            "period_type": (11, "ValueType", False),
            "period": (12, "int64", False),
            "default_sample_type": (14, "int64", False),
        },
    },
)
_WIRES = {**dict.fromkeys((1, 2, 3, 4, 5, 6, 11), 2), **dict.fromkeys((7, 8, 9, 10, 12, 14, 15), 0), 13: 2}
_MOST_NEGATIVE = 0.1
_NO_PERIOD_NS = 1
"""Period that libdatadog writes if it has none: no sampler takes a sample each nanosecond."""


class PprofFormat:
    """Protocol buffers of pprof.

    Args:
        endpoints: Names of labels of samples, of which the first that has a value is their endpoint: an
            annotated frame over the stack.
    """

    def __init__(self, endpoints: Sequence[str] = ()) -> None:
        self._endpoints = tuple(endpoints)

    name = "pprof"
    content = "samples of pprof (a protocol buffer, perhaps compressed)"

    def recognises(self, head: bytes) -> bool:
        """Take a message of a profile's fields: types of values, or else samples or two kinds of tables."""
        tables: set[int] = set()
        samples, typed = 0, False
        for number, wire, content in walk_fields(head):
            if number not in _WIRES or _WIRES[number] != wire:
                return False
            if number == 1 and content and not _is_value_type(content):
                return False
            typed |= number == 1 and bool(content)
            samples += number == 2 and _is_sample(content)  # libdatadog writes all of them before any table
            tables.add(number)
        return typed or samples > 1 or len(tables & {3, 4, 5, 6}) > 1

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one value: ``value`` by type, else the one that ``usual_value`` chooses."""
        try:
            profile = PPROF.read("Profile", source.read_all())
        except InvalidMessage as error:
            raise Damaged(str(error)) from None
        if not len(profile.string_table) or not len(profile.sample_type):
            raise Damaged("no protocol buffer of pprof")
        if profile.string_table[0]:
            raise Damaged("no profile of pprof: the first of its strings should be empty")
        try:
            tables = _Tables(profile)
        except ValueError as error:
            raise Damaged(
                f"drop_frames: {error}; `pprof -proto` writes a profile without these frames"
            ) from None
        column, measure = tables.column(value)
        if _is_difference(profile.sample, column):
            raise Damaged("has negative values, as the difference of two profiles: give each of the two")
        records = _records(profile.sample, column, tables, self._endpoints)
        return Reading(measure, records, tables.recorded(), tables.left_out(column))


class _Tables:
    """The tables of a profile: what a location's frames are called."""

    def __init__(self, profile: Any) -> None:
        self._profile = profile
        self._text = [text.decode("utf-8", errors="replace") for text in profile.string_table]
        self._functions = {function.id: function for function in profile.function}
        drop = self.string(profile.drop_frames)
        self.dropped = DroppedFrames(drop, self.string(profile.keep_frames)) if drop else None
        self._mappings = {mapping.id: self.string(mapping.filename) for mapping in profile.mapping}
        self.frames = {location.id: self._named(location) for location in profile.location}
        self._period_unit = unit_name(self.string(profile.period_type.unit))
        is_none = self._period_unit == "nanoseconds" and profile.period == _NO_PERIOD_NS
        self._period = 0 if is_none else profile.period

    def column(self, wanted: str) -> tuple[int, Measure]:
        """Return which value to read, and what it counts: time without counts has the profile's period."""
        measures = [self._measure(value_type) for value_type in self._profile.sample_type]
        types = [measure.type for measure in measures]
        default = self.string(self._profile.default_sample_type)
        usual = usual_value(measures, default if default in types else types[-1])
        index = types.index(choose_value(types, wanted, types[usual]))
        return index, measures[index]

    def left_out(self, column: int) -> Counter[str]:
        """Return the values of other clocks than the one that is read, each with the samples that have it."""
        measures = [self._measure(value_type) for value_type in self._profile.sample_type]
        clocks = [clock_of(measure) for measure in measures]
        counts: Counter[str] = Counter()
        for index, measure in enumerate(measures):
            if index != column and not (clocks[index] and clocks[index] == clocks[column]):
                values = (sample.value[index : index + 1] for sample in self._profile.sample)
                counts[measure.type] += sum(map(any, values))
        return +counts

    def _measure(self, value_type: Any) -> Measure:
        """Return what a value counts; time has the profile's period, in the value's unit."""
        type_ = self.string(value_type.type)
        unit = value_unit(type_, self.string(value_type.unit))
        period_type = self.string(self._profile.period_type.type)
        period = converted(max(self._period, 0), self._period_unit or unit, unit) if unit != "count" else 0.0
        measure = Measure(type_, unit, 0.0, period_type)
        timed = clock_of(measure) or type_ == period_type
        return replace(measure, period=float(period) if timed else 0.0)

    def endpoint(self, labels: Any, names: Sequence[str]) -> tuple[str, ...]:
        """Return the annotated frame of a sample's endpoint, if a label of these names has one."""
        by_key = {self.string(label.key): self.string(label.str) for label in labels}
        value = next((by_key[name] for name in names if by_key.get(name)), "")
        return (f"{annotation_name('endpoint', value)} ({ANNOTATION_FILE})",) if value else ()

    def recorded(self) -> Recorded:
        """Return when and how often samples were taken; a period of time is that of CPUs."""
        profile = self._profile
        period_s = converted(max(self._period, 0), self._period_unit, "seconds")
        return Recorded(
            start=max(profile.time_nanos, 0) / 1e9,
            duration_s=max(profile.duration_nanos, 0) / 1e9,
            rate_hz=1 / period_s if period_s else 0.0,
        )

    def _named(self, location: Any) -> tuple[str, ...]:
        """Return the frames of a location, the inlined one first."""
        names, frames = [], []
        for line in location.line:
            function = self._functions.get(line.function_id)
            if function is None:
                continue
            name = self.string(function.name) or self.string(function.system_name)
            if name:
                names.append(name)
                frames.append(join_frame(name, self.string(function.filename), line.line))
        if not frames:
            binary = file_name(self._mappings.get(location.mapping_id, ""))
            return (f"[{binary}]" if binary else "[unknown]",)
        return tuple(frames[self.dropped.mark(location.id, names) if self.dropped else 0 :])

    def string(self, number: int) -> str:
        return self._text[number] if 0 <= number < len(self._text) else ""


def _records(samples: Any, column: int, tables: _Tables, endpoints: Sequence[str]) -> Iterator[Record]:
    """Yield the samples; in them the leaf comes first, and of a location the frame that was inlined."""
    frames, dropped = tables.frames, tables.dropped
    for number, sample in enumerate(samples, start=1):
        ids = dropped.cut(sample.location_id) if dropped else sample.location_id
        locations = [frames.get(location) for location in ids]
        stack = joined(locations)
        weight = sample.value[column] if column < len(sample.value) else -1
        if not 0 <= weight <= MAX_WEIGHT or stack is None:
            yield Invalid(f"sample {number}: its values or locations are unknown, or it is too deep")
        elif endpoints and len(sample.label):
            yield Sample((*tables.endpoint(sample.label, endpoints), *stack), weight)
        else:
            yield Sample(stack, weight)


def _is_difference(samples: Any, column: int) -> bool:
    """Return whether more than a tenth of the weight is negative, as of one profile minus another."""
    weights: list[int] = [number for sample in samples for number in sample.value[column : column + 1]]
    return -sum(weight for weight in weights if weight < 0) > _MOST_NEGATIVE * sum(map(abs, weights))


def _is_sample(data: bytes) -> bool:
    """Return whether a message holds numbers of locations, values, and nothing but labels beside them."""
    fields = [(number, wire) for number, wire, _ in walk_fields(data)]
    valid = all(number in (1, 2, 3) and (wire == 2 or (wire == 0 and number < 3)) for number, wire in fields)
    return valid and {1, 2} <= {number for number, _ in fields}


def _is_value_type(data: bytes) -> bool:
    return all(wire == 0 and number in (1, 2) for number, wire, _ in walk_fields(data))
