"""``smidgen bench injected``: share of steps found, by size, when steps are injected into real series."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen.evaluation.encode import rate_to_json
from loadgen.evaluation.rates import Rate
from loadgen.harness import Experiment, bench, terminal_table
from pipeline.analysis.detect.offline.segment import segment
from pipeline.backtest.seriesfile import read_series
from pipeline.commands.request import argument, option
from pipeline.commands.tables import Column
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError

POSITIONS = (0.25, 0.4, 0.55, 0.7)
"""Positions of steps in a series, as shares of its length."""

PERCENT = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0)
MARGIN = 3
"""Largest distance, in points, between a step and its report."""

APART = 8
"""Least distance, in points, of a step from the series' own changes: nearer ones would merge."""


@dataclass(frozen=True, slots=True)
class Injected:
    """Steps of one size: the share found, and the number of unexplained changes reported."""

    percent: float
    found: Rate
    others: int

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"percent": self.percent, "found": rate_to_json(self.found), "others": self.others}


def measure_injected(
    every: Mapping[str, FloatArray],
    percent: Sequence[float] = PERCENT,
    *,
    advance: Callable[[], None] | None = None,
) -> list[Injected]:
    """Inject steps up and down into each series, one at a time, and search for them.

    Args:
        every: Name → (points,) values; a step multiplies the values from its position on.
        percent: Sizes in per cent of the level.
        advance: Called after each size of each series.
    """
    own = {name: [shift.index for shift in segment(values)] for name, values in every.items()}
    results = []
    for size in percent:
        hits = of = other_changes = 0
        for name, values in every.items():
            for at in (round(share * len(values)) for share in POSITIONS):
                if any(abs(at - index) < APART for index in own[name]):
                    continue
                for sign in (1, -1):
                    changed = np.where(np.arange(len(values)) >= at, values * (1 + sign * size / 100), values)
                    change_points = [shift.index for shift in segment(changed)]
                    near = [index for index in change_points if abs(index - at) <= MARGIN]
                    own_changes = [
                        index
                        for index in change_points
                        if any(abs(index - change) <= MARGIN for change in own[name])
                    ]
                    hits, of = hits + bool(near), of + 1
                    other_changes += len(change_points) - len(near[:1]) - len(own_changes)
            if advance:
                advance()
        results.append(Injected(size, Rate(hits, of), other_changes))
    return results


def read_results(path: Path, metric: str) -> dict[str, FloatArray]:
    """Read one metric of benchmark results: a tar archive of JSON files, each a list of results of one test.

    A result is an object with ``timestamp`` and ``metrics``, a list of ``name`` and ``value``; the folder of
    a file names the test. This is how Nyrkiö publishes benchmark histories. One such file by itself is one
    test, of its name.

    Returns:
        Test → values in the order of time.

    Raises:
        ConfigError: it cannot be read, or holds no such metric.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    try:
        for test, name, content in _members(path):
            points.setdefault(test, []).extend(_points(content, metric, name))
    except (OSError, tarfile.TarError) as error:
        raise ConfigError(f"{path}: {error}") from None
    histories = {test: np.array([value for _, value in sorted(points[test])]) for test in sorted(points)}
    histories = {test: values for test, values in histories.items() if len(values)}
    if not histories:
        raise ConfigError(f"{path}: no results of a metric {metric!r}")
    return histories


def _members(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield test, name and content of each JSON file."""
    if not tarfile.is_tarfile(path):
        yield path.stem, str(path), path.read_bytes()
        return
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".json") else None
            if file is not None:
                yield Path(member.name).parent.name, f"{path}: {member.name}", file.read()


def _points(content: bytes, metric: str, origin: str) -> list[tuple[float, float]]:
    try:
        return [
            (float(result["timestamp"]), float(metric_value["value"]))
            for result in orjson.loads(content)
            for metric_value in result["metrics"]
            if metric_value["name"] == metric
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{origin}: no list of results: {error}") from None


COLUMNS: tuple[Column[Injected], ...] = (
    Column("step", lambda row: f"{row.percent:g} %"),
    Column("found", lambda row: row.found.hits, "d"),
    Column("of", lambda row: row.found.of, "d"),
    Column("share", lambda row: row.found.value, ".0%"),
    Column("other changes", "others", "d"),
)


@bench(json="one JSON object a size")
def injected(
    file: Path = argument(),
    metric: str = option("ops_sec", help="Metric of an archive of results."),
    percent: str = option(",".join(f"{size:g}" for size in PERCENT), metavar="SIZE,..."),
) -> Experiment[Injected]:
    """Put steps of known size into the real series of FILE and count how many `smidgen detect` finds.

    FILE is a tar archive of benchmark results in JSON (lists of {timestamp, metrics: [{name, value}]}, a
    folder for each test), or anything that `smidgen detect` reads. Each step goes into a series by itself, up
    and down, at four positions away from the changes which the series has anyway; it is found if a change is
    reported within three points of it. Other changes are those that neither series nor step explains.
    """
    try:
        sizes = [float(size) for size in percent.split(",")]
    except ValueError:
        raise ConfigError(f"--percent: {percent!r} is no list of numbers") from None
    if file.is_file() and tarfile.is_tarfile(file):
        every = read_results(file, metric)
    else:
        every = {
            f"{series.service}/{series.metric}": series.levels for series in read_series(file, plain=True)
        }
    return Experiment(
        lambda advance: measure_injected(every, sizes, advance=advance),
        len(every) * len(sizes),
        terminal_table(COLUMNS, title=f"{len(every)} series"),
    )
