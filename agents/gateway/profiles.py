"""Profiles as clients send them, as messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson
import xxhash

from agents.gateway.base import Decoded, DecodeSetup, MessagePart, Refusal, Request, SkippedPart
from agents.gateway.labels import find_origin
from agents.gateway.service_clocks import services_of, without_wall
from agents.profiles.annotate import ANNOTATION_FILE, annotation_name
from agents.profiles.formats import (
    AUTO,
    ProfileSource,
    Reading,
    Sample,
    Stack,
    count_samples,
    find_format,
    read_profile,
)
from agents.profiles.formats.base import TIME_UNITS, Record, named_counts
from agents.profiles.formats.cpu import clock_of
from agents.profiles.formats.pprof import PprofFormat
from agents.profiles.message import ProfileOrigin, build_profile, encode_within
from agents.profiles.profile_files import profile_key
from pipeline.files.unpacking import UnpackError, gunzip
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.inputs import FUTURE_S
from pipeline.messages.measurements import MAX_INTERVAL_S
from pipeline.messages.schema.inputs import MAX_COUNT, MAX_RATE_HZ
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.units import DAY_S

DEFAULT_INTERVAL_S = 10.0
"""Length of a profile that states none: that of most agents."""

OLDEST_S = 7 * DAY_S
"""Oldest profile: an older one comes from a wrong clock, and no scan would see it. ``smidgen agent import``
takes any."""

MAX_FRAMES = 5_000_000
"""Most frames of all stacks of a profile, seconds of work: a few bytes may encode any number of frames."""

_UNTYPED = ("collapsed", "dtrace", "speedscope")
"""Formats that need not say what their values count."""
_NO_TYPES = ("samples", "weight")
"""Types of measures where they do not."""

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Pushed:
    """A profile within a request, with the properties that its protocol states; None: not stated.

    ``identity`` distinguishes it from others with the same labels and content, besides its times; ``type`` is
    what its values count where its format does not say it.
    """

    data: bytes
    labels: Mapping[str, str]
    start: float | None = None  # epoch seconds
    end: float | None = None
    rate_hz: float = 0.0
    format: str = AUTO
    identity: str = ""
    type: str = ""


def profile_parts(pushed: Pushed, request: Request, setup: DecodeSetup) -> Decoded:
    """Return the messages of a profile, as ``reading_parts`` does.

    Raises:
        InvalidMessage: it is of no known format, or its labels or times make no sense.
        Refusal: it unpacks to too much.
    """
    reading = _begin(_unpacked(pushed.data, setup), pushed, setup)
    return reading_parts(reading, pushed, request, setup)


def reading_parts(reading: Reading, pushed: Pushed, request: Request, setup: DecodeSetup) -> Decoded:
    """Return the messages of a profile that is being read; none if it follows no clock of CPU or wall.

    Raises:
        InvalidMessage: none of its records can be read, or its labels or times make no sense.
    """
    clock = clock_of(reading.measure)
    if not clock:
        text = f"{reading.measure.type} ({reading.measure.unit}): not CPU"
        return Decoded(skipped=(SkippedPart("not_cpu", text, is_wrong=False),))
    origin = find_origin(pushed.labels, setup.names, peer=request.peer)
    start, end = _interval(pushed, reading, request.now)
    rate_hz = _rate_hz(pushed, reading)
    bounded = replace(reading, records=_bounded(reading.records))
    parsed = count_samples(_with_period(bounded, rate_hz))
    if parsed.invalid and not parsed.stacks:
        raise InvalidMessage(f"profile: {parsed.first_invalid}")
    if parsed.samples > MAX_COUNT:
        raise InvalidMessage(f"profile: {parsed.samples} samples, more than {MAX_COUNT}")
    stacks = _under_endpoint(parsed.stacks, origin.endpoint)
    source = ProfileOrigin(origin.service, origin.host, origin.release, origin.labels, rate_hz)
    profile_id = _identity(pushed, origin.host)
    profile = build_profile(stacks, source=source, start=start, end=end, id=profile_id)
    encoded, lost = encode_within(profile, setup.max_message_bytes)
    skipped = []
    if parsed.left_out:
        text = f"not CPU: {named_counts(parsed.left_out)}"
        skipped.append(SkippedPart("not_cpu", text, is_wrong=False))
    if parsed.invalid:
        text = f"{parsed.invalid} records, first {parsed.first_invalid}"
        skipped.append(SkippedPart("invalid_records", text, is_wrong=False))
    if lost:
        skipped.append(SkippedPart("oversized_stacks", f"{lost} samples of oversized stacks"))
    parts = (
        MessagePart(
            Outgoing("profiles", profile_key(source), part.value),
            origin.service,
            part.samples,
            f"{profile_id}/{number}",
            clock,
        )
        for number, part in enumerate(encoded)
    )
    return Decoded(tuple(parts), tuple(skipped))


def joined(decoded: Sequence[Decoded]) -> Decoded:
    """Return the results of several profiles as the result of one request.

    Profiles of the wall's clock are left out for a service that sends one of CPU beside them.
    """
    parts = tuple(part for profile in decoded for part in profile.parts)
    skipped = tuple(skipped for profile in decoded for skipped in profile.skipped)
    return without_wall(Decoded(parts, skipped), services_of(parts, "cpu"))


def _unpacked(data: bytes, setup: DecodeSetup) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        unpacked = gunzip(data, setup.max_unpacked_bytes)
    except UnpackError as error:
        if "more than" in str(error):
            raise Refusal(413, "too_large", f"profile: {error}") from None
        raise InvalidMessage(f"profile: {error}") from None
    if unpacked.startswith(_GZIP):  # readers also unpack, within a bound of their own
        raise InvalidMessage("profile: compressed twice")
    return unpacked


def _begin(data: bytes, pushed: Pushed, setup: DecodeSetup) -> Reading:
    if not data:
        raise InvalidMessage("profile: empty")
    try:
        source = ProfileSource.of(data)
        format_ = find_format(pushed.format, source.head)
        if isinstance(format_, PprofFormat):
            format_ = PprofFormat(setup.names.names["endpoint"])
        reading = read_profile(format_, source)
    except ConfigError as error:
        raise InvalidMessage(f"profile: {error}") from None
    if pushed.type and format_.name in _UNTYPED and reading.measure.type in _NO_TYPES:
        return replace(reading, measure=replace(reading.measure, type=pushed.type))
    return reading


def _interval(pushed: Pushed, reading: Reading, now: float) -> tuple[float, float]:
    """Return start and end of sampling: from the protocol, else from the profile, else now."""
    start, end = pushed.start, pushed.end
    length_s = reading.recorded.duration_s or DEFAULT_INTERVAL_S
    if start is None and end is None and reading.recorded.start:
        start = reading.recorded.start
    if start is None:
        end = now if end is None else end
        start = end - length_s
    elif end is None:
        end = start + length_s
    for name, moment in (("start", start), ("end", end)):
        if not EARLIEST_S <= moment < LATEST_S:
            raise InvalidMessage(f"{name}: {moment:.0f} is no time between 2000 and 2100")
    if not start <= end <= start + MAX_INTERVAL_S:
        raise InvalidMessage("end: should be at or after start, by at most a day")
    if end > now + FUTURE_S:
        raise InvalidMessage(f"end: {end - now:.0f} s in the future")
    if end < now - OLDEST_S:
        raise InvalidMessage(f"end: {(now - end) / DAY_S:.0f} days ago, more than {OLDEST_S / DAY_S:.0f}")
    return start, end


def _rate_hz(pushed: Pushed, reading: Reading) -> float:
    """Return the samples a second and CPU: as the profile says, or else its weights, or else the client."""
    measure = reading.measure
    rate = reading.recorded.rate_hz
    if not rate and measure.period > 0 and measure.unit in TIME_UNITS:
        rate = TIME_UNITS[measure.unit] / measure.period
    rate = rate or pushed.rate_hz
    return rate if 0 < rate <= MAX_RATE_HZ else 0.0


def _with_period(reading: Reading, rate_hz: float) -> Reading:
    """Return the reading with the weight of one sample, by which times become samples.

    Raises:
        InvalidMessage: the time that a sample stands for is not known.
    """
    measure = reading.measure
    if measure.per_sample:
        return reading
    if not rate_hz or measure.unit not in TIME_UNITS:
        unit = measure.unit or "without a unit"
        raise InvalidMessage(f"profile: weights of {measure.type} are {unit}, and no period of it is given")
    return replace(reading, measure=replace(measure, period=TIME_UNITS[measure.unit] / rate_hz))


def _bounded(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records.

    Raises:
        InvalidMessage: they have too many frames.
    """
    frames = 0
    for record in records:
        if isinstance(record, Sample):
            frames += len(record.stack)
            if frames > MAX_FRAMES:
                raise InvalidMessage(f"profile: more than {MAX_FRAMES} frames in all stacks")
        yield record


def _under_endpoint(stacks: Mapping[Stack, int], endpoint: str) -> Mapping[Stack, int]:
    if not endpoint:
        return stacks
    root = f"{annotation_name('endpoint', endpoint)} ({ANNOTATION_FILE})"
    return {(root, *stack): count for stack, count in stacks.items()}


def _identity(pushed: Pushed, host: str) -> str:
    """Return a key that is equal when a client sends a profile again; times count if the client gave them."""
    # Without a host label the client's address counts, so that equal files of two clients differ.
    origin = [host, pushed.identity, pushed.start, pushed.end, sorted(pushed.labels.items())]
    return xxhash.xxh3_128_hexdigest(orjson.dumps(origin) + pushed.data)
