"""speedscope's own files: JSON with a table of frames, and profiles of samples or of events.

The fields are those of https://www.speedscope.app/file-format-schema.json, version 0.0.1 and later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agents.profiles.formats.base import (
    MAX_WEIGHT,
    TIME_UNITS,
    Invalid,
    Measure,
    Reading,
    Record,
    Sample,
    choose_value,
    unit_name,
)
from agents.profiles.formats.cpu import names_type, usual_value
from agents.profiles.formats.frames import join_frame
from agents.profiles.formats.source import Damaged, ProfileSource, head_text, list_in, object_in

_MARKS = re.compile(r'speedscope\.app/file-format-schema|"shared"\s*:\s*\{\s*"frames"')
_OURS = "smidgen"  # exporter that is written here
_DOTNET = frozenset(("CPU_TIME", "UNMANAGED_CODE_TIME"))
"""Leaves that dotnet-trace writes: it samples threads that wait, too (github.com/dotnet/diagnostics 3359)."""

_UNITS = {"none": "count"}
_EVENLY = 1e-6
_SMALLEST_PERIOD = 1e-9


class SpeedscopeFormat:
    """Profiles of one value, added up: one file has one for each thread."""

    name = "speedscope"
    content = "samples of speedscope (JSON with shared frames)"

    def recognises(self, head: bytes) -> bool:
        """Take a JSON object that names speedscope's schema, or has its table of frames."""
        text = head_text(head)
        return text.lstrip().startswith("{") and bool(_MARKS.search(text))

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read the profiles of one unit, or of one type where types are their names, such as alloc_space.

        It is ``value``, or the one that ``usual_value`` chooses.
        """
        document = source.read_json()
        profiles = list_in(document, "profiles")
        frames = [_frame(frame) for frame in list_in(object_in(document, "shared"), "frames")]
        if not profiles:
            raise Damaged("has no profiles")
        measures = _measures(profiles, is_typed=document.get("exporter") == _OURS)
        if not _DOTNET.isdisjoint(frames):
            measures = [
                replace(measure, type="wall") if measure.type == "weight" else measure for measure in measures
            ]
        by_measure: dict[Measure, list[Any]] = {}
        for profile, measure in zip(profiles, measures, strict=True):
            by_measure.setdefault(measure, []).append(profile)
        units = Counter(measure.unit for measure in by_measure)
        by_value = {measure.unit: measure for measure in by_measure if units[measure.unit] == 1}
        by_value |= {_value(measure): measure for measure in by_measure}
        usual = list(by_measure)[usual_value(list(by_measure))]
        chosen = by_value[choose_value(by_value, value, "")] if value else usual
        left_out = Counter[str]()
        for measure, same in by_measure.items():
            left_out[_value(measure)] += sum(map(_samples_in, same)) if measure != chosen else 0
        period = 0.0 if chosen.unit == "count" else _period(by_measure[chosen])
        measure = replace(chosen, period=period)
        return Reading(measure, _records(by_measure[chosen], frames), left_out=+left_out)


def _measures(profiles: Sequence[Any], *, is_typed: bool) -> list[Measure]:
    """Return what each profile counts: its type if all profiles of its unit are named by types.

    Smidgen's own files name profiles by types alone (``is_typed``).
    """
    units = [_unit(profile) for profile in profiles]
    names = [_name(profile) for profile in profiles]
    threads = {unit for unit, name in zip(units, names, strict=True) if not (is_typed or names_type(name))}
    return [
        Measure(_usual_type(unit) if unit in threads else name, unit)
        for unit, name in zip(units, names, strict=True)
    ]


def _usual_type(unit: str) -> str:
    """Return the type of values that only have a unit: samples, time, or what the unit says."""
    return "samples" if unit == "count" else "weight" if unit in TIME_UNITS else unit


def _value(measure: Measure) -> str:
    """Return the name by which a measure is chosen."""
    return measure.unit if measure.type == _usual_type(measure.unit) else measure.type


def _records(profiles: Sequence[Any], frames: Sequence[str | None]) -> Iterator[Record]:
    for number, profile in enumerate(profiles, start=1):
        read = _events if isinstance(profile, dict) and profile.get("type") == "evented" else _samples
        for record in read(profile, frames):
            yield Invalid(f"profile {number}: {record.where}") if isinstance(record, Invalid) else record


def _samples(profile: Any, frames: Sequence[str | None]) -> Iterator[Record]:
    """Yield the samples of a profile: a list of frames and a weight each."""
    samples, weights = list_in(profile, "samples"), list_in(profile, "weights")
    if len(samples) != len(weights):
        yield Invalid(f"has {len(samples)} samples and {len(weights)} weights")
    for number, (indexes, weight) in enumerate(zip(samples, weights, strict=False), start=1):
        stack = _stack(indexes, frames) if isinstance(indexes, list) else None
        if stack is None or not _is_weight(weight):
            yield Invalid(f"sample {number}: has no weight, or a frame that is not in the table")
        else:
            yield Sample(stack, weight)


def _events(profile: Any, frames: Sequence[str | None]) -> Iterator[Record]:
    """Yield what lies between one event and the next, as the stack that was open then.

    Frames that are closed at one time may come in any order, as PerfView and dotnet-trace write them.
    """
    events = list_in(profile, "events")
    stack: list[int] = []
    due: list[int] = []  # frames within a closed one: they are closed at the same time
    last = profile.get("startValue", 0) if isinstance(profile, dict) else 0
    last = last if _is_weight(last) else 0
    for number, event in enumerate(events, start=1):
        at, frame = _number(event, "at"), event.get("frame") if isinstance(event, dict) else None
        if at is None or at < last or _stack([frame], frames) is None:
            yield Invalid(f"event {number}: has no time after the one before, or no frame of the table")
            continue
        if at > last:
            if due:
                yield Invalid(f"event {number}: a frame was closed around others that stay open")
                due.clear()
            yield Sample(_stack(stack, frames) or (), at - last)
            last = at
        if event.get("type") == "O" and frame is not None:
            stack.append(frame)
        elif event.get("type") == "C" and frame in stack:
            position = len(stack) - 1 - stack[::-1].index(frame)
            if frame in due:
                due.remove(frame)
            due += stack[position + 1 :] if not due else []
            del stack[position]
        else:
            yield Invalid(f"event {number}: closes no frame that is open")
    if stack:
        end = _number(profile, "endValue")
        yield Invalid(f"event {len(events)}: leaves frames open")
        if end is not None and end > last:
            yield Sample(_stack(stack, frames) or (), end - last)


def _samples_in(profile: Any) -> int:
    """Return how many samples or events a profile has."""
    return len(list_in(profile, "samples")) or len(list_in(profile, "events"))


def _stack(indexes: Sequence[Any], frames: Sequence[str | None]) -> tuple[str, ...] | None:
    """Return the frames of a stack, None if one is not in the table."""
    stack = [frames[index] if type(index) is int and 0 <= index < len(frames) else None for index in indexes]
    return tuple(frame for frame in stack if frame is not None) if None not in stack else None


def _frame(value: Any) -> str | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    file, line = value.get("file"), value.get("line")
    name = value["name"] if value["name"].strip() else "[unknown]"
    return join_frame(name, file if isinstance(file, str) else "", line if type(line) is int else 0)


def _period(profiles: Sequence[Any]) -> float:
    """Return the smallest weight if all others are multiples of it, as a sampler writes them; else 0."""
    weights = [
        float(weight)
        for profile in profiles
        for weight in list_in(profile, "weights")
        if _is_weight(weight) and weight
    ]
    if not weights or any(
        isinstance(document, dict) and document.get("type") == "evented" for document in profiles
    ):
        return 0.0
    smallest = min(weights)
    if smallest < _SMALLEST_PERIOD:
        return 0.0
    even = all(abs(weight / smallest - round(weight / smallest)) <= _EVENLY for weight in weights)
    return smallest if even else 0.0


def _unit(profile: Any) -> str:
    unit = profile.get("unit") if isinstance(profile, dict) else None
    return _UNITS.get(unit, unit_name(unit)) if isinstance(unit, str) else "count"


def _name(profile: Any) -> str:
    name = profile.get("name") if isinstance(profile, dict) else None
    return name.lower() if isinstance(name, str) else ""


def _is_weight(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_WEIGHT


def _number(value: Any, name: str) -> float | None:
    number = value.get(name) if isinstance(value, dict) else None
    return number if _is_weight(number) else None
