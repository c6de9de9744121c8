"""``smidgen bench sampling``: what adaptive rates and pruned stacks cost and miss (Atys §6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from loadgen.bench.sampling.figures import draw_sampling, save_figure
from loadgen.bench.sampling.rates import CORRECTED, POLICIES, PUBLISHED, Point, measure_rates, saved
from loadgen.bench.sampling.services import KINDS, WINDOW_S
from loadgen.bench.sampling.stacks import PruningResult, measure_pruning
from loadgen.harness import Advance, Experiment, bench
from loadgen.terminal import read_file
from pipeline.commands.request import EXISTING_FILE, Duration, option
from pipeline.files.outputs import check_outputs
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S

FIRST_SEED = 2001
"""Seeds of services and hosts; settings were chosen on seeds from 101 and 1001 on."""


@dataclass(frozen=True, slots=True)
class SamplingResult:
    """All measurements."""

    points: list[Point]
    pruning: list[PruningResult]


@dataclass(frozen=True, slots=True)
class _SamplingRequest:
    services: int = option(2, least=1, most=100, help="Services of each kind.")
    duration: float = option(DAY_S, kind=Duration(), show_default="1d", help="Duration of each service.")
    hosts: int = option(8, least=1, most=100, help="Hosts whose stacks are pruned.")
    recorded: Path | None = option(
        flag="--from", kind=EXISTING_FILE, help="Output of --json to show, instead of measuring."
    )
    figure: Path | None = option(help="SVG to draw, of both.")


@bench(json="JSON")
def sampling(request: _SamplingRequest) -> Experiment[SamplingResult]:
    """Measure cost against error of sampling policies, and time against error of pruning.

    Services are simulated whose profiles stay, change with deployments, by the hour, in bursts or all the
    time. A policy sees the samples that it asks for and says what the profile of each window of 10 s is; its
    error is the mean over the ten largest functions. "saved" is the share of the samples that it needs less
    than the fixed rate of the same error. "whole run" is the error of the profile of the whole time, each
    sample weighed by 1 / rate, and "unweighed" the one without. Pruning is set up on one host and measured
    on others, by Smidgen's own aggregation.
    """
    figure, recorded = request.figure, request.recorded
    if figure:
        check_outputs({"--figure": figure}, [recorded] if recorded else [])

    def rows(advance: Advance) -> Iterator[SamplingResult]:
        result = _read(recorded) if recorded else _measure(request, advance)
        if figure:
            save_figure(draw_sampling(result.points, result.pruning), figure)
        yield result

    parts = 0 if recorded else len(KINDS) * request.services + 2 * request.hosts + 1
    return Experiment(rows, parts, _show)


def _show(rows: Iterable[SamplingResult]) -> None:
    for result in rows:
        for line in (*_rate_lines(result.points), "", *_pruning_lines(result.pruning)):
            click.echo(line)


def _measure(request: _SamplingRequest, advance: Advance) -> SamplingResult:
    windows = max(math.floor(request.duration / WINDOW_S), 1)
    seeds = range(FIRST_SEED, FIRST_SEED + request.services)
    points = measure_rates(tuple(KINDS), seeds, windows, advance)
    return SamplingResult(points, measure_pruning(FIRST_SEED, request.hosts, advance))


def _read(path: Path) -> SamplingResult:
    try:
        return TypeAdapter(SamplingResult).validate_json(read_file(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"--from {path}: is not what --json writes: {where} {first['msg']}") from None


def _rate_lines(points: Sequence[Point]) -> Iterator[str]:
    numbers = ("setting", "Hz", "error", "saved", "whole run", "unweighed")
    yield f"{'service':<12}{'policy':<22}" + "".join(f"{name:>11}" for name in numbers)
    for point in points:
        if point.policy in POLICIES[1:]:
            yield (
                f"{point.kind:<12}{point.policy:<22}{point.setting:>11g}{point.mean_hz:>11.1f}"
                f"{point.error * 100:>10.3f}%{saved(points, point) * 100:>10.1f}%"
                f"{point.whole_error * 100:>10.3f}%{point.plain_error * 100:>10.3f}%"
            )
    for policy in (PUBLISHED, CORRECTED):
        best = [saved(points, point) for point in points if point.policy == policy]
        span = f"{min(best) * 100:.1f} to {max(best) * 100:.1f} %"
        yield f"{policy}: saves {span} of the samples at equal error"


def _pruning_lines(pruning: Sequence[PruningResult]) -> Iterator[str]:
    yield f"{'pruning':<26}{'share':>8}{'time saved':>12}{'MAPE a host':>13}{'of all hosts':>14}"
    for result in pruning:
        yield (
            f"{result.method:<26}{result.plan.share * 100:>7.2f}%{result.saved * 100:>11.1f}%"
            f"{result.error * 100:>12.3f}%{result.fleet_error * 100:>13.3f}%"
        )
