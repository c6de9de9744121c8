"""OTLP profiles: what OpenTelemetry's profilers export, a protocol buffer of profiles and one dictionary.

The fields are those of ``opentelemetry.proto.profiles.v1development`` (ProfilesData, and the request of the
export service, which has the same) from version 1.8 of the protocol on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from google.protobuf.unknown_fields import UnknownFieldSet

from agents.profiles.formats.base import (
    MAX_WEIGHT,
    Invalid,
    Measure,
    Reading,
    Record,
    Recorded,
    Sample,
    Stack,
    choose_value,
    converted,
    joined,
    value_unit,
)
from agents.profiles.formats.cpu import clock_of, usual_value
from agents.profiles.formats.frames import join_frame
from agents.profiles.formats.protobuf import Schema, text_of, walk_fields
from agents.profiles.formats.source import Damaged, ProfileSource
from pipeline.model.errors import InvalidMessage

OTLP = Schema(
    "OTLP profiles",
    {
        "ValueType": {"type_strindex": (1, "int32", False), "unit_strindex": (2, "int32", False)},
        "Mapping": {"filename_strindex": (4, "int32", False)},
        "Line": {"function_index": (1, "int32", False), "line": (2, "int64", False)},
        "Location": {
            "mapping_index": (1, "int32", False),
            "address": (2, "uint64", False),
            "lines": (3, "Line", True),
        },
        "Function": {
            "name_strindex": (1, "int32", False),
            "system_name_strindex": (2, "int32", False),
            "filename_strindex": (3, "int32", False),
        },
        "Stack": {"location_indices": (1, "int32", True)},
        "Dictionary": {
            "mapping_table": (1, "Mapping", True),
            "location_table": (2, "Location", True),
            "function_table": (3, "Function", True),
            "string_table": (5, "text", True),
            "stack_table": (7, "Stack", True),
        },
        "Sample": {
            "stack_index": (1, "int32", False),
            "values": (4, "int64", True),
            "timestamps_unix_nano": (5, "fixed64", True),
        },
        "Profile": {
            "sample_type": (1, "ValueType", False),
            "samples": (2, "Sample", True),
            "time_unix_nano": (3, "fixed64", False),
            "duration_nano": (4, "uint64", False),
            "period_type": (5, "ValueType", False),
            "period": (6, "int64", False),
        },
        "ScopeProfiles": {"profiles": (2, "Profile", True)},
        "AnyValue": {"string_value": (1, "text", False), "string_value_strindex": (8, "int32", False)},
        "KeyValue": {
            "key": (1, "text", False),
            "value": (2, "AnyValue", False),
            "key_strindex": (3, "int32", False),
        },
        "Resource": {"attributes": (1, "KeyValue", True)},
        "ResourceProfiles": {
            "resource": (1, "Resource", False),
            "scope_profiles": (2, "ScopeProfiles", True),
        },
        "ProfilesData": {
            "resource_profiles": (1, "ResourceProfiles", True),
            "dictionary": (2, "Dictionary", False),
        },
    },
)
_DICTIONARY = 2
_FIELDS = {1: (1, 2, 3), _DICTIONARY: range(1, 8)}
"""Field of the whole message → the fields that it has itself."""


_LENGTH_DELIMITED = 2  # type of a field on the wire


class _Measured(NamedTuple):
    """A profile with what its values count."""

    measure: Measure
    samples: Any

    @property
    def kind(self) -> tuple[str, str]:
        """Type and unit."""
        return self.measure.type, self.measure.unit


class OtlpFormat:
    """Profiles of one type, of all resources and scopes, added up."""

    name = "otlp"
    content = "samples of OTLP profiles (a protocol buffer)"

    def recognises(self, head: bytes) -> bool:
        """Take a message of profiles and at most one dictionary, both messages themselves."""
        walked, dictionaries = False, 0
        for number, wire, content in walk_fields(head):
            if number not in _FIELDS or wire != 2:
                return False
            inner = next(iter(walk_fields(content)), None)
            if inner is not None and (inner[0] not in _FIELDS[number] or inner[1] != 2):
                return False
            walked = walked or inner is not None
            dictionaries += number == _DICTIONARY
        return walked and dictionaries <= 1  # pprof's samples have the same number and are many

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read the profiles of one type: ``value``, else the one that ``usual_value`` chooses."""
        try:
            data = OTLP.read("ProfilesData", source.read_all())
            check_version(data)
        except InvalidMessage as error:
            raise Damaged(str(error)) from None
        tables = _Tables(data.dictionary)
        profiles = [
            _Measured(tables.measure(profile), profile.samples)
            for resource in data.resource_profiles
            for scope in resource.scope_profiles
            for profile in scope.profiles
        ]
        if not profiles:
            raise Damaged("has no profiles")
        measures = [measured.measure for measured in profiles]
        names = [measure.type for measure in measures]
        measure = measures[names.index(choose_value(names, value, names[usual_value(measures)]))]
        same, left_out = [], Counter[str]()
        for profile in profiles:
            if profile.kind == (measure.type, measure.unit):
                same.append(profile)
            elif not (clock_of(measure) and clock_of(measure) == clock_of(profile.measure)):
                left_out[profile.measure.type] += len(profile.samples)
        measure = replace(measure, period=_common_period(same))
        services = {name for name in map(tables.service, data.resource_profiles) if name}
        return Reading(measure, _records(same, tables), left_out=left_out, services=tuple(sorted(services)))


def _common_period(profiles: Sequence[_Measured]) -> float:
    """Return the weight of one sample on average over profiles of one kind; 0 if one has no period."""
    periods = [profile.measure.period for profile in profiles]
    if len(set(periods)) == 1 or 0 in periods:
        return min(periods)
    weights = [sum(sum(sample.values) for sample in profile.samples) for profile in profiles]
    samples = sum(weight / period for weight, period in zip(weights, periods, strict=True))
    return sum(weights) / samples if samples else 0.0


def check_version(data: Any) -> None:
    """Check that a message ``ProfilesData`` is of version 1.8 or later, which has a table of stacks.

    Before, a profile had lists where it has numbers now, and samples had other fields.

    Raises:
        InvalidMessage: it is older.
    """
    profiles = (
        profile
        for resource in data.resource_profiles
        for scope in resource.scope_profiles
        for profile in scope.profiles
    )
    without_stacks = len(data.dictionary.location_table) > 0 and not len(data.dictionary.stack_table)
    if without_stacks or any(
        field.wire_type == _LENGTH_DELIMITED and field.field_number in (3, 4, 5, 6)
        for profile in profiles
        for field in UnknownFieldSet(profile)
    ):
        raise InvalidMessage(
            "OTLP profiles of a version before 1.8, which had no table of stacks: update the client"
        )


def resource_readings(data: Any) -> Iterator[tuple[Mapping[str, str], Reading]]:
    """Yield each profile of a request: attributes of its resource that are text, and its reading.

    Args:
        data: A message ``ProfilesData`` of ``OTLP``.
    """
    tables = _Tables(data.dictionary)
    for resource in data.resource_profiles:
        attributes = tables.attributes(resource)
        for scope in resource.scope_profiles:
            by_time: dict[int, list[Any]] = {}
            for profile in scope.profiles:
                by_time.setdefault(profile.time_unix_nano, []).append(profile)
            for profiles in by_time.values():
                yield from ((attributes, reading) for reading in _single_readings(profiles, tables))


def _single_readings(profiles: Sequence[Any], tables: _Tables) -> Iterator[Reading]:
    """Yield the readings of profiles of one time; what two units measure of one clock is read once."""
    measures = [tables.measure(profile) for profile in profiles]
    usual = measures[usual_value(measures)]
    clock, kind = clock_of(usual), (usual.type, usual.unit)
    for profile, measure in zip(profiles, measures, strict=True):
        if clock_of(measure) != clock or not clock or (measure.type, measure.unit) == kind:
            records = _records([_Measured(measure, profile.samples)], tables)
            yield Reading(measure, records, tables.recorded(profile))


class _Tables:
    """The dictionary: what a stack's frames are called. Index 0 of each table stands for nothing."""

    def __init__(self, dictionary: Any) -> None:
        self._dictionary = dictionary
        self._text = [text_of(text) for text in dictionary.string_table]
        self._locations: list[Stack | None] = [None] * len(dictionary.location_table)
        self._stacks: dict[int, Stack | None] = {}

    def measure(self, profile: Any) -> Measure:
        """Return what a profile's values count; without a type, samples."""
        type_, unit = self._value_type(profile.sample_type)
        period_type = self._value_type(profile.period_type)
        period = float(converted(max(profile.period, 0), period_type[1], unit))
        return Measure(type_ or "samples", unit, period, period_type[0])

    def recorded(self, profile: Any) -> Recorded:
        """Return when and how often samples were taken; a period of time is that of CPUs."""
        period_s = converted(max(profile.period, 0), self._value_type(profile.period_type)[1], "seconds")
        return Recorded(
            start=profile.time_unix_nano / 1e9,
            duration_s=profile.duration_nano / 1e9,
            rate_hz=1 / period_s if period_s else 0.0,
        )

    def attributes(self, resource: Any) -> Mapping[str, str]:
        """Return a resource's attributes that are text; name and text may stand in the table of strings."""
        return {
            text_of(attribute.key) or self._string(attribute.key_strindex): text_of(
                attribute.value.string_value
            )
            or self._string(attribute.value.string_value_strindex)
            for attribute in resource.resource.attributes
        }

    def service(self, resource: Any) -> str:
        """Return the service of a resource, empty if it has none."""
        return self.attributes(resource).get("service.name", "")

    def stack(self, index: int) -> Stack | None:
        """Return the frames of a stack, root first; None if it is not in the tables."""
        if index not in self._stacks:
            table = self._dictionary.stack_table
            frames = (
                [self._location(location) for location in table[index].location_indices]
                if 0 <= index < len(table)
                else [None]
            )
            self._stacks[index] = joined(frames)
        return self._stacks[index]

    def _location(self, index: int) -> Stack | None:
        """Return the frames of a location, the inlined one first."""
        if not 0 <= index < len(self._locations):
            return None
        if self._locations[index] is None:
            self._locations[index] = self._named(self._dictionary.location_table[index])
        return self._locations[index]

    def _named(self, location: Any) -> Stack:
        functions = self._dictionary.function_table
        frames = []
        for line in location.lines:
            if not 0 < line.function_index < len(functions):
                continue
            function = functions[line.function_index]
            name = self._string(function.name_strindex) or self._string(function.system_name_strindex)
            if name:
                frames.append(join_frame(name, self._string(function.filename_strindex), line.line))
        if frames:
            return tuple(frames)
        mappings, index = self._dictionary.mapping_table, location.mapping_index
        binary = self._string(mappings[index].filename_strindex) if 0 < index < len(mappings) else ""
        return (join_frame(f"{location.address:#x}", binary) if location.address or binary else "[unknown]",)

    def _value_type(self, value: Any) -> tuple[str, str]:
        type_ = self._string(value.type_strindex)
        return type_, value_unit(type_, self._string(value.unit_strindex))

    def _string(self, index: int) -> str:
        return self._text[index] if 0 < index < len(self._text) else ""


def _records(profiles: Sequence[_Measured], tables: _Tables) -> Iterator[Record]:
    """Yield the samples; one without values stands for as many as it has timestamps."""
    for measured in profiles:
        for number, sample in enumerate(measured.samples, start=1):
            stack = tables.stack(sample.stack_index)
            weight = sum(sample.values)
            if not len(sample.values):
                weight = len(sample.timestamps_unix_nano) * (measured.measure.per_sample or 1)
            if stack is None or not 0 <= weight <= MAX_WEIGHT:
                yield Invalid(f"sample {number}: its values or stack are unknown")
            else:
                yield Sample(stack, weight)
