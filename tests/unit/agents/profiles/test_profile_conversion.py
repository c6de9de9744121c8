"""``smidgen agent convert``, and what ``import`` needs to know of a file's weights."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.profiles.formats import AUTO, ProfileSource, Sample, find_format
from agents.profiles.formats.pprof import PPROF
from agents.profiles.formats.tally import merge_samples
from agents.profiles.formats.writers import WRITERS
from agents.profiles.message import ProfileOrigin
from agents.profiles.profile_conversion import Conversion, convert_profile
from agents.profiles.profile_files import Import, read_files
from pipeline.cli import run
from pipeline.messages.measurements import decode_profile
from pipeline.model.errors import ConfigError
from tests.support.profile_files import FILES, speedscope


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("target", WRITERS)
def test_every_format_is_converted(
    name: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_bytes(FILES[name])
    assert run(["agent", "convert", str(tmp_path / "in"), str(tmp_path / "out"), "--to", target]) == 0
    head = ProfileSource.of((tmp_path / "out").read_bytes()).head
    assert find_format(AUTO, head).name == target
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'in'}: ")


def heap() -> bytes:
    """Return a heap profile whose first value is another than the usual one."""
    profile = PPROF["Profile"]()
    profile.string_table.extend([b"", b"alloc_objects", b"count", b"inuse_space", b"bytes", b"main"])
    profile.sample_type.add(type=1, unit=2)
    profile.sample_type.add(type=3, unit=4)
    profile.default_sample_type = 3
    profile.function.add(id=1, name=5)
    profile.location.add(id=1).line.add(function_id=1)
    profile.sample.add(location_id=[1], value=[7, 640])
    return bytes(profile.SerializeToString())


UNIT = {"type": "sampled", "unit": "x\x1b[31m\ny", "samples": [[0]], "weights": [1]}
LEFT_OUT = "5 samples; 1 invalid records left out, first line 2: 'nonsense'; 2 without frames left out"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"main;f 3\nnonsense\n 2\nmain;g 2\n", LEFT_OUT, id="what was left out"),
        pytest.param(
            heap(), "640 bytes (inuse_space); left out: 1 alloc_objects", id="a value that is no sample"
        ),
        pytest.param(speedscope(UNIT), r"1 x\x1b[31m\ny", id="controls do not reach the terminal"),
    ],
)
def test_what_was_converted_is_said(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert run(["agent", "convert", str(path), str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == f"{path}: {said}\n"


@pytest.mark.parametrize(
    ("content", "options", "why"),
    [
        pytest.param(b"prose\n", (), "in: is of no format that is known", id="no profile"),
        pytest.param(gzip.compress(FILES["jfr"][:100]), (), "in: has no samples of a Java", id="cut"),
        pytest.param(FILES["jfr"], ("--value", "x"), "in: has no value 'x'", id="no such value"),
        pytest.param(b"main 1\n", ("--from", "pprof"), "in: has no samples of pprof", id="another format"),
        pytest.param(b"main 1\n", ("--to", "jfr"), "'jfr' is not one of", id="no such target"),
        pytest.param(b"main 1\n", ("--period", "0"), "'--period'", id="no period"),
        pytest.param(b"main 1\n", ("--period", "nan"), "nan is not a finite number", id="no number"),
    ],
)
def test_bad_input_is_one_line_and_no_output(
    content: bytes, options: tuple[str, ...], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_bytes(content)
    (tmp_path / "out").write_bytes(b"as it was")
    assert run(["agent", "convert", str(tmp_path / "in"), str(tmp_path / "out"), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert (tmp_path / "out").read_bytes() == b"as it was"
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_an_output_that_is_the_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_bytes(b"main 1\n")
    assert run(["agent", "convert", str(tmp_path / "in"), str(tmp_path / "in")]) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert run(["agent", "convert", str(tmp_path / "none")]) == 2
    assert "none: No such file" in capsys.readouterr().err


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(FILES["perf"])

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert run(["agent", "convert", "-", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == "main;work 2\n"


class Endless(io.RawIOBase):
    """A gigabyte of lines that are made as they are read."""

    def __init__(self, block: bytes, blocks: int) -> None:
        self._left: Iterator[bytes] = iter([block] * blocks)

    def read(self, size: int = -1, /) -> bytes:
        return next(self._left, b"")


@pytest.mark.slow
def test_memory_does_not_grow_with_a_file() -> None:
    """Five times the content takes no more memory: distinct stacks beyond the limit are written out."""
    import tracemalloc

    peaks = []
    for blocks in (4, 20):
        block = b"".join(b"main;f%d;g%d 1\n" % (number % 50, number % 49) for number in range(10_000))
        tracemalloc.start()
        source = ProfileSource(Endless(block, blocks))  # type: ignore[arg-type]
        convert_profile(source, io.BytesIO(), Conversion(WRITERS["collapsed"]))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_deep_stacks_are_not_held_for_long() -> None:
    read: list[int] = []
    stacks = (Sample(("main",) * depth, 1) for depth in range(1, 1000) if not read.append(depth))  # type: ignore[func-returns-value]
    merged = merge_samples(stacks, limit=10_000)
    next(merged)
    assert sum(read) < 10_000
    assert 1 + sum(1 for _ in merged) == 999


def imported(path: Path, **options: object) -> int:
    (file,) = read_files([path], Import(ProfileOrigin("s", "h"), 1e9, 60.0, 1 << 20, **options))  # type: ignore[arg-type]
    return int(decode_profile(file.messages[0].value).counts.sum())


def test_weights_that_are_no_samples_need_a_period(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    profile = {"type": "sampled", "unit": "milliseconds", "samples": [[0], [0, 1]], "weights": [25, 10]}
    path.write_bytes(speedscope(profile))
    with pytest.raises(ConfigError, match=r"a\.json: weights are milliseconds of weight, .* by --period"):
        imported(path)
    assert imported(path, period=5.0) == 7


def test_a_value_of_several_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.jfr"
    path.write_bytes(FILES["jfr"])
    assert (imported(path), imported(path, value="wall")) == (4, 5)


def test_a_heap_profile_is_not_imported_as_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "heap.pb").write_bytes(heap())
    assert run(["agent", "import", str(tmp_path / "heap.pb"), "--service", "shop"]) == 2
    assert "counts inuse_space (bytes), which is no CPU: --value inuse_space" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["convert"], ["import", "--service", "shop"]])
def test_a_period_of_samples_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("main;work 30000000\n")
    assert run(["agent", *command, str(tmp_path / "a.txt"), "--period", "1e7"]) == 2
    assert "counts samples, and no time or bytes that --period could divide" in capsys.readouterr().err
