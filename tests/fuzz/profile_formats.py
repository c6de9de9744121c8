"""Decoders of profile files: what they accept is written in every format and read again."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping

from agents.profiles.formats import AUTO, ProfileSource, Sample, find_format, format_names, read_profile
from agents.profiles.formats.source import HEAD_BYTES
from agents.profiles.formats.tally import LeftOutSamples, count_samples
from agents.profiles.formats.writers import WRITERS
from pipeline.model.errors import ConfigError
from tests.support import jfr_writer, profile_files
from tests.support.foreign_files import FOREIGN

NAMES = format_names()[1:]
TOKENS: Mapping[str, tuple[bytes, ...] | None] = {
    "speedscope": None,
    "chrome": None,
    "perf": (b"\n", b"\n\t 1f ", b" (inlined)", b" 12/13 ", b"100.5: 1 cycles: ", b"->", b"\n\n"),
    "collapsed": (b";", b" 1\n", b".5\n"),
    "austin": (b"P1;T2;", b"a.py:f:3", b" 3,1,-4\n", b"# mode: full\n", b"\n", b":GC:"),
    "mojo": (b"\x02\x01\x00a\0", b"\x05", b"\x0b", b"\xff" * 12, b"\x0d", b"\x03\x14\x0a\x0b\x05"),
    "dtrace": (b"`f+0x3\n", b"\n   3\n", b"\n\n", b"->"),
    "jfr": (b"FLR\0", b"\xff" * 9, jfr_writer.constants(), jfr_writer.description(), b"\x03\x01a"),
    "pprof": (b"\x0a\x04\x08\x01\x10\x02", b"\x12\x04\x0a\x02\x01\x02", b"\xff" * 9, b"\x22\x02\x08\x01"),
    "otlp": (b"\x0a\x00", b"\x12\x02\x3a\x00", b"\xff" * 9),
}


def seeds(name: str) -> Callable[[], Iterator[bytes]]:
    """Return what makes the good files of a format."""

    def make() -> Iterator[bytes]:
        yield profile_files.FILES[name]
        if name == "chrome":
            yield profile_files.chrome_trace()
        if name == "pprof-legacy":
            yield profile_files.legacy_pprof(java=True, text=b" 0x1010 f (A.java:3)\n")

    return make


def check(name: str) -> Callable[[bytes], None]:
    """Return the check of a format: nothing escapes, and weights are the same over every other format."""
    format_ = find_format(name, b"")

    def run(data: bytes) -> None:
        format_.recognises(ProfileSource.of(data).head)
        reading = read_profile(format_, ProfileSource.of(data))
        samples = list(LeftOutSamples().samples(reading.records))
        assert all(0 < weight <= 2**62 and all(stack) for stack, weight in samples)
        total = sum(weight for _, weight in samples)
        for target, writer in WRITERS.items():
            out = io.BytesIO()
            try:
                writer(iter(samples), reading.measure, out)
            except ConfigError:  # what does not fit 64 bits
                continue
            if target == "speedscope":
                again = read_profile(find_format(target, b""), ProfileSource.of(out.getvalue()))
                read = sum(record.weight for record in again.records if isinstance(record, Sample))
                # Weights of a unit that speedscope lacks are written as samples.
                per_sample = reading.measure.per_sample if b'"unit":"none"' in out.getvalue() else 0
                assert math.isclose(read, total / (per_sample or 1), rel_tol=1e-9)
        count_samples(read_profile(format_, ProfileSource.of(data)))

    return run


def unrecognised() -> Iterator[bytes]:
    """Yield a file of every format, and what other tools write."""
    yield from profile_files.FILES.values()
    yield from (content for content, _ in FOREIGN.values())


def check_recognition(data: bytes) -> None:
    """Check that a text is refused, or taken for a format as which nine of ten of its records are samples."""
    source = ProfileSource.of(data)
    if len(source.head) >= HEAD_BYTES:
        return
    try:
        format_ = find_format(AUTO, source.head)
    except ConfigError:
        return
    if format_.name in ("collapsed", "perf", "austin"):
        records = list(read_profile(format_, ProfileSource.of(source.head)).records)
        samples = sum(isinstance(record, Sample) for record in records)
        assert len(records) - samples <= max(0.1 * len(records) + 1e-9, min(2, samples))
