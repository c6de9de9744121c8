"""Austin: samples of Python, one line each, ``P<pid>;T<thread>;file:function:line;… metric``.

Lines that start with ``#`` hold what the whole profile has in common. Weights are microseconds, in memory
mode bytes, in full mode both and whether the thread was idle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from agents.profiles.formats.base import Measure, Reading, Record, Sample, choose_value, mostly_samples
from agents.profiles.formats.collapsed import invalid_line
from agents.profiles.formats.frames import join_frame
from agents.profiles.formats.source import ProfileSource, head_text, whole_lines

_ABOUT = re.compile(r"^# ([a-z]+): (.*?)\s*$", re.MULTILINE)
_SAMPLE = re.compile(r"P[^;\s]+;T[^;]*[; ]", re.DOTALL)
_METRICS = re.compile(r"(-?[0-9]{1,18})(?:,([01]),(-?[0-9]{1,18}))?")
_FRAME = re.compile(
    r"(?P<file>.*):(?P<name>[^:]*[^:0-9][^:]*):(?P<line>[0-9]{1,9})(?::[0-9]+){0,3}", re.DOTALL
)
_SPECIAL = re.compile(r":(INVALID|GC):")
_FULL = ("cpu", "wall", "memory")


class AustinFormat:
    """Samples of Austin as text; frames that name process and thread are left out."""

    name = "austin"
    content = "samples of Austin (lines of P…;T…;frames and a metric)"

    def recognises(self, head: bytes) -> bool:
        """Take a file whose first line says so, or is a sample, and nearly all others are samples."""
        text = head_text(head).lstrip()
        first = next((line for line in text.split("\n") if line.strip() and line[0] != "#"), "")
        if not text.startswith("# austin:") and not _SAMPLE.match(first):
            return False
        records = list(_records(ProfileSource.of(whole_lines(head)), "wall"))
        return not records or mostly_samples(records)

    def read(self, source: ProfileSource, value: str) -> Reading:
        """Read one metric; in full mode ``cpu`` unless ``value`` is ``wall`` or ``memory``."""
        about = dict(_ABOUT.findall(head_text(source.head)))
        measure = austin_measure(about, value)
        return Reading(measure, _records(source, measure.type))


def austin_measure(about: Mapping[str, str], value: str) -> Measure:
    """Return what the metric is, by the lines that describe the profile.

    Raises:
        ConfigError: the mode has no such value.
    """
    mode = about.get("mode", "wall")
    names = _FULL if mode == "full" else (mode,)
    chosen = choose_value(names, value, names[0])
    if chosen == "memory":
        return Measure("memory", "bytes")
    interval = about.get("interval", "").removesuffix("us")
    return Measure(chosen, "microseconds", float(interval) if re.fullmatch(r"[0-9]{1,12}", interval) else 0.0)


def chosen_metric(value: str, time: int, idle: bool, memory: int | None) -> int:
    """Return a sample's weight: no CPU time while idle, and no memory where it was given back."""
    if value == "memory":
        return max(time if memory is None else memory, 0)
    return 0 if value == "cpu" and idle else time


def austin_frame(file: str, name: str, line: int) -> str:
    """Return a frame; those of the kernel have no file of their own."""
    if file == "kernel":
        return f"{name}_[k]"
    return join_frame(name, file, line)


def _records(source: ProfileSource, value: str) -> Iterator[Record]:
    for number, raw in source.lines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        head, _, tail = line.rpartition(" ")
        metrics = _METRICS.fullmatch(tail)
        frames = [_read_frame(frame) for frame in _without_thread(head)] if metrics else []
        if not metrics or not head or None in frames:
            yield invalid_line(number, line)
            continue
        memory = int(metrics[3]) if metrics[3] else None
        weight = chosen_metric(value, int(metrics[1]), metrics[2] == "1", memory)
        if weight < 0:
            yield invalid_line(number, line)
        else:
            yield Sample(tuple(frame for frame in frames if frame), weight)


def _without_thread(text: str) -> list[str]:
    process, _, rest = text.partition(";")
    if not process.startswith("P") or not rest.startswith("T"):
        return text.split(";")
    return rest.split(";")[1:]


@lru_cache(maxsize=16_384)
def _read_frame(text: str) -> str | None:
    """Return a frame as all formats spell it; None if it makes no sense."""
    if special := _SPECIAL.fullmatch(text):
        return f"[{special[1]}]"
    match = _FRAME.fullmatch(text)
    return austin_frame(match["file"], match["name"], int(match["line"])) if match else None
