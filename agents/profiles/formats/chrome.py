"""CPU profiles of V8: ``.cpuprofile`` files of Chrome and Node.js, and traces of Chrome that hold them.

The fields are those of the DevTools protocol's ``Profiler.Profile``; up to Chrome 58 the nodes hang in
one another (``head``) and samples have timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, repeat
from typing import Any

from agents.profiles.formats.base import Invalid, Measure, Reading, Record, Sample, Stack, choose_value
from agents.profiles.formats.frames import join_frame
from agents.profiles.formats.source import Damaged, ProfileSource, head_text, list_in, object_in

_MARKS = re.compile(
    r'"(?:callFrame|functionName|traceEvents|timeDeltas|cpuProfile|ph|hitCount)"\s*:'
    r'|"nodes"\s*:\s*\[|"samples"\s*:\s*\[\s*\d'
)
_ROOT = "(root)"
_IDLE = "(idle)"
_ANONYMOUS = "(anonymous)"
_LATEST = 2**53


@dataclass
class _Profile:
    """The nodes of a call tree and the samples in it: of one thread."""

    frames: dict[Any, str] = field(default_factory=dict)
    parents: dict[Any, Any] = field(default_factory=dict)
    hits: dict[Any, Any] = field(default_factory=dict)
    samples: list[Any] = field(default_factory=list)
    deltas: list[Any] = field(
        default_factory=list
    )  # microseconds from the sample before, the first from the start
    invalid: list[str] = field(default_factory=list)


class ChromeFormat:
    """Samples of V8 with the microseconds until the next one; time without work has no frames."""

    name = "chrome"
    content = "samples of V8 (a .cpuprofile, or a trace with one)"

    def recognises(self, head: bytes) -> bool:
        """Take JSON with a field of such a profile near its beginning."""
        text = head_text(head).lstrip()
        return text.startswith(("{", "[")) and bool(_MARKS.search(text))

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read all profiles of the file; their period is the mean time between two samples."""
        choose_value(("cpu",), value, "")
        profiles = _profiles(source.read_json())
        if not profiles:
            raise Damaged("has no CPU profile, as traces of the category v8.cpu_profiler do")
        times = [_sort_by_time(profile) for profile in profiles]
        flat = [time for profile_times in times for time in profile_times if time]
        period = sum(flat) / len(flat) if flat else 0.0
        measure = Measure("cpu", "microseconds", period) if period else Measure()
        return Reading(measure, _records(profiles, times, period))


def _records(
    profiles: Sequence[_Profile], times: Sequence[Sequence[float]], period: float
) -> Iterator[Record]:
    for profile, durations in zip(profiles, times, strict=True):
        yield from map(Invalid, profile.invalid)
        stacks: dict[Any, Stack | None] = {}
        timed = zip(profile.samples, durations or repeat(period or 1), strict=False)
        weights = timed if profile.samples else profile.hits.items()
        for number, (node, weight) in enumerate(weights, start=1):
            is_id = isinstance(node, int | str)
            if is_id and node not in stacks:
                stacks[node] = _stack(node, profile)
            stack = stacks[node] if is_id else None
            if stack is None or not isinstance(weight, int | float) or not 0 <= weight <= _LATEST:
                yield Invalid(f"sample {number}: of no node, or no time")
            else:
                yield Sample(stack, weight if profile.samples else weight * (period or 1))


def _stack(node: Any, profile: _Profile) -> Stack | None:
    """Return a node's frames, root first; None if it is in no tree."""
    frames: list[str] = []
    seen: set[Any] = set()
    while node in profile.frames:
        if node in seen:
            return None
        seen.add(node)
        frames.append(profile.frames[node])
        if profile.parents.get(node) not in profile.frames:
            stack = tuple(reversed(frames))
            return () if frames[0] == _IDLE else stack[1:] if stack[0] == _ROOT else stack
        node = profile.parents[node]
    return None


def _sort_by_time(profile: _Profile) -> list[float]:
    """Sort a profile's samples, and return each one's time until the next: none if no times are known.

    V8 writes some samples late, with a negative time. The last one gets the mean of the others.
    """
    deltas = [delta if type(delta) in (int, float) else 0.0 for delta in profile.deltas]
    stamps = list(accumulate(deltas[: len(profile.samples)]))
    order = sorted(range(len(stamps)), key=stamps.__getitem__)
    profile.samples[: len(stamps)] = [profile.samples[index] for index in order]
    following = [stamps[later] - stamps[earlier] for earlier, later in pairwise(order)]
    if not any(following):
        return []
    mean = sum(following) / len(following)
    return [*following, *[mean] * (len(profile.samples) - len(following))]


def _profiles(document: Any) -> list[_Profile]:
    """Return the profiles of a file, whatever it is."""
    if isinstance(document, dict) and not isinstance(document.get("traceEvents"), list):
        profile = _Profile()
        _add(document, profile)
        return [profile] if profile.frames else []
    events = document["traceEvents"] if isinstance(document, dict) else document
    by_key: dict[Any, _Profile] = {}
    parts = [
        event
        for event in (events if isinstance(events, list) else ())
        if isinstance(event, dict) and event.get("name") in ("ProfileChunk", "CpuProfile")
    ]
    for event in sorted(parts, key=_time_of):  # a trace's events come in any order
        name = event["name"]
        if data := object_in(object_in(event, "args"), "data"):
            key = (str(event.get("pid")), str(event.get("tid") if name == "CpuProfile" else event.get("id")))
            profile = by_key.setdefault(key, _Profile())
            _add({**object_in(data, "cpuProfile"), **_only(data, "timeDeltas")}, profile)
    return [profile for profile in by_key.values() if profile.frames]


def _add(part: Mapping[str, Any], profile: _Profile) -> None:
    """Add nodes and samples of a whole profile, or of one chunk of it."""
    for node in [*list_in(part, "nodes"), *_nested(object_in(part, "head"))]:
        name = node.get("id") if isinstance(node, dict) else None
        if not isinstance(name, int | str):
            profile.invalid.append(f"node {len(profile.frames) + 1}: has no id")
            continue
        profile.frames[name] = _frame(node)
        profile.hits[name] = node.get("hitCount", 0)
        if isinstance(node.get("parent"), int | str):
            profile.parents[name] = node["parent"]
        for child in list_in(node, "children"):
            child = child.get("id") if isinstance(child, dict) else child
            if isinstance(child, int | str):
                profile.parents[child] = name
    profile.samples += list_in(part, "samples")
    stamps = list_in(part, "timestamps")
    if stamps and all(type(stamp) in (int, float) for stamp in stamps):
        profile.deltas += [0, *(later - earlier for earlier, later in pairwise(stamps))]
    else:
        profile.deltas += list_in(part, "timeDeltas")


def _time_of(event: Mapping[str, Any]) -> float:
    time = event.get("ts")
    return float(time) if isinstance(time, int | float) else 0.0


def _nested(head: Any) -> Iterator[Any]:
    """Yield the nodes of a tree in which each holds its children."""
    waiting = [head] if head else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += list_in(node, "children")


def _frame(node: Mapping[str, Any]) -> str:
    call = object_in(node, "callFrame") or node
    name, url, line = call.get("functionName"), call.get("url"), call.get("lineNumber")
    line = line + ("callFrame" in node) if type(line) is int else 0  # counted from 0 in call frames
    return join_frame(
        name if isinstance(name, str) and name else _ANONYMOUS, url if isinstance(url, str) else "", line
    )


def _only(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: value[name]} if name in value else {}
