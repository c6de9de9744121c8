"""Written profiles, read again."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from agents.profiles.formats import Measure, ProfileSource, Sample, Stack, find_format, read_profile
from agents.profiles.formats.base import Reading
from agents.profiles.formats.writers import WRITERS, writer_for
from pipeline.model.errors import ConfigError

SAMPLES = [Sample(("main (/srv/app.go:5)", "work (cart.py)"), 30), Sample(("main (/srv/app.go:6)",), 10)]
CPU = Measure("cpu", "microseconds", 10)


def written(name: str, samples: Sequence[Sample], measure: Measure) -> bytes:
    out = io.BytesIO()
    WRITERS[name](iter(samples), measure, out)
    return out.getvalue()


def read(name: str, data: bytes, value: str = "") -> Reading:
    return read_profile(find_format(name, b""), ProfileSource.of(data), value)


@pytest.mark.parametrize(
    ("name", "value", "factor", "measure"),
    [
        ("collapsed", "", 0.1, Measure()),
        ("pprof", "", 0.1, Measure()),
        ("pprof", "cpu", 1000, Measure("cpu", "nanoseconds", 10_000)),
        ("speedscope", "", 1, Measure("cpu", "microseconds", 10)),
    ],
)
def test_weights_with_their_unit_and_period(name: str, value: str, factor: float, measure: Measure) -> None:
    reading = read(name, written(name, SAMPLES, CPU), value)
    assert reading.measure == measure
    assert list(reading.records) == [(stack, weight * factor) for stack, weight in SAMPLES]


@pytest.mark.parametrize("name", WRITERS)
def test_bytes_without_a_period_stay_what_they_are(name: str) -> None:
    reading = read(name, written(name, SAMPLES, Measure("alloc_space", "bytes")))
    assert list(reading.records) == SAMPLES


def test_equal_profiles_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with (tmp_path / name).open("wb") as out:
            WRITERS["pprof"](iter(SAMPLES), CPU, out)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", WRITERS)
def test_rounding_loses_nothing(name: str) -> None:
    stacks: list[Stack] = [(f"f{number}",) for number in range(100)]
    samples = [Sample(stack, 0.25) for stack in stacks]
    reading = read(name, written(name, samples, Measure()))
    assert sum(record.weight for record in reading.records if isinstance(record, Sample)) == 25


@pytest.mark.parametrize(
    ("samples", "measure", "text"),
    [
        pytest.param([Sample(("a;b", "c\r\nd"), 1)], Measure(), b"a:b;c d 1\n", id="frames it cannot hold"),
        pytest.param(
            [Sample(("f(La/B;I)V", "g(a;b)"), 1)],
            Measure(),
            b"f(La/B;I)V;g(a:b) 1\n",
            id="the JVM's descriptors",
        ),
        pytest.param(
            [Sample(("main",), 0.003), Sample(("work",), 2)],
            Measure("weight", "seconds"),
            b"main 3000000\nwork 2000000000\n",
            id="times without a period are nanoseconds",
        ),
    ],
)
def test_collapsed_stacks(samples: list[Sample], measure: Measure, text: bytes) -> None:
    assert written("collapsed", samples, measure) == text


@pytest.mark.parametrize("name", WRITERS)
def test_weights_of_a_unit_that_only_perf_has_are_samples(name: str) -> None:
    data = written(
        name, [Sample(("main",), 3000), Sample(("work",), 1000)], Measure("cycles", "cycles", 1000)
    )
    reading = read(name, data)
    assert reading.measure.unit == "count"
    assert [record.weight for record in reading.records if isinstance(record, Sample)] == [3, 1]


def test_speedscope_has_the_fields_of_its_schema() -> None:
    document = orjson.loads(written("speedscope", SAMPLES, CPU))
    (profile,) = document["profiles"]
    assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
    assert document["shared"]["frames"][0] == {"name": "main", "file": "/srv/app.go", "line": 5}
    assert (profile["endValue"], profile["samples"]) == (40, [[0, 1], [2]])


def test_pprof_writes_functions_once_and_in_parts() -> None:
    samples = [
        Sample(("main (a.go:1)", f"f{number % 2500} (a.go:{number + 1})"), 1) for number in range(5000)
    ]
    data = gzip.decompress(written("pprof", samples, Measure()))
    assert data.count(b"a.go") == 1
    assert list(read("pprof", data).records) == samples


@pytest.mark.parametrize(
    ("name", "path", "writer"),
    [
        ("", "a.pb.gz", "pprof"),
        ("", "a.pprof", "pprof"),
        ("", "a.speedscope.json", "speedscope"),
        ("", "-", "collapsed"),
        ("", "a.txt", "collapsed"),
        ("pprof", "a.txt", "pprof"),
    ],
)
def test_which_writer(name: str, path: str, writer: str) -> None:
    assert writer_for(name, path) is WRITERS[writer]
    with pytest.raises(ConfigError, match="--to: should be one of collapsed, pprof, speedscope, not 'jfr'"):
        writer_for("jfr", path)
